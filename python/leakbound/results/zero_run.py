"""What a Zero-Run audit returns, and its own figures; the public name is that of the package."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.formatting import number
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import Correction, FloatArray, IntArray, Kind
from leakbound.propensity import Falsification, FormTest, Overlap
from leakbound.propensity.overlap import plot_overlap
from leakbound.report.contents import Figure
from leakbound.report.style import MEMBER, MUTED, house_style, name_axes, new_axes
from leakbound.results.one_run import AuditResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW: dict[Correction, str] = {
    "match": "after matching",
    "poisson_binomial": "by each example's own odds",
    "tamper": "after tampering",
    "composition": "by composition",
}
"""How each correction comes to its bound, in a few words."""
_UNCERTAINTY: dict[Kind, tuple[str, ...]] = {
    "conditional_lower_bound": ("given", "set"),
    "exploratory_lower_bound": ("bootstrap", "none"),
}
"""What the options say of uncertainty where a number is of some kind."""
_TAKEN_OUT: dict[Correction, str] = {
    "match": "{kept:,} of {m:,} examples were kept so that membership is a fair coin for each",
    "poisson_binomial": "the odds that features alone give to each of {m:,} examples count against",
    "tamper": "guesses that features make likely were dropped at random, among {m:,} examples",
    "composition": "the worst that features of any of {m:,} examples may tell was taken off",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """How the bound moves with the propensities.

    Parameters
    ----------
    bounds : ndarray of float64, shape (K,)
        The bound under each replicate of the propensities, everything drawn held fixed.
    estimate : float
        The bound at the point estimate of the propensities.
    p : float
        Share of the error probability that the replicates take.
    """

    bounds: FloatArray
    estimate: float
    p: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LearntLogOdds:
    """The confidence set of learnt log-odds that a bound holds over.

    Parameters
    ----------
    level : float
        Probability that the true coefficients are outside of the set.
    test_level : float
        Probability of error of the bounds at its members.
    reference : int
        Labels that it rests on besides those of the audited examples.
    estimate : ndarray of float64, shape (k,)
        Intercept and slopes of largest likelihood.
    squared_radius : float
        Twice the log-likelihood that the least likely members of the set lose against these.
    coefficients : ndarray of float64, shape (k,)
        The least favourable member that was found.
    at_estimate : float
        What a test at the log-odds of largest likelihood alone would have found: no bound.
    columns : ndarray of int64, shape (d,)
        Columns of the features that the slopes belong to; the others depend on them.
    tests : tuple of FormTest
        Tests of the model's form.
    """

    level: float
    test_level: float
    reference: int
    estimate: FloatArray
    squared_radius: float
    coefficients: FloatArray
    at_estimate: float
    columns: IntArray
    tests: tuple[FormTest, ...]

    @property
    def is_sound(self) -> bool:
        """Whether levels are levels, and there is a coefficient for every column."""
        found, member = self.estimate, self.coefficients
        return (
            0 < self.level < 1
            and 0 < self.test_level < 1
            and found.size == member.size > self.columns.size
            and np.unique(self.columns).size == self.columns.size
            and bool(np.isfinite(found).all() and np.isfinite(member).all())
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ZeroRunResult(AuditResult):
    """What an audit of given members and non-members proves, if the propensities are right.

    Where log-odds are learnt over a confidence set, the condition is that they are linear in the
    features.

    The fields of `AuditResult` are its own; `m` counts the examples that are audited, before
    matching, and `guesses` those before tampering.

    Parameters
    ----------
    correction : {"match", "poisson_binomial", "tamper", "composition"}
        How distribution shift was taken out.
    kept : int
        Examples left after matching; `m` for other corrections.
    m_eff : float
        The number of examples that the test reckons with.
    abstained : int
        Examples left out because shift alone says too much about them.
    bootstrap : Bootstrap or None
        The bound under replicates of the propensities, if there are any.
    falsification : Falsification or None
        What came of the attempt to refute the propensities, if one was made.
    withheld : bool
        Whether the bound is 0 because the propensities were refuted.
    learnt : LearntLogOdds or None
        The confidence set that the bound holds over, where log-odds are those of a logistic model.
    """

    correction: Correction
    kept: int
    m_eff: float
    abstained: int
    bootstrap: Bootstrap | None
    falsification: Falsification | None
    withheld: bool
    learnt: LearntLogOdds | None = field(default=None, metadata=IF_ANY)
    _naive: Lazy[float] = field(repr=False)
    _overlap: Lazy[Overlap] = field(repr=False)
    _by_tampering: Lazy[float | None] = field(repr=False)

    def _flaw(self) -> str:
        if not (0 <= self.kept <= self.m and self.abstained >= 0 and self.m_eff >= 0):
            return f"kept ({self.kept}) <= m ({self.m}), abstained and m_eff >= 0 do not all hold"
        if self.options.get("correction", self.correction) != self.correction:
            return f"correction is {self.correction!r}, and that of the options another"
        if self.withheld and not (self.reason and self.bound in {0, math.inf}):
            return f"the bound is withheld, and yet {self.bound:g}"
        learnt, asked = self.learnt, self.options.get("uncertainty")
        if asked not in _UNCERTAINTY.get(self.kind, (asked,)):
            return f"kind {self.kind!r} does not go with uncertainty {asked!r} of the options"
        if (self.bootstrap is not None) != (asked == "bootstrap"):
            return f"replicates do not go with uncertainty {asked!r} of the options"
        if learnt is None and asked == "set" and self.bound not in {0, math.inf}:
            return f"learnt is missing, and the bound over its set is {self.bound:g}"
        if learnt is not None and asked != "set":
            return f"learnt does not go with uncertainty {asked!r} of the options"
        if learnt is not None and not learnt.is_sound:
            return "levels, coefficients and columns of learnt do not go together"
        if not self.naive >= 0:
            return f"naive must be at least 0, got {self.naive}"
        return super()._flaw()

    def _kinds(self) -> set[Kind]:
        return {"conditional_lower_bound", "exploratory_lower_bound"}

    @property
    def condition(self) -> str:
        """What has to hold besides what every audit assumes, as it ends a sentence."""
        if self.learnt is None:
            return super().condition
        return "if log-odds of membership are linear in the features"

    @property
    def is_shifted(self) -> bool:
        """Whether members and non-members may differ without the model: that is what is audited."""
        return True

    @property
    def is_withheld(self) -> bool:
        """Whether there is a bound, and it is not to be reported."""
        return self.withheld

    @property
    def design(self) -> str:
        """How membership was assigned."""
        return "members and non-members that differ, compared by their propensities"

    def _within_reach(self) -> bool:
        # replicates may say more than any attack at the point estimate
        return self.bootstrap is not None or super()._within_reach()

    @property
    def naive(self) -> float:
        """The ε that the same audit would have claimed as if there were no shift: no bound here."""
        return self._naive.value

    @property
    def overlap(self) -> Overlap:
        """How far members and non-members can be compared."""
        return self._overlap.value

    @property
    def tested(self) -> float | None:
        """The smallest p-value of tests of the propensities; None if nothing tested them."""
        return min((one.p_value for one in self._all_tests()), default=None)

    @property
    def refuted(self) -> bool:
        """Whether a test refuted the propensities."""
        return any(one.refuted for one in self._all_tests())

    def _all_tests(self) -> list[Falsification | FormTest]:
        found: list[Falsification | FormTest] = [] if self.learnt is None else [*self.learnt.tests]
        return found if self.falsification is None else [*found, self.falsification]

    @property
    def by_tampering(self) -> float | None:
        """What tampering with guesses proves in place of matching, at the same level.

        Matching has no margin for propensities that are a little off; a bound that tampering does
        not confirm deserves doubt. Reporting the larger
        of the two is not covered by the stated confidence. None if the
        correction is another one, or the bound is withheld.
        """
        return self._by_tampering.value

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers behind this audit, besides those that every report cites."""
        return ("Zero-Run",)

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        if self.withheld:
            return (
                "Withheld: the propensities were refuted, so that correct guesses may be explained "
                "by the features alone. Nothing is proved."
            )
        return super().headline()

    def _evidence(self) -> tuple[str, ...]:
        """Say how shift was taken out, what is left, and what would have been claimed without."""
        naive = (
            "An audit that takes no account of the features would have claimed ε = "
            f"{number(self.naive)}, which is not a bound here."
        )
        tested = self.falsification
        if self.withheld and tested is not None and tested.refuted:
            return (
                (
                    "An independent model predicts membership better than the propensities allow "
                    f"(p = {tested.p_value:.2g}): fit a richer one, or to more examples. {naive}"
                ),
            )
        if self.withheld and (doubts := self.contradicted()):
            return (f"{doubts[0].statement} {naive}",)
        how = _TAKEN_OUT[self.correction].format(kept=self.kept, m=self.m)
        said = [f"{self.correct:,} of {self.guesses:,} guesses count as correct; {how}."]
        if self.learnt is not None:
            said.append(
                "That is at the least favourable of all log-odds that the labels do not rule out; "
                "at the likeliest, the same test would have shown "
                f"{self._formula(self.learnt.at_estimate)}."
            )
        if self.by_tampering is not None:
            said.append(
                "Tampering with guesses in place of matching gives "
                f"{self._formula(self.by_tampering)}; reporting the larger is not covered by the "
                "stated confidence."
            )
        if not self.refutes:
            said.append("This is not evidence of privacy.")
        return (" ".join([*said, naive]),)

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures, none of them drawn yet."""
        overlap = Figure(
            "overlap",
            "Overlap",
            lambda ax: plot_overlap(self.overlap, ax),
            lambda: (
                f"Histogram of the propensities of {self.m:,} examples, which are worth "
                f"{self.overlap.m_eff:,.0f}."
            ),
            "How likely features alone make each example a member. Where members and non-members "
            "overlap, a correct guess says something about the model.",
        )
        replicated = () if self.bootstrap is None else (self._bootstrap_figure(self.bootstrap),)
        return (*super().figures(), overlap, *replicated)

    def _bootstrap_figure(self, bootstrap: Bootstrap) -> Figure:
        bounds = bootstrap.bounds
        return Figure(
            "bootstrap",
            "Uncertain propensities",
            partial(plot_bootstrap, bootstrap, self.bound),
            lambda: (
                f"Histogram of the bound under {bounds.size:,} replicates of the propensities, "
                f"from {bounds.min():.3g} to {bounds.max():.3g}."
            ),
            "The propensities are known only roughly: the bound that is reported is low among "
            "those under refitted propensities, and the estimate alone is not used.",
        )

    def _rows(self) -> dict[str, str]:
        more = {
            "correction": self.correction.replace("_", "-"),
            "kept after matching": f"{self.kept} of {self.m}" if self.correction == "match" else "",
            "by tampering instead": self._tampered(),
            "abstained": str(self.abstained) if self.abstained else "",
            "replicates": str(self.bootstrap.bounds.size) if self.bootstrap else "",
            "sceptic's p-value": f"{self.falsification.p_value:.2g}" if self.falsification else "",
            "at the estimated log-odds": self._estimated(),
            "tests of the model's form": self._tested(),
        }
        return super()._rows() | {name: text for name, text in more.items() if text}

    def _estimated(self) -> str:
        return "" if self.learnt is None else f"{self.rounded(self.learnt.at_estimate)}, no bound"

    def _tested(self) -> str:
        found = () if self.learnt is None else self.learnt.tests
        return ", ".join(f"p = {one.p_value:.2g}" for one in found)

    def _tampered(self) -> str:
        if self.by_tampering is None:
            return ""
        return f"{self.parameter} {self.rounded(self.by_tampering)}"


def plot_bootstrap(bootstrap: Bootstrap, reported: float, ax: "Axes | None" = None) -> "Axes":
    """Draw how a Zero-Run bound moves with the propensities.

    Parameters
    ----------
    bootstrap : Bootstrap
        The bounds under replicates of the propensities.
    reported : float
        The bound that is reported.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        Bound against number of replicates, with the estimate and what is reported.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    with house_style():
        ax = new_axes(ax)
        finite = bootstrap.bounds[np.isfinite(bootstrap.bounds)]
        ax.hist(finite, bins=30, color=MEMBER, alpha=0.35, linewidth=0)
        ax.axvline(reported, color=MEMBER, linestyle="--", label="reported")
        ax.axvline(bootstrap.estimate, color=MUTED, linestyle=":", label="at the estimate")
        ax.legend(frameon=False)
        title = f"Bound under {bootstrap.bounds.size:,} replicates of the propensities"
        name_axes(ax, title, "bound", "replicates per bin")
    return ax
