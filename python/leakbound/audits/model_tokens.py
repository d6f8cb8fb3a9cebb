"""Texts and lists of tokens for networks, as arrays padded to one length."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from leakbound._base.types import AnyArray, Data, Named
from leakbound.errors import InputError, InputTypeError

# Labels that torch's loss leaves out.
_IGNORED_LABEL = -100
# A tokenizer with a larger limit has none.
_LONGEST_TEXT = 1_000_000


def tokens_of(data_sets: Sequence[Data], tokenizer: Callable[..., Data] | None) -> list[Data]:
    """Return data of a network with texts and lists of tokens as arrays, all of one length.

    Parts may be lists of texts, of lists of tokens or of mappings with `input_ids`, or pairs of
    these lists and labels. What is anything else stays as it is.
    """
    columns_or_none = [_token_columns_of_set(data_set, tokenizer) for data_set in data_sets]
    columns_of_sets = [columns for columns in columns_or_none if columns is not None]
    if not data_sets or len(columns_of_sets) < len(data_sets):
        return list(data_sets)
    names = columns_of_sets[0].keys()
    if any(columns.keys() != names for columns in columns_of_sets):
        names_of_sets = " and ".join(", ".join(columns) for columns in columns_of_sets)
        raise InputError(f"both sets must have the same names, got {names_of_sets}")
    arrays_by_name = dict[str, list[AnyArray]]()
    for name in names:
        columns_of_name = [columns[name] for columns in columns_of_sets]
        arrays_by_name[name] = _padded_token_arrays(columns_of_name, name=name)
    token_rows = [columns["input_ids"] for columns in columns_of_sets]
    is_padded = _have_several_lengths(
        [token_row for rows_of_set in token_rows for token_row in rows_of_set]
    )
    if is_padded and "attention_mask" not in arrays_by_name:
        attention_masks = [
            [[1] * len(token_row) for token_row in rows_of_set] for rows_of_set in token_rows
        ]
        arrays_by_name["attention_mask"] = _padded_token_arrays(
            attention_masks, name="attention_mask"
        )
    return [
        {name: arrays_of_sets[set_number] for name, arrays_of_sets in arrays_by_name.items()}
        for set_number in range(len(columns_of_sets))
    ]


def _token_columns_of_set(data_set: Data, tokenizer: Callable[..., Data] | None) -> Named | None:
    """Return lists of tokens by name, and labels if there are any; None for data of other forms."""
    inputs = data_set
    labels = None
    if isinstance(data_set, tuple) and len(data_set) == 2:
        inputs, labels = data_set
    input_rows = _listed_values(inputs)
    if not input_rows:
        return None
    token_columns: Named = {}
    if all(isinstance(input_row, Mapping) and "input_ids" in input_row for input_row in input_rows):
        for name in input_rows[0]:
            token_columns[name] = [
                _listed_tokens(input_row.get(name), name) for input_row in input_rows
            ]
    elif all(isinstance(input_row, str) for input_row in input_rows):
        token_columns = _columns_of_tokenised_texts(input_rows, tokenizer)
    elif all(_is_list_of_tokens(input_row) for input_row in input_rows) and (
        labels is None or _have_several_lengths(input_rows)
    ):
        token_columns["input_ids"] = [list(input_row) for input_row in input_rows]
    else:
        return None
    if labels is not None:
        token_columns["labels"] = _listed_values(labels) or labels
    return token_columns


def _columns_of_tokenised_texts(texts: list[str], tokenizer: Callable[..., Data] | None) -> Named:
    """Return the tokens of texts."""
    if tokenizer is None:
        raise InputTypeError(
            f"it holds texts, such as {texts[0][:40]!r}, and a network takes tokens: pass its "
            'tokenizer, audit_model(..., tokenizer=AutoTokenizer.from_pretrained("NAME"))'
        )
    longest_text = getattr(tokenizer, "model_max_length", _LONGEST_TEXT)
    encoding = tokenizer(texts, truncation=longest_text < _LONGEST_TEXT)
    if not isinstance(encoding, Mapping) and not hasattr(encoding, "keys"):
        raise InputTypeError(
            f"tokenizer must return a mapping with input_ids, got {type(encoding).__name__}"
        )
    token_columns: Named = {}
    for name in encoding.keys():  # noqa: SIM118 (some encodings only have keys)
        token_columns[name] = [_listed_tokens(tokens, name) for tokens in encoding[name]]
    return token_columns


def _listed_values(values: Data) -> list[Data]:
    """Return a list, or a column of texts, as a list; an empty one for other data."""
    if isinstance(values, list):
        return values
    if hasattr(values, "tolist") and getattr(values, "ndim", 0) == 1:
        listed_column: list[Data] = values.tolist()
        return listed_column
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return []


def _listed_tokens(tokens: Data, name: str) -> Data:
    """Return a row of tokens as a list, and a single label as it is."""
    if tokens is None:
        raise InputError(f"some rows have no {name}: give it to all of them, or to none")
    if hasattr(tokens, "tolist"):
        return tokens.tolist()
    return tokens


def _is_list_of_tokens(input_row: Data) -> bool:
    if not isinstance(input_row, list | tuple) or not input_row:
        return False
    return all(
        isinstance(token, int | np.integer) and not isinstance(token, bool) for token in input_row
    )


def _have_several_lengths(token_rows: list[Any]) -> bool:
    """Return whether rows have different lengths."""
    row_lengths = {len(token_row) for token_row in token_rows}
    return len(row_lengths) > 1


def _padded_token_arrays(columns_of_sets: Sequence[list[Data]], name: str) -> list[AnyArray]:
    """Return the rows of each set as an array, padded on the right to the longest of all."""
    token_rows = [token_row for column_of_set in columns_of_sets for token_row in column_of_set]
    set_sizes = [len(column_of_set) for column_of_set in columns_of_sets]
    set_ends = np.cumsum(set_sizes)[:-1]
    if not all(isinstance(token_row, list | tuple) for token_row in token_rows):
        return np.split(np.asarray(token_rows), set_ends)
    longest_length = max(len(token_row) for token_row in token_rows)
    padding = 0
    if name == "labels":
        padding = _IGNORED_LABEL
    padded_rows = np.full((len(token_rows), longest_length), padding, dtype=np.int64)
    for row_number, token_row in enumerate(token_rows):
        padded_rows[row_number, : len(token_row)] = token_row
    return np.split(padded_rows, set_ends)
