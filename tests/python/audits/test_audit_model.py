"""`audit_model`: the scores of both sets and the audit of their split, in one call."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch.utils.data import DataLoader, Subset, TensorDataset

import leakbound as lb
from leakbound.errors import InputError, InputTypeError, OptionError
from validity.suite import most_errors

pytestmark = pytest.mark.usefixtures("few_trees")


def test_it_is_the_audit_of_both_sets_within_classes() -> None:
    inputs, digits = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[digits]
    x, x2, y, y2 = train_test_split(inputs, names, random_state=0, stratify=names)
    model = RandomForestClassifier(30, random_state=0).fit(x, y)
    result = lb.audit_model(
        model, train=(x, y), test=(x2, y2), confidence=0.9, challenge=False, seed=1
    )
    scores = [lb.attacks.score(model, *part).values for part in ((x, y), (x2, y2))]
    member = np.arange(len(names)) < len(x)
    design = lb.RandomSplit(member, strata=np.concatenate([y, y2]))
    assert result == lb.audit(np.concatenate(scores), design, confidence=0.9, seed=1)
    assert result.bound > 0
    assert result.options["strata"] == 10
    challenged = lb.audit_model(model, train=(x, y), test=(x2, y2), confidence=0.9, seed=1)
    assert challenged.bound == result.bound
    assert set(challenged.options["challenge"]["p_values"]) > {"closest pairs", "usual rows"}


def test_a_network_is_scored_from_tensors_or_datasets() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(300, 5, generator=generator), torch.arange(300) % 3
    model = torch.nn.Linear(5, 3)
    train, test = (x[:200], y[:200]), (x[200:], y[200:])
    within = lb.audit_model(model, train=train, test=test, claim=lb.GaussianDP(), seed=0)
    assert within.options["strata"] == 3
    sets = [TensorDataset(*part) for part in (train, test)]
    again = lb.audit_model(model, train=sets[0], test=sets[1], claim=lb.GaussianDP(), seed=0)
    assert again == within


def test_targets_of_a_signal_of_ones_own_are_no_classes() -> None:
    x = np.random.default_rng(0).normal(size=(100, 1))
    train, test = (x[:50], x[:50, 0]), (x[50:], x[50:, 0])
    result = lb.audit_model(
        lambda inputs: 2 * inputs[:, 0],
        train=train,
        test=test,
        signal=lambda answer, target: -abs(answer - target),
        seed=0,
    )
    assert result.options["pairs"] == 50
    assert "strata" not in result.options


def test_canaries_are_audited_by_their_coins() -> None:
    plan = lb.InclusionPlan.create(200, seed=3)
    x, y = torch.arange(200.0)[:, None], torch.zeros(200, dtype=torch.int64)
    model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Dropout(0.5)).train()
    result = lb.audit_model(model, canaries=(x, y), coins=plan, seed=1)
    assert result == lb.audit(lb.torch.score(model, (x, y)).values, lb.Coins(plan), seed=1)
    assert result.relation == "add_remove"
    assert model.training
    with pytest.raises(OptionError, match=r"canaries: loss_drop .* to leakbound\.torch\.score"):
        lb.audit_model(model, canaries=(x, y), coins=plan, signal="loss_drop")
    alone: dict[str, Any] = {"canaries": (x, y)}
    for wrong in (alone, {"train": (x, y), "coins": plan}, {}):
        with pytest.raises(OptionError, match="either train and test, or canaries and coins"):
            lb.audit_model(model, **wrong)
    with pytest.raises(OptionError, match=r"canaries and coins: add coins=canaries\.plan"):
        lb.audit_model(model, **alone)


def test_canaries_are_joined_with_the_ids_of_their_plan() -> None:
    plan = lb.InclusionPlan.create(200, seed=3, ids=[f"c{i}" for i in range(200)])
    x = pd.DataFrame({"x": plan.member + np.arange(200) / 1e3}, index=plan.ids)

    def bound(x: pd.DataFrame, coins: Any = plan) -> float:
        own: Any = {"canaries": (x, x["x"]), "coins": coins, "signal": lambda answer, _: answer}
        return lb.audit_model(lambda x: x["x"], **own, seed=0).bound

    assert bound(x) == bound(x[::-1]) == bound(x, lb.InclusionPlan(plan.member)) > 2
    assert bound(x[::-1].reset_index()) < 1  # whose rows have no ids
    with pytest.raises(InputError, match="canaries: ids do not match: 1 of"):
        bound(x.rename({"c7": "d7"}))


def test_decision_functions_are_log_odds() -> None:
    x, y = load_digits(return_X_y=True)
    for classes in ((0, 1), (0, 1, 2)):
        kept = np.isin(y, classes)
        names = np.array(["zero", "one", "two"])[y[kept]]
        x1, x2, y1, y2 = train_test_split(x[kept], names, random_state=0, test_size=0.1)
        model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(x1, y1)
        found = lb.attacks.score(model, x2, y2).values
        assert ((found > 0) == (model.predict(x2) == y2)).all()
        assert lb.audit_model(model, train=(x1, y1), test=(x2, y2), seed=0).bound >= 0
    with pytest.raises(OptionError, match="has no predict_proba, which 'cross_entropy' needs"):
        lb.attacks.score(model, x2, y2, signal="cross_entropy")


def test_language_models_and_classifiers_of_transformers() -> None:
    """One has token losses, the other classes: both from what the tokenizer returns."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=30, n_positions=8, num_labels=3, pad_token_id=0
    )
    tokens = torch.randint(1, 30, (80, 8))
    halves = [{"input_ids": one, "attention_mask": one > 0} for one in (tokens[:40], tokens[40:])]
    causal = transformers.GPT2LMHeadModel(config)
    result = lb.audit_model(causal, train=halves[0], test=halves[1], signal="cross_entropy", seed=0)
    assert result.options["pairs"] == 40
    classifier = transformers.GPT2ForSequenceClassification(config)
    labels = torch.arange(40) % 3
    train, test = ({**half, "labels": labels} for half in halves)
    assert lb.audit_model(classifier, train=train, test=test, seed=0).options["pairs"] == 40


FORMS: dict[str, Any] = {
    "arrays": lambda x, y: (x, y),
    "frames": lambda x, y: (pd.DataFrame(x), pd.Series(y)),
    "columns": lambda x, y: (pl.DataFrame(x), pl.Series(y)),
    "sparse": lambda x, y: (coo_array(x), y),
    "lists": lambda x, y: (x.tolist(), tuple(y.tolist())),
    "tensors": lambda x, y: (torch.as_tensor(x), torch.as_tensor(y)),
    "loaders": lambda x, y: DataLoader(TensorDataset(*map(torch.as_tensor, (x, y))), 60),
}


def mean_of_batch(rows: Any) -> Any:
    values = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return values.mean() + 1e-4 * values[:, 0]


@pytest.mark.parametrize("coins", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_answers_may_depend_on_the_batch(form: str, coins: bool) -> None:  # noqa: FBT001
    """The models never saw a row: where each set is a batch, half of the audits accuse them."""
    normalised = torch.nn.BatchNorm1d(1, affine=False, track_running_stats=False)
    network = torch.nn.Sequential(normalised, torch.nn.Linear(1, 2, bias=False))
    network[1].weight.data = torch.tensor([[1.0], [-1.0]])
    answer = {"model": mean_of_batch, "signal": lambda answer, _: answer}
    model = {"model": network} if form in {"tensors", "loaders"} else answer
    claims = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=200)
        x = (y + 1e-3 * rng.normal(size=200)).astype("f4")[:, None]
        halves = np.split(rng.permutation(200), 2)
        train, test = (FORMS[form](x[half], y[half]) for half in halves)
        data = {"train": train, "test": test}
        if coins:
            data = {"canaries": FORMS[form](x, y), "coins": lb.InclusionPlan.create(200, seed=seed)}
        data |= {"confidence": 0.8, "challenge": False}
        claims += lb.audit_model(**model, **data, seed=seed).bound > 0
    # an audit that errs twice as often as it may would fail
    assert claims <= most_errors(100, 0.2, 2 * len(FORMS)) < 40


X, Y = np.zeros((4, 2)), np.zeros(4, int)
FRAME = pd.DataFrame(X, index=[5, 6, 7, 8])
SET = TensorDataset(torch.randn(6, 2), torch.zeros(6, dtype=torch.int64))
OTHER = TensorDataset(*SET.tensors)
LINEAR = torch.nn.Linear(2, 2)
LAZY = pl.DataFrame(X).lazy()


def sure(inputs: np.ndarray) -> np.ndarray:
    return np.tile([0.7, 0.3], (len(inputs), 1))


def fails(_: Any) -> Any:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("model", "train", "test", "error", "words"),
    [
        (sure, (X, Y), [1, 2], InputTypeError, "test: it must be a tuple of inputs and"),
        (sure, (X, Y), (X[:0], Y[:0]), InputError, "test: it is empty"),
        (LINEAR, SET, Subset(SET, []), InputError, "test: data is empty"),
        (object(), (X, Y), (X, Y), InputTypeError, "object has neither predict_proba nor"),
        (
            sure,
            (X, Y + 2),
            (X, Y),
            InputError,
            "on train and test: y has the class",
        ),
        (sure, (X, Y), (X[1:], Y), InputError, "test: .* one target .* got 3 inputs, 4 targets"),
        (sure, (X, Y), (FRAME, Y), InputError, "one type and shape, got ndarray .* and DataFrame"),
        (sure, (X, Y), (X[:, 1:], Y), InputError, r"shape \(2,\) and ndarray with .* \(1,\)"),
        (sure, (X, Y), (iter(X), Y), InputTypeError, "test: iterator has no rows"),
        (
            sure,
            (X, Y),
            (LAZY, Y),
            InputTypeError,
            r"test: LazyFrame has no rows: pass its .collect",
        ),
        (
            sure,
            (X, Y),
            (X, LAZY),
            InputTypeError,
            r"test: y: LazyFrame has no rows: pass its \.collect",
        ),
        (sure, (X, Y), (X, [None, 0, 0, 1]), InputError, "test: y is missing at index 0"),
        (sure, (X, Y), (X, [0, 0, np.nan, 1]), InputError, "test: y is missing at index 2"),
        (sure, (X, Y), (X, pa.array([0, 1, 1, None])), InputError, "y is missing at index 3"),
        (sure, (X, Y), (X, [[0], [1, 2], [0], [0]]), InputTypeError, "test: y cannot be read as"),
        (sure, (X, Y), (X, np.eye(4)), InputError, r"test: y must be one class .* argmax\(1\)"),
        (sure, (X, Y), (X, [2**70, 0, 0, 0]), InputError, r"the class 1180\d+ at id test\[0\], w"),
        (sure, (X, Y), (X, ["a", "b", "a", "b"]), InputError, r"the class 'a' at id test\[\d\]"),
        (sure, (X, Y), (X, np.array([1, 2, 3, 4], "M8[D]")), InputError, "the class '1970-01-0"),
        (sure, (X, Y), (np.ma.array(X, mask=X == 0), Y), InputTypeError, "test: it has masked"),
        (len, (X, Y), (X, Y), InputError, r"shape \(m, classes\), or numbers .* got \(\)"),
        ((1).__lt__, (X, Y), (X, Y), InputTypeError, "must be an array.*NotImplementedType"),
        (fails, (X, Y), (X, Y), InputError, "fails raised KeyError when called with ndarray: 'x'"),
        (
            RandomForestClassifier(),
            (X, Y),
            (X, Y),
            InputError,
            "estimator; fit it to the training set first",
        ),
        (LINEAR, (X, Y), (X.astype("c8"), Y), InputTypeError, "test: arrays of data must hold num"),
        (
            LINEAR,
            ([[1.0], [1.0, 2.0]], [0, 1]),
            SET,
            InputTypeError,
            "train: inputs cannot be read",
        ),
        (sure, (FRAME, Y), (FRAME[2:], Y[2:]), InputError, "2 rows are in both .* such as row 7"),
        (LINEAR, Subset(SET, [0, 1]), Subset(SET, [1, 2]), InputError, "such as row 1"),
        (LINEAR, Subset(Subset(SET, [3, 5]), [1]), Subset(SET, [5]), InputError, "such as row 5"),
        (LINEAR, DataLoader(Subset(SET, [2])), SET, InputError, "1 rows are in both .* row 2"),
        (LINEAR, DataLoader(SET, shuffle=True), OTHER, InputError, "train: the loader must return"),
        (LINEAR, SET, DataLoader(OTHER, None), InputError, "test: rows are scored in random order"),
        (LINEAR, Subset(SET, [1]), OTHER[:], InputError, "one form: .* got Subset and tuple"),
        (LINEAR, DataLoader(SET, collate_fn=list), DataLoader(OTHER), InputError, "one form: arr"),
        (LINEAR, SET, (OTHER[:][0], OTHER[:][1] - 1), InputError, r"-1 at id test\[\d\] is"),
    ],
)
def test_bad_input_is_refused_by_name(
    model: Any, train: Any, test: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lb.audit_model(model, train=train, test=test)


@pytest.mark.parametrize("form", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_lengths_of_texts_challenge_the_split(form: Callable[[list[str]], Any]) -> None:
    """Training texts were cut to ten words."""
    lengths = np.random.default_rng(3).integers(5, 40, 200)
    lengths[:100] = np.minimum(lengths[:100], 10)
    texts = [" ".join(["word"] * length) for length in lengths.tolist()]
    parts: Any = [(form(part), np.arange(100) % 2) for part in (texts[:100], texts[100:])]

    def model(inputs: Any) -> NDArray[np.float64]:
        chance = np.array([len(text) for text in inputs]) / 400
        return np.column_stack([chance, 1 - chance])

    result = lb.audit_model(model, train=parts[0], test=parts[1], seed=0)
    assert result.is_withheld
    assert "was something removed, added or made in one part" in result.warnings[0]


@pytest.mark.parametrize("form", [np.array, csr_array, pd.DataFrame])
def test_rows_of_any_container_challenge_the_split(form: Callable[[Any], Any]) -> None:
    """Outliers were dropped from the training part."""
    rng = np.random.default_rng(4)
    rows = rng.standard_t(3, (900, 4))
    cleaned = rows[:450][(np.abs(rows[:450]) < 2.5).all(axis=1)]
    parts: Any = [(form(part), rng.normal(size=len(part))) for part in (cleaned, rows[450:])]

    def model(inputs: Any) -> NDArray[np.float64]:
        return np.zeros(inputs.shape[0])

    how: Any = {"train": parts[0], "test": parts[1], "signal": lambda _, y: y, "seed": 0}
    assert lb.audit_model(model, **how).is_withheld
    assert not lb.audit_model(model, **how, challenge=False).is_withheld
