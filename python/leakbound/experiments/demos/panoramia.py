"""What demonstrations of PANORAMIA share: targets trained on the same members, their audit."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from torch.utils.data import TensorDataset

from leakbound._base.streams import Purpose
from leakbound._base.types import JsonValue
from leakbound._base.validation import integer, real
from leakbound.experiments.demos.recipe import Recipe, accuracy
from leakbound.experiments.demos.training import Progress, Ticks, TrainedModel, reproducible
from leakbound.generators import Samples
from leakbound.panoramia import Panoramia, PanoramiaReport
from leakbound.panoramia.options import Inputs

__all__ = [
    "ClassifierTarget",
    "Draw",
    "Material",
    "Process",
    "SyntheticReport",
    "Target",
    "TargetsReport",
    "audit_targets",
    "drawing",
]

TEST_EXAMPLES = 3000
TRAINING = 0.5
"""Share of the work that training is, roughly."""
MEMBERS, NONMEMBERS, TEST = range(3)
"""Which draw from a process."""


@dataclass(frozen=True)
class Target:
    """One model that was audited."""

    name: str
    epochs: int
    epsilon: float | None
    seconds: float


@dataclass(frozen=True)
class ClassifierTarget(Target):
    """A classifier that was audited."""

    train_accuracy: float
    test_accuracy: float


AnyTarget = TypeVar("AnyTarget", bound=Target)


@dataclass(frozen=True)
class Material(Generic[AnyTarget]):
    """What targets are trained on, and audited on."""

    members: object
    nonmembers: object
    training: TensorDataset
    judge: Callable[[TrainedModel], AnyTarget]


Draw: TypeAlias = Callable[[int, int], Material[AnyTarget]]
"""From the number of members and a seed to the material."""


class Process(Protocol):
    """Where members come from, and non-members."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new examples."""


@dataclass(frozen=True, kw_only=True)
class TargetsReport(Generic[AnyTarget]):
    """All targets of a demo, and their audits."""

    found: PanoramiaReport
    targets: tuple[AnyTarget, ...]
    members: int
    generator: str
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return vars(self) | {
            "found": self.found.to_dict(),
            "targets": [vars(target) for target in self.targets],
        }


SyntheticReport: TypeAlias = TargetsReport[ClassifierTarget]


def audit_targets(
    audit: Panoramia,
    draw: Draw[AnyTarget],
    recipe: Recipe,
    *,
    generator: str,
    seed: int,
    members: int,
    epochs: Sequence[int],
    epsilons: Sequence[float],
    private_epochs: int,
    progress: Progress | None,
) -> TargetsReport[AnyTarget]:
    """Train all targets on the same members, and audit them together."""
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    members = integer(members, "members", least=500)
    marks = sorted({integer(mark, "epochs", least=1) for mark in epochs})
    budgets = [real(epsilon, "epsilons", above=0) for epsilon in epsilons]
    private_epochs = integer(private_epochs, "private_epochs", least=1)
    steps = max(marks, default=0) + private_epochs * len(budgets)
    ticks = Ticks(_part(progress, 0, TRAINING), steps)
    with reproducible():
        material = draw(members, seed)
        trained = [
            replace(model, network=deepcopy(model.network))
            for model in chain(
                recipe.overfit(material.training, marks, seed, ticks),
                (
                    recipe.privately(material.training, epsilon, private_epochs, seed, ticks)
                    for epsilon in budgets
                ),
            )
        ]
        found = audit.run(
            target={model.name: model.network for model in trained},
            members=material.members,
            nonmembers=material.nonmembers,
            initial=recipe.new(seed),
            progress=_part(progress, TRAINING, 1),
        )
        targets = tuple(material.judge(model) for model in trained)
    return TargetsReport(
        found=found,
        targets=targets,
        members=members,
        generator=generator,
        seed=seed,
        seconds=perf_counter() - began,
    )


def drawing(process: Process, inputs: Inputs | None) -> Draw[ClassifierTarget]:
    """Return what draws the material of classifiers from a process."""

    def tensors(pair: tuple[np.ndarray, np.ndarray]) -> TensorDataset:
        values, labels = pair
        x = values if inputs is None else inputs(values)
        return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))

    def draw(members: int, seed: int) -> Material[ClassifierTarget]:
        def pair(n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
            drawn = process.sample(n, seed=Purpose.PROCESS.derived(seed, number, bits=32))
            assert drawn.labels is not None
            return drawn.values, drawn.labels

        inside, test = pair(members, MEMBERS), tensors(pair(TEST_EXAMPLES, TEST))
        training = tensors(inside)

        def judge(model: TrainedModel) -> ClassifierTarget:
            return ClassifierTarget(
                model.name,
                model.epochs,
                model.epsilon,
                model.seconds,
                accuracy(model.network, training),
                accuracy(model.network, test),
            )

        return Material(inside, pair(members, NONMEMBERS), training, judge)

    return draw


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return what reports a part of the work as a part of the whole."""
    if progress is None:
        return None
    return lambda what, share: progress(what, start + (end - start) * share)
