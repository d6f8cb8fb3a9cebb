"""What results are made of; the public names are those of `leakbound.results`."""

import hashlib
import math
import platform
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.brief import brief
from leakbound._base.formatting import down, number
from leakbound._base.records import IF_ANY, Lazy, Record
from leakbound._base.types import (
    FloatArray,
    GenericArray,
    IntArray,
    Named,
    PathName,
    Relation,
    Status,
    Strings,
    Verdict,
)

# Share of a number by which rounding may change it: a bound above its ceiling, a sum, an inverse
ROUNDING = 1e-9


@dataclass(frozen=True)
class Assumption:
    """Something that must hold for the result to mean what it says."""

    name: str
    """A few words."""
    statement: str
    """What exactly is assumed."""
    status: Status
    """Whether the audit checked it, relies on a declaration, takes it to hold approximately,
    cannot verify it, or found data that contradict it."""


Assumptions: TypeAlias = tuple[Assumption, ...]


@dataclass(frozen=True)
class Checked:
    """A claimed guarantee that was put to the test: a parameter is at most a value."""

    parameter: str
    """The name "epsilon", or that of the claim's own parameter, such as "mu"."""
    value: float
    """The claimed value."""
    delta: float | None
    """For ε of (ε, δ)-differential privacy, the δ; None for a claim's own parameter."""
    verdict: Verdict
    """The verdict of the audit."""
    c: float | None = field(default=None, metadata=IF_ANY)
    """For PANORAMIA, the closeness of the generator that is claimed together with ε."""
    compares: Relation | None = field(default=None, metadata=IF_ANY)
    """What the claimed guarantee compares, where that was said."""
    proved: float | None = field(default=None, metadata=IF_ANY)
    """Beside an accountant's ε, what is proved at the same δ, of the same relation and unit."""
    source: str | None = field(default=None, metadata=IF_ANY)
    """The accountant's name."""

    @property
    def claim(self) -> Named:
        """The guarantee as arguments of a result's `check`."""
        one = {"parameter": self.value}
        if self.delta is not None:
            one = {"epsilon": self.value, "delta": self.delta}
        rest = {"c": self.c, "relation": self.compares}
        return one | {name: value for name, value in rest.items() if value is not None}

    @property
    def interval(self) -> str:
        """What is proved and what is accounted: an interval, or the refutation of the latter."""
        if self.proved is None:
            return ""
        if self.proved > self.value:
            return f"{number(self.proved)} > {self.value:.4g}"
        return f"[{number(self.proved)}, {self.value:.4g}]"


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from."""

    leakbound: str
    python: str
    numpy: str
    seed: int
    """Of every random choice of the audit."""
    sha256: dict[str, str]
    """Hexadecimal digest of each input: scores as little-endian float64, membership as one byte per
    example."""

    @classmethod
    def of(cls, seed: int, **inputs: GenericArray) -> "Provenance":
        """Return the versions that run here, and the digests of inputs."""
        return cls(
            leakbound=_core.__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            seed=seed,
            sha256={
                name: hashlib.sha256(
                    np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).data
                ).hexdigest()
                for name, values in inputs.items()
            },
        )


@dataclass(frozen=True, eq=False)
class Curve:
    """The winning order of guesses at up to 2,000 thresholds, chosen without membership.

    If guesses come from both ends of the ranking, the order alternates, and no bound is given.
    """

    guesses: IntArray
    """Guesses made at each cut, increasing."""
    correct: IntArray
    """Correct ones among them."""
    precision: FloatArray
    """Correct guesses as a share of those made."""
    recall: FloatArray
    """Correct guesses as a share of all that the path could make."""
    bound: FloatArray
    """What the policy would report had this cut been the best one; NaN where it is not tested."""

    __repr__ = brief


LOW_RATES = (0.01, 0.001)
"""False positive rates at which reports show the true positive rate."""


@dataclass(frozen=True, eq=False)
class Roc:
    """The ranking as a membership test, at label-free thresholds from the highest score down."""

    guesses: IntArray
    """Examples at or above each threshold."""
    members: IntArray
    """Members among them."""
    false_positive_rate: FloatArray
    """Share of all non-members at or above it."""
    true_positive_rate: FloatArray
    """Share of all members at or above it."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class Histogram:
    """Finite scores of members and non-members in 60 bins."""

    edges: FloatArray
    """From the 0.1 % to the 99.9 % quantile of the finite scores."""
    members: IntArray
    non_members: IntArray
    """Counts; scores beyond the quantiles, ±inf included, are in the end bins."""

    __repr__ = brief


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreAudit(Record):
    """What one ranking of the examples proves about the odds of its guesses."""

    bound: float
    """Lower bound on the largest log-odds that a guess is correct, at least 0."""
    reason: str
    """Why the bound is 0; empty if it is not."""
    m: int
    """Examples tested."""
    members: int
    """Members among them."""
    guesses: int
    """Guesses made at the chosen cut."""
    correct: int
    """Those that were correct."""
    path: PathName
    """Which guesses: "member" calls all examples members, from the highest score down; "members"
    does so for the upper half, and "non-members" calls the lower half non-members; "interleaved"
    alternates between both, "ends" takes some of each, and "pairs" guesses which of two."""
    auc: float
    """Probability that a member scores above a non-member, ties counting half."""
    options: Named
    """Every option in force, defaults filled in."""
    warnings: Strings
    """What a reader should know; none of it changes the bound."""
    guessed: str = field(default="", metadata=IF_ANY)
    """What the guesses are called, such as "most confident guesses"; empty in older files."""
    searched: str = field(default="", metadata=IF_ANY)
    """How many thresholds were tested and what chose them, in the words of the cut policy."""
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
        if _has_possible_arrays(self):
            return ""
        return "an array of curve, roc or histogram cannot be"

    def _within_reach(self) -> bool:
        return self.bound <= self.ceiling + ROUNDING * abs(self.ceiling) < math.inf

    def __repr__(self) -> str:
        counts = f"m={self.m}, guesses={self.guesses}, correct={self.correct}"
        return f"ScoreAudit(log-odds >= {down(self.bound)}, {counts})"


def _has_possible_arrays(audit: ScoreAudit) -> bool:
    """Return whether arrays that were read can be those of the audit."""
    # arrays of one figure are of one length, shares in [0, 1], counts in [0, m]
    curve = audit.curve
    roc = audit.roc
    bins = audit.histogram
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
