"""Ceilings on lines of Python, which may only fall: who adds code takes as much away."""

from pathlib import Path

ROOT = Path(__file__).parents[3]


def lines(folder: str) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob("*.py"))


def test_lines_are_no_more_than_they_were() -> None:
    assert 0 < lines("python/leakbound") <= 37_800
    assert 0 < lines("tests") - lines("tests/validity") <= 27_000
