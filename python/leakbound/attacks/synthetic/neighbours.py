"""Nearest points: scikit-learn's search, and of those found the exact distances."""

from dataclasses import dataclass

import numpy as np

from leakbound._base.console import track
from leakbound._base.imports import needs
from leakbound._base.types import FloatArray, IntArray

FEW_DIMENSIONS = 5
"""Up to here a k-d tree is faster than products of matrices."""
SPARE = 4
"""Neighbours that are looked at beyond those asked for: products of matrices round."""
BLOCK = 8192
"""Queries at a time."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Distances of the nearest points of each query, increasing, and which points they are."""

    distances: FloatArray
    indices: IntArray


def nearest(
    points: FloatArray, queries: FloatArray, k: int, *, what: str, shown: bool
) -> Neighbours:
    """Find the k nearest points of each query; of those found, at equal distances the first."""
    with needs("ml", "an attack on synthetic data"):
        from sklearn.neighbors import NearestNeighbors
    algorithm = "kd_tree" if points.shape[1] <= FEW_DIMENSIONS else "brute"
    search = NearestNeighbors(n_neighbors=min(k + SPARE, len(points)), algorithm=algorithm)
    search.fit(points)
    starts = range(0, len(queries), BLOCK)
    found = []
    for start in track(starts, what, total=len(starts), shown=shown):
        block = queries[start : start + BLOCK]
        candidates = np.asarray(search.kneighbors(block, return_distance=False))
        found.append(_sorted(points, block, candidates, k))
    distances, indices = zip(*found, strict=True)
    return Neighbours(np.concatenate(distances), np.concatenate(indices).astype(np.int64))


def _sorted(
    points: FloatArray, queries: FloatArray, candidates: IntArray, k: int
) -> tuple[FloatArray, IntArray]:
    """Return the exact distances of the nearest k of some candidates, and these."""
    exact = np.sqrt(((queries[:, None] - points[candidates]) ** 2).sum(axis=2))
    order = np.lexsort((candidates, exact), axis=1)[:, :k]
    return np.take_along_axis(exact, order, 1), np.take_along_axis(candidates, order, 1)
