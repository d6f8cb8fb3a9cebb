"""Stacks of boosted trees and other models, and the choice by what they prove on other data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, JsonValue
from leakbound.cuts import CutPolicy, ScoreGame
from leakbound.errors import AbstentionError
from leakbound.panoramia.examples import Examples, Sample

Score: TypeAlias = Callable[[Examples, FloatArray], FloatArray]
"""From examples and what models say of them to the log-odds of membership."""

GRID = (
    {"learning_rate": 0.05, "max_leaf_nodes": 7},
    {"learning_rate": 0.05, "max_leaf_nodes": 15},
    {"learning_rate": 0.1, "max_leaf_nodes": 31},
)
STAGES = (20, 40, 80, 150)  # numbers of trees that compete: where boosting might stop
FEW = 40  # trees on signals alone, which are few


@dataclass(frozen=True, eq=False)
class FittedAttack:
    """What `StackedAttack.fit` returns: an attack that was trained.

    Parameters
    ----------
    options : dict
        Hyper-parameters chosen on the validation data.
    validation : ndarray of float64, shape (n,)
        Scores of the validation data.
    score : callable
        Returns the log-odds of membership of `Examples`, given signals: an array of shape
        (n, models, values), what the models say of them in the order of the training data.
    """

    options: dict[str, JsonValue]
    validation: FloatArray
    score: Score


def choose(
    candidates: Iterable[FittedAttack], member: BoolArray, *, level: float, cuts: CutPolicy
) -> FittedAttack:
    """Return the attack that proves most on validation data; of equals, the one of largest AUC."""

    def merit(candidate: FittedAttack) -> tuple[float, float]:
        try:
            game = ScoreGame(scores=candidate.validation, member=member, sides="member", seed=0)
            proof = cuts.audit(game, level)
        except AbstentionError:
            return 0.0, 0.5
        return proof.bound, proof.ranking.auc

    return max(candidates, key=merit)


def stacked(parts: FloatArray, member: BoolArray) -> Any:
    """Fit a logistic regression on the log-odds that several models give."""
    with needs("ml", "an attack"):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(parts, member)


def log_odds(weights: Any, parts: FloatArray) -> FloatArray:
    """Return what a stack makes of its parts."""
    return np.asarray(weights.decision_function(parts), dtype=np.float64)


def grow(table: FloatArray, train: Sample, options: dict[str, Any], seed: int) -> Any:
    """Boost trees, as many as ever compete."""
    with needs("ml", "an attack"):
        from sklearn.ensemble import HistGradientBoostingClassifier
    trees = HistGradientBoostingClassifier(
        max_iter=max(STAGES),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=Purpose.TREES.derived(seed, bits=32),
        **options,
    )
    return trees.fit(table, train.member)


def after(trees: Any, table: FloatArray, stage: int) -> FloatArray:
    """Return the log-odds after the first few of the trees."""
    stages = trees.staged_decision_function(table)
    return np.asarray(next(islice(stages, stage - 1, None)), dtype=np.float64).ravel()


def prepare(*_: object) -> None:
    """Prepare nothing: all trees see signals."""


def candidates(
    train: Sample, validation: Sample, seed: int, _: None = None
) -> Iterator[FittedAttack]:
    """Boost trees with each setting of a small grid, and offer them at several sizes."""
    signals = flat_signals(validation.signals)
    alone = grow(flat_signals(train.signals), train, GRID[0], seed) if signals.size else None
    for options in GRID:
        trees = grow(columns(train.examples, train.signals), train, options, seed)
        table = columns(validation.examples, validation.signals)
        for stage, logits in enumerate(trees.staged_decision_function(table), start=1):
            if stage in STAGES:
                parts = _parts(logits.ravel(), alone, validation.signals)
                weights = stacked(parts, validation.member)
                score = partial(_score, trees, stage, alone, weights)
                yield FittedAttack({**options, "trees": stage}, log_odds(weights, parts), score)


def _score(
    trees: Any, stage: int, alone: Any, weights: Any, examples: Examples, signals: FloatArray
) -> FloatArray:
    logits = after(trees, columns(examples, signals), stage)
    return log_odds(weights, _parts(logits, alone, signals))


def _parts(logits: FloatArray, alone: Any, signals: FloatArray) -> FloatArray:
    """Put what trees on signals alone say beside what those on everything do, if there are any."""
    if alone is None:
        return logits[:, None]
    return np.column_stack([logits, after(alone, flat_signals(signals), FEW)])


def columns(examples: Examples, signals: FloatArray | None = None) -> FloatArray:
    """Return the rows of the table, with the label and the signals beside them."""
    parts = [examples.x.reshape(len(examples), -1)]
    parts += [] if examples.y is None else [examples.y[:, None]]
    parts += [] if signals is None else [flat_signals(signals)]
    return np.column_stack(parts).astype(np.float64)


def flat_signals(signals: FloatArray) -> FloatArray:
    """Return what each model says, and what each says beyond the one before."""
    both = (signals, np.diff(signals, axis=1))
    return np.concatenate([part.reshape(len(signals), -1) for part in both], axis=1)
