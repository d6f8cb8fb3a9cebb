"""Scores from what a model answers: classes, numbers, labels, or how usual an example is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np

from leakbound._base import checks
from leakbound._base.alignment import size_of
from leakbound._base.console import one_line
from leakbound._base.labels import labels_of, positions_of, targets_of
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.attacks.class_pairs import answers_class_pairs, one_vs_one_votes
from leakbound.attacks.reference_models import margin_threshold, scores_of_attack
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError

# What is measured on the answers of a model.
Measured: TypeAlias = Literal["auto", "logit_margin", "cross_entropy", "residual", "normality"]
# The method that a model is asked by.
Method: TypeAlias = Literal["score_samples", "predict_proba", "decision_function", "predict"]

_PROBABILITY_ROUNDING = 1e-3  # of sums of probabilities, in half precision
_LISTED_CLASSES = 5  # classes that a message lists
# Pairs of classes of which the second is meant by "the probability": 1 against 0 or -1.
_POSITIVE_CLASS_PAIRS = ((0, 1), (-1, 1))


@dataclass(frozen=True)
class _ModelAnswer:
    """A model, the method that it was asked by, inputs and its answer."""

    model: object
    method: Method
    inputs: object
    answer: Any

    @property
    def estimator(self) -> object:
        """The model, or the one that a method passed as a function belongs to."""
        return getattr(self.model, "__self__", self.model)

    @property
    def classes(self) -> Sequence[object] | None:
        """The classes of the model, if it knows them."""
        return getattr(self.estimator, "classes_", None)

    @property
    def predicts_classes(self) -> bool:
        """Whether the answer is that of a classifier's `predict`."""
        function_name = getattr(self.model, "__name__", "predict")
        return function_name == "predict" and _estimator_type(self.estimator) == "classifier"

    @property
    def is_regressor(self) -> bool:
        """Whether the model says that it predicts numbers."""
        return _estimator_type(self.estimator) == "regressor"


def score(
    model: object,
    X: object,  # noqa: N803 (as in scikit-learn)
    y: ArrayInput | None,
    *,
    signal: Measured | Callable[[Any, Any], ArrayInput] = "auto",
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how much a model acts as if it was trained on them, asking it once.

    If the model outputs exactly 0 or 1, the score is ±inf; such scores are ties.

    Parameters
    ----------
    model : estimator or callable
        A fitted estimator of scikit-learn, LightGBM, XGBoost, CatBoost or like these: a classifier
        with `predict_proba`, or else `decision_function`, whose values are taken for log-odds
        (values of pairs of classes, as of an `SVC` with ``decision_function_shape="ovo"``, are put
        together for each class first); a regressor; or a detector of outliers or a density, with
        `score_samples`. Or what has `predict`, or a function of `X`, such as a model behind an
        interface, that returns probabilities of shape (m, classes), the probability of the second
        of two classes, shape (m,), or predicted numbers.
    X : array-like or whatever the model takes
        Inputs of m examples. Score members and others in one call and in random order, as
        `leakbound.audit_model` does: an answer may depend on the other examples of its call, and
        what "auto" measures on the classes in `y`.
    y : array-like, shape (m,) or (m, 1)
        Their classes, numbers or text, none missing: of those in the model's `classes_`, if it has
        some; else from 0 to classes - 1, or all of them in ascending order, as scikit-learn has
        them. For a regressor numbers, and a column for each of several labels or numbers; ignored
        by detectors of outliers, where it may be None. A list, an array, a tensor, or a column or
        frame of one column of pandas, polars or Arrow. For a callable `signal`, anything it takes.
    signal : str or callable
        "auto" takes what suits the model: "logit_margin" for classes, "residual" for numbers, and
        "normality" where there is only `score_samples`.

        - "logit_margin": :math:`\log p_y-\log\sum_{j\ne y}p_j`, the log-odds of the class, which
          orders examples as the loss does and keeps those apart whose :math:`p_y` rounds to 1.
        - "cross_entropy": :math:`\log p_y`, minus the loss.
        - "residual": minus the absolute difference of prediction and target; of several targets the
          sum of these as they are, since units found from `y` would depend on who is in the call.
          Scale targets of different units first, and predictions alike.
        - "normality": `score_samples`, higher for what resembles the training data more.
        - a function of the model's answer, of any shape, and `y`, which returns m numbers, higher
          for likelier members.

        Of several labels the losses are summed; of a model that predicts classes only, the score
        is whether they are right.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570,
    equation 3.

    Examples
    --------
    >>> def predict_proba(X):
    ...     return [[0.9, 0.1], [0.5, 0.5]]
    >>> score(predict_proba, [[1.0], [2.0]], [0, 1]).values.round(3).tolist()
    [2.197, 0.0]
    """
    model_answer = _ask_model(model, X, custom_signal=callable(signal))
    if callable(signal):
        name = str(getattr(signal, "__name__", type(signal).__name__))
        custom_scores = _call_model_or_signal(f"signal {name}", signal, model_answer.answer, y)
        values = checks.reals(custom_scores, name="scores")
        checks.check_length(np.atleast_1d(values), examples=size_of(y), name="scores")
        return scores_of_attack(values, ids=ids, attack=name)
    checks.choice(signal, name="signal", allowed=Measured)
    if model_answer.method == "score_samples":
        _check_signal_of_answer(model_answer, signal, "normality")
        log_densities = checks.reals(model_answer.answer, name="score_samples")
        return scores_of_attack(log_densities.ravel(), ids=ids, attack="normality")
    if y is None:
        raise InputTypeError(
            f"{type(model_answer.model).__name__} is scored by its targets: y is missing"
        )
    if model_answer.method == "decision_function":
        if signal == "cross_entropy":
            kind = type(model).__name__
            raise OptionError(f"{kind} has no predict_proba, which {signal!r} needs")
        _check_signal_of_answer(model_answer, signal, "logit_margin")
        return _decision_scores(model_answer, y, ids)
    if model_answer.method == "predict":
        return _score_predictions(model_answer, y, signal, ids)
    return _probability_scores(model_answer, y, signal, ids)


def score_samples_of(model: object) -> Callable[[Any], object] | None:
    """Return how usual examples are to a model that knows no classes; None for other models."""
    if hasattr(model, "classes_"):
        return None
    score_samples: Callable[[Any], object] | None = getattr(model, "score_samples", None)
    return score_samples


def _ask_model(model: object, inputs: object, *, custom_signal: bool) -> _ModelAnswer:
    """Ask a model about inputs, by its most informative method.

    With a signal of one's own, `custom_signal`, this is the decision of detectors of outliers.
    """
    methods: Sequence[Method] = ("predict_proba", "decision_function", "predict")
    if score_samples_of(model) is not None and not custom_signal:
        methods = ("score_samples",)
    for method in methods:
        answer_method = getattr(model, method, None)
        if not callable(answer_method):
            continue
        if method == "decision_function" and not custom_signal and not hasattr(model, "classes_"):
            if _estimator_type(model) == "classifier":
                raise InputError(
                    f"{type(model).__name__} is a classifier without classes_: fit it to the "
                    "training set first"
                )
            raise InputTypeError(
                f"{type(model).__name__} has a decision_function, but neither classes_ nor "
                "score_samples: say what its values mean, by signal=lambda values, y: values if "
                "they are larger for usual examples, or -values if larger for outliers, as of PyOD"
            )
        answer = _answer_of_model(model, answer_method, inputs)
        return _ModelAnswer(model, method, inputs, answer)
    if not callable(model):
        raise InputTypeError(
            f"{type(model).__name__} has neither predict_proba nor decision_function, "
            "score_samples or predict: pass a function of X that returns probabilities, shape "
            "(m, classes), or predicted numbers, shape (m,)"
        )
    return _ModelAnswer(model, "predict", inputs, _answer_of_model(model, model, inputs))


def _check_signal_of_answer(model_answer: _ModelAnswer, signal: str, suitable: str) -> None:
    """Refuse a signal that has no meaning for such answers."""
    if signal in {"auto", suitable}:
        return
    model_name = type(model_answer.model).__name__
    raise OptionError(
        f"signal={signal!r} has no meaning for what {model_name} answers "
        f"({model_answer.method}): leave it out, for {suitable!r}, or pass a function of the "
        "answer and y"
    )


def _score_predictions(
    model_answer: _ModelAnswer, y: ArrayInput, signal: str, ids: ArrayInput | None
) -> Scores:
    """Score by what `predict` or a function returned: probabilities, numbers or classes."""
    if _are_label_tables(model_answer.answer):
        return _probability_scores(model_answer, y, signal, ids)
    predictions = targets_of(model_answer.answer, name="what the model predicts")
    targets = targets_of(y, name="y")
    if predictions.ndim not in {1, 2}:
        raise InputError(
            "the model must answer probabilities of shape (m, classes), or numbers of shape (m,), "
            f"got {predictions.shape}"
        )
    checks.check_length(predictions, examples=len(targets), name="what the model predicts")
    if model_answer.is_regressor or signal == "residual":
        _check_signal_of_answer(model_answer, signal, "residual")
        return _residual_scores(predictions, targets, ids)
    if predictions.dtype.kind not in "biuf" or model_answer.predicts_classes:
        return _right_class_scores(predictions, targets, ids)
    if predictions.ndim == 2 and (targets.ndim == 1 or _are_label_indicators(targets)):
        return _probability_scores(model_answer, y, signal, ids)
    if predictions.ndim == 2:
        return _residual_scores(predictions, targets, ids)
    positive_class = _class_of_single_probability(model_answer.classes, targets)
    if positive_class is not None and (predictions >= 0).all() and (predictions <= 1).all():
        positive_probability = predictions.astype(np.float64)
        probabilities = np.column_stack([1 - positive_probability, positive_probability])
        own_columns = (targets == positive_class).astype(np.int64)
        return _scores_of_class_probabilities(probabilities, own_columns, signal, ids)
    if targets.dtype.kind not in "biuf":
        raise InputError(
            f"the model predicts numbers such as {predictions[0]:g}, and y holds classes such as "
            f"{checks.shown(targets.tolist()[0])}: pass a function that returns probabilities, "
            "shape (m, classes)"
        )
    if positive_class is not None and signal == "auto":
        # Read as numbers here, and as probabilities in a call whose answers happen to be within
        # 0 and 1, scores of two calls would not compare.
        raise InputError(
            f"y has two classes, and the model answers from {predictions.min():g} to "
            f"{predictions.max():g}: pass a function that returns probabilities or, if it predicts "
            'numbers, signal="residual"'
        )
    _check_signal_of_answer(model_answer, signal, "residual")
    return _residual_scores(predictions, targets, ids)


def _residual_scores(predictions: AnyArray, targets: AnyArray, ids: ArrayInput | None) -> Scores:
    """Score by minus the absolute difference of prediction and target, summed over targets."""
    predicted_numbers = checks.reals(predictions, name="predictions")
    true_numbers = checks.reals(targets, name="y")
    _check_shape_of_predictions(predicted_numbers, true_numbers, predicted="numbers")
    absolute_residuals = np.abs(true_numbers - predicted_numbers)
    if true_numbers.ndim == 2:
        absolute_residuals = absolute_residuals.sum(axis=1)
    return scores_of_attack(0.0 - absolute_residuals, ids=ids, attack="residual")


def _right_class_scores(predictions: AnyArray, targets: AnyArray, ids: ArrayInput | None) -> Scores:
    """Score by whether the class is predicted, or by how many of several labels are."""
    _check_shape_of_predictions(predictions, targets, predicted="classes")
    is_right = np.asarray(predictions == targets, dtype=np.float64)
    right_labels = is_right.reshape(len(targets), -1).sum(axis=1)
    return scores_of_attack(right_labels, ids=ids, attack="right_class")


def _check_shape_of_predictions(
    predictions: AnyArray, targets: AnyArray, *, predicted: str
) -> None:
    """Check that there is a prediction for each target."""
    if predictions.shape != targets.shape:
        raise InputError(
            f"the model predicts {predicted} of shape {predictions.shape}, and y has shape "
            f"{targets.shape}"
        )


def _class_of_single_probability(classes: object, targets: AnyArray) -> object:
    """Return the class whose probability a model of two classes answers; None where not known."""
    if targets.ndim != 1:
        return None
    class_labels = set(targets.tolist())
    if classes is not None:
        class_labels = set(labels_of(classes, name="classes_ of the model").tolist())
    for class_pair in _POSITIVE_CLASS_PAIRS:
        if class_labels <= set(class_pair):
            return class_pair[1]
    if len(class_labels) != 2:
        return None
    return sorted(class_labels)[1]


def _probability_scores(
    model_answer: _ModelAnswer, y: ArrayInput, signal: str, ids: ArrayInput | None
) -> Scores:
    """Score by probabilities: of classes, or of several labels, whose losses are summed."""
    if signal not in {"auto", "logit_margin", "cross_entropy"}:
        _check_signal_of_answer(model_answer, signal, "logit_margin")
    targets = targets_of(y, name="y")
    tables_of_labels = _tables_of_labels(model_answer, targets)
    if tables_of_labels is not None:
        if signal == "logit_margin":
            raise OptionError(
                "of several labels the losses are summed: leave signal out, or choose one label by "
                "a function that returns its probabilities"
            )
        label_log_probabilities = [
            _log_probability_of_class(probabilities, own_columns)
            for probabilities, own_columns in tables_of_labels
        ]
        return scores_of_attack(
            np.sum(label_log_probabilities, axis=0), ids=ids, attack="summed_losses"
        )
    probabilities = _checked_probabilities(model_answer.answer)
    own_columns = _columns_of_own_classes(
        y, classes=model_answer.classes, column_count=probabilities.shape[1], ids=ids
    )
    checks.check_length(own_columns, examples=len(probabilities), name="y")
    return _scores_of_class_probabilities(probabilities, own_columns, signal, ids)


def _scores_of_class_probabilities(
    probabilities: FloatArray, own_columns: IntArray, signal: str, ids: ArrayInput | None
) -> Scores:
    """Return log-odds of the class of each example, or the logarithm of its probability."""
    if signal == "cross_entropy":
        log_probabilities = _log_probability_of_class(probabilities, own_columns)
        return scores_of_attack(log_probabilities, ids=ids, attack=signal)
    with np.errstate(divide="ignore"):
        log_probability_table: FloatArray = np.log(probabilities)
    margins = margin_threshold(log_probability_table, own_columns, ids=ids)
    return replace(margins, signal="logit_margin")


def _are_label_tables(answer: object) -> TypeGuard[Sequence[ArrayInput]]:
    """Return whether an answer has a table of probabilities for each of several labels."""
    if not isinstance(answer, list | tuple) or not answer:
        return False
    return all(np.ndim(label_table) == 2 for label_table in answer)


def _tables_of_labels(
    model_answer: _ModelAnswer, targets: AnyArray
) -> list[tuple[FloatArray, IntArray]] | None:
    """Return probabilities and the right column for each of several labels; None for one label."""
    answer = model_answer.answer
    if _are_label_tables(answer):
        if targets.ndim == 1:
            targets = targets[:, None]
        if targets.shape[1] != len(answer):
            raise InputError(
                f"the model answers {len(answer)} tables, one for each label, and y has "
                f"{targets.shape[1]} columns: pass y with a column for each"
            )
        classes_of_labels: Sequence[object] = [None] * len(answer)
        if model_answer.classes is not None:
            classes_of_labels = list(model_answer.classes)
        tables_of_labels = []
        for label_number, (label_table, label_classes) in enumerate(
            zip(answer, classes_of_labels, strict=True)
        ):
            probabilities = checks.reals(label_table, name="probabilities", least=0)
            own_columns = _columns_of_own_classes(
                targets[:, label_number],
                classes=label_classes,
                column_count=probabilities.shape[1],
                ids=None,
            )
            tables_of_labels.append((probabilities, own_columns))
        return tables_of_labels
    answer_table = targets_of(answer, name="probabilities")
    if targets.ndim != 2 or answer_table.shape != targets.shape:
        return None
    sums_to_one = np.abs(answer_table.sum(axis=1) - 1) <= _PROBABILITY_ROUNDING
    if sums_to_one.all() and answer_table.shape[1] > 1:
        return None
    # a probability for each label by itself
    probabilities = checks.reals(answer_table, name="probabilities", least=0, most=1)
    indicators = _label_indicators(targets).astype(np.int64)
    return [
        (np.column_stack([1 - label_probability, label_probability]), own_columns)
        for label_probability, own_columns in zip(probabilities.T, indicators.T, strict=True)
    ]


def _are_label_indicators(targets: AnyArray) -> bool:
    """Return whether all targets are 0 or 1."""
    return targets.dtype.kind in "biuf" and bool(np.isin(targets, (0, 1)).all())


def _label_indicators(targets: AnyArray) -> BoolArray:
    """Read which of several labels each example has: 0 and 1."""
    indicators = checks.numbers(targets, name="y", least=0, most=1, whole=True)
    return np.asarray(indicators == 1)


def _log_probability_of_class(probabilities: FloatArray, own_columns: IntArray) -> FloatArray:
    """Return the logarithm of the probability of each example's class."""
    rows = np.arange(own_columns.size)
    with np.errstate(divide="ignore"):
        log_probabilities: FloatArray = np.log(probabilities[rows, own_columns])
    return log_probabilities


def _estimator_type(model: object) -> str:
    """Return what an estimator says that it is, such as a classifier; empty if it says nothing."""
    declared = getattr(model, "_estimator_type", None)
    if declared is None and hasattr(model, "__sklearn_tags__"):
        declared = model.__sklearn_tags__().estimator_type
    return str(declared or "")


def _answer_of_model(model: object, answer_method: Callable[[Any], object], inputs: object) -> Any:
    """Return what a model answers about inputs."""
    return _call_model_or_signal(
        getattr(model, "__name__", type(model).__name__), answer_method, inputs
    )


def _call_model_or_signal(
    called_name: str, function: Callable[..., object], *arguments: object
) -> Any:
    """Call code that is not ours, and say what it was called with where it fails."""
    try:
        return function(*arguments)
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # anybody's code, given data of any type
        argument_types = " and ".join(type(argument).__name__ for argument in arguments)
        remedy = "pass data of the type that the fitted model takes"
        if type(error).__name__ == "NotFittedError":
            remedy = "fit it to the training set first"
        message = one_line(error).rstrip(".")
        raise InputError(
            f"{called_name} raised {type(error).__name__} when called with {argument_types}: "
            f"{message}; {remedy}"
        ) from error


def _decision_scores(model_answer: _ModelAnswer, y: ArrayInput, ids: ArrayInput | None) -> Scores:
    """Score by the values of a decision function, of one column for two classes."""
    model_name = type(model_answer.model).__name__
    decision_values = checks.reals(model_answer.answer, name="decision_function")
    targets = targets_of(y, name="y")
    if targets.ndim == 2 and decision_values.shape == targets.shape:
        # of several labels each by itself: log-odds that it is there
        is_present = _label_indicators(targets)
        label_losses = np.logaddexp(0.0, np.where(is_present, -decision_values, decision_values))
        return scores_of_attack(-label_losses.sum(axis=1), ids=ids, attack="summed_losses")
    classes = labels_of(model_answer.classes, name=f"classes_ of {model_name}")
    if decision_values.ndim == 2 and decision_values.shape[1] == 1:
        decision_values = decision_values[:, 0]
    logits = decision_values
    if decision_values.ndim == 1:
        logits = np.column_stack([np.zeros(len(decision_values)), decision_values])
    class_values = _class_values_from_pairs(
        model_answer.model, inputs=model_answer.inputs, decision_values=logits, classes=classes
    )
    own_columns = _columns_of_own_classes(
        y, classes=classes, column_count=class_values.shape[1], ids=ids
    )
    margins = margin_threshold(class_values, own_columns, ids=ids)
    return replace(margins, signal="logit_margin")


def _class_values_from_pairs(
    model: object, inputs: object, decision_values: FloatArray, classes: AnyArray
) -> FloatArray:
    """Return a value for each class, where a model may have answered one for each pair of classes.

    Three classes have as many pairs. Whatever the model is wrapped in, its own predictions tell
    which these are: of values of classes the predicted one has the largest, and of values of pairs
    it wins most comparisons.
    """
    class_count = classes.size
    first_classes, _ = np.triu_indices(class_count, 1)
    if class_count < 3 or decision_values.shape[1] != first_classes.size:
        return decision_values
    candidate_values = [
        one_vs_one_votes(decision_values, class_count),
        one_vs_one_votes(-decision_values, class_count),
    ]
    if class_count == decision_values.shape[1]:
        if answers_class_pairs(model):
            return candidate_values[0]
        candidate_values = [decision_values, *candidate_values]
    if len(candidate_values) == 1 or not hasattr(model, "predict"):
        return candidate_values[0]
    answer = _answer_of_model(model, model.predict, inputs)
    predictions = labels_of(answer, name="what the model predicts")
    predicted_columns = positions_of(predictions, classes)

    def agreement(class_values: FloatArray) -> float:
        return float((class_values.argmax(axis=1) == predicted_columns).mean())

    return max(candidate_values, key=agreement)


def _checked_probabilities(answer: ArrayInput) -> FloatArray:
    """Read a model's answer: rows that sum to 1, but for rounding."""
    probabilities = checks.reals(answer, name="probabilities", least=0)
    if probabilities.ndim != 2 or probabilities.shape[1] < 2 or not probabilities.size:
        raise InputError(
            f"the model must answer probabilities of shape (m, classes), got {probabilities.shape}"
        )
    row_sums = probabilities.sum(axis=1)
    wrong_rows = np.flatnonzero(np.abs(row_sums - 1) > _PROBABILITY_ROUNDING)
    if wrong_rows.size:
        wrong_row = wrong_rows[0]
        raise InputError(
            f"probabilities of example {wrong_row} sum to {row_sums[wrong_row]:g}, not to 1; score "
            "logits by leakbound.attacks.margin_threshold"
        )
    return probabilities


def _columns_of_own_classes(
    y: object, classes: object, column_count: int, ids: ArrayInput | None
) -> IntArray:
    """Return the column of each example's class."""
    own_labels = labels_of(y, name="y")
    class_names = _classes_without_names(own_labels, column_count)
    if classes is not None:
        class_names = labels_of(classes, name="classes_ of the model")
    if class_names.size != column_count:
        raise InputError(
            f"the model has {class_names.size} classes_ and answers {column_count} probabilities"
        )
    own_columns = positions_of(own_labels, class_names)
    unknown_rows = np.flatnonzero(own_columns < 0)
    if unknown_rows.size:
        unknown_row = int(unknown_rows[0])
        place_of_row = f"index {unknown_row}"
        if ids is not None:
            example_ids = checks.vector(ids, name="ids", kinds="biufSUOT")
            if example_ids.size > unknown_row:
                place_of_row = f"id {example_ids[unknown_row]}"
        class_name = checks.shown(own_labels.tolist()[unknown_row])
        if classes is None and all(isinstance(own_label, str) for own_label in own_labels.tolist()):
            raise InputError(
                f"y has {np.unique(own_labels).size} different classes and the model "
                f"answers {column_count} probabilities, so that their order is not known: pass "
                "codes, numpy.searchsorted(classes, y) with the classes in the order of the columns"
            )
        raise InputError(
            f"y has the class {class_name} at {place_of_row}, which the model was not fitted to "
            f"({unknown_rows.size} such rows, its {column_count} classes are "
            f"{_listed_class_names(class_names)}): drop these rows, or give classes the names that "
            "they had in training"
        )
    return own_columns


def _classes_without_names(labels: AnyArray, column_count: int) -> AnyArray:
    """Return the classes of columns that have no names: numbers from 0 on, or all words in order.

    In ascending order, as scikit-learn puts them, where there are as many words as columns.
    """
    distinct_labels = set(labels.tolist())
    are_words = all(isinstance(label, str) for label in distinct_labels)
    if are_words and len(distinct_labels) == column_count:
        return np.array(sorted(distinct_labels), dtype=object)
    return np.arange(column_count)


def _listed_class_names(names: AnyArray) -> str:
    """Return the first names of classes, as a message lists them."""
    shown_names = [checks.shown(name) for name in names[:_LISTED_CLASSES].tolist()]
    if names.size > _LISTED_CLASSES:
        shown_names.append("…")
    return ", ".join(shown_names)
