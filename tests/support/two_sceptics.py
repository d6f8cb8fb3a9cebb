"""Two sceptics that learn nothing and do not follow each other, and how often they refute."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from leakbound.propensity import falsification

__all__ = ["Follower", "refuted"]

# Log-odds by which a sceptic doubts a claim, so little that all rows are worth about the same.
_FAINT = 0.01


class Follower(BaseEstimator):  # type: ignore[misc]
    """Believes that rows with a positive number in one of two columns are likelier members.

    Likelier than claimed, if a third column has the claimed log-odds, and else than by a coin.
    """

    def __init__(self, column: int = 0) -> None:
        self.column = column

    @classmethod
    def two(cls) -> dict[str, Any]:
        """Return one for each column, in the place of the default sceptics."""
        return {f"column {column}": cls(column) for column in range(2)}

    def fit(self, _table: NDArray[np.float64], _labels: NDArray[np.bool_]) -> "Follower":
        self.classes_ = np.array([False, True])
        return self

    def predict_proba(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        claimed = table[:, 2] if table.shape[1] > 2 else np.zeros(len(table))
        likely = 1 / (1 + np.exp(-claimed - _FAINT * np.sign(table[:, self.column])))
        return np.column_stack([1 - likely, likely])


def refuted(runs: int, level: float) -> int:
    """Return how many of so many right propensities have a p-value of a level at most.

    Both sceptics bet on all examples of four parts, and guesses of one say nothing of the other's.
    """
    rng, found = np.random.default_rng(20), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(falsification, "default_sceptics", Follower.two)
        for seed in range(runs):
            features, log_odds = rng.normal(size=(1000, 2)), np.full(1000, 0.5)
            member = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
            test = falsification.falsify(log_odds, features, member, seed=seed)
            found += test.p_value <= level
    return found
