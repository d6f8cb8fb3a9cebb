"""What an audit returns: frozen results that say what their number means, and go to JSON and back.

Parts that cost time (ceiling, curve, ROC, histogram, provenance) are computed when first asked
for, from the arrays that were audited, and kept.
"""

import html
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, cast

from leakbound._json import Lazy, Record
from leakbound._typing import FloatArray, IntArray, Kind, PathName, Status, Verdict
from leakbound._validate import real
from leakbound.claims import Claim, PureDP
from leakbound.errors import IncompatibleOptionsError, OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Assumption",
    "AuditResult",
    "Curve",
    "Histogram",
    "Kind",
    "PanoramiaResult",
    "Provenance",
    "Roc",
    "ScoreAudit",
]


@dataclass(frozen=True)
class Assumption:
    """Something that must hold for the result to mean what it says.

    Parameters
    ----------
    name : str
        A few words.
    statement : str
        What exactly is assumed.
    status : {"checked", "declared", "approximate", "unverifiable"}
        Whether the audit made sure of it, was told so, knows that it holds only roughly, or cannot
        know.
    """

    name: str
    statement: str
    status: Status


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
        Guesses made and guesses right at each cut, increasing.
    precision : ndarray of float64, shape (k,)
        Share of the guesses made that are right, in [0, 1].
    recall : ndarray of float64, shape (k,)
        Right guesses as a share of all examples that the path could guess right, in [0, 1].
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreAudit(Record):
    """What one ranking of the examples proves about the odds of its guesses.

    Parameters
    ----------
    bound : float
        Lower bound on the largest log-odds that a guess is right, at least 0.
    reason : str
        Why the bound is 0; empty if it is not.
    m, members : int
        Examples tested and the members among them.
    guesses, correct : int
        Guesses made at the chosen cut and those that were right.
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

    def __repr__(self) -> str:
        return f"ScoreAudit(log-odds >= {down(self.bound)}, {_counts(self)})"


class Result(Record, ABC):
    """What every result offers: what its number is, figures and a report."""

    claim: Claim
    bound: float
    warnings: tuple[str, ...]
    _provenance: Lazy[Provenance]

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs, taken when this is first read."""
        return self._provenance.value

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy.

        Parameters
        ----------
        delta : float
            δ, at most that of the claim: what refutes (ε, δ) refutes (ε, δ') for every δ' < δ. A
            bound on pure DP speaks of 0 only.

        Returns
        -------
        float
            ε, in nats.

        Raises
        ------
        OptionError
            If `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        _check_delta(delta, self.claim)
        return self.bound

    def plot(self, kind: str = "bound", ax: "Axes | None" = None) -> "Axes":
        """Draw one figure of the result.

        Parameters
        ----------
        kind : {"bound", "precision_recall", "roc", "histogram"}
            Which figure.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        OptionError
            If there is no such figure.
        MissingExtraError
            If matplotlib is not installed.
        """
        from leakbound.plots import PLOTS

        if kind not in PLOTS:
            message = f"kind must be one of {', '.join(PLOTS)}, got {kind!r}"
            raise OptionError(message)
        return PLOTS[kind](cast("AuditResult | PanoramiaResult", self), ax=ax)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML report, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        from leakbound import report

        report.write(path, cast("AuditResult | PanoramiaResult", self))

    @abstractmethod
    def _rows(self) -> dict[str, str]:
        """Return what the HTML table shows."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows().items()
        )
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.warnings)
        return f"<table>{rows}</table>" + (f"<ul>{notes}</ul>" if notes else "")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult(Result, ScoreAudit):
    """What an audit with random inclusion proves; the fields of `ScoreAudit` are its own.

    Parameters
    ----------
    kind : str
        "lower_bound": holds for every mechanism that satisfies the claim; "invalid": an
        uncorrected policy was asked for by name, and the number proves nothing.
    claim : PureDP or ApproxDP
        The family of guarantees whose parameter is bounded.
    confidence : float
        Probability, over the coins, that the bound is not above the truth.
    theorem : str
        Why the bound holds.
    assumptions : tuple of Assumption
        What must be true for it.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(300) % 2 == 0
    >>> result = lb.audit_one_run(np.where(member, 2.0, 1.0) + np.arange(300) / 1e4, member)
    >>> lb.AuditResult.from_json(result.to_json()) == result
    True
    """

    kind: Kind
    claim: Claim
    confidence: float
    theorem: str
    assumptions: tuple[Assumption, ...]
    _provenance: Lazy[Provenance] = field(repr=False)

    def check(self, *, epsilon: float, delta: float = 0.0) -> Verdict:
        """Say whether the audit refutes a claimed ε.

        Parameters
        ----------
        epsilon : float
            The claimed value, at least 0.
        delta : float
            The claimed δ, at most that of the result's claim; a bound on pure DP speaks of 0 only.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            "refuted" if the bound is above the claim; "inconclusive" if even a perfect attack
            could not have refuted it, or the audit is of kind "invalid".

        Raises
        ------
        OptionError, OptionTypeError
            If `epsilon` is negative or no number, or `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        claimed = real(epsilon, "epsilon", least=0)
        _check_delta(delta, self.claim)
        return _verdict(
            self.kind, refuted=self.bound > claimed, refutable=lambda: self.ceiling > claimed
        )

    def __repr__(self) -> str:
        return (
            f"AuditResult(epsilon {_sign(self.kind)} {down(self.bound)} @ "
            f"{_percent(self.confidence)}, {self.claim.name}, {_counts(self)}, {self.kind})"
        )

    def _rows(self) -> dict[str, str]:
        return {
            f"epsilon {_sign(self.kind)}": f"{down(self.bound)} ({self.kind.replace('_', ' ')})",
            **({"because": self.reason} if self.reason else {}),
            "confidence": _percent(self.confidence),
            "right guesses": f"{self.correct} of {self.guesses} ({self.path})",
            "examples": f"{self.m}, of which {self.members} members",
            "AUC": f"{self.auc:.3f}",
            "a perfect attack reaches": down(self.ceiling),
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaResult(Result):
    """What an audit against generated non-members finds.

    With probability `confidence`, c ≥ `c_lb` and c + ε ≥ `c_plus_epsilon_lb` both hold. Their
    difference ε̃ is an estimate of ε, not a lower bound; `lower_bound` is one where c has an upper
    limit.

    Parameters
    ----------
    kind : str
        "estimate": `bound` is ε̃; "lower_bound": c has an upper limit, `bound` is `lower_bound`;
        "invalid": an uncorrected policy was asked for by name.
    claim : PureDP
        The family of guarantees.
    bound : float
        ε̃, or `lower_bound` where there is one.
    reason : str
        Why the bound is 0; empty if it is not.
    confidence : float
        Joint for both bounds.
    m : int
        Examples tested.
    c_lb : float
        Lower bound on the generator's closeness c, from the baseline; 0 with real non-members.
    c_plus_epsilon_lb : float
        Lower bound on c + ε, from the attack.
    epsilon_tilde : float
        max(0, `c_plus_epsilon_lb` - `c_lb`).
    c_upper : float or None
        Upper limit on c that the caller vouches for; 0 with real non-members.
    lower_bound : float or None
        max(0, `c_plus_epsilon_lb` - `c_upper`), for a result of kind "lower_bound".
    baseline, attack : ScoreAudit
        What each ranking proves; `bound` is on c and on c + ε.
    theorem : str
        Why the bounds hold, and what ε̃ is not.
    assumptions : tuple of Assumption
        What must be true for them.
    options : dict
        Every option in force.
    warnings : tuple of str
        What a reader should know; none of it changes a bound.
    """

    kind: Kind
    claim: PureDP
    bound: float
    reason: str
    confidence: float
    m: int
    c_lb: float
    c_plus_epsilon_lb: float
    epsilon_tilde: float
    c_upper: float | None
    lower_bound: float | None
    baseline: ScoreAudit
    attack: ScoreAudit
    theorem: str
    assumptions: tuple[Assumption, ...]
    options: dict[str, Any]
    warnings: tuple[str, ...]
    _provenance: Lazy[Provenance] = field(repr=False)

    @property
    def members(self) -> int:
        """Members among the examples tested."""
        return self.attack.members

    @property
    def guesses(self) -> int:
        """Guesses of the attack at its chosen cut."""
        return self.attack.guesses

    @property
    def correct(self) -> int:
        """Right guesses of the attack at its chosen cut."""
        return self.attack.correct

    @property
    def path(self) -> PathName:
        """The path of both rankings."""
        return self.attack.path

    @property
    def auc(self) -> float:
        """AUC of the attack."""
        return self.attack.auc

    @property
    def ceiling(self) -> float:
        """What `bound` would have been with a perfect attack and this baseline."""
        return max(0.0, self.attack.ceiling - self._allowance)

    @property
    def curve(self) -> Curve:
        """The attack's path; its bounds are on c + ε."""
        return self.attack.curve

    @property
    def roc(self) -> Roc:
        """The attack's ranking as a membership test."""
        return self.attack.roc

    @property
    def histogram(self) -> Histogram:
        """The attack's scores."""
        return self.attack.histogram

    def check(self, *, epsilon: float, delta: float = 0.0, c: float | None = None) -> Verdict:
        """Say whether the audit refutes a claimed ε, alone or together with a claimed c.

        Parameters
        ----------
        epsilon : float
            The claimed privacy loss, at least 0.
        delta : float
            The claimed δ, at most that of the result's claim; a bound on pure DP speaks of 0 only.
        c : float, optional
            The claimed closeness of the generator, at least 0. Without it only a result of kind
            "lower_bound" can refute anything.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            The pair (c, ε) is refuted if `c_lb` > c or `c_plus_epsilon_lb` > c + ε (Corollary 1 of
            Kazmi et al. 2024), ε alone if `lower_bound` > ε; "inconclusive" if even a perfect
            attack, and for the pair a perfect baseline, could not have refuted it.

        Raises
        ------
        OptionError, OptionTypeError
            If a value is negative or no number, or `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        claimed = real(epsilon, "epsilon", least=0)
        _check_delta(delta, self.claim)
        if c is not None:
            total = claimed + real(c, "c", least=0)
            refuted = self.c_lb > c or self.c_plus_epsilon_lb > total
            return _verdict(
                self.kind,
                refuted=refuted,
                refutable=lambda: self._ceiling_of_c > c or self.attack.ceiling > total,
            )
        if self.lower_bound is None:
            return "inconclusive"
        return _verdict(
            self.kind, refuted=self.bound > claimed, refutable=lambda: self.ceiling > claimed
        )

    def __repr__(self) -> str:
        known = "" if self.c_upper is None else f"c <= {self.c_upper:g} given, "
        nature = "estimate, not a lower bound" if self.kind == "estimate" else self.kind
        return (
            f"PanoramiaResult(epsilon {_sign(self.kind)} {down(self.bound)} @ "
            f"{_percent(self.confidence)}, {known}c >= {down(self.c_lb)}, "
            f"c + epsilon >= {down(self.c_plus_epsilon_lb)}, m={self.m}, {nature})"
        )

    def _rows(self) -> dict[str, str]:
        nature = "an estimate, not a lower bound" if self.kind == "estimate" else self.kind
        return {
            f"epsilon {_sign(self.kind)}": f"{down(self.bound)} ({nature.replace('_', ' ')})",
            **({"because": self.reason} if self.reason else {}),
            "confidence": _percent(self.confidence),
            "c >=": f"{down(self.c_lb)} (baseline, AUC {self.baseline.auc:.3f})",
            "c + epsilon >=": f"{down(self.c_plus_epsilon_lb)} (attack, AUC {self.auc:.3f})",
            "examples": f"{self.m}, of which {self.members} members",
            "a perfect attack reaches": down(self.ceiling),
        }

    @property
    def _ceiling_of_c(self) -> float:
        """What a perfect baseline would have proved; with real non-members it proves nothing."""
        return 0.0 if self.options["real_nonmembers"] else self.baseline.ceiling

    @property
    def _allowance(self) -> float:
        return self.c_lb if self.c_upper is None else self.c_upper


def _verdict(kind: Kind, *, refuted: bool, refutable: Callable[[], bool]) -> Verdict:
    if kind == "invalid":
        return "inconclusive"
    if refuted:
        return "refuted"
    return "not refuted" if refutable() else "inconclusive"


def _check_delta(delta: float, claim: Claim) -> None:
    if real(delta, "delta", least=0, below=1) > claim.delta:
        limit = f"at most {claim.delta:g}" if claim.delta else "only delta = 0"
        message = f"a bound on {claim.name} says nothing about delta = {delta:g}: {limit}"
        raise IncompatibleOptionsError(message)


def _sign(kind: Kind) -> str:
    return ">=" if kind.endswith("lower_bound") else "~"


def down(value: float) -> str:
    """Return two decimals, rounded down: what is printed is never more than what was proved.

    Parameters
    ----------
    value : float
        Finite.

    Returns
    -------
    str
        The digits.
    """
    return str(Decimal(repr(value)).quantize(Decimal("0.01"), rounding=ROUND_FLOOR))


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"


def _counts(audit: ScoreAudit) -> str:
    return f"m={audit.m}, guesses={audit.guesses}, correct={audit.correct}"
