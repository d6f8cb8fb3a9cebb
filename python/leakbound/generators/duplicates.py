"""Samples that are copies of members."""

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import ArrayInput, BoolArray
from leakbound._base.validation import numbers
from leakbound.errors import GeneratedDuplicatesError, ShapeError

DEVIATIONS = 5
"""How many standard deviations chance is allowed."""
NAMED = 5
"""How many positions a message names."""


def check_duplicates(samples: ArrayInput, members: ArrayInput) -> None:
    """Check that a generator does not return copies of members.

    A target may have been trained on such a "non-member", so that the audit compares members with
    members. Where a record has few possible values, though, records repeat by chance, and real
    non-members would equal members as well. How often is known from the members themselves: the
    probability that a new record equals one of N is estimated by the share of members that equal
    another member (Good 1953). More copies than twice that and five standard deviations are
    refused; where no two members are equal, the first copy is. Copies are never dropped: a
    generator that avoids all members is further from their distribution, not closer.

    Parameters
    ----------
    samples : array-like, shape (n, ...)
        Values of generated examples; labels do not count.
    members : array-like, shape (N, ...)
        Values of training examples of the target, those of the generator included.

    Raises
    ------
    GeneratedDuplicatesError
        If there are more copies than chance explains; `indices` of the error lists them.
    ArrayTypeError, OptionError
        If they are not numbers.
    ShapeError
        If samples and members differ in shape.

    References
    ----------
    I. J. Good, "The population frequencies of species and the estimation of population
    parameters", 1953.

    Examples
    --------
    >>> check_duplicates([[0.1], [0.2]], [[0.3], [0.4]])
    >>> check_duplicates([[0.1], [0.3]], [[0.3], [0.4]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    leakbound.errors.GeneratedDuplicatesError: 1 of 2 samples equals a member, at position 1, ...
    """
    copies, repeated = _compare(samples, members)
    found = np.flatnonzero(copies).tolist()
    share = 2 * repeated.mean()
    slack = math.sqrt(share * len(copies)) + len(copies) * math.sqrt(share / len(repeated))
    allowed = share * len(copies) + DEVIATIONS * slack
    if len(found) > allowed:
        listed = ", ".join(map(str, found[:NAMED])) + (", …" if len(found) > NAMED else "")
        message = (
            f"{len(found)} of {len(copies)} samples {'equals' if len(found) == 1 else 'equal'} a "
            f"member, at {'position' if len(found) == 1 else 'positions'} {listed}, and "
            f"{math.floor(allowed)} are what chance allows: the generator copies what it was "
            "trained on; train it for less time, on more members, or with more noise"
        )
        raise GeneratedDuplicatesError(message, found)


def _compare(samples: ArrayInput, members: ArrayInput) -> tuple[BoolArray, BoolArray]:
    """Return which samples equal a member, and which members equal another member."""
    made: NDArray[Any] = numbers(samples, "samples")
    real: NDArray[Any] = numbers(members, "members")
    if made.shape[1:] != real.shape[1:] or not made.ndim or not made.size or not real.size:
        message = (
            f"samples have shape {made.shape} and members {real.shape}; both need at least one "
            "row, and rows of the same shape"
        )
        raise ShapeError(message)
    common: np.dtype[Any] = np.dtype(np.float64)
    if made.dtype.kind == real.dtype.kind == "f":
        common = min(made.dtype, real.dtype, key=lambda dtype: dtype.itemsize)
    made, real = made.astype(common), real.astype(common)
    prints, known = _fingerprints(made), _fingerprints(real)
    _, which, count = np.unique(known, return_inverse=True, return_counts=True)
    return np.isin(prints, known), count[which] > 1


def _fingerprints(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return 64 bits for each row, equal for equal rows and for no others but by great chance."""
    whole = np.ascontiguousarray(rows.reshape(len(rows), -1) + 0.0)  # -0.0 becomes 0.0
    digests = (hashlib.blake2b(row, digest_size=8).digest() for row in whole)
    return np.frombuffer(b"".join(digests), np.uint64)
