"""What results are made of; the public names are those of `leakbound.results`."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from leakbound._base.formatting import down, number
from leakbound._base.records import IF_ANY, Lazy, Record
from leakbound._base.types import FloatArray, IntArray, PathName, Relation, Status, Verdict

ROUNDING = 1e-9
"""Share of the ceiling by which rounding may put a bound above it."""


@dataclass(frozen=True)
class Assumption:
    """Something that must hold for the result to mean what it says.

    Parameters
    ----------
    name, statement : str
        A few words, and what exactly is assumed.
    status : {"checked", "declared", "approximate", "unverifiable", "contradicted"}
        Whether the audit made sure of it, was told so, knows that it holds only roughly, cannot
        know, or saw data that speak against it.
    """

    name: str
    statement: str
    status: Status


@dataclass(frozen=True)
class Checked:
    """A claimed guarantee that was put to the test: a parameter, a relation, a value.

    Parameters
    ----------
    parameter, relation, value : str, {"<=", ">="} and float
        "epsilon", or the claim's own parameter, such as "mu"; at most, or at least; the value.
    delta : float or None
        For ε of (ε, δ)-differential privacy, the δ; None for a claim's own parameter.
    verdict : {"refuted", "not refuted", "inconclusive"}
        What the audit says of it.
    c : float or None
        For PANORAMIA, the closeness of the generator that is claimed together with ε.
    compares : {"add_remove", "replace"} or None
        What the claimed guarantee compares, where that was said.
    proved, source : float and str, or None
        Beside an accountant's ε, the ε that is proved at the same δ, of the same relation and unit,
        and the accountant's name.
    """

    parameter: str
    relation: Literal["<=", ">="]
    value: float
    delta: float | None
    verdict: Verdict
    c: float | None = field(default=None, metadata=IF_ANY)
    compares: Relation | None = field(default=None, metadata=IF_ANY)
    proved: float | None = field(default=None, metadata=IF_ANY)
    source: str | None = field(default=None, metadata=IF_ANY)

    def arguments(self) -> dict[str, Any]:
        """Return the guarantee as the arguments of `check` and `with_check`."""
        own = self.delta is None
        claimed = {"parameter": self.value} if own else {"epsilon": self.value, "delta": self.delta}
        more = {"c": self.c, "relation": self.compares}
        return claimed | {name: value for name, value in more.items() if value is not None}

    @property
    def interval(self) -> str:
        """What is proved and what is accounted: an interval, or the refutation of the latter."""
        if self.proved is None:
            return ""
        if self.proved > self.value:
            return f"{number(self.proved)} > {self.value:.4g}"
        return f"[{number(self.proved)}, {self.value:.4g}]"

    @property
    def accounted(self) -> str:
        """The accountant's ε, its δ and its name in words; empty if no accountant said it."""
        if self.proved is None:
            return ""
        by = f" ({self.source})" if self.source else ""
        return f"ε = {self.value:.4g} at δ = {self.delta:g}{by}"


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from.

    Parameters
    ----------
    leakbound, python, numpy, seed : str, str, str and int
        Versions, and the seed of every random choice of the audit.
    sha256 : dict of str to str
        Hexadecimal digest of each input: scores as little-endian float64, membership as one byte
        per example.
    """

    leakbound: str
    python: str
    numpy: str
    seed: int
    sha256: dict[str, str]


@dataclass(frozen=True, eq=False)
class Curve:
    """The winning path at no more than 2,000 cuts, picked without looking at membership.

    Parameters
    ----------
    guesses, correct : ndarray of int64, shape (k,)
        Guesses made and correct guesses at each cut, increasing.
    precision, recall : ndarray of float64, shape (k,)
        Correct guesses as a share of those made, and of all that the path could make.
    bound : ndarray of float64, shape (k,)
        What the policy would report had this cut been the best one; NaN where it is not tested.
    """

    guesses: IntArray
    correct: IntArray
    precision: FloatArray
    recall: FloatArray
    bound: FloatArray


@dataclass(frozen=True, eq=False)
class Roc:
    """The ranking as a membership test, at label-free thresholds from the highest score down.

    Parameters
    ----------
    guesses, members : ndarray of int64, shape (k,)
        Examples at or above each threshold, and the members among them.
    false_positive_rate, true_positive_rate : ndarray of float64, shape (k,)
        Shares of all non-members and of all members at or above it, in [0, 1].
    """

    guesses: IntArray
    members: IntArray
    false_positive_rate: FloatArray
    true_positive_rate: FloatArray


@dataclass(frozen=True, eq=False)
class Histogram:
    """Finite scores of members and non-members in 60 bins.

    Parameters
    ----------
    edges : ndarray of float64, shape (61,)
        From the 0.1 % to the 99.9 % quantile of the finite scores.
    members, non_members : ndarray of int64, shape (60,)
        Counts; scores beyond the quantiles, ±inf included, are in the end bins.
    """

    edges: FloatArray
    members: IntArray
    non_members: IntArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreAudit(Record):
    """What one ranking of the examples proves about the odds of its guesses.

    Parameters
    ----------
    bound, reason : float and str
        Lower bound on the largest log-odds that a guess is correct; why it is 0, if it is.
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
    # computed from the audited arrays when first asked for
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

    def _flaw(self) -> str:
        if not 0 <= self.correct <= self.guesses <= self.m or not 0 <= self.members <= self.m:
            return (
                f"correct ({self.correct}) <= guesses ({self.guesses}) <= m ({self.m}) and "
                f"members ({self.members}) <= m do not hold"
            )
        if self.bound < 0 or not self._within_reach():
            return f"bound is {self.bound:g}, outside [0, ceiling], and ceiling {self.ceiling:g}"
        if not 0 <= self.auc <= 1 or (self.reason and 0 < self.bound < math.inf):
            return f"auc is {self.auc:g}, outside [0, 1], or reason is not that of the bound"
        return "" if _possible(self) else "an array of curve, roc or histogram cannot be"

    def _within_reach(self) -> bool:
        return self.bound <= self.ceiling + ROUNDING * abs(self.ceiling) < math.inf

    def __repr__(self) -> str:
        counts = f"m={self.m}, guesses={self.guesses}, correct={self.correct}"
        return f"ScoreAudit(log-odds >= {down(self.bound)}, {counts})"


def _possible(audit: ScoreAudit) -> bool:
    """Return whether arrays that were read can be those of the audit."""
    curve, roc, bins = audit.curve, audit.roc, audit.histogram
    lengths = [{part.size for part in vars(figure).values()} for figure in (curve, roc)]
    lengths.append({bins.edges.size - 1, bins.members.size, bins.non_members.size})
    shares = (curve.precision, curve.recall, roc.false_positive_rate, roc.true_positive_rate)
    counts = [bins.members, bins.non_members, curve.correct, roc.members]
    counts += [curve.guesses - curve.correct, roc.guesses - roc.members]
    return (
        all(len(sizes) == 1 for sizes in lengths)
        and all(((part >= 0) & (part <= 1)).all() for part in shares)
        and all(((part >= 0) & (part <= audit.m)).all() for part in counts)
        and not np.isnan(bins.edges).any()
    )
