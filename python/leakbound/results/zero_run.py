"""What a Zero-Run audit returns; the public name is that of the package."""

import math
from dataclasses import dataclass, field

from leakbound._base.records import Lazy
from leakbound._base.types import BootstrapMethod, Correction, FloatArray, IntArray, Kind
from leakbound.propensity import Falsification, Overlap
from leakbound.results.one_run import AuditResult

__all__ = ["Bootstrap", "ShiftCurve", "ZeroRunResult"]


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
    method : {"percentile", "recentred", "basic"}
        How the reported bound follows from them.
    """

    bounds: FloatArray
    estimate: float
    p: float
    method: BootstrapMethod


@dataclass(frozen=True, kw_only=True, eq=False)
class ShiftCurve:
    """How the bound moves as examples that features tell much about are left out.

    For exploring, not for choosing from: each bound has the level of one audit, at the point
    estimate of the propensities, and to report the best of them is not paid for.

    Parameters
    ----------
    max_log_odds : ndarray of float64, shape (k,)
        The largest |λ| of the examples that are left, increasing.
    examples : ndarray of int64, shape (k,)
        How many are left.
    bound : ndarray of float64, shape (k,)
        The bound from them, shift corrected for as in the audit.
    naive : ndarray of float64, shape (k,)
        What an audit that takes no account of shift makes of them.
    """

    max_log_odds: FloatArray
    examples: IntArray
    bound: FloatArray
    naive: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ZeroRunResult(AuditResult):
    """What an audit of given members and non-members proves, if the propensities are right.

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
    """

    correction: Correction
    kept: int
    m_eff: float
    abstained: int
    bootstrap: Bootstrap | None
    falsification: Falsification | None
    withheld: bool
    _naive: Lazy[AuditResult] = field(repr=False)
    _overlap: Lazy[Overlap] = field(repr=False)
    _by_tampering: Lazy[float | None] = field(repr=False)
    _shift_curve: Lazy[ShiftCurve | None] = field(repr=False)

    def _flaw(self) -> str:
        if not (0 <= self.kept <= self.m and self.abstained >= 0 and self.m_eff >= 0):
            return f"kept ({self.kept}) <= m ({self.m}), abstained and m_eff >= 0 do not all hold"
        if self.options.get("correction", self.correction) != self.correction:
            return f"correction is {self.correction!r}, and that of the options another"
        if self.withheld and not (self.reason and self.bound in {0, math.inf}):
            return f"the bound is withheld, and yet {self.bound:g}"
        if self.naive.kind != "invalid" or self.naive.claim.name != self.claim.name:
            return "naive must be of kind 'invalid' and on the same claim"
        return super()._flaw()

    def _kinds(self) -> set[Kind]:
        return {"conditional_lower_bound"}

    def _within_reach(self) -> bool:
        # replicates that are recentred may say more than any attack on the point estimate
        return self.bootstrap is not None or super()._within_reach()

    @property
    def naive(self) -> AuditResult:
        """The same audit as if there were no shift: of kind "invalid"."""
        return self._naive.value

    @property
    def overlap(self) -> Overlap:
        """How far members and non-members can be compared."""
        return self._overlap.value

    @property
    def by_tampering(self) -> float | None:
        """What tampering with guesses proves in place of matching, at the same level.

        Matching has no margin for propensities that are a little off; a bound that tampering does
        not confirm deserves doubt. To pick the larger of the two is not paid for. None if the
        correction is another one, or the bound is withheld.
        """
        return self._by_tampering.value

    @property
    def shift_curve(self) -> ShiftCurve | None:
        """How the bound moves as examples are left out; None if the bound is withheld."""
        return self._shift_curve.value

    def _rows(self) -> dict[str, str]:
        more = {
            "correction": self.correction.replace("_", "-"),
            "kept after matching": f"{self.kept} of {self.m}" if self.correction == "match" else "",
            "by tampering instead": self._tampered(),
            "abstained": str(self.abstained) if self.abstained else "",
            "replicates": str(self.bootstrap.bounds.size) if self.bootstrap else "",
            "sceptic's p-value": f"{self.falsification.p_value:.2g}" if self.falsification else "",
        }
        return super()._rows() | {name: text for name, text in more.items() if text}

    def _tampered(self) -> str:
        if self.by_tampering is None:
            return ""
        return f"{self.parameter} {self.rounded(self.by_tampering)}"
