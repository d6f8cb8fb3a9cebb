"""Coins that are not fair: bounds against definitions, and how often they are wrong."""

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leakbound as lb
from leakbound import errors, stats
from leakbound._base.numerics import logit
from leakbound.audits.policies.second_look import first_cuts

Sides = Literal["both", "member"]


def priors_of(kind: float | str, m: int) -> np.ndarray:
    mixed = np.resize([0.02, 0.3, 0.5, 0.7, 0.95], m)
    return mixed if kind == "mixed" else np.full(m, kind)


def boundary(
    prior: np.ndarray, epsilon: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response: the score's sign tells a coin apart at a likelihood ratio of e^ε."""
    member = rng.random(prior.size) < prior
    truthful = rng.random(prior.size) < 1 / (1 + math.exp(-epsilon))
    return np.where(member == truthful, 1.0, -1.0) * (1 + rng.random(prior.size)), member


@pytest.mark.parametrize("sides", ["both", "member"])
def test_a_fixed_number_of_guesses_is_a_poisson_binomial_limit(sides: Sides) -> None:
    rng = np.random.default_rng(2)
    prior = priors_of("mixed", 400)
    scores, member = boundary(prior, 3.0, rng)
    result = lb.audit(scores, lb.Coins(member, prior=prior), cuts=lb.Fixed(100), sides=sides)
    down, a = np.argsort(-scores), logit(prior)
    rows, sign = down[:100], np.ones(100)
    if sides == "both":
        rows = np.ravel(np.column_stack([down[:50], down[::-1][:50]]))
        sign = np.tile([1.0, -1.0], 50)
    right = int((member[rows] == (sign > 0)).sum())
    expected = stats.poisson_binomial_epsilon(right, sign * a[rows], beta=0.05)
    assert (result.guesses, result.correct) == (100, right)
    assert result.bound == pytest.approx(max(0.0, expected), abs=1e-9)


def test_the_scan_is_the_best_of_three_paths_with_offsets() -> None:
    rng = np.random.default_rng(3)
    prior = priors_of("mixed", 500)
    scores, member = boundary(prior, 2.0, rng)
    result = lb.audit(scores, lb.Coins(member, prior=prior))
    down, a = np.argsort(-scores), logit(prior)
    upper = round(prior.sum())
    top, bottom = down[:upper], down[upper:][::-1]
    n = min(top.size, bottom.size)
    both = [*np.ravel(np.column_stack([top[:n], bottom[:n]])), *top[n:], *bottom[n:]]
    sign = np.isin(np.arange(500), top)
    bounds = {
        name: stats.kl_scan_offsets(
            (member == sign)[rows], np.where(sign, a, -a)[rows], beta=0.05 / 3
        ).epsilon
        for name, rows in (("members", top), ("non-members", bottom), ("interleaved", both))
    }
    assert result.bound == pytest.approx(max(bounds.values()), abs=1e-9)
    assert result.path == max(bounds, key=lambda name: bounds[name])
    assert result.bound > 0.5


def test_fair_coins_are_the_ordinary_audit() -> None:
    rng = np.random.default_rng(4)
    scores, member = boundary(np.full(300, 0.5), 2.0, rng)
    plain = lb.audit(scores, lb.Coins(member), sides="both")
    assert lb.audit(scores, lb.Coins(member, prior=np.full(300, 0.5)), sides="both") == plain
    # Coins that are not fair have one test.
    nearly = np.full(300, 0.5)
    nearly[0] += 1e-9
    first = first_cuts(lb.PureDP(), "both", 0.05)
    alone = lb.audit(scores, lb.Coins(member), sides="both", cuts=first).bound
    unfair = lb.audit(scores, lb.Coins(member, prior=nearly)).bound
    assert unfair == pytest.approx(alone, abs=1e-6)


def test_what_is_said_of_coins_that_are_not_fair() -> None:
    rng = np.random.default_rng(5)
    prior = priors_of("mixed", 500)
    scores, member = boundary(prior, 2.0, rng)
    result = lb.audit(np.round(scores, 1), lb.Coins(member, prior=prior))
    assert result.options["prior"] == {"least": 0.02, "most": 0.95, "mean": pytest.approx(0.494)}
    assert "prior" in result.provenance.sha256
    assert result.bound <= result.ceiling
    assert result.curve.bound[np.isfinite(result.curve.bound)] == pytest.approx([result.bound])
    rare = lb.audit(scores, lb.Coins(rng.permutation(500) < 75, prior=0.1))
    assert any("of these probabilities give 50 ± 6.7" in text for text in rare.warnings)
    assert rare.assumptions[0].status == "contradicted"


def test_what_has_no_form_and_what_is_no_probability_is_refused() -> None:
    scores, member = np.arange(20.0), lb.Coins(np.arange(20) % 5 == 0, prior=0.2)
    with pytest.raises(errors.OptionError, match="prior other than 1/2 is for PureDP"):
        lb.audit(scores, member, claim=lb.ApproxDP(delta=1e-5))
    with pytest.raises(errors.OptionError, match="use KLScan or Fixed"):
        lb.audit(scores, member, cuts=lb.UnionBound())
    for prior in (0.0, 1.0, math.nan, [0.5, 1.5], True, [0.5]):
        with pytest.raises(errors.LeakboundError, match="prior"):
            lb.audit([1.0, 2.0], lb.Coins([0, 1], prior=prior))


@given(seed=st.integers(0, 2**32), kind=st.sampled_from([0.1, 0.9, "mixed"]))
def test_any_increasing_map_of_the_scores_changes_nothing(seed: int, kind: float | str) -> None:
    rng = np.random.default_rng(seed)
    prior = priors_of(kind, 60)
    scores, member = boundary(prior, 1.0, rng)
    bounds = [
        lb.audit(s, lb.Coins(member, prior=prior)).bound for s in (scores, np.exp(scores) - 3)
    ]
    assert bounds[0] == bounds[1] >= 0
