"""Cut policies: which cuts of a path are tested, and how their number is paid for.

A path is the sequence of guesses in visiting order; a cut keeps its first guesses and abstains on
the rest. A policy turns a path and a probability of error into the best bound on log-odds.
"""

from leakbound.cuts.base import ORDERS, BestCut, CurvePoints, PathPolicy
from leakbound.cuts.policies import (
    CUT_POLICIES,
    CutPolicy,
    EqualLevelScan,
    Fixed,
    KLScan,
    Split,
    Uncorrected,
    UnionBound,
    VilleMixture,
    Weighted,
)
from leakbound.cuts.score_adaptive import ScoreAdaptive

__all__ = [
    "CUT_POLICIES",
    "ORDERS",
    "BestCut",
    "CurvePoints",
    "CutPolicy",
    "EqualLevelScan",
    "Fixed",
    "KLScan",
    "PathPolicy",
    "ScoreAdaptive",
    "Split",
    "Uncorrected",
    "UnionBound",
    "VilleMixture",
    "Weighted",
]
