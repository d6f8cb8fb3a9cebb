"""Whatever holds inputs, classes and features: the result of plain NumPy, or an error of ours."""

from collections import deque
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import leakbound as lb
from leakbound._base.checks import check_features
from leakbound.errors import LeakboundError

pytestmark = pytest.mark.usefixtures("few_trees")

HALF = 20
CODES = np.arange(HALF) % 3
INPUTS = np.random.default_rng(0).normal(size=(2 * HALF, 2))

# Three values of each type.
VALUES: dict[str, np.ndarray] = {
    "bool": np.array([False, True, True]),
    "int8": np.array([1, 2, 3], np.int8),
    "uint8": np.array([1, 2, 3], np.uint8),
    "int16": np.array([1, 2, 3], np.int16),
    "int64": np.array([2**60, 2**60 + 1, 3]),
    "uint64": np.array([2**63, 2**63 + 1, 3], np.uint64),
    "huge": np.array([2**70, 2**70 + 1, 3], object),
    "float16": np.array([0, 1, 2], np.float16),
    "float32": np.array([0.1, 1, 2], np.float32),
    "float64": np.array([0.1, 1, 2]),
    "longdouble": np.array([0.1, 1, 2], np.longdouble),
    "complex": np.array([1j, 1, 2]),
    "text": np.array(["a", "b", "cc"]),
    "bytes": np.array([b"a", b"b", b"cc"]),
    "mixed": np.array([1, "1", 2.5], object),
    "datetime64": np.array(["2020-01-01", "2020-01-02", "2021-01-01"], "M8[ns]"),
    "timedelta": np.array([1, 2, 3], "m8[s]"),
    "decimal": np.array([Decimal("1.1"), Decimal(2), Decimal(3)], object),
    "date": np.array([date(2020, 1, 1), date(2020, 1, 2), date(2021, 1, 1)], object),
    "None": np.array(["a", None, "b"], object),
    "NaN": np.array([1.0, np.nan, 2.0]),
    "NA": np.array([1, pd.NA, 2], object),
    "NaT": np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[ns]"),
    "signalling NaN": np.array([Decimal(1), Decimal("sNaN"), Decimal(2)], object),
}
MISSING = {"None", "NaN", "NA", "NaT", "signalling NaN"}


class Items(Dataset[Any]):
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Any:
        return self.values[row]


def table(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


def masked(values: np.ndarray) -> Any:
    mask = np.zeros(values.shape, bool)
    mask[3] = True
    return np.ma.array(values, mask=mask)


def columns(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"c{number}": column for number, column in enumerate(table(values).T)}


def once(values: np.ndarray) -> Iterator[Any]:
    yield from values.tolist()


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda v: v,
    "list": lambda v: v.tolist(),
    "list of scalars": list,
    "tuple": lambda v: tuple(v.tolist()),
    "deque": lambda v: deque(v.tolist()),
    "rows": lambda v: table(v).tolist(),
    "column": table,
    "columns first": np.asfortranarray,
    "strided": lambda v: np.repeat(v, 2, axis=0)[::2],
    "scalar": lambda v: np.array(v.ravel()[0]),
    "objects": lambda v: v.astype(object),
    "unmasked": np.ma.array,
    "masked": masked,
    "matrix": lambda v: np.matrix(table(v)),
    "records": lambda v: np.rec.fromarrays([v]),
    "memory": lambda v: v.data,
    "pandas": lambda v: pd.Series(v) if v.ndim == 1 else pd.DataFrame(v),
    "frame": pd.DataFrame,
    "index": lambda v: pd.DataFrame(v, index=[object() for _ in v]),
    "nullable": lambda v: pd.DataFrame(v).convert_dtypes(),
    "arrow in pandas": lambda v: pd.DataFrame(v).convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda v: pd.DataFrame(v).astype("category"),
    "polars": lambda v: pl.DataFrame(columns(v)),
    "polars column": lambda v: pl.Series(v.tolist()),
    "lazy": lambda v: pl.DataFrame(columns(v)).lazy(),
    "arrow": pa.array,
    "chunks": lambda v: pa.chunked_array([pa.array(v[:7]), pa.array(v[7:])]),
    "arrow table": lambda v: pa.table(columns(v)),
    "batch": lambda v: pa.record_batch(columns(v)),
    "arrow scalars": lambda v: list(pa.array(v)),
    "tensor": torch.tensor,
    "bfloat16": lambda v: torch.tensor(v).bfloat16(),
    "half": lambda v: torch.tensor(v).half(),
    "gradient": lambda v: torch.tensor(v).double().requires_grad_(),
    "sparse tensor": lambda v: torch.tensor(v).to_sparse(),
    "sparse": lambda v: sparse.csr_array(table(v)),
    "coordinates": sparse.coo_array,
    "sparse matrix": lambda v: sparse.csc_matrix(table(v)),
    "tensor dataset": lambda v: TensorDataset(torch.tensor(v)),
    "dataset": Items,
    "subset": lambda v: Subset(Items(v), range(len(v))),
    "loader": lambda v: DataLoader(TensorDataset(torch.tensor(v))),
    "mapping": lambda v: {"c": v},
    "values of a mapping": lambda v: dict(enumerate(v.tolist())).values(),
    "generator": once,
    "set": lambda v: set(range(len(v))),
    "ragged": lambda v: [[one] * (row % 2 + 1) for row, one in enumerate(v.tolist())],
    "word": lambda v: "a" * len(v),
    "nothing": lambda _: None,
}
# What holds other values than it was given: those that it holds count.
ROUNDED: dict[str, Callable[[Any], np.ndarray]] = {
    "bfloat16": lambda tensor: tensor.float().numpy(),
    "half": lambda tensor: tensor.numpy(),
    "gradient": lambda tensor: tensor.detach().numpy(),
}


def made(values: np.ndarray, container: str) -> Any:
    """Return values in a container; None where it cannot hold them."""
    try:
        return CONTAINERS[container](values)
    except BaseException as error:  # of whatever package the container is: polars' panics are none
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None


def outcome(audited: Callable[[Any, Any], Any], parts: Any) -> Any:
    """Return a result, or the error of ours."""
    try:
        return audited(*parts)
    except LeakboundError as error:
        assert str(error)  # noqa: PT017 (any of ours will do)
        return error


def check_all(audited: Callable[[Any, Any], Any], values: np.ndarray, *, never: bool) -> int:
    """Compare every container with plain NumPy; return how many gave its result."""
    halves = np.split(values, 2)
    plain, equal = outcome(audited, halves), 0
    for container in CONTAINERS:
        forms = [made(half, container) for half in halves]
        if forms[0] is None and container != "nothing":
            continue
        try:
            found = outcome(audited, forms)
            if container in ROUNDED:
                expected = outcome(audited, [ROUNDED[container](form) for form in forms])
            else:
                expected = plain
        except Exception as error:
            error.add_note(f"in a container of kind {container!r}")
            raise
        if isinstance(found, LeakboundError):
            continue
        assert not never, container
        if not isinstance(expected, LeakboundError):
            assert found == expected, container
            equal += 1
    return equal


class Model:
    """Probabilities of classes from inputs, in whatever numbers hold them."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes_ = classes

    def predict_proba(self, rows: Any) -> np.ndarray:
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        values = np.asarray(dense).astype(float)
        z = np.column_stack([values[:, 0], values[:, -1], values.sum(1)])
        chances = np.exp(z - z.max(1, keepdims=True))
        return np.asarray(chances / chances.sum(1, keepdims=True))


def test_most_containers_are_read() -> None:
    """So that errors of ours are no way to pass all of this."""
    train, test = np.split(INPUTS, 2)
    model = Model(np.arange(3))

    def classes(one: Any, other: Any) -> Any:
        return lb.audit_model(model, train=(train, one), test=(test, other), seed=0)

    def inputs(one: Any, other: Any) -> Any:
        return lb.audit_model(model, train=(one, CODES), test=(other, CODES), seed=0)

    assert check_all(classes, np.tile(CODES, 2), never=False) >= 32
    assert check_all(inputs, INPUTS, never=False) >= 23


@pytest.mark.parametrize("kind", VALUES)
def test_classes(kind: str) -> None:
    train, test = np.split(INPUTS, 2)
    values = np.tile(VALUES[kind][CODES], 2)
    model = Model(VALUES[kind])

    def audited(one: Any, other: Any) -> Any:
        return lb.audit_model(model, train=(train, one), test=(test, other), seed=0)

    def own(one: Any, other: Any) -> Any:
        pairs: Any = {"train": (train, one), "test": (test, other)}
        return lb.audit_model(model, **pairs, signal=lambda answer, _: answer[:, 0], seed=0)

    check_all(audited, values, never=kind in MISSING)
    for container in CONTAINERS:  # of one's own signal, anything may be a target
        forms = [made(half, container) for half in np.split(values, 2)]
        outcome(own, forms)


@pytest.mark.parametrize("kind", [kind for kind in VALUES if VALUES[kind].dtype.kind != "M"])
def test_inputs(kind: str) -> None:
    """The model is given what it was given before, whose errors are ours where it fails."""
    rng = np.random.default_rng(1)
    values = VALUES[kind][rng.integers(3, size=(2 * HALF, 2))]

    def audited(one: Any, other: Any) -> Any:
        pairs: Any = {"train": (one, CODES), "test": (other, CODES)}
        return lb.audit_model(Model(np.arange(3)), **pairs, seed=0)

    if kind != "timedelta":  # frames hold it in other units, which a model sees
        check_all(audited, values, never=kind in MISSING)


@pytest.mark.parametrize("kind", VALUES)
def test_features_strata_and_membership(kind: str) -> None:
    rng = np.random.default_rng(1)
    values = VALUES[kind][rng.integers(3, size=(2 * HALF, 2))]
    codes = VALUES[kind][np.arange(2 * HALF) // 2 % 3]
    member, scores = np.arange(2 * HALF) % 2 == 0, INPUTS[:, 0]
    plain = outcome(check_features, (values, "features"))

    def audited(design: Any) -> Any:
        return lb.audit(scores, design, seed=0)

    for container in CONTAINERS:
        features, column = made(values, container), made(codes, container)
        try:
            found = outcome(check_features, (features, "features"))
            outcome(lambda one, _: audited(lb.RandomSplit(member, strata=one)), (column, None))
            outcome(lambda one, _: audited(lb.RandomSplit(member, groups=one)), (column, None))
            outcome(lambda one, _: audited(lb.Coins(one)), (column, None))
        except Exception as error:
            error.add_note(f"in a container of kind {container!r}")
            raise
        both = isinstance(found, np.ndarray) and isinstance(plain, np.ndarray)
        if both and container not in ROUNDED:
            np.testing.assert_array_equal(found, plain, container)


def test_frames_of_numbers_of_several_types_are_features() -> None:
    """A column of booleans beside floats made pandas' frames objects, which were refused."""
    content: dict[str, Any] = {"a": INPUTS[:, 0], "b": INPUTS[:, 1] > 0, "c": np.arange(40)}
    plain, frame = np.column_stack([*content.values()]), pd.DataFrame(content)
    for form in (frame, frame.convert_dtypes(), pl.DataFrame(content), pa.table(content)):
        np.testing.assert_array_equal(check_features(form), plain)
    member, scores = np.arange(2 * HALF) % 2 == 0, INPUTS[:, 0]
    split = lb.audit(scores, lb.RandomSplit(member, features=frame), seed=0)
    of_numbers = lb.audit(scores, lb.RandomSplit(member, features=plain), seed=0)
    told: Any = dict(split.options)
    challenge = dict(told["challenge"])
    assert challenge.pop("notes") == ["columns were read as numbers: 'a', 'c'; as booleans: 'b'"]
    assert told | {"challenge": challenge} == of_numbers.options
    assert split.bound == of_numbers.bound
