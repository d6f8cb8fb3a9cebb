"""Images: two small networks and boosted trees, stacked with a network on signals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.errors import ShapeError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.networks import (
    HIDDEN,
    Signals,
    answers,
    one_epoch,
    optimizer_of,
    targets_of,
)
from leakbound.panoramia.models.stacking import GRID, FittedAttack, Stack, Trees, columns
from leakbound.panoramia.models.stacking import STAGES as STAGES_OF_TREES
from leakbound.panoramia.models.target import quietly

STAGES = (4, 8, 12)
"""Epochs of the convolutional network that compete: where its training might stop."""
CHANNELS = 16
CELLS = 4
"""Features are averaged over a grid of so many cells each way."""
WIDE = 256
DROPOUT = 0.3
LARGEST = 32
"""Pixels each way that the dense network sees; larger images are averaged down."""
BATCH = 128


@dataclass(frozen=True, eq=False)
class Prepared:
    """Models that see no signal, and so serve all attacks."""

    pictures: dict[int, "Pictures"]
    dense: "Pictures"
    trees: Trees
    on_validation: FloatArray


def prepare(train: Sample, validation: Sample, seed: int) -> Prepared:
    """Train what sees no signal."""
    pictures = dict(Pictures.train(train, validation, seed, CONVOLUTIONS))
    ((_, dense),) = Pictures.train(train, validation, seed, DENSE)
    trees = Trees.grow(columns(train.examples), train, GRID[-1], seed)
    said = trees.logits(columns(validation.examples), STAGES_OF_TREES[-1])
    return Prepared(pictures, dense, trees, np.column_stack([dense.on_validation, said]))


def candidates(
    train: Sample, validation: Sample, seed: int, prepared: Prepared
) -> Iterator[FittedAttack]:
    """Stack the convolutional network at each of its stages with the others and one on signals."""
    signals = Signals.train(train, seed)
    for epochs, network in prepared.pictures.items():
        parts = [network.on_validation, prepared.on_validation, *signals.logits(validation.signals)]
        weights = Stack.fit(np.column_stack(parts), validation.member)
        attack = _Attack(network, prepared.dense, prepared.trees, signals, weights)
        on_validation = weights.logits(np.column_stack(parts))
        yield FittedAttack({"epochs": epochs}, on_validation, attack.score)


@dataclass(frozen=True, eq=False)
class Pictures:
    """A network on images and labels."""

    network: nn.Module
    mean: float
    spread: float
    classes: int
    on_validation: FloatArray

    @classmethod
    def train(
        cls, train: Sample, validation: Sample, seed: int, plan: "Plan"
    ) -> Iterator[tuple[int, "Pictures"]]:
        """Train, and hand out a copy at each stage."""
        x = _pixels(train.examples.x)
        labels = train.examples.y
        classes = 0 if labels is None else 1 + int(max(labels.max(), _largest(validation)))
        mean, spread = float(x.mean()), float(x.std()) or 1.0
        with quietly():
            torch.manual_seed(Purpose.PICTURES.derived(seed))
            network = plan.network(x.shape[1:], classes)
            inputs = _inputs(train.examples, mean, spread, classes)
            targets = targets_of(train)
            optimizer = optimizer_of(network, plan.learning_rate, plan.decay)
            schedule = plan.schedule(optimizer, math.ceil(len(targets) / BATCH))
            for epoch in range(1, plan.stages[-1] + 1):
                one_epoch(network, optimizer, inputs, targets, batch=BATCH, schedule=schedule)
                if epoch in plan.stages:
                    frozen = plan.network(x.shape[1:], classes)
                    frozen.load_state_dict(network.state_dict())
                    model = cls(frozen.eval(), mean, spread, classes, np.empty(0))
                    said = model.logits(validation.examples)
                    yield epoch, cls(frozen, mean, spread, classes, said)

    def logits(self, examples: Examples) -> FloatArray:
        """Return the log-odds of membership."""
        return answers(self.network, _inputs(examples, self.mean, self.spread, self.classes))


class _Convolutions(nn.Module):
    """Three convolutions, features on a grid, the label beside them."""

    def __init__(self, colours: int, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(colours, CHANNELS, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(CELLS),
            nn.Flatten(),
        )
        self.head = nn.Sequential(
            nn.Linear(CHANNELS * CELLS**2 + classes, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)
        )

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        joined = torch.cat([self.features(images), labels], dim=1)
        logits: Tensor = self.head(joined).squeeze(1)
        return logits


class _Dense(nn.Module):
    """Two wide layers on all pixels and the label."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        colours, *sides = shape
        small = [min(side, LARGEST) for side in sides]
        self.pixels = nn.Sequential(nn.AdaptiveAvgPool2d(tuple(small)), nn.Flatten())
        self.layers = nn.Sequential(
            nn.Linear(colours * math.prod(small) + classes, WIDE),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(WIDE, WIDE),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(WIDE, 1),
        )

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        joined = torch.cat([self.pixels(images), labels], dim=1)
        logits: Tensor = self.layers(joined).squeeze(1)
        return logits


@dataclass(frozen=True)
class Plan:
    """A kind of network, and how it is trained."""

    network: Callable[[tuple[int, ...], int], nn.Module]
    stages: tuple[int, ...]
    learning_rate: float
    decay: float
    falling: bool

    def schedule(
        self, optimizer: torch.optim.Optimizer, batches: int
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Return what sets the learning rate of each step."""
        schedules = torch.optim.lr_scheduler
        if not self.falling:
            return schedules.ConstantLR(optimizer, 1.0)
        return schedules.OneCycleLR(
            optimizer, self.learning_rate, total_steps=batches * self.stages[-1]
        )


CONVOLUTIONS = Plan(
    lambda shape, classes: _Convolutions(shape[0], classes),
    stages=STAGES,
    learning_rate=2e-3,
    decay=1e-3,
    falling=False,
)
DENSE = Plan(
    _Dense,
    stages=(40,),
    learning_rate=3e-3,
    decay=0.05,
    falling=True,
)


@dataclass(frozen=True, eq=False)
class _Attack:
    """All models, and their weights."""

    pictures: Pictures
    dense: Pictures
    trees: Trees
    signals: Signals
    weights: Stack

    def score(self, examples: Examples, signals: FloatArray) -> FloatArray:
        parts = [
            self.pictures.logits(examples),
            self.dense.logits(examples),
            self.trees.logits(columns(examples), STAGES_OF_TREES[-1]),
            *self.signals.logits(signals),
        ]
        return self.weights.logits(np.column_stack(parts))


def _inputs(examples: Examples, mean: float, spread: float, classes: int) -> list[Tensor]:
    """Return standardised images, and labels one by one."""
    images = torch.tensor((_pixels(examples.x) - mean) / spread, dtype=torch.float32)
    labels = np.zeros((len(examples), classes), np.float32)
    if examples.y is not None:
        known = (examples.y >= 0) & (examples.y < classes)
        labels[np.flatnonzero(known), examples.y[known]] = 1
    return [images, torch.tensor(labels)]


def _pixels(x: NDArray[Any]) -> NDArray[np.float64]:
    """Return images with a dimension of colours: shape (n, colours, height, width)."""
    if x.ndim not in {3, 4}:
        message = (
            f"images must have shape (n, height, width) or (n, colours, height, width), got "
            f"{x.shape}"
        )
        raise ShapeError(message)
    images = x[:, None] if x.ndim == 3 else x
    return images.astype(np.float64, copy=False)


def _largest(sample: Sample) -> int:
    labels = sample.examples.y
    return 0 if labels is None else int(labels.max())
