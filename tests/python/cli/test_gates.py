"""Gates: what a pipeline reads of an audit, and codes that never take one thing for another."""

import json
from collections.abc import Callable
from pathlib import Path

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
    answer = leakbound("coins", scores, "--claim", claim, "--json")
    assert answer.code == code
    found = json.loads(answer.out)["checked"]
    names = ("parameter", "value", "delta", "verdict")
    assert tuple(found[name] for name in names) == checked


def test_a_claim_does_not_pass_on_warnings(table: Callable[[str], Path]) -> None:
    noise = np.random.default_rng(1).normal(size=MEMBER.size)
    weak = table(csv_text(score=SCORE / 2 + noise, member=MEMBER))
    assert leakbound("coins", weak, "--claim", "eps=3").code == 0
    tied = table(csv_text(score=(SCORE / 2 + noise).round(), member=MEMBER))
    answer = leakbound("coins", tied, "--claim", "eps=3", "--json")
    assert answer.code == 3
    assert answer.err.startswith("leakbound: in doubt (--lenient lets the claim pass): ")
    assert "of the examples share their score" in answer.err
    assert json.loads(answer.out)["checked"]["verdict"] == "not refuted"
    assert leakbound("coins", tied, "--claim", "eps=3", "--lenient").code == 0
    assert leakbound("coins", tied).code == 0  # nothing was claimed
    rounded = table(csv_text(score=SCORE.round(), member=MEMBER))
    for options in ((), ("--lenient",)):
        assert leakbound("coins", rounded, "--claim", "eps=0.01", *options).code == 1


def test_a_claim_does_not_pass_on_inverted_scores(table: Callable[[str], Path]) -> None:
    """They refute nothing, whatever leaks: turned round, these refute ε = 1."""
    inverted = table(csv_text(score=-SCORE, member=MEMBER))
    answer = leakbound("coins", inverted, "--claim", "eps=1")
    assert answer.code == 3
    assert "the scores look inverted" in answer.err
    assert leakbound("coins", inverted, "--claim", "eps=1", "--lenient").code == 0


def test_a_claim_does_not_pass_on_contradicted_assumptions(table: Callable[[str], Path]) -> None:
    member = np.arange(400) < 238  # fair coins give so many once in ten thousand times
    noise = np.random.default_rng(0).normal(size=400)
    file = table(csv_text(score=noise, member=member))
    assert leakbound("coins", file).code == 0
    answer = leakbound("coins", file, "--claim", "eps=1")
    assert answer.code == 3
    assert "contradicted: independent fair coins" in answer.err
    assert leakbound("coins", file, "--claim", "eps=1", "--lenient").code == 0
    panoramia = table(csv_text(baseline_score=noise, score=-noise, member=member))
    joint = ("--claim", "c=1,eps=1")
    assert leakbound("panoramia", panoramia, *joint).code == 3
    assert leakbound("panoramia", panoramia, *joint, "--lenient").code == 0


def test_a_claim_does_not_pass_on_an_exact_half_taken_for_coins(
    table: Callable[[str], Path],
) -> None:
    noise = np.random.default_rng(0).normal(size=1000)
    half = table(csv_text(score=noise, member=np.arange(1000) < 500))
    answer = leakbound("coins", half, "--claim", "eps=1")
    assert answer.code == 3
    assert "leakbound split" in answer.err
    split = ("--untouched", "--relation", "replace")
    assert leakbound("split", half, "--claim", "eps=1", *split).code == 0
