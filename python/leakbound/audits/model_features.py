"""Features that challenge a random split: rows of a table, or lengths of texts.

Those of an audited model are its inputs. Where these are anything else, such as pictures, there are
none.
"""

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
from leakbound._base.types import AnyArray, ArrayInput, Data, FloatArray, IntArray, Strings
from leakbound.attacks.synthetic.encoding import coordinates
from leakbound.errors import LeakboundError

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
