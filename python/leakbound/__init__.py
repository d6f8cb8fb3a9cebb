"""Statistically valid lower bounds on the privacy leakage of a trained model.

Three ideas compose: a *claim* is a family of guarantees, such as pure ε-differential privacy; an
*audit* is a game that says how membership was assigned, and so what a correct guess proves; a *cut
policy* chooses which thresholds of a ranking are tested, and corrects for their number.

Examples
--------
>>> import numpy as np
>>> import leakbound as lb
>>> rng = np.random.default_rng(0)
>>> member = rng.random(1000) < 0.5            # a fair coin for each example
>>> scores = rng.normal(size=1000) + member    # from the model trained on the members
>>> result = lb.audit(scores, lb.Coins(member))
>>> result.kind
'lower_bound'
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound import attacks as attacks
    from leakbound import audits as audits
    from leakbound import benchmark as benchmark
    from leakbound import claims as claims
    from leakbound import cuts as cuts
    from leakbound import errors as errors
    from leakbound import evidence as evidence
    from leakbound import generators as generators
    from leakbound import integrations as integrations
    from leakbound import panoramia as panoramia
    from leakbound import planning as planning
    from leakbound import propensity as propensity
    from leakbound import results as results
    from leakbound import simulate as simulate
    from leakbound import stats as stats
    from leakbound import torch as torch
    from leakbound._base.tally import Tally as Tally
    from leakbound._core import __version__ as __version__
    from leakbound.audits import Coins as Coins
    from leakbound.audits import Panoramia as Panoramia
    from leakbound.audits import RandomSplit as RandomSplit
    from leakbound.audits import Stream as Stream
    from leakbound.audits import ZeroRun as ZeroRun
    from leakbound.audits import audit_synthetic as audit_synthetic
    from leakbound.audits.choices import Choices as Choices
    from leakbound.audits.model import audit_model as audit_model
    from leakbound.audits.road import audit as audit
    from leakbound.claims import ApproxDP as ApproxDP
    from leakbound.claims import GaussianDP as GaussianDP
    from leakbound.claims import LaplaceDP as LaplaceDP
    from leakbound.claims import PureDP as PureDP
    from leakbound.claims import SubsampledGaussianDP as SubsampledGaussianDP
    from leakbound.claims import TradeOffFamily as TradeOffFamily
    from leakbound.claims.tradeoff import TradeOff as TradeOff
    from leakbound.cuts import Fixed as Fixed
    from leakbound.cuts import KLScan as KLScan
    from leakbound.cuts import OutsideIn as OutsideIn
    from leakbound.cuts import UnionBound as UnionBound
    from leakbound.cuts import Weighted as Weighted
    from leakbound.errors import LeakboundError as LeakboundError
    from leakbound.integrations import watch_dp_sgd as watch_dp_sgd
    from leakbound.planning import canaries as canaries
    from leakbound.planning.inclusion import InclusionPlan as InclusionPlan
    from leakbound.results import Assumption as Assumption
    from leakbound.results import AuditResult as AuditResult
    from leakbound.results import Curve as Curve
    from leakbound.results import DPSGDAudit as DPSGDAudit
    from leakbound.results import Histogram as Histogram
    from leakbound.results import PanoramiaResult as PanoramiaResult
    from leakbound.results import Provenance as Provenance
    from leakbound.results import Roc as Roc
    from leakbound.results import ScoreAudit as ScoreAudit
    from leakbound.results.synthetic import SyntheticResult as SyntheticResult
    from leakbound.results.zero_run import ZeroRunResult as ZeroRunResult
else:
    from leakbound._base.imports import lazy_attributes

    __getattr__, __dir__, __all__ = lazy_attributes(
        __name__,
        {
            __name__: (
                "attacks audits benchmark claims cuts errors evidence generators integrations "
                "panoramia planning propensity results simulate stats torch"
            ),
            "leakbound._base.tally": "Tally",
            "leakbound._core": "__version__",
            "leakbound.audits": "Coins Panoramia RandomSplit Stream ZeroRun audit_synthetic",
            "leakbound.audits.choices": "Choices",
            "leakbound.audits.road": "audit",
            "leakbound.audits.model": "audit_model",
            "leakbound.claims": (
                "ApproxDP GaussianDP LaplaceDP PureDP SubsampledGaussianDP TradeOffFamily"
            ),
            "leakbound.claims.tradeoff": "TradeOff",
            "leakbound.cuts": ("Fixed KLScan OutsideIn UnionBound Weighted"),
            "leakbound.errors": "LeakboundError",
            "leakbound.integrations": "watch_dp_sgd",
            "leakbound.planning": "canaries",
            "leakbound.planning.inclusion": "InclusionPlan",
            "leakbound.results": (
                "Assumption AuditResult Curve DPSGDAudit Histogram PanoramiaResult Provenance Roc "
                "ScoreAudit"
            ),
            "leakbound.results.synthetic": "SyntheticResult",
            "leakbound.results.zero_run": "ZeroRunResult",
        },
    )
