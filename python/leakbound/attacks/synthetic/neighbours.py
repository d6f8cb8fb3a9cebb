"""Nearest points: exact distances of candidates that products of matrices find.

Small searches are scikit-learn's. In large ones products of matrices in single precision are
enough to find candidates, and only the largest of each few products is looked at: three times as
fast. What single precision may have missed is searched for again in double precision.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base.extras import needs
from leakbound._base.progress import track
from leakbound._base.types import BoolArray, FloatArray, IntArray

__all__ = ["Neighbours", "nearest"]

FEW_DIMENSIONS = 5
"""Up to here a k-d tree is faster than products of matrices."""
SPARE = 4
"""Neighbours that are looked at beyond those asked for: products of matrices round."""
BLOCK = 8192
"""Queries at a time."""
LARGE = 2**28
"""Pairs of a query and a point from which on single precision finds the candidates."""
TOGETHER = 32
"""Points of which only the nearest is looked at first."""
PRODUCTS = 2**23
"""Products of a query and a point that are held at a time."""
EVEN = 0.01
"""Of points that the last neighbour is farther than, but by no larger share of its squared
distance, any may be left out."""
UNIT = 2.0**-24
"""Rounding of single precision."""

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Distances of the nearest points of each query, increasing, and which points they are."""

    distances: FloatArray
    indices: IntArray


def nearest(
    points: FloatArray, queries: FloatArray, k: int, *, what: str, shown: bool
) -> Neighbours:
    """Find the k nearest points of each query; of those found, at equal distances the first."""
    more = min(k + SPARE, len(points))
    starts = range(0, len(queries), BLOCK)
    few = points.shape[1] <= FEW_DIMENSIONS
    large = len(points) * len(queries) >= LARGE and len(points) >= 2 * TOGETHER * more
    search = _Precise(points, more, "kd_tree" if few else "brute")
    rough = None if few or not large else _Rough.of(points, more)
    found = []
    for start in track(starts, what, total=len(starts), shown=shown):
        block = queries[start : start + BLOCK]
        if rough is None:
            near = _sorted(points, block, search.candidates(block), k)
        else:
            near = _checked(points, block, rough, search, k)
        found.append(near)
    distances, indices = zip(*found, strict=True)
    return Neighbours(np.concatenate(distances), np.concatenate(indices).astype(np.int64))


def _sorted(
    points: FloatArray, queries: FloatArray, candidates: IntArray, k: int
) -> tuple[FloatArray, IntArray]:
    """Return the exact distances of the nearest k of some candidates, and these."""
    exact = np.sqrt(((queries[:, None] - points[candidates]) ** 2).sum(axis=2))
    order = np.lexsort((candidates, exact), axis=1)[:, :k]
    return np.take_along_axis(exact, order, 1), np.take_along_axis(candidates, order, 1)


def _checked(
    points: FloatArray, queries: FloatArray, rough: "_Rough", search: "_Precise", k: int
) -> tuple[FloatArray, IntArray]:
    """Return the nearest k points of each query: precisely where the rough search may be wrong."""
    candidates, beyond = rough.candidates(queries)
    distances, indices = _sorted(points, queries, candidates, k)
    doubtful: BoolArray = beyond < (1 - EVEN) * distances[:, -1] ** 2
    if doubtful.any():
        again = search.candidates(queries[doubtful])
        distances[doubtful], indices[doubtful] = _sorted(points, queries[doubtful], again, k)
    return distances, indices


class _Precise:
    """Candidates by scikit-learn, in double precision."""

    def __init__(self, points: FloatArray, k: int, algorithm: str) -> None:
        with needs("ml", "an attack on synthetic data"):
            from sklearn.neighbors import NearestNeighbors
        self._search = NearestNeighbors(n_neighbors=k, algorithm=algorithm).fit(points)

    def candidates(self, queries: FloatArray) -> IntArray:
        """Return which points are nearest to each query."""
        return np.asarray(self._search.kneighbors(queries, return_distance=False))


@dataclass(frozen=True, eq=False)
class _Rough:
    """Candidates by products of matrices in single precision.

    `table` has the points as columns, less `centre`, and below them minus half their squared
    lengths, so that a product with (q, 1) is the larger, the nearer the point is to q. Points that
    stand `apart` columns from each other are looked at together; there is no point behind the last.
    """

    table: Single
    centre: FloatArray
    length: float
    apart: int
    k: int
    size: int

    @classmethod
    def of(cls, points: FloatArray, k: int) -> "_Rough":
        """Prepare a search for k candidates of each query."""
        size, dimensions = points.shape
        apart = -(-size // TOGETHER)
        centre = points.mean(axis=0)
        centred = points - centre
        squares = (centred**2).sum(axis=1)
        table = np.zeros((dimensions + 1, apart * TOGETHER), dtype=np.float32)
        table[:-1, :size] = centred.T
        table[-1, :size] = squares / -2
        table[-1, size:] = -np.inf
        return cls(table, centre, float(np.sqrt(squares.max())), apart, k, size)

    def candidates(self, queries: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return candidates, and the squared distance that all other points have at least."""
        found = [self._of_block(block) for block in self._blocks(queries)]
        candidates, beyond = zip(*found, strict=True)
        return np.concatenate(candidates), np.concatenate(beyond)

    def _blocks(self, queries: FloatArray) -> Iterator[FloatArray]:
        size = max(1, PRODUCTS // self.table.shape[1])
        for start in range(0, len(queries), size):
            yield queries[start : start + size] - self.centre

    def _of_block(self, queries: FloatArray) -> tuple[IntArray, FloatArray]:
        ones = np.ones((len(queries), 1))
        products = np.hstack([queries, ones]).astype(np.float32) @ self.table
        # The k largest products are in the k groups whose largest products are the largest.
        best = products.reshape(len(queries), TOGETHER, self.apart).max(axis=1)
        groups = np.argpartition(best, -self.k, axis=1)[:, -self.k :]
        members = groups[:, :, None] + self.apart * np.arange(TOGETHER)
        members = members.reshape(len(queries), -1)
        near = np.take_along_axis(products, members, axis=1)
        order = np.argpartition(near, -self.k, axis=1)[:, -self.k :]
        least = np.take_along_axis(near, order, axis=1).min(axis=1).astype(np.float64)
        lengths = (queries**2).sum(axis=1)
        # Sums of d + 1 products round by less than (d + 3) units of the sum of their sizes.
        sizes = np.sqrt(lengths) * self.length + self.length**2 / 2
        error = (self.table.shape[0] + 2) * UNIT * sizes
        beyond = lengths - 2 * (least + error)
        return np.take_along_axis(members, order, axis=1), beyond
