"""Whether two results are the same, bit for bit or to nine digits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from leakbound._base.validation import shown

if TYPE_CHECKING:
    from leakbound.results.base import Result

__all__ = ["NOTHING", "SHARE", "difference"]

SHARE = 1e-9
"""Part of a number by which other versions and processors may differ."""
NOTHING = 1e-12
"""What is smaller is as good as 0 to them."""
_VERSIONS = {"leakbound", "python", "numpy"}
_LOOSE = {"theorem", "assumptions", "warnings", "reason", "sha256"}
"""Words, and digests of computed numbers: another version has others for the same result."""


def difference(again: Result, result: Result, *, exact: bool = True) -> str:
    """Return where two results differ first; empty if nowhere.

    Versions of where each was made do not count, nor does the claim that was checked, which any
    bound answers. Unless exact, numbers may differ by `SHARE` of themselves, and words not at all.
    """
    one, other = again.to_dict(), result.to_dict()
    one.pop("checked", None)
    other.pop("checked", None)
    return _differ(one, other, type(result).__name__, exact=exact)


def _differ(one: Any, other: Any, place: str, *, exact: bool) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        left_out = (_VERSIONS if place.endswith(".provenance") else set()) | (
            set() if exact else _LOOSE
        )
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
    if _same(one, other, exact=exact):
        return ""
    return f"{place} is {shown(other)}, and computed again {shown(one)}"


def _same(one: Any, other: Any, *, exact: bool) -> bool:
    if exact or not (isinstance(one, float) and isinstance(other, float)):
        return type(one) is type(other) and bool(one == other)
    return math.isclose(one, other, rel_tol=SHARE, abs_tol=NOTHING)
