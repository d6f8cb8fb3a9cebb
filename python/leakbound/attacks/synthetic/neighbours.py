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

    def at_places(self, places: IntArray) -> "Neighbours":
        """Return some of the neighbours of each query, by their places in its row."""
        return Neighbours(
            distances=np.take_along_axis(self.distances, places, axis=1),
            indices=np.take_along_axis(self.indices, places, axis=1),
        )


def nearest(
    points: FloatArray, queries: FloatArray, k: int, *, what: str, shown: bool
) -> Neighbours:
    """Find the k nearest points of each query; of those found, at equal distances the first."""
    with needs("ml", "an attack on synthetic data"):
        from sklearn.neighbors import NearestNeighbors
    candidate_count = min(k + SPARE_NEIGHBOURS, len(points))
    has_few_dimensions = points.shape[1] <= MOST_TREE_DIMENSIONS
    search_algorithm = "brute"
    if has_few_dimensions:
        search_algorithm = "kd_tree"
    exact_search = NearestNeighbors(n_neighbors=candidate_count, algorithm=search_algorithm)
    exact_search.fit(points)
    point_groups = _PointGroups.of(points, neighbour_count=k, candidate_count=candidate_count)
    block_starts = range(0, len(queries), QUERY_BLOCK)
    neighbours_of_blocks: list[Neighbours] = []
    for block_start in track(block_starts, what, total=len(block_starts), shown=shown):
        query_block = queries[block_start : block_start + QUERY_BLOCK]
        candidate_indices = np.empty((len(query_block), candidate_count), np.int64)
        doubtful_queries = np.arange(len(query_block))
        if not has_few_dimensions:
            candidate_indices, doubtful_queries = point_groups.candidates(query_block)
        if doubtful_queries.size:
            candidate_indices[doubtful_queries] = exact_search.kneighbors(
                query_block[doubtful_queries], return_distance=False
            )
        # Products of matrices round, so that distances of candidates are computed again.
        coordinate_differences = query_block[:, None] - points[candidate_indices]
        exact_distances = np.sqrt((coordinate_differences**2).sum(axis=2))
        nearest_first = np.lexsort((candidate_indices, exact_distances), axis=1)[:, :k]
        candidates_of_block = Neighbours(exact_distances, candidate_indices)
        neighbours_of_blocks.append(candidates_of_block.at_places(nearest_first))
    distances_of_blocks, indices_of_blocks = zip(*neighbours_of_blocks, strict=True)
    return Neighbours(
        distances=np.concatenate(distances_of_blocks),
        indices=np.concatenate(indices_of_blocks).astype(np.int64),
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
            found_by_part = list(pool.map(self._candidates_of_few_queries, query_parts))
        candidates_of_parts, doubts_of_parts = zip(*found_by_part, strict=True)
        is_doubtful_query = np.concatenate(doubts_of_parts)
        return np.concatenate(candidates_of_parts), np.flatnonzero(is_doubtful_query)

    def _candidates_of_few_queries(self, queries: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the nearest points of few queries, and whose k nearest are doubtful."""
        group_count, row_length = self.grouped_rows.shape[1:]
        queries_and_ones = np.column_stack([queries, np.ones(len(queries))])
        query_rows = queries_and_ones.astype(np.float32)
        # 1. The groups whose nearest points are nearest.
        least_products_of_groups = []
        for first_group in range(0, group_count, CACHED_ROWS):
            cached_groups = self.grouped_rows[:, first_group : first_group + CACHED_ROWS]
            least_products_of_groups.append((cached_groups @ query_rows.T).min(axis=0))
        least_products_by_query = np.concatenate(least_products_of_groups).T.copy()
        searched_count = min(self.candidate_count, group_count)
        nearest_groups = np.argpartition(least_products_by_query, searched_count - 1, axis=1)
        searched_groups = nearest_groups[:, :searched_count]
        # 2. The nearest points of these groups, which are `group_count` rows apart.
        searched_points = searched_groups[:, :, None] + group_count * np.arange(GROUP_SIZE)
        searched_points = searched_points.reshape(len(query_rows), -1)
        distance_products = np.empty(searched_points.shape, dtype=np.float32)
        for query_number, query_row in enumerate(query_rows):
            distance_products[query_number] = self.rows[searched_points[query_number]] @ query_row
        nearest_first = np.argsort(distance_products, axis=1)[:, : self.candidate_count]
        searched = Neighbours(distance_products, searched_points)
        candidate_products, candidate_indices = searched.at_places(nearest_first)
        # 3. A product is wrong by less than this: what was not found may be nearer by 4 such
        #    errors.
        asked_count = min(self.neighbour_count, self.candidate_count)
        products_of_last_asked = candidate_products[:, asked_count - 1]
        gap_to_last_candidate = candidate_products[:, -1] - products_of_last_asked
        query_norms = np.sqrt((queries**2).sum(axis=1))
        product_errors = row_length * SINGLE_EPSILON * (query_norms + self.largest_norm) ** 2
        return candidate_indices, gap_to_last_candidate < 4 * product_errors


def random_rows(rows_to_draw_from: AnyArray, most_rows: int, rng: np.random.Generator) -> AnyArray:
    """Return at most so many of the rows, at random and in their order."""
    if len(rows_to_draw_from) <= most_rows:
        return rows_to_draw_from
    return rows_to_draw_from[np.sort(rng.choice(len(rows_to_draw_from), most_rows, replace=False))]
