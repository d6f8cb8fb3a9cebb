"""Columns of data: tensors, arrays and lists, with one row for each example; ragged tokens."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from leakbound._base.types import AnyArray
from leakbound.errors import InputError, InputTypeError

IGNORED = -100  # the label of a token that does not count, as in torch and in transformers
Column: TypeAlias = Tensor | AnyArray


def columns_of(data: Mapping[str, object]) -> dict[str, Column]:
    """Return columns under their names; those with a row of tokens for each example are padded."""
    present = {name: values for name, values in data.items() if values is not None}
    rows = {name: _tokens(values) for name, values in present.items()}
    ragged = {name: one for name, one in rows.items() if one}
    columns: dict[str, Column] = {
        name: column(values, name) for name, values in present.items() if name not in ragged
    }
    if ragged:
        columns |= _padded(ragged, masked="attention_mask" in columns)
    return columns


def tensor_of(array: Column) -> Tensor:
    """Return a part of a column as a tensor, in a type that torch computes with."""
    if isinstance(array, Tensor):
        return array
    kind = array.dtype
    wanted = kind.newbyteorder("=")
    if kind.kind == "u" and kind.itemsize > 1:  # which models take as little as torch does
        wanted = np.dtype(np.int64)
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError("integers of data must be below 2^63")
    elif kind.kind == "f" and kind.itemsize > np.dtype(np.float64).itemsize:
        wanted = np.dtype(np.float64)
    return torch.tensor(np.ascontiguousarray(array, dtype=wanted))


def dense(values: object, name: str) -> None:
    """Raise for tensors whose rows are not numbers at places: sparse and nested ones."""
    if isinstance(values, Tensor) and (values.is_nested or values.layout != torch.strided):
        kind = "nested"
        if not values.is_nested:
            kind = str(values.layout)
        raise InputTypeError(f"{name} must be a dense tensor, got a {kind} one: pass to_dense()")


def together(rows: list[Any]) -> object:
    """Return a batch of rows, as torch makes them; tokens of several lengths are padded."""
    if not (isinstance(rows[0], Mapping) and "input_ids" in rows[0]):
        return default_collate(rows)
    columns = {}
    for name in [name for name, value in rows[0].items() if value is not None]:
        values = [row[name] for row in rows]
        shapes = {one.shape if isinstance(one, Tensor) else None for one in values}
        columns[name] = torch.stack(values) if len(shapes) == 1 and None not in shapes else values
    return columns_of(columns)


def column(values: object, name: str) -> Column:
    """Return numbers with a row for each example."""
    if isinstance(values, Tensor):
        dense(values, name)
        return values
    if "numpy.ma" in sys.modules and np.ma.is_masked(values):
        raise InputTypeError(f"{name} has masked entries; drop them first")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{name} cannot be read as an array, {error}; rows of tokens of several lengths are "
            "padded in a mapping with input_ids"
        ) from error
    if array.dtype.kind not in "biuf":
        raise InputTypeError(f"arrays of data must hold numbers, got dtype {array.dtype} in {name}")
    return array


def _tokens(values: object) -> list[AnyArray]:
    """Return rows of integers one by one, if that is what they are and NumPy does not see it."""
    if isinstance(values, Tensor) or getattr(values, "dtype", None) in (int, float, bool):
        return []
    if isinstance(values, np.ndarray) and values.dtype != object:
        return []
    try:
        rows = [np.asarray(row) for row in _listed(values)]
    except (TypeError, ValueError, RuntimeError):
        return []
    plain = all(row.ndim == 1 and (row.dtype.kind in "biu" or not row.size) for row in rows)
    if plain:
        return rows
    return []


def _listed(values: object) -> Sequence[object]:
    """Return rows as a list, whose elements are not objects of Arrow."""
    to_pylist: Callable[[], list[object]] | None = getattr(values, "to_pylist", None)
    if to_pylist is not None:
        return to_pylist()
    if isinstance(values, Iterable):
        return list(values)
    raise TypeError


def _padded(ragged: dict[str, list[AnyArray]], *, masked: bool) -> dict[str, AnyArray]:
    """Pad rows of tokens on the right, and say in an attention mask where they end."""
    lengths = {name: [len(row) for row in rows] for name, rows in ragged.items()}
    found: dict[str, AnyArray] = {}
    for name, rows in ragged.items():
        fill = 0
        if name == "labels":
            fill = IGNORED
        found[name] = np.full((len(rows), max(lengths[name])), fill, dtype=np.int64)
        for row, tokens in zip(found[name], rows, strict=True):
            row[: len(tokens)] = tokens
    sizes = lengths.get("input_ids")
    if sizes is None or len({*sizes}) == 1:
        return found
    if 0 in sizes:
        raise InputError(f"input_ids has no token in row {sizes.index(0)}: leave out what is empty")
    if lengths.get("attention_mask", sizes) != sizes:
        raise InputError("attention_mask must have one entry for each of input_ids in every row")
    if not masked and "attention_mask" not in found:
        real = np.arange(max(sizes)) < np.array(sizes)[:, None]
        found["attention_mask"] = real.astype(np.int64)
    return found
