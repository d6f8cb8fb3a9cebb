"""Traps of Zero-Run exceed the truth oftener than bounds may; rows of `validity` count those."""

import json
import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import stats

BETA = 0.1
FAMILY_WISE = 1e-3
"""Probability that any of these tests fails by bad luck."""
EPSILON = 1.0


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


def test_propensities_that_are_too_steep() -> None:
    """Signed odds trust λ where it speaks against a guess; absolute ones do not."""
    rng = np.random.default_rng(3)
    false: dict[Literal["directional", "paper"], int] = {"directional": 0, "paper": 0}
    for seed in range(60):
        odds = rng.normal(size=200)
        member = rng.random(200) < sigmoid(odds)
        for variant in false:
            result = lb.audit(
                -odds,
                lb.ZeroRun(member, sigmoid(2.5 * odds), adversary="raw", variant=variant),
                claim=lb.PureDP(),
                confidence=1 - BETA,
                seed=seed,
            )
            false[variant] += result.bound > 0
    assert false["directional"] > 50
    assert false["paper"] <= scipy_stats.binom.isf(FAMILY_WISE, 60, BETA)


def test_subsets_of_fixed_pools_replace_an_example() -> None:
    """One member and one non-member, of which a coin picks the one that is audited.

    The other stays where it is: what a correct guess proves is the difference between training
    on one and on the other. Under ε-DP for adding or removing it is right with probability
    1 - e^-ε/2, since both are ε from training on neither.
    """
    rng = np.random.default_rng(4)
    likely = 1 - math.exp(-EPSILON) / 2
    assert likely > sigmoid(EPSILON)
    member = rng.random(2000) < 0.5
    right = rng.random(2000) < likely
    scores = np.where(member == right, 1, -1) * (1 + rng.random(2000))
    result = lb.audit(scores, lb.ZeroRun(member, np.full(2000, 0.5)), claim=lb.PureDP())
    assert EPSILON < result.bound < 2 * EPSILON


def test_fixed_numbers_make_guesses_dependent(golden: Any) -> None:
    stored = json.loads((golden / "zero_run.json").read_text(encoding="utf-8"))["cases"]
    listed = next(c for c in stored if c["name"] == "fixed_size_counterexample")["output"]
    both = [np.array([1, -1]), np.array([-1, 1])]
    assert np.mean([(s == [1, -1]).all() for s in both]) == listed["P(W>=2)"] > 0.25
    # of 1,000 examples, 500 guessed members: W = 2 · (members among the guessed)
    found = scipy_stats.hypergeom.sf(265, 1000, 500, 500)
    assert found == pytest.approx(listed["m=1000,r=1000,k+=500: P(W>=532)"], rel=1e-9)
    assert found > stats.binomial_tail(532, 1000, 0.5) == pytest.approx(listed["binom"])


GAMES = 400
"""A rate that is doubled is seen with probability 0.98."""
GUESSES = 60


def tampered_bound(epsilon: float, seed: int, level: float) -> float:
    """Audit randomised responses at ε, of which members' features tell, by tampering.

    Guesses that agree with features are right with log-odds ε + 1, which tampering brings down to
    exactly ε. At ε = 0 responses are noise.
    """
    rng = np.random.default_rng([5, seed])
    odds = np.where(np.arange(300) % 2 == 0, 1.0, -1.0)
    member = rng.random(300) < sigmoid(odds)
    if epsilon:
        true = rng.random(300) < sigmoid(epsilon)
        # in units in which membership moves a score by 1
        scores = (member == true) / (2 * sigmoid(epsilon) - 1)
    else:
        scores = 3 * rng.normal(size=300)
    design = lb.ZeroRun(member, sigmoid(odds), correction="tamper")
    how: dict[str, Any] = {"cuts": lb.Fixed(GUESSES), "sides": "both", "confidence": 1 - level}
    return float(lb.audit(scores, design, claim=lb.PureDP(), seed=seed, **how).bound)


@pytest.mark.parametrize("epsilon", [0.0, EPSILON])
def test_tampered_guesses_are_right_no_oftener_than_a_claim_allows(epsilon: float) -> None:
    """At a level that a count of correct guesses has exactly; at ε = 0 it is met, not just kept."""
    tails = stats.binomial_tail(np.arange(GUESSES), GUESSES, sigmoid(epsilon))
    level = float(tails[tails <= BETA].max()) * (1 + 1e-9)
    false = sum(tampered_bound(epsilon, seed, level) > epsilon for seed in range(GAMES))
    assert false <= scipy_stats.binom.isf(FAMILY_WISE, GAMES, level)
    if not epsilon:
        assert false >= scipy_stats.binom.isf(1 - FAMILY_WISE, GAMES, level)
