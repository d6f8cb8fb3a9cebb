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
    columns: dict[str, Column] = {}
    ragged_columns: dict[str, list[AnyArray]] = {}
    for name, values in data.items():
        if values is None:
            continue
        token_rows = _token_rows(values)
        if token_rows:
            ragged_columns[name] = token_rows
        else:
            columns[name] = number_column(values, name)
    if ragged_columns:
        columns |= _padded_columns(ragged_columns, has_mask="attention_mask" in columns)
    return columns


def column_tensor(array: Column) -> Tensor:
    """Return a part of a column as a tensor, in a type that torch computes with."""
    if isinstance(array, Tensor):
        return array
    dtype = array.dtype
    torch_dtype = dtype.newbyteorder("=")
    if dtype.kind == "u" and dtype.itemsize > 1:  # which models take as little as torch does
        torch_dtype = np.dtype(np.int64)
        if array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError("integers of data must be below 2^63")
    elif dtype.kind == "f" and dtype.itemsize > np.dtype(np.float64).itemsize:
        torch_dtype = np.dtype(np.float64)
    return torch.tensor(np.ascontiguousarray(array, dtype=torch_dtype))


def check_dense(values: object, name: str) -> None:
    """Raise for tensors whose rows are not numbers at places: sparse and nested ones."""
    if not isinstance(values, Tensor):
        return
    layout = str(values.layout)
    if values.is_nested:
        layout = "nested"
    if values.is_nested or values.layout != torch.strided:
        raise InputTypeError(f"{name} must be a dense tensor, got a {layout} one: pass to_dense()")


def collate_rows(rows: list[Any]) -> object:
    """Return a batch of rows, as torch makes them; tokens of several lengths are padded."""
    first_row = rows[0]
    if not isinstance(first_row, Mapping) or "input_ids" not in first_row:
        return default_collate(rows)
    columns: dict[str, object] = {}
    for name, first_value in first_row.items():
        if first_value is None:
            continue
        values = [row[name] for row in rows]
        columns[name] = values
        if all(isinstance(value, Tensor) for value in values):
            shapes = {value.shape for value in values}
            if len(shapes) == 1:
                columns[name] = torch.stack(values)
    return columns_of(columns)


def number_column(values: object, name: str) -> Column:
    """Return numbers with a row for each example."""
    if isinstance(values, Tensor):
        check_dense(values, name)
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


def _token_rows(values: object) -> list[AnyArray]:
    """Return rows of integers one by one, if that is what they are and NumPy does not see it."""
    if isinstance(values, Tensor) or getattr(values, "dtype", None) in (int, float, bool):
        return []
    if isinstance(values, np.ndarray) and values.dtype != object:
        return []
    try:
        rows = [np.asarray(row) for row in _row_list(values)]
    except (TypeError, ValueError, RuntimeError):
        return []
    for row in rows:
        is_integer = row.dtype.kind in "biu" or not row.size
        if row.ndim != 1 or not is_integer:
            return []
    return rows


def _row_list(values: object) -> Sequence[object]:
    """Return rows as a list, whose elements are not objects of Arrow."""
    to_pylist: Callable[[], list[object]] | None = getattr(values, "to_pylist", None)
    if to_pylist is not None:
        return to_pylist()
    if isinstance(values, Iterable):
        return list(values)
    raise TypeError


def _padded_columns(
    ragged_columns: dict[str, list[AnyArray]], *, has_mask: bool
) -> dict[str, AnyArray]:
    """Pad rows of tokens on the right, and say in an attention mask where they end."""
    lengths_of_rows: dict[str, list[int]] = {}
    padded_columns: dict[str, AnyArray] = {}
    for name, rows in ragged_columns.items():
        lengths = [len(row) for row in rows]
        padding_value = 0
        if name == "labels":
            padding_value = IGNORED
        padded = np.full((len(rows), max(lengths)), padding_value, dtype=np.int64)
        for padded_row, tokens in zip(padded, rows, strict=True):
            padded_row[: len(tokens)] = tokens
        lengths_of_rows[name] = lengths
        padded_columns[name] = padded
    text_lengths = lengths_of_rows.get("input_ids")
    if text_lengths is None or len(set(text_lengths)) == 1:
        return padded_columns
    if 0 in text_lengths:
        empty_row = text_lengths.index(0)
        raise InputError(f"input_ids has no token in row {empty_row}: leave out what is empty")
    if lengths_of_rows.get("attention_mask", text_lengths) != text_lengths:
        raise InputError("attention_mask must have one entry for each of input_ids in every row")
    if not has_mask and "attention_mask" not in padded_columns:
        positions = np.arange(max(text_lengths))
        is_token = positions < np.array(text_lengths)[:, None]
        padded_columns["attention_mask"] = is_token.astype(np.int64)
    return padded_columns
