"""Audits of (ε, δ)-DP and f-DP: what is planned, what is paid, and what is said."""

from typing import Any, Literal

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, simulate, stats
from scans import kl_scan

Sides = Literal["both", "member"]
SIDES: tuple[Sides, ...] = ("both", "member")
CLAIM = lb.ApproxDP(delta=1e-5)
Game = tuple[np.ndarray, np.ndarray]


GAME = simulate.gaussian(1000, 1.0, seed=0)
GAUSSIAN = lb.GaussianDP()
OWN = lb.TradeOffFamily(parameter="mean", tradeoff=lb.TradeOff.gaussian, bracket=(0.02, 50.0))


def audit(claim: Any, **options: Any) -> lb.AuditResult:
    return flat.coins(GAME.scores, GAME.member, claim=claim, **options)


def gaussian(m: int, seed: int, shift: float = 1.0) -> Game:
    game = simulate.gaussian(m, shift, seed=seed)
    return game.scores, game.member


def guesses_of(game: Game, sides: Sides) -> np.ndarray:
    """Which guesses are right, from the ends of the ranking; m is even."""
    scores, member = game
    ranked = member[np.argsort(-scores)]
    if sides == "member":
        return ranked
    path = np.empty_like(ranked)
    path[::2], path[1::2] = ranked[: member.size // 2], ~ranked[::-1][: member.size // 2]
    return path


@pytest.mark.parametrize("sides", SIDES)
def test_a_fixed_number_of_guesses_is_the_function_of_stats(sides: Sides) -> None:
    game = gaussian(1000, 1)
    right = int(guesses_of(game, sides)[:60].sum())
    result = flat.coins(*game, claim=CLAIM, cuts=lb.Fixed(60), sides=sides)
    assert (result.guesses, result.correct) == (60, right)
    one_sided = sides == "member"
    expected = stats.one_run_epsilon(right, 60, 1000, delta=1e-5, beta=0.05, one_sided=one_sided)
    assert result.bound == pytest.approx(expected, abs=1e-11)
    assert result.options["cuts"] == {"type": "Fixed", "guesses": 60}


def test_a_scan_of_members_is_the_function_of_stats() -> None:
    game = gaussian(2000, 2)
    result = flat.coins(*game, claim=CLAIM, cuts=lb.KLScan(), sides="member")
    path = guesses_of(game, "member")
    expected = kl_scan(path, beta=0.05, min_guesses=100, delta=1e-5)
    assert (result.bound, result.guesses) == (expected.logit, expected.cut)
    assert result.options["cuts"]["min_guesses"] == 100


def test_a_scan_of_both_sides_is_the_best_of_three() -> None:
    game = gaussian(2000, 3)
    path = guesses_of(game, "both")
    result = flat.coins(*game, claim=CLAIM, cuts=lb.KLScan())
    level = result.options["level"]
    together = kl_scan(path, beta=level, min_guesses=100, delta=1e-5, one_sided=False)
    # a path of one role has half of the guesses, and failures of all of the examples
    halves = [
        kl_scan(side, beta=level, min_guesses=100, delta=2e-5) for side in (path[::2], path[1::2])
    ]
    assert level == pytest.approx(0.05 / 3)
    best = max(bound.logit for bound in (together, *halves))
    assert result.bound == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("sides", SIDES)
def test_a_union_is_the_best_of_its_cuts(sides: Sides) -> None:
    m = 60
    game = gaussian(m, 4, shift=3.0)
    path = guesses_of(game, sides)
    result = flat.coins(*game, claim=CLAIM, cuts=lb.UnionBound(), sides=sides)
    paths = {
        "member": [(path, True)],
        "both": [(path[::2], True), (path[1::2], True), (path, False)],
    }
    best = max(
        stats.one_run_epsilon(
            int(one[:r].sum()),
            r,
            m,
            delta=1e-5,
            beta=0.05 / len(paths[sides]) / one.size,
            one_sided=one_sided,
        )
        for one, one_sided in paths[sides]
        for r in range(1, one.size + 1)
    )
    assert result.bound == pytest.approx(best, abs=1e-11)
    assert best > 0


def test_a_bound_speaks_of_smaller_deltas_too() -> None:
    result = flat.coins(*gaussian(3000, 8), claim=CLAIM)
    assert result.epsilon() == result.epsilon(delta=1e-6) == result.epsilon(delta=1e-5)
    assert result.check(epsilon=0.5, delta=1e-5) == result.check(epsilon=0.5) == "refuted"
    assert result.check(epsilon=result.ceiling + 0.1, delta=1e-5) == "inconclusive"
    with pytest.raises(errors.OptionError, match="at most 1e-05"):
        result.epsilon(delta=1e-4)
    with pytest.raises(errors.OptionError, match=r"delta = 0\.1"):
        result.check(epsilon=1, delta=0.1)


@pytest.mark.parametrize("claim", [CLAIM, GAUSSIAN], ids=repr)
@pytest.mark.parametrize("sides", SIDES)
def test_the_plan_is_made_before_labels(sides: Sides, claim: Any) -> None:
    scores, member = gaussian(3000, 5)
    leaking = lb.audit(scores, lb.Coins(member), claim=claim, sides=sides)
    noise = lb.audit(scores, lb.Coins(member[::-1].copy()), claim=claim, sides=sides)
    told, plain = leaking.options["outside_in"], noise.options["outside_in"]
    for name in ("levels", "failures"):
        assert told.get(name) == plain.get(name)
    assert leaking.options["cuts"] == noise.options["cuts"]
    assert leaking.options["cuts"] == {"type": "SecondLook", "look": 0.05, "scan": 0.05}
    assert leaking.bound > 0.4 > noise.bound


@pytest.mark.parametrize("claim", [CLAIM, GAUSSIAN], ids=repr)
def test_ties_are_broken_by_the_seed_alone(claim: Any) -> None:
    scores, member = gaussian(2000, 10)
    how: dict[str, Any] = {"claim": claim, "cuts": lb.Fixed(100)}
    results = [flat.coins(np.round(scores), member, **how, seed=seed) for seed in (0, *range(9))]
    assert {result.guesses for result in results} == {100}
    assert len({result.correct for result in results}) > 1
    assert any("ordered at random" in text for text in results[0].warnings)
    assert results[0] == results[1]
    with pytest.raises(errors.AbstentionError):
        flat.coins(np.ones(10), member[:10], claim=claim)


def test_a_union_pays_for_its_grid() -> None:
    alone = audit(GAUSSIAN, cuts=lb.Fixed(150))
    among = audit(GAUSSIAN, cuts=lb.UnionBound(grid=[150]))
    paid = audit(GAUSSIAN, cuts=lb.UnionBound(grid=[50, 150]))
    assert among.bound == alone.bound
    expected = max(
        stats.fdp_lower_bound(int(right), int(made), 1000, claim=GAUSSIAN, tau=0.025)
        for made, right in zip(paid.curve.guesses, paid.curve.correct, strict=True)
        if made in (50, 150)
    )
    assert paid.bound == expected


def test_a_family_of_ones_own_is_stored_without_its_function() -> None:
    mu, own = audit(GAUSSIAN), audit(OWN)
    assert own.bound == pytest.approx(mu.bound, rel=1e-3)
    assert "mean >=" in repr(own)
    claim: Any = lb.AuditResult.from_json(own.to_json()).claim
    with pytest.raises(errors.FormatError, match="only the name"):
        claim.tradeoff(1.0)


def test_verdicts() -> None:
    result = audit(GAUSSIAN)
    assert result.check(parameter=0.5) == "refuted"
    assert result.check(parameter=1.0) == "not refuted"
    assert result.check(parameter=5.0) == "inconclusive"
    assert result.check(epsilon=1.0, delta=1e-5) == "refuted"
    assert result.check(epsilon=3.5, delta=1e-5) == "not refuted"
    assert result.check(epsilon=30.0, delta=1e-5) == "inconclusive"
    with pytest.raises(errors.OptionError, match="one of them"):
        result.check()
    with pytest.raises(errors.OptionError, match="one of them"):
        result.check(epsilon=1.0, parameter=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"claim": CLAIM, "cuts": lb.UnionBound(tail="hoeffding")}, "delta"),
        ({"cuts": lb.KLScan()}, "KLScan is not for Gaussian DP"),
        ({"cuts": lb.UnionBound()}, "a few numbers of guesses"),
        ({"cuts": lb.UnionBound(grid=[5], tail="hoeffding")}, 'tail="exact"'),
        ({"prior": 0.3}, "prior other than 1/2"),
        ({"cuts": lb.Fixed(1001)}, "more guesses than there are examples"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.OptionError, match=message):
        audit(**{"claim": GAUSSIAN} | options)
