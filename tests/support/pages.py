"""Pages as words: what a reader sees, with the spaces and signs that results write."""

import html
import re

__all__ = ["words_of"]

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def words_of(page: str) -> str:
    """Return the visible words of a page: ordinary spaces, and 1e-05 for 10⁻⁵."""
    text = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u2060", "")
    text = re.sub(r"(?:([\d.]+)·)?10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", _power, text)
    return re.sub(r"\s+", " ", text)


def _power(small: re.Match[str]) -> str:
    return f"{small[1] or 1}e-{int(small[2].translate(_RAISED)):02d}"
