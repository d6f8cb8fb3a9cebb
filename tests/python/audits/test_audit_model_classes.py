"""Classes of `audit_model`: read from whatever holds them, and balanced sets accuse nobody."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_array
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

import leakbound as lb
from validity.suite import most_errors

pytestmark = pytest.mark.usefixtures("few_trees")

GAMES = 10


def balanced(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training set and test set: random within classes, balanced in the training set only.

    A model that knows classes and no record tells members, unless it is judged within classes.
    """
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(1200, 2)), (rng.random(1200) < 0.1).astype(np.int64)
    rare, common = (rng.permutation(np.flatnonzero(y == one)) for one in (1, 0))
    half = len(rare) // 2
    train = np.concatenate([rare[:half], common[:half]])
    test = np.concatenate([rare[half:], common[half:]])
    return [(x[part], y[part]) for part in (train, test)]


def constant(rows: Any) -> np.ndarray:
    return np.tile([[0.3, 0.7]], (len(rows), 1))


class Items(Dataset[Any]):
    """A dataset whose items are made when they are asked for, and that has no attribute of them."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.pairs = list(zip(torch.tensor(x, dtype=torch.float32), y.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, row: int) -> Any:
        return self.pairs[row]


class Constant(torch.nn.Module):
    """Class 1 is likelier, whatever the record; a little of the input keeps scores apart."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = 1e-3 * x[:, :1]
        return torch.cat([small, torch.ones_like(small)], 1)


LABELS: dict[str, Callable[[np.ndarray], Any]] = {
    "flat": lambda y: y,
    "column": lambda y: y[:, None],
    "rows": lambda y: y[:, None].tolist(),
    "text in rows": lambda y: [[str(one)] for one in y],
    "pandas": lambda y: pd.DataFrame({"y": y}, index=np.arange(len(y))[::-1]),
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "categories": lambda y: pd.DataFrame({"y": y}, dtype="category"),
    "polars": lambda y: pl.DataFrame({"y": y}),
    "arrow": lambda y: pa.table({"y": y}),
    "chunks": lambda y: pa.chunked_array([y[:1], y[1:]]),
    "scalars": lambda y: list(pa.array(y)),
    "sparse": lambda y: csr_array(y[:, None]),
    "tensor": lambda y: torch.tensor(y)[:, None],
}


class Named:
    """A model of classes with names."""

    def __init__(self, names: Any) -> None:
        self.classes_ = names

    def predict_proba(self, rows: Any) -> np.ndarray:
        return constant(rows)


def tensors(x: np.ndarray, y: np.ndarray) -> TensorDataset:
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


SETS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "tensors": lambda x, y: tensors(x, y).tensors,
    "lists": lambda x, y: (x.astype("f4").tolist(), y.tolist()),
    "frames": lambda x, y: (pd.DataFrame(x.astype("f4")), pd.Series(y)),
    "dataset": tensors,
    "subset": lambda x, y: Subset(tensors(x, y), range(len(x))),
    "several": lambda x, y: ConcatDataset([tensors(x[:9], y[:9]), tensors(x[9:], y[9:])]),
    "items": Items,
    "loader": lambda x, y: DataLoader(tensors(x, y), 64),
    "loader of items": lambda x, y: DataLoader(Subset(Items(x, y), range(len(x))), 64),
}


@pytest.mark.parametrize("form", [*LABELS, *SETS])
def test_balanced_sets_accuse_no_constant_model(form: str) -> None:
    """With classes unread, all of these audits accuse it."""
    claims = 0
    for seed in range(GAMES):
        train, test = balanced(seed)
        if form in LABELS:
            model: Any = Named(["0", "1"]) if form.startswith("text") else constant
            pair = LABELS[form]
            data = [(x, pair(y)) for x, y in (train, test)]
        else:
            model, data = Constant(), [SETS[form](*part) for part in (train, test)]
        how: Any = {"confidence": 0.8, "challenge": False, "seed": seed}
        result = lb.audit_model(model, train=data[0], test=data[1], **how)
        assert result.options["strata"] == 2
        claims += result.bound > 0
    assert claims <= most_errors(GAMES, 0.2, len(LABELS) + len(SETS)) < GAMES


def by_class(answer: Any, y: Any) -> Any:
    return np.asarray(answer)[np.arange(len(y)), np.asarray(y)]


def signed(output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return output[torch.arange(len(y)), y]


def test_a_signal_of_ones_own_is_of_classes_where_targets_repeat() -> None:
    train, test = balanced(0)
    own = lb.audit_model(constant, train=train, test=test, signal=by_class, seed=0)
    assert own.options["strata"] == 2
    sets = [tensors(*part) for part in (train, test)]
    network = lb.audit_model(Constant(), train=sets[0], test=sets[1], signal=signed, seed=0)
    assert network.options["strata"] == 2
    assert not any("stratified" in one for one in own.warnings + network.warnings)


def in_turn(answer: Any, _: Any) -> Any:
    return np.arange(len(answer))


def test_what_cannot_be_read_as_classes_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    ragged = [[1] * (row % 3) for row in range(40)]
    result = lb.audit_model(constant, train=(x[:40], ragged), test=(x[40:], ragged), signal=in_turn)
    assert "y could not be read" in result.warnings[-1]
    assert "not stratified by class" in result.warnings[-1]
    labels = torch.tensor(rng.random((80, 12)) < 0.5).float()
    inputs = torch.tensor(x, dtype=torch.float32)
    network = torch.nn.Linear(2, 12)
    several: Any = {"signal": "binary_cross_entropy", "seed": 0}
    data: Any = {
        "train": TensorDataset(inputs[:40], labels[:40]),
        "test": TensorDataset(inputs[40:], labels[40:]),
    }
    result = lb.audit_model(network, **data, **several)
    assert "y has shape ('m', 12), and most of its rows are different" in result.warnings[-1]
    assert "strata" not in result.options


def test_equal_rows_of_labels_are_compared() -> None:
    inputs = torch.randn(80, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.stack([torch.arange(80) % 2, torch.arange(80) // 2 % 2], 1).float()
    sets = [TensorDataset(inputs[part], labels[part]) for part in (slice(40), slice(40, None))]
    result = lb.audit_model(
        torch.nn.Linear(2, 2),
        train=sets[0],
        test=sets[1],
        signal="binary_cross_entropy",
        seed=0,
    )
    assert (result.options["strata"], result.warnings) == (4, ())


def test_tokens_have_no_classes_and_no_warning() -> None:
    tokens = torch.randint(9, (80, 6), generator=torch.Generator().manual_seed(0))
    network = torch.nn.Embedding(9, 9)
    for halves in (
        (tokens[:40], tokens[40:]),
        [TensorDataset(half, half) for half in (tokens[:40], tokens[40:])],
    ):
        result = lb.audit_model(
            network, train=halves[0], test=halves[1], signal="cross_entropy", seed=0
        )
        assert "strata" not in result.options
        assert not any("stratified" in one for one in result.warnings)
