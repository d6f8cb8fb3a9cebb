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

# The audit needs most: bounds grow with its examples.
DEFAULT_SHARES = {"generator": 0.4, "audit": 0.6}
LEAST_ROWS = 20  # of one kind: with fewer, a distribution is no better than the rows themselves
MOST_LISTED = 5  # ids or positions that a message names
# Standard deviations of the copies by chance: one generator in some millions is refused by mistake.
ALLOWED_DEVIATIONS = 5


def read_members(members: ArrayInput) -> AnyArray:
    """Read members of any one shape."""
    member_values = array_of(members, "members")
    if member_values.dtype.kind not in "biuf":
        raise InputTypeError(
            f"members must hold real numbers, got dtype {member_values.dtype}: encode strings as "
            "codes"
        )
    if member_values.ndim < 2 or 0 in member_values.shape[1:]:
        raise InputError(
            "members must have one row per member and at least one value, got shape "
            f"{member_values.shape}"
        )
    is_not_finite = ~np.isfinite(member_values)
    if is_not_finite.any():
        indices_of_infinite = np.argwhere(is_not_finite)
        first_index = indices_of_infinite[0].tolist()
        raise InputError(
            f"members must be finite: {len(indices_of_infinite)} are not, first "
            f"{member_values[tuple(first_index)]} at index {', '.join(map(str, first_index))}"
        )
    if len(member_values) < LEAST_ROWS:
        raise InputError(
            f"there are only {len(member_values)} members; a generator needs at least {LEAST_ROWS}"
        )
    return member_values


def read_labels(labels: ArrayInput | None, examples: int) -> AnyArray | None:
    """Read class labels: integers, booleans or strings, one for each example."""
    if labels is None:
        return None
    class_labels = vector(labels, name="labels", kinds="biufU")
    if class_labels.dtype.kind == "f":
        raise InputTypeError(
            f"labels must be classes, got dtype {class_labels.dtype}: make numbers a column of "
            "members"
        )
    check_length(class_labels, examples=examples, name="labels")
    return class_labels


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
    split_rng = Purpose.MEMBER_SPLIT.rng(integer(seed, name="seed", least=0))
    if shares is None:
        shares = DEFAULT_SHARES
    if not isinstance(shares, Mapping):
        raise InputTypeError(
            f'shares must be a mapping, such as {{"generator": 0.4, "audit": 0.6}}, got '
            f"{shown(shares)}"
        )
    if not shares:
        raise OptionError("shares is empty: name at least one part")
    proportions = [
        real(share, name=f"the share of {name}", above=0) for name, share in shares.items()
    ]
    document_of_member: AnyArray = np.arange(n)
    if documents is not None:
        document_of_member = vector(documents, name="documents", kinds="biufSUT")
        check_length(document_of_member, examples=n, name="documents")
    _, document_codes, document_sizes = np.unique(
        document_of_member, return_inverse=True, return_counts=True
    )
    # Documents in random order, each in the part where its middle falls.
    random_order = split_rng.permutation(document_sizes.size)
    shuffled_sizes = document_sizes[random_order]
    document_middles = np.cumsum(shuffled_sizes) - shuffled_sizes / 2
    shares_of_parts = np.array(proportions) / sum(proportions)
    limits_of_parts = np.cumsum(shares_of_parts)[:-1]
    part_of_document = np.empty(document_sizes.size, dtype=np.int64)
    part_of_document[random_order] = np.searchsorted(
        np.round(limits_of_parts * n), document_middles
    )
    part_of_member = part_of_document[document_codes]
    positions_by_part: dict[str, IntArray] = {}
    for part_number, name in enumerate(shares):
        positions_of_members = np.flatnonzero(part_of_member == part_number)
        if not positions_of_members.size:
            raise OptionError(
                f"part {name!r} would be empty: {n} members in {document_sizes.size} documents"
            )
        positions_by_part[name] = positions_of_members.astype(np.int64, copy=False)
    return positions_by_part


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
    sample_values: AnyArray = numbers(samples, name="samples")
    member_values: AnyArray = numbers(members, name="members")
    have_rows = min(sample_values.ndim, member_values.ndim, sample_values.size, member_values.size)
    if not have_rows or sample_values.shape[1:] != member_values.shape[1:]:
        raise InputError(
            f"samples have shape {sample_values.shape} and members {member_values.shape}; both "
            "need at least one row, of the same shape"
        )
    # In the coarser of two float types, as a generator may have rounded its copies.
    dtypes = (sample_values.dtype, member_values.dtype)
    coarser_dtype: np.dtype[Any] = np.dtype(np.float64)
    if all(dtype.kind == "f" for dtype in dtypes):
        coarser_dtype = min(dtypes, key=lambda dtype: dtype.itemsize)
    fingerprints_of_samples = _row_fingerprints(sample_values.astype(coarser_dtype))
    fingerprints_of_members = _row_fingerprints(member_values.astype(coarser_dtype))
    is_copy = np.isin(fingerprints_of_samples, fingerprints_of_members)
    copied_positions = np.flatnonzero(is_copy)
    _, occurrences = np.unique(fingerprints_of_members, return_counts=True)
    # Good's estimate of the share of records that repeat by chance, doubled.
    repeating_members = occurrences[occurrences > 1].sum()
    chance_share = 2 * (repeating_members / len(member_values))
    sample_count = len(sample_values)
    expected_copies = chance_share * sample_count
    deviation_of_copies = math.sqrt(expected_copies)
    deviation_of_estimate = sample_count * math.sqrt(chance_share / len(member_values))
    standard_deviation = deviation_of_copies + deviation_of_estimate
    allowed_copies = expected_copies + ALLOWED_DEVIATIONS * standard_deviation
    if copied_positions.size <= allowed_copies:
        return
    found_copies = "equals a member, at position"
    if copied_positions.size > 1:
        found_copies = "equal a member, at positions"
    raise InputError(
        f"{copied_positions.size} of {sample_count} samples {found_copies} "
        f"{_listed_positions(copied_positions)}, and {math.floor(allowed_copies)} are what chance "
        "allows: the generator copies what it was trained on"
    )


def _listed_positions(positions: AnyArray) -> str:
    """Return the first of some positions, as a message lists them."""
    listed_positions = ", ".join(map(str, positions[:MOST_LISTED]))
    if positions.size > MOST_LISTED:
        listed_positions += ", …"
    return listed_positions


def _row_fingerprints(examples: AnyArray) -> NDArray[np.uint64]:
    """Return 64 bits for each row, equal for equal rows and for no others but by great chance."""
    rows_of_values = examples.reshape(len(examples), -1)
    rows_without_negative_zeros = np.ascontiguousarray(rows_of_values + 0.0)
    digests_of_rows = [
        hashlib.blake2b(row_of_values, digest_size=8).digest()
        for row_of_values in rows_without_negative_zeros
    ]
    return np.frombuffer(b"".join(digests_of_rows), dtype=np.uint64)
