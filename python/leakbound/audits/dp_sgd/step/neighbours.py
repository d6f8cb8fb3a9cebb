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
_LONG = 1e3
# Loss factors that are swept, as powers of ten: gradients of all lengths, so close that some are
# just short of the clipping norm; and each how many of them has all candidates
_POWERS = np.arange(-3.0, 4.01, 0.125)
_COARSE = 4
# Candidates that are swept at most
_SWEPT = 4


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
    contexts = [_listed(batch, f"batch {place}") for place, batch in enumerate(batches)]
    added = _listed(candidates, "candidates")
    if not contexts:
        raise InputError("batches is empty: give at least one batch of examples")
    if relation == "replace" and len(added) < 2:
        raise InputError("to replace an example needs at least two candidates")
    make = _Pairs(contexts, added, relation=relation, empty=empty)
    pairs = [one for factor in (1.0, _LONG) for one in make.of_candidates(factor)]
    if sweep:
        pairs += make.swept()
    return pairs


def _listed(examples: Any, name: str) -> list[object]:
    """Return examples as a list that is not empty."""
    if not is_list(examples):
        raise InputTypeError(f"{name} must be a list of examples, got {shown(examples)}")
    listed = list(examples)
    if not listed:
        raise InputError(f"{name} has no example")
    return listed


class _Pairs:
    """Pairs of some batches and candidates."""

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
        self.size = max(map(len, batches))
        names = [f"candidate {place}" for place in range(len(candidates))]
        self.variants: list[tuple[str, object]] = [*zip(names, candidates, strict=True)]
        for name, example in zip(names, candidates, strict=True):
            long = scaled(example, _LONG)
            if long is not None:
                self.variants.append((f"{name}, inputs times 1000", long))

    def of_candidates(self, factor: float) -> Iterator[Pair]:
        """Yield pairs of each candidate, at one loss factor."""
        end = "" if factor == 1 else f", loss times {factor:g}"
        batches = [Batch(one, loss_factor=factor) for one in self.batches]
        none = Batch([], loss_factor=factor)
        for place, (name, example) in enumerate(self.variants):
            _, other = self.variants[(place + 1) % len(self.variants)]
            contexts = [(f"in batch {number}", batch) for number, batch in enumerate(batches)]
            if self.empty or self.replaces:
                contexts.append(("alone", none))
            contexts += [
                (where, Batch(rest, loss_factor=factor))
                for where, rest in (
                    ("beside its copies", [example] * self.size),
                    ("against others", [other] * self.size),
                    ("against one", [other]),
                )
            ]
            for where, rest in contexts:
                yield self._pair(f"{name} {where}{end}", rest, example, other)

    def swept(self) -> Iterator[Pair]:
        """Yield pairs at many loss factors, among copies of the first candidate.

        Its like, and the candidate that opposes it, are there at each factor.
        """
        like = self.candidates[0]
        added = [(f"candidate {k}", one) for k, one in enumerate(self.candidates[:_SWEPT])]
        zero = scaled(like, 0.0)
        if zero is not None:
            added.append(("candidate 0, inputs times 0", zero))
        for place, power in enumerate(_POWERS.tolist()):
            rest = Batch([like] * self.size, loss_factor=10.0**power)
            now = added
            if place % _COARSE:
                now = added[:2]
            for number, (name, example) in enumerate(now):
                _, other = now[(number + 1) % len(now)]
                yield self._pair(
                    f"{name} among copies, loss times {10.0**power:.3g}", rest, example, other
                )

    def _pair(self, name: str, rest: Batch, example: object, other: object) -> Pair:
        """Return a pair that differs in one example."""
        factor = rest.loss_factor
        without = rest
        if self.replaces:
            without = Batch([*rest, other], loss_factor=factor)
        return Pair(name, without, Batch([*rest, example], loss_factor=factor))


def scaled(example: object, factor: float) -> Any:
    """Return an example with its first array of floating-point numbers scaled.

    None without one, and where its type does not hold all of the scaled numbers.
    """
    try:
        return _scaled(example, factor)
    except OverflowError:
        return None


def _scaled(example: Any, factor: float) -> Any:
    """Return an example with its first array scaled; raise an error where that overflows."""
    if isinstance(example, float) or "float" in str(getattr(example, "dtype", "")):
        with np.errstate(over="ignore", invalid="ignore"):
            changed = example * factor
            # infinity times 0 is NaN: so of arrays of any package
            zeros = changed * 0 == 0
        if not (zeros if isinstance(zeros, bool) else zeros.all()):
            raise OverflowError
        return changed
    if hasattr(example, "dtype"):
        return None
    parts: list[tuple[Any, Any]] = []
    if isinstance(example, Mapping):
        parts = list(example.items())
    elif isinstance(example, tuple | list):
        parts = list(enumerate(example))
    for key, part in parts:
        changed = _scaled(part, factor)
        if changed is not None:
            return _with(example, key, changed)
    return None


def _with(example: Any, key: Any, part: Any) -> Any:
    """Return a copy of an example with one part changed, of the same type."""
    if isinstance(example, Mapping):
        return {**example, key: part}
    parts = [*example[:key], part, *example[key + 1 :]]
    if hasattr(example, "_fields"):  # a named tuple
        return type(example)(*parts)
    return type(example)(parts)
