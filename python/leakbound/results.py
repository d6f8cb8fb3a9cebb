"""What audits return: frozen results that say what their number means, and go to JSON and back."""

from leakbound._audit_result import AuditResult, ScoreAudit
from leakbound._panoramia_result import PanoramiaResult
from leakbound._parts import Assumption, Curve, Histogram, Provenance, Roc
from leakbound._typing import Kind
from leakbound._zero_run_result import Bootstrap, ZeroRunResult

__all__ = [
    "Assumption",
    "AuditResult",
    "Bootstrap",
    "Curve",
    "Histogram",
    "Kind",
    "PanoramiaResult",
    "Provenance",
    "Roc",
    "ScoreAudit",
    "ZeroRunResult",
]
