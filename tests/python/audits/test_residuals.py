"""Scores less what features explain of them: nothing is taken off that a line says already."""

import numpy as np
import pytest

from leakbound.audits.zero_run.game import beyond_features

M, FEATURES = 1500, 30


def test_what_is_linear_or_noise_is_left_alone() -> None:
    """By chance products, or trees, may come nearer in the first fold of a few."""
    changed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(M, FEATURES))
        scores = (seed % 2) * features @ rng.normal(size=FEATURES) + rng.normal(size=M)
        changed += beyond_features(scores, features, trees=seed % 8 == 0, seed=seed) is not scores
    assert changed <= 2


@pytest.mark.parametrize("seed", range(2))
def test_what_is_bent_is_taken_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(M, FEATURES))
    noise = rng.normal(size=M)
    scores = features @ rng.normal(size=FEATURES) + 3 * features[:, 0] * features[:, 1] + noise
    left = beyond_features(scores, features, seed=seed)
    assert left.std() < 1.3
    assert np.corrcoef(left, noise)[0, 1] > 0.85


@pytest.mark.parametrize("seed", range(2))
def test_what_only_trees_see_is_taken_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(M, 3))
    steps = 4.0 * (np.sin(4 * features[:, 0]) > 0)
    scores = features @ np.array([1.0, 1.0, 1.0]) + steps + rng.normal(size=M)
    without = beyond_features(scores, features, seed=seed)
    left = beyond_features(scores, features, trees=True, seed=seed)
    assert left.std() < 0.8 * without.std()
