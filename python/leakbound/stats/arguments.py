"""Arguments of functions of numbers: read, checked and broadcast."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakbound._base.types import FloatArray
from leakbound._base.validation import (
    numbers,
)

Number: TypeAlias = Any
"""A float for scalar arguments, else an array of float64: a union would burden every caller."""

LARGEST = 2**53
"""The largest count: beyond it a double misses whole numbers."""


def vectorised(function: Callable[..., FloatArray], *arguments: NDArray[Any]) -> Number:
    """Call a function of vectors with arguments of any shapes that broadcast."""
    together = np.broadcast_arrays(*arguments)
    values = function(*(np.ascontiguousarray(one).ravel() for one in together))
    shape = together[0].shape
    return values.reshape(shape) if shape else float(values[0])


def reals(
    values: ArrayLike, name: str, *, least: float = -math.inf, most: float = math.inf
) -> FloatArray:
    """Read real numbers within limits."""
    return numbers(values, name, least=least, most=most).astype(np.float64, copy=False)


def probabilities(values: ArrayLike, name: str) -> FloatArray:
    """Read numbers in [0, 1]."""
    return reals(values, name, least=0, most=1)


def counts(values: ArrayLike, name: str, *, least: int = -LARGEST) -> NDArray[np.uint64]:
    """Read counts; those below 0 mean what 0 means."""
    whole = numbers(values, name, least=least, most=LARGEST, whole=True)
    counts: NDArray[np.uint64] = np.maximum(whole, 0).astype(np.uint64)
    return counts
