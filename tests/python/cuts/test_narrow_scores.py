"""Scores that float32 holds: ties are broken by sorting them as integers."""

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.streams import Purpose
from leakbound.cuts import games


def scores(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Ties of many kinds: rounded scores, both zeros, both infinities."""
    rng = np.random.default_rng(m)
    values = np.round(rng.normal(size=m), 2).astype(np.float32).astype(np.float64)
    for special in (-0.0, 0.0, np.inf, -np.inf):
        values[rng.random(m) < 0.05] = special
    return values, rng.random(m) < 0.5


@pytest.mark.parametrize("m", [1, 2, 7, 999, 2500])
def test_the_order_is_that_of_ranks(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "_PART_SIZE", 1000)
    values, member = scores(m)
    game = games.ScoreGame(scores=values, member=member, sides="both", seed=3)
    by_rank = member[np.argsort(-game.ranks(values))]
    found = games._members_in_order(values, member, Purpose.TIES.rng(3))
    np.testing.assert_array_equal(found, by_rank)
    if m > 2:
        untied = game.untied()
        plain = lb._core.Ranking(game.ranks(values), member)
        assert (untied.auc, untied.blocks, untied.members) == (plain.auc, m, plain.members)
        assert untied.path("ends").count(m // 2) == plain.path("ends").count(m // 2)


def test_scores_that_float32_rounds_are_ranked_as_float64() -> None:
    values, _ = scores(2500)
    assert games._is_narrow(values)
    for other in (values + 1e-12, np.full(3, 1e300), np.array([1.0, 1e-46])):
        assert not games._is_narrow(other)


def test_both_give_one_bound() -> None:
    values, member = scores(2500)
    values[member] += 1
    single = values.astype(np.float32)
    shifted = single.astype(np.float64) * (1 + 2.0**-40)  # as many ties, and no float32
    one, other = (lb.audit(given, lb.Coins(member), seed=0) for given in (single, shifted))
    assert one.bound == other.bound > 0
    assert one.correct == other.correct
