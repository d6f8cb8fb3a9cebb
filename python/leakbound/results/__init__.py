"""What audits return: frozen results that say what their number means, and go to JSON and back."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound._base.types import Kind as Kind
    from leakbound.report.parts import Assumption as Assumption
    from leakbound.report.parts import Checked as Checked
    from leakbound.report.parts import Curve as Curve
    from leakbound.report.parts import Histogram as Histogram
    from leakbound.report.parts import Provenance as Provenance
    from leakbound.report.parts import Roc as Roc
    from leakbound.report.parts import ScoreAudit as ScoreAudit
    from leakbound.results.base import Implied as Implied
    from leakbound.results.dp_sgd import Accounted as Accounted
    from leakbound.results.dp_sgd import BettingResult as BettingResult
    from leakbound.results.dp_sgd import DPSGDAudit as DPSGDAudit
    from leakbound.results.dp_sgd import NoiseResult as NoiseResult
    from leakbound.results.dp_sgd import SamplingResult as SamplingResult
    from leakbound.results.dp_sgd import StepsResult as StepsResult
    from leakbound.results.exposed import Exposed as Exposed
    from leakbound.results.one_run import AuditResult as AuditResult
    from leakbound.results.panoramia import PanoramiaResult as PanoramiaResult
    from leakbound.results.synthetic import SyntheticResult as SyntheticResult
    from leakbound.results.zero_run import Bootstrap as Bootstrap
    from leakbound.results.zero_run import LearntLogOdds as LearntLogOdds
    from leakbound.results.zero_run import ZeroRunResult as ZeroRunResult
else:  # an audit loads the types of its own results alone
    from leakbound._base.imports import lazy_attributes

    __getattr__, __dir__, __all__ = lazy_attributes(
        __name__,
        {
            "leakbound._base.types": "Kind",
            "leakbound.report.parts": (
                "Assumption Checked Curve Histogram Provenance Roc ScoreAudit"
            ),
            "leakbound.results.base": "Implied",
            "leakbound.results.dp_sgd": (
                "Accounted BettingResult DPSGDAudit NoiseResult SamplingResult StepsResult"
            ),
            "leakbound.results.exposed": "Exposed",
            "leakbound.results.one_run": "AuditResult",
            "leakbound.results.panoramia": "PanoramiaResult",
            "leakbound.results.synthetic": "SyntheticResult",
            "leakbound.results.zero_run": "Bootstrap LearntLogOdds ZeroRunResult",
        },
    )
