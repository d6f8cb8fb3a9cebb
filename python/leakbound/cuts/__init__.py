"""Cut policies: which cuts of a path are tested, and how their number is paid for.

A path is the sequence of guesses in visiting order; a cut keeps its first guesses and abstains on
the rest. A policy turns scores, membership and a level into the best bound on log-odds.
"""

from typing import TypeAlias

from leakbound.cuts.base import ORDERS, BestCut, CurvePoints, Finding, Game, Policy, ScoreGame
from leakbound.cuts.outside_in import OutsideIn
from leakbound.cuts.paths import PathPolicy
from leakbound.cuts.policies import (
    EqualLevelScan,
    Fixed,
    KLScan,
    Uncorrected,
    UnionBound,
    VilleMixture,
)
from leakbound.cuts.score_adaptive import ScoreAdaptive
from leakbound.cuts.split import Split
from leakbound.cuts.tallied import TallyGame
from leakbound.cuts.weighted import Weighted

__all__ = [
    "CUT_POLICIES",
    "ORDERS",
    "BestCut",
    "CurvePoints",
    "CutPolicy",
    "EqualLevelScan",
    "Finding",
    "Fixed",
    "Game",
    "KLScan",
    "OutsideIn",
    "PathPolicy",
    "Policy",
    "ScoreAdaptive",
    "ScoreGame",
    "Split",
    "TallyGame",
    "Uncorrected",
    "UnionBound",
    "VilleMixture",
    "Weighted",
]

CutPolicy: TypeAlias = (
    KLScan
    | EqualLevelScan
    | UnionBound
    | Fixed
    | OutsideIn
    | ScoreAdaptive
    | Split
    | VilleMixture
    | Weighted
    | Uncorrected
)
"""Any policy that an audit takes."""
CUT_POLICIES = (
    KLScan,
    EqualLevelScan,
    UnionBound,
    Fixed,
    OutsideIn,
    ScoreAdaptive,
    Split,
    VilleMixture,
    Weighted,
    Uncorrected,
)
