"""What a Zero-Run audit returns; the public name is that of the package."""

from dataclasses import dataclass, field

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import Correction, FloatArray, IntArray, Kind, Strings
from leakbound.cuts.policy import Bootstrap
from leakbound.propensity import Falsification, FormTest, Overlap
from leakbound.results.base import flaw_of
from leakbound.results.one_run import AuditResult

__all__ = ["Bootstrap", "LearntLogOdds", "ZeroRunResult"]

# The options of uncertainty that give each kind of number
_UNCERTAINTY: dict[Kind, Strings] = {
    "conditional_lower_bound": ("given", "set"),
    "exploratory_lower_bound": ("bootstrap", "none"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LearntLogOdds:
    """The confidence set of learnt log-odds that a bound holds over."""

    level: float
    """Probability that the true coefficients are outside of the set."""
    test_level: float
    """Probability of error of the bounds at its members."""
    reference: int
    """Number of labels used in addition to those of the audited examples."""
    estimate: FloatArray
    """Intercept and slopes of largest likelihood."""
    squared_radius: float
    """Twice the log-likelihood that the least likely members of the set lose against these."""
    coefficients: FloatArray
    """The least favourable member that was found."""
    at_estimate: float
    """What a test at the log-odds of largest likelihood alone would have found: no bound."""
    columns: IntArray
    """Columns of the features that the slopes belong to; the others depend on them."""
    tests: tuple[FormTest, ...]
    """Tests of the model's form."""

    __repr__ = brief

    @property
    def is_sound(self) -> bool:
        """Whether levels are levels, and there is a coefficient for every column."""
        estimate = self.estimate
        member = self.coefficients
        return (
            0 < self.level < 1
            and 0 < self.test_level < 1
            and estimate.size == member.size > self.columns.size
            and np.unique(self.columns).size == self.columns.size
            and bool(np.isfinite(estimate).all() and np.isfinite(member).all())
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ZeroRunResult(AuditResult):
    """What an audit of given members and non-members proves, if the propensities are right.

    Where log-odds are learnt over a confidence set, the condition is that they are linear in the
    features.

    The fields of `AuditResult` are its own; `m` counts the examples that are audited, before
    matching, and `guesses` those before tampering.
    """

    _words = "leakbound.results.descriptions.zero_run"

    correction: Correction
    """How distribution shift was corrected."""
    kept: int
    """Examples left after matching, at most if propensities are a set; else `m`."""
    m_eff: float
    """The effective number of examples of the test."""
    abstained: int
    """Examples left out because shift alone reveals too much about them."""
    bootstrap: Bootstrap | None
    """The bound under replicates of the propensities, if there are any."""
    falsification: Falsification | None
    """The test of the propensities, if there was one."""
    withheld: bool
    """Whether the bound is 0 because the propensities were refuted."""
    learnt: LearntLogOdds | None = field(default=None, metadata=IF_ANY)
    """The confidence set that the bound holds over, where log-odds are those of a logistic model.
    """
    _naive: Lazy[float] = field(repr=False)
    _overlap: Lazy[Overlap] = field(repr=False)
    _by_tampering: Lazy[float | None] = field(repr=False)

    @property
    def naive(self) -> float:
        """The ε that the audit would have claimed without the correction; not a bound here.

        Of a family it is at the δ that results state, and `bound` is on the family's parameter.
        """
        return self._naive.value

    @property
    def overlap(self) -> Overlap:
        """How far members and non-members can be compared."""
        return self._overlap.value

    @property
    def by_tampering(self) -> float | None:
        """What tampering with guesses proves instead of matching, at the same level.

        Matching allows for no error in the propensities, so doubt a bound that tampering does not
        confirm. The stated confidence does not cover a choice of the larger one. None if the
        correction is not matching, or the bound is withheld.
        """
        return self._by_tampering.value

    @property
    def tested(self) -> float | None:
        """The smallest p-value of tests of the propensities; None if nothing tested them."""
        return min((one.p_value for one in self._tests), default=None)

    @property
    def refuted(self) -> bool:
        """Whether a test refuted the propensities."""
        return any(one.refuted for one in self._tests)

    @property
    def _tests(self) -> tuple[Falsification | FormTest, ...]:
        tests: list[Falsification | FormTest] = []
        if self.learnt is not None:
            tests.extend(self.learnt.tests)
        if self.falsification is not None:
            tests.append(self.falsification)
        return tuple(tests)

    @property
    def is_withheld(self) -> bool:
        """Whether the bound is withheld because an assumption was contradicted."""
        return self.withheld

    def _kinds(self) -> set[Kind]:
        return set(_UNCERTAINTY)

    def _within_reach(self) -> bool:
        # replicates may say more than any attack at the point estimate
        return self.bootstrap is not None or super()._within_reach()

    def _flaw(self) -> str:
        # each option of uncertainty has its kind of number, and its own parts
        asked = self.options.get("uncertainty")
        nothing = not self.bound
        if self.learnt is not None:
            in_place = asked == "set" and self.learnt.is_sound
        else:
            in_place = asked != "set" or nothing
        sound = (
            in_place
            and 0 <= self.kept <= self.m
            and self.abstained >= 0
            and self.m_eff >= 0
            and self.naive >= 0
            and self.options.get("correction", self.correction) == self.correction
            and (not self.withheld or (bool(self.reason) and nothing))
            and asked in _UNCERTAINTY.get(self.kind, (asked,))
            and (self.bootstrap is not None) == (asked == "bootstrap")
        )
        return flaw_of(self, sound=sound) or super()._flaw()
