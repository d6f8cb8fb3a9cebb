"""How far an audit walks: functions of the package that it calls, and the files they are in."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import leakbound as lb

PACKAGE = str(Path(lb.__file__).parent)
NAMELESS = {"<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"}
RNG = np.random.default_rng(0)
MEMBER = RNG.random(1000) < 0.5
SCORES = RNG.normal(size=1000) + 2 * MEMBER
FEATURES = RNG.normal(size=(1000, 2))


def coins() -> None:
    lb.audit(SCORES, lb.Coins(MEMBER))


def split() -> None:
    lb.audit(SCORES, lb.RandomSplit(MEMBER))


def zero_run() -> None:
    lb.audit(SCORES, lb.ZeroRun(MEMBER, features=FEATURES), seed=0)


def walk(audit: Callable[[], None]) -> Counter[str]:
    """Return how many calls an audit makes in each file, once what it imports is there."""
    calls = Counter[str]()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            calls[code.co_filename] += code.co_name not in NAMELESS

    audit()
    sys.setprofile(profile)
    try:
        audit()
    finally:
        sys.setprofile(None)
    return +calls


# Coins and splits read what was drawn as one, and its word. By default there are three tests of
# coins, two of splits, and two of Zero-Run, whose look has files for its blocks and for
# propensities of the labels seen. Most calls of Zero-Run are those of the search over the set.
# Each ceiling is about 5 % over what was counted.
@pytest.mark.parametrize(
    ("audit", "most", "files"), [(coins, 190, 23), (split, 160, 23), (zero_run, 6600, 49)]
)
def test_an_audit_is_a_short_walk(audit: Callable[[], None], most: int, files: int) -> None:
    calls = walk(audit)
    assert 0 < calls.total() <= most, calls
    assert len(calls) <= files, calls
