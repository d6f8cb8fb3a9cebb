"""`--unit` and `--groups` before training: a plan and a commitment of users."""

from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import csv_text, leakbound
from leakbound.planning import load_opening

ASKED = ("--truth", "3", "--target", "0.5", "--simulations", "20")
USERS = np.repeat([f"u{place:02}" for place in range(60)], 3)
PROTOCOL = (
    'claim = { type = "PureDP" }\nconfidence = 0.95\ncuts = "auto"\nsides = "auto"\n'
    'attacks = ["score"]\nunit = "one user"\ncanaries = "made up"\n'
)


@pytest.fixture
def protocol(tmp_path: Path) -> Path:
    path = tmp_path / "protocol.toml"
    path.write_text(PROTOCOL + 'groups = "the column user"\n', encoding="utf-8")
    return path


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text(csv_text(user=USERS, row=np.arange(USERS.size)), encoding="utf-8")
    return path


def folders(place: Path) -> tuple[object, ...]:
    return ("--out", place / "public", "--secret", place / "secret")


def test_a_plan_counts_what_the_coins_decide_on() -> None:
    answer = leakbound("plan", "-m", "200", *ASKED, "--unit", "hospital")
    assert answer.out.startswith("With 200 hospitals, an attack of strength ε = 3 proves ε ≥ 0.50")
    assert "Next: leakbound coins scores.csv --claim eps=0.5 --unit hospital" in answer.out
    pairs = leakbound("plan", "-m", "200", *ASKED, "--unit", "user", "--sides", "pairs")
    assert pairs.out.startswith("With 200 pairs of users, ")
    assert "--untouched" in pairs.out
    each = leakbound("plan", "--subgroups", "200,30", "--target", "2", "--unit", "user")
    assert "users" in each.out.splitlines()[2]
    assert (
        "unit must be a singular noun"
        in leakbound("plan", "-m", "200", *ASKED, "--unit", "two words").refusal
    )


def test_a_plan_without_a_unit_counts_canaries() -> None:
    answer = leakbound("plan", "-m", "200", *ASKED)
    assert answer.out.startswith("With 200 canaries, ")
    assert "--unit" not in answer.out


def test_a_commitment_of_users_is_audited_and_verified(
    protocol: Path, records: Path, tmp_path: Path
) -> None:
    answer = leakbound("commit", protocol, "--ids", records, "--groups", "user", *folders(tmp_path))
    assert answer.code == 0, answer.err
    plan = load_opening(tmp_path / "secret").plan
    assert (len(plan), plan.unit, plan.ids[:2].tolist()) == (60, "user", ["u00", "u01"])
    inside = np.isin(USERS, plan.ids[plan.member])
    path = tmp_path / "scores.csv"
    score = np.arange(USERS.size) / 1000 + 2.0 * inside
    path.write_text(csv_text(user=USERS, score=score), encoding="utf-8")
    audited = ("coins", path, "--opening", tmp_path / "secret", "--groups", "user")
    bundle = tmp_path / "bundle"
    found = leakbound(*audited, "--bundle", bundle, "--json-full")
    result = lb.AuditResult.from_json(found.out)
    assert (result.m, result.wording.unit) == (60, "user")
    assert lb.evidence.verify_bundle(bundle, page=False).valid


def test_a_unit_is_what_a_coin_decides_on(protocol: Path, records: Path, tmp_path: Path) -> None:
    protocol.write_text(PROTOCOL, encoding="utf-8")
    leakbound("commit", protocol, "-m", "40", "--unit", "hospital", *folders(tmp_path / "a"))
    assert load_opening(tmp_path / "a" / "secret").plan.unit == "hospital"
    named = (protocol, "--ids", records, "--groups", "row", "--unit", "document")
    leakbound("commit", *named, *folders(tmp_path / "b"))
    plan = load_opening(tmp_path / "b" / "secret").plan
    assert (plan.unit, plan.ids.dtype.kind, plan.ids.tolist()) == ("document", "i", [*range(180)])
    refused: dict[tuple[object, ...], str] = {
        ("-m", "5", "--ids", records): "give either --examples M or --ids FILE",
        ("-m", "5", "--groups", "user"): "--groups names a column of --ids FILE: add that file",
        ("--ids", records): "no column 'id'",
        ("--ids", records, "--groups", "user", "--unit", "a b"): "unit must be a singular noun",
        (
            "--plan",
            tmp_path / "b" / "secret" / "plan.npz",
            "--unit",
            "user",
        ): "already has its unit",
    }
    for options, words in refused.items():
        assert words in leakbound("commit", protocol, *options, *folders(tmp_path / "c")).refusal


def test_an_id_that_occurs_twice_needs_groups(protocol: Path, tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("id\na\nb\na\n", encoding="utf-8")
    refusal = leakbound("commit", protocol, "--ids", path, *folders(tmp_path)).refusal
    assert "twice.csv: id a occurs 2 times: give each row its own, or name them as" in refusal
