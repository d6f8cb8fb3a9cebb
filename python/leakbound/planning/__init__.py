"""Before an audit: who is drawn, how many canaries it needs, and what it can prove."""

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
from leakbound.planning.inclusion import (
    InclusionPlan,
)

__all__ = [
    "CanariesNeeded",
    "Gaussian",
    "InclusionPlan",
    "Power",
    "Response",
    "best_guesses",
    "canaries_needed",
    "ceiling",
    "power",
]
