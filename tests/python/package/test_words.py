"""Phrases that plain English does not need: CONTRIBUTING says what to write instead."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
QUAINT = re.compile(
    r"\b(knows? nothing|by heart|leaves the house|hangs? together|paid for|pays for|open to doubt"
    r"|of its own accord|anew|looked at from the outside in|what asks for|stands in|so much|such a"
    r"|says? of|(?<!there )is none|to be had|think of|beside the printed|unlike each other"
    r"|c[ao]mes? about|more than nothing|random are|before anybody|hardly anybody|tells most"
    r"|coin of its own|can go on|example abstains|signs of thousands|that others serve"
    r"|library of others|surely seen|there unseen|turned over|pipeline's business)\b",
    re.IGNORECASE,
)
# A line break, and what begins a comment on the next line, are one space of a sentence.
BREAK = re.compile(r"\s*\n\s*(?:#:?|///|//!|//|\*|>)?\s*|\"\s*\n\s*f?\"")
TWICE = re.compile(r"\b((?:[\w'-]+ ){2,}[\w'-]+) \1\b")
STOPS = re.compile(r"[\w)]\.\.(?=\s)")
EXCEPT = {"CONTRIBUTING.md", "tests/python/package/test_words.py", "Cargo.lock"}
ROOMS = ("README.md", "docs", "python", "rust", "tests", "benches")


def sources() -> list[Path]:
    """Return what people read of the repository, and what is made of it."""
    kinds = {".md", ".py", ".pyi", ".rs", ".rst", ".txt", ".html", ".toml", ".yml"}
    built = {"reference/api", "docs/tutorials", "docs/gallery"}
    found = [path for room in ROOMS for path in (ROOT / room, *(ROOT / room).rglob("*"))]
    names = [(path, path.relative_to(ROOT).as_posix()) for path in found if path.suffix in kinds]
    return [p for p, name in names if name not in EXCEPT and not any(x in name for x in built)]


@pytest.mark.parametrize("room", ROOMS)
def test_none_of_the_quaint_phrases_occurs(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources()
        if path.relative_to(ROOT).as_posix().startswith(room)
        for match in QUAINT.finditer(BREAK.sub(" ", path.read_text(encoding="utf-8")))
        if match[0] != "is None"
    ]
    assert not found


def test_no_page_says_words_twice_in_a_row() -> None:
    found = []
    for path in sources():
        if path.suffix == ".md":
            text = BREAK.sub(" ", path.read_text(encoding="utf-8"))
            slips = [*TWICE.finditer(text), *STOPS.finditer(text)]
            found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in slips]
    assert not found


def test_pages_do_not_promise_what_opacus_refuses() -> None:
    for page in ("audits/dp-sgd.md", "theory/dp-sgd.md"):
        text = BREAK.sub(" ", (ROOT / "docs" / page).read_text(encoding="utf-8"))
        assert "gradient accumulation and" not in text
        assert "accumulation, virtual batches" not in text
        assert "opacus 1.6 refuses" in text
