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
    plain_columns: dict[str, Column] = {}
    ragged_columns: dict[str, list[AnyArray]] = {}
    for column_name, column_values in data.items():
        if column_values is None:
            continue
        token_rows = _token_rows(column_values)
        if token_rows:
            ragged_columns[column_name] = token_rows
        else:
            plain_columns[column_name] = number_column(column_values, column_name)
    if ragged_columns:
        plain_columns |= _padded_columns(ragged_columns, has_mask="attention_mask" in plain_columns)
    return plain_columns


def column_tensor(array_part: Column) -> Tensor:
    """Return a part of a column as a tensor, in a type that torch computes with."""
    if isinstance(array_part, Tensor):
        return array_part
    array_dtype = array_part.dtype
    supported_dtype = array_dtype.newbyteorder("=")
    if (
        array_dtype.kind == "u" and array_dtype.itemsize > 1
    ):  # which models take as little as torch does
        supported_dtype = np.dtype(np.int64)
        if array_part.size and int(array_part.max()) > np.iinfo(np.int64).max:
            raise InputError("integers of data must be below 2^63")
    elif array_dtype.kind == "f" and array_dtype.itemsize > np.dtype(np.float64).itemsize:
        supported_dtype = np.dtype(np.float64)
    return torch.tensor(np.ascontiguousarray(array_part, dtype=supported_dtype))


def check_dense(column_values: object, column_name: str) -> None:
    """Raise for tensors whose rows are not numbers at places: sparse and nested ones."""
    if not isinstance(column_values, Tensor):
        return
    layout_name = str(column_values.layout)
    if column_values.is_nested:
        layout_name = "nested"
    if column_values.is_nested or column_values.layout != torch.strided:
        raise InputTypeError(
            f"{column_name} must be a dense tensor, got a {layout_name} one: pass to_dense()"
        )


def collate_rows(batch_rows: list[Any]) -> object:
    """Return a batch of rows, as torch makes them; tokens of several lengths are padded."""
    first_row = batch_rows[0]
    if not isinstance(first_row, Mapping) or "input_ids" not in first_row:
        return default_collate(batch_rows)
    collated_columns: dict[str, object] = {}
    for column_name, first_value in first_row.items():
        if first_value is None:
            continue
        values_of_rows = [batch_row[column_name] for batch_row in batch_rows]
        collated_columns[column_name] = values_of_rows
        if all(isinstance(row_value, Tensor) for row_value in values_of_rows):
            row_shapes = {row_value.shape for row_value in values_of_rows}
            if len(row_shapes) == 1:
                collated_columns[column_name] = torch.stack(values_of_rows)
    return columns_of(collated_columns)


def number_column(column_values: object, column_name: str) -> Column:
    """Return numbers with a row for each example."""
    if isinstance(column_values, Tensor):
        check_dense(column_values, column_name)
        return column_values
    if "numpy.ma" in sys.modules and np.ma.is_masked(column_values):
        raise InputTypeError(f"{column_name} has masked entries; drop them first")
    try:
        number_array = np.asarray(column_values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{column_name} cannot be read as an array, {error}; rows of tokens of several lengths "
            "are padded in a mapping with input_ids"
        ) from error
    if number_array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"arrays of data must hold numbers, got dtype {number_array.dtype} in {column_name}"
        )
    return number_array


def _token_rows(column_values: object) -> list[AnyArray]:
    """Return rows of integers one by one, if that is what they are and NumPy does not see it."""
    if isinstance(column_values, Tensor) or getattr(column_values, "dtype", None) in (
        int,
        float,
        bool,
    ):
        return []
    if isinstance(column_values, np.ndarray) and column_values.dtype != object:
        return []
    try:
        row_arrays = [np.asarray(row_array) for row_array in _row_list(column_values)]
    except (TypeError, ValueError, RuntimeError):
        return []
    for row_array in row_arrays:
        is_integer = row_array.dtype.kind in "biu" or not row_array.size
        if row_array.ndim != 1 or not is_integer:
            return []
    return row_arrays


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
    for column_name, token_rows in ragged_columns.items():
        row_lengths = [len(row) for row in token_rows]
        padding_value = 0
        if column_name == "labels":
            padding_value = IGNORED
        padded_table = np.full((len(token_rows), max(row_lengths)), padding_value, dtype=np.int64)
        for padded_row, token_row in zip(padded_table, token_rows, strict=True):
            padded_row[: len(token_row)] = token_row
        lengths_of_rows[column_name] = row_lengths
        padded_columns[column_name] = padded_table
    text_lengths = lengths_of_rows.get("input_ids")
    if text_lengths is None or len(set(text_lengths)) == 1:
        return padded_columns
    if 0 in text_lengths:
        empty_row = text_lengths.index(0)
        raise InputError(f"input_ids has no token in row {empty_row}: leave out what is empty")
    if lengths_of_rows.get("attention_mask", text_lengths) != text_lengths:
        raise InputError("attention_mask must have one entry for each of input_ids in every row")
    if not has_mask and "attention_mask" not in padded_columns:
        token_positions = np.arange(max(text_lengths))
        is_token = token_positions < np.array(text_lengths)[:, None]
        padded_columns["attention_mask"] = is_token.astype(np.int64)
    return padded_columns
