"""The second look of Zero-Run: what it proves where outer scores are noise, and its share."""

from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, CoinSides, FloatArray
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import Fixed, OutsideIn, SecondLook
from leakbound.errors import OptionError

LEVEL = 0.05
CLAIMS = [PureDP(), ApproxDP(delta=1e-5), GaussianDP()]


def saturated(
    m: int, seed: int, *, mu: float = 1.4, share: float = 0.05
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Scores, membership and features: a share of scores is ±inf and says nothing, others N(μ)."""
    rng = np.random.default_rng([m, seed, 5])
    features = rng.normal(size=(m, 2))
    member = rng.random(m) < expit(features[:, 0])
    scores = rng.normal(size=m) + mu * member
    ends = np.where(rng.random(m) < 0.5, np.inf, -np.inf)
    return np.where(rng.random(m) < share, ends, scores), member, features


def parts_of(result: lb.ZeroRunResult) -> Any:
    """Return what a result tells of its parts."""
    return result.options["parts"]


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_infinite_scores_that_say_nothing_cost_little(claim: Claim, sides: CoinSides) -> None:
    """At known odds: as much as the best number of guesses, and twice what OutsideIn does."""
    found: dict[str, list[float]] = {}
    for seed in range(2):
        scores, member, features = saturated(8000, seed)
        how: dict[str, Any] = {"claim": claim, "sides": sides, "correction": "match", "seed": seed}
        given = (scores, member, expit(features[:, 0]))
        numbers = (300, 1000, 2000)
        ways = {"default": None, "outside in": OutsideIn()} | {str(n): Fixed(n) for n in numbers}
        for name, cuts in ways.items():
            found.setdefault(name, []).append(flat.zero_run(*given, cuts=cuts, **how).bound)
    means = {name: float(np.mean(bounds)) for name, bounds in found.items()}
    assert means["default"] >= 0.9 * max(means.values()) > 0
    assert means["outside in"] < 0.5 * means["default"]


@pytest.mark.parametrize("claim", [*CLAIMS, LaplaceDP()], ids=lambda claim: claim.name)
def test_parts_share_the_level_and_the_largest_counts(claim: Claim) -> None:
    scores, member, features = saturated(1500, 0)
    result = flat.zero_run(
        scores, member, expit(features[:, 0]), claim=claim, correction="match", seed=0
    )
    parts = parts_of(result)
    first = "scan" if isinstance(claim, PureDP) else "outside-in"
    assert [part["name"] for part in parts] == [first, "look"]
    assert [part["level"] for part in parts] == pytest.approx([0.95 * LEVEL, 0.05 * LEVEL])
    best = max(parts, key=lambda part: part["bound"])
    assert result.bound == best["bound"] > 0
    assert (result.guesses, result.correct) == (best["guesses"], best["correct"])
    assert result.options["cuts"] == {"type": "SecondLook", "look": 0.05, "scan": 0.05}
    assert "look (5 %)" in result.theorem


def test_shares_are_options() -> None:
    scores, member, features = saturated(1500, 0)
    given = (scores, member, expit(features[:, 0]))
    result = flat.zero_run(*given, cuts=SecondLook(look=0.9), seed=0)
    assert [part["level"] for part in parts_of(result)] == pytest.approx([0.005, 0.045])


@pytest.mark.parametrize(
    ("claim", "correction"), [(PureDP(), "poisson_binomial"), (GaussianDP(), "tamper")]
)
def test_corrections_with_a_fixed_number_refuse_it_by_name(claim: Claim, correction: str) -> None:
    scores, member, features = saturated(200, 0)
    given = (scores, member, expit(features[:, 0]))
    with pytest.raises(OptionError, match="SecondLook"):
        flat.zero_run(*given, claim=claim, correction=correction, cuts=SecondLook(), seed=0)


def test_what_shift_would_have_claimed_is_what_the_default_claims_of_coins() -> None:
    """It was 0 where outer scores were noise, below the bound with the correction."""
    scores, member, features = saturated(8000, 0)
    result = flat.zero_run(scores, member, expit(features[:, 0]), claim=PureDP(), seed=0)
    coins = lb.audit(scores, lb.Coins(member), claim=PureDP(), sides="both", seed=0)
    assert result.naive == coins.bound > result.bound
