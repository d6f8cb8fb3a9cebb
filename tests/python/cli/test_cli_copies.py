"""Copies of canaries on the command line: audits, plans and commitments."""

from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import csv_text, leakbound
from leakbound.claims import grouped
from leakbound.planning import ChoicePlan, load_opening

PLAN = lb.InclusionPlan.create(300, seed=5, copies=10)
SCORES = 10 * PLAN.member + np.random.default_rng(0).laplace(scale=2, size=300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PLAN.save(tmp_path / "plan.npz")
    text = csv_text(id=np.arange(300), score=SCORES, member=PLAN.member.astype(int))
    (tmp_path / "scores.csv").write_text(text)
    return tmp_path


def test_coins_take_copies_from_the_plan_or_as_stated(folder: Path) -> None:
    scores, plan = folder / "scores.csv", folder / "plan.npz"
    expected = lb.audit(SCORES, lb.Coins(PLAN), ids=np.arange(300), seed=0)
    for how in (("--copies", "10"), ("--plan", plan), ("--plan", plan, "--copies", "10")):
        answer = leakbound("coins", scores, *how, "--seed", "0", "--json-full")
        found = lb.AuditResult.from_json(answer.out)
        assert (found.bound, found.copies) == (expected.bound, 10)
    refused = leakbound("coins", scores, "--plan", plan, "--copies", "3")
    assert (refused.code, "drawn for 10 copies" in refused.err) == (2, True)
    for copies, words in (("0", "at least 1"), ("1.5", "integer"), ("301", "300 records")):
        refused = leakbound("coins", scores, "--copies", copies)
        assert (refused.code, words in " ".join(refused.err.split())) == (2, True)


def test_a_claim_about_one_record_is_tested_of_all_copies(folder: Path) -> None:
    scores = folder / "scores.csv"
    claim = ("--claim", "eps=0.2,delta=1e-6", "--copies", "10")
    answer = leakbound("coins", scores, *claim, "--json-full")
    found = lb.AuditResult.from_json(answer.out)
    assert answer.code == 1
    assert found.claim == lb.ApproxDP(delta=grouped(0.2, 1e-6, copies=10)[1])
    assert found.checked is not None
    assert (found.checked.value, found.checked.delta) == (0.2, 1e-6)
    assert leakbound("coins", scores, "--claim", "eps=0.3", "--copies", "10").code == 1
    assert leakbound("coins", scores, "--claim", "eps=0.45", "--copies", "10").code == 0
    assert leakbound("coins", scores, "--claim", "eps=1", "--copies", "10").code == 3
    refused = leakbound("coins", scores, "--claim", "eps=0.2,delta=0.2", "--copies", "10")
    assert (refused.code, "says nothing about 10 copies" in refused.err) == (2, True)


def test_choices_take_copies(tmp_path: Path) -> None:
    plan = ChoicePlan.create(100, 3, seed=1, copies=4)
    plan.save(tmp_path / "plan.npz")
    table = 9 * np.eye(3)[plan.chosen] + np.random.default_rng(0).normal(size=(100, 3))
    columns = {f"score_{i}": table[:, i] for i in range(3)}
    text = csv_text(id=np.arange(100), chosen=plan.chosen, **columns)
    (tmp_path / "scores.csv").write_text(text)
    bounds = [
        lb.AuditResult.from_json(
            leakbound("choices", tmp_path / "scores.csv", *how, "--json-full").out
        ).bound
        for how in (("--plan", tmp_path / "plan.npz"), ("--copies", "4"), ())
    ]
    assert bounds[0] == bounds[1] == pytest.approx(bounds[2] / 4)


def test_a_plan_of_copies_names_the_command_of_its_audit() -> None:
    asked = ("--truth", "0.4", "--target", "0.2", "--copies", "10", "--simulations", "20")
    answer = leakbound("plan", *asked)
    assert (
        "canaries, each inserted 10 times, an attack of strength ε = 0.4 proves ε ≥ 0.20"
        in answer.out
    )
    assert "Next: leakbound coins scores.csv --claim eps=0.2 --copies 10" in answer.out
    claimed = leakbound("plan", "--claim", "mu=0.1", "-m", "200", *asked[4:])
    assert "--claim mu=0.1 --copies 10" in claimed.out


def test_a_commitment_has_copies(tmp_path: Path) -> None:
    protocol = tmp_path / "protocol.toml"
    protocol.write_text(
        'claim = { type = "PureDP" }\nconfidence = 0.95\ncuts = "auto"\nsides = "auto"\n'
        'attacks = ["score"]\nunit = "one canary"\ncanaries = "made up"\n'
    )
    folders = ("--out", tmp_path / "public", "--secret", tmp_path / "secret")
    leakbound("commit", protocol, "-m", "50", "--copies", "5", *folders)
    opening = load_opening(tmp_path / "secret")
    assert (opening.plan.copies, opening.protocol["copies"]) == (5, 5)
    text = csv_text(id=np.arange(50), score=np.arange(50) + 9.0 * opening.plan.member)
    (tmp_path / "scores.csv").write_text(text)
    audited = ("coins", tmp_path / "scores.csv", "--opening", tmp_path / "secret")
    found = lb.AuditResult.from_json(leakbound(*audited, "--json-full").out)
    assert found.copies == 5
    refused = leakbound(*audited, "--copies", "2")
    assert (refused.code, "the protocol has 5" in refused.err) == (2, True)
