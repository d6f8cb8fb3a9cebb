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
    for column_name, column_or_rows in data.items():
        if column_or_rows is None:
            continue
        ragged_rows = _ragged_token_rows(column_or_rows)
        if ragged_rows:
            ragged_columns[column_name] = ragged_rows
        else:
            plain_columns[column_name] = number_column(column_or_rows, column_name)
    if ragged_columns:
        plain_columns |= _padded_token_columns(
            ragged_columns, has_attention_mask="attention_mask" in plain_columns
        )
    return plain_columns


def tensor_of_column(array_part: Column) -> Tensor:
    """Return a part of a column as a tensor, in a type that torch computes with."""
    if isinstance(array_part, Tensor):
        return array_part
    dtype_of_part = array_part.dtype
    dtype_of_torch = dtype_of_part.newbyteorder("=")
    # Models take wide unsigned integers as little as torch does.
    if dtype_of_part.kind == "u" and dtype_of_part.itemsize > 1:
        dtype_of_torch = np.dtype(np.int64)
        if array_part.size and int(array_part.max()) > np.iinfo(np.int64).max:
            raise InputError("integers of data must be below 2^63")
    elif dtype_of_part.kind == "f" and dtype_of_part.itemsize > np.dtype(np.float64).itemsize:
        dtype_of_torch = np.dtype(np.float64)
    return torch.tensor(np.ascontiguousarray(array_part, dtype=dtype_of_torch))


def holds_whole_numbers(tensor: Tensor) -> bool:
    """Return whether a tensor holds integers or truth values."""
    return not tensor.is_floating_point() and not tensor.is_complex()


def check_dense_tensor(column_values: object, column_name: str) -> None:
    """Raise for tensors whose rows are not numbers at places: sparse and nested ones."""
    if not isinstance(column_values, Tensor):
        return
    tensor_layout = str(column_values.layout)
    if column_values.is_nested:
        tensor_layout = "nested"
    if tensor_layout != str(torch.strided):
        raise InputTypeError(
            f"{column_name} must be a dense tensor, got a {tensor_layout} one: pass to_dense()"
        )


def collated_rows(batch_rows: list[Any]) -> object:
    """Return a batch of rows, as torch makes them; tokens of several lengths are padded."""
    first_row = batch_rows[0]
    if not isinstance(first_row, Mapping) or "input_ids" not in first_row:
        return default_collate(batch_rows)
    collated_columns: dict[str, object] = {}
    for column_name, value_of_first_row in first_row.items():
        if value_of_first_row is None:
            continue
        values_of_rows = [batch_row[column_name] for batch_row in batch_rows]
        collated_columns[column_name] = values_of_rows
        if all(isinstance(value_of_row, Tensor) for value_of_row in values_of_rows):
            shapes_of_rows = {value_of_row.shape for value_of_row in values_of_rows}
            if len(shapes_of_rows) == 1:
                collated_columns[column_name] = torch.stack(values_of_rows)
    return columns_of(collated_columns)


def number_column(column_values: object, column_name: str) -> Column:
    """Return numbers with a row for each example."""
    if isinstance(column_values, Tensor):
        check_dense_tensor(column_values, column_name)
        return column_values
    if "numpy.ma" in sys.modules and np.ma.is_masked(column_values):
        raise InputTypeError(f"{column_name} has masked entries; drop them first")
    try:
        array_of_numbers = np.asarray(column_values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{column_name} cannot be read as an array, {error}; rows of tokens of several lengths "
            "are padded in a mapping with input_ids"
        ) from error
    if array_of_numbers.dtype.kind not in "biuf":
        raise InputTypeError(
            f"arrays of data must hold numbers, got dtype {array_of_numbers.dtype} in {column_name}"
        )
    return array_of_numbers


def _ragged_token_rows(column_values: object) -> list[AnyArray]:
    """Return rows of integers one by one, if that is what they are and NumPy does not see it."""
    column_dtype = getattr(column_values, "dtype", None)
    is_plain_array = isinstance(column_values, np.ndarray) and column_values.dtype != object
    if isinstance(column_values, Tensor) or is_plain_array or column_dtype in (int, float, bool):
        return []
    try:
        row_arrays = list(map(np.asarray, _rows_of_column(column_values)))
    except (TypeError, ValueError, RuntimeError):
        return []
    for row_array in row_arrays:
        is_integer = row_array.dtype.kind in "biu" or not row_array.size
        if row_array.ndim != 1 or not is_integer:
            return []
    return row_arrays


def _rows_of_column(column_values: object) -> Sequence[object]:
    """Return rows as a list, whose elements are not objects of Arrow."""
    arrow_list_method: Callable[[], list[object]] | None = getattr(column_values, "to_pylist", None)
    if arrow_list_method is not None:
        return arrow_list_method()
    if isinstance(column_values, Iterable):
        return list(column_values)
    raise TypeError


def _padded_token_columns(
    ragged_columns: dict[str, list[AnyArray]], *, has_attention_mask: bool
) -> dict[str, AnyArray]:
    """Pad rows of tokens on the right, and say in an attention mask where they end."""
    lengths_of_rows: dict[str, list[int]] = {}
    padded_columns: dict[str, AnyArray] = {}
    for column_name, rows_of_tokens in ragged_columns.items():
        lengths_of_column = [len(row_of_tokens) for row_of_tokens in rows_of_tokens]
        padding_value = 0
        if column_name == "labels":
            padding_value = IGNORED
        padded_table = np.full(
            (len(rows_of_tokens), max(lengths_of_column)), padding_value, dtype=np.int64
        )
        for padded_row, unpadded_row in zip(padded_table, rows_of_tokens, strict=True):
            padded_row[: len(unpadded_row)] = unpadded_row
        lengths_of_rows[column_name] = lengths_of_column
        padded_columns[column_name] = padded_table
    lengths_of_texts = lengths_of_rows.get("input_ids")
    if lengths_of_texts is None or len(set(lengths_of_texts)) == 1:
        return padded_columns
    if 0 in lengths_of_texts:
        empty_row = lengths_of_texts.index(0)
        raise InputError(f"input_ids has no token in row {empty_row}: leave out what is empty")
    if lengths_of_rows.get("attention_mask", lengths_of_texts) != lengths_of_texts:
        raise InputError("attention_mask must have one entry for each of input_ids in every row")
    if not has_attention_mask and "attention_mask" not in padded_columns:
        token_positions = np.arange(max(lengths_of_texts))
        is_token_of_text = token_positions < np.array(lengths_of_texts)[:, None]
        padded_columns["attention_mask"] = is_token_of_text.astype(np.int64)
    return padded_columns
