"""Noisy marginals: how much they see of a member, how much noise they add, and what they return."""

from typing import Any

import numpy as np
import pytest

from census import CATEGORICAL, COLUMNS, Census
from noisy_marginals import NoisyMarginals

CODES = (*CATEGORICAL, len(COLUMNS))
DOMAIN = ((18, 90), (1, 16), (0, 1), (0, 5), (1, 99), (200, 5000), (0, 10_000), (0, 1))
PEOPLE = Census().sample(600, seed=0)
TABLE = np.column_stack([PEOPLE.values, np.asarray(PEOPLE.labels)])
LOUD = 1e9
"""An ε at which there is no noise."""


def counts(table: np.ndarray[Any, Any], **options: Any) -> np.ndarray[Any, Any]:
    how = {"domain": DOMAIN, "categorical": CODES, "centre": 7, **options}
    return np.concatenate([one.ravel() for one in NoisyMarginals(**how).fit(table).learnt.values()])


def test_replacing_a_member_moves_two_cells_of_each_table_by_one() -> None:
    before = counts(TABLE, epsilon=LOUD)
    moved = []
    for row in range(50):
        other = TABLE.copy()
        other[row] = TABLE[599 - row]
        moved.append(np.abs(counts(other, epsilon=LOUD) - before).sum())
    assert before.sum() == 7 * 600
    assert 0 < max(moved) <= 2 * 7


def test_noise_is_geometric_on_both_sides_at_the_rate_of_the_guarantee() -> None:
    """With 7 tables and ε = 2, P(k) is proportional to exp(-|k|/7)."""
    full = np.repeat(TABLE[:1], 5_000, axis=0)
    clean = counts(full, epsilon=LOUD) > 0
    noise = np.array([counts(full, epsilon=2.0, seed=seed)[clean] for seed in range(400)]) - 5_000
    ratio = np.exp(-1 / 7)
    assert abs(noise.mean()) < 5 * noise.std() / np.sqrt(noise.size)
    assert noise.var() == pytest.approx(2 * ratio / (1 - ratio) ** 2, rel=0.1)
    assert (noise == 0).mean() == pytest.approx((1 - ratio) / (1 + ratio), abs=0.02)


def test_samples_resemble_the_members_within_the_domain() -> None:
    how: dict[str, Any] = {"domain": DOMAIN, "categorical": CODES, "centre": 7}
    fitted = NoisyMarginals(**how, epsilon=LOUD).fit(TABLE)
    made = fitted.sample(4000, seed=1).values
    assert np.array_equal(made, fitted.sample(4000, seed=1).values)
    for column, (low, high) in enumerate(DOMAIN):
        assert low <= made[:, column].min() <= made[:, column].max() <= high
    assert made.mean(axis=0)[[0, 1, 7]] == pytest.approx(TABLE.mean(axis=0)[[0, 1, 7]], rel=0.1)
    rich, poor = made[made[:, 7] == 1], made[made[:, 7] == 0]
    assert rich[:, 1].mean() > poor[:, 1].mean() + 0.5
