"""Images: two small networks and boosted trees, stacked with a network on signals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, FloatArray
from leakbound.errors import InputError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import FittedAttack
from leakbound.panoramia.models.networks import (
    HIDDEN,
    SignalNetwork,
    adamw_optimizer,
    membership_targets,
    network_log_odds,
    train_one_epoch,
)
from leakbound.panoramia.models.trees import (
    GRID,
    STAGES,
    grown_trees,
    log_odds_of_first_trees,
    table_of_examples,
)
from leakbound.torch.device import seeded

CHANNELS = 16
CELLS = 4  # features are averaged over a grid of so many cells each way
WIDE = 256
DROPOUT = 0.3
LARGEST = 32  # pixels each way that the dense network sees; larger images are averaged down
BATCH = 128


@dataclass(frozen=True)
class Plan:
    """A kind of network, and how it is trained; it might stop after any of its stages."""

    network: Callable[[tuple[int, ...], int], nn.Module]
    stages: tuple[int, ...]
    learning_rate: float
    decay: float
    falling: bool


class _Network(nn.Module):
    """Features of an image, the label beside them, layers on both."""

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        joined = torch.cat([self.features(images), labels], dim=1)
        logits: Tensor = self.head(joined).squeeze(1)
        return logits


def _convolutions(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return three convolutions, and features on a grid."""
    features = nn.Sequential(
        nn.Conv2d(shape[0], CHANNELS, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(CELLS),
        nn.Flatten(),
    )
    head_inputs = CHANNELS * CELLS**2 + classes
    head = nn.Sequential(
        nn.Linear(head_inputs, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 1),
    )
    return _Network(features=features, head=head)


def _dense(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return two wide layers on all pixels and the label."""
    colours, *sides = shape
    averaged_sides = [min(side, LARGEST) for side in sides]
    head_inputs = colours * math.prod(averaged_sides) + classes
    layers = list[nn.Module]()
    for input_width in (head_inputs, WIDE):
        layers += [nn.Linear(input_width, WIDE), nn.ReLU(), nn.Dropout(DROPOUT)]
    pixels = nn.Sequential(nn.AdaptiveAvgPool2d(tuple(averaged_sides)), nn.Flatten())
    head = nn.Sequential(*layers, nn.Linear(WIDE, 1))
    return _Network(features=pixels, head=head)


CONVOLUTIONS = Plan(
    network=_convolutions, stages=(4, 8, 12), learning_rate=2e-3, decay=1e-3, falling=False
)
DENSE = Plan(network=_dense, stages=(40,), learning_rate=3e-3, decay=0.05, falling=True)


@dataclass(frozen=True, eq=False)
class Pictures:
    """A network on images and labels."""

    network: nn.Module
    mean: float
    spread: float
    classes: int

    @classmethod
    def train(
        cls, train: Sample, validation: Sample, seed: int, plan: Plan, device: str = "cpu"
    ) -> Iterator[tuple[int, "Pictures"]]:
        """Train, and hand out a copy at each stage."""
        images = _pixels(train.examples.x)
        # Labels beyond those of training and validation are none to the network.
        classes = 0
        for labels in (train.examples.y, validation.examples.y):
            if labels is not None:
                classes = max(classes, 1 + int(labels.max()))
        mean = float(images.mean())
        spread = float(images.std()) or 1.0
        with seeded(Purpose.PICTURES, seed=seed, device=device):
            network = plan.network(images.shape[1:], classes).to(device)
            model = cls(network=network, mean=mean, spread=spread, classes=classes)
            inputs = model.inputs(train.examples)
            targets = membership_targets(train)
            optimizer = adamw_optimizer(network, learning_rate=plan.learning_rate, decay=plan.decay)
            schedule = None
            if plan.falling:
                batches_per_epoch = math.ceil(len(targets) / BATCH)
                total_steps = batches_per_epoch * plan.stages[-1]
                schedule = OneCycleLR(optimizer, plan.learning_rate, total_steps=total_steps)
            for epoch in range(1, plan.stages[-1] + 1):
                train_one_epoch(
                    network,
                    optimizer=optimizer,
                    inputs=inputs,
                    targets=targets,
                    batch=BATCH,
                    schedule=schedule,
                )
                if epoch in plan.stages:
                    # A copy, as training goes on.
                    network_copy = plan.network(images.shape[1:], classes).to(device)
                    network_copy.load_state_dict(network.state_dict())
                    yield epoch, replace(model, network=network_copy)

    def inputs(self, examples: Examples) -> list[Tensor]:
        """Return standardised images, and labels one by one."""
        images = (_pixels(examples.x) - self.mean) / self.spread
        # Labels that are none to the network have a row of zeros.
        one_hot_labels = np.zeros((len(examples), self.classes), dtype=np.float32)
        if examples.y is not None:
            is_label = examples.y[:, None] == np.arange(self.classes)
            one_hot_labels = is_label.astype(np.float32)
        return [torch.tensor(images, dtype=torch.float32), torch.tensor(one_hot_labels)]

    def logits(self, examples: Examples) -> FloatArray:
        """Return the log-odds of membership."""
        return network_log_odds(self.network, self.inputs(examples))


# Models that see no signal, and so serve all attacks: convolutions by epoch, dense, trees.
Prepared: TypeAlias = tuple[dict[int, Pictures], Pictures, Any]


def prepare(train: Sample, validation: Sample, seed: int, device: str = "cpu") -> Prepared:
    """Train what sees no signal."""
    convolutions = dict(Pictures.train(train, validation, seed, CONVOLUTIONS, device))
    ((_, dense),) = Pictures.train(train, validation, seed, DENSE, device)
    trees = grown_trees(table_of_examples(train.examples), train=train, options=GRID[-1], seed=seed)
    return convolutions, dense, trees


def candidates(
    train: Sample, validation: Sample, seed: int, prepared: Prepared, device: str = "cpu"
) -> Iterator[FittedAttack]:
    """Stack the convolutional network at each of its stages with the others and one on signals."""
    convolutions, dense, trees = prepared
    signal_network = SignalNetwork.train(train, seed, device=device)
    for epochs, convolutional in convolutions.items():
        parts = partial(_stacked_logits, (convolutional, dense), trees, signal_network)
        yield FittedAttack.stack({"epochs": epochs}, parts=parts, validation=validation)


def _stacked_logits(
    image_networks: tuple[Pictures, ...],
    trees: object,
    signal_network: SignalNetwork,
    examples: Examples,
    signals: FloatArray,
) -> FloatArray:
    """Return the log-odds of every model that is stacked, as columns."""
    logits = [network.logits(examples) for network in image_networks]
    tree_logits = log_odds_of_first_trees(
        trees, table=table_of_examples(examples), stage=STAGES[-1]
    )
    logits.append(tree_logits)
    return np.column_stack([*logits, *signal_network.logits(signals)])


def _pixels(x: AnyArray) -> NDArray[np.float64]:
    """Return images with a dimension of colours: shape (n, colours, height, width)."""
    if x.ndim not in {3, 4}:
        raise InputError(f"images must have shape (n, [colours,] height, width), got {x.shape}")
    images = x
    if x.ndim == 3:
        images = x[:, None]
    return images.astype(np.float64, copy=False)
