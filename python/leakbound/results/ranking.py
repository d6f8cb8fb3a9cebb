"""What one ranking of the examples proves; the public name is that of `leakbound.results`."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakbound._base.formatting import down
from leakbound._base.records import Lazy, Record
from leakbound._base.types import PathName
from leakbound.claims.tradeoff import TradeOff
from leakbound.report.parts import Curve, Histogram, Roc

ROUNDING = 1e-9
"""Share of the ceiling by which rounding may put a bound above it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreAudit(Record):
    """What one ranking of the examples proves about the odds of its guesses.

    Parameters
    ----------
    bound : float
        Lower bound on the largest log-odds that a guess is correct, at least 0.
    reason : str
        Why the bound is 0; empty if it is not.
    m, members : int
        Examples tested and the members among them.
    guesses, correct : int
        Guesses made at the chosen cut and those that were correct.
    path : {"member", "members", "non-members", "interleaved"}
        Which guesses: "member" takes all examples from the highest score down as members,
        "members" the upper half so, "non-members" the lower half upwards as non-members, and
        "interleaved" both halves in turn.
    auc : float
        Probability that a member scores above a non-member, ties counting half.
    options : dict
        Every option in force, defaults filled in.
    warnings : tuple of str
        What a reader should know; none of it changes the bound.
    """

    bound: float
    reason: str
    m: int
    members: int
    guesses: int
    correct: int
    path: PathName
    auc: float
    options: dict[str, Any]
    warnings: tuple[str, ...]
    _ceiling: Lazy[float] = field(repr=False)
    _curve: Lazy[Curve] = field(repr=False)
    _roc: Lazy[Roc] = field(repr=False)
    _histogram: Lazy[Histogram] = field(repr=False)

    @property
    def ceiling(self) -> float:
        """The bound that a perfect attack would have reached with the same examples and cuts."""
        return self._ceiling.value

    @property
    def curve(self) -> Curve:
        """The winning path and its bound, cut by cut."""
        return self._curve.value

    @property
    def roc(self) -> Roc:
        """The ranking as a membership test."""
        return self._roc.value

    @property
    def histogram(self) -> Histogram:
        """The scores of members and of non-members."""
        return self._histogram.value

    @property
    def _counts(self) -> str:
        return f"m={self.m}, guesses={self.guesses}, correct={self.correct}"

    def _flaw(self) -> str:
        if not 0 <= self.correct <= self.guesses <= self.m or not 0 <= self.members <= self.m:
            return (
                f"correct ({self.correct}) <= guesses ({self.guesses}) <= m ({self.m}) and "
                f"members ({self.members}) <= m do not hold"
            )
        if not 0 <= self.auc <= 1:
            return f"auc is {self.auc:g}, outside [0, 1]"
        if self.bound < 0 or not self._within_reach():
            return f"bound is {self.bound:g}, outside [0, ceiling], and ceiling {self.ceiling:g}"
        if self.reason and 0 < self.bound < math.inf:
            return f"reason says why the bound is 0, and it is {self.bound:g}"
        return _flaw_of_figures(self)

    def _within_reach(self) -> bool:
        return self.bound <= self.ceiling + ROUNDING * abs(self.ceiling) < math.inf

    def __repr__(self) -> str:
        return f"ScoreAudit(log-odds >= {down(self.bound)}, {self._counts})"


def _flaw_of_figures(audit: ScoreAudit) -> str:
    """Return what arrays that were read cannot be; empty if all can."""
    curve, roc, bins = audit.curve, audit.roc, audit.histogram
    lengths = [[part.size for part in vars(figure).values()] for figure in (curve, roc)]
    lengths.append([bins.edges.size - 1, bins.members.size, bins.non_members.size])
    if any(len(set(sizes)) > 1 for sizes in lengths):
        return "the arrays of curve, roc or histogram differ in length"
    shares = (curve.precision, curve.recall, roc.false_positive_rate, roc.true_positive_rate)
    if not all(((part >= 0) & (part <= 1)).all() for part in shares):
        return "a share of curve or roc is outside [0, 1]"
    counts = [bins.members, bins.non_members, curve.correct, roc.members]
    counts += [curve.guesses - curve.correct, roc.guesses - roc.members]
    if not all(((part >= 0) & (part <= audit.m)).all() for part in counts):
        return "a count of curve, roc or histogram is outside what it is part of"
    return "an edge of histogram is no number" if np.isnan(bins.edges).any() else ""


_RATES = (0.001, 0.01)
_POINTS = 4001
_ROUNDING = 1e-12
"""More than the error of a trade-off function, which is taken off."""


@dataclass(frozen=True)
class Implied:
    """Lower bounds that follow from a bound, at its confidence and all at once.

    Each is what the most private guarantee that is not refuted still allows an attack on one
    example. If training's own trade-off function is a curve of the family that was audited (for
    (ε, δ), that of randomised response), it is what the best attack reaches.

    Parameters
    ----------
    advantage : float
        Largest difference of true and false positive rate, in [0, 1].
    tpr_at_fpr_0_001, tpr_at_fpr_0_01 : float
        True positive rate at a false positive rate of 0.1 % and of 1 %.
    posterior : float
        Probability that an example is a member once an attack flags it at a false positive rate of
        0.1 %, from a prior of one half; in [1/2, 1].
    """

    advantage: float
    tpr_at_fpr_0_001: float
    tpr_at_fpr_0_01: float
    posterior: float


def implied_by(curve: TradeOff | None) -> Implied:
    """Return what a refuted curve implies, rounded down; guessing where none is refuted."""
    low, high = _RATES
    if curve is None:
        return Implied(0.0, low, high, 0.5)
    rates = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(3):  # concave: the best point of a grid is beside the best of all
        gain = 1 - np.asarray(curve.f(rates)) - rates
        best = int(np.argmax(gain))
        rates = np.linspace(rates[max(best - 1, 0)], rates[min(best + 1, _POINTS - 1)], _POINTS)
    at_low, at_high = (max(rate, 1 - float(curve.f(rate)) - _ROUNDING) for rate in _RATES)
    return Implied(
        advantage=max(0.0, float(gain[best]) - _ROUNDING),
        tpr_at_fpr_0_001=at_low,
        tpr_at_fpr_0_01=at_high,
        posterior=at_low / (at_low + low),
    )
