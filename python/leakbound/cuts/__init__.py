"""Cut policies: which thresholds of a path are tested, and the correction for their number.

A path is the sequence of guesses in visiting order; a cut keeps its first guesses and abstains on
the rest. A policy turns scores, membership and a level into the best bound on log-odds.
"""

from typing import TypeAlias

from leakbound.cuts.games import Game, ScoreGame, TallyGame
from leakbound.cuts.outside_in import OutsideIn
from leakbound.cuts.policies import Fixed, KLScan, UnionBound
from leakbound.cuts.policy import ORDERS, BestCut, CurvePoints, PathPolicy, Policy, Proof
from leakbound.cuts.weighted import Weighted

__all__ = [
    "CUT_POLICIES",
    "ORDERS",
    "BestCut",
    "CurvePoints",
    "CutPolicy",
    "Fixed",
    "Game",
    "KLScan",
    "OutsideIn",
    "PathPolicy",
    "Policy",
    "Proof",
    "ScoreGame",
    "TallyGame",
    "UnionBound",
    "Weighted",
]

CutPolicy: TypeAlias = KLScan | UnionBound | Fixed | OutsideIn | Weighted
"""Any policy that an audit takes."""
CUT_POLICIES = (KLScan, UnionBound, Fixed, OutsideIn, Weighted)
