"""A trained model and its two sets in, a lower bound out."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from leakbound import attacks
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput
from leakbound.audits.random_split import RandomSplit
from leakbound.audits.road import audit
from leakbound.claims import Claim
from leakbound.errors import InputTypeError
from leakbound.results import AuditResult


def audit_model(
    model: Any,
    *,
    train: Any,
    test: Any,
    signal: str | Callable[[Any, Any], ArrayInput] = "logit_margin",
    claim: Claim | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> AuditResult:
    """Score a model's training and test examples and audit the random split between them.

    Short for the scores of both sets, then ``audit(scores, RandomSplit(member, strata=classes))``.
    Call these yourself for groups, several attacks, canaries, ids or another design.

    Parameters
    ----------
    model : estimator, callable or torch.nn.Module
        What `leakbound.attacks.score` takes, or a network, as for `leakbound.torch.score`.
    train : tuple of inputs and targets; for a network also a Dataset or DataLoader
        The examples that the model was trained on, all of them or a random part. For a loader
        that shuffles, pass its dataset.
    test : as `train`
        The examples that the split left out: training used them for nothing, as early stopping.
    signal : str or callable
        What is measured of each example: see `leakbound.attacks.score`, and for a network
        `leakbound.torch.score`.
    claim, confidence, seed : optional
        As for `audit`.

    Returns
    -------
    AuditResult
        The bound, for replacing one training example by another. InputTypeError is raised if
        `train` or `test` is not a pair and the model is no network.

    Notes
    -----
    The split must have been random, with or without stratification by class: examples are compared
    within their class wherever classes are given, which is valid for both. Where they are not (a
    callable `signal`, several labels for an example, a loader), the split must not have been
    stratified.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(400, 2)), np.ones(400, dtype=int)
    >>> train, test = (x[:200], y[:200]), (x[200:], y[200:])
    >>> def memorises(rows):
    ...     return [[0.1, 0.9] if row in train[0] else [0.5, 0.5] for row in rows]
    >>> lb.audit_model(memorises, train=train, test=test).bound > 3
    True
    """
    inside, outside = (
        _scores(model, data, name, signal) for data, name in ((train, "train"), (test, "test"))
    )
    member = np.repeat([True, False], [len(inside), len(outside)])
    pairs = isinstance(train, tuple) and isinstance(test, tuple)
    classes = np.concatenate([np.asarray(train[1]), np.asarray(test[1])]) if pairs else member
    # Stratified or not: given the classes' numbers of members, the split is random within classes.
    stratified = pairs and isinstance(signal, str) and classes.ndim == 1
    return audit(
        np.concatenate([inside.values, outside.values]),
        RandomSplit(member, strata=classes if stratified else None),
        claim=claim,
        confidence=confidence,
        seed=seed,
    )


def _scores(model: Any, data: Any, name: str, signal: Any) -> Scores:
    """Score one of the two sets."""
    torch = sys.modules.get("torch")  # a network exists only where torch was imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from leakbound.torch import score

        return score(model, data, signal=signal)
    if not isinstance(data, tuple) or len(data) != 2:
        message = f"{name} must be a tuple of inputs and classes, got {type(data).__name__}"
        raise InputTypeError(message)
    return attacks.score(model, *data, signal=signal)
