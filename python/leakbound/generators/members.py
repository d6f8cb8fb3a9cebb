"""Reading members, dividing them, and finding samples that copy them."""

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import (
    MOST_EXAMPLES,
    check_length,
    integer,
    numbers,
    real,
    shown,
    vector,
)
from leakbound._base.reading import array_of
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, IntArray
from leakbound.errors import InputError, InputTypeError, OptionError

SHARES = {"generator": 0.4, "audit": 0.6}  # the audit needs most: bounds grow with its examples
LEAST_ROWS = 20  # of one kind: with fewer, a distribution is no better than the rows themselves
LISTED = 5  # ids or positions that a message names
DEVIATIONS = 5  # of the copies by chance: one generator in some millions is refused by mistake


def read_array(members: ArrayInput) -> AnyArray:
    """Read members of any one shape."""
    array = array_of(members, "members")
    if array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"members must hold real numbers, got dtype {array.dtype}: encode strings as codes"
        )
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise InputError(
            f"members must have one row per member and at least one value, got shape {array.shape}"
        )
    strange = np.argwhere(~np.isfinite(array))
    if strange.size:
        index = tuple(strange[0].tolist())
        place = ", ".join(map(str, index))
        raise InputError(
            f"members must be finite: {len(strange)} are not, first {array[index]} at index {place}"
        )
    if len(array) < LEAST_ROWS:
        raise InputError(
            f"there are only {len(array)} members; a generator needs at least {LEAST_ROWS}"
        )
    return array


def read_labels(labels: ArrayInput | None, examples: int) -> AnyArray | None:
    """Read class labels: integers, booleans or strings, one for each example."""
    if labels is None:
        return None
    classes = vector(labels, name="labels", kinds="biufU")
    if classes.dtype.kind == "f":
        raise InputTypeError(
            f"labels must be classes, got dtype {classes.dtype}: make numbers a column of members"
        )
    check_length(classes, examples=examples, name="labels")
    return classes


def split_members(
    n: int,
    *,
    shares: Mapping[str, float] | None = None,
    documents: ArrayInput | None = None,
    seed: int = 0,
) -> dict[str, IntArray]:
    """Divide members at random into parts that share no example.

    Members that the generator was trained on must not be audited: it may have copied them, and the
    baseline, which judges how well members can be told from samples, would be judged on them too.

    Parameters
    ----------
    n : int
        How many members there are, at least 1.
    shares : mapping of str to float, optional
        How much each part gets, in proportion; by default "generator" 0.4, and "audit" 0.6.
    documents : array-like of shape (n,), optional
        Which document each member is a piece of: pieces of one, which resemble each other, are
        never divided. By default each member stands alone.
    seed : int
        The same seed gives the same parts.

    Returns
    -------
    dict of str to ndarray of int64
        Positions of each part, increasing. Without documents their numbers are the shares, rounded.

    Examples
    --------
    >>> split_members(10, shares={"generator": 3, "train": 2, "test": 5})["generator"]
    array([1, 2, 4])
    """
    n = integer(n, name="n", least=1, most=MOST_EXAMPLES)
    rng = Purpose.MEMBER_SPLIT.rng(integer(seed, name="seed", least=0))
    if shares is None:
        shares = SHARES
    if not isinstance(shares, Mapping):
        raise InputTypeError(
            f'shares must be a mapping, such as {{"generator": 0.4, "audit": 0.6}}, got '
            f"{shown(shares)}"
        )
    if not shares:
        raise OptionError("shares is empty: name at least one part")
    sizes = [real(share, name=f"the share of {name}", above=0) for name, share in shares.items()]
    pieces_of: AnyArray = np.arange(n)
    if documents is not None:
        pieces_of = vector(documents, name="documents", kinds="biufSUT")
        check_length(pieces_of, examples=n, name="documents")
    _, document, pieces = np.unique(pieces_of, return_inverse=True, return_counts=True)
    # Documents in random order, each in the part where its middle falls.
    order = rng.permutation(pieces.size)
    middle = np.cumsum(pieces[order]) - pieces[order] / 2
    limits = np.cumsum(np.array(sizes) / sum(sizes))[:-1]
    part = np.empty(pieces.size, np.int64)
    part[order] = np.searchsorted(np.round(limits * n), middle)
    parts = {
        name: np.flatnonzero(part[document] == place).astype(np.int64, copy=False)
        for place, name in enumerate(shares)
    }
    for name, rows in parts.items():
        if not rows.size:
            raise OptionError(
                f"part {name!r} would be empty: {n} members in {pieces.size} documents"
            )
    return parts


def check_duplicates(samples: ArrayInput, members: ArrayInput) -> None:
    """Check that a generator does not return copies of members.

    A target may have been trained on such copies. Where a record has few possible values,
    though, records repeat by chance: the probability that a new one equals one of N is estimated by
    the share of members that equal another member (Good 1953). More copies than twice that and five
    standard deviations are refused; where no two members are equal, the first copy is.

    Parameters
    ----------
    samples : array-like, shape (n, ...)
        Values of generated examples; labels do not count.
    members : array-like, shape (N, ...)
        Values of training examples of the target, those of the generator included.

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
    leakbound.errors.InputError: 1 of 2 samples equals a member, at position 1, ...
    """
    drawn: AnyArray = numbers(samples, name="samples")
    real_members: AnyArray = numbers(members, name="members")
    alike = drawn.ndim and real_members.ndim and drawn.shape[1:] == real_members.shape[1:]
    if not (alike and drawn.size and real_members.size):
        shapes = f"shape {drawn.shape} and members {real_members.shape}"
        raise InputError(f"samples have {shapes}; both need at least one row, of the same shape")
    # In the coarser of two float types, as a generator may have rounded its copies.
    common: np.dtype[Any] = np.dtype(np.float64)
    if drawn.dtype.kind == real_members.dtype.kind == "f":
        common = min(drawn.dtype, real_members.dtype, key=lambda dtype: dtype.itemsize)
    prints = _fingerprints(drawn.astype(common))
    own = _fingerprints(real_members.astype(common))
    copies = np.flatnonzero(np.isin(prints, own))
    _, which, count = np.unique(own, return_inverse=True, return_counts=True)
    # Good's estimate of the share of records that repeat by chance, doubled.
    share = 2 * (count[which] > 1).mean()
    n = len(drawn)
    expected = share * n
    slack = math.sqrt(expected) + n * math.sqrt(share / len(real_members))
    allowed = expected + DEVIATIONS * slack
    if copies.size <= allowed:
        return
    found = "equals a member, at position"
    if copies.size > 1:
        found = "equal a member, at positions"
    raise InputError(
        f"{copies.size} of {n} samples {found} {_listed(copies)}, and {math.floor(allowed)} are "
        "what chance allows: the generator copies what it was trained on"
    )


def _listed(values: AnyArray) -> str:
    listed = ", ".join(map(str, values[:LISTED]))
    if values.size > LISTED:
        listed += ", …"
    return listed


def _fingerprints(rows: AnyArray) -> NDArray[np.uint64]:
    """Return 64 bits for each row, equal for equal rows and for no others but by great chance."""
    whole = np.ascontiguousarray(rows.reshape(len(rows), -1) + 0.0)  # -0.0 becomes 0.0
    digests = (hashlib.blake2b(row, digest_size=8).digest() for row in whole)
    return np.frombuffer(b"".join(digests), np.uint64)
