"""Each claim turns correct guesses into a bound on its own parameter."""

import math
from typing import get_args

import pytest

from leakbound import stats
from leakbound._base.types import FdpTest, TailBound
from leakbound.claims import (
    AnyFamily,
    ApproxDP,
    Claim,
    GaussianDP,
    LaplaceDP,
    PureDP,
    TradeOffFamily,
)
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError

NOISE = TradeOffFamily(
    parameter="scale",
    tradeoff=TradeOff.laplace,
    bracket=(0.01, 100.0),
)
FAMILIES: tuple[AnyFamily, ...] = (GaussianDP(), GaussianDP(delta=1e-3), LaplaceDP(), NOISE)
CLAIMS: tuple[Claim, ...] = (PureDP(), ApproxDP(delta=1e-4), *FAMILIES)
LEVELS = (1e-6, 0.05, 0.5, 0.9)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_no_guesses_and_no_correct_ones_prove_nothing(claim: Claim) -> None:
    for guesses in (0, 20):
        assert claim.lower_bound(0, guesses, 100, 0.05) == 0.0


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_more_correct_guesses_prove_more(claim: Claim) -> None:
    bounds = [claim.lower_bound(correct, 40, 100, 0.05) for correct in (20, 32, 36, 40)]
    assert bounds[0] == 0 < bounds[1] < bounds[2] < bounds[3]


@pytest.mark.parametrize("level", LEVELS)
def test_pure_dp_is_bounded_by_the_log_odds_of_the_clopper_pearson_limit(level: float) -> None:
    for correct in range(31):
        p = stats.clopper_pearson(correct, 30, beta=level)
        odds = math.log(p) - math.log1p(-p) if p else -math.inf
        found = PureDP().lower_bound(correct, 30, 100, level)
        assert found == max(0.0, odds)
        assert found == pytest.approx(
            stats.one_run_epsilon(correct, 30, 100, delta=0.0, beta=level), abs=1e-9
        )


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("form", get_args(TailBound))
def test_approximate_dp_is_bounded_by_the_tail_bound_named(
    form: TailBound, *, one_sided: bool
) -> None:
    for level in LEVELS:
        assert ApproxDP(delta=1e-4).lower_bound(
            75, 80, 1000, level, form=form, one_sided=one_sided
        ) == stats.one_run_epsilon(
            75, 80, 1000, delta=1e-4, beta=level, bound=form, one_sided=one_sided
        )


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("test", ["tight", "recursion"])
@pytest.mark.parametrize("claim", FAMILIES, ids=lambda claim: claim.name)
def test_a_family_is_bounded_by_the_test_named(
    claim: AnyFamily, test: FdpTest, *, one_sided: bool
) -> None:
    found = claim.lower_bound(75, 80, 250.5, 0.05, test=test, one_sided=one_sided)
    assert found == stats.fdp_lower_bound(
        75, 80, 250.5, claim=claim, tau=0.05, test=test, one_sided=one_sided
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_counts_and_levels_out_of_range_are_refused(claim: Claim) -> None:
    for correct, guesses, m, level in (
        (6, 5, 10, 0.05),
        (-1, 5, 10, 0.05),
        (1, -1, 10, 0.05),
        (1, 5, 0, 0.05),
        (1, 5, 10, 0.0),
        (1, 5, 10, 1.0),
    ):
        with pytest.raises(OptionError):
            claim.lower_bound(correct, guesses, m, level)
    with pytest.raises(OptionError, match="form"):
        claim.lower_bound(1, 5, 10, 0.05, form="closed")  # type: ignore[arg-type]
