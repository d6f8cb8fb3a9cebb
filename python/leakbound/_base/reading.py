"""Arrays from whatever holds values: lists, tensors, columns of Arrow and of other packages.

All data that users pass are read here, so that what one door takes every other takes, too, and
what none can take is refused in the same words.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Protocol, Self

import numpy as np

from leakbound._base.types import AnyArray, Data
from leakbound.errors import InputTypeError

# Codes of the dtypes that NumPy gives to lists of several types, whose values it changes: text for
# numbers beside text, and floats for integers beside other numbers.
_MIXED_KINDS = "fUS"
# What a single value is: NumPy reads it as an array without dimensions.
_SINGLE_TYPES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    memoryview,
    np.generic,
    np.ndarray,
)


def readable(values: Data) -> Data:
    """Return a torch tensor as NumPy reads it: detached, moved to the CPU, at least float16."""
    torch = sys.modules.get("torch")  # not imported for it: who has a tensor has torch
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    tensor_on_cpu = values.detach().cpu()
    # bfloat16 and float8 have no type of NumPy; float32 holds all of their values.
    _, type_name = str(tensor_on_cpu.dtype).split(".")
    if tensor_on_cpu.is_floating_point() and not hasattr(np, type_name):
        return tensor_on_cpu.float()
    return tensor_on_cpu


def is_list(values: object) -> bool:
    """Return whether values follow one another, and have a length or pass once.

    Text and mappings do not count, nor arrays and tensors without dimensions, which have the
    methods of lists and raise TypeError.
    """
    if isinstance(values, str | bytes | Mapping) or getattr(values, "shape", None) == ():
        return False
    return isinstance(values, Iterable)


def are_records(table: Data) -> bool:
    """Return whether a table is a list of records, each a mapping from names to values."""
    if not isinstance(table, list | tuple) or not table:
        return False
    return all(isinstance(record, Mapping) for record in table)


def array_of(values: Data, name: str, *, exact: bool = False) -> AnyArray:
    """Read values as an array of any type and shape.

    With `exact`, lists of several types are arrays of objects: NumPy would write numbers beside
    text as text, and round large integers beside floats.
    """
    refuse_unread(values, name=name)
    is_single_value = isinstance(values, _SINGLE_TYPES)
    is_sequence = isinstance(values, Sequence) and not is_single_value
    try:
        if is_sequence and len(values) > 0 and hasattr(values[0], "as_py"):
            values = [scalar.as_py() for scalar in values]  # of Arrow
        array_of_values = np.asarray(readable(values))
        if exact and is_sequence and array_of_values.dtype.kind in _MIXED_KINDS:
            array_of_values = _unchanged_by_numpy(values, array_of_values)
    except Exception as error:  # of whatever package the values are
        raise InputTypeError(f"{name} cannot be read as an array: {error}") from error
    if array_of_values.dtype != object:
        return array_of_values
    if array_of_values.ndim == 0 and not is_single_value:
        type_name = type(values).__name__
        raise InputTypeError(
            f"{name} must be an array, a column, a frame or a list, got {type_name}"
        )
    return _numbers_of_frame(values, array_of_values)


def columns_of(frame: Data) -> list[Data]:
    """Return the columns of a frame of pandas, polars or Arrow; none for other data."""
    if not _is_frame(frame):
        return []
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, column_number] for column_number in range(frame.shape[1])]
    if hasattr(frame, "get_columns"):
        return list(frame.get_columns())
    return list(frame.columns)


def refuse_masked(values: Data, name: str) -> None:
    """Refuse arrays with masked entries, which NumPy would read as if they were not masked."""
    if "numpy.ma" not in sys.modules:  # whose import costs 15 ms
        return
    arrays_or_values: Sequence[Data] = (values,)
    if isinstance(values, list | tuple):
        arrays_or_values = values
    if any(
        isinstance(array_or_value, np.ma.MaskedArray) and np.ma.is_masked(array_or_value)
        for array_or_value in arrays_or_values
    ):
        raise InputTypeError(f"{name} has masked entries; drop them first")


def refuse_unread(values: Data, name: str) -> None:
    """Refuse what NumPy reads as one object, or not as what it is, and say what to pass."""
    problem = _why_unread(values)
    if problem:
        raise InputTypeError(f"{name} cannot be read as an array: it is {problem}")


def _is_frame(values: Data) -> bool:
    return hasattr(values, "columns") and len(getattr(values, "shape", ())) == 2


def _why_unread(values: Data) -> str:
    """Return what a container is that holds no array yet, and what to do; empty for all others."""
    type_name = type(values).__name__
    if hasattr(values, "collect") and hasattr(values, "lazy"):
        return f"a {type_name}, which has no rows yet: pass its .collect()"
    if hasattr(values, "tocsr"):
        return f"a sparse {type_name}: pass its .toarray()"
    if isinstance(values, Mapping):
        return f"a mapping ({type_name}): pass an array of its values, or a frame"
    passes_only_once = isinstance(values, Iterator) and not hasattr(values, "__array__")
    if passes_only_once or isinstance(values, set | frozenset):
        return f"of type {type_name}, whose values have no order or pass only once: pass a list"
    if getattr(values, "is_nested", False) is True:
        return f"a nested {type_name}: pad its rows to one length"
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data and isinstance(values, torch_data.Dataset | torch_data.DataLoader):
        return f"a {type_name}: pass an array of what it yields"
    return ""


def _unchanged_by_numpy(values: Sequence[Data], array: AnyArray) -> AnyArray:
    """Return a list as NumPy reads it, or as objects if this changed some of its values."""
    array_of_objects = np.array(values, dtype=object)
    if array_of_objects.shape != array.shape:
        return array
    for element in array_of_objects.ravel().tolist():
        is_changed_integer = (
            array.dtype.kind == "f"
            and isinstance(element, Integral)
            and int(float(element)) != element
        )
        is_changed_to_text = array.dtype.kind != "f" and not isinstance(element, str | bytes)
        if is_changed_integer or is_changed_to_text:
            return array_of_objects
    return array


def _numbers_of_frame(frame: Data, array_of_objects: AnyArray) -> AnyArray:
    """Return a frame as objects, or as numbers if each of its columns holds numbers."""
    columns_of_frame = [np.asarray(readable(column)) for column in columns_of(frame)]
    if columns_of_frame and all(column.dtype.kind in "biuf" for column in columns_of_frame):
        return np.column_stack(columns_of_frame)
    return array_of_objects


class ArrowType(Protocol):
    """The type of a column; `str` names it."""

    @property
    def value_type(self) -> "ArrowType":
        """The type of what a dictionary or a list holds; other types have none."""


class ArrowColumn(Protocol):
    """A column, in one piece or in chunks."""

    @property
    def type(self) -> ArrowType:
        """The type of all values."""

    @property
    def null_count(self) -> int:
        """How many values are missing."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> object: ...

    def to_pylist(self) -> list[object]:
        """Return values as Python has them, None where one is missing."""

    def to_numpy(self, *, zero_copy_only: bool = True) -> AnyArray:
        """Return values as an array, a copy where that needs one."""

    def is_null(self) -> "ArrowColumn":
        """Return which values are missing."""

    def slice(self, offset: int, length: int, /) -> Self:
        """Return so many values from a row on."""

    def cast(self, kind: ArrowType, /) -> "ArrowColumn":
        """Return values of another type."""

    def dictionary_encode(self) -> "ArrowDictionary":
        """Return the different values, and which of them each value is."""


class ArrowDictionary(Protocol):
    """Different values, and their places."""

    @property
    def dictionary(self) -> ArrowColumn:
        """The different values."""

    @property
    def indices(self) -> ArrowColumn:
        """Which of them each value is."""


class ArrowSchema(Protocol):
    """Names and types of columns."""

    @property
    def names(self) -> list[str]:
        """The names."""

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        """What was stored beside the columns."""


class ArrowBatch(Protocol):
    """Some rows of a table."""

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of columns."""

    @property
    def columns(self) -> Sequence[ArrowColumn]:
        """All columns."""

    def __len__(self) -> int: ...

    def column(self, name: str, /) -> ArrowColumn:
        """Return a column by its name."""
