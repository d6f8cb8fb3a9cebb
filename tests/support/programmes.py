"""Linear programmes: the most that any mechanism, or any law of a count, reaches under a claim."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import optimize, sparse

from games import Floats

__all__ = ["best_count_law", "best_joint_law", "best_law_of_coins", "best_mechanism"]

Pairs = Sequence[tuple[float, float]]
"""ε and δ, all of which a guarantee has."""
TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def best_mechanism(inputs: Sequence[Sequence[int]], gain: Any, pairs: Pairs) -> float:
    """Return the largest Σ gain(x, o) P(o | x) of all mechanisms that are (ε, δ)-DP at all pairs.

    Neighbours differ in one place. Unknown are the laws of the outputs o under each input x, and
    the positive parts of P(o | x) - e^ε P(o | x') for each pair of neighbours.
    """
    size, outputs = np.shape(gain)
    neighbours = [
        (a, b)
        for a, b in product(range(size), repeat=2)
        if sum(x != y for x, y in zip(inputs[a], inputs[b], strict=True)) == 1
    ]
    cases = list(product(neighbours, pairs))
    apart, limits = np.zeros((len(cases), size)), [delta for _, (_, delta) in cases]
    for row, ((a, b), (epsilon, _)) in enumerate(cases):
        apart[row, a], apart[row, b] = 1.0, -np.exp(epsilon)
    parts, total = len(cases) * outputs, np.ones((1, outputs))
    upper = sparse.bmat(
        [
            [sparse.kron(apart, sparse.identity(outputs)), -sparse.identity(parts)],
            [None, sparse.kron(sparse.identity(len(cases)), total)],
        ]
    )
    sums = [sparse.kron(sparse.identity(size), total), sparse.csr_matrix((size, parts))]
    return -_least(
        -np.append(np.ravel(gain), np.zeros(parts)),
        upper=(upper, [*np.zeros(parts), *limits]),
        equal=(sparse.hstack(sums), np.ones(size)),
    )[0]


def best_law_of_coins(gain: Any, no_likelier: Sequence[tuple[int, int]]) -> float:
    """Return the largest mean gain of all laws of an outcome.

    `no_likelier` has pairs of outcomes, the first of which is no likelier than the second.
    """
    rows, (first, second) = np.arange(len(no_likelier)), np.transpose(no_likelier)
    signs = np.append(np.ones(rows.size), -np.ones(rows.size))
    places = (np.append(rows, rows), np.append(first, second))
    apart = sparse.csr_matrix((signs, places), shape=(rows.size, len(gain)))
    total = np.ones((1, len(gain)))
    return -_least(-gain, upper=(apart, np.zeros(rows.size)), equal=(total, [1.0]))[0]


def best_count_law(
    guesses: int, correct: int, slopes: Any, limits: Any, *, k: int = 2
) -> tuple[float, Floats]:
    """Return the largest P(W ≥ c) of laws p of a count that obey a limit at every slope, and p.

    With a_s = (s+1) p_{s+1} and b_s = (r-s) p_s/(k-1) the limits are on Σ (a_s - e^slope b_s)⁺.
    """
    s, size = np.arange(guesses), len(slopes) * guesses
    a = sparse.csr_matrix((s + 1.0, (s, s + 1)), shape=(guesses, guesses + 1))
    b = sparse.csr_matrix(((guesses - s) / (k - 1), (s, s)), shape=(guesses, guesses + 1))
    sums = sparse.kron(sparse.identity(len(slopes)), np.ones((1, guesses)))
    parts = sparse.vstack([a - np.exp(slope) * b for slope in slopes])
    goal = np.zeros(guesses + 1 + size)
    goal[correct : guesses + 1] = -1.0
    value, found = _least(
        goal,
        upper=(
            sparse.bmat([[parts, -sparse.identity(size)], [None, sums]]),
            [*np.zeros(size), *limits],
        ),
        equal=([[*np.ones(guesses + 1), *np.zeros(size)]], [1.0]),
    )
    return -value, found[: guesses + 1]


def best_joint_law(levels: Sequence[tuple[int, int]], slopes: Any, limits: Any) -> float:
    """Return the largest P(W ≥ c_L) of laws of a number of guesses r_L, one of some, and a count.

    Given are pairs (r, c), and limits as of `best_count_law`, here on sums over all levels.
    """
    # 1. The matrices of a and b, block by block, and the goal.
    ahead, wrong, goal = [], [], []
    for guesses, correct in levels:
        s = np.arange(guesses)
        shape = (guesses, guesses + 1)
        ahead.append(sparse.csr_matrix((s + 1.0, (s, s + 1)), shape=shape))
        wrong.append(sparse.csr_matrix((guesses - s * 1.0, (s, s)), shape=shape))
        goal.append(np.where(np.arange(guesses + 1) >= correct, -1.0, 0.0))
    a, b = sparse.block_diag(ahead), sparse.block_diag(wrong)
    edges, laws = a.shape
    # 2. A positive part for each edge and slope, and their sums.
    size = len(slopes) * edges
    parts = sparse.vstack([a - np.exp(slope) * b for slope in slopes])
    sums = sparse.kron(sparse.identity(len(slopes)), np.ones((1, edges)))
    upper = sparse.bmat([[parts, -sparse.identity(size)], [None, sums]])
    total = [*np.ones(laws), *np.zeros(size)]
    value, _ = _least(
        np.concatenate([*goal, np.zeros(size)]),
        upper=(upper, [*np.zeros(size), *limits]),
        equal=([total], [1.0]),
    )
    return -value


def _least(goal: Any, upper: Any, equal: Any) -> tuple[float, Floats]:
    found = optimize.linprog(
        goal,
        A_ub=sparse.csr_matrix(upper[0]),
        b_ub=upper[1],
        A_eq=sparse.csr_matrix(equal[0]),
        b_eq=equal[1],
        method="highs",
        options=TOLERANCES,
    )
    assert found.status == 0, found.message
    return float(found.fun), found.x
