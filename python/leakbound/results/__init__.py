"""What audits return: frozen results that say what their number means, and go to JSON and back."""

from leakbound._base.types import Kind
from leakbound.report.parts import Assumption, Checked, Curve, Histogram, Provenance, Roc
from leakbound.results.base import ScoreAudit
from leakbound.results.implied import Implied
from leakbound.results.one_run import AuditResult
from leakbound.results.panoramia import PanoramiaResult
from leakbound.results.zero_run import Bootstrap, LearntLogOdds, ZeroRunResult

__all__ = [
    "Assumption",
    "AuditResult",
    "Bootstrap",
    "Checked",
    "Curve",
    "Histogram",
    "Implied",
    "Kind",
    "LearntLogOdds",
    "PanoramiaResult",
    "Provenance",
    "Roc",
    "ScoreAudit",
    "ZeroRunResult",
]
