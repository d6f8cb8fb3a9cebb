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
from leakbound._base.tables import ColumnKind, kinds_of, read_columns
from leakbound._base.text import settled
from leakbound._base.types import AnyArray, ArrayInput, Data, FloatArray, IntArray, Strings
from leakbound.attacks.synthetic.encoding import coordinates
from leakbound.errors import LeakboundError

MOST_BETS = 5_000
"""Pairs that classifiers bet on: scoring a model's examples should not wait for them."""
# Numbers that are looked at, and columns, at most and at least: of more columns some are drawn.
_NUMBERS = 4_000_000
_COLUMNS = 200
_FEWEST = 8
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


def of_given(values: ArrayInput | Features, order: ExampleOrder, seed: int) -> Features:
    """Read features of any form, in the order of the examples.

    An array is taken as it is, and so is a table of numbers, none missing. Columns of other tables
    become coordinates, as those of an audited model and of synthetic tables do. No membership is
    read. Those of a subgroup were read before, with all others.
    """
    if isinstance(values, Features):
        return values
    rows = order.rows_of(values, "features")
    table = table_of(values, "features")
    if table is None:
        found = Features(check_features(values, "features"), ())
        return found.taken(rows)
    codes = [name for name, column in table.items() if column.categorical]
    read = {name: settled([column], name, codes=name in codes)[0] for name, column in table.items()}
    if not codes and all(one.kind == "number" and not one.missing.any() for one in read.values()):
        columns = [one.values.astype(np.float64) for one in read.values()]
        found = Features(np.column_stack(columns), tuple(read))
    else:
        known = coordinates([table], codes, seed, synthetic=False)
        kinds: dict[str, ColumnKind] = {name: column.kind for name, column in read.items()}
        kinds |= dict.fromkeys(codes, "word")
        notes = (f"columns were read {kinds_of(kinds)}", *known.notes)
        found = Features(known.rows, known.sources, notes)
    return found.taken(rows)


def can_challenge() -> bool:
    """Return whether the packages are installed that a challenge of a split needs."""
    return all(map(find_spec, _PACKAGES))


def features_of(inputs: Data, seed: int) -> Features | None:
    """Return features of inputs, None where they have none or scikit-learn is not installed."""
    if not can_challenge():
        return None
    try:
        return _of_texts(inputs) or _of_table(inputs, seed)
    except (LeakboundError, TypeError, ValueError):
        return None  # inputs are the model's: what it takes may be anything


def of_batches(batches: list[Data], seed: int) -> Features | None:
    """Return features of the batches that a network was asked about.

    These are rows of numbers or, of texts, numbers of tokens; an empty list says there are none.
    """
    if not batches or len({one.shape[1:] for one in batches}) > 1:
        return None
    rows = np.concatenate(batches)
    if rows.ndim == 1 and (rows == rows[0]).all():
        return None
    if rows.ndim == 1:
        return Features(rows[:, None].astype(np.float64), ("tokens",))
    return features_of(rows, seed)


def _of_texts(inputs: Data) -> Features | None:
    """Return the lengths of texts."""
    if hasattr(inputs, "columns") or hasattr(inputs, "tocsc") or getattr(inputs, "ndim", 1) != 1:
        return None
    # No array: NumPy would give each text the room of the longest.
    texts = inputs
    if hasattr(inputs, "to_pylist"):
        texts = inputs.to_pylist()
    texts = [*texts]
    if not all(isinstance(text, str) for text in texts):
        return None
    lengths = [[len(text), len(text.split())] for text in texts]
    return Features(np.array(lengths, dtype=np.float64), ("characters", "words"))


def _of_table(inputs: Data, seed: int) -> Features | None:
    """Return coordinates of rows; of very many columns some, which chance draws."""
    columns = inputs
    if not hasattr(inputs, "columns"):
        columns = _columns(inputs, seed)
    if columns is None:
        return None
    table = read_columns(columns, "inputs")
    rows = next(iter(table.values())).missing.size
    table = {name: table[name] for name in _some(list(table), rows, seed)}
    found = coordinates([table], (), seed, synthetic=False)
    return Features(found.rows, found.sources)


def _columns(inputs: Data, seed: int) -> dict[str, AnyArray] | None:
    """Return columns of an array or of a sparse matrix, or some of very many, by their number."""
    sparse = hasattr(inputs, "tocsc")
    array: Data = inputs.tocsc() if sparse else array_of(inputs, "inputs", exact=True)
    fields: Strings = array.dtype.names or ()
    if len(fields) == 1:
        array = array[fields[0]]  # records of one field are an array of it
    if array.ndim != 2:
        return None
    rows, count = array.shape
    numbers = _some(list(range(count)), rows, seed)
    dense = array[:, numbers]
    if sparse:
        dense = dense.toarray()
    return dict(zip(map(str, numbers), dense.T, strict=True))


def _some(columns: list[T], rows: int, seed: int) -> list[T]:
    """Return columns, or as many of them as can be looked at."""
    most = min(_COLUMNS, max(_FEWEST, _NUMBERS // rows))
    if len(columns) <= most:
        return columns
    drawn = Purpose.SPLIT_COLUMNS.rng(seed).permutation(len(columns))[:most]
    return [columns[place] for place in np.sort(drawn).tolist()]
