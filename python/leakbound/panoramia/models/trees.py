"""Tables: boosted trees on examples and signals, stacked with trees on signals alone."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import FittedAttack

GRID = (
    {"learning_rate": 0.05, "max_leaf_nodes": 7},
    {"learning_rate": 0.05, "max_leaf_nodes": 15},
    {"learning_rate": 0.1, "max_leaf_nodes": 31},
)
STAGES = (20, 40, 80, 150)  # numbers of trees that compete: where boosting might stop
SIGNAL_TREES = 40  # trees on signals alone, which are few


def prepare(*_: object) -> None:
    """Prepare nothing: all trees see signals."""


def candidates(train: Sample, validation: Sample, seed: int, *_: object) -> Iterator[FittedAttack]:
    """Boost trees with each setting of a small grid, and offer them at several sizes."""
    alone = None
    if train.signals.size:
        alone = grown_trees(flat_signals(train.signals), train=train, options=GRID[0], seed=seed)
    for options in GRID:
        trees = grown_trees(
            table_of_examples(train.examples, train.signals),
            train=train,
            options=options,
            seed=seed,
        )
        for stage in STAGES:
            parts = partial(_stacked_tree_log_odds, trees, stage, alone)
            yield FittedAttack.stack(
                {**options, "trees": stage}, parts=parts, validation=validation
            )


def _stacked_tree_log_odds(
    trees: object, stage: int, alone: object, examples: Examples, signals: FloatArray
) -> FloatArray:
    logits = [
        log_odds_of_first_trees(trees, table=table_of_examples(examples, signals), stage=stage)
    ]
    if alone is not None:
        logits.append(
            log_odds_of_first_trees(alone, table=flat_signals(signals), stage=SIGNAL_TREES)
        )
    return np.column_stack(logits)


def grown_trees(
    table: FloatArray, train: Sample, options: Mapping[str, float], seed: int
) -> object:
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


def log_odds_of_first_trees(trees: Any, table: FloatArray, stage: int) -> FloatArray:
    """Return the log-odds after the first few of the trees."""
    stages = trees.staged_decision_function(table)
    return np.asarray(next(islice(stages, stage - 1, None)), dtype=np.float64).ravel()


def table_of_examples(examples: Examples, signals: FloatArray | None = None) -> FloatArray:
    """Return the rows of the table, with the label and the signals beside them."""
    parts = [examples.x.reshape(len(examples), -1)]
    if examples.y is not None:
        parts += [examples.y[:, None]]
    if signals is not None:
        parts += [flat_signals(signals)]
    return np.column_stack(parts).astype(np.float64)


def flat_signals(signals: FloatArray) -> FloatArray:
    """Return what each model says, and what each says beyond the one before."""
    # The difference of target and helper is what training on an example changes.
    both = (signals, np.diff(signals, axis=1))
    return np.concatenate([part.reshape(len(signals), -1) for part in both], axis=1)
