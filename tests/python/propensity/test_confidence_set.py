"""The confidence set of log-odds: what it holds, what it refuses, and tests of its model's form."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from leakbound.claims import PureDP
from leakbound.errors import FitError, InputError, OptionError
from leakbound.propensity import ConfidenceSet, bet_against_set, link_bent, products_missing
from leakbound.propensity.falsification import REFUTED_BELOW
from set_search import over_set
from validity.nuisance import RIGHT_FORMS, FormTrial, People, Setting, people

SMALL = Setting(100, 200, 2, 1.0)


def fitted(game: People, level: float = 0.01, seed: int = 0) -> ConfidenceSet:
    return ConfidenceSet.fit(
        game.features, game.member, reference=game.reference, level=level, seed=seed
    )


def allowed(games: int, rate: float, chance: float = 1e-4) -> int:
    """The most failures that a rate explains, but with this probability."""
    return int(scipy_stats.binom.isf(chance, games, rate))


@pytest.mark.parametrize("law", ["normal", "binary", "heavy"])
@pytest.mark.parametrize("intercept", [0.0, 3.0])
def test_the_truth_is_inside(law: Any, intercept: float) -> None:
    missed, games = 0, 50
    for seed in range(games):
        game = people(replace(SMALL, law=law, intercept=intercept), np.random.default_rng(seed))
        try:
            missed += not fitted(game, level=0.1, seed=seed).contains(game.theta)
        except FitError as error:
            missed += "both halves" in str(error)
    assert missed <= allowed(games, 0.1)


def test_log_odds_are_those_of_the_model() -> None:
    game = people(SMALL, np.random.default_rng(1))
    found = fitted(game)
    expected = found.coefficients[0] + game.features @ found.coefficients[1:]
    np.testing.assert_allclose(found.log_odds(), expected, atol=1e-12)
    shifted = ConfidenceSet.fit(game.features, game.member, offsets=np.full(200, 0.7))
    plain = ConfidenceSet.fit(game.features, game.member)
    np.testing.assert_allclose(shifted.log_odds(), plain.log_odds(), atol=1e-7)
    edge = plain.core.leaves(np.array([0.0, 1.0, 0.0]))
    losses = [
        np.logaddexp(0, score).sum() - score[game.member].sum()
        for score in (plain.log_odds(edge), plain.log_odds())
    ]
    assert 2 * (losses[0] - losses[1]) == pytest.approx(plain.squared_radius, rel=1e-6)
    assert plain.core.largest_shift() > np.abs(plain.log_odds(edge)).max()


def test_reference_rows_make_the_set_smaller() -> None:
    game = people(Setting(2000, 200, 2, 1.0), np.random.default_rng(2))
    alone = ConfidenceSet.fit(game.features, game.member)
    together = fitted(game)
    direction = np.array([0.0, 1.0, 0.0])
    reach = [
        np.linalg.norm(one.core.leaves(direction) - one.coefficients) for one in (alone, together)
    ]
    assert reach[1] < 0.5 * reach[0]
    own = ConfidenceSet.fit(
        game.features, game.member, reference=game.reference, own_intercept=True
    )
    assert own.coefficients.size == 4
    assert own.log_odds().shape == (200,)


def test_what_has_no_set_says_why() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 2))
    member = rng.random(60) < 0.5
    marks = (np.arange(60) % 6 == 0).astype(np.float64)
    cases: list[tuple[NDArray[np.float64], NDArray[np.bool_], str]] = [
        (features, features[:, 0] > 0, "separate"),
        (
            np.column_stack([marks, features]),
            member | (marks > 0),
            "separate .*, completely or within a group",
        ),
        (np.column_stack([features, features[:, 0]]), member, "depend"),
        (np.column_stack([marks, 1 - marks]), member, "one of the indicators of all categories"),
        (features[:14], member[:14], "14 labels for 3 coefficients"),
    ]
    for table, labels, words in cases:
        with pytest.raises(FitError, match=words):
            ConfidenceSet.fit(table, labels)


def test_arguments_that_do_not_fit_are_refused() -> None:
    rng = np.random.default_rng(4)
    features, member = rng.normal(size=(60, 2)), rng.random(60) < 0.5
    with pytest.raises(InputError, match="3 features"):
        ConfidenceSet.fit(features, member, reference=(rng.normal(size=(9, 3)), np.ones(9)))
    with pytest.raises(OptionError, match="D'"):
        ConfidenceSet.fit(features, member, own_intercept=True)
    with pytest.raises(OptionError, match="level"):
        ConfidenceSet.fit(features, member, level=1.0)
    features[3, 1] = math.nan
    with pytest.raises(InputError):
        ConfidenceSet.fit(features, member)


def test_guesses_are_balanced_against_features() -> None:
    game = people(Setting(0, 2000, 5, 1.0), np.random.default_rng(5))
    weights = np.full(2000, 0.25)

    def lean(values: NDArray[np.float64]) -> float:
        return float(np.linalg.norm(np.sign(values) @ game.features))

    noisy = game.log_odds + np.random.default_rng(6).normal(size=2000)
    tested = over_set(noisy, ConfidenceSet.fit(game.features, game.member), claim=PureDP())
    residuals = tested.odds.balanced_scores(tested.game, weights, 2000)
    assert lean(residuals) < 0.02 * lean(noisy)


@pytest.mark.parametrize("setting", [SMALL, *RIGHT_FORMS[:2]], ids=str)
@pytest.mark.parametrize("test", [products_missing, link_bent])
def test_a_right_form_is_rarely_refuted(test: Any, setting: Setting) -> None:
    trial, games = FormTrial(setting=setting, test=test), 30
    refuted = sum(trial(seed) for seed in range(games))
    assert refuted <= allowed(games, REFUTED_BELOW, 1e-3)


def test_few_rows_with_certain_labels_are_no_strong_evidence() -> None:
    # one member of three rows that are hardly ever members: unlikely as one coin, no more
    rng = np.random.default_rng(10)
    features = (rng.random((3000, 2)) < 0.03).astype(np.float64)
    features[0] = 1.0
    both = features.all(axis=1)
    member = rng.random(3000) < np.where(features.any(axis=1), 0.02, 0.5)
    member[both] = False
    member[0] = True
    p_value = products_missing(ConfidenceSet.fit(features, member)).p_value
    assert 1e-4 < p_value < 0.2


def test_squares_of_binary_features_are_not_tested() -> None:
    game = people(Setting(0, 500, 3, 1.0, "binary"), np.random.default_rng(8))
    assert products_missing(ConfidenceSet.fit(game.features, game.member)).terms == 3


def test_bets_refute_a_wrong_form_and_spare_a_right_one() -> None:
    rng = np.random.default_rng(9)
    features = rng.normal(size=(3000, 2))
    bent = rng.random(3000) < 1 / (1 + np.exp(-2 * np.cos(3 * features[:, 0])))
    assert bet_against_set(ConfidenceSet.fit(features, bent)).refuted
    for seed in range(5):
        game = people(Setting(200, 800, 4, 1.0), np.random.default_rng(seed))
        verdict = bet_against_set(fitted(game), seed=seed)
        assert not verdict.refuted
        assert verdict.p_value <= 1
