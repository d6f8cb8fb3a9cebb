"""What a model was given: features that challenge a split, texts and tokens as padded arrays.

Features of an audited model are its inputs. Where these are anything else, such as pictures, there
are none.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple, Self, TypeVar

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_features
from leakbound._base.features import table_of
from leakbound._base.reading import array_of
from leakbound._base.streams import Purpose
from leakbound._base.tables import Column, ColumnKind, kinds_of, read_columns
from leakbound._base.text import settled
from leakbound._base.types import AnyArray, ArrayInput, Data, FloatArray, IntArray, Named, Strings
from leakbound.attacks.synthetic.encoding import coordinates
from leakbound.errors import InputError, InputTypeError, LeakboundError

MOST_BETS = 5_000
"""Pairs that classifiers bet on: scoring a model's examples should not wait for them."""
# Numbers that are looked at, and columns, at most and at least: of more columns some are drawn.
_MOST_NUMBERS = 4_000_000
_MOST_COLUMNS = 200
_FEWEST_COLUMNS = 8
_PACKAGES = ("sklearn", "scipy", "threadpoolctl")
T = TypeVar("T")


class Features(NamedTuple):
    """One row for each example, the name of each column, and what a reader should know of them."""

    rows: FloatArray
    names: Strings
    notes: Strings = ()

    def taken(self, rows: IntArray | None) -> Self:
        """Return some rows in an order; all as they are if None."""
        if rows is None:
            return self
        return self._replace(rows=self.rows[rows])


def features_in_order(values: ArrayInput | Features, order: ExampleOrder, seed: int) -> Features:
    """Read features of any form, in the order of the examples.

    An array is taken as it is, and so is a table of numbers, none missing. Columns of other tables
    become coordinates, as those of an audited model and of synthetic tables do. No membership is
    read. Those of a subgroup were read before, with all others.
    """
    if isinstance(values, Features):
        return values
    rows_of_examples = order.rows_of(values, "features")
    feature_columns = table_of(values, "features")
    if feature_columns is None:
        features = Features(check_features(values, "features"), ())
    else:
        features = _features_of_columns(feature_columns, seed)
    return features.taken(rows_of_examples)


def _features_of_columns(feature_columns: dict[str, Column], seed: int) -> Features:
    """Return a table of numbers as it is, and coordinates of columns of any other."""
    categorical_names = [name for name, column in feature_columns.items() if column.categorical]
    settled_columns = dict[str, Column]()
    for name, column in feature_columns.items():
        (settled_columns[name],) = settled([column], name, codes=name in categorical_names)
    are_numbers = not categorical_names and all(
        column.kind == "number" and not column.missing.any() for column in settled_columns.values()
    )
    if are_numbers:
        number_columns = [column.values.astype(np.float64) for column in settled_columns.values()]
        return Features(np.column_stack(number_columns), tuple(settled_columns))
    encoded_columns = coordinates([feature_columns], categorical_names, seed, synthetic=False)
    kinds_of_columns: dict[str, ColumnKind] = {
        name: column.kind for name, column in settled_columns.items()
    }
    kinds_of_columns |= dict.fromkeys(categorical_names, "word")
    notes = (f"columns were read {kinds_of(kinds_of_columns)}", *encoded_columns.notes)
    return Features(encoded_columns.rows, encoded_columns.sources, notes)


def can_challenge() -> bool:
    """Return whether the packages are installed that a challenge of a split needs."""
    return all(map(find_spec, _PACKAGES))


def features_of_inputs(inputs: Data, seed: int) -> Features | None:
    """Return features of inputs, None where they have none or scikit-learn is not installed."""
    if not can_challenge():
        return None
    try:
        return _lengths_of_texts(inputs) or _coordinates_of_rows(inputs, seed)
    except (LeakboundError, TypeError, ValueError):
        return None  # inputs are the model's: what it takes may be anything


def features_of_batches(batches: list[Data], seed: int) -> Features | None:
    """Return features of the batches that a network was asked about.

    These are rows of numbers or, of texts, numbers of tokens; an empty list says there are none.
    """
    row_shapes = {batch.shape[1:] for batch in batches}
    if len(row_shapes) != 1:
        return None
    inputs_of_batches = np.concatenate(batches)
    if inputs_of_batches.ndim != 1:
        return features_of_inputs(inputs_of_batches, seed)
    if (inputs_of_batches == inputs_of_batches[0]).all():
        return None
    token_counts = inputs_of_batches[:, None].astype(np.float64)
    return Features(token_counts, ("tokens",))


def _lengths_of_texts(inputs: Data) -> Features | None:
    """Return the numbers of characters and of words of texts; None for other inputs."""
    is_table = hasattr(inputs, "columns") or hasattr(inputs, "tocsc")
    if is_table or getattr(inputs, "ndim", 1) != 1:
        return None
    # No array: NumPy would give each text the room of the longest.
    texts = inputs
    if hasattr(inputs, "to_pylist"):
        texts = inputs.to_pylist()
    texts = [*texts]
    if not all(isinstance(text, str) for text in texts):
        return None
    lengths_of_texts = [[len(text), len(text.split())] for text in texts]
    return Features(np.array(lengths_of_texts, dtype=np.float64), ("characters", "words"))


def _coordinates_of_rows(inputs: Data, seed: int) -> Features | None:
    """Return coordinates of rows; of very many columns some, which chance draws."""
    input_columns = inputs
    if not hasattr(inputs, "columns"):
        input_columns = _columns_of_matrix(inputs, seed)
    if input_columns is None:
        return None
    columns_by_name = read_columns(input_columns, "inputs")
    first_column = next(iter(columns_by_name.values()))
    drawn_names = _drawn_columns(
        list(columns_by_name), number_of_rows=first_column.missing.size, seed=seed
    )
    drawn_table = {name: columns_by_name[name] for name in drawn_names}
    encoded_columns = coordinates([drawn_table], (), seed, synthetic=False)
    return Features(encoded_columns.rows, encoded_columns.sources)


def _columns_of_matrix(inputs: Data, seed: int) -> dict[str, AnyArray] | None:
    """Return columns of an array or of a sparse matrix, or some of very many, by their number."""
    is_sparse = hasattr(inputs, "tocsc")
    if is_sparse:
        input_matrix: Data = inputs.tocsc()
    else:
        input_matrix = array_of(inputs, "inputs", exact=True)
    field_names: Strings = input_matrix.dtype.names or ()
    if len(field_names) == 1:
        input_matrix = input_matrix[field_names[0]]  # records of one field are an array of it
    if input_matrix.ndim != 2:
        return None
    number_of_rows, number_of_columns = input_matrix.shape
    drawn_columns = _drawn_columns(list(range(number_of_columns)), number_of_rows, seed=seed)
    dense_matrix = input_matrix[:, drawn_columns]
    if is_sparse:
        dense_matrix = dense_matrix.toarray()
    return dict(zip(map(str, drawn_columns), dense_matrix.T, strict=True))


def _drawn_columns(all_columns: list[T], number_of_rows: int, seed: int) -> list[T]:
    """Return columns in their order, or as many of them as can be looked at, drawn at random."""
    most_columns = min(_MOST_COLUMNS, max(_FEWEST_COLUMNS, _MOST_NUMBERS // number_of_rows))
    if len(all_columns) <= most_columns:
        return all_columns
    shuffled_positions = Purpose.SPLIT_COLUMNS.rng(seed).permutation(len(all_columns))
    drawn_positions = np.sort(shuffled_positions[:most_columns])
    return [all_columns[position] for position in drawn_positions.tolist()]


# Labels that torch's loss leaves out.
_IGNORED_LABEL = -100
# A tokenizer with a larger limit has none.
_LONGEST_TEXT = 1_000_000


def tokens_of(data_sets: Sequence[Data], tokenizer: Callable[..., Data] | None) -> list[Data]:
    """Return data of a network with texts and lists of tokens as arrays, all of one length.

    Sets may be lists of texts, of lists of tokens or of mappings with `input_ids`, or pairs of
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


def _have_several_lengths(token_rows: Sequence[Data]) -> bool:
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
