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
    named_pairs = [
        _pair_with_name(neighbours, pair_number) for pair_number, neighbours in enumerate(pairs)
    ]
    if not named_pairs:
        raise InputError("pairs is empty: give pairs (D, D') of batches that differ in one example")
    for neighbours in named_pairs:
        _check_batches_of_pair(neighbours)
        _check_sizes_of_neighbours(neighbours, relation)
        _check_common_examples(neighbours, relation)
    return named_pairs


def _pair_with_name(pair: object, pair_number: int) -> Pair:
    """Return a pair, named by its number if it has no name."""
    if isinstance(pair, Pair):
        instance(pair.name, name="name of a pair", types=str)
        return pair
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputTypeError(
            f"pair {pair_number} must be (D, D') or leakbound.dp_sgd.Pair(name, D, D'), got "
            f"{shown(pair)}"
        )
    without, with_ = pair
    return Pair(f"pair {pair_number}", without, with_)


def _check_batches_of_pair(pair: Pair) -> None:
    """Check that a pair is of two lists of examples, with one loss factor."""
    loss_factors = []
    for batch in (pair.without, pair.with_):
        is_scalar = getattr(batch, "shape", None) == ()
        if not hasattr(batch, "__len__") or is_scalar:
            raise InputTypeError(
                f"{pair.name!r} must be of two lists of examples, got {shown(batch)}"
            )
        loss_factors.append(getattr(batch, "loss_factor", 1.0))
    factor_without, factor_with = loss_factors
    if factor_without != factor_with:
        raise InputError(
            f"{pair.name!r} has two loss factors, {factor_without:g} and {factor_with:g}"
        )


def _check_sizes_of_neighbours(pair: Pair, relation: Relation) -> None:
    """Check that one batch has as many examples more as the relation says."""
    examples_without = len(pair.without)
    examples_with = len(pair.with_)
    if examples_with - examples_without == _number_of_added_examples(relation):
        return
    requirement = "as many examples as D, one of them replaced"
    if relation == "add_remove":
        requirement = "one example more than D"
    raise InputError(
        f"{pair.name!r} are not neighbours under relation={relation!r}: D' must have "
        f"{requirement}, and they have {examples_with} and {examples_without}"
    )


def _number_of_added_examples(relation: Relation) -> int:
    """Return how many examples a batch has more than its neighbour."""
    return int(relation == "add_remove")


def _check_common_examples(pair: Pair, relation: Relation) -> None:
    """Check that two batches have all but one example in common, in the same order."""
    first_different_row = len(pair.without)
    for row_number, row_examples in enumerate(zip_longest(pair.without, pair.with_)):
        if not _are_equal_examples(*row_examples):
            first_different_row = row_number
            break
    later_examples_without = list(pair.without)[
        first_different_row + 1 - _number_of_added_examples(relation) :
    ]
    later_examples_with = list(pair.with_)[first_different_row + 1 :]
    if not _are_equal_examples(later_examples_without, later_examples_with):
        raise InputError(
            f"{pair.name!r} differ in more than one example (in the first at row "
            f"{first_different_row}): give all other examples of D and D' in the same order"
        )


def _are_equal_examples(first_example: Any, second_example: Any) -> bool:
    """Return whether two examples are the same."""
    if first_example is second_example:
        return True
    if type(first_example) is not type(second_example):
        return False
    if isinstance(first_example, tuple | list):
        if len(first_example) != len(second_example):
            return False
        return all(map(_are_equal_examples, first_example, second_example))
    if isinstance(first_example, Mapping):
        if first_example.keys() != second_example.keys():
            return False
        return all(
            _are_equal_examples(first_part, second_example[key])
            for key, first_part in first_example.items()
        )
    if hasattr(first_example, "__array__"):
        first_array = np.asarray(readable(first_example))
        second_array = np.asarray(readable(second_example))
        if first_array.shape != second_array.shape or first_array.dtype != second_array.dtype:
            return False
        return first_array.tobytes() == second_array.tobytes()
    return bool(first_example == second_example)
