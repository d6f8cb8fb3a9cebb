"""Targets trained on the same members, ever longer and with DP-SGD, and audited together."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

from leakbound.demo.training import Recipe, Ticks, accuracy
from leakbound.generators import Generator, Samples
from leakbound.panoramia import Options, PanoramiaReport, run
from leakbound.panoramia.options import Inputs
from leakbound.torch.placement import reproducible
from streams import derived

__all__ = [
    "IMAGE_CLASSIFIER",
    "Audited",
    "Material",
    "Process",
    "audit_targets",
    "drawn",
    "table_classifier",
]

TEST_EXAMPLES = 3000
MEMBERS, NONMEMBERS, TEST = range(3)
"""Which draw from a process."""

IMAGE_CLASSIFIER = Recipe(
    lambda: nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    ),
    batch_size=128,
    learning_rate=2e-3,
)


def table_classifier(width: int) -> Recipe:
    """Return how a network with two hidden layers is trained on the census."""
    return Recipe(
        lambda: nn.Sequential(
            nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        ),
        batch_size=128,
        learning_rate=2e-3,
    )


@dataclass(frozen=True)
class Target:
    """One model that was audited, and its accuracy, or loss, on members and on others."""

    name: str
    epsilon: float | None
    train: float
    test: float


@dataclass(frozen=True)
class Material:
    """What targets are trained on and audited on, and what judges a model on members and others."""

    members: object
    nonmembers: object
    training: TensorDataset
    judge: Callable[[nn.Module], tuple[float, float]]


@dataclass(frozen=True)
class Audited:
    """All targets, and their audits."""

    found: PanoramiaReport
    targets: tuple[Target, ...]


class Process(Protocol):
    """Where members come from, and non-members."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new examples."""


def audit_targets(
    generator: Generator,
    options: Options,
    material: Material,
    recipe: Recipe,
    *,
    epochs: Sequence[int],
    epsilons: Sequence[float],
    private_epochs: int,
) -> Audited:
    """Train all targets on the same members, and audit them together."""
    ticks = Ticks(None, 0)
    with reproducible():
        trained = [
            replace(model, network=deepcopy(model.network))
            for model in chain(
                recipe.overfit(material.training, list(epochs), 0, ticks),
                (
                    recipe.privately(material.training, epsilon, private_epochs, 0, ticks)
                    for epsilon in epsilons
                ),
            )
        ]
        found = run(
            {model.name: model.network for model in trained},
            material.members,
            generator,
            nonmembers=material.nonmembers,
            initial=recipe.new(0),
            options=options,
        )
        targets = tuple(
            Target(model.name, model.epsilon, *material.judge(model.network)) for model in trained
        )
    return Audited(found, targets)


def drawn(process: Process, inputs: Inputs | None, members: int, seed: int = 0) -> Material:
    """Draw the material of classifiers from a process."""

    def pair(n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        samples = process.sample(n, seed=derived("demos/process", seed, number, bits=32))
        assert samples.labels is not None
        return samples.values, samples.labels

    def tensors(values: np.ndarray, labels: np.ndarray) -> TensorDataset:
        x = values if inputs is None else inputs(values)
        return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))

    inside = pair(members, MEMBERS)
    training, test = tensors(*inside), tensors(*pair(TEST_EXAMPLES, TEST))
    return Material(
        inside,
        pair(members, NONMEMBERS),
        training,
        lambda network: (accuracy(network, training), accuracy(network, test)),
    )
