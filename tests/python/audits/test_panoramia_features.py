"""The conditional lower bound of an audit with features: over a set, refutable, seldom wrong."""

from functools import cache

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.features import FeatureTable
from leakbound.audits.panoramia.conditional import of_audited
from leakbound.errors import InputError
from leakbound.panoramia.scores import in_deviations
from leakbound.stats import binomial_tail

SHIFT = 1.0


def game(
    seed: int, *, m: int, leak: float, known: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores of baseline and attack, coins and features; the target says each coin with odds ε.

    Members have a first feature N(½, 1) and generated examples N(-½, 1), so that λ(x) is that
    feature. The second is noise. Randomised response on the coin is ε-DP exactly, for ε = `leak`.
    """
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    x = rng.normal(size=(m, 2))
    x[:, 0] += SHIFT * (member - 0.5)
    said = member ^ (rng.random(m) > 1 / (1 + np.exp(-leak)))
    baseline = known * x[:, 0] + (1 - known) * rng.normal(size=m)
    return baseline, x[:, 0] + leak * (2.0 * said - 1), member, x


@cache
def audited(seed: int = 1, leak: float = 2.0) -> lb.PanoramiaResult:
    baseline, attack, member, x = game(seed, m=1000, leak=leak)
    return lb.audit(attack, lb.Panoramia(member, baseline=baseline, features=x))


def test_both_corrections_stand_beside_the_estimate() -> None:
    result = audited()
    assert result.kind == "estimate"
    assert result.conditional is not None
    assert result.conditional_by_match is not None
    assert result.conditionals == (result.conditional, result.conditional_by_match)
    for found, correction in zip(result.conditionals, ("poisson_binomial", "match"), strict=True):
        assert found.correction == correction
        assert found.kind == "conditional_lower_bound"
        assert (found.confidence, found.m) == (0.95, 1000)
        assert 0.5 < found.bound <= 2.0
        assert found.naive >= 0
        assert found.learnt is not None
        assert found.learnt.columns.tolist() == [0, 2]  # the baseline is the first feature
        assert found.tested is not None
        assert not found.withheld
        assert found.options["set_level"] == pytest.approx(0.01)
        assumed = {one.name: one.status for one in found.assumptions}
        assert assumed["replace one example"] == "declared"
        assert "add or remove one example" not in assumed


def test_far_values_are_drawn_in_and_keep_their_order() -> None:
    values = np.array([-1e6, -40.0, -3.0, 0.0, 1.5, 3.0, 40.0, 41.0, 1e6])
    known = np.array([-1.0, 1.0])
    drawn = in_deviations(values[:, None], known[:, None])[:, 0]
    assert np.array_equal(drawn[2:6], values[2:6])
    assert np.all(np.diff(drawn) > 0)
    assert drawn[-1] < 20


def test_infinite_baseline_scores_count_as_the_largest_finite_ones() -> None:
    features = FeatureTable(np.arange(4.0)[:, None], names=("x",))
    baseline = np.array([-np.inf, 0.0, 1.0, np.inf])
    learning = of_audited(baseline, features)
    finite = of_audited(np.array([0.0, 0.0, 1.0, 1.0]), features)
    assert np.array_equal(learning.features, finite.features)
    signs = of_audited(np.sign(baseline - 0.5) * np.inf, features)
    assert np.array_equal(np.sign(signs.features[:, 0]), [-1, -1, 1, 1])


def test_what_features_do_not_say_withholds_it() -> None:
    """A logistic regression misses a shift in the spread, which the sceptic sees."""
    rng = np.random.default_rng(4)
    member = rng.random(1500) < 0.5
    x = rng.normal(size=(1500, 1)) * np.where(member, 3.0, 0.5)[:, None]
    attack = np.abs(x[:, 0]) + 0.01 * rng.normal(size=1500)
    result = lb.audit(attack, lb.Panoramia(member, baseline=rng.normal(size=1500), features=x))
    assert result.conditional is not None
    assert result.conditional.withheld
    assert result.conditional.bound == 0
    assert sum("withheld" in text for text in result.warnings) == 1
    assert "withheld" in repr(result)
    assert result.bound > 0  # and the estimate is all the generator's


def test_an_approximate_guarantee_is_audited_by_matching() -> None:
    baseline, attack, member, x = game(6, m=1000, leak=3.0)
    result = lb.audit(
        attack, lb.Panoramia(member, baseline=baseline, features=x), claim=lb.ApproxDP(delta=1e-6)
    )
    assert result.conditional is not None
    assert result.conditional.correction == "match"
    assert result.conditional.claim == lb.ApproxDP(delta=1e-6)
    assert result.conditional_by_match is None
    assert 0 < result.conditional.bound <= 3


def test_coins_that_features_separate_prove_nothing() -> None:
    rng = np.random.default_rng(8)
    member = rng.random(60) < 0.5
    x = np.where(member, 1e6, -1e6)[:, None] + rng.normal(size=(60, 1))
    result = lb.audit(x[:, 0], lb.Panoramia(member, baseline=x[:, 0], features=x))
    for found in result.conditionals:
        assert found.bound == 0
        assert "separate" in found.reason
    assert len(result.conditionals) == 2


def test_bad_features() -> None:
    baseline, attack, member, x = game(1, m=50, leak=0.0)
    unknown = x.copy()
    unknown[3, 1] = np.nan
    short = "features has 49 values and there are 50 scores"
    for features, words in ((x[1:], short), (x[:, 0], "features"), (unknown, "features")):
        with pytest.raises(InputError, match=words):
            lb.audit(attack, lb.Panoramia(member, baseline=baseline, features=features))


def check(games: int, *, leak: float, m: int, known: float) -> None:
    """Count bounds above the truth at 80 % confidence, and judge the counts exactly."""
    wrong = np.zeros(2, dtype=int)
    for seed in range(games):
        baseline, attack, member, x = game(2000 + seed, m=m, leak=leak, known=known)
        result = lb.audit(
            attack, lb.Panoramia(member, baseline=baseline, features=x), confidence=0.8, seed=seed
        )
        wrong += [found.bound > leak for found in result.conditionals]
    assert binomial_tail(int(wrong.max()), games, 0.2) > 1e-3


def test_it_is_seldom_above_the_truth() -> None:
    check(6, leak=1.0, m=400, known=0.5)


@pytest.mark.validity
@pytest.mark.parametrize("leak", [0.0, 1.0])
@pytest.mark.parametrize(("known", "m"), [(1.0, 400), (0.0, 2000)])
def test_coverage(leak: float, known: float, m: int) -> None:
    check(100, leak=leak, m=m, known=known)
