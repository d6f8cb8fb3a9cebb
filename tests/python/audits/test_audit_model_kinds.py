"""Models of every kind: regressors, several labels, detectors of outliers, and texts as lists."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakbound as lb
from leakbound.attacks import score
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError

pytestmark = pytest.mark.usefixtures("few_trees")

M = 160
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * M, 3))
NUMBER = X[:, 0] + RNG.normal(size=2 * M)
CLASS = np.array(["no", "yes"])[(NUMBER > 0).astype(int)]
LABELS = (RNG.random((2 * M, 3)) < 0.5).astype(int)
IN = np.arange(2 * M) < M


LEAVES = DecisionTreeRegressor(min_samples_leaf=2, random_state=0)


class Named:
    """A function that says nothing of itself."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, x: Any) -> Any:
        return self.model.predict(x)


def parts(x: Any, y: Any) -> dict[str, Any]:
    return {"train": (x[:M], y[:M]), "test": (x[M:], y[M:])}


def audited(model: Any, y: Any, x: Any = X, **options: Any) -> lb.AuditResult:
    return lb.audit_model(model, **parts(x, y), seed=0, **options)


def said(result: lb.AuditResult) -> str:
    (assumed,) = (
        one.statement for one in result.assumptions if one.name == "scores without membership"
    )
    return assumed


def tree(y: Any, kind: Any = DecisionTreeRegressor) -> Any:
    return kind(random_state=0).fit(X[:M], y[:M])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: LEAVES,
        lambda: make_pipeline(StandardScaler(), LEAVES),
        lambda: GridSearchCV(LEAVES, {"max_depth": [None]}, cv=2),
    ],
)
def test_regressors_are_scored_by_their_residuals(wrap: Callable[[], Any]) -> None:
    model = wrap().fit(X[:M], NUMBER[:M])
    result = audited(model, NUMBER)
    assert result.bound > 0.5
    assert result.options["signal"] == "residual"
    assert "minus the absolute difference of prediction and target" in said(result)
    assert not result.warnings
    scores = score(model, X, NUMBER)
    np.testing.assert_array_equal(scores.values, -np.abs(NUMBER - model.predict(X)))
    function = score(model.predict, X, NUMBER)
    np.testing.assert_array_equal(function.values, scores.values)
    plain = score(Named(model), X, NUMBER.tolist())
    np.testing.assert_array_equal(plain.values, scores.values)


def test_residuals_of_several_numbers_are_added_as_they_are() -> None:
    both = np.column_stack([NUMBER, 1000 * X[:, 1] + RNG.normal(size=2 * M)])
    for model in (tree(both), MultiOutputRegressor(DecisionTreeRegressor()).fit(X[:M], both[:M])):
        result = audited(model, pd.DataFrame(both).to_numpy())
        assert result.bound > 2
        assert result.options["signal"] == "residual"
        assert "added up as they are" in said(result)
    scores = score(model, X, both)
    sums = np.abs(both - model.predict(X)).sum(axis=1)
    np.testing.assert_allclose(scores.values, -sums, rtol=1e-12)


def test_scores_do_not_depend_on_who_else_is_in_the_call() -> None:
    """Each call's spread of the targets would tell members from others by equal residuals."""
    y = np.random.default_rng(0).integers(0, 3, size=(2 * M, 2)).astype(float)

    def constant(x: Any) -> Any:
        return np.ones((len(x), 2))

    together = score(constant, X, y, signal="residual").values
    apart = [score(constant, X[rows], y[rows], signal="residual").values for rows in (IN, ~IN)]
    np.testing.assert_array_equal(np.concatenate(apart), together)
    assert lb.audit(np.concatenate(apart), lb.RandomSplit(IN), seed=0).bound == 0


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, random_state=0),
        DecisionTreeClassifier(),
        MultiOutputClassifier(DecisionTreeClassifier()),
        KNeighborsClassifier(1),
        OneVsRestClassifier(DecisionTreeClassifier()),
        OneVsRestClassifier(SVC(C=1e4, gamma=10)),
    ],
)
def test_losses_of_several_labels_are_summed(model: Any) -> None:
    model.fit(X[:M], LABELS[:M])
    result = audited(model, LABELS)
    assert result.bound > 2
    assert result.options["signal"] == "summed_losses"
    assert "sum of the losses of all labels" in said(result)
    frame = pd.DataFrame(LABELS, columns=["a", "b", "c"])
    assert lb.audit_model(
        model, train=(X[:M], frame[:M]), test=(X[M:], frame[M:]), seed=0
    ).bound == pytest.approx(result.bound)


def test_a_sum_of_losses_by_hand() -> None:
    model = RandomForestClassifier(20, random_state=0).fit(X[:M], LABELS[:M])
    expected = np.zeros(2 * M)
    with np.errstate(divide="ignore"):
        for label, table in zip(LABELS.T, model.predict_proba(X), strict=True):
            expected += np.log(table[np.arange(2 * M), label])
    np.testing.assert_array_equal(score(model, X, LABELS).values, expected)
    together = np.column_stack([table[:, 1] for table in model.predict_proba(X)])
    np.testing.assert_allclose(score(lambda _: together, X, LABELS).values, expected)
    with pytest.raises(OptionError, match="leave signal out"):
        score(model, X, LABELS, signal="logit_margin")
    with pytest.raises(InputError, match="answers 3 tables, one for each label, and y has 2"):
        score(model, X, LABELS[:, :2])


def test_several_labels_may_be_words() -> None:
    words = np.array(["no", "yes"])[LABELS]
    model = RandomForestClassifier(20, random_state=0).fit(X[:M], words[:M])
    numbers = RandomForestClassifier(20, random_state=0).fit(X[:M], LABELS[:M])
    np.testing.assert_array_equal(score(model, X, words).values, score(numbers, X, LABELS).values)


def test_a_probability_of_the_second_class_is_enough() -> None:
    model = RandomForestClassifier(20, random_state=0).fit(X[:M], CLASS[:M])
    expected = score(model, X, CLASS).values

    class Booster:
        """As of LightGBM: `predict` returns P(y = 1)."""

        def predict(self, x: Any) -> Any:
            return model.predict_proba(x)[:, 1]

    yes = CLASS == "yes"
    for y in (yes, yes.astype(int), 2 * yes - 1, yes.astype(float), CLASS):
        for asked in (Booster(), Booster().predict, lambda x: Booster().predict(x)[:, None]):
            np.testing.assert_allclose(score(asked, X, y).values, expected, rtol=1e-12)
    assert audited(Booster(), yes.astype(int)).options.get("signal") is None


def test_functions_may_have_classes_of_words() -> None:
    three = np.array(["high", "low", "middle"])[RNG.integers(0, 3, 2 * M)]
    model = RandomForestClassifier(20, random_state=0).fit(X[:M], three[:M])
    result = audited(model.predict_proba, three)
    assert result.bound == audited(model, three).bound > 2
    with pytest.raises(InputError, match=r"y has 2 different classes .* 3 probabilities.*order"):
        score(lambda x: model.predict_proba(x[:]), X[:2], ["high", "low"])


def test_predicted_classes_are_right_or_wrong() -> None:
    model = tree(CLASS, DecisionTreeClassifier)

    class Hard:
        """Tells no probability."""

        def predict(self, x: Any) -> Any:
            return model.predict(x)

    result = audited(Hard(), CLASS)
    assert result.options["signal"] == "right_class"
    np.testing.assert_array_equal(score(Hard(), X, CLASS).values, model.predict(X) == CLASS)


@pytest.mark.parametrize(
    "model",
    [
        KernelDensity(bandwidth=0.02),
        LocalOutlierFactor(n_neighbors=1, novelty=True),
        make_pipeline(StandardScaler(), KernelDensity(bandwidth=0.02)),
    ],
)
def test_detectors_of_outliers_find_what_they_were_fitted_to(model: Any) -> None:
    model.fit(X[:M])
    for train, test in (
        (X[:M], X[M:]),
        ((X[:M], None), (X[M:], None)),
        ((X[:M], CLASS[:M]), (X[M:], CLASS[M:])),
    ):
        result = lb.audit_model(model, train=train, test=test, seed=0)
        assert result.bound > 1
        assert result.options["signal"] == "normality"
        assert "score_samples" in said(result)
    frame = pd.DataFrame(X)
    assert lb.audit_model(model, train=frame[:M], test=frame[M:], seed=0).bound > 1


@pytest.mark.parametrize("model", [IsolationForest(random_state=0), OneClassSVM()])
def test_normality_is_higher_inside(model: Any) -> None:
    model.fit(X[:M])
    found = score(model, np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]]), None)
    assert found.values[0] > found.values[1]
    assert found.signal == "normality"


@pytest.mark.parametrize("classes", [2, 3])
def test_machines_without_probabilities_and_pairs_of_classes(classes: int) -> None:
    y = RNG.integers(0, classes, 2 * M)
    bounds = {}
    for shape in ("ovr", "ovo"):
        model = SVC(C=1e3, gamma=5, decision_function_shape=shape).fit(X[:M], y[:M])
        bounds[shape] = audited(model, y).bound
    assert bounds["ovo"] == pytest.approx(bounds["ovr"], abs=0.3)
    assert bounds["ovr"] > 2


def test_a_pipeline_of_a_frame_with_words_and_gaps() -> None:
    """As people have it: nothing is converted for the audit."""
    cities = np.array(["a", "b", None])[RNG.integers(0, 3, 2 * M)]
    frame = pd.DataFrame({"city": cities, "x": X[:, 0]})
    frame.loc[::7, "x"] = np.nan
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer

    made = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]), (SimpleImputer(), ["x"])
    )
    for kind, y in ((DecisionTreeClassifier(), CLASS), (DecisionTreeRegressor(), NUMBER)):
        model = make_pipeline(made, kind).fit(frame[:M], y[:M])
        assert audited(model, y, frame).bound > 0.5


class Boosted:
    """The methods and shapes of LightGBM's, XGBoost's and CatBoost's estimators."""

    def __init__(self, kind: str, y: Any) -> None:
        self.kind = kind
        known = {"catboost": object, "xgboost": np.int64}
        self.classes_ = np.unique(y)
        if kind in known:
            self.classes_ = self.classes_.astype(known[kind])
        if kind == "catboost":
            self.classes_ = self.classes_.tolist()
        self.inside = RandomForestClassifier(20, random_state=0).fit(X[:M], y[:M])

    def predict_proba(self, x: Any) -> Any:
        chances = self.inside.predict_proba(x)
        if self.kind == "xgboost":
            return chances.astype(np.float32)
        return chances

    def predict(self, x: Any) -> Any:
        answer = self.inside.predict(x)
        if self.kind == "catboost":
            return answer[:, None]
        return answer


class BoostedNumbers:
    """A regressor as of these libraries."""

    _estimator_type = "regressor"

    def __init__(self, *, column: bool) -> None:
        self.column = column
        self.inside = tree(NUMBER)

    def predict(self, x: Any) -> Any:
        answer = self.inside.predict(x).astype(np.float32)
        if self.column:
            return answer[:, None]
        return answer


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "catboost"])
def test_boosted_trees_of_other_libraries(kind: str) -> None:
    y: Any = CLASS
    if kind == "xgboost":
        y = (CLASS == "yes").astype(int)
    result = audited(Boosted(kind, y), y)
    assert result.bound == pytest.approx(audited(Boosted(kind, y).inside, y).bound, abs=0.2)
    assert audited(BoostedNumbers(column=kind == "catboost"), NUMBER).bound > 2


@pytest.mark.parametrize(
    ("model", "y", "signal", "error", "words"),
    [
        (tree(NUMBER), NUMBER, "logit_margin", OptionError, "no meaning for what DecisionTreeReg"),
        (tree(NUMBER), CLASS, "auto", LeakboundError, "y"),
        (KernelDensity().fit(X), NUMBER, "residual", OptionError, "no meaning .* 'normality'"),
        (LogisticRegression().fit(X, CLASS), CLASS, "residual", OptionError, "no meaning"),
        (LinearSVC().fit(X, CLASS), None, "auto", InputTypeError, "y is missing"),
        (
            object(),
            NUMBER,
            "auto",
            InputTypeError,
            "neither predict_proba nor decision_function, sc",
        ),
        (lambda _: np.ones((2 * M, 2)), NUMBER, "auto", LeakboundError, "sum to 2"),
        (lambda _: np.full(2 * M, 3.0), CLASS, "auto", InputError, "predicts numbers such as 3"),
        (lambda _: np.full(2 * M, np.nan), NUMBER, "auto", LeakboundError, "predictions must"),
        (lambda _: np.ones(3), NUMBER, "auto", InputError, "3"),
    ],
)
def test_what_has_no_meaning_is_refused(
    model: Any, y: Any, signal: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        score(model, X, y, signal=signal)


class Tokenizer:
    """As of transformers: mappings of lists, one token for each word."""

    model_max_length = 6

    def __call__(self, texts: list[str], *, truncation: bool) -> dict[str, list[list[int]]]:
        rows = [[1 + len(word) for word in text.split()] for text in texts]
        if truncation:
            rows = [row[: self.model_max_length] for row in rows]
        return {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}


def test_texts_and_lists_of_tokens_are_padded_to_one_length() -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=8, vocab_size=30, n_positions=8, num_labels=2, pad_token_id=0
    )
    causal = transformers.GPT2LMHeadModel(config)
    rng = np.random.default_rng(0)
    texts = [" ".join("x" * length for length in rng.integers(1, 20, 2 + n % 4)) for n in range(80)]
    rows = Tokenizer()(texts, truncation=True)["input_ids"]
    longest = max(map(len, rows))
    padded = np.array([row + [0] * (longest - len(row)) for row in rows])
    whole = {"input_ids": padded, "attention_mask": padded > 0}

    def audit(data: Any, model: Any = causal, **options: Any) -> lb.AuditResult:
        halves = {"train": data[:40], "test": data[40:]}
        return lb.audit_model(model, **halves, seed=0, signal="cross_entropy", **options)

    expected = lb.audit_model(
        causal,
        train={name: one[:40] for name, one in whole.items()},
        test={name: one[40:] for name, one in whole.items()},
        seed=0,
        signal="cross_entropy",
    )
    for form in (texts, pd.Series(texts), np.array(texts)):
        assert audit(form, tokenizer=Tokenizer()) == expected
    assert audit(rows) == expected
    assert lb.audit_model(causal, train=rows[:40], test=rows[40:], seed=0) == expected
    assert expected.options["signal"] == "cross_entropy"
    assert "of a text the mean over its tokens" in said(expected)
    records = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in rows]
    assert audit(records) == expected
    with pytest.raises(InputTypeError, match=r"audit_model\(\.\.\., tokenizer=AutoTokenizer"):
        audit(texts)
    with pytest.raises(InputError, match="same names"):
        lb.audit_model(causal, train=rows[:40], test=records[40:])
    with pytest.raises(OptionError, match="tokenizer is for networks"):
        audited(LogisticRegression().fit(X, CLASS), CLASS, tokenizer=Tokenizer())
    labels = np.arange(80) % 2
    classifier = transformers.GPT2ForSequenceClassification(config)
    for data in (texts, rows):
        result = lb.audit_model(
            classifier,
            train=(data[:40], labels[:40]),
            test=(data[40:], labels[40:]),
            tokenizer=Tokenizer(),
            seed=0,
        )
        assert result.options["strata"] == 2
