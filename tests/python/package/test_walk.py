"""How far an audit walks: functions of the package that it enters, their files and what they hold.

Who follows an audit reads these functions: their content is counted in syntax nodes, each function
once, with the lambdas and generators in it and without its docstring.
"""

import ast
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pytest

import leakbound as lb

PACKAGE = str(Path(lb.__file__).parent)
NAMELESS = {"<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>"}
RNG = np.random.default_rng(0)
MEMBER = RNG.random(1000) < 0.5
SCORES = RNG.normal(size=1000) + 2 * MEMBER
FEATURES = RNG.normal(size=(1000, 2))


def coins() -> object:
    return lb.audit(SCORES, lb.Coins(MEMBER), seed=0)


def split() -> object:
    return lb.audit(SCORES, lb.RandomSplit(MEMBER), seed=0)


def zero_run() -> object:
    return lb.audit(SCORES, lb.ZeroRun(MEMBER, features=FEATURES), seed=0)


def panoramia() -> object:
    design = lb.Panoramia(MEMBER, baseline=SCORES - MEMBER, features=FEATURES)
    return lb.audit(SCORES, design, seed=0)


def printed(audit: Callable[[], object]) -> Callable[[], object]:
    return lambda: str(audit())


@dataclass
class Walk:
    """What an audit enters: how many calls it makes in each file, and which functions."""

    calls: Counter[str] = field(default_factory=Counter)
    functions: set[CodeType] = field(default_factory=set)

    @property
    def nodes(self) -> int:
        """Syntax nodes of all functions entered."""
        return sum(sizes(code.co_filename).get(where(code), 0) for code in self.functions)


def where(code: CodeType) -> tuple[str, int]:
    return code.co_name, code.co_firstlineno


@cache
def sizes(path: str) -> dict[tuple[str, int], int]:
    """Return the nodes of each function of a file, by its name and first line."""
    found = {}
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        inside = [one for part in node.body for one in ast.walk(part)]
        count = sum(isinstance(one, ast.expr | ast.stmt) for one in inside)
        has_docstring = ast.get_docstring(node) is not None
        found[node.name, first] = count - 2 * has_docstring
    return found


@cache
def walk(audit: Callable[[], object]) -> Walk:
    """Follow an audit, once what it imports is there."""
    found = Walk()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            found.calls[code.co_filename] += code.co_name not in NAMELESS
            if code.co_name not in NAMELESS:
                found.functions.add(code)

    audit()
    sys.setprofile(profile)
    try:
        audit()
    finally:
        sys.setprofile(None)
    found.calls = +found.calls
    return found


# By default there are three tests of coins, two of splits, and two of Zero-Run, whose look has
# files for its blocks and for propensities of the labels seen. Most calls of Zero-Run are those of
# the search over the set. Each ceiling is about 5 % over what was counted.
@pytest.mark.parametrize(
    ("audit", "most", "files"), [(coins, 200, 23), (split, 197, 25), (zero_run, 5900, 46)]
)
def test_an_audit_is_a_short_walk(audit: Callable[[], object], most: int, files: int) -> None:
    calls = walk(audit).calls
    assert 0 < calls.total() <= most, calls
    assert len(calls) <= files, calls


@pytest.mark.parametrize(
    ("audit", "most"),
    [
        (coins, 5_440),
        (printed(coins), 8_020),
        (split, 5_900),
        (zero_run, 10_860),
        (printed(zero_run), 14_810),
        (panoramia, 11_820),
    ],
)
def test_an_audit_enters_little(audit: Callable[[], object], most: int) -> None:
    found = walk(audit)
    assert len(found.functions) > 100
    assert 0.9 * most < found.nodes <= most
