"""Runs of a step: what it releases, read in one form and checked."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.reading import array_of
from leakbound._base.types import AnyArray, FloatArray
from leakbound.errors import InputError, InputTypeError, OptionError

Step: TypeAlias = Callable[[Any, int | None], Mapping[str, object]]
"""The step: examples and the seed of its noise to tensors; None goes on with its own noise."""
Released: TypeAlias = dict[str, AnyArray]
"""Tensors by name, each as a vector of its own type."""

_SINGLE = float(np.finfo(np.float32).eps)
# Bits of the mantissa of types whose values may be narrower ones in disguise
_MANTISSAS = {4: (np.uint32, 23), 8: (np.uint64, 52)}
# Bits of bfloat16, half, single and double precision
_NARROW = (7, 10, 23, 52)
# Smallest number above 0 in half precision
_HALF_STEP = 2.0**-24
# Fewer values than this do not show their type
_FEW = 32


def _takes_two(step: object) -> bool:
    """Return whether a step can be called with two values, as far as its signature tells."""
    if not callable(step):
        return False
    try:
        signature(step).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of a function that is not written in Python
        return True
    return True


class Runner:
    """Runs a step, counts the runs, and sees that all release the same tensors."""

    def __init__(self, step: Step) -> None:
        if not _takes_two(step):
            raise InputTypeError(f"step must be a function of (examples, seed), got {shown(step)}")
        self._step = step
        self.runs = 0
        self.sizes: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.precision: dict[str, float] = {}
        self.smallest: dict[str, float] = {}

    def __call__(self, examples: Sequence[object], seed: int | None, *, where: str) -> Released:
        """Return what one run releases; `where` says in messages which run it is."""
        try:
            released = self._step(examples, seed)
        except Exception as error:
            raise_for(error, examples, where)
            raise
        self.runs += 1
        if not isinstance(released, Mapping):
            raise InputTypeError(
                f"step must return a mapping from names of tensors to arrays, got {shown(released)}"
            )
        tensors = {str(name): _vector(value, str(name)) for name, value in released.items()}
        shapes = {name: shape for name, (_, shape) in tensors.items()}
        values = {name: tensors[name][0] for name in sorted(tensors)}
        if not self._shapes:
            self._begin(values, shapes)
        if shapes != self._shapes:
            self._refuse(shapes, where)
        return values

    def _begin(self, values: Released, shapes: dict[str, tuple[int, ...]]) -> None:
        """Take names, sizes and precision from the first run."""
        self._shapes = shapes
        self.sizes = {name: one.size for name, one in values.items()}
        if not sum(self.sizes.values()):
            raise InputError(
                "step returned no number: return what the optimizer is given, by the names of the "
                "tensors"
            )
        precision = {name: _precision(one) for name, one in values.items()}
        # few values do not show their type: it is that of the others
        few = [name for name, one in values.items() if one.size < _FEW]
        self.precision = precision | dict.fromkeys(few, max(precision.values()))
        smallest = {name: _smallest(one, precision[name]) for name, one in values.items()}
        self.smallest = smallest | dict.fromkeys(few, max(smallest.values()))

    def _refuse(self, shapes: dict[str, tuple[int, ...]], where: str) -> None:
        """Say which tensors differ from those of the first run."""
        for name in sorted({*shapes, *self._shapes}):
            now, before = shapes.get(name), self._shapes.get(name)
            if now != before:
                states = ["missing" if one is None else f"of shape {one}" for one in (now, before)]
                raise InputError(
                    f"step returned other tensors for other batches: {name!r} is {states[0]} in "
                    f"{where}, and {states[1]} before. Return the same names and shapes for all "
                    "batches, zeros where a tensor gets nothing; if the optimizer itself skips "
                    "it, then that alone tells the batches apart"
                )


def raise_for(error: Exception, examples: Sequence[object], where: str) -> None:
    """Say that an engine takes no empty batches, or else where the step failed."""
    if not len(examples):
        raise InputError(
            f"step fails on an empty batch, in {where} ({type(error).__name__}: {error}). A "
            "sampler may draw one: mend the step, or leave out pairs of which D is empty, with "
            "neighbouring_batches(..., empty=False)"
        ) from error
    error.add_note(f"while a step was probed: {where}, {len(examples)} examples")


def check_repeats(first: Released, again: Released, where: str) -> None:
    """Check that one seed gave one result, bit by bit."""
    differ = [
        name for name in first if not np.array_equal(first[name], again[name], equal_nan=True)
    ]
    if differ:
        raise OptionError(
            f"step is not a function of (examples, seed): {where} gave two results with one seed, "
            f"in {len(differ)} of {len(first)} tensors, {differ[0]!r} the first. Fix all that is "
            "random but the noise (dropout, data augmentation, the order of sums on a GPU) once "
            "and for all, take the noise from the seed, and put back what a step leaves behind: "
            "weights, momentum, clipping norms that adapt, queues of skipped steps"
        )


def finite(released: Released) -> bool:
    """Return whether all numbers are finite."""
    return all(bool(np.isfinite(values).all()) for values in released.values())


def check_finite(released: Released, where: str) -> None:
    """Check that a run released numbers."""
    for name, values in released.items():
        wrong = int(np.count_nonzero(~np.isfinite(values)))
        if wrong:
            raise InputError(
                f"tensor {name!r} has {wrong:,} NaN or infinite values of {values.size:,} in "
                f"{where}: nothing can be concluded from it. Give examples with finite gradients, "
                "such as smaller inputs or loss factors"
            )


def as_floats(values: AnyArray) -> FloatArray:
    """Return a vector in double precision."""
    return values.astype(np.float64)


def _vector(value: object, name: str) -> tuple[AnyArray, tuple[int, ...]]:
    """Return a copy of a tensor as a vector, and its shape."""
    array = array_of(value, name=f"tensor {name!r}")
    if array.dtype.kind == "V" or array.dtype.kind == "O":
        try:
            array = array.astype(np.float32)  # as bfloat16 of other packages
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"tensor {name!r} must hold real numbers: {error}") from error
    if array.dtype.kind not in "fiu":
        raise InputTypeError(f"tensor {name!r} must hold real numbers, got {array.dtype}")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    return np.array(array).ravel(), array.shape


def _precision(values: AnyArray) -> float:
    """Return the relative precision of values: that of a narrower type if all are of one.

    Numbers in single or double precision often come from narrower ones. It is never finer than
    single precision, whatever the type that holds the values.
    """
    own = max(_SINGLE, float(np.finfo(values.dtype).eps))
    form = _MANTISSAS.get(values.dtype.itemsize)
    if form is None or np.count_nonzero(values) < _FEW:
        return own
    unsigned, mantissa = form
    used = int(np.bitwise_or.reduce(values.view(unsigned))) & ((1 << mantissa) - 1)
    held = mantissa - ((used & -used).bit_length() - 1)
    if not used:
        return own
    return max(own, next(2.0**-bits for bits in _NARROW if held <= bits))


def _smallest(values: AnyArray, precision: float) -> float:
    """Return the smallest number above 0 of the type of values, or of half precision in disguise.

    It is that of single precision at least, as is the precision.
    """
    own = float(
        max(np.finfo(np.float32).smallest_subnormal, np.finfo(values.dtype).smallest_subnormal)
    )
    steps = as_floats(values) / _HALF_STEP
    if precision >= 2.0**-10 and bool((steps == np.floor(steps)).all()):
        return max(own, _HALF_STEP)
    return own
