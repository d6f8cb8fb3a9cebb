"""Pages take a second to draw: tests that are not about them draw each page once."""

from functools import cache

import pytest

import leakbound as lb
from leakbound.evidence import bundle, contents, verification

draw = contents.page_of


@cache
def drawn(kind: str, text: str) -> bytes:
    """Draw the page of a result that is told by its JSON."""
    return draw(getattr(lb, kind).from_json(text))


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bundle, verification):
        monkeypatch.setattr(module, "page_of", lambda one: drawn(type(one).__name__, one.to_json()))
