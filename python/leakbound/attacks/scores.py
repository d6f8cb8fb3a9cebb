"""Scores from what one model answers, or from what it and reference models answer."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base import checks
from leakbound._base.alignment import size_of
from leakbound._base.console import one_line
from leakbound._base.labels import labels_of, positions_of
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError

# What is measured on the answers of a classifier.
Answers: TypeAlias = Literal["logit_margin", "cross_entropy"]

_ROUNDING = 1e-3  # of sums of probabilities, in half precision
_FEW = 5  # classes that a message lists


def score(
    model: object,
    X: object,  # noqa: N803 (as in scikit-learn)
    y: ArrayInput,
    *,
    signal: Answers | Callable[[Any, Any], ArrayInput] = "logit_margin",
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how much a model acts as if it was trained on them, asking it once.

    Where the model is sure scores are ±inf, which are ties among members.

    Parameters
    ----------
    model : estimator or callable
        A fitted classifier of scikit-learn or like it, with a method `predict_proba`, or else
        `decision_function`, whose values are taken for log-odds (values of pairs of classes, as of
        an `SVC` with ``decision_function_shape="ovo"``, are put together for each class first); or
        a function that takes `X` and returns probabilities of shape (m, classes), such as a model
        behind an interface.
    X : array-like or whatever the model takes
        Inputs of m examples. If an answer depends on the other examples of its call, score members
        and others in one call and in random order, as `leakbound.audit_model` does.
    y : array-like, shape (m,) or (m, 1)
        Their classes, numbers or text, none missing: of those in the model's `classes_`, if it has
        some; else from 0 to classes - 1. A list, an array, a tensor, or a column or frame of one
        column of pandas, polars or Arrow. For a callable `signal`, anything it takes.
    signal : str or callable
        "logit_margin": :math:`\log p_y-\log\sum_{j\ne y}p_j`, the log-odds of the class, which
        orders examples as the loss does and keeps those apart whose :math:`p_y` rounds to 1;
        "cross_entropy": :math:`\log p_y`, minus the loss; or a function of the model's answer, of
        any shape, and `y`, which returns m numbers, higher for likelier members.
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
    ask: Any = getattr(model, "predict_proba", getattr(model, "decision_function", model))
    if not callable(ask):
        raise InputTypeError(
            f"{type(model).__name__} has neither predict_proba nor decision_function: pass a "
            "function of X that returns probabilities. For a regressor pass model.predict and "
            "signal=lambda answer, y: -abs(answer - y)"
        )
    if callable(signal):
        name = str(getattr(signal, "__name__", type(signal).__name__))
        measured = _asked(f"signal {name}", signal, _answer(model, ask=ask, x=X), y)
        values = np.asarray(checks.numbers(measured, name="scores"), dtype=np.float64)
        checks.check_length(np.atleast_1d(values), examples=size_of(y), name="scores")
        return as_scores(values, ids=ids, attack=name)
    checks.choice(signal, name="signal", allowed=Answers)
    if not hasattr(model, "predict_proba") and ask is not model:
        return _by_decision(model, x=X, y=y, signal=signal, ids=ids)
    chances = _probabilities(_answer(model, ask=ask, x=X))
    own = _positions(y, classes=getattr(model, "classes_", None), columns=chances.shape[1], ids=ids)
    checks.check_length(own, examples=len(chances), name="y")
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(chances)
    if signal == "cross_entropy":
        return as_scores(logs[np.arange(own.size), own], ids=ids, attack=signal)
    return as_scores(margin_threshold(logs, own).values, ids=ids, attack=signal)


def margin_threshold(
    logits: ArrayInput, labels: ArrayInput, *, ids: ArrayInput | None = None
) -> Scores:
    r"""Score examples by the log-odds of their class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`.

    Orders examples as the loss does, and keeps those apart whose losses round to 0.

    Parameters
    ----------
    logits : array-like, shape (m, classes)
        Unnormalised log-probabilities from the audited model, at least two classes, not NaN.
    labels, ids : array-like of shape (m,)
        Class of each example, from 0 to classes - 1; ids as for `score`.

    Examples
    --------
    >>> margin_threshold([[2.0, 0.0], [0.0, 1.0]], [0, 0]).values.tolist()
    [2.0, -1.0]
    """
    z = _table(logits, "logits")
    if z.shape[1] < 2:
        raise InputError(f"logits must have at least two columns, got {z.shape[1]}")
    own = checks.numbers(labels, name="labels", least=0, most=z.shape[1] - 1, whole=True).ravel()
    checks.check_length(own, examples=len(z), name="labels")
    rows = np.arange(len(z))
    own = own.astype(np.intp)
    others = z.copy()
    others[rows, own] = -np.inf
    with np.errstate(invalid="ignore"):  # two infinite logits have no margin: refused as NaN
        margins = z[rows, own] - np.logaddexp.reduce(others, axis=1)
    return as_scores(margins, ids=ids, attack="margin_threshold")


def offline_lira(
    margins: ArrayInput,
    reference_margins: ArrayInput,
    *,
    trained_on: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how far their log-odds stand out from those under models without them.

    The score is :math:`(\phi_i-\mu_i)/\sigma`, with the mean of the log-odds of example i over the
    reference models that were not trained on it, and one standard deviation for all examples,
    pooled from the spread of each about its own mean, as the paper advises. The paper's
    :math:`1-\Pr[Z>\phi_i]=\Phi((\phi_i-\mu_i)/\sigma)` gives the same order, but rounds to 1
    from 8.3 standard deviations on, where the scores here stay apart.

    Parameters
    ----------
    margins : array-like, shape (m,)
        Log-odds of each example under the audited model, such as ``score(...)`` of
        `leakbound.torch`; not NaN, may be ±inf.
    reference_margins : array-like, shape (models, m)
        The same under each reference model, finite.
    trained_on : array-like of bool, shape (models, m), optional
        Which reference was trained on which example: it is left out there. By default none was.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570:
    the offline attack, and the variance shared by all examples.

    Examples
    --------
    >>> offline_lira([3.0, 1.0], [[0.0, 0.0], [2.0, 2.0]]).values.round(3).tolist()
    [1.414, 0.0]
    """
    own = checks.check_scores(margins, name="margins")
    references = _table(reference_margins, name="reference_margins", columns=own.size)
    infinite = np.argwhere(np.isinf(references))
    if infinite.size:
        row, column = infinite[0]
        raise OptionError(
            f"reference_margins must be finite, got ±inf in row {row}, column {column}"
        )
    without = _outside(trained_on, references.shape)
    # Mean and spread of each example over the models without it.
    counts = without.sum(0)
    means = np.where(without, references, 0).sum(0) / counts
    squares = np.where(without, (references - means) ** 2, 0).sum()
    freedom = (counts - 1).sum()
    if not freedom or not squares:
        raise OptionError(
            "reference_margins have no spread about their means: give different models"
        )
    return as_scores((own - means) / np.sqrt(squares / freedom), ids=ids, attack="offline_lira")


def rmia(
    log_probabilities: ArrayInput,
    reference_log_probabilities: ArrayInput,
    *,
    offline_scale: float = 0.3,
    trained_on: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how much their probability gains from training.

    The score is the logarithm of :math:`\Lambda(x)=p(x\mid\theta)/p(x)`, where
    :math:`p(x)=\frac12((1+a)\,\bar p(x)+1-a)` stands for the average over models with and without
    x, from the mean :math:`\bar p` over reference models without it. The paper's score, the share
    of a population's examples z with :math:`\Lambda(x)\ge\gamma\Lambda(z)`, grows with it, whatever
    population and γ are, in as many steps as there are z; this one has no such ties.

    Parameters
    ----------
    log_probabilities : array-like, shape (m,)
        Log-probability that the audited model gives the label of each example, at most 0. For
        sequences, minus the mean loss per token.
    reference_log_probabilities : array-like, shape (models, m)
        The same under each reference model.
    offline_scale : float
        The a above, in [0, 1): 1 means that training on x does not change p(x), 0 that it makes it
        certain.
    trained_on, ids : optional
        As for `offline_lira`.

    References
    ----------
    S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", 2024,
    arXiv:2312.03262: the relative attack in its offline form.

    Examples
    --------
    >>> import numpy as np
    >>> rmia(np.log([0.9, 0.5]), np.log([[0.2, 0.5]])).values.round(3).tolist()
    [0.629, -0.3]
    """
    scale = checks.real(offline_scale, name="offline_scale", least=0, below=1)
    own = checks.check_scores(log_probabilities, name="log_probabilities")
    references = _table(
        reference_log_probabilities, name="reference_log_probabilities", columns=own.size
    )
    for values, name in ((own, "log_probabilities"), (references, "reference_log_probabilities")):
        if values.max() > 0:
            raise OptionError(
                f"{name} must be at most 0, got {values.max():g}: logarithms, or minus losses"
            )
    without = _outside(trained_on, references.shape)
    # The mean of probabilities, from their logarithms: references near 0 are never divided by.
    mean = np.logaddexp.reduce(np.where(without, references, -np.inf), axis=0)
    mean -= np.log(without.sum(0))
    both = np.logaddexp(np.log1p(scale) + mean, np.log1p(-scale))
    marginal = both - np.log(2)
    return as_scores(np.asarray(own - marginal), ids=ids, attack="rmia")


def as_scores(values: FloatArray, ids: ArrayInput | None, attack: str) -> Scores:
    """Return values with their ids and the name of the attack."""
    scores = checks.check_scores(values, name=attack)
    labels: AnyArray = np.arange(values.size)
    if ids is not None:
        labels = checks.vector(ids, name="ids", kinds="biufSUOT")
    checks.check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    return Scores(values=scores, ids=labels, signal=attack)


def _table(values: ArrayInput, name: str, columns: int | None = None) -> FloatArray:
    """Read a table with a row for each model and a column for each example."""
    array = np.atleast_2d(checks.numbers(values, name=name).astype(np.float64, copy=False))
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} must have a row for each model, got shape {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise InputError(f"{name} has {array.shape[1]} columns and there are {columns} examples")
    return array


def _answer(model: object, ask: Callable[[Any], Any], x: object) -> Any:
    """Return what a model answers about inputs."""
    return _asked(getattr(model, "__name__", type(model).__name__), ask, x)


def _asked(what: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call code that is not ours, and say what it was called with where it fails."""
    try:
        return function(*arguments)
    except (LeakboundError, MemoryError):
        raise
    except Exception as error:  # anybody's code, given data of any type
        given = " and ".join(type(one).__name__ for one in arguments)
        raise InputError(
            f"{what} raised {type(error).__name__} when called with {given}: {one_line(error)}; "
            "pass data of the type that the fitted model takes"
        ) from error


def _by_decision(model: Any, x: Any, y: ArrayInput, signal: str, ids: ArrayInput | None) -> Scores:
    """Score by the values of a decision function, of one column for two classes."""
    kind = type(model).__name__
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise InputTypeError(
            f"{kind} has a decision_function and no classes_, as detectors of outliers have: its "
            "values are no log-odds of a class. Pass signal=lambda values, y: values, to score "
            "examples by how normal they are to the model"
        )
    if signal != "logit_margin":
        raise OptionError(f"{kind} has no predict_proba, which {signal!r} needs")
    answer = _answer(model, ask=model.decision_function, x=x)
    values = np.asarray(checks.numbers(answer, name="decision_function"), dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    logits = values
    if values.ndim == 1:
        logits = np.column_stack([np.zeros(len(values)), values])
    by_class = _one_against_rest(
        model, x=x, values=logits, classes=labels_of(classes, name=f"classes_ of {kind}")
    )
    own = _positions(y, classes=classes, columns=by_class.shape[1], ids=ids)
    return as_scores(margin_threshold(by_class, own).values, ids=ids, attack=signal)


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
        steps = list(getattr(one, "steps", ()))
        inside += [step for _, step in steps[-1:]]
    return False


def _probabilities(answer: Any) -> FloatArray:
    """Read a model's answer: rows that sum to 1, but for rounding."""
    if isinstance(answer, list | tuple) and answer and np.ndim(answer[0]) == 2:
        raise InputError(
            f"the model answers {len(answer)} tables: score one, by a function returning it"
        )
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
    names: AnyArray = np.arange(columns)
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
        raise InputError(
            f"y has the class {name} at {place}, which the model was not fitted to "
            f"({wrong.size} such rows, its {columns} classes are {_listed(names)}): drop these "
            "rows, or give classes the names that they had in training"
        )
    return positions


def _listed(names: AnyArray) -> str:
    listed = [checks.shown(one) for one in names[:_FEW].tolist()]
    if names.size > _FEW:
        listed.append("…")
    return ", ".join(listed)


def _outside(trained_on: ArrayInput | None, shape: tuple[int, int]) -> BoolArray:
    """Read which models were not trained on which examples."""
    if trained_on is None:
        return np.ones(shape, dtype=np.bool_)
    known = np.atleast_2d(
        checks.numbers(trained_on, name="trained_on", least=0, most=1, whole=True)
    )
    if known.shape != shape:
        raise InputError(f"trained_on has shape {known.shape} and the references {shape}")
    covered = np.flatnonzero((known != 0).all(0))
    if covered.size:
        raise OptionError(
            f"every reference was trained on {covered.size} of the examples, the first in column "
            f"{covered[0]}; train each reference on a random half"
        )
    return np.asarray(known == 0)
