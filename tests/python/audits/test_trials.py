"""Audits of independent trials: the worst law, its statistic, and the bound."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.policies.trials import (
    _LOWERED,
    _SIMULATED,
    Cells,
    TrialsPolicy,
    pooled,
)
from leakbound.audits.trials import _tossed
from leakbound.claims.tradeoff import convex_hull
from leakbound.errors import AbstentionError, DesignError, InputError, OptionError
from leakbound.stats import binomial_tail

Play: TypeAlias = Callable[[np.random.Generator, BoolArray], FloatArray]
CURVES = {
    "gaussian": lb.TradeOff.gaussian(1.2),
    "failing": lb.TradeOff.gaussian(0.7, 0.05),
    "laplace": lb.TradeOff.laplace(1.0),
    "response": lb.TradeOff.approx(1.0, 0.02),
    "steep": lb.TradeOff.table([0, 0.1, 1], [0.9, 0.6, 0]),
}


def game(m: int, seed: int, shift: float = 1.0) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    return rng.normal(size=m) + shift * member, member


def ranked(scores: FloatArray, member: BoolArray, rng: np.random.Generator) -> BoolArray:
    return member[np.lexsort((rng.random(scores.size), -scores))]


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("m", [10, 61])
def test_members_between_ranks_have_the_law_of_likelihood_ratios(
    curve: lb.TradeOff, m: int
) -> None:
    """Against the game itself, of two laws on the lines of the curve: means and covariances."""
    level, missed = convex_hull(*curve.corners())
    laws = np.diff(level, prepend=0), np.diff(1 - missed, prepend=0)
    cells, rng = Cells(m), np.random.default_rng(m)
    drawn = cells.simulate(pooled(curve), rng, 40_000)
    played = []
    for _ in range(4_000):
        member = rng.random(m) < 0.5
        which = np.empty(m)
        for told, law in zip((~member, member), laws, strict=True):
            which[told] = rng.choice(law.size, told.sum(), p=law / law.sum())
        played.append(np.add.reduceat(ranked(-which, member, rng), cells.edges[:-1], dtype=int))
    games = np.array(played)
    some = np.vstack([np.eye(cells.sizes.size), rng.normal(size=(8, cells.sizes.size))]).T
    one, other = drawn @ some, games @ some
    spread = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other) + 1e-9)
    assert np.abs((one.mean(axis=0) - other.mean(axis=0)) / spread).max() < 4.5
    assert one.std(axis=0)[-8:] == pytest.approx(other.std(axis=0)[-8:], rel=0.06)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_lines_of_a_curve_allow_at_least_as_much_and_hardly_more(curve: lb.TradeOff) -> None:
    level, missed = curve.corners()
    inside = np.linspace(0, 1, 2_001)
    below = curve.f(inside) - np.interp(inside, level, missed)
    assert below.min() > -1e-15
    assert below.max() < 1e-4


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("m", [10, 11, 60, 5_001])
def test_statistics_grow_when_a_member_moves_up(curve: lb.TradeOff, m: int) -> None:
    cells = Cells(m)
    assert cells.sizes.sum() == m
    assert (cells.sizes == cells.sizes[::-1]).all()
    assert (np.diff(cells.statistic(pooled(curve)).slopes) <= 0).all()


GAUSSIAN, LAPLACE, SHARE = lb.GaussianDP(), lb.LaplaceDP(), 0.3


def _told(share: float) -> lb.TradeOff:
    return lb.TradeOff.table([0, 1], [1 - share, 0])


BOUNDARIES: dict[str, tuple[Any, float, Play]] = {
    "gaussian": (GAUSSIAN, 1.0, lambda rng, b: rng.normal(size=b.size) + b),
    "tied": (GAUSSIAN, 1.0, lambda rng, b: np.rint(rng.normal(size=b.size) + b)),
    "laplace": (LAPLACE, 1.0, lambda rng, b: rng.laplace(size=b.size) + b),
    "members-told": (
        lb.TradeOffFamily(parameter="share", tradeoff=_told, bracket=(0.01, 0.99)),
        SHARE,
        lambda rng, b: rng.random(b.size) + (b & (rng.random(b.size) < SHARE)),
    ),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_the_truth_is_refuted_at_the_level_and_no_more_often(name: str) -> None:
    """A bound is above the truth only if the truth is refuted; a doubled level would be seen."""
    claim, truth, play = BOUNDARIES[name]
    rng, level, games, m = np.random.default_rng(0), 0.1, 400, 60
    policy = TrialsPolicy(claim=claim, trials=m)
    counts = dict.fromkeys((level, 2 * level) if name == "gaussian" else (level,), 0)
    for _ in range(games):
        member = rng.random(m) < 0.5
        order = ranked(play(rng, member), member, rng)
        reached = policy.reached(np.add.reduceat(order, policy.cells.edges[:-1], dtype=int))
        for at in counts:
            counts[at] += policy.refuted(truth, reached, at, rng)
    assert binomial_tail(counts[level], games, level) > 1e-4
    if name == "gaussian":
        assert binomial_tail(counts[2 * level], games, level) < 1e-4


@pytest.mark.parametrize("level", [1e-4, 1e-3, 0.01, 0.05, 0.5, 0.9])
def test_the_lowered_level_covers_thirty_tests_of_one_search(level: float) -> None:
    """The p-value of the truth is at most uniform; each of 30 tests may reject by chance."""
    total = max(_SIMULATED, round(20 / level))
    most = int(total * level - _LOWERED * np.sqrt(total * level))
    edges = np.linspace(0, min(1, 3 * level), 2_001)
    chance = [1 - binomial_tail(most + 1, total, p) for p in edges[:-1]]  # falls with p
    assert np.minimum(1, 30 * np.array(chance)) @ np.diff(edges) < level


def test_independence_proves_more_of_curves_and_nothing_under_pure_dp() -> None:
    scores, member = game(1_000, 0)

    def bounds(claim: Any, **options: Any) -> tuple[float, float]:
        audits = (
            lb.audit(scores, one, claim=claim, seed=0, **options)
            for one in (lb.Trials(member), lb.Coins(member))
        )
        one, other = (audit.bound for audit in audits)
        return one, other

    one, other = bounds(GAUSSIAN)
    assert 1.05 * other < one < 1
    one, other = bounds(lb.ApproxDP(delta=0.01))
    assert 2 * other < one < 2
    same: list[tuple[Any, dict[str, Any]]] = [
        (lb.PureDP(), {}),
        (lb.ApproxDP(delta=1e-4), {"cuts": lb.OutsideIn()}),
        (GAUSSIAN, {"cuts": lb.Fixed(500)}),
        (GAUSSIAN, {"confidence": 1 - 1e-5}),
    ]
    for claim, options in same:
        one, other = bounds(claim, **options)
        assert one == other


def test_results_say_what_was_tested_and_assumed() -> None:
    scores, member = game(200, 1, shift=2.0)
    found = lb.audit(scores, lb.Trials(member), claim=GAUSSIAN, seed=3)
    again = lb.audit(scores**3, lb.Trials(member), claim=GAUSSIAN, seed=3)
    assert (found.bound, found.guesses, found.correct) == (
        again.bound,
        again.guesses,
        again.correct,
    )
    assert found.options["design"] == "trials"
    assert found.kind == "family_lower_bound"
    assert found.assumptions[0].name == "independent trials with fair coins"
    assert found.exposed is None
    assert 0 < found.bound < found.ceiling
    assert found.epsilon(1e-5) == lb.TradeOff.gaussian(found.bound).epsilon(1e-5)
    down = np.sort(scores)[::-1]
    top, bottom = scores >= down[found.guesses // 2 - 1], scores <= down[-(found.guesses // 2)]
    right = {
        "members": member[scores >= down[found.guesses - 1]].sum(),
        "non-members": (~member)[scores <= down[-found.guesses]].sum(),
        "interleaved": member[top].sum() + (~member)[bottom].sum(),
    }
    assert found.correct == right[found.path]
    assert lb.AuditResult.from_json(found.to_json()) == found


def test_a_perfect_attack_reaches_the_ceiling_and_none_more() -> None:
    member = np.arange(100) < 50
    for claim in (GAUSSIAN, lb.ApproxDP(delta=0.1)):
        found = lb.audit(np.arange(100), lb.Trials(~member), claim=claim, seed=0)
        assert found.bound == found.ceiling > 2.3, claim
        one = lb.audit(np.arange(100)[::-1], lb.Trials(np.roll(member, 1)), claim=claim, seed=0)
        assert one.bound < found.bound


def test_what_cannot_be_audited_is_refused() -> None:
    scores, member = game(40, 0)
    with pytest.raises(InputError, match="at least 10 runs, got 9"):
        lb.audit(scores[:9], lb.Trials(member[:9]), claim=GAUSSIAN)
    with pytest.raises(AbstentionError, match="equal"):
        lb.audit(np.zeros(40), lb.Trials(member), claim=GAUSSIAN)
    with pytest.raises(DesignError, match="coin must decide before each run"):
        lb.audit(scores, lb.Trials(np.arange(40) > 1), claim=GAUSSIAN)
    with pytest.raises(OptionError, match="does not apply to Trials"):
        lb.audit(scores, lb.Trials(member), claim=GAUSSIAN, sides="member")


def test_coins_of_one_run_are_no_trials() -> None:
    """A mechanism whose canaries leak together: trials claim too much, coins do not."""
    wrong = {lb.Trials: 0, lb.Coins: 0}
    for seed in range(20):
        played = lb.simulate.mixture(1_000, 1.0, seed=seed)
        for design in wrong:
            found = lb.audit(played.scores, design(played.member), claim=GAUSSIAN, seed=seed)
            wrong[design] += found.bound > 1
    assert wrong[lb.Trials] >= 6  # of 20 at 5 %: p = 3e-4
    assert wrong[lb.Coins] <= 3


def test_fixed_numbers_of_runs_become_trials_with_coins() -> None:
    """Randomised response at the truth, 10 %: twice as many false claims would show."""
    member, false = np.arange(110) < 40, 0
    for seed in range(400):
        right = np.random.default_rng(seed).random(110) < 1 / (1 + np.exp(-1))
        design = lb.Trials(member, fixed=True)
        result = lb.audit(1.0 * (member == right), design, confidence=0.9, seed=seed)
        false += result.bound > 1
    assert binomial_tail(false, 400, 0.1) > 1e-3
    assert result.m == 70
    assert (result.options["fixed"], result.options["runs"]) == (True, 110)
    assert 0.09 <= sum(part["level"] for part in result.options["parts"]) < 0.1
    assert result.assumptions[0].name == "independent runs, alike"
    with pytest.raises(InputError, match="got 10, of which 6 can be used"):
        lb.audit(np.arange(10.0), lb.Trials(np.arange(10) < 5, fixed=True))


def test_runs_of_fixed_numbers_are_taken_at_random_and_none_twice() -> None:
    member = np.arange(60) < 30
    used = np.zeros(60, dtype=int)
    members = []
    for seed in range(2_000):
        rows, share = _tossed(member, seed)
        assert np.unique(rows).size == rows.size
        used[rows] += 1
        members.append(member[rows].sum())
    trials = rows.size
    assert share == pytest.approx(1 - 2 * float(binomial_tail(31, trials, 0.5)))
    assert np.abs(used / 2_000 - trials / 60).max() < 0.04
    assert np.mean(members) == pytest.approx(trials / 2, abs=0.3)


def test_runs_that_share_seeds_are_seen_and_discrete_outputs_are_not_blamed() -> None:
    rng = np.random.default_rng(0)
    member, noise = rng.random(1000) < 0.5, rng.normal(size=1000)
    shared = lb.audit(noise[np.arange(1000) % 300] + member, lb.Trials(member), seed=0)
    assert [one for one in shared.warnings if "runs share a seed or a cache" in one]
    for scores in (noise + member, np.rint(3 * noise) + member, member.astype(float)):
        fine = lb.audit(scores, lb.Trials(member), seed=0)
        assert not [one for one in fine.warnings if "seed" in one]
