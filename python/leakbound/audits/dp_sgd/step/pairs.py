"""Batches that differ in one example: what a step is run on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from leakbound._base.checks import instance, real, shown
from leakbound._base.reading import is_list, readable
from leakbound._base.types import Relation
from leakbound.errors import InputError, InputTypeError


class Batch(tuple[Any, ...]):
    """Examples as a tuple, with a factor on the loss of each.

    Factors make gradients of all lengths from one example. A step that knows no factor may read a
    batch as the tuple that it is.

    Parameters
    ----------
    examples : iterable
        Examples as the step takes them; there may be none.
    loss_factor : float
        What the loss of each example is multiplied with, above 0.

    Examples
    --------
    >>> batch = Batch(["a", "b"], loss_factor=1000.0)
    >>> len(batch), batch.loss_factor
    (2, 1000.0)
    """

    loss_factor: float

    def __new__(cls, examples: Iterable[object] = (), *, loss_factor: float = 1.0) -> Self:
        """Check the factor."""
        factor = real(loss_factor, name="loss_factor", above=0)
        batch = super().__new__(cls, examples)
        batch.loss_factor = factor
        return batch


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring batches, under a name.

    Parameters
    ----------
    name : str
        How results call the pair.
    without : sequence
        Examples of one batch; there may be none.
    with_ : sequence
        The same examples in the same order with one more anywhere, or with one replaced.
    """

    name: str
    without: Sequence[Any]
    with_: Sequence[Any]


def checked_pairs(pairs: Any, relation: Relation) -> list[Pair]:
    """Return pairs of neighbours under the relation, each with a name."""
    if isinstance(pairs, Pair):
        pairs = [pairs]
    if not is_list(pairs):
        raise InputTypeError(f"pairs must be a list of pairs of batches, got {shown(pairs)}")
    named = [_named(one, number) for number, one in enumerate(pairs)]
    if not named:
        raise InputError("pairs is empty: give pairs (D, D') of batches that differ in one example")
    for one in named:
        _check_neighbours(one, relation)
    return named


def _named(given: object, number: int) -> Pair:
    """Return a pair, named by its number if it has no name."""
    if isinstance(given, Pair):
        instance(given.name, name="name of a pair", types=str)
        return given
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputTypeError(
            f"pair {number} must be (D, D') or leakbound.dp_sgd.Pair(name, D, D'), got "
            f"{shown(given)}"
        )
    return Pair(f"pair {number}", *given)


def _check_neighbours(pair: Pair, relation: Relation) -> None:
    """Check that two batches differ in one example, as the claim says."""
    first, second = pair.without, pair.with_
    for batch in (first, second):
        if not hasattr(batch, "__len__") or getattr(batch, "shape", None) == ():
            raise InputTypeError(
                f"{pair.name!r} must be of two lists of examples, got {shown(batch)}"
            )
    factors = [getattr(batch, "loss_factor", 1.0) for batch in (first, second)]
    if factors[0] != factors[1]:
        raise InputError(f"{pair.name!r} has two loss factors, {factors[0]:g} and {factors[1]:g}")
    difference = len(second) - len(first)
    expected = int(relation == "add_remove")
    if difference != expected:
        what = "one example more than D"
        if not expected:
            what = "as many examples as D, one of them replaced"
        raise InputError(
            f"{pair.name!r} are not neighbours under relation={relation!r}: D' must have {what}, "
            f"and they have {len(second)} and {len(first)}"
        )
    rows = zip_longest(first, second)
    start = next((row for row, two in enumerate(rows) if not _same(*two)), len(first))
    rest = zip_longest(list(first)[start + 1 - expected :], list(second)[start + 1 :])
    if not all(_same(*two) for two in rest):
        raise InputError(
            f"{pair.name!r} differ in more than one example (in the first at row {start}): give "
            "all other examples of D and D' in the same order"
        )


def _same(one: Any, other: Any) -> bool:
    """Return whether two examples are the same."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if hasattr(one, "__array__"):
        values = [np.asarray(readable(each)) for each in (one, other)]
        shapes = values[0].shape == values[1].shape and values[0].dtype == values[1].dtype
        return shapes and values[0].tobytes() == values[1].tobytes()
    return bool(one == other)
