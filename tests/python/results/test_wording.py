"""Sentences are made of the words that a result stores, and never of the name of its design."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from leakbound import results
from leakbound.errors import FormatError
from leakbound.results.wording import COINS
from oracle_calls import coins, split, stream, synthetic, zero_run

RNG = np.random.default_rng(0)
MEMBER = RNG.random(200) < 0.5
SCORES = RNG.normal(size=200) + 3 * MEMBER
CHOSEN = RNG.integers(4, size=60)
CANDIDATES = RNG.normal(size=(60, 4)) + 4 * np.eye(4)[CHOSEN]

AUDITS: dict[str, Callable[[], lb.AuditResult]] = {
    "coins": lambda: coins("leaks"),
    "split": lambda: split("uneven", "pure", "default", "strata"),
    "groups": lambda: lb.audit(SCORES, lb.RandomSplit(MEMBER, groups=np.arange(200)), seed=0),
    "choices": lambda: lb.audit(CANDIDATES, lb.Choices(CHOSEN, k=4), seed=0),
    "trials": lambda: lb.audit(SCORES, lb.Trials(MEMBER), claim=lb.GaussianDP(), seed=0),
    "fixed": lambda: lb.audit(SCORES, lb.Trials(MEMBER, fixed=True), seed=0),
    "stream": lambda: stream("both"),
    "synthetic": lambda: synthetic("copies", "pure", challenge=False),
    "zero-run": lambda: zero_run("pure"),
}


@pytest.mark.parametrize("name", AUDITS)
def test_a_file_of_before_words_were_stored_reads_with_the_same_words(name: str) -> None:
    result = AUDITS[name]()
    stored = result.to_dict()
    assert stored.pop("wording")
    read = type(result).from_dict(stored)
    assert read == result
    assert read.summary().metrics == result.summary().metrics
    assert read.summary().design == result.summary().design
    assert str(read) == str(result)


def test_sentences_are_made_of_stored_words() -> None:
    result = AUDITS["coins"]()
    words = replace(COINS, drawn="a roll of a die", chance="over the dice", unit="page")
    said = replace(result, wording=words).summary()
    assert said.design == "a roll of a die"
    assert "over the dice" in [one.note for one in said.metrics]
    renamed = replace(result, options=result.options | {"design": "dice"})
    assert str(renamed) == str(result)


def test_a_design_without_words_is_refused() -> None:
    stored = AUDITS["coins"]().to_dict()
    del stored["wording"]
    stored["options"]["design"] = "dice"  # type: ignore[index,call-overload]
    with pytest.raises(FormatError, match=r"'dice' is not of this package.*audit again"):
        lb.AuditResult.from_dict(stored)


def test_descriptions_know_no_design() -> None:
    """No file that makes sentences reads the name of a design, or compares with one."""
    folder = Path(results.__file__).parent
    files = [folder / "terms.py", folder / "one_run.py", *folder.glob("descriptions/*.py")]
    assert len(files) > 5
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not words & {"design", "trials", "choices", "random_split", "fixed"}, path.name
