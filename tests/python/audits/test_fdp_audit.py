"""Audits of one run for families of trade-off functions."""

from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, simulate, stats
from leakbound.audits.policies.reference import plan_guesses

GAME = simulate.gaussian(1000, 1.0, seed=0)
OWN = lb.TradeOffFamily(parameter="mean", tradeoff=lb.TradeOff.gaussian, bracket=(0.02, 50.0))


def audit(claim: Any, **options: Any) -> lb.AuditResult:
    result: lb.AuditResult = flat.coins(GAME.scores, GAME.member, claim=claim, **options)
    return result


def test_the_bound_is_that_of_the_counts() -> None:
    for sides, one_sided in (("both", False), ("member", True)):
        result = audit(lb.GaussianDP(), sides=sides, cuts=lb.Fixed(150))
        assert result.guesses == 150
        assert result.bound == stats.fdp_lower_bound(
            result.correct, 150, 1000, claim=lb.GaussianDP(), one_sided=one_sided
        )


def test_a_union_pays_for_its_grid() -> None:
    alone = audit(lb.GaussianDP(), cuts=lb.Fixed(150))
    among = audit(lb.GaussianDP(), cuts=lb.UnionBound(grid=[150]))
    paid = audit(lb.GaussianDP(), cuts=lb.UnionBound(grid=[50, 150]))
    assert among.bound == alone.bound
    expected = max(
        stats.fdp_lower_bound(int(right), int(made), 1000, claim=lb.GaussianDP(), tau=0.025)
        for made, right in zip(paid.curve.guesses, paid.curve.correct, strict=True)
        if made in (50, 150)
    )
    assert paid.bound == expected


def test_a_family_of_ones_own_is_stored_without_its_function() -> None:
    mu, own = audit(lb.GaussianDP()), audit(OWN)
    assert own.bound == pytest.approx(mu.bound, rel=1e-3)
    assert "mean >=" in repr(own)
    claim: Any = lb.AuditResult.from_json(own.to_json()).claim
    with pytest.raises(errors.FormatError, match="only its name"):
        claim.tradeoff(1.0)


def test_verdicts() -> None:
    result = audit(lb.GaussianDP())
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


def test_the_plan_sees_no_label() -> None:
    first = audit(lb.GaussianDP())
    second = lb.audit(-GAME.scores, lb.Coins(GAME.member), claim=lb.GaussianDP())
    levels = first.options["outside_in"]["levels"]
    assert levels == second.options["outside_in"]["levels"]
    fixed, proved = plan_guesses(1000, 0.05, lb.GaussianDP(), "both")
    assert levels[0] < fixed.guesses < levels[-1]
    assert 0.5 < proved < 1.0


def test_ties_are_broken_by_the_seed() -> None:
    coarse = np.round(GAME.scores)
    results = [
        lb.audit(
            coarse, lb.Coins(GAME.member), claim=lb.GaussianDP(), seed=seed, cuts=lb.Fixed(150)
        )
        for seed in (1, 1, 2, 3)
    ]
    assert results[0].guesses == 150
    assert results[0] == results[1]
    assert len({result.correct for result in results}) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cuts": lb.KLScan()}, "KLScan is not for Gaussian DP"),
        ({"cuts": lb.UnionBound()}, "a few numbers of guesses"),
        ({"cuts": lb.UnionBound(grid=[5], tail="hoeffding")}, 'tail="exact"'),
        ({"prior": 0.3}, "prior other than 1/2"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.OptionError, match=message):
        audit(lb.GaussianDP(), **options)
    with pytest.raises(errors.OptionError, match="more guesses than there are examples"):
        audit(lb.GaussianDP(), cuts=lb.Fixed(1001))
