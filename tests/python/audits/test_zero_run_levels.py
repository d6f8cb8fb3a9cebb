"""Matching where labels choose the number of guesses from the outside in."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits.zero_run.set_levels import choose_level
from leakbound.audits.zero_run.set_study import SetStudy
from leakbound.propensity import ConfidenceSet, LogisticPropensity
from leakbound.stats.distribution_shift import match

M = 1500


def game(seed: int, mu: float) -> tuple[FloatArray, BoolArray, FloatArray, FloatArray, BoolArray]:
    """Scores, membership and features, and features and membership of as many other examples."""
    rng = np.random.default_rng([seed, 31])
    features = rng.normal(size=(2 * M, 2))
    member = rng.random(2 * M) < expit(features[:, 0])
    scores = rng.normal(size=M) + mu * member[:M]
    return scores, member[:M], features[:M], features[M:], member[M:]


def study(claim: Any, sides: SidesChoice, mu: float, **more: Any) -> SetStudy:
    scores, member, features, others, known = game(0, mu)
    found = ConfidenceSet.fit(features, member, reference=(others, known), level=0.01, seed=0)
    options: dict[str, Any] = {
        "scores": scores,
        "found": found,
        "claim": claim,
        "level": 0.04,
        "sides": sides,
        "guesses": None,
        "planned": LogisticPropensity().fit(others, known).log_odds(features),
        "ties": np.arange(M),
        "uniforms": np.random.default_rng(1).random((3, M)),
        "seed": 0,
    }
    return SetStudy(**(options | more))


@pytest.mark.parametrize(
    ("claim", "sides"), [(lb.GaussianDP(), "both"), (lb.ApproxDP(delta=1e-5), "member")], ids=repr
)
def test_the_choice_reads_no_label_within(claim: Any, sides: SidesChoice) -> None:
    """Labels of all who may be guessed about are turned at random: the level stays."""
    rng, met = np.random.default_rng(2), set()
    for mu in (0.0, 1.0, 2.0, 6.0):
        one = study(claim, sides, mu)
        chosen = choose_level(one)
        assert chosen is not None
        met.add(chosen.index)
        for chance in (0.0, 0.5, 1.0):
            member = one.found.member.copy()
            member[chosen.inside] = rng.random(int(chosen.inside.sum())) < chance
            again = choose_level(replace(one, found=replace(one.found, member=member)))
            assert again is not None
            assert again.index == chosen.index
            assert (again.inside == chosen.inside).all()
            assert (again.ranks() == chosen.ranks()).all()
    assert len(met) > 2


@pytest.mark.parametrize("sides", ["both", "member"])
def test_guesses_stay_within_their_set(sides: SidesChoice) -> None:
    """Where few are kept, fewer guesses are made: none about an example that was looked at."""
    one = study(lb.GaussianDP(), sides, 2.0)
    chosen = choose_level(one)
    assert chosen is not None
    order = np.argsort(-chosen.ranks())
    within = chosen.inside[order]
    top = int(np.argmin(within))
    assert within[:top].all()
    if sides == "member":
        assert top == chosen.inside.sum()
    else:
        assert within[top - chosen.inside.sum() :].all()
    # nearly always as many are kept as there are guesses
    for uniforms in np.random.default_rng(3).random((200, M)):
        kept = match(one.found.member, one.found.features[:, 0], uniforms)
        assert (kept & chosen.inside).sum() >= 0.97 * chosen.guesses


def test_there_is_nothing_to_choose_where_nothing_tells_how_many_are_kept() -> None:
    for more in (
        {"planned": np.zeros(M)},
        {"guesses": 100},
        {"claim": lb.PureDP()},
    ):
        options: dict[str, Any] = {"claim": lb.GaussianDP()} | more
        claim = options.pop("claim")
        assert choose_level(study(claim, "both", 1.0, **options)) is None


def test_fewer_kept_than_guesses_is_a_level_of_its_own() -> None:
    one = study(lb.GaussianDP(), "both", 6.0)
    chosen = choose_level(one)
    assert chosen is not None
    kept = chosen.guesses - 10
    bounds = [chosen.proved(kept - wrong, kept) for wrong in (60, 20, 5, 0)]
    assert bounds[0] > 0
    assert bounds == sorted(set(bounds))
    # as many guesses as examples: the number by itself proves nearly as much
    assert 0.9 * one.fair(kept, kept, kept) < bounds[-1] < 1.01 * one.fair(kept, kept, kept)
    assert chosen.proved(2, 2) == 0


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
    assert "too few for the cuts" in few.reason
