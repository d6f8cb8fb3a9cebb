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
>>> result = lb.audit(scores, lb.Coins(member))
>>> result.kind
'lower_bound'
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound import attacks, cuts, evidence, generators, planning, propensity, simulate, stats
    from leakbound import audits as audits
    from leakbound import benchmark as benchmark
    from leakbound import claims as claims
    from leakbound import errors as errors
    from leakbound import integrations as integrations
    from leakbound import panoramia as panoramia
    from leakbound import results as results
    from leakbound import torch as torch
    from leakbound._base.tally import Tally
    from leakbound._core import __version__
    from leakbound.audits import Coins, Panoramia, RandomSplit, Stream, ZeroRun, audit_synthetic
    from leakbound.audits.choices import Choices
    from leakbound.audits.model import audit_model
    from leakbound.audits.road import audit
    from leakbound.claims import (
        ApproxDP,
        GaussianDP,
        LaplaceDP,
        PureDP,
        SubsampledGaussianDP,
        TradeOffFamily,
    )
    from leakbound.claims.tradeoff import TradeOff
    from leakbound.cuts import Fixed, KLScan, OutsideIn, UnionBound, Weighted
    from leakbound.errors import LeakboundError
    from leakbound.integrations import watch_dp_sgd
    from leakbound.planning import canaries
    from leakbound.planning.inclusion import InclusionPlan
    from leakbound.results import (
        Assumption,
        AuditResult,
        Curve,
        DPSGDAudit,
        Histogram,
        PanoramiaResult,
        Provenance,
        Roc,
        ScoreAudit,
    )
    from leakbound.results.synthetic import SyntheticResult
    from leakbound.results.zero_run import ZeroRunResult
else:
    from leakbound._base.imports import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
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

__all__ = [
    "ApproxDP",
    "Assumption",
    "AuditResult",
    "Choices",
    "Coins",
    "Curve",
    "DPSGDAudit",
    "Fixed",
    "GaussianDP",
    "Histogram",
    "InclusionPlan",
    "KLScan",
    "LaplaceDP",
    "LeakboundError",
    "OutsideIn",
    "Panoramia",
    "PanoramiaResult",
    "Provenance",
    "PureDP",
    "RandomSplit",
    "Roc",
    "ScoreAudit",
    "Stream",
    "SubsampledGaussianDP",
    "SyntheticResult",
    "Tally",
    "TradeOff",
    "TradeOffFamily",
    "UnionBound",
    "Weighted",
    "ZeroRun",
    "ZeroRunResult",
    "__version__",
    "attacks",
    "audit",
    "audit_model",
    "audit_synthetic",
    "canaries",
    "cuts",
    "evidence",
    "generators",
    "planning",
    "propensity",
    "simulate",
    "stats",
    "watch_dp_sgd",
]
