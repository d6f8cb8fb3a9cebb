"""What audits draw: a new seed each time, which the result records and which repeats it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import flat
import leakbound as lb
from leakbound.attacks.synthetic import Tables
from leakbound.propensity import (
    ConfidenceSet,
    LogisticPropensity,
    bet_against_set,
    cross_fit,
    falsify,
    hold_out,
)

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(3)
MEMBER = RNG.random(300) < 0.5
SCORES = (RNG.normal(size=300) + 2.0 * MEMBER).round()  # tied
FEATURES = RNG.normal(size=(300, 2))
SET = ConfidenceSet.fit(FEATURES, MEMBER, seed=0)

Recorded = tuple[Any, int | None]
"""What a call returns, and the seed that it records, if it has a place for one."""


def told(result: Any) -> Recorded:
    assert result.provenance.seed == result.options["seed"]
    return result, result.options["seed"]


def synthetic(seed: int | None) -> Recorded:
    made = FEATURES[MEMBER] + 0.1
    return told(lb.audit_synthetic(FEATURES[MEMBER], FEATURES[~MEMBER], made, seed=seed))


def panoramia(seed: int | None, **options: Any) -> Recorded:
    return told(flat.panoramia(SCORES[::-1], SCORES, MEMBER, seed=seed, **options))


def zero_run(propensity: Any, seed: int | None, **options: Any) -> Recorded:
    return told(flat.zero_run(SCORES, MEMBER, propensity, seed=seed, **options))


def one_run(seed: int | None, **options: Any) -> Recorded:
    return told(flat.coins(SCORES, MEMBER, seed=seed, **options))


def own(found: Any, value: Callable[[Any], Any]) -> Recorded:
    return value(found), found.seed


def crossed(seed: int | None) -> Recorded:
    found = cross_fit(LogisticPropensity(), FEATURES, MEMBER, seed=seed)
    (recorded,) = {one.seed for one in found.fits}
    odds = [fit.log_odds(FEATURES).tolist() for fit in found.fits]
    return [found.fold.tolist(), *odds], recorded


def bootstrap(seed: int | None) -> Recorded:
    model = LogisticPropensity(calibration=None).fit(FEATURES, MEMBER, seed=0)
    return model.bootstrap(FEATURES, K=2, seed=seed).tolist(), None


CALLS: dict[str, Callable[[int | None], Recorded]] = {
    "one run": one_run,
    "Gaussian": lambda seed: one_run(seed, claim=lb.GaussianDP()),
    "random split": lambda seed: one_run(seed, design="random_split", features=FEATURES),
    "tally": lambda seed: told(
        lb.audit(lb.Tally.of(SCORES, MEMBER), lb.Coins(), claim=lb.GaussianDP(), seed=seed)
    ),
    "panoramia": lambda seed: panoramia(seed, gamma=0.01, features=FEATURES),
    "real non-members": lambda seed: panoramia(seed, real_nonmembers=True),
    "zero run": lambda seed: zero_run(np.full(300, 0.5), seed, features=FEATURES),
    "over a set": lambda seed: zero_run(LogisticPropensity(), seed, features=FEATURES),
    "synthetic": synthetic,
    "fit": lambda seed: own(
        LogisticPropensity().fit(FEATURES, MEMBER, seed=seed),
        lambda found: found.log_odds(FEATURES).tolist(),
    ),
    "cross-fit": crossed,
    "confidence set": lambda seed: own(
        ConfidenceSet.fit(FEATURES, MEMBER, seed=seed), lambda found: found.squared_radius
    ),
    "falsify": lambda seed: own(falsify(np.zeros(300), FEATURES, MEMBER, seed=seed), repr),
    "tables": lambda seed: own(
        Tables.of({"x": ["a", "b"] * 20}, {"x": ["a"]}, seed=seed),
        lambda found: found.points.tolist(),
    ),
    "bets": lambda seed: (bet_against_set(SET, seed=seed), None),
    "hold-out": lambda seed: (hold_out(np.arange(300), size=150, seed=seed)[0].tolist(), None),
    "bootstrap": bootstrap,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_seed_is_drawn_once_recorded_and_repeats_to_the_bit(name: str, fresh: list[int]) -> None:
    found, recorded = CALLS[name](None)
    (seed,) = fresh
    assert recorded in {seed, None}
    assert 0 <= seed < 2**53
    assert CALLS[name](seed) == (found, recorded)
    assert len(fresh) == 1  # a seed that is passed is the only one
    _, other = CALLS[name](None)
    assert recorded is None or other != recorded


def test_a_run_of_panoramia_draws_three_seeds(fresh: list[int]) -> None:
    assert lb.panoramia.Options().seeds == tuple(fresh)
    assert len(set(fresh)) == 3


def false_claims(games: range, seed: int | None) -> int:
    """Count bounds above 0 at 90 %, on noise that is sorted in its file."""
    found = 0
    for game in games:
        rng = np.random.default_rng(50_000 + game)
        split = lb.RandomSplit(rng.permutation(200) < 100)
        own = 90_000 + game if seed is None else seed
        found += lb.audit(np.sort(rng.normal(size=200)), split, confidence=0.9, seed=own).bound > 0
    return found


def test_the_confidence_is_over_the_seed_and_not_for_each_one() -> None:
    """docs/theory/random-splits.md says so: seed 14 is the worst of 24 in other games."""
    assert binomtest(false_claims(range(300), None), 300, 0.1, "greater").pvalue > 1e-3
    assert binomtest(false_claims(range(400, 600), 14), 200, 0.1, "greater").pvalue < 1e-6
