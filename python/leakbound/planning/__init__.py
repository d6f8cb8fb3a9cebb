"""Before an audit: who is drawn, how many canaries it needs, and what it can prove."""

from leakbound.planning import canaries
from leakbound.planning.commitment import Commitment, Opening, read_protocol
from leakbound.planning.comparison import Choice, Comparison, compare
from leakbound.planning.forecast import (
    CanariesNeeded,
    Gaussian,
    Power,
    Response,
    best_guesses,
    canaries_needed,
    ceiling,
    power,
)
from leakbound.planning.inclusion import InclusionPlan
from leakbound.planning.openings import load_opening

__all__ = [
    "CanariesNeeded",
    "Choice",
    "Commitment",
    "Comparison",
    "Gaussian",
    "InclusionPlan",
    "Opening",
    "Power",
    "Response",
    "best_guesses",
    "canaries",
    "canaries_needed",
    "ceiling",
    "compare",
    "load_opening",
    "power",
    "read_protocol",
]
