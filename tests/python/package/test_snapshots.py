"""What a user reads is what is stored in tests/golden/text.

Where words are meant to change: python tests/support/snapshots.py, and read `git diff`.
"""

import difflib

import pytest

from snapshots import FOLDER, SNAPSHOTS, text_of


def test_every_text_is_stored() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(SNAPSHOTS)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_words_are_what_they_were(name: str) -> None:
    old = FOLDER.joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines()
    found = list(
        difflib.unified_diff(old, text_of(name).splitlines(), "stored", "now", lineterm="")
    )
    assert not found, "\n".join(found)
