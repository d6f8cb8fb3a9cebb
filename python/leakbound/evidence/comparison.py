"""Whether a result is another one, or a page another page, but for last places of numbers."""

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
# Places of what the auditor stated: numbers that were computed from nothing differ in no place.
_STATED = re.compile(r"\w+\.(confidence|claim)\b")
# Inputs that are computed from those at hand: their digests have no last places.
_COMPUTED = {"log_odds"}
# Where a figure has the coordinates of what it draws.
_PLACES = re.compile(r'(?<= )(?:d|x|y|transform)="[^"]*"')
# Names that matplotlib gives to shapes, by digests of their coordinates.
_IDENT = re.compile(r"\b[mp][0-9a-f]{10}\b")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
# Length, in pixels, that nobody sees.
_HAIR = 1e-3


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
            wrong = _differ(one[name], other[name], f"{place}.{name}", exact=exact)
            if wrong:
                return wrong
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


def same_page(one: bytes, other: bytes) -> bool:
    """Return whether two pages say and show the same, coordinates of figures apart by a hair."""
    try:
        mine, theirs = one.decode("utf-8"), other.decode("utf-8")
    except UnicodeDecodeError:
        return False
    drawn = [_PLACES.findall(page) for page in (mine, theirs)]
    if _without_places(mine) != _without_places(theirs):
        return False
    return all(map(_close, *drawn))


def _without_places(page: str) -> str:
    """Return a page without the coordinates of its figures, shapes named in their order."""
    names: dict[str, str] = {}
    page = _PLACES.sub(lambda match: match[0].partition("=")[0], page)
    return _IDENT.sub(lambda match: names.setdefault(match[0], f"shape-{len(names)}"), page)


def _close(one: str, other: str) -> bool:
    """Return whether two lists of coordinates are of the same shape, and as good as the same."""
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= _HAIR for a, b in pairs)
