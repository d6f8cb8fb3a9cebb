"""Tests of f-DP at one number of guesses, through `leakbound.stats`."""

import pytest

from leakbound import errors, stats
from leakbound._base.types import FdpTest
from leakbound.claims import GaussianDP, LaplaceDP, TradeOffFamily
from leakbound.claims.tradeoff import TradeOff

ONE = TradeOff.gaussian(1.0)


@pytest.mark.parametrize(("test", "width"), [("recursion", 1e-11), ("tight", 1e-4)])
def test_the_bound_is_the_largest_rejected(test: FdpTest, width: float) -> None:
    mu = stats.fdp_lower_bound(900, 1000, 10_000, claim=GaussianDP(), test=test)
    below, above = (TradeOff.gaussian(mu * (1 + side * width)) for side in (-1, 1))
    assert stats.fdp_rejects(900, 1000, 10_000, tradeoff=below, test=test)
    assert not stats.fdp_rejects(900, 1000, 10_000, tradeoff=above, test=test)
    p = stats.fdp_p_value(900, 1000, 10_000, tradeoff=TradeOff.gaussian(mu), test=test)
    assert p == pytest.approx(0.05, rel=max(1e-6, 10 * width))


def test_nothing_rejected() -> None:
    family = TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.01, 100.0))
    assert stats.fdp_lower_bound(50, 100, 1000, claim=GaussianDP()) == 0.0
    assert stats.fdp_lower_bound(50, 100, 1000, claim=LaplaceDP()) == 0.0
    assert stats.fdp_lower_bound(50, 100, 1000, claim=family) == 0.0
    assert stats.fdp_p_value(0, 100, 1000, tradeoff=ONE) == 1.0


def test_a_bracket_that_is_rejected_whole_gives_its_end() -> None:
    family = TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.0, 0.5))
    assert stats.fdp_lower_bound(100, 100, 100, claim=family) == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct": 51}, "correct"),
        ({"correct": -1}, "correct"),
        ({"guesses": 0}, "guesses"),
        ({"m": 0.0}, "m must be above 0"),
        ({"tau": 0.0}, "tau must be above 0"),
        ({"tau": 1.0}, "tau"),
        ({"k": 1}, "k"),
        ({"k": 3, "one_sided": True}, "one_sided=True is for membership"),
        ({"test": "best"}, "test must be one of"),
    ],
)
def test_bad_input(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"correct": 40, "guesses": 50, "m": 100.0, "tradeoff": ONE}
    with pytest.raises(errors.OptionError, match=message):
        stats.fdp_rejects(**(arguments | change))  # type: ignore[arg-type]


def test_a_user_family_agrees_with_the_built_in_one() -> None:
    family = TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.0, 20.0))
    for one_sided in (False, True):
        mu = stats.fdp_lower_bound(80, 100, 400, claim=GaussianDP(), one_sided=one_sided)
        found = stats.fdp_lower_bound(80, 100, 400, claim=family, one_sided=one_sided)
        assert found == pytest.approx(mu, rel=1e-5)
        assert stats.fdp_rejects(80, 100, 400, tradeoff=family.tradeoff(found), one_sided=one_sided)
