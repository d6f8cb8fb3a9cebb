"""What demonstrations of PANORAMIA share: targets trained on a known process, their audit."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Protocol

import numpy as np
import torch
from torch.utils.data import TensorDataset

from leakbound._typing import JsonValue
from leakbound._validate import integer, real
from leakbound.demos._classifier import Recipe, accuracy
from leakbound.demos._training import Progress, Ticks, reproducible
from leakbound.generators import Samples
from leakbound.panoramia import Panoramia, PanoramiaReport

__all__ = ["Process", "SyntheticReport", "Target", "audit_targets"]

TEST_EXAMPLES = 3000
TRAINING = 0.5
"""Share of the work that training is, roughly."""
FIRST = 1000
MEMBERS, NONMEMBERS, TEST = range(3)
"""Seeds of a process: those of a run are smaller, and a seed has three."""


class Process(Protocol):
    """Where members come from, and non-members."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new examples."""


@dataclass(frozen=True)
class Target:
    """One model that was audited.

    Parameters
    ----------
    name : str
        What it is, such as "20 epochs" or "DP-SGD, ε = 8".
    epochs : int
        Passes over the training set.
    epsilon : float or None
        The ε that DP-SGD guarantees at δ = 1e-5; None without DP-SGD.
    train_accuracy, test_accuracy : float
        Share of right predictions on members and on 3,000 fresh examples, in [0, 1].
    seconds : float
        Training time until then.
    """

    name: str
    epochs: int
    epsilon: float | None
    train_accuracy: float
    test_accuracy: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SyntheticReport:
    """All targets of a demo, and their audits.

    Parameters
    ----------
    found : PanoramiaReport
        The table.
    targets : tuple of Target
        The overfitting sweep by epochs, then DP-SGD by ε.
    members : int
        Size of the training set.
    generator : str
        Name of the generator.
    seed : int
        Seed of everything random.
    seconds : float
        Time that all of it took.
    """

    found: PanoramiaReport
    targets: tuple[Target, ...]
    members: int
    generator: str
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts.

        Returns
        -------
        dict
            One entry for each field.
        """
        return vars(self) | {
            "found": self.found.to_dict(),
            "targets": [vars(target) for target in self.targets],
        }


def audit_targets(
    audit: Panoramia,
    process: Process,
    recipe: Recipe,
    *,
    generator: str,
    seed: int,
    members: int,
    epochs: Sequence[int],
    epsilons: Sequence[float],
    private_epochs: int,
    progress: Progress | None,
) -> SyntheticReport:
    """Train all targets on the same members, and audit them together.

    Parameters
    ----------
    audit : Panoramia
        How they are audited.
    process : Process
        Where examples come from.
    recipe : Recipe
        How targets are trained.
    generator : str
        What the generator is called.
    seed, members, epochs, epsilons, private_epochs, progress
        As for the demos.

    Returns
    -------
    SyntheticReport
        Targets and table.

    Raises
    ------
    OptionTypeError, OptionError
        If a number is not an integer in its range, or an ε not positive.
    """
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    members = integer(members, "members", least=500)
    marks = sorted({integer(mark, "epochs", least=1) for mark in epochs})
    budgets = [real(epsilon, "epsilons", above=0) for epsilon in epsilons]
    private_epochs = integer(private_epochs, "private_epochs", least=1)
    training = _Draws(process, audit, seed)
    steps = max(marks, default=0) + private_epochs * len(budgets)
    ticks = Ticks(_part(progress, 0, TRAINING), steps)
    with reproducible():
        inside, outside = training.pair(members, MEMBERS), training.pair(members, NONMEMBERS)
        data = training.tensors(inside)
        test = training.tensors(training.pair(TEST_EXAMPLES, TEST))
        trained = [
            (model, deepcopy(model.network))
            for model in chain(
                recipe.overfit(data, marks, seed, ticks),
                (
                    recipe.privately(data, epsilon, private_epochs, seed, ticks)
                    for epsilon in budgets
                ),
            )
        ]
        found = audit.run(
            target={model.name: network for model, network in trained},
            members=inside,
            nonmembers=outside,
            initial=recipe.new(seed),
            progress=_part(progress, TRAINING, 1),
        )
        targets = tuple(
            Target(
                model.name,
                model.epochs,
                model.epsilon,
                accuracy(network, data),
                accuracy(network, test),
                model.seconds,
            )
            for model, network in trained
        )
    return SyntheticReport(
        found=found,
        targets=targets,
        members=members,
        generator=generator,
        seed=seed,
        seconds=perf_counter() - began,
    )


@dataclass(frozen=True)
class _Draws:
    """Examples from a process, as the audit and as the targets take them."""

    process: Process
    audit: Panoramia
    seed: int

    def pair(self, n: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
        drawn = self.process.sample(n, seed=FIRST + 3 * self.seed + stream)
        assert drawn.labels is not None
        return drawn.values, drawn.labels

    def tensors(self, pair: tuple[np.ndarray, np.ndarray]) -> TensorDataset:
        values, labels = pair
        x = values if self.audit.inputs is None else self.audit.inputs(values)
        return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))


def _part(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return what reports a part of the work as a part of the whole."""
    if progress is None:
        return None
    return lambda what, share: progress(what, start + (end - start) * share)
