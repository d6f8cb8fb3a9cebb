"""Examples, their labels, and a coin for each."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import IntArray
from leakbound.planning.inclusion import InclusionPlan

__all__ = ["Canaries"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Canaries:
    """Examples to train on by fair coins, and to score all of.

    Parameters
    ----------
    kind : str
        How they were made.
    x : ndarray, shape (n, ...)
        Inputs, or tokens of shape (n, length).
    y : ndarray of int64, shape (n,) or (n, length)
        Labels; for tokens -100 where a token does not count.
    taken : ndarray of int64, shape (n, k)
        Positions, in the user's data, of the examples that each was made of; k is 0 if of none.
        Leave these out of training: what the model learns of them hides their canaries.
    plan : InclusionPlan
        The coins.
    """

    kind: str
    x: NDArray[Any]
    y: IntArray
    taken: IntArray
    plan: InclusionPlan

    @classmethod
    def create(
        cls, kind: str, x: NDArray[Any], y: NDArray[Any], taken: IntArray | None, *, seed: int
    ) -> Self:
        """Toss a coin for each example."""
        none = np.empty((len(x), 0), dtype=np.int64)
        return cls(
            kind=kind,
            x=x,
            y=y.astype(np.int64, copy=False),
            taken=none if taken is None else taken.astype(np.int64, copy=False),
            plan=InclusionPlan.create(len(x), seed=seed),
        )

    @property
    def included(self) -> tuple[NDArray[Any], IntArray]:
        """Inputs and labels of those to train on."""
        return self.plan.included(self.x), self.plan.included(self.y)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Canaries({self.kind}, n={len(self)}, members={self.plan.indices.size})"
