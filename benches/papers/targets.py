"""Targets trained on the same members, ever longer and with DP-SGD, and audited together."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import TensorDataset

from leakbound._base.types import IntArray
from leakbound.errors import OptionError
from leakbound.generators import Generator
from leakbound.panoramia import Options, PanoramiaReport, run
from leakbound.panoramia.options import Inputs
from leakbound.torch.device import reproducible
from streams import generator as rng_of
from training import Recipe, TrainedModel, accuracy

__all__ = ["Audited", "Material", "Training", "audit_targets", "divided", "perceptron"]

TEST_EXAMPLES = 3000


def perceptron(inputs: int, width: int, classes: int) -> Recipe:
    """Return how a network with two hidden layers is trained."""

    def network() -> nn.Module:
        layers = [
            layer
            for before, after in pairwise([inputs, width, width])
            for layer in (nn.Linear(before, after), nn.ReLU())
        ]
        return nn.Sequential(nn.Flatten(), *layers, nn.Linear(width, classes))

    return Recipe(network, batch_size=128, learning_rate=2e-3)


@dataclass(frozen=True)
class Training:
    """How some of the targets are trained: ever longer, and with DP-SGD."""

    recipe: Recipe
    epochs: tuple[int, ...] = ()
    epsilons: tuple[float, ...] = ()
    private_epochs: int = 15
    prefix: str = ""
    """What distinguishes them from other targets, in front of their names."""

    def models(self, data: TensorDataset, seed: int) -> Iterator[TrainedModel]:
        """Train them, and yield copies."""
        models_with_dp_sgd = (
            self.recipe.privately(data, epsilon, self.private_epochs, seed)
            for epsilon in self.epsilons
        )
        for model in chain(self.recipe.overfit(data, list(self.epochs), seed), models_with_dp_sgd):
            name = f"{self.prefix}{model.name}"
            yield replace(model, name=name, network=deepcopy(model.network))


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


def audit_targets(
    generator: Generator,
    options: Options,
    material: Material,
    trainings: Sequence[Training],
    seed: int = 0,
) -> Audited:
    """Train all targets on the same members, and audit them together."""
    with reproducible():
        trained = [
            model for training in trainings for model in training.models(material.training, seed)
        ]
        found = run(
            {model.name: model.network for model in trained},
            members=material.members,
            generator=generator,
            nonmembers=material.nonmembers,
            initial=trainings[0].recipe.new(seed),
            options=options,
        )
        targets = tuple(
            Target(model.name, model.epsilon, *material.judge(model.network)) for model in trained
        )
    return Audited(found=found, targets=targets)


def divided(
    values: NDArray[Any], labels: IntArray, inputs: Inputs | None, members: int, seed: int
) -> Material:
    """Divide labelled examples at random: members, as many non-members, and a test set."""
    if len(labels) <= 2 * members:
        raise OptionError(
            f"{len(labels):,} examples are too few for {members:,} members and non-members"
        )
    order = rng_of("papers/members", seed).permutation(len(labels))
    ends = [members, 2 * members, 2 * members + TEST_EXAMPLES]
    inside, outside, others = ((values[part], labels[part]) for part in np.split(order, ends)[:3])

    def tensors(values: NDArray[Any], labels: IntArray) -> TensorDataset:
        x = values
        if inputs is not None:
            x = inputs(values)
        return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))

    training = tensors(*inside)
    test = tensors(*others)
    return Material(
        members=inside,
        nonmembers=outside,
        training=training,
        judge=lambda network: (accuracy(network, training), accuracy(network, test)),
    )
