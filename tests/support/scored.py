"""Models and data that are scored in tests, in every form that `leakbound.torch.score` reads."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

EXAMPLES = 37
_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
DEVICES: list[Any] = ["cpu", pytest.param("cuda", marks=_CUDA)]
"""Where tests run; without a device they are skipped by name."""


class Pairs(Dataset[tuple[Tensor, int]]):
    """A map-style dataset that computes its items, as image datasets do."""

    def __init__(self, inputs: Tensor, targets: Tensor) -> None:
        self.inputs, self.targets = inputs, targets

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.inputs[index], int(self.targets[index])


class Stream(IterableDataset[tuple[Tensor, int]]):
    """The same without positions."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return (self.pairs[index] for index in range(len(self.pairs)))


def centring() -> nn.Module:
    """Return a network whose answers depend on the whole batch."""
    return nn.Sequential(nn.Flatten(), nn.LazyBatchNorm1d(track_running_stats=False, affine=False))


def network() -> nn.Module:
    """Return a small network with layers that behave differently in training."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4)
    )


def examples() -> tuple[Tensor, Tensor]:
    """Return inputs and targets."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(EXAMPLES, 6, generator=generator)
    return inputs, torch.randint(4, (EXAMPLES,), generator=generator)


def logits_of(values: Tensor) -> nn.Module:
    """Return a model that answers with `values`, whatever it is shown."""
    return SimpleModel(lambda rows: values[rows[:, 0].long()])


class SimpleModel(nn.Module):
    """A function as a model."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: Tensor) -> Any:
        return self.function(inputs)


def diverged() -> nn.Module:
    """Return a network whose answers are NaN."""
    return SimpleModel(lambda inputs: torch.full((len(inputs), 4), torch.nan))


def noisy() -> nn.Module:
    """Return a model of images that draws in evaluation mode, too."""
    return SimpleModel(lambda pixels: pixels.sum((2, 3)) + torch.randn(len(pixels), 3))


def rows(number: int) -> Tensor:
    """Return inputs by which `logits_of` finds its rows."""
    return torch.arange(float(number)).unsqueeze(1)
