"""(ε, δ) by tampering, against linear programmes over every mechanism on up to three examples."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from leakbound import stats
from programmes import best_mechanism


def most_probable(
    propensity: np.ndarray, epsilon: float, delta: float, v: int, *, members_only: bool
) -> tuple[float, float]:
    """The largest P(at least v guesses are right and stand), and Σ 2 min(π, 1 - π).

    What a mechanism tells is a vector of guesses: of both roles, or of members and none.
    """
    odds = np.log(propensity / (1 - propensity))
    members = list(product([-1, 1], repeat=propensity.size))
    gain = []
    for s in members:
        weight = np.prod([p if one > 0 else 1 - p for p, one in zip(propensity, s, strict=True)])
        for t in product([0, 1] if members_only else [-1, 1], repeat=propensity.size):
            stands = stats.tamper_probability(t, odds, epsilon=epsilon)
            right = np.where(np.equal(s, t), stands, 0.0)
            gain.append(weight * stats.poisson_binomial_tail(v, right))
    found = best_mechanism(members, np.reshape(gain, (len(members), -1)), [(epsilon, delta)])
    return found, float(np.minimum(propensity, 1 - propensity).sum() * 2)


@pytest.mark.parametrize("members_only", [False, True])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_no_mechanism_beats_the_closed_form(m: int, *, members_only: bool) -> None:
    rng = np.random.default_rng([m, 5])
    for _ in range(12 if m < 3 else 6):
        propensity = rng.uniform(0.05, 0.95, m)
        epsilon, delta = rng.uniform(0, 2), 10 ** rng.uniform(-3, -0.7)
        for v in range(1, m + 1):
            truth, effective = most_probable(
                propensity, epsilon, delta, v, members_only=members_only
            )
            how: Any = {"epsilon": epsilon, "delta": delta, "one_sided": members_only}
            bound = stats.one_run_p_value(v, m, effective, **how)
            assert truth <= bound + 1e-9
            assert bound <= stats.one_run_p_value(v, m, m, **how)


def test_a_fair_coin_attains_it() -> None:
    truth, effective = most_probable(np.array([0.5]), 0.7, 0.05, 1, members_only=False)
    assert effective == 1
    bound = stats.one_run_p_value(1, 1, effective, epsilon=0.7, delta=0.05)
    assert truth == pytest.approx(bound, abs=1e-9)
    assert bound == pytest.approx((np.exp(0.7) + 0.05) / (1 + np.exp(0.7)), abs=1e-9)
