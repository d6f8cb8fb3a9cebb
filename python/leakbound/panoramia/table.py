"""The table of a run: every seed's result, their spread, how the baseline grew, and warnings."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.formatting import number
from leakbound._base.records import Record
from leakbound._base.types import FloatArray, IntArray
from leakbound.audits.panoramia.audit import saturation_warnings
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult

NonMembers: TypeAlias = Literal["generated", "real"]
Conditional: TypeAlias = Literal["Zero-Run, match", "Zero-Run, Poisson-binomial"]
Audit: TypeAlias = Literal[Conditional, "PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)"]
Result: TypeAlias = PanoramiaResult | ZeroRunResult | AuditResult

HEADINGS = ("Target", "Audit", "m", "c ≥", "c + ε ≥", "ε̃", "ε ≥")
NOTE = (
    "Means over seeds ± half of the 95 % t-interval. ε̃ is an estimate, not a lower bound on ε. "
    "For each seed it is c + ε minus c, or 0 if that is negative. Means are rounded down "
    "separately, so columns need not add up."
)
# The audits whose non-members are real, and whose bounds need no generator.
REAL: tuple[Audit, ...] = ("RM;RN", "O(1)")
# Descriptions of the audits for readers of the table.
DEFINITIONS: dict[Audit, str] = {
    "PANORAMIA": "PANORAMIA: members against generated non-members.",
    "PANORAMIA, union": "PANORAMIA, union: the same scores, with a union bound over thresholds.",
    "RM;RN": "RM;RN, real members and real non-members: the same kind of attack, with c = 0.",
    "O(1)": "O(1), one training run: real members and real non-members guessed by the loss alone.",
}
CONDITION = (
    "Zero-Run gives conditional lower bounds: they hold if log-odds of membership are linear in "
    "the baseline's score and depend on nothing else. 0 is reported if a test rejects this for any "
    "seed."
)
# Gain of c_lb from the last doubling of the training data that is still growth.
GROWTH = 0.05
# c_lb from which on a run warns, a convention: docs/theory/generators.md has what was measured.
FAR = 1.0


@dataclass(frozen=True)
class Spread:
    """The mean over seeds, and half of the 95 % t-interval around it; None with one seed.

    The interval says how much splits, coins and training matter: it is not the confidence of a
    bound, which every seed has by itself.
    """

    mean: float
    half_width: float | None

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Summarise finite values, one for each seed.

        Examples
        --------
        >>> print(Spread.of([1.0, 2.0, 3.0]))
        2.00 ± 2.48
        """
        mean = float(np.mean(values))
        seed_count = len(values)
        if seed_count == 1:
            return cls(mean=mean, half_width=None)
        from scipy.special import stdtrit

        standard_deviation = float(np.std(values, ddof=1))
        standard_error = standard_deviation / math.sqrt(seed_count)
        t_quantile = float(stdtrit(seed_count - 1, 0.975))
        return cls(mean=mean, half_width=t_quantile * standard_error)

    def __str__(self) -> str:
        if self.half_width is None:
            return number(self.mean)
        return f"{number(self.mean)} ± {self.half_width:.2f}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaRow(Record):
    """One target under one audit, with every seed's result, each at its own confidence.

    `NOTE` and `docs/theory/panoramia.md` say what each audit is.
    """

    target: str
    audit: Audit
    results: tuple[Result, ...]

    @property
    def estimates(self) -> tuple[PanoramiaResult, ...]:
        """Those of its results that are by PANORAMIA."""
        return tuple(one for one in self.results if isinstance(one, PanoramiaResult))

    @property
    def conditional(self) -> tuple[ZeroRunResult, ...]:
        """Those of its results that are by Zero-Run."""
        return tuple(one for one in self.results if isinstance(one, ZeroRunResult))

    @property
    def m(self) -> int:
        """Examples tested with each seed."""
        return self.results[0].m

    @property
    def c_lb(self) -> Spread | None:
        """Lower bounds on c, for PANORAMIA."""
        if self._estimated:
            return self._of(lambda result: result.c_lb)
        return None

    @property
    def c_plus_epsilon_lb(self) -> Spread | None:
        """Lower bounds on c + ε; None where there is none, for O(1) and Zero-Run."""
        known = self._estimated or self.audit == "RM;RN"
        if known:
            return self._of(lambda result: result.c_plus_epsilon_lb)
        return None

    @property
    def epsilon_tilde(self) -> Spread | None:
        """Estimates of ε, for PANORAMIA."""
        if self._estimated:
            return self._of(lambda result: result.epsilon_tilde)
        return None

    @property
    def epsilon(self) -> Spread | None:
        """Lower bounds on ε; None for PANORAMIA, which gives an estimate."""
        if self._estimated:
            return None
        return self._of(lambda result: result.bound)

    @property
    def _estimated(self) -> bool:
        return self.audit.startswith("PANORAMIA")

    def _of(self, value: Callable[[Any], float]) -> Spread:
        return Spread.of([value(result) for result in self.results])


@dataclass(frozen=True, eq=False)
class Saturation:
    """How c_lb grows with the training data of the baseline."""

    examples: IntArray
    """Training examples, half of them members, increasing."""
    c_lb: tuple[FloatArray, ...]
    """For each seed the bound on c of a baseline trained on so many, on the same test data."""

    __repr__ = brief

    @property
    def spreads(self) -> list[Spread]:
        """Mean and interval at each size."""
        return [Spread.of(column.tolist()) for column in np.stack(self.c_lb).T]

    @property
    def growth(self) -> float:
        """Mean gain of c_lb from the last step to the whole training data; 0 with one size."""
        gains = np.diff(np.stack(self.c_lb), axis=1)
        if not gains.size:
            return 0.0
        return float(gains[:, -1].mean())


def estimate(row: PanoramiaRow) -> float:
    """Return the mean of ε̃ over seeds."""
    if row.epsilon_tilde is None:
        return 0.0
    return row.epsilon_tilde.mean


def row_of_largest_estimate(rows: Sequence[PanoramiaRow]) -> PanoramiaRow:
    """Return the row of the target with the largest estimate."""
    return max((row for row in rows if row.audit == "PANORAMIA"), key=estimate)


def note_of(rows: Sequence[PanoramiaRow]) -> str:
    """Return what the numbers of the table mean."""
    sentences = [NOTE]
    audits_of_rows = {row.audit for row in rows}
    for audit, definition in DEFINITIONS.items():
        if audit in audits_of_rows:
            sentences.append(definition)
    if any(row.conditional for row in rows):
        sentences.append(CONDITION)
    return " ".join(sentences)


def warnings_of(rows: tuple[PanoramiaRow, ...], saturation: Saturation) -> Iterator[str]:
    """Yield warnings about baseline, generator, non-members and propensities."""
    if saturation.growth > GROWTH:
        before, last = saturation.examples[-2:]
        yield (
            f"the baseline's c_lb still grows with its training data: by {saturation.growth:.2f} "
            f"from {before:,} to {last:,} examples; with more data c_lb would be larger and ε̃ "
            "smaller"
        )
    first = {row.audit: row.estimates for row in reversed(rows)}
    estimates = first["PANORAMIA"]
    c_lb = float(np.mean([result.c_lb for result in estimates]))
    ceiling = float(np.mean([result.baseline.ceiling for result in estimates]))
    if c_lb > FAR:
        yield (
            f"members and generated examples can be distinguished without the model (mean c_lb = "
            f"{number(c_lb)}), so ε̃ is only meaningful if the baseline captures all of that "
            "difference; use a closer generator, or compare ε̃ with audits against real "
            "non-members"
        )
    yield from saturation_warnings(c_lb, lambda: ceiling)
    if "RM;RN" in first:
        gap = float(np.median([result.baseline.bound for result in first["RM;RN"]]))
        if gap > 0:
            yield (
                "the real non-members differ from the members: a baseline without the model "
                f"distinguishes them (median c >= {number(gap)} over seeds), so the audits "
                "against them, RM;RN and O(1), overstate ε; draw both from one distribution"
            )
    refuted = [result.refuted for row in rows for result in row.conditional]
    if any(refuted):
        yield (
            f"the data contradict the propensity model in {sum(refuted)} of {len(refuted)} audits "
            "by Zero-Run, so the bounds of all seeds are withheld: examples carry more information "
            "about membership than the baseline's score, so c_lb is not tight either"
        )
