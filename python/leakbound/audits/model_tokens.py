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


def tokens_of(parts: Sequence[Data], tokenizer: Callable[..., Data] | None) -> list[Data]:
    """Return data of a network with texts and lists of tokens as arrays, all of one length.

    Parts may be lists of texts, of lists of tokens or of mappings with `input_ids`, or pairs of
    these lists and labels. What is anything else stays as it is.
    """
    columns_or_none = [_token_columns(part, tokenizer) for part in parts]
    columns_of_sets = [columns for columns in columns_or_none if columns is not None]
    if not parts or len(columns_of_sets) < len(parts):
        return list(parts)
    names = columns_of_sets[0].keys()
    if any(columns.keys() != names for columns in columns_of_sets):
        names_of_sets = " and ".join(", ".join(columns) for columns in columns_of_sets)
        raise InputError(f"both sets must have the same names, got {names_of_sets}")
    arrays_by_name = dict[str, list[AnyArray]]()
    for name in names:
        columns_of_name = [columns[name] for columns in columns_of_sets]
        arrays_by_name[name] = _padded_arrays(columns_of_name, name=name)
    token_rows = [columns["input_ids"] for columns in columns_of_sets]
    is_padded = _is_ragged([row for rows in token_rows for row in rows])
    if is_padded and "attention_mask" not in arrays_by_name:
        attention_masks = [[[1] * len(row) for row in rows] for rows in token_rows]
        arrays_by_name["attention_mask"] = _padded_arrays(attention_masks, name="attention_mask")
    return [
        {name: arrays_of_sets[set_number] for name, arrays_of_sets in arrays_by_name.items()}
        for set_number in range(len(columns_of_sets))
    ]


def _token_columns(part: Data, tokenizer: Callable[..., Data] | None) -> Named | None:
    """Return lists of tokens by name, and labels if there are any; None for data of other forms."""
    inputs = part
    labels = None
    if isinstance(part, tuple) and len(part) == 2:
        inputs, labels = part
    rows = _as_list(inputs)
    if not rows:
        return None
    columns: Named = {}
    if all(isinstance(row, Mapping) and "input_ids" in row for row in rows):
        for name in rows[0]:
            columns[name] = [_plain_tokens(row.get(name), name) for row in rows]
    elif all(isinstance(row, str) for row in rows):
        columns = _tokenised(rows, tokenizer)
    elif all(_is_list_of_tokens(row) for row in rows) and (labels is None or _is_ragged(rows)):
        columns["input_ids"] = [list(row) for row in rows]
    else:
        return None
    if labels is not None:
        columns["labels"] = _as_list(labels) or labels
    return columns


def _tokenised(texts: list[str], tokenizer: Callable[..., Data] | None) -> Named:
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
    columns: Named = {}
    for name in encoding.keys():  # noqa: SIM118 (some encodings only have keys)
        columns[name] = [_plain_tokens(tokens, name) for tokens in encoding[name]]
    return columns


def _as_list(values: Data) -> list[Data]:
    """Return a list, or a column of texts, as a list; an empty one for other data."""
    if isinstance(values, list):
        return values
    if hasattr(values, "tolist") and getattr(values, "ndim", 0) == 1:
        listed: list[Data] = values.tolist()
        return listed
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return []


def _plain_tokens(tokens: Data, name: str) -> Data:
    """Return a row of tokens as a list, and a single label as it is."""
    if tokens is None:
        raise InputError(f"some rows have no {name}: give it to all of them, or to none")
    if hasattr(tokens, "tolist"):
        return tokens.tolist()
    return tokens


def _is_list_of_tokens(row: Data) -> bool:
    if not isinstance(row, list | tuple) or not row:
        return False
    return all(isinstance(token, int | np.integer) and not isinstance(token, bool) for token in row)


def _is_ragged(rows: list[Any]) -> bool:
    """Return whether rows have different lengths."""
    lengths = {len(row) for row in rows}
    return len(lengths) > 1


def _padded_arrays(columns: Sequence[list[Data]], name: str) -> list[AnyArray]:
    """Return the rows of each set as an array, padded on the right to the longest of all."""
    rows = [row for column in columns for row in column]
    set_sizes = [len(column) for column in columns]
    set_ends = np.cumsum(set_sizes)[:-1]
    if not all(isinstance(row, list | tuple) for row in rows):
        return np.split(np.asarray(rows), set_ends)
    longest_row = max(len(row) for row in rows)
    padding = 0
    if name == "labels":
        padding = _IGNORED_LABEL
    padded_rows = np.full((len(rows), longest_row), padding, dtype=np.int64)
    for number, row in enumerate(rows):
        padded_rows[number, : len(row)] = row
    return np.split(padded_rows, set_ends)
