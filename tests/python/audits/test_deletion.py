"""Claims of certified unlearning, against the worst mechanism on up to three coins."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from leakbound.stats import one_run_p_value


def worst(m: int, least: int, epsilon: float, delta: float) -> float:
    """Return the largest chance of this number of right guesses if a claim for the batch holds."""
    coins, n = np.array(list(product((0, 1), repeat=m))), 2**m
    gain = ((coins[:, None] == coins).sum(-1) >= least).ravel() / n
    # The law of retraining, one for each value of the coins, and their excess over each other.
    each, none, same = np.eye(n * n), np.zeros((n * n, n * n)), np.tile(np.eye(n), (n, 1))
    above = np.hstack([-np.exp(epsilon) * same, each, -each, none])
    below = np.hstack([same, -np.exp(epsilon) * each, none, -each])
    total = np.kron(np.eye(3 * n + 1), np.ones(n))[:, : n + 3 * n * n]
    found = linprog(
        -np.concatenate([np.zeros(n), gain, np.zeros(2 * n * n)]),
        A_ub=np.vstack([above, below, total[n + 1 :]]),
        b_ub=np.repeat([0.0, delta], [2 * n * n, 2 * n]),
        A_eq=total[: n + 1],
        b_eq=np.ones(n + 1),
    )
    return float(-found.fun)


@pytest.mark.parametrize(("m", "least"), [(1, 1), (2, 2), (3, 2), (3, 3)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.05), (1.0, 0.02)])
def test_both_tests_of_a_batch_hold(m: int, least: int, epsilon: float, delta: float) -> None:
    reached, factor = worst(m, least, epsilon, delta), np.exp(epsilon)
    all_coins = factor * binom.sf(least - 1, m, 0.5) + delta
    assert reached <= all_coins + 1e-9
    assert reached == pytest.approx(all_coins) or least < m or m == 1
    one_coin = one_run_p_value(least, m, m, epsilon=2 * epsilon, delta=(1 + factor) * delta)
    assert reached <= one_coin + 1e-9
