"""Several claims audited on the same examples: each at its share, so that all bounds hold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from leakbound._base.validation import complement, instance
from leakbound.claims import CLAIMS, Claim
from leakbound.errors import OptionError
from leakbound.results import AuditResult

if TYPE_CHECKING:
    from leakbound._base.types import JsonValue

__all__ = ["jointly"]

R = TypeVar("R", bound=AuditResult)


def jointly(
    claims: Sequence[Claim], confidence: float, audit: Callable[[Claim, float], R]
) -> tuple[R, ...]:
    """Audit every claim at its share of the probability of error.

    Parameters
    ----------
    claims : sequence of Claim
        At least one.
    confidence : float
        Probability that no bound is above its truth, in (0, 1).
    audit : callable
        Audits a claim at a confidence of its own.

    Returns
    -------
    tuple of AuditResult
        One for each claim; the joint confidence is in the options.

    Raises
    ------
    OptionError, OptionTypeError
        If there is no claim, or one that is none, or `confidence` is out of range.
    """
    if not claims:
        message = "claim is an empty sequence: name at least one claim"
        raise OptionError(message)
    for index, one in enumerate(claims):
        instance(one, f"claim[{index}]", CLAIMS)
    share = complement(confidence) / len(claims)
    joint: dict[str, JsonValue] = {"claims": len(claims), "confidence": float(confidence)}
    results = [audit(claim, 1 - share) for claim in claims]
    return tuple(replace(one, options=one.options | {"joint": joint}) for one in results)
