"""Matching where labels choose the number of guesses from the outside in."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits.zero_run.levels import ChosenGuesses
from leakbound.propensity import ConfidenceSet, LogisticPropensity
from leakbound.stats.distribution_shift import match
from set_search import OverSet, over_set

M = 1500


def game(seed: int, mu: float) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray, BoolArray]:
    """Scores, membership and features, and features and membership of as many other examples."""
    rng = np.random.default_rng([seed, 31])
    features = rng.normal(size=(2 * M, 2))
    member = rng.random(2 * M) < expit(features[:, 0])
    scores = rng.normal(size=M) + mu * member[:M]
    return scores, member[:M], features[:M], features[M:], member[M:]


def over_plausible(claim: Any, sides: SidesChoice, mu: float) -> OverSet:
    scores, member, features, others, known = game(0, mu)
    found = ConfidenceSet.fit(features, member, reference=(others, known), level=0.01, seed=0)
    guide = LogisticPropensity().fit(others, known).log_odds(features)
    return over_set(scores, found, claim=claim, sides=sides, guide=guide, correction="match")


def chosen_level(one: OverSet) -> ChosenGuesses | None:
    first, *_ = one.matchings()
    return first.chosen if first.chosen.levels else None


def inside(level: ChosenGuesses) -> BoolArray:
    """Who may be guessed about."""
    within = np.zeros(M, dtype=np.bool_)
    within[level.order.rows[: level.inside]] = True
    return within


@pytest.mark.parametrize(
    ("claim", "sides"), [(lb.GaussianDP(), "both"), (lb.ApproxDP(delta=1e-5), "member")], ids=repr
)
def test_the_choice_reads_no_label_within(claim: Any, sides: SidesChoice) -> None:
    """Labels of all who may be guessed about are turned at random: the level stays."""
    rng, met = np.random.default_rng(2), set()
    for mu in (0.0, 1.0, 2.0, 6.0):
        one = over_plausible(claim, sides, mu)
        chosen = chosen_level(one)
        assert chosen is not None
        met.add(chosen.index)
        for chance in (0.0, 0.5, 1.0):
            member = one.game.member.copy()
            member[inside(chosen)] = rng.random(chosen.inside) < chance
            again = chosen_level(replace(one, game=replace(one.game, member=member)))
            assert again is not None
            assert again.index == chosen.index
            assert (inside(again) == inside(chosen)).all()
            assert (again.order.rows == chosen.order.rows).all()
    assert len(met) > 2


@pytest.mark.parametrize("sides", ["both", "member"])
def test_guesses_stay_within_their_set(sides: SidesChoice) -> None:
    """Where few are kept, fewer guesses are made: none about an example that was looked at."""
    one = over_plausible(lb.GaussianDP(), sides, 2.0)
    chosen = chosen_level(one)
    assert chosen is not None
    signs = chosen.order.signs[: chosen.inside]
    assert signs.sum() == (chosen.inside if sides == "member" else chosen.inside % 2)
    assert np.unique(chosen.order.rows).size == M
    # nearly always as many are kept as there are guesses
    log_odds = game(0, 2.0)[2][:, 0]
    for uniforms in np.random.default_rng(3).random((200, M)):
        kept = match(one.game.member, log_odds, uniforms)
        assert (kept & inside(chosen)).sum() >= 0.97 * chosen.guesses


def test_there_is_nothing_to_choose_where_nothing_tells_how_many_are_kept() -> None:
    one = over_plausible(lb.GaussianDP(), "both", 1.0)
    unguided = replace(one.odds, guide=np.zeros(M))
    fixed = replace(one.correction, cuts=lb.Fixed(100))
    assert chosen_level(replace(one, odds=unguided)) is None
    assert chosen_level(replace(one, correction=fixed)) is None


def test_fewer_kept_than_guesses_is_a_level_of_its_own() -> None:
    one = over_plausible(lb.GaussianDP(), "both", 6.0)
    chosen = chosen_level(one)
    assert chosen is not None
    kept = chosen.guesses - 10
    bounds = [chosen.proved((kept - wrong, kept, kept)) for wrong in (60, 20, 5, 0)]
    assert bounds[0] > 0
    assert bounds == sorted(set(bounds))
    # as many guesses as examples: the number by itself proves nearly as much
    alone = one.correction.bound_of_counts(one.game, (kept, kept, kept), chosen.level)
    assert 0.9 * alone < bounds[-1] < 1.01 * alone
    assert chosen.proved((2, 2, 2)) == 0


def test_levels_of_ones_own() -> None:
    scores, member, features, *_ = game(4, 2.0)
    propensity = expit(features[:, 0])
    options: dict[str, Any] = {"correction": "match"}
    result = flat.zero_run(scores, member, propensity, cuts=lb.OutsideIn([100, 300]), **options)
    assert result.guesses in {100, 300}
    few = flat.zero_run(
        scores[:200], member[:200], propensity[:200], cuts=lb.OutsideIn([50, 199]), **options
    )
    assert few.bound == 0
    assert "too few for the tested thresholds" in few.reason
