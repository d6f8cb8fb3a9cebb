"""Whether two results are the same, bit for bit or but for the last places of their numbers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from leakbound._base.checks import shown

if TYPE_CHECKING:
    from leakbound.results.base import Result

SHARE = 1e-9
"""Part of a number by which other versions and processors may differ."""
VERSIONS = ("leakbound", "python", "numpy")
"""What a result says of where it was made, which no audit computes."""
_STATED = re.compile(r"\w+\.(confidence|claim)\b")
"""Places of what the auditor stated: numbers that were computed from nothing differ in no place."""
_COMPUTED = {"log_odds"}
"""Inputs that are computed from those at hand: their digests have no last places."""


def difference(again: Result, result: Result, *, exact: bool = True) -> str:
    """Return where two results differ first; empty if nowhere.

    Versions of where each was made do not count, nor does the claim that was checked, which any
    bound answers; the verdict on it has to be the one that the bound of `again` gives. Unless
    exact, numbers may differ by `SHARE` of themselves, however small, but for claim and confidence,
    which are not computed, and digests of computed numbers at all; everything else is the same or
    differs: what somebody says of the version that made a result excuses no word of it.
    """
    one, other = again.to_dict(), result.to_dict()
    checked = other.pop("checked", None)
    one.pop("checked", None)
    wrong = _differ(one, other, type(result).__name__, exact=exact)
    if not wrong and checked is not None and not exact:
        type(again).from_dict(
            one | {"checked": checked}
        )  # refuses a verdict that one does not give
    return wrong


def _differ(one: Any, other: Any, place: str, *, exact: bool) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        left_out = set(VERSIONS) if place.endswith(".provenance") else set[str]()
        if not exact and place.endswith(".provenance.sha256"):
            left_out = _COMPUTED & one.keys() & other.keys()
        for name in [*one, *(name for name in other if name not in one)]:
            if name in left_out:
                continue
            if name not in one or name not in other:
                return f"{place}.{name} is in one of the two only"
            found = _differ(one[name], other[name], f"{place}.{name}", exact=exact)
            if found:
                return found
        return ""
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{place} has {len(other)} entries, and computed again {len(one)}"
        pairs = enumerate(zip(one, other, strict=True))
        parts = (_differ(a, b, f"{place}[{i}]", exact=exact) for i, (a, b) in pairs)
        return next(filter(None, parts), "")
    if _same(one, other, exact=exact or _STATED.match(place) is not None):
        return ""
    return f"{place} is {shown(other)}, and computed again {shown(one)}"


def _same(one: Any, other: Any, *, exact: bool) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)):
        return type(one) is type(other) and bool(one == other)
    # A result prints the sign of its zeros.
    signs = math.copysign(1, one) == math.copysign(1, other)
    return signs and math.isclose(one, other, rel_tol=0.0 if exact else SHARE, abs_tol=0.0)
