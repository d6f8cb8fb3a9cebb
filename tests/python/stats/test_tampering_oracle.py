"""(ε, δ) by tampering, against linear programmes over every mechanism on up to three examples."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from leakbound import stats


def most_probable(
    propensity: np.ndarray, epsilon: float, delta: float, v: int, *, members_only: bool
) -> tuple[float, float]:
    """The largest P(at least v guesses are right and stand), and Σ 2 min(π, 1 - π).

    What a mechanism tells is a vector of guesses: of both roles, or of members and none. Unknown is
    its law under each membership s; (ε, δ)-DP between neighbours, for every event, takes slack
    variables.
    """
    m = propensity.size
    odds = np.log(propensity / (1 - propensity))
    told = list(product([0, 1] if members_only else [-1, 1], repeat=m))
    members = list(product([-1, 1], repeat=m))
    rows, columns, entries, limits = [], [], [], []
    cells = {pair: i for i, pair in enumerate(product(range(len(members)), range(len(told))))}
    gain = np.zeros(len(cells))
    for (i, s), (j, t) in product(enumerate(members), enumerate(told)):
        weight = np.prod([p if one > 0 else 1 - p for p, one in zip(propensity, s, strict=True)])
        stands = stats.tamper_probability(t, odds, epsilon=epsilon)
        right = [b if a == c else 0.0 for a, c, b in zip(s, t, stands, strict=True)]
        gain[cells[i, j]] = weight * stats.poisson_binomial_tail(v, right)
    count, line = len(cells), 0
    for (i, s), (k, z) in product(enumerate(members), repeat=2):
        if sum(a != b for a, b in zip(s, z, strict=True)) != 1:
            continue
        slacks = []
        for j in range(len(told)):  # P_i(t) - e^ε P_k(t) ≤ slack
            rows += [line] * 3
            columns += [cells[i, j], cells[k, j], count]
            entries += [1.0, -np.exp(epsilon), -1.0]
            limits.append(0.0)
            slacks.append(count)
            line, count = line + 1, count + 1
        rows += [line] * len(slacks)
        columns += slacks
        entries += [1.0] * len(slacks)
        limits.append(delta)
        line += 1
    equal = np.zeros((len(members), count))
    for i in range(len(members)):
        equal[i, [cells[i, j] for j in range(len(told))]] = 1
    found = linprog(
        -np.append(gain, np.zeros(count - gain.size)),
        A_ub=coo_array((entries, (rows, columns)), shape=(line, count)),
        b_ub=limits,
        A_eq=equal,
        b_eq=np.ones(len(members)),
    )
    assert found.status == 0
    return -found.fun, float(np.minimum(propensity, 1 - propensity).sum() * 2)


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
