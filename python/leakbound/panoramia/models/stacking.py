"""Stacks of boosted trees and other models, and the choice by what they prove on other data."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self, TypeAlias

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
STAGES = (20, 40, 80, 150)
"""Numbers of trees that compete: where boosting might stop."""
FEW = 40
"""Trees on signals alone, which are few."""


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


@dataclass(frozen=True, eq=False)
class Stack:
    """A logistic regression on the log-odds that several models give."""

    model: Any

    @classmethod
    def fit(cls, parts: FloatArray, member: BoolArray) -> Self:
        """Fit the weights."""
        with needs("ml", "an attack"):
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        return cls(make_pipeline(StandardScaler(), LogisticRegression()).fit(parts, member))

    def logits(self, parts: FloatArray) -> FloatArray:
        """Return the log-odds of membership."""
        return np.asarray(self.model.decision_function(parts), dtype=np.float64)


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


def prepare(*_: object) -> None:
    """Prepare nothing: all trees see signals."""


def candidates(
    train: Sample, validation: Sample, seed: int, _: None = None
) -> Iterator[FittedAttack]:
    """Boost trees with each setting of a small grid, and offer them at several sizes."""
    signals = flat_signals(validation.signals)
    alone = Trees.grow(flat_signals(train.signals), train, GRID[0], seed) if signals.size else None
    for options in GRID:
        trees = Trees.grow(columns(train.examples, train.signals), train, options, seed)
        staged = trees.staged(columns(validation.examples, validation.signals))
        for stage, logits in staged.items():
            attack = _Attack.fitted(trees, stage, alone, logits, validation)
            yield FittedAttack(
                {**options, "trees": stage},
                attack.stacked(logits, validation.signals),
                attack.score,
            )


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees, all of them or the first few."""

    model: Any

    @classmethod
    def grow(cls, table: FloatArray, train: Sample, options: dict[str, Any], seed: int) -> Self:
        """Grow them."""
        with needs("ml", "an attack"):
            from sklearn.ensemble import HistGradientBoostingClassifier
        model = HistGradientBoostingClassifier(
            max_iter=max(STAGES),
            l2_regularization=1.0,
            early_stopping=False,
            random_state=Purpose.TREES.derived(seed, bits=32),
            **options,
        )
        return cls(model.fit(table, train.member))

    def staged(self, table: FloatArray) -> dict[int, FloatArray]:
        """Return the log-odds after each number of trees that competes."""
        stages = enumerate(self.model.staged_decision_function(table), start=1)
        return {stage: logits.ravel() for stage, logits in stages if stage in STAGES}

    def logits(self, table: FloatArray, stage: int) -> FloatArray:
        """Return the log-odds after some of the trees."""
        stages = self.model.staged_decision_function(table)
        return np.asarray(next(islice(stages, stage - 1, None)), dtype=np.float64).ravel()


@dataclass(frozen=True, eq=False)
class _Attack:
    """Trees on everything, trees on signals alone if there are any, and their weights."""

    trees: Trees
    stage: int
    alone: Trees | None
    weights: Stack

    @classmethod
    def fitted(
        cls, trees: Trees, stage: int, alone: Trees | None, logits: FloatArray, sample: Sample
    ) -> Self:
        parts = _parts(logits, alone, sample.signals)
        return cls(trees, stage, alone, Stack.fit(parts, sample.member))

    def score(self, examples: Examples, signals: FloatArray) -> FloatArray:
        logits = self.trees.logits(columns(examples, signals), self.stage)
        return self.stacked(logits, signals)

    def stacked(self, logits: FloatArray, signals: FloatArray) -> FloatArray:
        return self.weights.logits(_parts(logits, self.alone, signals))


def _parts(logits: FloatArray, alone: Trees | None, signals: FloatArray) -> FloatArray:
    if alone is None:
        return logits[:, None]
    return np.column_stack([logits, alone.logits(flat_signals(signals), FEW)])


def columns(examples: Examples, signals: FloatArray | None = None) -> FloatArray:
    """Return the rows of the table, with the label and the signals beside them."""
    table = examples.x.reshape(len(examples), -1)
    parts = [table] if examples.y is None else [table, examples.y]
    said = [] if signals is None else [flat_signals(signals)]
    return np.column_stack([*parts, *said]).astype(np.float64)


def flat_signals(signals: FloatArray) -> FloatArray:
    """Return what each model says, and what each says beyond the one before."""
    both = (signals, np.diff(signals, axis=1))
    return np.concatenate([part.reshape(len(signals), -1) for part in both], axis=1)
