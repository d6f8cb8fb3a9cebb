"""What scoring and attacks return."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from leakbound._base.types import AnyArray, FloatArray

TOKENS = "n_tokens"
"""The column of how many tokens of each text a model saw: a feature that challenges a split."""
FILLED = "if it was filled in where a score was missing"
"""What the warning says about one score that all of one part has, and nobody of the other."""


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """One score for each example, with the id of the example and the name of the signal.

    NumPy reads it as its values, so that it can be audited as it is:
    ``audit(scores, Coins(plan))``.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
        Higher means more likely a member; never NaN, may be ±inf. A read-only copy.
    ids : ndarray, shape (m,)
        Id of each example, in the order of `values`. A read-only copy.
    signal : str
        What was measured: the name of a signal, of an attack or of a callable.
    """

    values: FloatArray
    ids: AnyArray
    signal: str

    def __post_init__(self) -> None:
        for name, array in (("values", self.values), ("ids", self.ids)):
            private_copy = array.copy()
            private_copy.flags.writeable = False
            object.__setattr__(self, name, private_copy)

    def __len__(self) -> int:
        return self.values.size

    def __array__(
        self,
        dtype: DTypeLike | None = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's protocol
    ) -> AnyArray:
        array = self.values
        if dtype is not None:
            array = self.values.astype(dtype, copy=False)
        if copy:
            return array.copy()
        return array

    def __repr__(self) -> str:
        lowest_score = np.min(self.values)
        highest_score = np.max(self.values)
        return (
            f"Scores({self.signal}, m={len(self)}, from {lowest_score:.4g} to {highest_score:.4g})"
        )
