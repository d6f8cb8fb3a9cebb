"""Before an audit: who is drawn, how many canaries it needs, and what it can prove."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound.planning import canaries
    from leakbound.planning.commitment import Commitment, Opening, read_protocol
    from leakbound.planning.forecast import (
        CanariesNeeded,
        Power,
        best_guesses,
        canaries_needed,
        ceiling,
        power,
    )
    from leakbound.planning.inclusion import ChoicePlan, InclusionPlan, load_opening
    from leakbound.planning.truths import Gaussian, Response
else:
    from leakbound._base.imports import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "leakbound.planning": "canaries",
            "leakbound.planning.commitment": "Commitment Opening read_protocol",
            "leakbound.planning.forecast": (
                "CanariesNeeded Power best_guesses canaries_needed ceiling power"
            ),
            "leakbound.planning.inclusion": "ChoicePlan InclusionPlan load_opening",
            "leakbound.planning.truths": "Gaussian Response",
        },
    )

__all__ = [
    "CanariesNeeded",
    "ChoicePlan",
    "Commitment",
    "Gaussian",
    "InclusionPlan",
    "Opening",
    "Power",
    "Response",
    "best_guesses",
    "canaries",
    "canaries_needed",
    "ceiling",
    "load_opening",
    "power",
    "read_protocol",
]
