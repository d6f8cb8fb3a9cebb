"""What audits return: frozen results that say what their number means, and go to JSON and back."""

from typing import TYPE_CHECKING

from leakbound._base.imports import lazy_attributes
from leakbound._base.types import Kind
from leakbound.report.parts import (
    Assumption,
    Checked,
    Curve,
    Histogram,
    Provenance,
    Roc,
    ScoreAudit,
)
from leakbound.results.base import Implied
from leakbound.results.dp_sgd import (
    Accounted,
    BettingResult,
    DPSGDAudit,
    SamplingResult,
    StepsResult,
    Wager,
)
from leakbound.results.one_run import AuditResult

if TYPE_CHECKING:
    from leakbound.results.panoramia import PanoramiaResult
    from leakbound.results.synthetic import SyntheticResult
    from leakbound.results.zero_run import Bootstrap, LearntLogOdds, ZeroRunResult
else:  # what an audit of coins never loads
    __getattr__, __dir__, _ = lazy_attributes(
        __name__,
        {
            "leakbound.results.panoramia": "PanoramiaResult",
            "leakbound.results.synthetic": "SyntheticResult",
            "leakbound.results.zero_run": "Bootstrap LearntLogOdds ZeroRunResult",
        },
    )

__all__ = [
    "Accounted",
    "Assumption",
    "AuditResult",
    "BettingResult",
    "Bootstrap",
    "Checked",
    "Curve",
    "DPSGDAudit",
    "Histogram",
    "Implied",
    "Kind",
    "LearntLogOdds",
    "PanoramiaResult",
    "Provenance",
    "Roc",
    "SamplingResult",
    "ScoreAudit",
    "StepsResult",
    "SyntheticResult",
    "Wager",
    "ZeroRunResult",
]
