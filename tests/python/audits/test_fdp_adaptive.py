"""Numbers of guesses that depend on scores, under families of trade-off functions."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import errors, simulate, stats
from leakbound._base.types import FloatArray, Sides
from leakbound.cuts import ScoreGame
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


def least(levels: tuple[int, ...], mu: float, sides: Sides) -> tuple[list[int], float]:
    """Return the least counts at a μ, and the joint bound on reaching the one at the level."""
    curve, one_sided = lb.TradeOff.gaussian(mu).core, sides == "member"
    tau = [TAU / 1.4] * len(levels)
    counts = _core.fdp_least_rejected(levels, M, one_sided, curve, tau)
    reached = [(made, c) for made, c in zip(levels, counts, strict=True) if c <= made]
    made, right = zip(*reached, strict=True)
    return counts, _core.JointCertificate(made, right, M, one_sided, curve).bound_for(curve)


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
    counts, bound = least(LEVELS, mu, sides)
    assert TAU / 2.5 < bound < 1.3 * TAU
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
    assert rejected <= most_errors(games, bound, 12)


@pytest.mark.parametrize("sides", ["both", "member"])
def test_least_counts_never_fall_and_one_level_is_its_tight_test(sides: Sides) -> None:
    before = [0] * len(LEVELS)
    for mu in np.linspace(0, 1.2, 25):
        counts, bound = least(LEVELS, float(mu), sides)
        assert all(a <= b for a, b in zip(before, counts, strict=True))
        assert bound > 0
        before = counts
    curve = lb.TradeOff.gaussian(0.5).core
    one_sided = sides == "member"
    (count,) = _core.fdp_least_rejected([60], M, one_sided, curve, [TAU])
    alone = _core.JointCertificate([60], [count], M, one_sided, curve).bound_for(curve)
    tradeoff = lb.TradeOff.gaussian(0.5)
    tight = stats.fdp_p_value(count, 60, M, tradeoff=tradeoff, one_sided=one_sided)
    assert 0.999 * tight < alone < 1.02 * tight


@pytest.mark.parametrize(
    "claim", [lb.GaussianDP(), lb.LaplaceDP(), SIGMA], ids=lambda claim: claim.name
)
@pytest.mark.parametrize("sides", ["both", "member"])
def test_audits_lose_little_to_a_number_fixed_in_advance(claim: Any, sides: Sides) -> None:
    result = audit(lb.ScoreAdaptive([100, 200]), claim, sides=sides)
    fixed = audit(lb.Fixed(result.guesses), claim, sides=sides)
    halved = audit(lb.Fixed(result.guesses), claim, sides=sides, confidence=0.975)
    ratios = [fixed.bound / result.bound, result.bound / halved.bound]
    if result.bounds_above:
        ratios = [1 / ratio for ratio in ratios]
    assert min(ratios) > 0.9999
    assert ratios[0] < 1.06
    assert result.kind == "family_lower_bound"
    assert result.rejected is not None
    assert result.options["cuts"] == {"type": "ScoreAdaptive", "levels": [100, 200]}
    assert lb.AuditResult.from_json(result.to_json()) == result


def outlying(scores: FloatArray, sides: Sides) -> int:
    member = np.zeros(scores.size, dtype=np.bool_)
    return ScoreGame(scores=scores, member=member, sides=sides, seed=0).outlying()


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
    with pytest.raises(errors.IncompatibleOptionsError, match="ScoreAdaptive"):
        audit(cuts, lb.PureDP())
    with pytest.raises(errors.IncompatibleOptionsError, match="recursion"):
        audit(cuts, test="recursion")
    with pytest.raises(errors.OptionError, match="more guesses than there are"):
        audit(lb.ScoreAdaptive([10, 2000]))
