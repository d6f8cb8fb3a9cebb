"""Scores from what a model answers: classes, numbers, labels, or how usual an example is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np

from leakbound._base import checks
from leakbound._base.alignment import size_of
from leakbound._base.console import one_line
from leakbound._base.labels import labels_of, positions_of, targets_of
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.attacks.scores import as_scores, margin_threshold
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError

# What is measured on the answers of a model.
Measured: TypeAlias = Literal["auto", "logit_margin", "cross_entropy", "residual", "normality"]
# The method that a model is asked by.
Method: TypeAlias = Literal["score_samples", "predict_proba", "decision_function", "predict"]

_ROUNDING = 1e-3  # of sums of probabilities, in half precision
_FEW = 5  # classes that a message lists
# Pairs of classes of which the second is meant by "the probability": 1 against 0 or -1.
_YES = ((0, 1), (-1, 1))


@dataclass(frozen=True)
class _Asked:
    """A model, the method that it was asked by, inputs and its answer."""

    model: object
    method: Method
    x: object
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
        named = getattr(self.model, "__name__", "predict")
        return named == "predict" and _type_of(self.estimator) == "classifier"

    @property
    def is_regressor(self) -> bool:
        """Whether the model says that it predicts numbers."""
        return _type_of(self.estimator) == "regressor"


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
    asked = _asked_of(model, X, own=callable(signal))
    if callable(signal):
        name = str(getattr(signal, "__name__", type(signal).__name__))
        measured = _called(f"signal {name}", signal, asked.answer, y)
        values = np.asarray(checks.numbers(measured, name="scores"), dtype=np.float64)
        checks.check_length(np.atleast_1d(values), examples=size_of(y), name="scores")
        return as_scores(values, ids=ids, attack=name)
    checks.choice(signal, name="signal", allowed=Measured)
    if asked.method == "score_samples":
        _check_signal(asked, signal, "normality")
        normal = np.asarray(checks.numbers(asked.answer, name="score_samples"), dtype=np.float64)
        return as_scores(normal.ravel(), ids=ids, attack="normality")
    if y is None:
        raise InputTypeError(f"{type(asked.model).__name__} is scored by its targets: y is missing")
    if asked.method == "decision_function":
        if signal == "cross_entropy":
            kind = type(model).__name__
            raise OptionError(f"{kind} has no predict_proba, which {signal!r} needs")
        _check_signal(asked, signal, "logit_margin")
        return _by_decision(asked, y, ids)
    if asked.method == "predict":
        return _by_prediction(asked, y, signal, ids)
    return _by_chances(asked, y, signal, ids)


def score_samples_of(model: object) -> Callable[[Any], object] | None:
    """Return how usual examples are to a model that knows no classes; None for other models."""
    if hasattr(model, "classes_"):
        return None
    ask: Callable[[Any], object] | None = getattr(model, "score_samples", None)
    return ask


def _asked_of(model: object, x: object, *, own: bool) -> _Asked:
    """Ask a model about inputs, by its most informative method.

    A signal of one's `own` sees the decisions of detectors of outliers.
    """
    methods: Sequence[Method] = ("predict_proba", "decision_function", "predict")
    if score_samples_of(model) is not None and not own:
        methods = ("score_samples",)
    for method in methods:
        ask = getattr(model, method, None)
        if not callable(ask):
            continue
        if method == "decision_function" and not own and not hasattr(model, "classes_"):
            if _type_of(model) == "classifier":
                raise InputError(
                    f"{type(model).__name__} is a classifier without classes_: fit it to the "
                    "training set first"
                )
            raise InputTypeError(
                f"{type(model).__name__} has a decision_function, but neither classes_ nor "
                "score_samples: say what its values mean, by signal=lambda values, y: values if "
                "they are larger for usual examples, or -values if larger for outliers, as of PyOD"
            )
        return _Asked(model, method, x, _answer(model, ask=ask, x=x))
    if not callable(model):
        raise InputTypeError(
            f"{type(model).__name__} has neither predict_proba nor decision_function, "
            "score_samples or predict: pass a function of X that returns probabilities, shape "
            "(m, classes), or predicted numbers, shape (m,)"
        )
    return _Asked(model, "predict", x, _answer(model, ask=model, x=x))


def _check_signal(asked: _Asked, signal: str, only: str) -> None:
    """Refuse a signal that has no meaning for such answers."""
    if signal in {"auto", only}:
        return
    kind = type(asked.model).__name__
    raise OptionError(
        f"signal={signal!r} has no meaning for what {kind} answers ({asked.method}): leave it out, "
        f"for {only!r}, or pass a function of the answer and y"
    )


def _by_prediction(asked: _Asked, y: ArrayInput, signal: str, ids: ArrayInput | None) -> Scores:
    """Score by what `predict` or a function returned: probabilities, numbers or classes."""
    if _is_tables(asked.answer):
        return _by_chances(asked, y, signal, ids)
    answer = targets_of(asked.answer, name="what the model predicts")
    targets = targets_of(y, name="y")
    if answer.ndim not in {1, 2}:
        raise InputError(
            "the model must answer probabilities of shape (m, classes), or numbers of shape (m,), "
            f"got {answer.shape}"
        )
    checks.check_length(answer, examples=len(targets), name="what the model predicts")
    if asked.is_regressor or signal == "residual":
        _check_signal(asked, signal, "residual")
        return _by_residual(answer, targets, ids)
    if answer.dtype.kind not in "biuf" or asked.predicts_classes:
        return _by_right_class(answer, targets, ids)
    if answer.ndim == 2 and (targets.ndim == 1 or _are_indicators(targets)):
        return _by_chances(asked, y, signal, ids)
    if answer.ndim == 2:
        return _by_residual(answer, targets, ids)
    second = _second_class(asked.classes, targets)
    if second is not None and (answer >= 0).all() and (answer <= 1).all():
        chance = answer.astype(np.float64)
        own = (targets == second).astype(np.int64)
        return _measured(np.column_stack([1 - chance, chance]), own, signal, ids)
    if targets.dtype.kind not in "biuf":
        raise InputError(
            f"the model predicts numbers such as {answer[0]:g}, and y holds classes such as "
            f"{checks.shown(targets.tolist()[0])}: pass a function that returns probabilities, "
            "shape (m, classes)"
        )
    if second is not None and signal == "auto":
        # Read as numbers here, and as probabilities in a call whose answers happen to be within
        # 0 and 1, scores of two calls would not compare.
        raise InputError(
            f"y has two classes, and the model answers from {answer.min():g} to {answer.max():g}: "
            "pass a function that returns probabilities or, if it predicts numbers, "
            'signal="residual"'
        )
    _check_signal(asked, signal, "residual")
    return _by_residual(answer, targets, ids)


def _by_residual(answer: AnyArray, targets: AnyArray, ids: ArrayInput | None) -> Scores:
    """Score by minus the absolute difference of prediction and target, summed over targets."""
    predicted = np.asarray(checks.numbers(answer, name="predictions"), dtype=np.float64)
    known = np.asarray(checks.numbers(targets, name="y"), dtype=np.float64)
    if predicted.shape != known.shape:
        raise InputError(
            f"the model predicts numbers of shape {predicted.shape}, and y has shape {known.shape}"
        )
    residuals = np.abs(known - predicted)
    if known.ndim == 2:
        residuals = residuals.sum(axis=1)
    return as_scores(0.0 - residuals, ids=ids, attack="residual")


def _by_right_class(answer: AnyArray, targets: AnyArray, ids: ArrayInput | None) -> Scores:
    """Score by whether the class is predicted, or by how many of several labels are."""
    if answer.shape != targets.shape:
        raise InputError(
            f"the model predicts classes of shape {answer.shape}, and y has shape {targets.shape}"
        )
    right = np.asarray(answer == targets, dtype=np.float64).reshape(len(targets), -1)
    return as_scores(right.sum(axis=1), ids=ids, attack="right_class")


def _second_class(classes: object, targets: AnyArray) -> object:
    """Return the class whose probability a model of two classes answers; None where not known."""
    if targets.ndim != 1:
        return None
    known = set(targets.tolist())
    if classes is not None:
        known = set(labels_of(classes, name="classes_ of the model").tolist())
    for pair in _YES:
        if known <= set(pair):
            return pair[1]
    if len(known) != 2:
        return None
    return sorted(known)[1]


def _by_chances(asked: _Asked, y: ArrayInput, signal: str, ids: ArrayInput | None) -> Scores:
    """Score by probabilities: of classes, or of several labels, whose losses are summed."""
    if signal not in {"auto", "logit_margin", "cross_entropy"}:
        _check_signal(asked, signal, "logit_margin")
    targets = targets_of(y, name="y")
    tables = _tables(asked, targets)
    if tables is not None:
        if signal == "logit_margin":
            raise OptionError(
                "of several labels the losses are summed: leave signal out, or choose one label by "
                "a function that returns its probabilities"
            )
        losses = [_log_chance(*one) for one in tables]
        return as_scores(np.sum(losses, axis=0), ids=ids, attack="summed_losses")
    chances = _probabilities(asked.answer)
    own = _positions(y, classes=asked.classes, columns=chances.shape[1], ids=ids)
    checks.check_length(own, examples=len(chances), name="y")
    return _measured(chances, own, signal, ids)


def _measured(chances: FloatArray, own: IntArray, signal: str, ids: ArrayInput | None) -> Scores:
    """Return log-odds of the class of each example, or the logarithm of its probability."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(chances)
    if signal == "cross_entropy":
        return as_scores(logs[np.arange(own.size), own], ids=ids, attack=signal)
    return as_scores(margin_threshold(logs, own).values, ids=ids, attack="logit_margin")


def _is_tables(answer: object) -> TypeGuard[Sequence[ArrayInput]]:
    """Return whether an answer has a table of probabilities for each of several labels."""
    if not isinstance(answer, list | tuple) or not answer:
        return False
    return all(np.ndim(one) == 2 for one in answer)


def _tables(asked: _Asked, targets: AnyArray) -> list[tuple[FloatArray, IntArray]] | None:
    """Return probabilities and the right column for each of several labels; None for one label."""
    answer = asked.answer
    if _is_tables(answer):
        if targets.ndim == 1:
            targets = targets[:, None]
        if targets.shape[1] != len(answer):
            raise InputError(
                f"the model answers {len(answer)} tables, one for each label, and y has "
                f"{targets.shape[1]} columns: pass y with a column for each"
            )
        classes: Sequence[object] = [None] * len(answer)
        if asked.classes is not None:
            classes = list(asked.classes)
        found = []
        for column, (one, known) in enumerate(zip(answer, classes, strict=True)):
            chances = np.asarray(checks.numbers(one, name="probabilities", least=0), np.float64)
            own = _positions(targets[:, column], classes=known, columns=chances.shape[1], ids=None)
            found.append((chances, own))
        return found
    array = targets_of(answer, name="probabilities")
    if targets.ndim != 2 or array.shape != targets.shape:
        return None
    of_one_label = np.abs(array.sum(axis=1) - 1) <= _ROUNDING
    if of_one_label.all() and array.shape[1] > 1:
        return None
    # a probability for each label by itself
    chances = np.asarray(checks.numbers(array, name="probabilities", least=0, most=1), np.float64)
    there = _indicators(targets).astype(np.int64)
    return [
        (np.column_stack([1 - one, one]), own) for one, own in zip(chances.T, there.T, strict=True)
    ]


def _are_indicators(targets: AnyArray) -> bool:
    """Return whether all targets are 0 or 1."""
    return targets.dtype.kind in "biuf" and bool(np.isin(targets, (0, 1)).all())


def _indicators(targets: AnyArray) -> BoolArray:
    """Read which of several labels each example has: 0 and 1."""
    known = checks.numbers(targets, name="y", least=0, most=1, whole=True)
    return np.asarray(known == 1)


def _log_chance(chances: FloatArray, own: IntArray) -> FloatArray:
    """Return the logarithm of the probability of each example's class."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(chances[np.arange(own.size), own])
    return logs


def _type_of(model: object) -> str:
    """Return what an estimator says that it is, such as a classifier; empty if it says nothing."""
    declared = getattr(model, "_estimator_type", None)
    if declared is None and hasattr(model, "__sklearn_tags__"):
        declared = model.__sklearn_tags__().estimator_type
    return str(declared or "")


def _answer(model: object, ask: Callable[[Any], object], x: object) -> Any:
    """Return what a model answers about inputs."""
    return _called(getattr(model, "__name__", type(model).__name__), ask, x)


def _called(what: str, function: Callable[..., object], *arguments: object) -> Any:
    """Call code that is not ours, and say what it was called with where it fails."""
    try:
        return function(*arguments)
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # anybody's code, given data of any type
        given = " and ".join(type(one).__name__ for one in arguments)
        remedy = "pass data of the type that the fitted model takes"
        if type(error).__name__ == "NotFittedError":
            remedy = "fit it to the training set first"
        raise InputError(
            f"{what} raised {type(error).__name__} when called with {given}: "
            f"{one_line(error).rstrip('.')}; {remedy}"
        ) from error


def _by_decision(asked: _Asked, y: ArrayInput, ids: ArrayInput | None) -> Scores:
    """Score by the values of a decision function, of one column for two classes."""
    kind = type(asked.model).__name__
    answer = checks.numbers(asked.answer, name="decision_function")
    values = np.asarray(answer, dtype=np.float64)
    targets = targets_of(y, name="y")
    if targets.ndim == 2 and values.shape == targets.shape:
        # of several labels each by itself: log-odds that it is there
        there = _indicators(targets)
        losses = np.logaddexp(0.0, np.where(there, -values, values))
        return as_scores(-losses.sum(axis=1), ids=ids, attack="summed_losses")
    classes = labels_of(asked.classes, name=f"classes_ of {kind}")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    logits = values
    if values.ndim == 1:
        logits = np.column_stack([np.zeros(len(values)), values])
    by_class = _one_against_rest(asked.model, x=asked.x, values=logits, classes=classes)
    own = _positions(y, classes=classes, columns=by_class.shape[1], ids=ids)
    return as_scores(margin_threshold(by_class, own).values, ids=ids, attack="logit_margin")


def _one_against_rest(
    model: object, x: object, values: FloatArray, classes: AnyArray
) -> FloatArray:
    """Return a value for each class, where a model may have answered one for each pair of classes.

    Three classes have as many pairs. Whatever the model is wrapped in, its own predictions tell
    which these are: of values of classes the predicted one has the largest, and of values of pairs
    it wins most comparisons.
    """
    count = classes.size
    first, _ = np.triu_indices(count, 1)
    if count < 3 or values.shape[1] != first.size:
        return values
    readings = [_votes(values, count), _votes(-values, count)]
    if count == values.shape[1]:
        if _says_pairs(model):
            return readings[0]
        readings = [values, *readings]
    if len(readings) == 1 or not hasattr(model, "predict"):
        return readings[0]
    answer = labels_of(_answer(model, ask=model.predict, x=x), name="what the model predicts")
    predicted = positions_of(answer, classes)
    return max(readings, key=lambda one: float((one.argmax(1) == predicted).mean()))


def _votes(values: FloatArray, count: int) -> FloatArray:
    """Return how many comparisons each class wins, and by how much, from values of pairs.

    The first class of a pair wins where the value is above 0. Sums of values break ties of wins,
    scaled to less than a third, as scikit-learn does for `decision_function_shape="ovr"`.
    """
    wins, sums = np.zeros((2, len(values), count))
    for column, one, other in zip(values.T, *np.triu_indices(count, 1), strict=True):
        won = column >= 0
        wins[:, one] += won
        wins[:, other] += ~won
        sums[:, one] += column
        sums[:, other] -= column
    scaled: FloatArray = wins + sums / (3 * (np.abs(sums) + 1))
    return scaled


def _says_pairs(model: object) -> bool:
    """Return whether a model, or the one that it wraps, has the option of one-vs-one values."""
    seen: list[object] = []
    inside = [model]
    while inside:
        one = inside.pop()
        if any(one is other for other in seen):
            continue
        seen.append(one)
        if getattr(one, "decision_function_shape", None) == "ovo":
            return True
        names = ("best_estimator_", "estimator_", "final_estimator_")
        inside += [getattr(one, name) for name in names if hasattr(one, name)]
        inside += [step for _, step in list(getattr(one, "steps", ()))[-1:]]
    return False


def _probabilities(answer: ArrayInput) -> FloatArray:
    """Read a model's answer: rows that sum to 1, but for rounding."""
    chances = np.asarray(checks.numbers(answer, name="probabilities", least=0), dtype=np.float64)
    if chances.ndim != 2 or chances.shape[1] < 2 or not chances.size:
        raise InputError(
            f"the model must answer probabilities of shape (m, classes), got {chances.shape}"
        )
    off = np.flatnonzero(np.abs(chances.sum(1) - 1) > _ROUNDING)
    if off.size:
        raise InputError(
            f"probabilities of example {off[0]} sum to {chances[off[0]].sum():g}, not to 1; score "
            "logits by leakbound.attacks.margin_threshold"
        )
    return chances


def _positions(y: object, classes: object, columns: int, ids: ArrayInput | None) -> IntArray:
    """Return the column of each example's class."""
    labels = labels_of(y, name="y")
    names = _columns_of(labels, columns)
    if classes is not None:
        names = labels_of(classes, name="classes_ of the model")
    if names.size != columns:
        raise InputError(f"the model has {names.size} classes_ and answers {columns} probabilities")
    positions = positions_of(labels, names)
    wrong = np.flatnonzero(positions < 0)
    if wrong.size:
        row = int(wrong[0])
        known = None
        if ids is not None:
            known = checks.vector(ids, name="ids", kinds="biufSUOT")
        place = f"index {row}"
        if known is not None and known.size > row:
            place = f"id {known[row]}"
        name = checks.shown(labels.tolist()[row])
        if classes is None and all(isinstance(one, str) for one in labels.tolist()):
            raise InputError(
                f"y has {np.unique(labels).size} different classes and the model "
                f"answers {columns} probabilities, so that their order is not known: pass codes, "
                "numpy.searchsorted(classes, y) with the classes in the order of the columns"
            )
        raise InputError(
            f"y has the class {name} at {place}, which the model was not fitted to "
            f"({wrong.size} such rows, its {columns} classes are {_listed(names)}): drop these "
            "rows, or give classes the names that they had in training"
        )
    return positions


def _columns_of(labels: AnyArray, columns: int) -> AnyArray:
    """Return the classes of columns that have no names: numbers from 0 on, or all words in order.

    In ascending order, as scikit-learn puts them, where there are as many words as columns.
    """
    words = set(labels.tolist())
    if all(isinstance(one, str) for one in words) and len(words) == columns:
        return np.array(sorted(words), dtype=object)
    return np.arange(columns)


def _listed(names: AnyArray) -> str:
    listed = [checks.shown(one) for one in names[:_FEW].tolist()]
    if names.size > _FEW:
        listed.append("…")
    return ", ".join(listed)
