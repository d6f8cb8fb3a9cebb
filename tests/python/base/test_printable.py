"""Text of others is printed, and does nothing else."""

import sys
import unicodedata
from typing import Any

import pytest

from leakbound._base.console import tell
from leakbound._base.formatting import printable


@pytest.mark.parametrize("kind", ["Cc", "Cf", "Zl", "Zp"])
def test_no_character_that_acts_is_left(kind: str) -> None:
    acting = [
        one for one in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(one) == kind
    ]
    assert len(acting) > 0
    shown = printable("a".join(acting[:300]))
    assert shown.isprintable()
    assert not set(shown) & set(acting)


def test_what_can_be_seen_is_left_as_it_is() -> None:
    for text in ("ε ≥ 1.5 at 95 %", "画像", "a\\b", "naïve — “x”", "5\xa0000"):
        assert printable(text) == text
    assert printable("\ud800") == "\\ud800"
    assert printable("a\nb\x1b", lines=True) == "a\nb\\x1b"
    assert len(printable("x" * 10**6)) == 2000


def test_errors_that_quote_files_are_printed_alone(capsys: Any) -> None:
    tell("leakbound: \x1b]0;VALID\x07 is no claim\nsecond")
    assert capsys.readouterr().err == "leakbound: \\x1b]0;VALID\\x07 is no claim\nsecond\n"


def test_every_character_is_escaped_once() -> None:
    private = "".join(map(chr, range(0xE000, 0xF8FF)))
    escaped = "".join(f"\\u{ord(one):04x}" for one in private)
    assert printable(private).startswith(escaped[:1999])
    assert printable("\x1b\\x1b") == "\\x1b\\x1b"
