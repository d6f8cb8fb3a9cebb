"""What an audit returns: frozen results that say what their number means, and go to JSON and back.

Parts that cost time (ceiling, curve, ROC, histogram, provenance) are computed when first asked
for, from the arrays that were audited, and kept.
"""

import html
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from leakbound._json import Lazy, Record
from leakbound._parts import Assumption, Curve, Histogram, Provenance, Roc
from leakbound._rounding import down, up
from leakbound._typing import Kind, PathName, Verdict
from leakbound._validate import real
from leakbound.claims import FAMILIES, ApproxDP, Claim, PureDP
from leakbound.errors import IncompatibleOptionsError, OptionError
from leakbound.tradeoff import TradeOff

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
        from leakbound._zero_run_plots import plots_of

        plots = plots_of(cast("AuditResult | PanoramiaResult", self))
        if kind not in plots:
            message = f"kind must be one of {', '.join(plots)}, got {kind!r}"
            raise OptionError(message)
        return plots[kind](cast("AuditResult | PanoramiaResult", self), ax=ax)

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
        "lower_bound": holds for every mechanism that satisfies the claim; "family_lower_bound":
        holds among the trade-off functions of the claim, and ε is a conversion; "invalid": an
        uncorrected policy was asked for by name, and the number proves nothing.
    claim : PureDP, ApproxDP or a family of trade-off functions
        The guarantees whose parameter is bounded: `bound` and `ceiling` are in its units.
    confidence : float
        Probability, over the coins, that the bound is not above the truth.
    theorem : str
        Why the bound holds.
    assumptions : tuple of Assumption
        What must be true for it.
    rejected : TradeOff or None
        For a family of trade-off functions, the least private curve that is rejected, if any.

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
    rejected: TradeOff | None = None
    _provenance: Lazy[Provenance] = field(repr=False)
    _rejectable: Lazy[TradeOff | None] = field(default_factory=lambda: Lazy(lambda: None))

    @property
    def rejectable(self) -> TradeOff | None:
        """The curve that a perfect attack would have rejected; None if none, or no family."""
        return self._rejectable.value

    @property
    def is_family(self) -> bool:
        """Whether the claim is a family of trade-off functions."""
        return isinstance(self.claim, FAMILIES)

    @property
    def parameter(self) -> str:
        """The claim's parameter, with its sign: a bound from below, or from above."""
        if self.bounds_above:
            return f"{self.claim.parameter} <="
        return f"{self.claim.parameter} {_sign(self.kind)}"

    @property
    def bounds_above(self) -> bool:
        """Whether smaller values of the parameter are the less private."""
        return getattr(self.claim, "order", "increasing") == "decreasing"

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy.

        Parameters
        ----------
        delta : float
            δ in [0, 1). For `PureDP` and `ApproxDP` at most that of the claim. For a family the
            rejected curve is converted, which holds within the family.

        Returns
        -------
        float
            ε, in nats; 0 if nothing is rejected.

        Raises
        ------
        OptionError
            If `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        if not self.is_family:
            return super().epsilon(delta)
        return _converted(self.rejected, delta)

    def check(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        parameter: float | None = None,
    ) -> Verdict:
        """Say whether the audit refutes a claimed ε, or a claimed parameter.

        Parameters
        ----------
        epsilon : float, optional
            The claimed ε, at least 0.
        delta : float
            The claimed δ; for `PureDP` and `ApproxDP` at most that of the result's claim.
        parameter : float, optional
            In place of ε, the claimed value of the claim's own parameter, such as μ.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            "refuted" if the bound is above the claim; "inconclusive" if even a perfect attack
            could not have refuted it, or the audit is of kind "invalid". Of a family, what is
            refuted is the family's own curve with this ε and δ.

        Raises
        ------
        OptionError, OptionTypeError
            If a claimed value is negative or no number, or `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ, or not one of ε and parameter is given.
        """
        if (epsilon is None) == (parameter is None):
            message = "claim either epsilon or parameter, one of them"
            raise IncompatibleOptionsError(message)
        if parameter is not None:
            claimed = real(parameter, "parameter", least=0)
            sign = -1 if self.bounds_above else 1
            return _verdict(
                self.kind,
                refuted=sign * self.bound > sign * claimed,
                refutable=lambda: sign * self.ceiling > sign * claimed,
            )
        claimed = real(epsilon, "epsilon", least=0)
        if self.is_family:
            return _verdict(
                self.kind,
                refuted=self.epsilon(delta) > claimed,
                refutable=lambda: _converted(self.rejectable, delta) > claimed,
            )
        _check_delta(delta, self.claim)
        return _verdict(
            self.kind, refuted=self.bound > claimed, refutable=lambda: self.ceiling > claimed
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.parameter} {self.rounded(self.bound)} @ "
            f"{_percent(self.confidence)}, {self.claim.name}, {_counts(self)}, {self.kind})"
        )

    def rounded(self, value: float) -> str:
        """Return a value of the parameter with two decimals, on the side that is proved.

        Parameters
        ----------
        value : float
            Not NaN.

        Returns
        -------
        str
            The digits.
        """
        return up(value) if self.bounds_above else down(value)

    def _rows(self) -> dict[str, str]:
        family = {}
        if self.is_family:
            family["epsilon at delta = 1e-5"] = f"{down(self.epsilon(1e-5))} (converted)"
        nature = self.kind.replace("_", " ")
        return {
            self.parameter: f"{self.rounded(self.bound)} ({nature})",
            **family,
            **({"because": self.reason} if self.reason else {}),
            "confidence": _percent(self.confidence),
            "right guesses": f"{self.correct} of {self.guesses} ({self.path})",
            "examples": f"{self.m}, of which {self.members} members",
            "AUC": f"{self.auc:.3f}",
            "a perfect attack reaches": self.rounded(self.ceiling),
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
    claim : PureDP or ApproxDP
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
    claim: PureDP | ApproxDP
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
            alone = 0.0 if self.options["real_nonmembers"] else self.baseline.ceiling
            reach = max(alone - c, self.attack.ceiling - total)
            return _verdict(self.kind, refuted=refuted, refutable=lambda: reach > 0)
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
    def _allowance(self) -> float:
        return self.c_lb if self.c_upper is None else self.c_upper


def _verdict(kind: Kind, *, refuted: bool, refutable: Callable[[], bool]) -> Verdict:
    if kind == "invalid":
        return "inconclusive"
    if refuted:
        return "refuted"
    return "not refuted" if refutable() else "inconclusive"


def _converted(curve: TradeOff | None, delta: float) -> float:
    checked = real(delta, "delta", least=0, below=1)
    return 0.0 if curve is None else float(curve.epsilon(checked))


def _check_delta(delta: float, claim: Claim) -> None:
    if real(delta, "delta", least=0, below=1) > claim.delta:
        limit = f"at most {claim.delta:g}" if claim.delta else "only delta = 0"
        message = f"a bound on {claim.name} says nothing about delta = {delta:g}: {limit}"
        raise IncompatibleOptionsError(message)


def _sign(kind: Kind) -> str:
    return ">=" if kind.endswith("lower_bound") else "~"


def _percent(share: float) -> str:
    return f"{100 * share:.10g}%"


def _counts(audit: ScoreAudit) -> str:
    return f"m={audit.m}, guesses={audit.guesses}, correct={audit.correct}"
