"""Pages as words: what a reader sees, with the spaces and signs that results write."""

import html
import re
from collections.abc import Iterator

import pytest

__all__ = ["undrawn", "words_of"]

_FIGURE = '<?xml version="1.0"?><svg viewBox="0 0 1 1"><path d="M 12 3" /></svg>'

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def words_of(page: str) -> str:
    """Return the visible words of a page: ordinary spaces, and 1e-05 for 10⁻⁵."""
    text = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u2060", "")
    text = re.sub(r"(?:([\d.]+)·)?10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", _power, text)
    return re.sub(r"\s+", " ", text)


def _power(small: re.Match[str]) -> str:
    return f"{small[1] or 1}e-{int(small[2].translate(_RAISED)):02d}"


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> Iterator[None]:
    """Draw one figure for all, where it is imported: each takes a fifth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leakbound.report.page.svg", lambda *_, **__: _FIGURE)
        yield
