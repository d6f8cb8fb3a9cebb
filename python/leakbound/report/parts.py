"""What results are made of; the public names are those of `leakbound.results`."""

from dataclasses import dataclass, field
from typing import Literal

from leakbound._base.formatting import number
from leakbound._base.records import IF_ANY
from leakbound._base.types import FloatArray, IntArray, Relation, Status, Verdict


@dataclass(frozen=True)
class Assumption:
    """Something that must hold for the result to mean what it says.

    Parameters
    ----------
    name : str
        A few words.
    statement : str
        What exactly is assumed.
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
    parameter : str
        "epsilon", or what the result's claim calls its own parameter, such as "mu".
    relation : {"<=", ">="}
        What the guarantee says of its parameter: at most, or at least, the value.
    value : float
        The claimed value.
    delta : float or None
        For ε of (ε, δ)-differential privacy, the δ; None for a claim's own parameter.
    verdict : {"refuted", "not refuted", "inconclusive"}
        What the audit says of it.
    c : float or None
        For PANORAMIA, the closeness of the generator that is claimed together with ε.
    compares : {"add_remove", "replace"} or None
        What the claimed guarantee compares, where that was said.
    proved : float or None
        Beside an accountant's ε (`AuditResult.against`), the ε that is proved at the same δ, of the
        same relation and unit.
    source : str or None
        The accountant, where it was named.
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
    leakbound, python, numpy : str
        Versions.
    seed : int
        Seed of every random choice of the audit.
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
    precision : ndarray of float64, shape (k,)
        Share of the guesses made that are correct, in [0, 1].
    recall : ndarray of float64, shape (k,)
        Correct guesses as a share of all that the path could make, in [0, 1].
    bound : ndarray of float64, shape (k,)
        What the policy would report had this cut been the best one, at least 0; NaN where the
        policy does not test the cut. The largest is the result's bound.
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
