"""Each claim turns correct guesses into a bound on its own parameter."""

import math
from itertools import product
from typing import Any, get_args

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
from leakbound.claims.base import GuessWords
from leakbound.claims.family import FamilyClaim
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError

NOISE = TradeOffFamily(parameter="scale", tradeoff=TradeOff.laplace, bracket=(0.01, 100.0))
FAMILIES: tuple[AnyFamily, ...] = (GaussianDP(), GaussianDP(delta=1e-3), LaplaceDP(), NOISE)
CLAIMS: tuple[Claim, ...] = (PureDP(), ApproxDP(delta=1e-4), *FAMILIES)
LEVELS = (1e-6, 0.05, 0.5, 0.9)


SPLIT = GuessWords(
    given="the table and the coins of earlier guesses",
    others="the coins of the other pairs",
    replacing=" replacing one user",
    source=" (as theirs)",
    adapted=", with pairs",
    before="Pairs are matched. ",
)
THEOREMS = {
    PureDP(): (
        "Pairs are matched. Given the table and the coins of earlier guesses, each guess is right "
        "with probability at most e^ε / (1 + e^ε) if training is ε-DP for replacing one user (as "
        "theirs). "
    ),
    ApproxDP(delta=1e-4): (
        "Pairs are matched. Given the coins of the other pairs, each guess is right with "
        "probability at most e^ε / (1 + e^ε), except in failures that (ε, δ)-DP for replacing one "
        "user makes rare. "
    ),
    GaussianDP(): (
        "Pairs are matched. Given the coins of the other pairs, each correct guess obeys the "
        "trade-off function of replacing one user, and so do the probabilities of all counts of "
        "correct guesses together (Mahloujifar, Melis and Chaudhuri 2025, Theorem 3.1, with "
        "pairs). ε is a conversion of the rejected curve and holds within the family. "
    ),
}


@pytest.mark.parametrize("claim", THEOREMS, ids=lambda claim: claim.name)
def test_a_claim_carries_its_theorem_in_the_words_of_a_design(claim: Claim) -> None:
    assert claim.theorem(SPLIT) == THEOREMS[claim]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_only_families_reject_a_curve(claim: Claim) -> None:
    family = isinstance(claim, FamilyClaim)
    rejected = claim.rejected(0.5, "both")
    assert (rejected is not None) == family
    assert claim.rejected(0.0, "both") is None
    assert claim.kind == ("family_lower_bound" if family else "lower_bound")
    if rejected is not None:
        assert rejected.delta(0.2) == claim.curve(0.5, "both").delta(0.2)


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
def test_a_claim_is_bounded_by_the_form_and_the_test_named(*, one_sided: bool) -> None:
    how: dict[str, Any] = {"one_sided": one_sided}
    for form, level in product(get_args(TailBound), LEVELS):
        found = ApproxDP(delta=1e-4).lower_bound(75, 80, 1000, level, form=form, **how)
        expected = stats.one_run_epsilon(75, 80, 1000, delta=1e-4, beta=level, bound=form, **how)
        assert found == expected
    for family, test in product(FAMILIES, get_args(FdpTest)):
        found = family.lower_bound(75, 80, 250.5, 0.05, test=test, **how)
        expected = stats.fdp_lower_bound(75, 80, 250.5, claim=family, tau=0.05, test=test, **how)
        assert found == expected


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


@pytest.mark.parametrize("near", [0.5, 0.97, 1.0, 1.03, 3.0])
@pytest.mark.parametrize("shape", ["smooth", "steep", "step"])
def test_a_search_near_its_end_finds_what_a_walk_does(shape: str, near: float) -> None:
    end, most = 1.2345678, 0.05
    asked: list[float] = []

    def value(theta: float) -> float:
        asked.append(theta)
        if shape == "step":
            return 0.01 if theta <= end else 0.9
        rate = 3 if shape == "smooth" else 300
        return min(1.0, most * math.exp(min(700.0, rate * (theta - end))))

    claim = GaussianDP()
    ends = (0.96 * near * end, 1.04 * near * end)
    found = claim.least_private_near(value, most, ends)
    assert found is not None
    assert value(found) <= most
    assert found == pytest.approx(end, rel=2e-9)
    if shape == "smooth" and ends[0] < end < ends[1]:
        assert len(asked) < 14


def test_a_search_that_nothing_is_rejected_in_says_so() -> None:
    assert GaussianDP().least_private_near(lambda _: 0.5, 0.05, (0.9, 1.1)) is None
