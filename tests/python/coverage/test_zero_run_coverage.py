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
