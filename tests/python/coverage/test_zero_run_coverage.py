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
M, EPSILON = 200, 1.0


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


def people(rng: np.random.Generator, shift: float, m: int = M) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of membership, and memberships."""
    odds = shift * rng.normal(size=m)
    return odds, rng.random(m) < sigmoid(odds)


def response(rng: np.random.Generator, member: np.ndarray) -> np.ndarray:
    """Reports that are ε-DP, as leaky as it allows."""
    told = rng.random(member.size) < sigmoid(EPSILON)
    return np.where(member == told, 1.0, -1.0) * (1 + rng.random(member.size))


def allowed(repetitions: int, tests: int, beta: float = BETA) -> int:
    return int(scipy_stats.binom.isf(FAMILY_WISE / tests, repetitions, beta))


class TestTraps:
    """What the audits do not do, and why."""

    def test_redrawing_what_stands_for_every_epsilon(self) -> None:
        """The largest ε that any of 200 draws refutes exceeds the truth; one for all does not."""
        rng = np.random.default_rng(2)
        levels = np.linspace(0.0, 2.0, 200)
        false = {"redrawn": 0, "once": 0}
        for _ in range(100):
            odds, member = people(rng, 2.5)
            told = np.sign(response(rng, member))
            guesses = np.where(told * odds > 0, told, 0)  # right with log-odds ε + |λ|
            made, sign = np.count_nonzero(guesses), np.where(member, 1, -1)
            drawn = {"redrawn": rng.random((200, M)), "once": np.tile(rng.random(M), (200, 1))}
            for how, uniforms in drawn.items():
                refuted = np.zeros(200, dtype=bool)
                for i, u in enumerate(uniforms):
                    left = stats.tamper(guesses, odds, u, epsilon=float(levels[i]))
                    p = stats.clopper_pearson(int((left == sign).sum()), made, beta=BETA)
                    refuted[i] = p > sigmoid(levels[i])
                first = levels[np.argmin(refuted)]  # the least that is not refuted
                last = levels[refuted].max() if refuted.any() else 0.0
                false[how] += (last if how == "redrawn" else first) > EPSILON
        assert scipy_stats.binom.sf(false["redrawn"] - 1, 100, BETA) < 1e-6
        assert false["once"] <= allowed(100, 1)

    def test_propensities_that_are_too_steep(self) -> None:
        """Signed odds trust λ where it speaks against a guess; absolute ones do not."""
        rng = np.random.default_rng(3)
        false: dict[Literal["directional", "paper"], int] = {"directional": 0, "paper": 0}
        for seed in range(60):
            odds, member = people(rng, 1.0)
            for variant in false:
                result = lb.audit_zero_run(
                    -odds,
                    member,
                    sigmoid(2.5 * odds),
                    claim=lb.PureDP(),
                    adversary="raw",
                    variant=variant,
                    confidence=1 - BETA,
                    seed=seed,
                )
                false[variant] += result.bound > 0
        assert false["directional"] > 50
        assert false["paper"] <= allowed(60, 1)

    def test_subsets_of_fixed_pools_replace_an_example(self) -> None:
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
        result = lb.audit_zero_run(scores, member, np.full(2000, 0.5), claim=lb.PureDP())
        assert EPSILON < result.bound < 2 * EPSILON

    def test_fixed_numbers_make_guesses_dependent(self, golden: Any) -> None:
        stored = json.loads((golden / "zero_run.json").read_text(encoding="utf-8"))["cases"]
        listed = next(c for c in stored if c["name"] == "fixed_size_counterexample")["output"]
        both = [np.array([1, -1]), np.array([-1, 1])]
        assert np.mean([(s == [1, -1]).all() for s in both]) == listed["P(W>=2)"] > 0.25
        # of 1,000 examples, 500 guessed members: W = 2 · (members among the guessed)
        found = scipy_stats.hypergeom.sf(265, 1000, 500, 500)
        assert found == pytest.approx(listed["m=1000,r=1000,k+=500: P(W>=532)"], rel=1e-9)
        assert found > stats.binomial_tail(532, 1000, 0.5) == pytest.approx(listed["binom"])

    def test_an_insufficient_model_is_seen_by_the_sceptic(self) -> None:
        """Matching with constant propensities claims leakage of a model that saw nothing."""
        rng = np.random.default_rng(5)
        odds = 2.0 * rng.normal(size=2000)
        member = rng.random(2000) < sigmoid(odds)
        scores = odds + 0.5 * rng.normal(size=2000)
        options: dict[str, Any] = {"features": odds[:, None], "adversary": "raw"}
        given = scores, member, np.full(2000, 0.5)
        shown = lb.audit_zero_run(*given, release_refuted=True, **options)
        assert shown.bound > 0.5
        assert shown.falsification is not None
        assert shown.falsification.p_value < 1e-6
        assert lb.audit_zero_run(*given, **options).bound == 0.0
