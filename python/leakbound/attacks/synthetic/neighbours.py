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

MOST_TREE_DIMENSIONS = 5  # up to here a k-d tree is faster than products of matrices
SPARE_NEIGHBOURS = 4  # looked at beyond those asked for: products of matrices round
QUERY_BLOCK = 8192  # queries at a time, to bound memory
SINGLE_EPSILON = float(np.finfo(np.float32).eps)  # twice the error of a product
GROUP_SIZE = 16  # points of which only the nearest is looked at first
CACHED_ROWS = 256  # queries, and groups of points, whose products stay in a processor's cache


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
    candidate_count = min(k + SPARE_NEIGHBOURS, len(points))
    few_dimensions = points.shape[1] <= MOST_TREE_DIMENSIONS
    algorithm = "brute"
    if few_dimensions:
        algorithm = "kd_tree"
    exact_search = NearestNeighbors(n_neighbors=candidate_count, algorithm=algorithm).fit(points)
    groups = _PointGroups.of(points, k, candidate_count)
    block_starts = range(0, len(queries), QUERY_BLOCK)
    nearest_distances: list[FloatArray] = []
    nearest_indices: list[IntArray] = []
    for start in track(block_starts, what, total=len(block_starts), shown=shown):
        query_block = queries[start : start + QUERY_BLOCK]
        candidate_indices = np.empty((len(query_block), candidate_count), np.int64)
        doubtful_queries = np.arange(len(query_block))
        if not few_dimensions:
            candidate_indices, doubtful_queries = groups.candidates(query_block)
        if doubtful_queries.size:
            candidate_indices[doubtful_queries] = exact_search.kneighbors(
                query_block[doubtful_queries], return_distance=False
            )
        # Products of matrices round, so that distances of candidates are computed again.
        coordinate_differences = query_block[:, None] - points[candidate_indices]
        exact_distances = np.sqrt((coordinate_differences**2).sum(axis=2))
        nearest_first = np.lexsort((candidate_indices, exact_distances), axis=1)[:, :k]
        nearest_distances.append(np.take_along_axis(exact_distances, nearest_first, axis=1))
        nearest_indices.append(np.take_along_axis(candidate_indices, nearest_first, axis=1))
    return Neighbours(
        distances=np.concatenate(nearest_distances),
        indices=np.concatenate(nearest_indices).astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class _PointGroups:
    """Points in groups: the nearest are in the groups whose nearest points are nearest.

    A point is a row (-2p, |p|²) of single precision: its product with (q, 1), |p|² - 2p·q, orders
    points as distances from q do. `rows` has these rows one after the other, and `grouped_rows`,
    of shape (16, groups, dimensions + 1), the same in groups: points of a group are as many rows
    apart as there are groups. Asked for are `neighbour_count` points, and `candidate_count` of them
    with some to spare.
    """

    grouped_rows: NDArray[np.float32]
    rows: NDArray[np.float32]
    largest_norm: float
    neighbour_count: int
    candidate_count: int

    @classmethod
    def of(cls, points: FloatArray, neighbour_count: int, candidate_count: int) -> Self:
        """Put points into groups; the last one is filled up with far ones."""
        squared_norms = (points**2).sum(axis=1)
        group_count = -(-len(points) // GROUP_SIZE)
        row_length = points.shape[1] + 1
        grouped_rows = np.zeros((GROUP_SIZE, group_count, row_length), dtype=np.float32)
        point_rows = grouped_rows.reshape(-1, row_length)
        point_rows[: len(points)] = np.column_stack([-2 * points, squared_norms])
        point_rows[len(points) :, -1] = np.finfo(np.float32).max
        return cls(
            grouped_rows,
            point_rows,
            largest_norm=float(np.sqrt(squared_norms.max())),
            neighbour_count=neighbour_count,
            candidate_count=candidate_count,
        )

    def candidates(self, queries: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the nearest points of queries, and the queries whose k nearest are doubtful."""
        with needs("ml", "an attack on synthetic data"):
            from threadpoolctl import threadpool_limits
        # Products this small are fastest side by side, each on one thread.
        query_parts = np.split(queries, range(CACHED_ROWS, len(queries), CACHED_ROWS))
        with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
            found_by_part = list(pool.map(self._candidates_of_few, query_parts))
        candidate_indices = np.concatenate([candidates for candidates, _ in found_by_part])
        is_doubtful = np.concatenate([is_doubtful for _, is_doubtful in found_by_part])
        return candidate_indices, np.flatnonzero(is_doubtful)

    def _candidates_of_few(self, queries: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the nearest points of few queries, and whose k nearest are doubtful."""
        group_count, row_length = self.grouped_rows.shape[1:]
        query_rows = np.column_stack([queries, np.ones(len(queries))]).astype(np.float32)
        # 1. The groups whose nearest points are nearest.
        least_products_of_groups = []
        for start in range(0, group_count, CACHED_ROWS):
            cached_groups = self.grouped_rows[:, start : start + CACHED_ROWS]
            least_products_of_groups.append((cached_groups @ query_rows.T).min(axis=0))
        least_products_by_query = np.concatenate(least_products_of_groups).T.copy()
        searched_count = min(self.candidate_count, group_count)
        nearest_groups = np.argpartition(least_products_by_query, searched_count - 1, axis=1)
        searched_groups = nearest_groups[:, :searched_count]
        # 2. The nearest points of these groups, which are `group_count` rows apart.
        searched_points = searched_groups[:, :, None] + group_count * np.arange(GROUP_SIZE)
        searched_points = searched_points.reshape(len(query_rows), -1)
        distance_products = np.empty(searched_points.shape, dtype=np.float32)
        for place, query_row in enumerate(query_rows):
            distance_products[place] = self.rows[searched_points[place]] @ query_row
        nearest_first = np.argsort(distance_products, axis=1)[:, : self.candidate_count]
        candidate_indices = np.take_along_axis(searched_points, nearest_first, axis=1)
        candidate_products = np.take_along_axis(distance_products, nearest_first, axis=1)
        # 3. A product is wrong by less than this: what was not found may be nearer by 4 such
        #    errors.
        last_asked = candidate_products[:, min(self.neighbour_count, self.candidate_count) - 1]
        gap_to_last_candidate = candidate_products[:, -1] - last_asked
        query_norms = np.sqrt((queries**2).sum(axis=1))
        product_errors = row_length * SINGLE_EPSILON * (query_norms + self.largest_norm) ** 2
        return candidate_indices, gap_to_last_candidate < 4 * product_errors


def some(rows: AnyArray, most: int, rng: np.random.Generator) -> AnyArray:
    """Return at most so many of the rows, at random and in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]
