"""Gates: what a pipeline reads of an audit, and codes that never take one thing for another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import MEMBER, SCORE, csv_text, leakbound


@pytest.mark.parametrize(
    ("claim", "code", "checked"),
    [
        ("eps=1", 1, ("epsilon", 1.0, 0.0, "refuted")),
        ("eps=3", 0, ("epsilon", 3.0, 0.0, "not refuted")),
        ("eps=9", 3, ("epsilon", 9.0, 0.0, "inconclusive")),
        ("eps=1,delta=1e-5", 1, ("epsilon", 1.0, 1e-5, "refuted")),
        ("mu=0.5", 1, ("mu", 0.5, None, "refuted")),
    ],
)
def test_json_has_claim_and_verdict(
    claim: str, code: int, checked: tuple[object, ...], scores: Path
) -> None:
    answer = leakbound("coins", scores, "--claim", claim, "--json-full")
    assert answer.code == code
    found = json.loads(answer.out)["checked"]
    names = ("parameter", "value", "delta", "verdict")
    assert tuple(found[name] for name in names) == checked


def test_a_claim_does_not_pass_on_warnings(table: Callable[[str], Path]) -> None:
    noise = np.random.default_rng(1).normal(size=MEMBER.size)
    weak = table(csv_text(score=SCORE / 2 + noise, member=MEMBER))
    assert leakbound("coins", weak, "--claim", "eps=3").code == 0
    tied = table(csv_text(score=(SCORE / 2 + noise).round(), member=MEMBER))
    answer = leakbound("coins", tied, "--claim", "eps=3", "--json-full")
    assert answer.code == 3
    assert answer.err.startswith("leakbound: inconclusive (use --lenient to accept): ")
    assert "of the examples share their score" in answer.err
    assert json.loads(answer.out)["checked"]["verdict"] == "not refuted"
    assert leakbound("coins", tied, "--claim", "eps=3", "--lenient").code == 0
    assert leakbound("coins", tied).code == 0  # nothing was claimed
    rounded = table(csv_text(score=SCORE.round(), member=MEMBER))
    for options in ((), ("--lenient",)):
        assert leakbound("coins", rounded, "--claim", "eps=0.01", *options).code == 1


NOISE = np.random.default_rng(0).normal(size=1000)
FEW, HALF = np.arange(400) < 238, np.arange(1000) < 500
DOUBTED: dict[str, tuple[dict[str, Any], str, tuple[str, ...], str]] = {
    # They refute nothing, whatever leaks: turned round, these refute ε = 1.
    "inverted": ({"score": -SCORE, "member": MEMBER}, "coins", (), "the scores look inverted"),
    # Fair coins give so many members once in ten thousand times.
    "few": (
        {"score": NOISE[:400], "member": FEW},
        "coins",
        (),
        "contradicted: independent fair coins",
    ),
    "joint": (
        {"baseline_score": NOISE[:400], "score": -NOISE[:400], "member": FEW},
        "panoramia",
        ("--claim", "c=1,eps=1"),
        "inconclusive (use",
    ),
    "an exact half taken for coins": (
        {"score": NOISE, "member": HALF},
        "coins",
        (),
        "leakbound split",
    ),
}


@pytest.mark.parametrize(("columns", "command", "claim", "words"), DOUBTED.values(), ids=DOUBTED)
def test_a_claim_does_not_pass_in_doubt(
    columns: dict[str, Any],
    command: str,
    claim: tuple[str, ...],
    words: str,
    table: Callable[[str], Path],
) -> None:
    file, claim = table(csv_text(**columns)), claim or ("--claim", "eps=1")
    assert leakbound(command, file).code == 0
    answer = leakbound(command, file, *claim)
    assert (answer.code, words in answer.err) == (3, True)
    assert leakbound(command, file, *claim, "--lenient").code == 0
    for more, code in ((), 3), (("--lenient",), 0):
        told = json.loads(leakbound(command, file, *claim, "--json", *more).out)
        assert told["exit_code"] == code


def test_an_exact_half_passes_as_a_split(table: Callable[[str], Path]) -> None:
    half = table(csv_text(score=NOISE, member=HALF))
    split = ("--untouched", "--relation", "replace")
    assert leakbound("split", half, "--claim", "eps=1", *split).code == 0
