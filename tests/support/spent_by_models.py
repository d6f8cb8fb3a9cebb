"""What Zero-Run, PANORAMIA, tests of propensities and DP-SGD spend of a level.

Like `spent_by_rankings`: parts of the level are written out, and tails are those of textbook laws.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import expit
from sklearn.dummy import DummyClassifier

import leakbound as lb
from leakbound._base.alignment import ExampleOrder
from leakbound._base.formatting import share
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes, rate_limits
from leakbound.audits.road import AlignedScores, Attacks, Request
from leakbound.audits.zero_run.learning import Learning, learnt
from leakbound.audits.zero_run.log_odds import OddsSet
from leakbound.audits.zero_run.options import ZeroRunOptions
from leakbound.benchmark.table import Summary
from leakbound.errors import FitError
from leakbound.propensity import (
    ConfidenceSet,
    FormTest,
    LogisticPropensity,
    cross_fit,
    link_bent,
    products_missing,
)
from leakbound.results import DPSGDAudit
from noisy_steps import EXAMPLES, play
from set_search import over_set, shift_of
from spent_by_rankings import limit, near

__all__ = ["CHECKS", "MORE"]

BETA = 0.1
SURE = 1 - BETA
M = 400
FAIR = np.full(M, 0.5)


def _people(shift: float) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return features, membership that depends on them a little, and scores that tell of it."""
    rng = np.random.default_rng(11)
    features = rng.normal(size=(M, 2))
    member = rng.random(M) < 1 / (1 + np.exp(-0.5 * features[:, 0]))
    return features, member, rng.normal(size=M) + shift * member


FEATURES, MEMBER, SCORES = _people(3.0)


def zero_run(propensity: Any = FAIR, **options: Any) -> lb.ZeroRunResult:
    shared = {name: options.pop(name) for name in ("claim", "cuts", "sides") if name in options}
    design = lb.ZeroRun(MEMBER, propensity, falsify=False, **options)
    given: Any = {"claim": lb.PureDP()} | shared
    result: lb.ZeroRunResult = lb.audit(SCORES, design, confidence=SURE, seed=4, **given)
    return result


def limits_of_two_rankings_have_half_each() -> None:
    design = lb.Panoramia(MEMBER, baseline=FEATURES[:, 0])
    found = lb.audit(SCORES, design, confidence=SURE, cuts=lb.Fixed(60), seed=4)
    for one in (found.baseline, found.attack):
        near(max(one.bound, 0.0), max(limit(one.correct, one.guesses, BETA / 2), 0.0))
    assert found.attack.bound > 0


def folds_have_equal_parts() -> None:
    crossed = cross_fit(DummyClassifier(), FEATURES, MEMBER, folds=4, seed=1)
    found = zero_run(crossed, correction="match", cuts=lb.Fixed(30), uncertainty="none")
    near(found.bound, limit(found.correct, found.guesses, BETA / 4))


def the_set_has_a_fifth() -> None:
    """The squared radius is that of the set at a fifth; it falls by 4 ln 2 at twice the level."""
    request, options = Request(confidence=SURE, seed=4), ZeroRunOptions(falsify=False)
    examples = AlignedScores(ExampleOrder(), Attacks({"": SCORES}), MEMBER)
    odds = learnt(
        examples, Learning(features=FEATURES, seen=FEATURES, names=("a", "b")), options, request
    )
    assert isinstance(odds, OddsSet)
    rows = odds.rows
    fifth, more = (
        ConfidenceSet.fit(FEATURES[rows], MEMBER[rows], level=level, seed=4).squared_radius
        for level in (0.2 * BETA, 0.4 * BETA)
    )
    near(odds.found.squared_radius, fifth)
    near(fifth - more, 4 * math.log(2))


def draws_of_halves_have_the_mean_of_their_e_values() -> None:
    """The e-value at the truth is 1 on average, at most: its share of 1/p is p, at most."""
    signs, truth, shares = np.tile([-1.0, 1.0], 10), np.zeros(2), []
    for seed in range(1000):
        labels = np.random.default_rng(seed).random(signs.size) < 0.5
        try:
            found = ConfidenceSet.fit(signs[:, None], labels, level=BETA, seed=seed)
        except FitError:  # the set is everything, and the e-value is nothing
            shares.append(0.0)
            continue
        best, true = (
            np.log(expit(np.where(labels, 1, -1) * (theta[0] + theta[1] * signs))).sum()
            for theta in (found.coefficients, truth)
        )
        shares.append(math.exp((2 * (best - true) - found.squared_radius) / 4))
    assert np.mean(shares) + 3 * np.std(shares) / math.sqrt(len(shares)) <= BETA


def a_draw_at_a_member_has_half_of_four_fifths() -> None:
    """A share of all draws that is uniform up to a half must agree: Markov's price is the half."""
    model, cuts = LogisticPropensity(), lb.Fixed(40)
    found = zero_run(model, features=FEATURES, correction="match", cuts=cuts)
    near(found.bound, limit(found.correct, found.guesses, 0.8 * BETA * 0.5))


def a_draw_of_a_matched_number_has_half_of_four_fifths() -> None:
    """Labels choose a number of guesses: at so small a δ its binomial tail has nearly all of it."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(M, 2))
    member = rng.random(M) < 1 / (1 + np.exp(-0.5 * features[:, 0]))
    model = LogisticPropensity(calibration=None).fit(features, member)
    found = zero_run(model, features=FEATURES, claim=lb.ApproxDP(delta=1e-6))
    assert "outside_in" in found.options
    law = stats.binom(found.guesses, 1 / (1 + math.exp(-found.bound)))
    whole = 0.95 * 0.04  # a look has a twentieth
    assert 0.95 * whole < law.sf(found.correct - 1) < whole


def the_share_of_draws_is_uniform_up_to_a_half() -> None:
    """Half of all draws that reject at twice the level of a draw reject with that chance."""
    found = ConfidenceSet.fit(FEATURES, MEMBER, level=0.02, seed=0)
    tested = [over_set(SCORES, found, claim=lb.PureDP(), seed=seed) for seed in range(400)]
    needed = [one.odds.draws_needed for one in tested]
    assert max(needed) <= 0.5
    assert stats.kstest(needed, stats.uniform(0, 0.5).cdf).pvalue > 1e-3
    near(tested[0].odds.level_of_draw(tested[0].level) / 0.5, 0.04)


def _tail(correct: int, chances: NDArray[np.float64]) -> float:
    """Return P(at least so many) of a sum of coins, by adding up one coin after the other."""
    law = np.ones(1)
    for chance in chances:
        law = np.append(law * (1 - chance), 0) + np.append(0, law * chance)
    return float(law[correct:].sum())


def two_numbers_of_guesses_at_a_member_have_half_each() -> None:
    """At the bound, but for 5e-4 of it, the exact tail at the least favourable member is that."""
    found = ConfidenceSet.fit(FEATURES, MEMBER, level=0.02, seed=0)
    proof = over_set(SCORES, found, claim=lb.PureDP(), level=0.08).proof()
    shift = shift_of(proof)
    odds = found.log_odds(shift.coefficients)[shift.rows] * shift.signs
    tail = _tail(proof.best.successes, 1 / (1 + np.exp(-odds - proof.bound - 5e-4)))
    assert proof.bound > 0
    near(tail, 0.95 * 0.04, 1e-2)  # a look has a twentieth


REFITS = 99


def _refitted() -> tuple[lb.ZeroRunResult, NDArray[np.float64]]:
    """Audit at replicates that differ in the share of members only, and return their log-odds."""
    odds = np.linspace(-0.2, 0.2, REFITS)
    draws = np.repeat(1 / (1 + np.exp(-odds))[:, None], M, axis=1)
    return zero_run(draws, cuts=lb.Fixed(60), sides="member"), odds


def the_percentile_has_half() -> None:
    found, _ = _refitted()
    assert found.bootstrap is not None
    near(found.bound, float(np.sort(found.bootstrap.bounds)[int(BETA / 2 * (REFITS + 1)) - 1]))


def tests_at_replicates_have_half() -> None:
    found, odds = _refitted()
    assert found.bootstrap is not None
    expected = limit(found.correct, found.guesses, BETA / 2) - odds
    np.testing.assert_allclose(found.bootstrap.bounds, expected, rtol=1e-6)


def three_paths_of_unlike_odds_have_a_third_each() -> None:
    """Only the path of all guesses is long enough, and one cut of it is tested."""
    found = zero_run(cuts=lb.KLScan(min_guesses=M))
    near(found.bound, limit(found.correct, M, BETA / 3))


DELTA = 4e-5


def _untampered() -> tuple[lb.ZeroRunResult, Callable[[float, float], float]]:
    """Audit with failures by Markov's inequality: by the parts of failures and of the count."""
    claim = lb.ApproxDP(delta=DELTA)
    found = zero_run(claim=claim, cuts=lb.Fixed(120), variant="untampered")

    def expected(failing: float, counted: float) -> float:
        """With 2 √(f / u) at most the part of failures, u guesses are set aside for them."""
        epsilon, before = 0.0, -1.0
        while epsilon > before:
            before = epsilon
            failures = M * (1 + math.exp(-epsilon)) * DELTA
            aside = math.ceil(failures * (2 / (failing * BETA)) ** 2)
            epsilon = max(epsilon, limit(found.correct - aside, 120, counted * BETA))
        return epsilon

    return found, expected


def failures_and_count_have_half_each() -> None:
    found, expected = _untampered()
    near(found.bound, expected(0.5, 0.5))
    assert expected(1.0, 0.5) > expected(0.5, 0.5) + 0.01
    assert expected(0.5, 1.0) > expected(0.5, 0.5) + 0.01


def _p_of_terms(found: ConfidenceSet, terms: NDArray[np.float64]) -> list[float]:
    """Return p-values of score tests, for each sign alone: normal, or by the saddle point."""
    labels, tails = found.labels, []
    _, design, odds = found.residuals()
    chances = 1 / (1 + np.exp(-odds))
    weights = chances * (1 - chances)
    for term in terms.T:
        slope = np.linalg.solve((design.T * weights) @ design, (design.T * weights) @ term)
        left = term - design @ slope
        score = float(left @ (labels - chances))
        size = abs(score) / math.sqrt(float(left**2 @ weights))

        def below(t: float, left: Any = left, score: float = score) -> float:
            cumulant = np.log1p(chances * np.expm1(t * left)) - t * left * chances
            return float(cumulant.sum()) - t * score

        root = math.sqrt(2 * -optimize.minimize_scalar(below, bracket=(-0.1, 0.1)).fun)
        tails.append(float(stats.norm.sf(min(size, root))))
    return tails


def _tested() -> tuple[FormTest, FormTest, list[float], list[float]]:
    rng = np.random.default_rng(12)
    x, y = FEATURES.T
    member = rng.random(M) < 1 / (1 + np.exp(-x - 0.3 * x * np.abs(x) - 0.2 * y**2))
    found = ConfidenceSet.fit(FEATURES, member, seed=0)
    units = np.clip((FEATURES - FEATURES.mean(0)) / FEATURES.std(0), -3, 3)
    products = np.column_stack([units[:, 0] ** 2, units[:, 0] * units[:, 1], units[:, 1] ** 2])
    odds = found.residuals()[2]
    bends = np.column_stack([odds * np.abs(odds), odds**2])
    forms = products_missing(found), link_bent(found)
    return *forms, _p_of_terms(found, products), _p_of_terms(found, bends)


def terms_have_equal_parts_and_signs_half_each() -> None:
    products, link, of_products, of_link = _tested()
    assert max(products.p_value, link.p_value) < 1
    near(products.p_value, 3 * 2 * min(of_products), 1e-4)
    near(link.p_value, 2 * 2 * min(of_link), 1e-4)


@cache
def _seen(seed: int = 1) -> Observed:
    return play(seed)


def _run(seen: Observed | None = None) -> DPSGDAudit:
    seen, claim = seen or _seen(), lb.GaussianDP()
    return audit_dp_sgd(seen, claim=claim, confidence=SURE, examples=KNOWN)


KNOWN = (EXAMPLES, EXAMPLES)
STEPS_LEVEL = BETA / 2


def the_rate_has_half() -> None:
    sizes = _seen().batch_sizes
    total, rows = int(sizes.sum()), EXAMPLES * sizes.size
    p = 1 / (1 + math.exp(-limit(total, rows, BETA / 2)))
    near(_run().steps.sampling_rate, p)


def _noise_at(level: float) -> float:
    """Return the noise multiplier at which squares are as small with the chance `level`."""
    seen, evidence = _seen(), -math.log(level)
    size, steps = seen.design.size, np.arange(1, seen.steps + 1)
    penalty = min(1.0, 2 * math.sqrt(evidence / (size * seen.design.max_steps))) / 2
    logs = (evidence + penalty * np.cumsum(seen.squares)) * 2 / (size * steps)
    return float(np.sqrt(np.expm1(logs) / (2 * penalty)).min())


def noise_has_half_of_what_the_rate_leaves() -> None:
    near(_run().steps.noise.bound, _noise_at(STEPS_LEVEL / 2), 1e-5)


def _won(mu: float, run: DPSGDAudit) -> float:
    """Return the most that bets on coins of steps had in a run, at the mean that μ allows."""
    seen, bets = _seen(), run.steps.betting
    far, coins = np.abs(seen.released - 0.5), seen.design.step_coins()[: seen.steps]
    right = (seen.released > 0.5) == coins
    places = np.argsort(-far, axis=1, kind="stable")[:, : bets.guesses]
    correct = np.take_along_axis(right, places, axis=1).sum(axis=1)
    part = bets.guesses / bets.coins
    cut = optimize.brentq(lambda a: stats.norm.cdf(-a) + stats.norm.cdf(mu - a) - part, -20, 20)
    mean = bets.coins * stats.norm.cdf(mu - cut)
    return float(np.exp(np.cumsum(np.log1p(bets.stake * (correct / mean - 1))).max()))


def bets_have_nine_tenths_of_the_coins() -> None:
    run = _run()
    near(1 / _won(1 / run.steps.betting.bound, run), 0.9 * STEPS_LEVEL / 2, 1e-4)


def one_game_has_the_other_tenth() -> None:
    game = _run().steps.game
    level = (1 - 0.9) * STEPS_LEVEL / 2
    counts = game.correct, game.guesses, game.m
    near(game.bound, lb.GaussianDP().lower_bound(*counts, level, test="tight"), 1e-4)


def _two_sided(sizes: NDArray[np.int64]) -> float:
    """Return the p-value of the mean of sizes, by the binomial law of their sum."""
    law = stats.binom(EXAMPLES * sizes.size, _seen().design.sampling_rate)
    return 2 * float(min(law.cdf(sizes.sum()), law.sf(sizes.sum() - 1)))


def _with_sizes(most: float) -> Observed:
    """Return the run with a few examples more, until the p-value of their mean is at most this."""
    sizes = _seen().batch_sizes.copy()
    for batch in itertools.cycle(range(sizes.size)):
        if _two_sided(sizes) <= most:
            break
        sizes[batch] += 1
    return replace(_seen(), batch_sizes=sizes)


def three_parts_have_a_third_each() -> None:
    """Sizes of batches whose p-value is between a third and two thirds of β refute nothing."""
    seen = _with_sizes(0.03)
    assert BETA / 3 < audit_batch_sizes(seen, KNOWN, SURE).p_value < 2 * BETA / 3
    assert "sampling" not in _run(seen).refuted_by
    assert "sampling" in _run(_with_sizes(0.01)).refuted_by


def both_sides_of_the_mean_size_have_half_each() -> None:
    sizes = _seen().batch_sizes
    found = audit_batch_sizes(_seen(), KNOWN, SURE)
    assert found.p_mean < 1
    near(found.p_mean, _two_sided(sizes))


def both_sides_of_the_variance_have_half_each() -> None:
    """As rarely as the least p-value of 1,999 draws is reached: 2 of 2,000, and not 1."""
    sizes = np.tile([10, 30], 20)
    found = audit_batch_sizes(replace(_seen(), batch_sizes=sizes), KNOWN, SURE)
    near(found.p_variance, 2 / 2000)


def mean_and_variance_of_sizes_have_forty_eight_hundredths_each() -> None:
    found = audit_batch_sizes(_with_sizes(0.3), KNOWN, SURE)
    near(found.p_value, min(found.p_mean, found.p_variance) / 0.48)


def the_number_of_sizes_has_four_hundredths() -> None:
    """Two sizes of the right mean, whose variance is nearly that of Poisson samples, too."""
    sizes = np.tile([16, 24], 20)
    found = audit_batch_sizes(replace(_seen(), batch_sizes=sizes), KNOWN, SURE)
    near(found.p_value, 1 / 2000 / 0.04)


def both_limits_of_the_rate_have_half_each() -> None:
    sizes = _seen().batch_sizes
    total, rows = int(sizes.sum()), EXAMPLES * sizes.size
    low, high = rate_limits(sizes, EXAMPLES, SURE)
    near(low, stats.beta.ppf(BETA / 2, total, rows - total + 1))
    near(high, stats.beta.isf(BETA / 2, total + 1, rows - total))


def both_ends_of_an_interval_have_half_each() -> None:
    """Of accuracy, the first half of the ranking being guessed members."""
    found = lb.audit(SCORES, lb.Coins(MEMBER), confidence=SURE, seed=0)
    metric = next(one for one in found.summary().metrics if one.name == "Accuracy")
    down = np.argsort(-SCORES)
    right = int(MEMBER[down[: M // 2]].sum() + (~MEMBER[down[M // 2 :]]).sum())
    low = stats.beta.ppf(BETA / 2, right, M - right + 1)
    high = stats.beta.isf(BETA / 2, right + 1, M - right)
    words = f"90 % interval {share(low)} to {share(high, up=True)}; guessing gives 50 %"
    assert metric.note == words


def lines_of_a_summary_have_equal_parts() -> None:
    """Of three lines, a p-value of 0.0005 is above a third of 0.001, and one of 0.0003 below."""
    lines = tuple({"p_value": p} for p in (0.0005, 0.0003, 0.5))
    assert Summary(lines).false == lines[1:2]


CHECKS: dict[str, Callable[[], None]] = {
    "RANKINGS": limits_of_two_rankings_have_half_each,
    "FOLDS": folds_have_equal_parts,
    "HALVES": draws_of_halves_have_the_mean_of_their_e_values,
    "SET": the_set_has_a_fifth,
    "AT_MEMBER": a_draw_at_a_member_has_half_of_four_fifths,
    "DRAW": the_share_of_draws_is_uniform_up_to_a_half,
    "SET_NUMBERS": two_numbers_of_guesses_at_a_member_have_half_each,
    "PERCENTILE": the_percentile_has_half,
    "AT_REPLICATE": tests_at_replicates_have_half,
    "OFFSET_PATHS": three_paths_of_unlike_odds_have_a_third_each,
    "FAILURES": failures_and_count_have_half_each,
    "COUNT": failures_and_count_have_half_each,
    "TERMS": terms_have_equal_parts_and_signs_half_each,
    "SIGNS": terms_have_equal_parts_and_signs_half_each,
    "DP_SGD_PARTS": three_parts_have_a_third_each,
    "RATE": the_rate_has_half,
    "STEPS": noise_has_half_of_what_the_rate_leaves,
    "NOISE": noise_has_half_of_what_the_rate_leaves,
    "COINS": bets_have_nine_tenths_of_the_coins,
    "FAVOURED": bets_have_nine_tenths_of_the_coins,
    "OTHER": one_game_has_the_other_tenth,
    "SIZES": mean_and_variance_of_sizes_have_forty_eight_hundredths_each,
    "DISTINCT_SIZES": the_number_of_sizes_has_four_hundredths,
    "MEAN_SIDES": both_sides_of_the_mean_size_have_half_each,
    "VARIANCE_SIDES": both_sides_of_the_variance_have_half_each,
    "RATE_SIDES": both_limits_of_the_rate_have_half_each,
    "DESCRIBED_SIDES": both_ends_of_an_interval_have_half_each,
    "SUMMARY_LINES": lines_of_a_summary_have_equal_parts,
}
"""The exact check of each row of the table that is about these."""
MORE: list[tuple[str, Callable[[], None]]] = [
    ("DRAW", a_draw_at_a_member_has_half_of_four_fifths),
    ("DRAW", a_draw_of_a_matched_number_has_half_of_four_fifths),
    ("JOINT", a_draw_of_a_matched_number_has_half_of_four_fifths),
]
"""Checks of rows that are read in more than one place."""
