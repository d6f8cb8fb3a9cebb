"""Scores from what one model answers, of whatever it is made."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.checks import (
    check_ids,
    check_length,
    check_scores,
    choice,
    numbers,
    vector,
)
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.errors import InputError, InputTypeError

Answers: TypeAlias = Literal["logit_margin", "cross_entropy"]
"""What is measured on the answers of a classifier."""

_ROUNDING = 1e-3  # of sums of probabilities, in half precision


def score(
    model: Any,
    X: Any,  # noqa: N803 (as in scikit-learn)
    y: ArrayInput,
    *,
    signal: Answers | Callable[[Any, Any], ArrayInput] = "logit_margin",
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score examples by how much a model acts as if it was trained on them, asking it once.

    Parameters
    ----------
    model : estimator or callable
        A fitted classifier with a method `predict_proba`, such as those of scikit-learn; or a
        function that takes `X` and returns probabilities of shape (m, classes), such as a model
        behind an interface.
    X : array-like or whatever the model takes
        Inputs of m examples.
    y : array-like, shape (m,)
        Their classes: of those in the model's `classes_`, if it has some; else from 0 to
        classes - 1. For a callable `signal`, anything it takes.
    signal : str or callable
        "logit_margin": :math:`\log p_y-\log\sum_{j\ne y}p_j`, the log-odds of the class, which
        orders examples as the loss does and keeps those apart whose :math:`p_y` rounds to 1;
        "cross_entropy": :math:`\log p_y`, minus the loss; or a function of the model's answer, of
        any shape, and `y`, which returns m numbers, higher for likelier members.
    ids : array-like of shape (m,), optional
        A different number or string for each example; by default 0, 1, …, m - 1.

    Returns
    -------
    Scores
        One for each example; ±inf where the model is sure, which are ties among members.

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
    ask = getattr(model, "predict_proba", model)
    if not callable(ask):
        message = f"model must have predict_proba, or be a function, got {type(model).__name__}"
        raise InputTypeError(message)
    if callable(signal):
        values = np.asarray(numbers(signal(ask(X), y), "scores"), dtype=np.float64)
        check_length(values, len(np.asarray(y)), "scores")
        return as_scores(values, ids, getattr(signal, "__name__", type(signal).__name__))
    choice(signal, "signal", Answers)
    chances = _probabilities(ask(X))
    own = _positions(y, getattr(model, "classes_", None), chances.shape[1])
    check_length(own, len(chances), "y")
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(chances)
    if signal == "cross_entropy":
        mine = np.take_along_axis(logs, own[:, np.newaxis], axis=1)[:, 0]
        return as_scores(mine, ids, signal)
    return as_scores(margin_threshold(logs, own).values, ids, signal)


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
    z = table(logits, "logits")
    if z.shape[1] < 2:
        message = f"logits must have at least two columns, got {z.shape[1]}"
        raise InputError(message)
    own = numbers(labels, "labels", least=0, most=z.shape[1] - 1, whole=True).ravel()
    check_length(own, len(z), "labels")
    mine = own.astype(np.intp)[:, np.newaxis]
    others = z.copy()
    np.put_along_axis(others, mine, -np.inf, axis=1)
    with np.errstate(invalid="ignore"):  # two infinite logits have no margin: refused as NaN
        margins = np.take_along_axis(z, mine, axis=1)[:, 0] - np.logaddexp.reduce(others, axis=1)
    return as_scores(margins, ids, "margin_threshold")


def as_scores(values: FloatArray, ids: ArrayInput | None, attack: str) -> Scores:
    """Return values with their ids and the name of the attack."""
    scores = check_scores(values, attack)
    labels = np.arange(values.size) if ids is None else vector(ids, "ids", kinds="biufSUOT")
    check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    return Scores(scores, labels, attack)


def table(values: ArrayInput, name: str, columns: int | None = None) -> FloatArray:
    """Read a table with one row for each model and one column for each example."""
    array = np.atleast_2d(numbers(values, name).astype(np.float64, copy=False))
    if array.ndim != 2 or not array.size:
        message = f"{name} must have a row for each model, got shape {array.shape}"
        raise InputError(message)
    if columns is not None and array.shape[1] != columns:
        message = f"{name} has {array.shape[1]} columns and there are {columns} examples"
        raise InputError(message)
    return array


def _probabilities(answer: Any) -> FloatArray:
    """Read a model's answer: rows that sum to 1, but for rounding."""
    if isinstance(answer, list | tuple) and answer and np.ndim(answer[0]) == 2:
        message = f"the model answers {len(answer)} tables: score one, by a function returning it"
        raise InputError(message)
    chances = np.asarray(numbers(answer, "probabilities", least=0), dtype=np.float64)
    if chances.ndim != 2 or chances.shape[1] < 2 or not chances.size:
        message = f"the model must answer probabilities of shape (m, classes), got {chances.shape}"
        raise InputError(message)
    off = np.flatnonzero(np.abs(chances.sum(1) - 1) > _ROUNDING)
    if off.size:
        message = (
            f"probabilities of example {off[0]} sum to {chances[off[0]].sum():g}, not to 1; score "
            "logits by leakbound.attacks.margin_threshold"
        )
        raise InputError(message)
    return chances


def _positions(y: ArrayInput, classes: Any, columns: int) -> IntArray:
    """Return the column of each example's class."""
    labels = np.asarray(y).ravel()
    names = np.arange(columns) if classes is None else np.asarray(classes)
    if names.ndim != 1 or names.size != columns:
        message = f"the model has {names.size} classes_ and answers {columns} probabilities"
        raise InputError(message)
    order = np.argsort(names)
    place = np.minimum(np.searchsorted(names, labels, sorter=order), columns - 1)
    positions: IntArray = order[place].astype(np.int64)
    wrong = np.flatnonzero(names[positions] != labels)
    if wrong.size:
        name = labels[wrong[0]].item()
        message = f"y has the class {name!r} at index {wrong[0]}, which the model does not know"
        raise InputError(message)
    return positions
