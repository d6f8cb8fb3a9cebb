"""Pairs of batches that differ in one example, and those that bring faults of a step out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from leakbound._base.checks import choice, flag, instance, real, shown
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


# What inputs, and losses, are multiplied with to make long gradients
_LONG_GRADIENT_FACTOR = 1e3
# Loss factors that are swept, as powers of ten: gradients of all lengths, so close that some are
# just short of the clipping norm; and each how many of them has all candidates
_SWEPT_POWERS = np.arange(-3.0, 4.01, 0.125)
_ALL_CANDIDATES_EVERY = 4
# Candidates that are swept at most
_MOST_SWEPT_CANDIDATES = 4


def neighbouring_batches(
    batches: Iterable[Sequence[object]],
    candidates: Iterable[object],
    *,
    relation: Relation = "add_remove",
    empty: bool = True,
    sweep: bool = True,
) -> list[Pair]:
    """Return pairs of neighbouring batches that bring faults of a step out.

    Each candidate is added to the batches, to no example, to copies of itself, to as many copies of
    the next candidate, and to one. Where inputs are floating-point numbers, each is there with its
    inputs multiplied by 1000, too, unless their type does not hold such numbers. All of that is
    done with the loss as it is and multiplied by 1000. A sweep multiplies the loss by 0.001 to
    10,000 in a batch of copies: it finds effects on other examples, which show where these are just
    clipped.

    Parameters
    ----------
    batches : iterable of sequences
        Batches of examples as the step takes them, with at least one example each.
    candidates : iterable
        Examples that a data set may hold, best of several kinds: with wrong labels, short and long,
        rare tokens. One after the other oppose each other, such as the same input with two labels.
    relation : {"add_remove", "replace"}
        What neighbours are. To replace an example, the next candidate is there in its place.
    empty : bool
        Whether a candidate is added to no example. Some engines refuse an empty batch.
    sweep : bool
        Whether to sweep the loss; a step that ignores `Batch.loss_factor` needs none.

    Returns
    -------
    list of Pair
        Batches of type `Batch`, which is a tuple with a `loss_factor`.

    Examples
    --------
    >>> pairs = neighbouring_batches([[0.1, 0.2]], [0.3, -0.3], sweep=False)
    >>> len(pairs), pairs[0].name, pairs[0].with_
    (40, 'candidate 0 in batch 0', (0.1, 0.2, 0.3))
    """
    choice(relation, name="relation", allowed=Relation)
    flag(empty, name="empty")
    flag(sweep, name="sweep")
    if not is_list(batches):
        raise InputTypeError(f"batches must be a list of batches, got {shown(batches)}")
    checked_batches: list[list[object]] = []
    for batch_number, batch in enumerate(batches):
        checked_batches.append(_checked_examples(batch, f"batch {batch_number}"))
    checked_candidates = _checked_examples(candidates, "candidates")
    if not checked_batches:
        raise InputError("batches is empty: give at least one batch of examples")
    if relation == "replace" and len(checked_candidates) < 2:
        raise InputError("to replace an example needs at least two candidates")
    pair_maker = _PairMaker(checked_batches, checked_candidates, relation=relation, empty=empty)
    pairs = [
        *pair_maker.pairs_of_candidates(loss_factor=1.0),
        *pair_maker.pairs_of_candidates(loss_factor=_LONG_GRADIENT_FACTOR),
    ]
    if sweep:
        pairs += pair_maker.pairs_of_swept_losses()
    return pairs


def _checked_examples(examples: Any, name: str) -> list[object]:
    """Return examples as a list that is not empty."""
    if not is_list(examples):
        raise InputTypeError(f"{name} must be a list of examples, got {shown(examples)}")
    checked = list(examples)
    if not checked:
        raise InputError(f"{name} has no example")
    return checked


class _PairMaker:
    """Makes pairs of neighbours from some batches and candidates."""

    def __init__(
        self,
        batches: list[list[object]],
        candidates: list[object],
        *,
        relation: Relation,
        empty: bool,
    ) -> None:
        self.batches = batches
        self.candidates = candidates
        self.replaces = relation == "replace"
        self.empty = empty
        self.largest_size = max(map(len, batches))
        self.named_candidates: list[tuple[str, object]] = []
        with_long_inputs: list[tuple[str, object]] = []
        for candidate_number, candidate in enumerate(candidates):
            candidate_name = f"candidate {candidate_number}"
            self.named_candidates.append((candidate_name, candidate))
            long_candidate = with_scaled_inputs(candidate, _LONG_GRADIENT_FACTOR)
            if long_candidate is not None:
                with_long_inputs.append((f"{candidate_name}, inputs times 1000", long_candidate))
        self.variants = self.named_candidates + with_long_inputs

    def pairs_of_candidates(self, loss_factor: float) -> Iterator[Pair]:
        """Yield pairs of each candidate in each batch, at one loss factor."""
        name_suffix = "" if loss_factor == 1 else f", loss times {loss_factor:g}"
        batches = [Batch(batch, loss_factor=loss_factor) for batch in self.batches]
        empty_batch = Batch([], loss_factor=loss_factor)
        for candidate_position, (candidate_name, candidate) in enumerate(self.variants):
            _, opposed_candidate = self.variants[(candidate_position + 1) % len(self.variants)]
            named_contexts = [
                (f"in batch {batch_number}", batch) for batch_number, batch in enumerate(batches)
            ]
            if self.empty or self.replaces:
                named_contexts.append(("alone", empty_batch))
            copies_of_candidate = self._batch_of_copies(candidate, loss_factor)
            copies_of_opposed = self._batch_of_copies(opposed_candidate, loss_factor)
            single_opposed = Batch([opposed_candidate], loss_factor=loss_factor)
            named_contexts.append(("beside its copies", copies_of_candidate))
            named_contexts.append(("against others", copies_of_opposed))
            named_contexts.append(("against one", single_opposed))
            for context, other_examples in named_contexts:
                yield self._pair_of_neighbours(
                    f"{candidate_name} {context}{name_suffix}",
                    other_examples,
                    candidate,
                    opposed_candidate,
                )

    def pairs_of_swept_losses(self) -> Iterator[Pair]:
        """Yield pairs at many loss factors, among copies of the first candidate.

        Another copy, and the candidate that opposes it, are added at each factor.
        """
        first_candidate = self.candidates[0]
        swept_candidates = self.named_candidates[:_MOST_SWEPT_CANDIDATES]
        zero_inputs = with_scaled_inputs(first_candidate, 0.0)
        if zero_inputs is not None:
            swept_candidates.append(("candidate 0, inputs times 0", zero_inputs))
        for factor_number, power_of_ten in enumerate(_SWEPT_POWERS.tolist()):
            loss_factor = 10.0**power_of_ten
            copies_of_first = self._batch_of_copies(first_candidate, loss_factor)
            added_candidates = swept_candidates
            if factor_number % _ALL_CANDIDATES_EVERY:
                added_candidates = swept_candidates[:2]
            for candidate_number, (candidate_name, candidate) in enumerate(added_candidates):
                _, opposed_candidate = added_candidates[
                    (candidate_number + 1) % len(added_candidates)
                ]
                pair_name = f"{candidate_name} among copies, loss times {loss_factor:.3g}"
                yield self._pair_of_neighbours(
                    pair_name, copies_of_first, candidate, opposed_candidate
                )

    def _batch_of_copies(self, candidate: object, loss_factor: float) -> Batch:
        """Return a batch of copies of a candidate, as large as the largest batch."""
        return Batch([candidate] * self.largest_size, loss_factor=loss_factor)

    def _pair_of_neighbours(
        self, pair_name: str, other_examples: Batch, candidate: object, opposed_candidate: object
    ) -> Pair:
        """Return a pair that differs in one example."""
        loss_factor = other_examples.loss_factor
        without = other_examples
        if self.replaces:
            without = Batch([*other_examples, opposed_candidate], loss_factor=loss_factor)
        with_ = Batch([*other_examples, candidate], loss_factor=loss_factor)
        return Pair(pair_name, without, with_)


def with_scaled_inputs(example: object, factor: float) -> Any:
    """Return an example with its first array of floating-point numbers scaled.

    None without one, and where its type does not hold all of the scaled numbers.
    """
    try:
        return _scale_first_array(example, factor)
    except OverflowError:
        return None


def _scale_first_array(example: Any, factor: float) -> Any:
    """Return an example with its first array scaled; raise an error where that overflows."""
    dtype = getattr(example, "dtype", None)
    if isinstance(example, float) or "float" in str(dtype):
        with np.errstate(over="ignore", invalid="ignore"):
            scaled_array = example * factor
            # infinity times 0 is NaN: so of arrays of any package
            is_finite = scaled_array * 0 == 0
        if not isinstance(is_finite, bool):
            is_finite = is_finite.all()
        if not is_finite:
            raise OverflowError
        return scaled_array
    if hasattr(example, "dtype"):
        return None
    example_parts: list[tuple[Any, Any]] = []
    if isinstance(example, Mapping):
        example_parts = list(example.items())
    elif isinstance(example, tuple | list):
        example_parts = list(enumerate(example))
    for part_key, example_part in example_parts:
        scaled_part = _scale_first_array(example_part, factor)
        if scaled_part is not None:
            return _with_changed_part(example, part_key, scaled_part)
    return None


def _with_changed_part(example: Any, part_key: Any, changed_part: Any) -> Any:
    """Return a copy of an example with one part changed, of the same type."""
    if isinstance(example, Mapping):
        return {**example, part_key: changed_part}
    changed_parts = [*example[:part_key], changed_part, *example[part_key + 1 :]]
    is_named_tuple = hasattr(example, "_fields")
    if is_named_tuple:
        return type(example)(*changed_parts)
    return type(example)(changed_parts)
