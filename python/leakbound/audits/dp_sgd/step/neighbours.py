"""Pairs of batches that bring faults of a step out, made from real examples."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leakbound._base.checks import choice, flag, shown
from leakbound._base.reading import is_list
from leakbound._base.types import Relation
from leakbound.audits.dp_sgd.step.pairs import Batch, Pair
from leakbound.errors import InputError, InputTypeError

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
