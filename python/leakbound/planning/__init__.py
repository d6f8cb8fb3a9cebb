"""Before an audit: who is drawn, how many canaries it needs, and what it can prove."""

from leakbound.planning import canaries
from leakbound.planning.commitment import Commitment, Opening, read_protocol
from leakbound.planning.forecast import CanariesNeeded, Power, canaries_needed, ceiling, power
from leakbound.planning.inclusion import ChoicePlan, InclusionPlan, load_opening
from leakbound.planning.truths import Gaussian, Response

__all__ = [
    "CanariesNeeded",
    "ChoicePlan",
    "Commitment",
    "Gaussian",
    "InclusionPlan",
    "Opening",
    "Power",
    "Response",
    "canaries",
    "canaries_needed",
    "ceiling",
    "load_opening",
    "power",
    "read_protocol",
]
