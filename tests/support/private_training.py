"""A tiny network that opacus trains with DP-SGD, with or without a watch around it."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer, DPPerLayerOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import leakbound as lb
from leakbound.integrations import DPSGDWatch

__all__ = ["DATA", "FEW", "NORM", "QUIET", "STEPS", "N", "batches", "loop", "loss_of", "network"]
__all__ += ["optimizer_of", "train", "watched"]

N, RATE, STEPS, NORM = 60, 0.25, 24, 1.7
FEW: dict[str, Any] = {
    "canaries": 80,
    "step_canaries": 60,
    "sampling_rate": RATE,
    "max_steps": STEPS,
}
QUIET = 1e-9
"""A noise multiplier so small that what is released is the sum of clipped gradients."""


def network(seed: int = 0) -> GradSampleModule:
    torch.manual_seed(seed)
    return GradSampleModule(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))


def optimizer_of(
    model: nn.Module,
    *,
    noise: float = 0.9,
    kind: Callable[..., Any] = torch.optim.SGD,
    private: Callable[..., DPOptimizer] = DPOptimizer,
    per_layer: bool = False,
    groups: bool = False,
    reduction: str = "mean",
    **options: Any,
) -> DPOptimizer:
    parameters: Any = list(model.parameters())
    if groups:
        parameters = [{"params": parameters[:2], "lr": 0.2}, {"params": parameters[2:]}]
    norm: Any = NORM
    if per_layer:
        private, norm = DPPerLayerOptimizer, [NORM * share for share in (0.1, 0.5, 0.5, 0.7)]
    return private(
        kind(parameters, lr=0.1),
        noise_multiplier=noise,
        max_grad_norm=norm,
        expected_batch_size=int(N * RATE),
        generator=torch.Generator().manual_seed(3),
        loss_reduction=reduction,
        **options,
    )


DATA = TensorDataset(
    torch.randn(N, 5, generator=torch.Generator().manual_seed(5)),
    torch.randint(3, (N,), generator=torch.Generator().manual_seed(6)),
)


def batches(steps: int = STEPS) -> list[list[int]]:
    """Poisson batches, the same in every run."""
    rng = np.random.default_rng(0)
    return [np.flatnonzero(rng.random(N) < RATE).tolist() for _ in range(steps)]


def loss_of(model: nn.Module, batch: Any) -> Tensor:
    inputs, targets = batch
    return nn.functional.cross_entropy(model(inputs), targets)


def loop(
    model: nn.Module, optimizer: DPOptimizer, loader: Any, *, accumulate: int = 1
) -> Iterator[None]:
    optimizer.zero_grad()
    for count, batch in enumerate(loader, start=1):
        torch.autograd.backward(loss_of(model, batch))
        if count % accumulate == 0:
            optimizer.step()
            yield
            optimizer.zero_grad()


def train(
    model: nn.Module,
    optimizer: DPOptimizer,
    *,
    steps: int = STEPS,
    virtual: int | None = None,
    accumulate: int = 1,
) -> None:
    loader: Any = DataLoader(DATA, batch_sampler=batches(steps * accumulate))
    managed: Any = nullcontext(loader)
    if virtual is not None:
        managed = BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=virtual, optimizer=optimizer
        )
    with managed as parts:
        for _ in loop(model, optimizer, parts, accumulate=accumulate):
            pass


def watched(
    model: nn.Module, optimizer: DPOptimizer, *, changes: Any = None, seed: int = 1, **how: Any
) -> DPSGDWatch:
    """Train in the block of a watch."""
    with lb.watch_dp_sgd(optimizer, **FEW | (changes or {}), seed=seed) as watch:
        train(model, optimizer, **how)
    return watch
