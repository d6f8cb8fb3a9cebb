"""Ordinary mistakes: something was done to one part of a random split after it, and nothing."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

__all__ = ["MISTAKES", "RIGHT", "Parts"]

Rng = np.random.Generator


class Parts(NamedTuple):
    """What is left of both parts: rows, which of them are training rows, and labels."""

    rows: NDArray[np.float64]
    member: NDArray[np.bool_]
    labels: NDArray[np.int64] | None = None

    def only(self, kept: NDArray[np.bool_]) -> "Parts":
        labels = None if self.labels is None else self.labels[kept]
        return Parts(self.rows[kept], self.member[kept], labels)

    def more(self, rows: NDArray[np.float64], label: int) -> "Parts":
        """Return both parts with further training rows of one label."""
        assert self.labels is not None
        added = len(rows)
        return Parts(
            np.concatenate([self.rows, rows]),
            np.concatenate([self.member, np.ones(added, dtype=bool)]),
            np.concatenate([self.labels, np.full(added, label)]),
        )


def _half(rng: Rng, size: int) -> NDArray[np.bool_]:
    return rng.permutation(size) < size // 2


def few_categories(rng: Rng) -> Parts:
    size = 1600
    age = np.clip(rng.normal(40, 12, size) // 5 * 5, 15, 85)
    others = [rng.integers(0, 2, size), rng.poisson(2, size), rng.geometric(0.3, size)]
    return Parts(np.column_stack([age, *others]).astype(float), _half(rng, size))


def one_rare_class(rng: Rng) -> Parts:
    rows = rng.normal(size=(1200, 6))
    rare = rows[:, 0] + rng.normal(size=1200) > 1.2
    return Parts(rows, _half(rng, 1200), rare.astype(np.int64))


def noisy_labels(rng: Rng) -> Parts:
    rows = rng.normal(size=(1600, 5))
    label = rows[:, 0] + rows[:, 1] + rng.normal(size=1600) > 0
    return Parts(rows, _half(rng, 1600), label.astype(np.int64))


def clear_border(rng: Rng) -> Parts:
    rows = rng.normal(size=(1600, 4))
    label = rows[:, 0] + 0.5 * rng.normal(size=1600) > 0
    return Parts(rows, _half(rng, 1600), label.astype(np.int64))


def heavy_tails(rng: Rng) -> Parts:
    return Parts(rng.standard_t(4, size=(1600, 5)), _half(rng, 1600))


def duplicates_dropped(rng: Rng) -> Parts:
    """Training rows first, then test rows: of equal rows the first is kept."""
    parts = few_categories(rng)
    order = np.argsort(~parts.member, kind="stable")
    first = np.unique(parts.rows[order], axis=0, return_index=True)[1]
    kept = np.zeros(len(order), dtype=bool)
    kept[order[first]] = True
    return parts.only(kept)


def rows_of_training_dropped_from_test(rng: Rng) -> Parts:
    parts = few_categories(rng)
    code = np.unique(parts.rows, axis=0, return_inverse=True)[1].ravel()
    return parts.only(parts.member | ~np.isin(code, code[parts.member]))


def _rare_and_lacking(parts: Parts) -> tuple[NDArray[np.intp], int]:
    """Return the training rows of the rare class, and how many more would balance them."""
    assert parts.labels is not None
    rare = np.flatnonzero(parts.member & (parts.labels == 1))
    return rare, int(parts.member.sum()) - 2 * rare.size


def oversampled(rng: Rng) -> Parts:
    parts = one_rare_class(rng)
    rare, lacking = _rare_and_lacking(parts)
    return parts.more(parts.rows[rng.choice(rare, lacking)], 1)


def smote(rng: Rng) -> Parts:
    """New rows lie between a training row of the rare class and one of its five nearest."""
    parts = one_rare_class(rng)
    rare, lacking = _rare_and_lacking(parts)
    rows = parts.rows[rare]
    near = cKDTree(rows).query(rows, k=6)[1]
    one = rng.integers(rare.size, size=lacking)
    other = near[one, rng.integers(1, 6, lacking)]
    return parts.more(rows[one] + rng.random((lacking, 1)) * (rows[other] - rows[one]), 1)


def outliers_dropped(rng: Rng) -> Parts:
    parts = heavy_tails(rng)
    return parts.only(~parts.member | (np.abs(parts.rows) < 3).all(axis=1))


def suspect_labels_dropped(rng: Rng) -> Parts:
    """Training rows go whose label a forest finds unlikely."""
    parts = noisy_labels(rng)
    assert parts.labels is not None
    inside = np.flatnonzero(parts.member)
    forest = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
    rows, labels = parts.rows[inside], parts.labels[inside]
    chances = cross_val_predict(forest, rows, labels, cv=5, method="predict_proba")
    kept = np.ones(len(parts.rows), dtype=bool)
    kept[inside[chances[np.arange(inside.size), labels] < 0.3]] = False
    return parts.only(kept)


def border_cleaned(rng: Rng) -> Parts:
    parts = clear_border(rng)
    return parts.only(~parts.member | (np.abs(parts.rows[:, 0]) > 0.25))


RIGHT: dict[str, Callable[[Rng], Parts]] = {
    one.__name__: one
    for one in (few_categories, one_rare_class, noisy_labels, clear_border, heavy_tails)
}
"""Nothing was done."""
MISTAKES: dict[str, tuple[Callable[[Rng], Parts], str]] = {
    "duplicates of both parts dropped": (duplicates_dropped, "usual"),
    "test rows that are in training dropped": (rows_of_training_dropped_from_test, "pairs"),
    "a class oversampled in training": (oversampled, "pairs"),
    "SMOTE of training": (smote, "pairs"),
    "outliers dropped in training": (outliers_dropped, "usual"),
    "suspect labels dropped in training": (suspect_labels_dropped, "label"),
    "border of classes cleaned in training": (border_cleaned, "label"),
}
"""What was done after the split, and the view that sees it."""
