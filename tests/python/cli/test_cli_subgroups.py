"""`--by`: a table and a folder for each label; `plan --subgroups` says before what is proved."""

import json
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import csv_text, leakbound
from leakbound import planning

RNG = np.random.default_rng(0)
SIZE = 400
MEMBER = RNG.random(SIZE) < 0.5
REGION = np.array(["north/east", "south", "South"])[RNG.integers(3, size=SIZE)]
REGION[:4] = "tiny"
SCORE = RNG.normal(size=SIZE) + 2.0 * MEMBER
EACH = lb.audit(SCORE, lb.Coins(MEMBER), by=REGION, seed=0)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    columns = {
        "score": SCORE,
        "member": MEMBER.astype(int),
        "region": REGION,
        "row": np.arange(SIZE),
    }
    path.write_text(csv_text(**columns), encoding="utf-8")
    return path


BY = ("--by", "region", "--seed", "0")


def test_a_table_has_a_row_for_each_label(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = leakbound("coins", scores, *BY, "--out", out)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == "All 4 bounds hold together (95 % confidence): pure DP."
    rows = {label: next(one for one in lines if one.startswith(label)) for label in EACH}
    assert rows["tiny"].endswith("too few to prove anything")
    for label, folder in (("north/east", "north-east"), ("south", "south-3"), ("South", "South")):
        assert rows[label].split()[1] == f"{EACH[label].m}"
        stored = (out / folder / "result.json").read_text(encoding="utf-8")
        assert lb.AuditResult.from_json(stored) == EACH[label]
        assert (out / folder / "report.html").exists()


def test_one_refuted_subgroup_refutes(scores: Path) -> None:
    best = max(one.bound for one in EACH.values())
    for claim, code in ((best - 0.01, 1), (best + 0.01, 3)):
        asked = (*BY, "--claim", f"eps={claim}", "--json")
        answer = leakbound("coins", scores, *asked)
        assert answer.code == code
        found = json.loads(answer.out)
        assert [*found] == [*EACH]
        assert found["tiny"]["checked"]["verdict"] == "inconclusive"
    full = leakbound("coins", scores, *BY, "--json-full").out
    assert json.loads(full)["south"]["bound"] == EACH["south"].bound


def test_labels_that_are_not_audited_are_said(scores: Path, tmp_path: Path) -> None:
    text = scores.read_text(encoding="utf-8").replace(",tiny,", ",one,", 1)
    path = tmp_path / "one.csv"
    path.write_text(text, encoding="utf-8")
    answer = leakbound("coins", path, *BY)
    assert answer.code == 0
    said = "one (all 1 scores are equal, so nothing can be guessed)"
    assert f"Not audited: {said}" in " ".join(answer.out.split())
    asked = (*BY, "--claim", "eps=30", "--lenient")
    assert leakbound("coins", path, *asked).code == 3  # of one subgroup nothing is known
    found = json.loads(leakbound("coins", path, *BY, "--json").out)
    assert "one" not in found
    assert {one["options"]["not_audited"] for one in found.values()} == {said}


def test_a_split_has_subgroups_too(scores: Path) -> None:
    answer = leakbound("split", scores, "--untouched", *BY)
    assert "pure DP for replacing one example." in answer.out
    expected = lb.audit(SCORE, lb.RandomSplit(MEMBER), by=REGION, seed=0)["south"]
    assert f"{expected.correct} of {expected.guesses}" in answer.out


def test_what_by_does_not_go_with_is_said(scores: Path, tmp_path: Path) -> None:
    refusal = leakbound("coins", scores, *BY, "--bundle", tmp_path / "bundle").refusal
    assert "--bundle holds one result, and --by gives one for each label" in refusal
    assert "--by" in leakbound("coins", scores, scores, *BY).refusal
    assert "no column 'place'" in leakbound("coins", scores, "--by", "place").refusal
    each = leakbound("coins", scores, "--by", "row").refusal
    assert "at 1/400 of the error probability even a perfect attack proves nothing" in each


def test_a_plan_says_which_subgroups_are_too_small() -> None:
    answer = leakbound("plan", "--subgroups", "200, 30,4", "--target", "2")
    assert answer.code == 3
    assert answer.out.startswith("1 of 3 subgroups can prove ε ≥ 2.00, pure DP, each at 1/3 of")
    by = np.repeat([0, 1, 2], [200, 30, 4])
    most = planning.ceilings(by)
    assert most[2] == 0 < most[1] < 2 < most[0]
    assert "too few to prove anything" in answer.out
    assert leakbound("plan", "--subgroups", "200", "--target", "2").code == 0
    for wrong in ("0", "a", "20,", "9999999"):
        assert "must list numbers" in leakbound("plan", "--subgroups", wrong, "--target", 2).refusal


def test_the_ceilings_of_a_plan_are_those_of_the_audit() -> None:
    sizes = [7, 8, 60, 300]
    by = np.repeat(np.arange(4), sizes)
    member = np.concatenate([np.arange(size) < size // 2 for size in sizes])
    for claim in (lb.PureDP(), lb.GaussianDP()):
        planned = planning.ceilings(by, claim=claim)
        found = lb.audit(RNG.normal(size=by.size), lb.Coins(member), by=by, claim=claim, seed=0)
        for label, one in found.items():
            assert planned[label] == pytest.approx(one.ceiling)
    user = np.repeat(by, 2), np.repeat(np.arange(by.size), 2)
    assert planning.ceilings(user[0], groups=user[1]) == planning.ceilings(by)
