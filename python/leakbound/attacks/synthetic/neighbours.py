"""Nearest points: exact distances, from candidates that single precision finds fast."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.console import track
from leakbound._base.imports import needs
from leakbound._base.types import AnyArray, BoolArray, FloatArray, IntArray

FEW_DIMENSIONS = 5  # up to here a k-d tree is faster than products of matrices
SPARE = 4  # neighbours looked at beyond those asked for: products of matrices round
BLOCK = 8192  # queries at a time, to bound memory
EPSILON = float(np.finfo(np.float32).eps)  # twice the error of a product of single precision
GROUP = 16  # points of which only the nearest is looked at first
PIECE = 256  # queries, and groups of points, whose products stay in a processor's cache


class Neighbours(NamedTuple):
    """Distances of the nearest points of each query, increasing, and which points they are."""

    distances: FloatArray
    indices: IntArray


def nearest(
    points: FloatArray, queries: FloatArray, k: int, *, what: str, shown: bool
) -> Neighbours:
    """Find the k nearest points of each query; of those found, at equal distances the first."""
    with needs("ml", "an attack on synthetic data"):
        from sklearn.neighbors import NearestNeighbors
    count = min(k + SPARE, len(points))
    flat = points.shape[1] <= FEW_DIMENSIONS
    algorithm = "kd_tree" if flat else "brute"
    search = NearestNeighbors(n_neighbors=count, algorithm=algorithm).fit(points)
    groups = _Groups.of(points, k, count)
    starts = range(0, len(queries), BLOCK)
    distances: list[FloatArray] = []
    indices: list[IntArray] = []
    for start in track(starts, what, total=len(starts), shown=shown):
        block = queries[start : start + BLOCK]
        candidates = np.empty((len(block), count), np.int64)
        left = np.arange(len(block))
        if not flat:
            candidates, left = groups.candidates(block)
        if left.size:
            candidates[left] = search.kneighbors(block[left], return_distance=False)
        # Products of matrices round, so that distances of candidates are computed again.
        apart = block[:, None] - points[candidates]
        exact = np.sqrt((apart**2).sum(axis=2))
        order = np.lexsort((candidates, exact), axis=1)[:, :k]
        distances.append(np.take_along_axis(exact, order, 1))
        indices.append(np.take_along_axis(candidates, order, 1))
    return Neighbours(np.concatenate(distances), np.concatenate(indices).astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Points in groups: the nearest are in the groups whose nearest points are nearest.

    A point is a row (-2p, |p|²) of single precision: its product with (q, 1), |p|² - 2p·q, orders
    points as distances from q do. `lot` has the rows in groups, of `size` points each, and `rows`
    one after the other. Asked for are `k` points, and `count` of them with some to spare.
    """

    lot: NDArray[np.float32]
    rows: NDArray[np.float32]
    farthest: float
    k: int
    count: int

    @classmethod
    def of(cls, points: FloatArray, k: int, count: int) -> Self:
        """Put points into groups; the last one is filled up with far ones."""
        squares = (points**2).sum(axis=1)
        width = points.shape[1] + 1
        lot = np.zeros((GROUP, -(-len(points) // GROUP), width), dtype=np.float32)
        rows = lot.reshape(-1, width)
        rows[: len(points)] = np.column_stack([-2 * points, squares])
        rows[len(points) :, -1] = np.finfo(np.float32).max
        return cls(lot, rows, float(np.sqrt(squares.max())), k, count)

    def candidates(self, queries: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the nearest points of queries, and the queries whose k nearest are doubtful."""
        with needs("ml", "an attack on synthetic data"):
            from threadpoolctl import threadpool_limits
        # Products this small are fastest side by side, each on one thread.
        parts = np.split(queries, range(PIECE, len(queries), PIECE))
        with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(self._of_few, parts))
        candidates = np.concatenate([one for one, _ in found])
        doubtful = np.concatenate([doubtful for _, doubtful in found])
        return candidates, np.flatnonzero(doubtful)

    def _of_few(self, queries: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the nearest points of few queries, and whose k nearest are doubtful."""
        size, width = self.lot.shape[1:]
        asked = np.column_stack([queries, np.ones(len(queries))]).astype(np.float32)
        pieces = (self.lot[:, start : start + PIECE] for start in range(0, size, PIECE))
        least = np.concatenate([(piece @ asked.T).min(axis=0) for piece in pieces])
        few = min(self.count, size)
        near = np.argpartition(least.T.copy(), few - 1, axis=1)[:, :few]
        # The points of a group are `size` rows apart.
        members = near[:, :, None] + size * np.arange(GROUP)
        inside = members.reshape(len(asked), -1)
        values = np.stack(
            [self.rows[one] @ query for one, query in zip(inside, asked, strict=True)]
        )
        order = np.argsort(values, axis=1)[:, : self.count]
        ranked = np.take_along_axis(values, order, 1)
        # A product is wrong by less than this: what was not found may be nearer by 4 such errors.
        reach = np.sqrt((queries**2).sum(axis=1)) + self.farthest
        last_asked = ranked[:, min(self.k, self.count) - 1]
        apart = ranked[:, -1] - last_asked
        doubtful = apart < 4 * width * EPSILON * reach**2
        return np.take_along_axis(inside, order, 1), doubtful


def some(rows: AnyArray, most: int, rng: np.random.Generator) -> AnyArray:
    """Return at most so many of the rows, at random and in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]
