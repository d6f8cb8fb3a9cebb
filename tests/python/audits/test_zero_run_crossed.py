"""Zero-Run with cross-fitted propensities, and with another correction beside matching."""

from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors
from leakbound.propensity import CrossFit, LogisticPropensity, cross_fit
from noisy_sums import NoisySum, noisy_sum

PLAIN = LogisticPropensity(calibration=None)


@pytest.fixture(scope="module")
def game() -> NoisySum:
    return noisy_sum(1600, mu=2.5, shift=0.6, features=3, seed=3)


@pytest.fixture(scope="module")
def crossed(game: NoisySum) -> CrossFit:
    return cross_fit(PLAIN, game.features, game.member, seed=4)


def test_each_fold_is_audited_by_the_model_that_did_not_see_it(
    game: NoisySum, crossed: CrossFit
) -> None:
    options: dict[str, Any] = {"seed": 5, "uncertainty": "bootstrap"}
    result = flat.zero_run(game.scores, game.member, crossed, **options)
    alone = [
        flat.zero_run(
            game.scores[rows],
            game.member[rows],
            fit,
            features=game.features[rows],
            confidence=0.975,
            **options,
        )
        for rows, fit in crossed.parts()
    ]
    bounds = [one.bound for one in alone]
    best = alone[int(np.argmax(bounds))]
    assert result.options["folds"] == bounds
    assert (result.bound, result.m, result.kept) == (best.bound, best.m, best.kept)
    assert result.bound > 0
    assert result.kind == "exploratory_lower_bound"
    assert result.options["folds_level"] == pytest.approx(0.025)
    assert result.confidence == 0.95
    assert {"scores", "member", "features"} == set(result.provenance.sha256)


def test_folds_with_several_attacks(game: NoisySum, crossed: CrossFit) -> None:
    noise = np.random.default_rng(6).normal(size=1600)
    attacks = {"noise": noise, "told": game.scores}
    ids = np.arange(1600)
    result: lb.ZeroRunResult = lb.audit(
        attacks, lb.ZeroRun(game.member, crossed, uncertainty="bootstrap"), ids=ids
    )
    assert result.options["attack"] == "told"
    assert len(result.options["folds"]) == 2
    assert result.options["level"] == pytest.approx(0.05 / 2 / 2 / 2)


def test_folds_that_do_not_fit(game: NoisySum, crossed: CrossFit) -> None:
    with pytest.raises(errors.OptionError, match="leave out features"):
        lb.audit(game.scores, lb.ZeroRun(game.member, crossed, features=game.features))
    with pytest.raises(errors.InputError, match="folds"):
        lb.audit(game.scores[:100], lb.ZeroRun(game.member[:100], crossed))


def test_a_wrong_form_withholds_the_bound() -> None:
    """A straight line is fitted to log-odds that are a square."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(3000, 1))
    odds = 3 * (features[:, 0] ** 2 - 1)
    member = rng.random(3000) < 1 / (1 + np.exp(-odds))
    given = odds + rng.normal(size=3000) / 2, member, cross_fit(PLAIN, features, member)
    for uncertainty in ("bootstrap", "set"):
        options: dict[str, Any] = {"uncertainty": uncertainty}
        result = flat.zero_run(*given, **options)
        assert (result.withheld, result.bound) == (True, 0.0)
        if uncertainty == "bootstrap":
            assert flat.zero_run(*given, release_refuted=True, **options).bound > 0.5


@pytest.mark.parametrize(
    ("options", "replicates"),
    [
        ({}, 0),
        ({}, 79),
        ({"cuts": lb.Fixed(100), "sides": "member"}, 0),
        ({"variant": "paper"}, 0),
        ({"claim": lb.PureDP(), "correction": "match"}, 0),
        ({"claim": lb.ApproxDP(delta=1e-6)}, 0),
    ],
    ids=str,
)
def test_tampering_is_reported_beside_matching(
    game: NoisySum, options: dict[str, Any], replicates: int
) -> None:
    odds = game.log_odds + 0.1 * np.random.default_rng(2).normal(size=(79, 1))
    propensity = 1 / (1 + np.exp(-odds)) if replicates else game.propensity
    given = game.scores, game.member, propensity
    matched: lb.ZeroRunResult = flat.zero_run(*given, **options)
    tampered: lb.ZeroRunResult = flat.zero_run(*given, **options | {"correction": "tamper"})
    assert matched.correction == "match"
    assert matched.by_tampering == pytest.approx(tampered.bound, abs=0.05 * tampered.bound)
    assert tampered.by_tampering is None
    assert lb.ZeroRunResult.from_json(matched.to_json()).by_tampering == matched.by_tampering
