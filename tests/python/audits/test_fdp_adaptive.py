"""Numbers of guesses that depend on scores, under families of trade-off functions."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import errors, simulate, stats
from leakbound._base.types import FloatArray, Sides
from leakbound.audits.policies.score_adaptive import Thresholds, adaptive_policy, outlying
from leakbound.validity import most_errors

TAU = 0.1
M = 300
LEVELS = (30, 60, 120)
GAME = simulate.gaussian(1000, 1.5, seed=0)
SIGMA = lb.TradeOffFamily(
    parameter="sigma",
    tradeoff=lambda sigma: lb.TradeOff.gaussian(1 / sigma),
    bracket=(0.02, 50.0),
    increasing=False,
)

PLAYS: dict[str, Callable[[int], simulate.Game]] = {
    "null": lambda seed: simulate.null(M, seed=seed),
    "gaussian": lambda seed: simulate.gaussian(M, 1.0, seed=seed),
    "mixture": lambda seed: simulate.mixture(M, 1.0, seed=seed),
}


def audit(cuts: Any, claim: Any = None, **options: Any) -> lb.AuditResult:
    claim = lb.GaussianDP() if claim is None else claim
    result: lb.AuditResult = lb.audit_one_run(
        GAME.scores, GAME.member, claim=claim, cuts=cuts, **options
    )
    return result


def least(levels: tuple[int, ...], mu: float, sides: Sides, m: int = M) -> list[int]:
    curve = lb.TradeOff.gaussian(mu).core
    return _core.fdp_least_correct(levels, m, sides == "member", curve, TAU)


def by_outliers(scores: FloatArray, sides: Sides) -> int:
    """Return a level that depends on how many scores are far out: about 60 are."""
    apart = (scores - scores.mean()) / scores.std()
    count = (apart > 0.84).sum() if sides == "member" else (np.abs(apart) > 1.28).sum()
    return int(np.digitize(count, [58, 63]))


def by_gaps(scores: FloatArray, sides: Sides) -> int:
    """Return the level before the widest gap: what a greedy attack would guess."""
    ranked = np.sort(scores)[::-1]
    edges = [level if sides == "member" else level // 2 for level in LEVELS]
    return int(np.argmax([ranked[edge - 1] - ranked[edge] for edge in edges]))


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("choose", [by_outliers, by_gaps])
@pytest.mark.parametrize(("name", "mu"), [("null", 0.0), ("gaussian", 1.0), ("mixture", 1.0)])
@pytest.mark.parametrize(
    "games", [pytest.param(500, id="quick"), pytest.param(20_000, marks=pytest.mark.validity)]
)
def test_the_truth_is_kept(
    name: str, mu: float, choose: Callable[[FloatArray, Sides], int], sides: Sides, games: int
) -> None:
    counts = least(LEVELS, mu, sides)
    order: Literal["member", "interleaved"] = "member" if sides == "member" else "interleaved"
    rejected, seen = 0, set()
    for seed in range(games):
        game = PLAYS[name](seed)
        level = choose(game.scores, sides)
        path = _core.Ranking(game.scores, game.member).path(order)
        made, right = path.count(LEVELS[level])
        assert made == LEVELS[level]
        rejected += right >= counts[level]
        seen.add(level)
    assert len(seen) > 1
    assert rejected <= most_errors(games, TAU, 12)


def test_without_leakage_a_level_alone_is_the_binomial_test() -> None:
    (count,) = least((60,), 0.0, "both")
    assert stats.binomial_tail(count, 60, 0.5) <= TAU < stats.binomial_tail(count - 1, 60, 0.5)
    for level, joint in zip(LEVELS, least(LEVELS, 0.0, "both"), strict=True):
        (alone,) = least((level,), 0.0, "both")
        assert alone <= joint
        share = TAU / len(LEVELS)
        assert stats.binomial_tail(joint - 1, level, 0.5) > share


@pytest.mark.parametrize("claim", [lb.GaussianDP(), lb.LaplaceDP(), SIGMA], ids=repr)
@pytest.mark.parametrize("sides", ["both", "member"])
def test_counts_never_fall_from_a_curve_to_a_less_private_one(claim: Any, sides: Sides) -> None:
    policy, _ = adaptive_policy(
        lb.ScoreAdaptive(LEVELS), claim, "tight", simulate.null(M, seed=0).scores, sides
    )

    class Recorded(Thresholds):
        def at(self, theta: float) -> Any:
            counts = super().at(theta)
            known = met.setdefault(theta, counts)
            assert np.array_equal(known, counts)
            return counts

    met: dict[float, Any] = {}
    for level, guesses in enumerate(LEVELS):
        for share in (0.6, 0.75, 0.8, 0.9, 1.0):
            walk = Recorded(policy, TAU)
            right = int(share * guesses)
            claim.least_private(partial(walk.refuted, level=level, correct=right))
    ordered = [met[theta] for theta in sorted(met, reverse=claim.order == "decreasing")]
    assert len(ordered) > 200
    assert np.all(np.diff(ordered, axis=0) >= 0)


@pytest.mark.parametrize("claim", [lb.GaussianDP(), lb.LaplaceDP(), SIGMA], ids=repr)
@pytest.mark.parametrize("sides", ["both", "member"])
def test_audits_lose_little_to_a_number_fixed_in_advance(claim: Any, sides: Sides) -> None:
    result = audit(lb.ScoreAdaptive([100, 200]), claim, sides=sides)
    fixed = audit(lb.Fixed(result.guesses), claim, sides=sides)
    halved = audit(lb.Fixed(result.guesses), claim, sides=sides, confidence=0.975)
    ratios = [fixed.bound / result.bound, result.bound / halved.bound]
    if result.bounds_above:
        ratios = [1 / ratio for ratio in ratios]
    assert min(ratios) > 0.9999
    assert ratios[0] < 1.03
    assert result.kind == "family_lower_bound"
    assert result.rejected is not None
    assert result.options["cuts"] == {"type": "ScoreAdaptive", "levels": [100, 200]}
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_the_level_is_the_one_nearest_to_how_many_stand_out() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=900), 50 + rng.normal(size=100)])
    member = rng.random(1000) < 0.5
    for truth in (member, ~member):
        cuts = lb.ScoreAdaptive([50, 100, 200])
        result = lb.audit_one_run(scores, truth, claim=lb.GaussianDP(), cuts=cuts)
        assert result.guesses == 100
        count = outlying(scores, "both")
        assert result.options["adaptive"] == {"outlying": count, "guesses": 100}
    assert outlying(scores, "member") <= count
    assert outlying(-scores, "member") < 10


def test_scores_without_scale() -> None:
    few = np.concatenate([np.zeros(60), np.full(5, np.inf), np.full(7, -np.inf)])
    assert (outlying(few, "both"), outlying(few, "member")) == (12, 5)
    many = np.concatenate([np.zeros(5), np.ones(4), np.full(20, -np.inf)])
    assert (outlying(many, "both"), outlying(many, "member")) == (9, 9)


@pytest.mark.parametrize("levels", [[], [0, 5], [5, 5], [9, 3], [True], "ab", 7, [2.5]])
def test_levels_are_increasing_numbers(levels: Any) -> None:
    with pytest.raises((errors.OptionError, errors.OptionTypeError), match="levels"):
        lb.ScoreAdaptive(levels)


def test_what_it_is_not_for() -> None:
    cuts = lb.ScoreAdaptive([10, 20])
    for claim in (lb.PureDP(), lb.ApproxDP(delta=1e-5)):
        with pytest.raises(errors.IncompatibleOptionsError, match="ScoreAdaptive"):
            audit(cuts, claim)
    with pytest.raises(errors.IncompatibleOptionsError, match="recursion"):
        audit(cuts, test="recursion")
    with pytest.raises(errors.OptionError, match="more guesses than there are"):
        audit(lb.ScoreAdaptive([10, 2000]))
