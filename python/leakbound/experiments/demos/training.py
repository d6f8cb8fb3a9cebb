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
    """A network at some moment of its training."""

    name: str
    network: nn.Module
    epochs: int
    epsilon: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AuditedModel:
    """One model and its audit."""

    name: str
    epochs: int
    epsilon: float | None
    auc: float
    seconds: float
    result: AuditResult
    simultaneous: AuditResult

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return vars(self) | {
            "result": self.result.to_dict(),
            "simultaneous": self.simultaneous.to_dict(),
        }


def simultaneous(models: int) -> float:
    """Return the confidence of each audit with which all of them hold together at 95 %."""
    return 1 - _ERROR / max(1, models)


Row = TypeVar("Row", bound=AuditedModel)


@dataclass(frozen=True, kw_only=True)
class DemoReport(Generic[Row]):
    """All models of a demo."""

    examples: ClassVar[str]
    """What the audited examples are called."""

    rows: tuple[Row, ...]
    plan: InclusionPlan
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything but the plan as numbers, strings, lists and dicts."""
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
    """Write scores as a table that ``leakbound one-run`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = zip(scores.ids.tolist(), plan.member.tolist(), scores.values.tolist(), strict=True)
    lines = [f"{label},{int(member)},{value!r}" for label, member, value in columns]
    file = name.lower().replace(", ε = ", "-epsilon-").replace(" ", "-")
    write_text(folder / f"{file}.csv", "\n".join(["id,member,score", *lines, ""]))


def train_to_marks(
    network: nn.Module, train_one_epoch: Callable[[], object], marks: list[int], ticks: Ticks
) -> Iterator[TrainedModel]:
    """Train one network far past its best, and hand it out at each mark."""
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
    """Silence what opacus warns of on every run and what does not matter here."""
    with warnings.catch_warnings():
        # A guarantee against an adversary who predicts the generator needs another package.
        warnings.filterwarnings("ignore", "Secure RNG turned off", UserWarning)
        # The inputs of a first layer need no gradient; per-example gradients are unaffected.
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        # The noise is first bracketed with a coarse accountant, then found with an exact one.
        warnings.filterwarnings("ignore", "Optimal order is the", UserWarning)
        yield
