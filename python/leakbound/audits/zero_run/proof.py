"""What one attack proves in a Zero-Run audit, uncertain propensities included."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from leakbound.audits.zero_run.composition import correct_by_composition
from leakbound.audits.zero_run.matching import correct_by_matching
from leakbound.audits.zero_run.offsets import correct_by_offsets
from leakbound.audits.zero_run.tampering import correct_by_tampering
from leakbound.cuts import Fixed
from leakbound.results.zero_run import Bootstrap
from leakbound.stats.distribution_shift import bootstrap_quantile

if TYPE_CHECKING:
    from leakbound._base.types import Correction, FloatArray, JsonValue
    from leakbound.audits.zero_run.study import Corrected, Study

CORRECTIONS = {
    "match": correct_by_matching,
    "poisson_binomial": correct_by_offsets,
    "tamper": correct_by_tampering,
    "composition": correct_by_composition,
}
"""What makes something of a study, by the name of the correction."""


@dataclass(frozen=True, kw_only=True)
class ShiftedProof:
    """What one attack proves."""

    study: Study
    corrected: Corrected
    replicates: Bootstrap | None
    bound: float
    reason: str
    options: dict[str, JsonValue] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study, correction: Correction, *, p: float) -> ShiftedProof:
        """Correct a study, and allow for the uncertainty of its propensities."""
        corrected, draws = CORRECTIONS[correction](study), study.shift.draws
        if draws is None:
            audit = corrected.audit
            return cls(
                study=study,
                corrected=corrected,
                replicates=None,
                bound=audit.bound,
                reason=audit.reason,
            )
        replicates = Bootstrap(
            bounds=corrected.replicates(draws),
            estimate=corrected.audit.bound,
            p=p,
        )
        bound, reason = _low(corrected, replicates, study.direction)
        return cls(
            study=study, corrected=corrected, replicates=replicates, bound=bound, reason=reason
        )

    @property
    def strength(self) -> float:
        """The bound, or its inverse where smaller parameters are the less private."""
        return float(_inverted(np.array(self.bound), self.study.direction))

    def by_tampering(self) -> float:
        """Return the bound of tampering with guesses in place of matching, all else the same."""
        study = self.study
        other = replace(
            study,
            adversary="residual",
            variant="directional" if study.variant == "untampered" else study.variant,
            cuts=study.cuts if isinstance(study.cuts, Fixed) else None,
        )
        share = study.level if self.replicates is None else self.replicates.p
        return ShiftedProof.of(other, "tamper", p=share).bound

    def with_options(self, more: dict[str, JsonValue]) -> ShiftedProof:
        """Return the same with more options to report."""
        return replace(self, options=self.options | more)


def _low(corrected: Corrected, replicates: Bootstrap, direction: int) -> tuple[float, str]:
    """Return a bound that is low among replicates, and why it is 0 if it is."""
    strength = bootstrap_quantile(
        _inverted(replicates.bounds, direction),
        p=replicates.p,
    )
    bound = float(_inverted(np.array(strength), direction))
    if strength > 0:
        return bound, ""
    return bound, corrected.audit.reason or (
        f"the propensities are too uncertain: the bound is {replicates.estimate:.3g} at their "
        f"estimate, and {bound:.3g} under enough of their replicates"
    )


def _inverted(values: FloatArray, direction: int) -> FloatArray:
    """Return parameters as strengths or strengths as parameters: 0 and inf change places."""
    if direction > 0:
        return values
    with np.errstate(divide="ignore"):
        inverse: FloatArray = 1 / values
    return inverse
