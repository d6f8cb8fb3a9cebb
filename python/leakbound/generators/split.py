"""Which members train the generator, which are audited, and samples that are copies of members."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import (
    MOST_EXAMPLES,
    check_ids,
    check_length,
    integer,
    numbers,
    real,
    vector,
)
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, IntArray
from leakbound.errors import GeneratedDuplicatesError, OptionError, ReusedMembersError, ShapeError

GENERATOR = "generator"
SHARES = {GENERATOR: 0.4, "audit": 0.6}
NAMED = 5
"""How many ids or positions a message names."""
DEVIATIONS = 5
"""How many standard deviations chance is allowed."""


@dataclass(frozen=True, eq=False, repr=False)
class MemberSplit:
    """A random division of the known members into parts that share no example.

    Members that the generator was trained on must not be audited: it may have copied them, and the
    baseline, which judges how well members can be told from samples, would be judged on them too.
    Parts are disjoint by position and by id; examples from one document stay together, since they
    resemble each other.

    Parameters
    ----------
    ids : ndarray, shape (n,)
        A different number or string for each member.
    names : tuple of str
        The parts.
    part : ndarray of int64, shape (n,)
        The position in `names` of each member's part.

    Examples
    --------
    >>> split = MemberSplit.create(10, shares={"generator": 3, "train": 2, "test": 5}, seed=0)
    >>> split
    MemberSplit(n=10, generator=3, train=2, test=5)
    >>> split.positions("generator")
    array([1, 2, 4])
    >>> split.check_audited([3, 4])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    leakbound.errors.ReusedMembersError: 1 of the audited members trained the generator: 4; ...
    """

    ids: NDArray[Any]
    names: tuple[str, ...]
    part: IntArray

    @classmethod
    def create(
        cls,
        n: int,
        *,
        shares: Mapping[str, float] | None = None,
        ids: ArrayInput | None = None,
        documents: ArrayInput | None = None,
        seed: int = 0,
    ) -> Self:
        """Divide members at random.

        Parameters
        ----------
        n : int
            How many members there are, at least 1.
        shares : mapping of str to float, optional
            How much each part gets, in proportion; one part is called "generator". By default it
            gets 0.4, and "audit" 0.6.
        ids : array-like of shape (n,), optional
            A different number or string for each member; by default 0, 1, …, n - 1.
        documents : array-like of shape (n,), optional
            Which document each member is a piece of: pieces of one are never divided. By default
            each member stands alone.
        seed : int
            The same seed gives the same parts.

        Returns
        -------
        MemberSplit
            The parts. Without documents their sizes are the shares, rounded.

        Raises
        ------
        OptionTypeError, OptionError
            If `n`, `seed` or a share is not in its range, there is no part "generator", or a part
            would be empty.
        ArrayTypeError, ShapeError, LengthMismatchError, DuplicateIdsError
            If ids or documents are not one for each member, or an id occurs twice.
        """
        n = integer(n, "n", least=1, most=MOST_EXAMPLES)
        rng = Purpose.MEMBER_SPLIT.rng(integer(seed, "seed", least=0))
        names, limits = _limits(SHARES if shares is None else shares)
        labels = np.arange(n) if ids is None else vector(ids, "ids", kinds="biufSUOT")
        check_length(labels, n, "ids")
        check_ids(labels, np.zeros(n, dtype=np.bool_))
        document, pieces = _pieces(documents, n)
        order = rng.permutation(pieces.size)
        middle = np.cumsum(pieces[order]) - pieces[order] / 2
        part = np.empty(pieces.size, np.int64)
        part[order] = np.searchsorted(np.round(limits * n), middle)
        empty = np.setdiff1d(np.arange(len(names)), part)
        if empty.size:
            message = (
                f"the part {names[empty[0]]!r} would be empty: {n} members in {pieces.size} "
                f"documents are too few for {len(names)} parts of these shares"
            )
            raise OptionError(message)
        return cls(np.array(labels), names, part[document])

    def positions(self, name: str) -> IntArray:
        """Return the positions of one part's members, increasing.

        Parameters
        ----------
        name : str
            The part.

        Returns
        -------
        ndarray of int64
            Where they are among the members.

        Raises
        ------
        OptionError
            If there is no such part.
        """
        if name not in self.names:
            message = f"there is no part {name!r}; the parts are {', '.join(map(repr, self.names))}"
            raise OptionError(message)
        return np.flatnonzero(self.part == self.names.index(name)).astype(np.int64, copy=False)

    def check_audited(self, ids: ArrayInput) -> None:
        """Check that no audited member trained the generator.

        Parameters
        ----------
        ids : array-like
            Ids of the members that are audited.

        Raises
        ------
        ReusedMembersError
            If one did; the message names the first few.
        ArrayTypeError, ShapeError
            If the ids are not a vector.
        """
        audited = vector(ids, "ids", kinds="biufSUOT")
        reused = np.intersect1d(audited, self.ids[self.positions(GENERATOR)])
        if reused.size:
            listed = ", ".join(map(str, reused[:NAMED])) + (", …" if reused.size > NAMED else "")
            message = (
                f"{reused.size} of the audited members trained the generator: {listed}; audit only "
                "members of the other parts"
            )
            raise ReusedMembersError(message)

    def __len__(self) -> int:
        return self.ids.size

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={self.positions(name).size}" for name in self.names)
        return f"MemberSplit(n={len(self)}, {sizes})"


def _limits(shares: Mapping[str, float]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return the parts' names and the share of members up to the end of each but the last."""
    if GENERATOR not in shares:
        message = f"shares must name the part {GENERATOR!r}, got {', '.join(map(repr, shares))}"
        raise OptionError(message)
    sizes = np.array(
        [real(share, f"the share of {name}", above=0) for name, share in shares.items()]
    )
    return tuple(shares), np.cumsum(sizes / sizes.sum())[:-1]


def _pieces(documents: ArrayInput | None, n: int) -> tuple[IntArray, IntArray]:
    """Return the number of each member's document, and how many members each document has."""
    if documents is None:
        return np.arange(n), np.ones(n, np.int64)
    labels = vector(documents, "documents", kinds="biufSUT")
    check_length(labels, n, "documents")
    _, document, pieces = np.unique(labels, return_inverse=True, return_counts=True)
    return document, pieces


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
