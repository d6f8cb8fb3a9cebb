"""What a bundle tells people of a result: its assumptions, who vouches for them, and its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leakbound._base.canonical import plain
from leakbound._base.checks import shown
from leakbound.errors import OptionError
from leakbound.report import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leakbound._base.types import JsonValue
    from leakbound.results.base import Result

_VOUCHERS = {
    "checked": "leakbound, by the data",
    "declared": "the auditor",
    "approximate": "the auditor, roughly",
    "unverifiable": "nobody: it cannot be verified",
    "contradicted": "nobody: the data contradict it",
}
"""Who vouches for an assumption, by its status."""
_PLACES = re.compile(r'(?<= )(?:d|x|y|transform)="[^"]*"')
"""Where a figure has the coordinates of what it draws."""
_IDENT = re.compile(r"\b[mp][0-9a-f]{10}\b")
"""Names that matplotlib gives to shapes, by digests of their coordinates."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_HAIR = 1e-3
"""Length, in pixels, that nobody sees."""


def assumptions_of(result: Result, vouchers: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return what a result assumes, and who vouches for each."""
    unknown = vouchers.keys() - {one.name for one in result.assumptions}
    if unknown:
        named = ", ".join(sorted(map(str, unknown)))
        message = f"vouchers names {named}, which the result does not assume"
        raise OptionError(message)
    for name, who in vouchers.items():
        if not isinstance(who, str) or not who.strip():
            message = f"vouchers has {shown(who)} for {name!r}: name somebody, in words"
            raise OptionError(message)
        plain(who, f"vouchers.{name}")
    return [
        {
            "name": one.name,
            "statement": one.statement,
            "status": one.status,
            "vouched for by": vouchers.get(one.name, _VOUCHERS[one.status]),
        }
        for one in result.assumptions
    ]


def page_of(result: Result) -> bytes:
    """Return the page of a bundle."""
    return render(result).encode()


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
    page = _PLACES.sub(lambda found: found[0].partition("=")[0], page)
    return _IDENT.sub(lambda found: names.setdefault(found[0], f"shape-{len(names)}"), page)


def _close(one: str, other: str) -> bool:
    """Return whether two lists of coordinates are of the same shape, and as good as the same."""
    if one == other:
        return True
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= _HAIR for a, b in pairs)
