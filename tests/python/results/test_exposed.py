"""Lists of exposed members: their false discovery rate, whatever coins have in common."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
from leakbound.errors import FormatError
from leakbound.results.one_run import RATE, exposed

GAMES, M = 400, 1000


def shares(false: Any, listed: Any) -> float:
    return float(false[listed].sum() / max(1, listed.size))


def held(found: list[float], rate: float = RATE) -> bool:
    """Return whether false discovery proportions do not refute their rate, at level 0.1 %."""
    return bool(np.mean(found) <= rate + 3.1 * np.std(found) / len(found) ** 0.5)


@pytest.mark.parametrize(
    ("leaky", "strength", "digits"),
    [(0.0, 0.0, 9), (0.05, 4.0, 9), (0.3, 2.0, 9), (0.5, 1.0, 9), (0.3, 2.0, 0), (0.05, 4.0, 1)],
)
def test_one_in_ten_of_the_listed_is_false(leaky: float, strength: float, digits: int) -> None:
    """False is who has a score that its coin does not move; ties stay together."""
    rng, false, found = np.random.default_rng(17), [], []
    for _ in range(GAMES):
        member, leaks = rng.random((2, M)) < [[0.5], [leaky]]
        scores = (rng.normal(size=M) + strength * (member & leaks)).round(digits)
        rows = exposed(scores, member, None).rows
        assert rows.size == 0 or rows.size >= 10
        assert member[rows].all()
        assert (np.diff(scores[rows]) <= 0).all()
        false.append(shares(~leaks, rows))
        found.append(np.isin(np.flatnonzero(member & leaks), rows).mean() if leaky else 0.0)
    assert held(false)
    if strength == 4.0:
        assert np.mean(found) > 0.8
        assert np.mean(false) > 0.06


@pytest.mark.parametrize("good", [0.5, 0.9, 1.0])
def test_coins_may_depend_on_each_other_given_the_output(good: float) -> None:
    """Of 100 guesses 40 are sure; of the others all are likelier right, or all likelier wrong.

    Whatever the other coins, their odds are at most e^0.8, so that these are false at η = 0.8.
    """
    rng, false = np.random.default_rng(3), []
    likely = np.exp(0.8) / (1 + np.exp(0.8))
    for _ in range(GAMES):
        right = likely if rng.random() < good else 1 - likely
        member = (np.arange(100) < 40) | (rng.random(100) < right)
        rows = exposed(-np.arange(100.0), member, None).rows
        false.append(shares(np.arange(100) >= 40, rows))
    assert held(false, RATE * float(np.exp(0.8)))
    assert np.mean(false) > RATE or good < 1


def test_of_several_attacks_each_has_its_share() -> None:
    """Whichever of four lists the coins choose, and be it the falsest, the rate holds."""
    rng, worst = np.random.default_rng(8), {1: [0.0], 4: [0.0]}
    for _ in range(GAMES):
        member, leaks = rng.random((2, M)) < [[0.5], [0.1]]
        scores = rng.normal(size=(4, M)) + 4 * (member & leaks)
        for attacks, found in worst.items():
            lists = [exposed(one, member, None, attacks).rows for one in scores]
            found.append(max(shares(~leaks, one) for one in lists))
    assert held(worst[4])
    assert not held(worst[1])


def test_a_result_has_the_list_with_ids_also_when_it_was_stored() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(M) < 0.5
    scores = rng.normal(size=M) + 4 * (member & (rng.random(M) < 0.05))
    ids = np.array([f"user {row}" for row in range(M)])
    result = lb.audit(scores, lb.Coins(member), ids=ids, seed=1)
    shown = result.exposed
    assert shown is not None
    np.testing.assert_array_equal(shown.rows, exposed(scores, member, None).rows)
    assert shown.ids == tuple(ids[shown.rows])
    stored: Any = result.to_dict()
    assert lb.AuditResult.from_dict(stored).exposed.ids == shown.ids  # type: ignore[union-attr]
    for wrong in ({"rate": 0.2}, {"ids": ["user 1"]}, {"rows": [7] * len(shown.ids)}):
        with pytest.raises(FormatError, match="that no audit lists"):
            lb.AuditResult.from_dict(stored | {"exposed": stored["exposed"] | wrong})
    two = lb.audit({"one": scores, "none": -scores}, lb.Coins(member), seed=1).exposed
    assert two is not None
    assert set(two.rows) == set(exposed(scores, member, None, 2).rows)


def test_a_result_by_an_index_names_rows_and_a_bundle_may_have_their_ids(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    member = rng.random(M) < 0.5
    named = pd.Series(rng.normal(size=M) + 3 * member, index=[f"user {i}" for i in range(M)])
    result = lb.audit(named, lb.Coins(member), seed=1)
    assert result.exposed is not None
    assert result.exposed.ids == ()
    result.bundle(tmp_path / "bundle", scores=named, plan=member)
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid
    forged: Any = result.to_dict()
    forged["exposed"]["ids"] = ["nobody"] * len(forged["exposed"]["rows"])
    with pytest.raises(FormatError, match=r"exposed\.ids"):
        lb.AuditResult.from_dict(forged).bundle(tmp_path / "other", scores=named, plan=member)


def test_only_fair_and_independent_coins_have_a_list() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(M) < 0.5
    scores = rng.normal(size=M) + 2 * member
    others: Any = [
        (scores, lb.Coins(member, prior=np.where(member, 0.5, 0.49))),
        (scores, lb.RandomSplit(member)),
        (scores, lb.ZeroRun(member, np.full(M, 0.5))),
        (lb.Tally.of(scores, member), lb.Coins()),
        (np.append(scores, np.arange(200)), lb.Coins(np.append(member, np.ones(200, bool)))),
    ]
    for data, design in others:
        assert lb.audit(data, design, seed=1).exposed is None
