"""Evidence that others can check: bundles with everything needed to recompute a result."""

from leakbound.evidence.bundle import write_bundle
from leakbound.evidence.challenge import judge_challenge, new_challenge, opened_challenge
from leakbound.evidence.exports import model_index
from leakbound.evidence.verification import verify_bundle, verify_result
from leakbound.results.base import Check, Verification

__all__ = [
    "Check",
    "Verification",
    "judge_challenge",
    "model_index",
    "new_challenge",
    "opened_challenge",
    "verify_bundle",
    "verify_result",
    "write_bundle",
]
