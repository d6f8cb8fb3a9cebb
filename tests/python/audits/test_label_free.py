"""Whether an audit raises, and how many guesses it plans, is settled before labels are seen."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound.audits.policies.reference import plan_guesses
from leakbound.claims.tradeoff import TradeOff

pytestmark = pytest.mark.usefixtures("few_trees")

OWN = lb.TradeOffFamily(parameter="ε", tradeoff=TradeOff.approx, bracket=(0.0, 3.0))
CLAIMS = [lb.PureDP(), lb.ApproxDP(delta=0.05), lb.GaussianDP(), lb.LaplaceDP(), OWN]


def outcomes(audit: Callable[[np.ndarray], Any], m: int) -> set[str]:
    """What comes of every vector of labels: a result that gives its reasons, or errors."""
    found = set()
    for labels in product([False, True], repeat=m):
        try:
            result = audit(np.array(labels))
            assert not np.isnan(result.bound)
            assert bool(result.reason) == (result.bound in (0.0, np.inf))
            found.add("result")
        except errors.LeakboundError as error:
            found.add(f"{type(error).__name__}: {error}")
    return found


def policies(m: int) -> Iterator[Any]:
    yield None
    yield from (lb.Fixed(r) for r in (1, m))
    yield from (lb.KLScan(), lb.KLScan(min_guesses=m))
    yield from (lb.UnionBound(), lb.UnionBound(grid=[1, 50]), lb.Weighted())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("confidence", [0.95, 0.4])
def test_one_run_raises_for_all_labels_or_for_none(
    claim: Any, sides: Any, confidence: float
) -> None:
    for m, scores in [(2, [0.0, 1.0]), (3, [0.0, 0.0, 1.0])]:
        for cuts in policies(m):

            def audit(labels: np.ndarray, scores: Any = scores, cuts: Any = cuts) -> Any:
                how = {"claim": claim, "sides": sides, "confidence": confidence, "cuts": cuts}
                return flat.coins(scores, labels, **how)

            assert len(outcomes(audit, m)) == 1, (m, cuts)


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.ApproxDP(delta=0.05), lb.GaussianDP()])
@pytest.mark.parametrize("correction", ["match", "tamper", "poisson_binomial", "composition"])
@pytest.mark.parametrize("sides", ["both", "member"])
def test_zero_run_raises_for_all_labels_or_for_none(
    claim: Any, correction: Any, sides: Any
) -> None:
    propensity = [0.9, 0.3, 0.5, 0.97]
    for scores in ([0.0, 1.0, 2.0, 3.0], [-np.inf, np.inf, 1.0, np.inf]):
        for cuts in policies(4):

            def audit(labels: np.ndarray, scores: Any = scores, cuts: Any = cuts) -> Any:
                how = {"claim": claim, "correction": correction, "sides": sides, "cuts": cuts}
                return flat.zero_run(scores, labels, propensity, **how)

            assert len(outcomes(audit, 4)) == 1, (scores, cuts)


@pytest.mark.parametrize("claim", [lb.GaussianDP(), lb.LaplaceDP(), OWN])
def test_a_count_that_no_mechanism_explains_says_so(claim: Any) -> None:
    how: dict[str, Any] = {"claim": claim, "sides": "member", "cuts": lb.Fixed(4)}
    result = flat.coins([1, 2, 3, 4], [1, 1, 1, 1], confidence=0.4, **how)
    assert result.bound == 0.0
    assert "the coins are in doubt" in result.reason
    assert stats.fdp_lower_bound(4, 4, 4, claim=claim, tau=0.6, one_sided=True) == 0.0


def test_replicates_are_planned_from_features_alone() -> None:
    """A number that no label chooses is that of Σ 2 min(π, 1 - π) examples, whoever is a member."""
    rng = np.random.default_rng(0)
    propensity = rng.uniform(0.1, 0.9, 400)
    scores = rng.normal(size=400)
    expected = round(float(2 * np.minimum(propensity, 1 - propensity).sum()))
    order = np.argsort(rng.random(400))
    planned = {
        lb.audit(scores, lb.ZeroRun(order < members, [propensity] * 40), seed=seed).guesses
        for seed, members in enumerate([180, 195, 210, 225, 240])
    }
    fair, _ = plan_guesses(expected, 0.025, lb.GaussianDP(), "both")
    assert planned == {fair.guesses}


@pytest.mark.parametrize("claim", [lb.GaussianDP(), lb.ApproxDP(delta=1e-3)])
def test_composition_counts_all_examples(claim: Any) -> None:
    """Coins are not fair given the features, so m/2 has no proof for guesses of members."""
    rng = np.random.default_rng(1)
    member = rng.random(300) < 0.5
    scores, propensity = rng.normal(size=300) + 2 * member, np.full(300, 0.55)
    result = lb.audit(
        scores,
        lb.ZeroRun(member, propensity, correction="composition"),
        claim=claim,
        sides="member",
        cuts=lb.Fixed(60),
    )
    shift = float(np.log(0.55 / 0.45))
    found = stats.composition_bound(
        result.correct, 60, 300, claim=claim, epsilon_ds=shift, tau=0.05, test="tight"
    )
    assert result.bound == pytest.approx(found, rel=1e-9)
    assert 0 < result.bound <= result.ceiling
