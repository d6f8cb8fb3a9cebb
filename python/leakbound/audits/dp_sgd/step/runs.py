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

_SINGLE_PRECISION = float(np.finfo(np.float32).eps)
_SMALLEST_SINGLE = float(np.finfo(np.float32).smallest_subnormal)
# Unsigned type, and bits of the mantissa, of types whose values may be narrower ones in disguise,
# by their bytes
_MANTISSAS = {4: (np.uint32, 23), 8: (np.uint64, 52)}
# Bits of the mantissa of bfloat16, half, single and double precision
_MANTISSA_BITS_OF_TYPES = (7, 10, 23, 52)
_HALF_PRECISION = 2.0**-10
# Smallest number above 0 in half precision
_SMALLEST_HALF = 2.0**-24
# Fewer values than this do not show their type
_TOO_FEW_VALUES = 32


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


class StepRunner:
    """Runs a step, counts the runs, and checks that all release the same tensors."""

    def __init__(self, step: Step) -> None:
        if not _takes_two(step):
            raise InputTypeError(f"step must be a function of (examples, seed), got {shown(step)}")
        self._step = step
        self.runs = 0
        self.sizes: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.precision: dict[str, float] = {}
        self.smallest_numbers: dict[str, float] = {}

    def __call__(self, examples: Sequence[object], seed: int | None, *, where: str) -> Released:
        """Return what one run releases; `where` says in messages which run it is."""
        try:
            returned_tensors = self._step(examples, seed)
        except Exception as error:
            raise_for_failed_step(error, examples, where)
            raise
        self.runs += 1
        if not isinstance(returned_tensors, Mapping):
            raise InputTypeError(
                "step must return a mapping from names of tensors to arrays, got "
                f"{shown(returned_tensors)}"
            )
        vectors_of_tensors: Released = {}
        shapes_of_tensors: dict[str, tuple[int, ...]] = {}
        for key, tensor in returned_tensors.items():
            tensor_name = str(key)
            vectors_of_tensors[tensor_name], shapes_of_tensors[tensor_name] = _vector_and_shape(
                tensor, tensor_name
            )
        released = {
            tensor_name: vectors_of_tensors[tensor_name]
            for tensor_name in sorted(vectors_of_tensors)
        }
        if not self._shapes:
            self._remember_first_run(released, shapes_of_tensors)
        if shapes_of_tensors != self._shapes:
            self._raise_for_other_shapes(shapes_of_tensors, where)
        return released

    def _remember_first_run(
        self, released: Released, tensor_shapes: dict[str, tuple[int, ...]]
    ) -> None:
        """Take names, sizes and precision from the first run."""
        self._shapes = tensor_shapes
        self.sizes = {
            tensor_name: tensor_values.size for tensor_name, tensor_values in released.items()
        }
        if not sum(self.sizes.values()):
            raise InputError(
                "step returned no number: return what the optimizer is given, by the names of the "
                "tensors"
            )
        for tensor_name, tensor_values in released.items():
            precision = _relative_precision(tensor_values)
            self.precision[tensor_name] = precision
            self.smallest_numbers[tensor_name] = _smallest_number(tensor_values, precision)
        # few values do not show their type: it is that of the others
        coarsest_precision = max(self.precision.values())
        largest_smallest_number = max(self.smallest_numbers.values())
        for tensor_name, number_of_values in self.sizes.items():
            if number_of_values < _TOO_FEW_VALUES:
                self.precision[tensor_name] = coarsest_precision
                self.smallest_numbers[tensor_name] = largest_smallest_number

    def _raise_for_other_shapes(
        self, tensor_shapes: dict[str, tuple[int, ...]], where: str
    ) -> None:
        """Say which tensors differ from those of the first run."""
        for tensor_name in sorted({*tensor_shapes, *self._shapes}):
            other_shape = tensor_shapes.get(tensor_name)
            first_shape = self._shapes.get(tensor_name)
            if other_shape != first_shape:
                raise InputError(
                    f"step returned other tensors for other batches: {tensor_name!r} is "
                    f"{_shape_in_words(other_shape)} in {where}, and "
                    f"{_shape_in_words(first_shape)} before. Return the same names and shapes for "
                    "all batches, zeros where a tensor gets nothing; if the optimizer itself skips "
                    "it, then that alone tells the batches apart"
                )


def _shape_in_words(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "missing"
    return f"of shape {shape}"


def raise_for_failed_step(error: Exception, examples: Sequence[object], where: str) -> None:
    """Say that an engine takes no empty batches, or else where the step failed."""
    if not len(examples):
        raise InputError(
            f"step fails on an empty batch, in {where} ({type(error).__name__}: {error}). A "
            "sampler may draw one: mend the step, or leave out pairs of which D is empty, with "
            "neighbouring_batches(..., empty=False)"
        ) from error
    error.add_note(f"while a step was probed: {where}, {len(examples)} examples")


def check_repeats(first_run: Released, second_run: Released, where: str) -> None:
    """Check that one seed gave one result, bit for bit."""
    different_tensors = []
    for tensor_name, tensor_values in first_run.items():
        if not np.array_equal(tensor_values, second_run[tensor_name], equal_nan=True):
            different_tensors.append(tensor_name)
    if different_tensors:
        raise OptionError(
            f"step is not a function of (examples, seed): {where} gave two results with one seed, "
            f"in {len(different_tensors)} of {len(first_run)} tensors, {different_tensors[0]!r} "
            "the first. Fix all that is random but the noise (dropout, data augmentation, the "
            "order of sums on a GPU) once and for all, take the noise from the seed, and put back "
            "what a step leaves behind: weights, momentum, clipping norms that adapt, queues of "
            "skipped steps"
        )


def is_finite(released: Released) -> bool:
    """Return whether all released numbers are finite."""
    return all(bool(np.isfinite(tensor_values).all()) for tensor_values in released.values())


def check_finite(released: Released, where: str) -> None:
    """Check that all released numbers are finite."""
    for tensor_name, tensor_values in released.items():
        number_not_finite = int(np.count_nonzero(~np.isfinite(tensor_values)))
        if number_not_finite:
            raise InputError(
                f"tensor {tensor_name!r} has {number_not_finite:,} NaN or infinite values of "
                f"{tensor_values.size:,} in {where}: nothing can be concluded from it. Give "
                "examples with finite gradients, such as smaller inputs or loss factors"
            )


def as_floats(tensor_values: AnyArray) -> FloatArray:
    """Return a vector in double precision."""
    return tensor_values.astype(np.float64)


def _vector_and_shape(tensor: object, tensor_name: str) -> tuple[AnyArray, tuple[int, ...]]:
    """Return a copy of a tensor as a vector, and its shape."""
    array_of_tensor = array_of(tensor, name=f"tensor {tensor_name!r}")
    if array_of_tensor.dtype.kind in "VO":
        try:
            array_of_tensor = array_of_tensor.astype(np.float32)  # as bfloat16 of other packages
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                f"tensor {tensor_name!r} must hold real numbers: {error}"
            ) from error
    if array_of_tensor.dtype.kind not in "fiu":
        raise InputTypeError(
            f"tensor {tensor_name!r} must hold real numbers, got {array_of_tensor.dtype}"
        )
    if array_of_tensor.dtype.kind != "f":
        array_of_tensor = array_of_tensor.astype(np.float64)
    tensor_vector = np.array(array_of_tensor).ravel()
    return tensor_vector, array_of_tensor.shape


def _relative_precision(tensor_values: AnyArray) -> float:
    """Return the relative precision of values: that of a narrower type if all are of one.

    Numbers in single or double precision often come from narrower ones. It is never finer than
    single precision, whatever the type that holds the values.
    """
    own_precision = max(_SINGLE_PRECISION, float(np.finfo(tensor_values.dtype).eps))
    type_layout = _MANTISSAS.get(tensor_values.dtype.itemsize)
    if type_layout is None or np.count_nonzero(tensor_values) < _TOO_FEW_VALUES:
        return own_precision
    unsigned_type, mantissa_bits = type_layout
    # Bits that are set in the mantissa of any value
    used_mantissa_bits = int(np.bitwise_or.reduce(tensor_values.view(unsigned_type)))
    used_mantissa_bits &= (1 << mantissa_bits) - 1
    if not used_mantissa_bits:
        return own_precision
    lowest_used_bit = used_mantissa_bits & -used_mantissa_bits
    trailing_zeros = lowest_used_bit.bit_length() - 1
    needed_bits = mantissa_bits - trailing_zeros
    mantissa_bits_of_narrowest = next(
        bits for bits in _MANTISSA_BITS_OF_TYPES if needed_bits <= bits
    )
    return max(own_precision, 2.0**-mantissa_bits_of_narrowest)


def _smallest_number(tensor_values: AnyArray, precision: float) -> float:
    """Return the smallest number above 0 of the type of values, or of half precision in disguise.

    It is that of single precision at least, as is the precision.
    """
    own_smallest = max(_SMALLEST_SINGLE, float(np.finfo(tensor_values.dtype).smallest_subnormal))
    if precision < _HALF_PRECISION:
        return own_smallest
    multiples_of_smallest_half = as_floats(tensor_values) / _SMALLEST_HALF
    if (multiples_of_smallest_half == np.floor(multiples_of_smallest_half)).all():
        return max(own_smallest, _SMALLEST_HALF)
    return own_smallest
