"""PANORAMIA where guarantees may fail, with weights, and up to some recall."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as scipy_stats

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound._base.numerics import logit
from scans import kl_scan

BETA = 0.05
Ranked = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Scores of a baseline and of an attack, and membership."""
M = 3000


@pytest.fixture
def scores() -> Ranked:
    rng = np.random.default_rng(11)
    member = rng.random(M) < 0.5
    return rng.normal(size=M) + 0.7 * member, rng.normal(size=M) + 2.5 * member, member


def path(scores: np.ndarray, member: np.ndarray) -> np.ndarray:
    ordered: np.ndarray = member[np.argsort(-scores)]
    return ordered


def test_each_ranking_has_its_failures(scores: Ranked) -> None:
    baseline, attack, member = scores
    gamma, delta = 1e-4, 3e-4
    result = flat.panoramia(*scores, gamma=gamma, delta=delta, cuts=lb.KLScan())
    options: dict[str, Any] = {"beta": BETA / 2, "min_guesses": 100}
    alone = kl_scan(path(baseline, member), delta=gamma, **options)
    both = kl_scan(path(attack, member), delta=gamma + delta - gamma * delta, **options)
    assert result.c_lb == pytest.approx(alone.logit, abs=1e-10)
    assert result.c_plus_epsilon_lb == pytest.approx(both.logit, abs=1e-10)
    assert result.claim == lb.ApproxDP(delta=delta)
    assert result.epsilon(delta=delta) == result.bound
    assert (result.options["gamma"], result.options["delta"]) == (gamma, delta)
    assert "appendix E" in result.theorem
    assert any("(c, 0.0001)-close" in a.statement for a in result.assumptions)


def test_by_default_number_and_count_have_one_proof(scores: Ranked) -> None:
    gamma, delta = 1e-4, 3e-4
    result = flat.panoramia(*scores, gamma=gamma, delta=delta)
    together = gamma + delta - gamma * delta
    for audit, values, failures in (
        (result.baseline, scores[0], gamma),
        (result.attack, scores[1], together),
    ):
        chosen: Any = audit.options["outside_in"]
        assert audit.guesses in chosen["levels"]
        assert audit.correct == path(values, scores[2])[: audit.guesses].sum()
        share = chosen["failures"] * BETA / 2
        p = 1 / (1 + math.exp(-audit.bound))
        law = scipy_stats.binom(audit.guesses, p)
        tail = law.sf(audit.correct - 1)
        price = failures * M / 2 * tail / (audit.correct * law.pmf(audit.correct))
        kappa = BETA / 2 - share
        # the one condition that stops ε from growing holds with equality, the other holds
        used = max(tail / kappa, price * (1 - kappa) / share)
        assert used == pytest.approx(1, abs=1e-6)
    assert "appendix E" in result.theorem
    assert "gamma + δ - gamma δ" in result.theorem
    assert result.options["cuts"] == {"type": "OutsideIn", "levels": None}


def test_a_model_alone_may_fail(scores: Ranked) -> None:
    plain = flat.panoramia(*scores)
    relaxed = flat.panoramia(*scores, delta=1e-4, cuts=lb.KLScan())
    assert relaxed.c_lb == plain.c_lb
    assert relaxed.c_plus_epsilon_lb < plain.c_plus_epsilon_lb
    noisy = flat.panoramia(*scores, delta=0.01)
    assert any("delta = 0.01 is not below 1/m" in text for text in noisy.warnings)


@pytest.mark.parametrize("cuts", [lb.KLScan(), lb.UnionBound(grid="geometric")])
def test_bounds_fall_as_the_generator_may_miss_more(scores: Ranked, cuts: Any) -> None:
    """The shape of Table 11, recall up to a half."""
    results = [
        flat.panoramia(*scores, gamma=gamma, max_recall=0.5, cuts=cuts)
        for gamma in (0.0, 1e-5, 1e-4, 1e-3)
    ]
    for name in ("c_lb", "c_plus_epsilon_lb"):
        bounds = [getattr(result, name) for result in results]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[3] < bounds[2] < bounds[0]


def envelope(v: int, r: int, p: float, mean: float) -> float:
    """The best mixture of two numbers of failures with the given mean."""
    reached = scipy_stats.binom.sf(v - np.arange(v + 1) - 1, r, p)
    low, high = math.floor(mean), math.ceil(mean)
    pairs = [(i, j) for i in range(low + 1) for j in range(high, v + 1)]
    mixtures = [
        reached[i] if i == j else ((j - mean) * reached[i] + (mean - i) * reached[j]) / (j - i)
        for i, j in pairs
    ]
    return float(max(mixtures))


def test_the_published_form_is_a_concave_envelope() -> None:
    for correct, guesses, m, epsilon, failures in [
        (38, 40, 200, 1.0, 1e-3),
        (60, 70, 100, 0.5, 5e-3),
        (20, 20, 50, 2.0, 1e-4),
    ]:
        ours = stats.one_run_p_value(
            correct, guesses, m, epsilon=epsilon, delta=failures, bound="panoramia"
        )
        p = 1 / (1 + math.exp(-epsilon))
        expected = envelope(correct, guesses, p, 2 * m * failures)
        assert expected < 0.5
        assert ours == pytest.approx(expected, rel=1e-9)


def test_the_published_form_says_what_it_is(scores: Ranked) -> None:
    single = flat.panoramia(*scores, gamma=1e-4, cuts=lb.Fixed(500), relaxation="published")
    right = int(path(scores[0], scores[2])[:500].sum())
    limit = stats.one_run_epsilon(right, 500, M, delta=1e-4, beta=BETA / 2, bound="panoramia")
    assert single.c_lb == pytest.approx(limit, abs=1e-9)
    assert single.c_lb > 0
    assert "As published" in single.theorem
    assert single.options["relaxation"] == "published"
    union = flat.panoramia(*scores, gamma=1e-7, relaxation="published")
    assert union.options["cuts"]["type"] == "UnionBound"
    assert union.c_plus_epsilon_lb > 0


def test_cuts_end_at_the_largest_recall(scores: Ranked) -> None:
    baseline, attack, member = scores
    result = flat.panoramia(*scores, max_recall=0.1)
    for scored, bound in ((baseline, result.c_lb), (attack, result.c_plus_epsilon_lb)):
        expected = kl_scan(path(scored, member)[: M // 10], beta=BETA / 2).logit
        assert bound == pytest.approx(expected, abs=1e-10)
    assert result.attack.curve.guesses.max() <= M // 10
    assert result.m == M
    assert result.attack.ceiling == pytest.approx(logit((BETA / 2) ** (1 / (M // 10))), rel=1e-9)
    tied = lb.audit(
        np.round(attack), lb.Panoramia(member, baseline=np.round(baseline), max_recall=1e-6)
    )
    assert tied.attack.curve.guesses.size == 1


def weighted_epsilon(weights: np.ndarray, member: np.ndarray, beta: float) -> float:
    """The ε at which Σ tᵢXᵢ, Xᵢ ~ Bernoulli(σ(ε)), reaches what members have with chance β."""

    def tail(epsilon: float) -> float:
        p, chances = 1 / (1 + math.exp(-epsilon)), np.zeros(int(weights.sum()) + 1)
        chances[0] = 1.0
        for weight in weights:
            moved = p * chances[: chances.size - weight]
            chances *= 1 - p
            chances[weight:] += moved
        return float(chances[int(weights[member].sum()) :].sum())

    found = optimize.brentq(lambda epsilon: tail(epsilon) - beta, -1.0, 5.0, xtol=1e-12)
    return float(found)


def test_weights_are_compared_with_a_weighted_tail(scores: Ranked) -> None:
    baseline, attack, member = (one[:400] for one in scores)
    weights = [1 / (1 + np.exp(2 - 2 * one)) for one in (baseline, attack)]
    result = lb.audit(weights[1], lb.Panoramia(member, baseline=weights[0]), cuts=lb.Weighted())
    expected = [
        weighted_epsilon(np.rint(64 * one).astype(int), member, BETA / 2) for one in weights
    ]
    assert [result.c_lb, result.c_plus_epsilon_lb] == pytest.approx(expected, abs=1e-9)
    assert 0 < result.c_lb < result.c_plus_epsilon_lb < result.attack.ceiling
    assert result.attack.curve.bound[np.isfinite(result.attack.curve.bound)] == [
        result.c_plus_epsilon_lb
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": -0.1}, "gamma"),
        ({"delta": 1.0}, "delta"),
        ({"max_recall": 0.0}, "max_recall"),
        ({"max_recall": 1.5}, "max_recall"),
        ({"relaxation": "loose"}, "relaxation"),
        ({"relaxation": "published"}, "gamma or delta above 0"),
        ({"relaxation": "published", "gamma": 1e-3, "cuts": lb.KLScan()}, "not for delta"),
        ({"gamma": 1e-3, "cuts": lb.Weighted()}, "not for delta"),
        ({"gamma": 1e-3, "cuts": lb.UnionBound(tail="hoeffding")}, "limits are exact"),
        ({"gamma": 1e-3, "real_nonmembers": True}, "leave out"),
        ({"max_recall": 0.1, "cuts": lb.Fixed(1000)}, "does not go with"),
        ({"cuts": lb.Weighted()}, "weights"),
    ],
)
def test_what_does_not_go_together_is_refused(
    scores: Ranked, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.OptionError, match=words):
        flat.panoramia(*scores, **options)


def test_weights_guess_members_only() -> None:
    with pytest.raises(errors.OptionError, match="members only"):
        lb.audit([0.5, 0.1], lb.Coins([0, 1]), cuts=lb.Weighted())
    with pytest.raises(errors.AbstentionError, match="round to 0"):
        lb.audit([0.0, 0.0], lb.Coins([0, 1]), cuts=lb.Weighted(), sides="member")
