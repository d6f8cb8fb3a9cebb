"""What demonstrations share: reports, progress, reproducible training, scores on disk."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import ClassVar, Generic, TypeAlias, TypeVar

from torch import nn

from leakbound._base.files import write_text
from leakbound._base.scores import Scores
from leakbound._base.types import JsonValue
from leakbound.planning.inclusion import InclusionPlan
from leakbound.results import AuditResult
from leakbound.torch.placement import reproducible

__all__ = [
    "DELTA",
    "AuditedModel",
    "DemoReport",
    "Progress",
    "Ticks",
    "TrainedModel",
    "quiet_opacus",
    "reproducible",
    "simultaneous",
    "train_to_marks",
    "write_scores",
]

Progress: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of the work done so far, from 0 to 1."""

DELTA = 1e-5
"""The δ of every model trained with DP-SGD."""
_ERROR = 0.05
"""Probability that a headline about all models says too much."""


@dataclass(frozen=True)
class TrainedModel:
    """A network at some moment of its training.

    Parameters
    ----------
    name : str
        What it is, such as "20 epochs" or "DP-SGD, ε = 8".
    network : torch.nn.Module
        The network.
    epochs : int
        Passes over the training set.
    epsilon : float or None
        The ε that DP-SGD guarantees at δ = 1e-5; None without DP-SGD.
    seconds : float
        Training time until then.
    """

    name: str
    network: nn.Module
    epochs: int
    epsilon: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AuditedModel:
    """One model and its audit.

    Parameters
    ----------
    name : str
        What the model is, such as "20 epochs" or "DP-SGD, ε = 8".
    epochs : int
        Passes over the training set.
    epsilon : float or None
        The ε that DP-SGD guarantees at δ = 1e-5; None without DP-SGD.
    auc : float
        Probability that a member's score is above a non-member's, in [0, 1].
    seconds : float
        Training time until then.
    result : AuditResult
        The audit of its scores.
    simultaneous : AuditResult
        The same audit at a confidence that lets the bounds of all models hold together at 95 %.
    """

    name: str
    epochs: int
    epsilon: float | None
    auc: float
    seconds: float
    result: AuditResult
    simultaneous: AuditResult

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts.

        Returns
        -------
        dict
            One entry for each field.
        """
        return vars(self) | {
            "result": self.result.to_dict(),
            "simultaneous": self.simultaneous.to_dict(),
        }


def simultaneous(models: int) -> float:
    """Return the confidence of each audit with which all of them hold together at 95 %.

    Parameters
    ----------
    models : int
        How many.

    Returns
    -------
    float
        1 - 0.05 / models.
    """
    return 1 - _ERROR / max(1, models)


Row = TypeVar("Row", bound=AuditedModel)


@dataclass(frozen=True, kw_only=True)
class DemoReport(Generic[Row]):
    """All models of a demo.

    Parameters
    ----------
    rows : tuple
        The overfitting sweep by epochs, then DP-SGD by ε.
    plan : InclusionPlan
        Which examples are members.
    seed : int
        Seed of everything random.
    seconds : float
        Time that all of it took.
    """

    examples: ClassVar[str]
    """What the audited examples are called."""

    rows: tuple[Row, ...]
    plan: InclusionPlan
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything but the plan as numbers, strings, lists and dicts.

        Returns
        -------
        dict
            Sizes, and every field but the plan.
        """
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "plan"}
        return {
            self.examples: len(self.plan),
            f"included_{self.examples}": self.plan.indices.size,
            **kept,
            "rows": [row.to_dict() for row in self.rows],
        }


class Ticks:
    """Counts epochs and reports the share of them done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, what: str) -> None:
        """Count one more."""
        self._done += 1
        if self._progress is not None:
            self._progress(what, self._done / self._total)


def write_scores(folder: Path, name: str, scores: Scores, plan: InclusionPlan) -> None:
    """Write scores as a table that ``leakbound one-run`` reads.

    Parameters
    ----------
    folder : Path
        Where to; made if need be.
    name : str
        What the model is called, which the file is named after.
    scores : Scores
        Its scores.
    plan : InclusionPlan
        Membership.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(scores.ids.tolist(), plan.member.tolist(), scores.values.tolist(), strict=True)
    lines = [f"{label},{int(member)},{value!r}" for label, member, value in columns]
    file = name.lower().replace(", ε = ", "-epsilon-").replace(" ", "-")
    write_text(folder / f"{file}.csv", "\n".join(["id,member,score", *lines, ""]))


def train_to_marks(
    network: nn.Module, train_one_epoch: Callable[[], object], marks: list[int], ticks: Ticks
) -> Iterator[TrainedModel]:
    """Train one network far past its best, and hand it out at each mark.

    Parameters
    ----------
    network : torch.nn.Module
        The network before training.
    train_one_epoch : callable
        Trains it for one pass over the data.
    marks : list of int
        Epochs, increasing.
    ticks : Ticks
        Told of each epoch.

    Yields
    ------
    TrainedModel
        The same network every time, trained for longer.
    """
    seconds, last = 0.0, max(marks, default=0)
    for epoch in range(1, last + 1):
        began = perf_counter()
        train_one_epoch()
        seconds += perf_counter() - began
        ticks(f"training, epoch {epoch} of {last}")
        if epoch in marks:
            name = "1 epoch" if epoch == 1 else f"{epoch} epochs"
            yield TrainedModel(name, network, epoch, None, seconds)


@contextmanager
def quiet_opacus() -> Iterator[None]:
    """Silence what opacus warns of on every run and what does not matter here.

    Yields
    ------
    None
        Nothing; other warnings come through.
    """
    with warnings.catch_warnings():
        # A guarantee against an adversary who predicts the generator needs another package.
        warnings.filterwarnings("ignore", "Secure RNG turned off", UserWarning)
        # The inputs of a first layer need no gradient; per-example gradients are unaffected.
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        # The noise is first bracketed with a coarse accountant, then found with an exact one.
        warnings.filterwarnings("ignore", "Optimal order is the", UserWarning)
        yield
