"""Texts and lists of tokens for networks, as arrays padded to one length."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from leakbound._base.types import AnyArray, Data, Named
from leakbound.errors import InputError, InputTypeError

# Labels that torch's loss leaves out.
_IGNORED = -100
# A tokenizer with a larger limit has none.
_LONGEST = 1_000_000


def tokens_of(parts: Sequence[Data], tokenizer: Callable[..., Data] | None) -> list[Data]:
    """Return data of a network with texts and lists of tokens as arrays, all of one length.

    Parts may be lists of texts, of lists of tokens or of mappings with `input_ids`, or pairs of
    these lists and labels. What is anything else stays as it is.
    """
    found = [_columns(part, tokenizer) for part in parts]
    if not parts or any(one is None for one in found):
        return list(parts)
    columns = [one for one in found if one is not None]
    if any(one.keys() != columns[0].keys() for one in columns):
        listed = " and ".join(", ".join(one) for one in columns)
        raise InputError(f"both sets must have the same names, got {listed}")
    padded = {name: _padded([one[name] for one in columns], name) for name in columns[0]}
    lengths = {len(row) for one in columns for row in one["input_ids"]}
    if len(lengths) > 1 and "attention_mask" not in padded:
        masks = [[[1] * len(row) for row in one["input_ids"]] for one in columns]
        padded["attention_mask"] = _padded(masks, "attention_mask")
    return [
        {name: arrays[place] for name, arrays in padded.items()} for place in range(len(columns))
    ]


def _columns(part: Data, tokenizer: Callable[..., Data] | None) -> Named | None:
    """Return lists of tokens by name, and labels if there are any; None for data of other forms."""
    inputs = part
    labels = None
    if isinstance(part, tuple) and len(part) == 2:
        inputs, labels = part
    rows = _listed(inputs)
    if not rows:
        return None
    if all(isinstance(row, Mapping) and "input_ids" in row for row in rows):
        names = list(rows[0])
        columns = {name: [_plain(row.get(name), name) for row in rows] for name in names}
    elif all(isinstance(row, str) for row in rows):
        columns = _tokenised(rows, tokenizer)
    elif all(_is_tokens(row) for row in rows) and (labels is None or _is_ragged(rows)):
        columns = {"input_ids": [list(row) for row in rows]}
    else:
        return None
    if labels is not None:
        columns["labels"] = _listed(labels) or labels
    return columns


def _tokenised(texts: list[str], tokenizer: Callable[..., Data] | None) -> Named:
    """Return the tokens of texts."""
    if tokenizer is None:
        raise InputTypeError(
            f"it holds texts, such as {texts[0][:40]!r}, and a network takes tokens: pass its "
            'tokenizer, audit_model(..., tokenizer=AutoTokenizer.from_pretrained("NAME"))'
        )
    limited = getattr(tokenizer, "model_max_length", _LONGEST) < _LONGEST
    answer = tokenizer(texts, truncation=limited)
    if not isinstance(answer, Mapping) and not hasattr(answer, "keys"):
        raise InputTypeError(
            f"tokenizer must return a mapping with input_ids, got {type(answer).__name__}"
        )
    return {name: [_plain(row, name) for row in answer[name]] for name in answer.keys()}  # noqa: SIM118


def _listed(values: Data) -> list[Data]:
    """Return a list, or a column of texts, as a list; an empty one for other data."""
    if isinstance(values, list):
        return values
    if hasattr(values, "tolist") and getattr(values, "ndim", 0) == 1:
        listed: list[Data] = values.tolist()
        return listed
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    return []


def _plain(value: Data, name: str) -> Data:
    """Return a row of tokens as a list, and a single label as it is."""
    if value is None:
        raise InputError(f"some rows have no {name}: give it to all of them, or to none")
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def _is_tokens(row: Data) -> bool:
    if not isinstance(row, list | tuple) or not row:
        return False
    return all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in row)


def _is_ragged(rows: list[Any]) -> bool:
    return len({len(row) for row in rows}) > 1


def _padded(columns: Sequence[list[Data]], name: str) -> list[AnyArray]:
    """Return the rows of each set as an array, padded on the right to the longest of all."""
    rows = [row for column in columns for row in column]
    ends = np.cumsum([len(column) for column in columns])[:-1]
    if not all(isinstance(row, list | tuple) for row in rows):
        return np.split(np.asarray(rows), ends)
    longest = max(map(len, rows))
    filling = 0
    if name == "labels":
        filling = _IGNORED
    table = np.full((len(rows), longest), filling, dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return np.split(table, ends)
