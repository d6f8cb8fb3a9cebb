"""Games to audit, whose numbers are the same doubles wherever they are drawn.

Inputs are multiples of 2^-20, drawn from fixed seeds: no library computes them in its own way.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Booleans", "Floats", "Game", "expit", "fine", "game", "members"]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def fine(values: ArrayLike) -> Floats:
    """Return multiples of 2^-20."""
    return np.round(np.asarray(values, dtype=np.float64) * 2**20) / 2**20


def expit(values: Floats) -> Floats:
    """Return 1 / (1 + e^-x) in multiples of 2^-20."""
    return fine(1 / (1 + np.exp(-values)))


@dataclass(frozen=True, eq=False)
class Game:
    """What an audit takes: scores of two attacks and of a baseline, features, propensities."""

    member: Booleans
    scores: Floats
    weak: Floats
    baseline: Floats
    features: Floats
    propensity: Floats


@cache
def game(examples: int = 400, *, leak: float = 1.5, shift: float = 0.0, seed: int = 0) -> Game:
    """Draw a game: members differ by `leak` in scores, and by `shift` in their features."""
    rng = np.random.default_rng([seed, examples])
    features = fine(rng.normal(size=(examples, 2)))
    log_odds = shift * features[:, 0]
    member = rng.random(examples) < expit(log_odds)
    noise = rng.normal(size=(3, examples))
    return Game(
        member=member,
        scores=fine(log_odds + leak * member + noise[0]),
        weak=fine(log_odds + leak / 2 * member + noise[1]),
        baseline=fine(log_odds + 0.4 * member + noise[2]),
        features=features,
        propensity=expit(log_odds),
    )


def members(examples: int, number: int) -> Booleans:
    """Return membership with a given number of members, in an order of no meaning."""
    return np.random.default_rng(number).permutation(examples) < number
