"""Ceilings on lines of Python and Rust, which may only fall: who adds code takes as much away."""

from pathlib import Path

ROOT = Path(__file__).parents[3]


def lines(folder: str, kind: str = "*.py") -> int:
    return sum(path.read_bytes().count(b"\n") for path in (ROOT / folder).rglob(kind))


def test_lines_are_no_more_than_they_were() -> None:
    assert 0 < lines("python/leakbound") <= 37_800
    assert 0 < lines("tests") - lines("tests/validity") <= 27_000
    assert 0 < lines("rust", "*.rs") <= 26_000


def test_no_rust_file_is_long() -> None:
    for path in (ROOT / "rust").rglob("*.rs"):
        assert path.read_bytes().count(b"\n") <= 450, path
