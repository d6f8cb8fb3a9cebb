"""Independent trials under (ε, δ)-DP: the theorem against the worst mechanism, and its conditions.

The worst mechanism tells each coin with probability δ and answers by randomised response at ε
otherwise; the worst choice of guesses takes some of the trials that tell, and others. So the exact
chance of a false claim is Σ P(F) max P(x + Bin(y, p) reaches what refutes ε), over x ≤ F trials
that tell and y others.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import leakbound as lb
from allowance import OF_COINS, OF_RANKS, RANKS, rows
from leakbound import _core
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.policies.trials import TrialsOutsideIn
from leakbound.audits.trials import _runs_of_coins
from leakbound.cuts import OutsideIn, SecondLook
from leakbound.errors import AbstentionError, InputError, LeakboundError

Levels = list[tuple[int, float]]
Joined = Callable[[list[float]], float]
SETTINGS = [
    (1, 0.0, 0.1, 0.3),
    (5, 0.5, 0.1, 0.2),
    (12, 2.0, 0.05, 0.1),
    (20, 0.0, 0.02, 0.05),
    (20, 1.0, 0.05, 0.1),
    (25, 1.5, 0.03, 0.1),
    (60, 1.0, 0.05, 0.1),
    (100, 0.0, 0.02, 0.1),
    (100, 1.0, 0.005, 0.1),
    (150, 0.5, 0.1, 0.2),
    (250, 1.0, 0.01, 0.01),
    (300, 3.0, 0.003, 0.1),
]
"""m, ε, δ and β."""


def levels(m: int, delta: float, beta: float) -> Levels:
    return _core.Allowance(m, delta, beta).kappas


def each_level(m: int, kappas: Levels) -> FloatArray:
    """Return κ₀ to κ_m."""
    found, start = np.ones(m + 1), 0
    for last, kappa in kappas:
        found[start : last + 1] = kappa
        start = last + 1
    return found


def limit(n: int, right: int, kappas: Levels, joined: Joined = min) -> float:
    """Return a limit of p as the theorem has it; the least of the limits is the right one."""
    each = [
        float(stats.beta.ppf(kappa, right - k, n - right + 1)) if right > k else 0.0
        for k, kappa in kappas
    ]
    return joined(each) if each else 0.0


def least_refuting(m: int, epsilon: float, kappas: Levels, joined: Joined = min) -> list[int]:
    """Return for n = 0 … m the least number of right guesses that refutes ε; n + 1 if none does."""
    p = 1 / (1 + math.exp(-epsilon))

    def least(n: int) -> int:
        low, high = 0, n + 1
        while low < high:
            middle = (low + high) // 2
            refuted = n > 0 and limit(n, middle, kappas, joined) > p
            low, high = (low, middle) if refuted else (middle + 1, high)
        return low

    return [least(n) for n in range(m + 1)]


def worst(
    m: int, epsilon: float, delta: float, least: list[int], failing: int | None = None
) -> float:
    """Return the largest chance of a false claim about m trials; `failing` may fail, if not m."""
    p, told = 1 / (1 + math.exp(-epsilon)), np.arange(m + 1)
    x, y = np.meshgrid(told, told, indexing="ij")
    n = np.minimum(x + y, m)
    needed = np.array(least)[n] - x
    chance = np.where(needed > 0, stats.binom.sf(needed - 1, y, p), 1.0)
    chance[(x + y > m) | (needed > y)] = 0.0
    most = np.maximum.accumulate(np.maximum.accumulate(chance, axis=0), axis=1)
    law = stats.binom.pmf(np.arange((failing or m) + 1), failing or m, delta)
    # Where more may fail than are audited, those that tell are taken first.
    kept = np.minimum(np.arange(law.size), m)
    return float(law @ most[kept, m - kept])


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(one, marks=[pytest.mark.validity] if one[0] in {150, 250} else [])
        for one in SETTINGS
    ],
    ids=str,
)
def test_the_exact_worst_case_is_within_the_level(setting: tuple[int, float, float, float]) -> None:
    m, epsilon, delta, beta = setting
    allowance = _core.Allowance(m, delta, beta)
    least = least_refuting(m, epsilon, allowance.kappas)
    for n in range(1, m + 1):  # what refutes by the audit refutes by the formula, and the converse
        for right in {max(0, least[n] - 1), min(least[n], n)}:
            assert (allowance.limit(n, right) > epsilon) == (right >= least[n]), (n, right)
    false = worst(m, epsilon, delta, least)
    assert false <= beta
    if m >= 20:
        assert false >= 0.75 * beta
        doubled = least_refuting(m, epsilon, levels(m, delta, 2 * beta))
        assert worst(m, epsilon, delta, doubled) > beta


@pytest.mark.parametrize("delta", [1e-9, 3e-4, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("m", [1, 2, 30, 1_000])
def test_levels_have_the_level_as_their_mean_over_all_numbers_of_failures(
    m: int, delta: float
) -> None:
    """Also where nothing is asked, which is 1; and they never fall."""
    kappas = levels(m, delta, 0.05)
    each = each_level(m, kappas)
    assert all(one[0] < two[0] for one, two in pairwise(kappas))
    assert (np.diff(each) >= 0).all() or each.max() < 1
    spent = float(stats.binom.pmf(np.arange(m + 1), m, delta) @ each)
    assert 0.049_999 < spent <= 0.05 * (1 + 1e-9)


def test_many_failures_have_groups_of_levels_that_spend_no_more() -> None:
    kappas = levels(100_000, 0.01, 0.05)
    assert len(kappas) < 40
    last = np.array([k for k, _ in kappas])
    above = np.append(stats.binom.cdf(last, 100_000, 0.01), 1.0)
    spent = np.diff(above, prepend=0) @ np.append([kappa for _, kappa in kappas], 1.0)
    assert 0.049_999 < spent <= 0.05 * (1 + 1e-9)


def test_the_largest_limit_in_place_of_the_least_is_wrong() -> None:
    m, epsilon, delta, beta = 20, 1.0, 0.05, 0.1
    kappas = levels(m, delta, beta)
    assert worst(m, epsilon, delta, least_refuting(m, epsilon, kappas)) <= beta
    assert worst(m, epsilon, delta, least_refuting(m, epsilon, kappas, max)) > 1.2 * beta


def test_levels_that_leave_out_some_numbers_of_failures_are_wrong() -> None:
    """Of numbers that are left out nothing is asked, and their whole chance is spent beside β."""
    m, epsilon, delta, beta = 20, 1.0, 0.05, 0.05
    none = float(stats.binom.pmf(0, m, delta))
    kappas = [(0, beta / none)]
    assert worst(m, epsilon, delta, least_refuting(m, epsilon, kappas)) > 3 * beta


def test_as_many_guesses_as_may_fail_claim_nothing() -> None:
    """Every number of failures has the level β, so that no claim is left; or that is forgotten."""
    m, epsilon, delta, beta = 20, 1.0, 0.3, 0.05
    kappas = [(0, beta), (m, beta)]
    assert worst(m, epsilon, delta, least_refuting(m, epsilon, kappas)) == 0
    forgotten = least_refuting(m, epsilon, kappas[:1])
    assert worst(m, epsilon, delta, [*forgotten[:m], m + 1]) > 3 * beta
    for n in range(1, 14):
        assert _core.Allowance(m, delta, beta).limit(n, n) < 0


def test_the_number_of_trials_may_not_be_chosen_after_the_outputs() -> None:
    """The 20 of 200 trials that told most are no 20 trials."""
    epsilon, delta, beta = 1.0, 0.02, 0.1
    least = least_refuting(20, epsilon, levels(20, delta, beta))
    assert worst(20, epsilon, delta, least) <= beta
    assert worst(20, epsilon, delta, least, failing=200) > 2 * beta


def _repeating(what: str, seed: int) -> tuple[FloatArray, BoolArray]:
    """Play 200 trials: randomised response at ε = 1, and then what earlier trials had.

    A repeating trial takes no notice of its own coin. Scores of the first half have what is known
    of their coins, those of the second half nothing.
    """
    rng = np.random.default_rng(seed)
    coins = rng.random(200) < 0.5
    right = rng.random(100) < 1 / (1 + math.exp(-1))
    known = {"coins": coins[:100], "outputs": coins[:100] == right}[what]
    return np.append(np.where(known, 2.0, -2.0), 0.1 * rng.normal(size=100)), coins


def test_a_mechanism_may_depend_on_earlier_outputs_and_not_on_coins() -> None:
    above = dict.fromkeys(("coins", "outputs"), 0)
    for what in above:
        for seed in range(100):
            scores, member = _repeating(what, seed)
            found = lb.audit(
                scores, lb.Trials(member), claim=lb.ApproxDP(delta=1e-3), confidence=0.9, seed=seed
            )
            above[what] += found.bound > 1
    assert above["coins"] == 100
    assert stats.binom.sf(above["outputs"] - 1, 100, 0.1) > 1e-3


def test_one_direction_is_not_enough() -> None:
    """A third of the others is told: P(with) ≤ 1.5 P(without), and the converse has no ε."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        member = rng.random(200) < 0.5
        told = ~member & (rng.random(200) < 1 / 3)
        scores = rng.random(200) - 2 * told
        found = lb.audit(scores, lb.Trials(member), claim=lb.ApproxDP(delta=1e-4), seed=seed)
        assert found.bound > math.log(1.5)


def test_a_number_of_guesses_chosen_by_their_own_coins_is_wrong() -> None:
    """The number that proves most in hindsight; at most 20 % may be wrong."""
    allowance, wrong = _core.Allowance(60, 0.02, 0.2), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        right = (rng.random(60) < 0.02) | (rng.random(60) < 1 / (1 + math.exp(-1)))
        made = enumerate(np.cumsum(right).tolist(), start=1)
        wrong += max(allowance.limit(n, count) for n, count in made) > 1
    assert stats.binom.sf(wrong - 1, 200, 0.2) < 1e-3


def _failing(rng: np.random.Generator, member: BoolArray, told: float) -> FloatArray:
    """(1, 0.02)-DP at the boundary; failures stand out by `told`."""
    fails = rng.random(member.size) < 0.02
    right = fails | (rng.random(member.size) < 1 / (1 + math.exp(-1)))
    return np.where(right == member, 1.0, -1.0) * (1 + told * fails + rng.random(member.size))


@pytest.mark.parametrize("told", [0.0, 2.0])
def test_games_at_the_boundary_are_wrong_at_most_as_often_as_stated(told: float) -> None:
    """The audit, and its first part at the whole level; twice the nominal 20 % would be seen."""
    games, wrong = 150, [0, 0]
    for seed in range(games):
        rng = np.random.default_rng([seed, 4])
        member = rng.random(60) < 0.5
        claim = lb.ApproxDP(delta=0.02)
        design = lb.Trials(member)
        found: Any = lb.audit(
            _failing(rng, member, told), design, claim=claim, confidence=0.8, seed=seed
        )
        wrong[0] += found.bound > 1
        policy = TrialsOutsideIn(base=OutsideIn(), delta=0.02, trials=60)
        part = found.options["parts"][0]
        wrong[1] += policy.limit(None, part["guesses"], part["correct"], 0.2) > 1
    for count in wrong:
        assert stats.binom.sf(count - 1, games, 0.2) > 1e-3, wrong


def game(m: int, seed: int, shift: float = 1.5) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    return rng.normal(size=m) + shift * member, member


def test_without_failures_it_is_the_limit_of_clopper_and_pearson() -> None:
    for n, right in [(10, 10), (80, 75), (1000, 620)]:
        p = stats.beta.ppf(0.05, right, n - right + 1)
        for delta in (0.0, 1e-15):
            found = _core.Allowance(1_000, delta, 0.05).limit(n, right)
            assert found == pytest.approx(math.log(p / (1 - p)), rel=1e-6)
    scores, member = game(1_000, 0)
    bounds = [
        lb.audit(scores, lb.Trials(member), claim=lb.ApproxDP(delta=delta), seed=0)
        for delta in (1e-15, 1e-9)
    ]
    one, other = (found.bound for found in bounds)
    assert one == pytest.approx(other, rel=1e-3)
    first: Any = bounds[0].options["parts"]
    n, right = first[0]["guesses"], first[0]["correct"]
    p = stats.beta.ppf(0.95 * 0.05, right, n - right + 1)
    assert first[0]["bound"] == pytest.approx(math.log(p / (1 - p)), rel=1e-6)


def test_ends_of_the_range_have_their_limits_or_a_named_error() -> None:
    scores, member = game(200, 1)
    with pytest.raises(LeakboundError, match="delta"):
        lb.ApproxDP(delta=0)
    for delta in (0.9, 1 - 1e-12):
        found = lb.audit(member + 0.0, lb.Trials(member), claim=lb.ApproxDP(delta=delta), seed=0)
        assert found.bound <= found.ceiling < 3
        assert found.check(epsilon=5.0, delta=delta) == "inconclusive"
        # A run has one example: nothing is said of publishing one of m.
        assert not any("is not below 1/m" in text for text in found.warnings)
    assert found.ceiling == 0
    assert "chance explains" in found.reason
    one = _core.Allowance(1, 0.01, 0.6)
    assert one.limit(1, 0) == -math.inf
    assert one.limit(1, 1) == pytest.approx(math.log(0.59 / 0.99 / (1 - 0.59 / 0.99)), rel=1e-6)
    with pytest.raises(InputError, match="at least 10 runs"):
        lb.audit(scores[:1], lb.Trials(member[:1]), claim=lb.ApproxDP(delta=0.1))
    with pytest.raises(AbstentionError, match="equal"):
        lb.audit(np.zeros(200), lb.Trials(member), claim=lb.ApproxDP(delta=0.1))


def test_scores_of_few_values_have_guesses_about_whole_values() -> None:
    """Failures stand out, but are too few to be guessed about alone."""
    rng = np.random.default_rng(0)
    member = rng.random(4_000) < 0.5
    right = rng.random(4_000) < 1 / (1 + math.exp(-2))
    fails = rng.random(4_000) < 2e-3
    scores = np.where((right | fails) == member, 1.0, -1.0) * (1 + fails)
    found = lb.audit(scores, lb.Trials(member), claim=lb.ApproxDP(delta=2e-3), seed=0)
    assert found.guesses > 1_500
    assert 1.8 < found.bound < 2


def test_noise_in_the_outermost_scores_costs_the_first_part_and_not_the_look() -> None:
    rng = np.random.default_rng(1)
    scores, member = game(4_000, 1)
    scores = np.where(
        rng.random(4_000) < 0.04, np.where(rng.random(4_000) < 0.5, 1, -1) * 99, scores
    )
    found = lb.audit(scores, lb.Trials(member), claim=lb.ApproxDP(delta=1e-4), seed=0)
    parts: Any = found.options["parts"]
    assert [part["name"] for part in parts] == ["outside-in", "look"]
    assert found.bound == parts[1]["bound"] > 2 * max(0.2, parts[0]["bound"])
    assert found.guessed == "guesses at ranks chosen with a pilot sample"


def test_results_say_the_condition_the_levels_and_what_was_tested() -> None:
    scores, member = game(1_000, 2)
    claim = lb.ApproxDP(delta=1e-3)
    found = lb.audit(scores, lb.Trials(member), claim=claim, seed=0)
    for said in ("(ε, δ)-DP in both directions", "outputs of earlier trials, never on their coins"):
        assert said in found.theorem
    assert "in both directions" in found.assumptions[1].statement
    assert "outputs of earlier runs, never on their coins" in found.assumptions[1].statement
    alike = lb.audit(scores, lb.Trials(member, fixed=True), claim=claim, seed=0)
    assert "in both directions" in alike.assumptions[1].statement
    assert "earlier" not in alike.assumptions[1].statement
    told: Any = found.options["outside_in"]
    assert [tuple(one) for one in told["failures"]] == levels(1_000, 1e-3, 0.95 * 0.05)
    assert found.check(epsilon=found.bound - 0.01, delta=1e-3) == "refuted"
    assert found.check(epsilon=found.bound - 0.01, delta=1e-5) == "refuted"
    with pytest.raises(LeakboundError, match="delta"):
        found.check(epsilon=0.1, delta=1e-2)
    checked = found.with_check(epsilon=0.5, delta=1e-3)
    assert "refuted" in checked.summary().headline
    assert lb.AuditResult.from_json(found.to_json()) == found
    assert "whole ranking" not in str(found.summary())


def test_thresholds_of_ones_own_are_tested_as_those_of_coins() -> None:
    scores, member = game(1_000, 3)
    for cuts in (lb.OutsideIn(), lb.Fixed(100), lb.KLScan(), SecondLook()):
        claim = lb.ApproxDP(delta=1e-4)
        found = [
            lb.audit(scores, design, claim=claim, cuts=cuts, seed=0)
            for design in (lb.Trials(member), lb.Coins(member))
        ]
        assert found[0].bound == found[1].bound
        assert found[0].theorem == found[1].theorem


def test_fixed_numbers_of_runs_have_the_level_given_that_they_suffice() -> None:
    scores, member = game(400, 5)
    design = lb.Trials(member, fixed=True)
    found: Any = lb.audit(scores, design, claim=lb.ApproxDP(delta=1e-3), seed=0)
    _, suffice = _runs_of_coins(member, 0)
    assert 0.9 < suffice < 0.99
    each = [part["level"] for part in found.options["parts"]]
    assert each == pytest.approx([0.95 * 0.05 * suffice, 0.05 * 0.05 * suffice])
    told = [tuple(one) for one in found.options["outside_in"]["failures"]]
    assert told == levels(found.m, 1e-3, each[0])


def test_coins_of_the_guesses_have_no_part_in_their_choice() -> None:
    scores, member = game(500, 6)
    rule = TrialsOutsideIn(base=OutsideIn(), delta=1e-3, trials=500).rule(500, 0.05, "auto")
    down = np.argsort(-scores)

    def chosen(labels: BoolArray) -> tuple[int, int]:
        ranking = _core.Ranking(scores, labels)
        return rule.choose_ends(ranking.path("member_half"), ranking.path("nonmember_half"))

    place, above = chosen(member)
    guesses = rule.levels[place]
    assert 0 < above < guesses < 400
    within = np.concatenate([down[:above], down[above - guesses :]])
    beyond = np.setdiff1d(down, within)
    rng, changed = np.random.default_rng(0), 0
    for _ in range(20):
        other = member.copy()
        other[within] = rng.random(guesses) < 0.5
        assert chosen(other) == (place, above)
        other[beyond] = rng.random(beyond.size) < 0.5
        changed += chosen(other) != (place, above)
    assert changed > 0


def test_it_proves_nearly_what_coins_do_and_nearly_what_ranks_did() -> None:
    """The twelve rows of the page: 20 games of 1,000 and 10,000 runs each."""
    for (m, delta, leak), proved, coins in rows(20):
        assert proved >= OF_COINS * coins, (m, delta, leak)
        assert proved >= OF_RANKS * RANKS[m, delta, leak], (m, delta, leak)
