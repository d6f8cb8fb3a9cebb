"""What an audit with random inclusion returns; the public names are those of `leakbound.results`.

Parts that cost time (ceiling, curve, ROC, histogram, provenance) are computed when first asked
for, from the arrays that were audited, and kept.
"""

import html
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from leakbound._base.formatting import down, up
from leakbound._base.records import Lazy, Record
from leakbound._base.types import Design, Kind, PathName, Verdict
from leakbound._base.validation import real, shown
from leakbound.claims import FAMILIES, Claim
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import IncompatibleOptionsError, OptionError
from leakbound.report.parts import Assumption, Curve, Histogram, Provenance, Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 1e-9
"""Share of the ceiling by which rounding may put a bound above it."""

__all__ = [
    "AuditResult",
    "Result",
    "ScoreAudit",
    "check_delta",
    "flaw_of_options",
    "judged",
    "percent",
    "sign_of",
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
        return self.bound <= self.ceiling + _ROUNDING * abs(self.ceiling) < math.inf

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
        check_delta(delta, self.claim)
        return self.bound

    def plot(self, kind: str = "bound", ax: "Axes | None" = None) -> "Axes":
        """Draw one figure of the result.

        Parameters
        ----------
        kind : {"bound", "precision_recall", "roc", "histogram"}
            Which figure; "true_positives" too for PANORAMIA, and for Zero-Run those of its own.
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
        from leakbound.results.zero_run_figures import plots_of

        result = cast("Any", self)
        plots = plots_of(result)
        if kind not in plots:
            message = f"kind must be one of {', '.join(plots)}, got {kind!r}"
            raise OptionError(message)
        return plots[kind](result, ax=ax)

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

        report.write(path, cast("Any", self))

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

    def _flaw(self) -> str:
        if not 0 < self.confidence < 1:
            return f"confidence is {self.confidence:g}, outside (0, 1)"
        if self.kind not in self._kinds():
            return f"kind {self.kind!r} is none of a {type(self).__name__} on {self.claim.name}"
        if self.rejected is not None and not self.is_family:
            return f"rejected is a curve, and {self.claim.name} is no family of curves"
        return flaw_of_options(self.kind, self.options) or super()._flaw()

    def _kinds(self) -> set[Kind]:
        return {"invalid", "family_lower_bound" if self.is_family else "lower_bound"}

    def _within_reach(self) -> bool:
        if self.bounds_above:
            return self.bound >= self.ceiling - _ROUNDING * abs(self.ceiling)
        return super()._within_reach()

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
        return f"{self.claim.parameter} {sign_of(self.kind)}"

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
            return judged(
                self.kind,
                refuted=sign * self.bound > sign * claimed,
                refutable=lambda: sign * self.ceiling > sign * claimed,
            )
        claimed = real(epsilon, "epsilon", least=0)
        if self.is_family:
            return judged(
                self.kind,
                refuted=self.epsilon(delta) > claimed,
                refutable=lambda: _converted(self.rejectable, delta) > claimed,
            )
        check_delta(delta, self.claim)
        return judged(
            self.kind, refuted=self.bound > claimed, refutable=lambda: self.ceiling > claimed
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.parameter} {self.rounded(self.bound)} @ "
            f"{percent(self.confidence)}, {self.claim.name}, {_counts(self)}, {self.kind})"
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
            "confidence": percent(self.confidence),
            "right guesses": f"{self.correct} of {self.guesses} ({self.path})",
            "examples": f"{self.m}, of which {self.members} members",
            "AUC": f"{self.auc:.3f}",
            "a perfect attack reaches": self.rounded(self.ceiling),
        }


def judged(kind: Kind, *, refuted: bool, refutable: Callable[[], bool]) -> Verdict:
    """Return the verdict on a claim: what is refuted, what could have been."""
    if kind == "invalid":
        return "inconclusive"
    if refuted:
        return "refuted"
    return "not refuted" if refutable() else "inconclusive"


def _converted(curve: TradeOff | None, delta: float) -> float:
    checked = real(delta, "delta", least=0, below=1)
    return 0.0 if curve is None else float(curve.epsilon(checked))


def check_delta(delta: float, claim: Claim) -> None:
    """Check that a bound on the claim speaks of a δ."""
    if real(delta, "delta", least=0, below=1) > claim.delta:
        limit = f"at most {claim.delta:g}" if claim.delta else "only delta = 0"
        message = f"a bound on {claim.name} says nothing about delta = {delta:g}: {limit}"
        raise IncompatibleOptionsError(message)


def sign_of(kind: Kind) -> str:
    """Return what stands between ε and a number of a kind."""
    return ">=" if kind.endswith("lower_bound") else "~"


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.10g}%"


def flaw_of_options(kind: Kind, options: dict[str, Any]) -> str:
    """Return which options of a result that was read cannot be; empty if all can."""
    cuts, design = options.get("cuts"), options.get("design", "coins")
    if kind != "invalid" and isinstance(cuts, dict) and cuts.get("type") == "Uncorrected":
        return f"kind is {kind!r}, and cuts that are not corrected for prove nothing"
    if design not in get_args(Design):
        return f"options.design is {shown(design)}, which is no design"
    return ""


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


def _counts(audit: ScoreAudit) -> str:
    return f"m={audit.m}, guesses={audit.guesses}, correct={audit.correct}"
