"""Statistically valid lower bounds on the privacy leakage of a trained model.

Three ideas compose: a *claim* is a family of guarantees, such as pure ε-differential privacy; an
*audit* is a game that says how membership was assigned, and so what a correct guess proves; a *cut
policy* says which cuts of a ranking are tested, and how their number is paid for.

Examples
--------
>>> import numpy as np
>>> import leakbound as lb
>>> rng = np.random.default_rng(0)
>>> member = rng.random(1000) < 0.5            # a fair coin for each example
>>> scores = rng.normal(size=1000) + member    # from the model trained on the members
>>> result = lb.audit_one_run(scores, member)
>>> result.kind
'lower_bound'
"""

try:
    import numpy as np  # noqa: F401 (the first import that an installation can fail at)
except Exception as error:
    from leakbound._base.ending import end_if_program

    end_if_program(error)
    raise

from leakbound import cuts, simulate, stats
from leakbound._core import __version__
from leakbound.audits import OneRunStream, audit_one_run, audit_panoramia, audit_zero_run
from leakbound.claims import (
    ApproxDP,
    GaussianDP,
    LaplaceDP,
    PureDP,
    SubsampledGaussianDP,
    TradeOffFamily,
)
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import (
    EqualLevelScan,
    Fixed,
    KLScan,
    OutsideIn,
    ScoreAdaptive,
    Split,
    Uncorrected,
    UnionBound,
    VilleMixture,
    Weighted,
)
from leakbound.errors import LeakboundError
from leakbound.panoramia import Panoramia, PanoramiaReport
from leakbound.planning.inclusion import InclusionPlan
from leakbound.results import (
    Assumption,
    AuditResult,
    Curve,
    Histogram,
    PanoramiaResult,
    Provenance,
    Roc,
    ScoreAudit,
)
from leakbound.results.zero_run import ZeroRunResult

__all__ = [
    "ApproxDP",
    "Assumption",
    "AuditResult",
    "Curve",
    "EqualLevelScan",
    "Fixed",
    "GaussianDP",
    "Histogram",
    "InclusionPlan",
    "KLScan",
    "LaplaceDP",
    "LeakboundError",
    "OneRunStream",
    "OutsideIn",
    "Panoramia",
    "PanoramiaReport",
    "PanoramiaResult",
    "Provenance",
    "PureDP",
    "Roc",
    "ScoreAdaptive",
    "ScoreAudit",
    "Split",
    "SubsampledGaussianDP",
    "TradeOff",
    "TradeOffFamily",
    "Uncorrected",
    "UnionBound",
    "VilleMixture",
    "Weighted",
    "ZeroRunResult",
    "__version__",
    "audit_one_run",
    "audit_panoramia",
    "audit_zero_run",
    "cuts",
    "simulate",
    "stats",
]
