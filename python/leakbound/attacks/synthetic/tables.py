r"""Tables encoded as points, so that no attack can see which file a record came from.

The distance of two records is the root of a sum over columns, after Gower: numbers differ by
:math:`\operatorname{arsinh}((x - m)/s)` with median m and robust spread s of the column, dates
also, words by 0 or 1, and a missing value differs from every other by 1 at least.

Every statistic here (kinds of columns, medians, spreads, sets of words) is one of *all audited
records together*, with the synthetic and the reference table. Then equal records become one point
with a multiplicity, and points are put into an order of digests of their values. What is computed
from points is therefore a function of the set of audited records, the synthetic table and the
reference. Equal records have equal scores, and no score depends on the file of a record.

References
----------
J. C. Gower, "A general coefficient of similarity and some of its properties", 1971.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import flag, seed_of
from leakbound._base.console import track
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.tables import Column, TableInput, read_columns
from leakbound._base.text import settled, suspicion
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.attacks.synthetic.columns import as_codes, joined, same_columns
from leakbound.errors import InputError, OptionError

NEIGHBOURS = 10  # nearest records that attacks look at
FEW_DIMENSIONS = 5  # up to here a k-d tree is faster than products of matrices
SPARE = 4  # neighbours looked at beyond those asked for: products of matrices round
BLOCK = 8192  # queries at a time, to bound memory
EPSILON = float(np.finfo(np.float32).eps)  # twice the error of a product of single precision
GROUP = 16  # points of which only the nearest is looked at first
PIECE = 256  # queries, and groups of points, whose products stay in a processor's cache
ONE_HOT = 8  # words of a column with a coordinate each; of more, each has a random vector
CODE = 8  # coordinates of this vector
LARGEST = 1e150  # numbers beyond are scaled: their sums would be infinite
NORMAL_IQR = 1.349  # interquartile range of a standard normal distribution


class Coordinates(NamedTuple):
    """Rows of tables put together, as coordinates.

    `sources` has the column that each dimension comes from, `notes` why others are left out.
    """

    rows: FloatArray
    sources: tuple[str, ...]
    notes: tuple[str, ...]


def coordinates(
    tables: Sequence[Mapping[str, Column]], codes: Collection[str], seed: int, *, synthetic: bool
) -> Coordinates:
    """Encode columns of tables, the first of which has the audited records.

    Which columns vary is said by these records alone. If `synthetic`, the second table is the
    synthetic one, and columns of many words need a word that is also there.
    """
    sizes = [next(iter(table.values())).missing.size for table in tables]
    ends = np.cumsum(sizes).tolist()
    blocks, sources, notes = list[FloatArray](), list[str](), list[str]()
    marks = dict[str, Mapping[str, int]]()
    for place, name in enumerate(tables[0]):
        parts = _parts(tables, name, codes)
        column = joined(parts)
        if column.kind == "word" and parts[0].kind not in {"word", "empty"}:
            notes.append(f"column {name!r} is of another kind in other tables: taken as words")
        meant = "" if name in codes else suspicion(parts[0], name)
        if meant:
            notes.append(
                f"column {name!r} {meant}: taken as words; write plain numbers (12.5) or dates "
                f'(2024-05-31), or say columns={{{name!r}: "codes"}}'
            )
        if column.marks:
            marks[name] = column.marks
        end = ends[1] if synthetic else None
        block, why = _encode(column, ends[0], end, Purpose.SYNTHETIC_WORDS.rng(seed, place))
        if why:
            notes.append(f"column {name!r} {why}: ignored")
        else:
            blocks.append(block)
            sources += [name] * block.shape[1]
    notes += _marked(marks)
    if not blocks:
        raise InputError(f"all audited records are equal in every column: {'; '.join(notes)}")
    rows = np.ascontiguousarray(np.concatenate(blocks, axis=1))
    return Coordinates(rows, tuple(sources), tuple(notes))


def digests(
    tables: Sequence[Mapping[str, Column]],
    codes: Collection[str],
    names: Collection[str] | None = None,
) -> NDArray[np.void]:
    """Return digests of rows of tables put together, the same for rows equal in some columns.

    Without `names`, in all columns that vary among the records of the first table.
    """
    records = next(iter(tables[0].values())).missing.size
    contents = list[NDArray[np.uint8]]()
    for name in tables[0]:
        parts = _parts(tables, name, codes)
        if name not in names if names is not None else _flaw(parts[0], records):
            continue
        alike = len({(one.kind, one.is_exact) for one in parts}) == 1
        kept = parts if alike else [joined(parts)]
        contents.append(np.concatenate([one.content for one in kept]))
    known = (record.tobytes() for record in np.column_stack(contents))
    found = b"".join(blake2b(record, digest_size=16).digest() for record in known)
    return np.frombuffer(found, dtype="V16")


def _parts(
    tables: Sequence[Mapping[str, Column]], name: str, codes: Collection[str]
) -> list[Column]:
    """Return a column of each table; text is what it is among the audited records, or words."""
    first, *others = (table[name] for table in tables)
    coded = name in codes
    parts = settled([first], name, codes=coded)
    for other in others:
        parts += settled([other], name, kind=parts[0].kind, codes=coded)
    return [as_codes(one) for one in parts] if coded else parts


def _marked(columns: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a note about words that were read as missing values, if there are any."""
    if not columns:
        return []
    counts = {
        name: " and ".join(f"{mark!r} in {count:,} cells" for mark, count in marks.items())
        for name, marks in columns.items()
    }
    listed = "; ".join(f"column {name!r} has {said}" for name, said in counts.items())
    known = ", ".join(sorted({repr(mark) for marks in columns.values() for mark in marks}))
    return [f"{listed}: read as missing values; missing=[{known}] says so without a warning"]


class Neighbours(NamedTuple):
    """Distances of the nearest points of each query, increasing, and which points they are."""

    distances: FloatArray
    indices: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """What attacks on synthetic data see: audited records, synthetic records and a reference.

    Parameters
    ----------
    points, counts : ndarray, of shapes (points, dimensions) and (points,)
        The different records among the audited ones and the reference, in an order of digests of
        their values, and how many records each of them stands for.
    place : ndarray, shape (N,)
        The point of each audited record.
    synthetic : ndarray, shape (S, dimensions)
        The synthetic records.
    copied : ndarray, shape (S,)
        The point that each synthetic record equals in every column that is compared, or -1.
    columns, sources : tuple of str
        Names of the columns, and the one that each dimension comes from.
    seed : int
        Of whatever attacks draw.
    notes : tuple of str
        Columns that are not compared, or only as words, and why.
    progress : bool
        Whether a bar is shown, on a terminal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = {"age": rng.integers(20, 60, 50), "city": rng.choice(["Bonn", "Nice"], 50)}
    >>> made = {"age": [30, 40], "city": ["Nice", "Bonn"]}
    >>> Tables.of(records, made)
    Tables(50 records, 2 synthetic, 2 columns)
    """

    points: FloatArray
    counts: IntArray
    place: IntArray
    synthetic: FloatArray
    copied: IntArray
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    seed: int
    notes: tuple[str, ...] = ()
    progress: bool = False

    @classmethod
    def of(
        cls,
        records: TableInput,
        synthetic: TableInput,
        *,
        reference: TableInput | None = None,
        categorical: tuple[str, ...] = (),
        seed: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Encode tables of the same columns.

        Parameters
        ----------
        records : table
            All audited records, members and others alike, in any order: a data frame, a mapping
            from names to columns, or an array of shape (N, columns), such as embeddings of texts.
        synthetic : table
            What the generator made; as many rows as there are.
        reference : table, optional
            Other records of the population, chosen independently of membership: a third set,
            never the non-members.
        categorical : tuple of str
            Columns of numbers that are codes; those of an array are named "0", "1", ….
        seed : int, optional
            Of whatever is drawn: vectors of words here, and folds and parts in attacks; by default
            a new one, which the tables record.
        progress : bool
            Whether slow attacks show a progress bar on standard error.
        """
        tables = {"the records": records, "the synthetic table": synthetic}
        if reference is not None:
            tables["the reference"] = reference
        read = {name: read_columns(table, name) for name, table in tables.items()}
        return cls.of_columns(read, categorical=categorical, seed=seed, progress=progress)

    @classmethod
    def of_columns(
        cls,
        read: Mapping[str, Mapping[str, Column]],
        *,
        categorical: tuple[str, ...] = (),
        seed: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Encode tables that were read: records, synthetic table and perhaps a reference."""
        flag(progress, "progress")
        names = same_columns(read)
        seed = seed_of(seed)
        for name in categorical:
            if name not in names:
                raise OptionError(
                    f"categorical names {name!r}, and the columns are {', '.join(names)}"
                )
        # 1. Columns as coordinates; rows of the tables stay in the order given.
        listed = [*read.values()]
        at = coordinates(listed, categorical, seed, synthetic=True)
        own = digests(listed, categorical, {*at.sources})
        records, made, *_ = (next(iter(table.values())).missing.size for table in read.values())
        # 2. Equal records become one point, in an order of digests of their values: no machine's
        #    last bits change it, and it does not depend on the file of a record or its values.
        kept = np.r_[:records, records + made : len(at.rows)]
        distinct, first, point, counts = np.unique(
            own[kept], return_index=True, return_inverse=True, return_counts=True
        )
        # 3. Synthetic records that equal one of them: distances of many words can be 0 by chance.
        copies = own[records : records + made]
        near = np.minimum(np.searchsorted(distinct, copies), distinct.size - 1)
        return cls(
            points=at.rows[kept][first],
            counts=counts.astype(np.int64),
            place=point.astype(np.int64)[:records],
            synthetic=at.rows[records : records + made],
            copied=np.where(distinct[near] == copies, near, -1).astype(np.int64),
            columns=names,
            sources=at.sources,
            notes=at.notes,
            seed=seed,
            progress=progress,
        )

    @cached_property
    def audited(self) -> IntArray:
        """The points that audited records are at, increasing."""
        return np.unique(self.place)

    @cached_property
    def of_synthetic(self) -> Neighbours:
        """The points nearest to each synthetic record, one more of them than `NEIGHBOURS`."""
        most, what = min(NEIGHBOURS + 1, len(self.points)), "Nearest records of synthetic ones"
        return nearest(self.points, self.synthetic, most, what=what, shown=self.progress)

    @cached_property
    def of_audited(self) -> Neighbours:
        """The synthetic records nearest to each point of `audited`."""
        most, queries = min(NEIGHBOURS, len(self.synthetic)), self.points[self.audited]
        what = "Nearest synthetic records"
        return nearest(self.synthetic, queries, most, what=what, shown=self.progress)

    def at_records(self, values: FloatArray) -> FloatArray:
        """Return the values of points, or of `audited` ones, as values of audited records."""
        if values.size == len(self.points):
            return values[self.place]
        return values[np.searchsorted(self.audited, self.place)]

    def __repr__(self) -> str:
        return (
            f"Tables({self.place.size:,} records, {len(self.synthetic):,} synthetic, "
            f"{len(self.columns)} columns)"
        )


def nearest(
    points: FloatArray, queries: FloatArray, k: int, *, what: str, shown: bool
) -> Neighbours:
    """Find the k nearest points of each query; of those found, at equal distances the first."""
    with needs("ml", "an attack on synthetic data"):
        from sklearn.neighbors import NearestNeighbors
        from threadpoolctl import threadpool_limits
    count, flat = min(k + SPARE, len(points)), points.shape[1] <= FEW_DIMENSIONS
    algorithm = "kd_tree" if flat else "brute"
    search = NearestNeighbors(n_neighbors=count, algorithm=algorithm).fit(points)
    in_groups = _in_groups(points, k, count)
    starts = range(0, len(queries), BLOCK)
    distances, indices = list[FloatArray](), list[IntArray]()
    for start in track(starts, what, total=len(starts), shown=shown):
        block = queries[start : start + BLOCK]
        candidates, left = np.empty((len(block), count), np.int64), np.arange(len(block))
        if not flat:
            # Products this small are fastest side by side, each on one thread.
            parts = np.split(block, range(PIECE, len(block), PIECE))
            with threadpool_limits(1), ThreadPoolExecutor(os.cpu_count()) as pool:
                found = list(pool.map(in_groups, parts))
            candidates = np.concatenate([one for one, _ in found])
            left = np.flatnonzero(np.concatenate([doubtful for _, doubtful in found]))
        if left.size:
            candidates[left] = search.kneighbors(block[left], return_distance=False)
        # Products of matrices round, so that distances of candidates are computed again.
        exact = np.sqrt(((block[:, None] - points[candidates]) ** 2).sum(axis=2))
        order = np.lexsort((candidates, exact), axis=1)[:, :k]
        distances.append(np.take_along_axis(exact, order, 1))
        indices.append(np.take_along_axis(candidates, order, 1))
    return Neighbours(np.concatenate(distances), np.concatenate(indices).astype(np.int64))


def _in_groups(
    points: FloatArray, k: int, count: int
) -> Callable[[FloatArray], tuple[IntArray, BoolArray]]:
    """Return what finds the nearest points in single precision, and whose k nearest are doubtful.

    Points are in groups: the nearest are in the groups whose nearest points are nearest.
    """
    # |p|² - 2p·q orders points as distances do; the last group is filled up with far ones.
    squares, size, width = (points**2).sum(axis=1), -(-len(points) // GROUP), points.shape[1] + 1
    lot = np.zeros((GROUP, size, width), dtype=np.float32)
    rows = lot.reshape(-1, width)
    rows[: len(points)] = np.column_stack([-2 * points, squares])
    rows[len(points) :, -1] = np.finfo(np.float32).max

    def found(queries: FloatArray) -> tuple[IntArray, BoolArray]:
        asked = np.column_stack([queries, np.ones(len(queries))]).astype(np.float32)
        pieces = (lot[:, start : start + PIECE] for start in range(0, size, PIECE))
        least = np.concatenate([(piece @ asked.T).min(axis=0) for piece in pieces])
        few = min(count, size)
        near = np.argpartition(least.T.copy(), few - 1, axis=1)[:, :few, None]
        inside = (near + size * np.arange(GROUP)).reshape(len(asked), -1)
        values = np.stack([rows[one] @ query for one, query in zip(inside, asked, strict=True)])
        order = np.argsort(values, axis=1)[:, :count]
        ranked = np.take_along_axis(values, order, 1)
        # A product is wrong by less than this: what was not found may be nearer by 4 such errors.
        reach = np.sqrt((queries**2).sum(axis=1)) + np.sqrt(squares.max())
        doubtful = ranked[:, -1] - ranked[:, min(k, count) - 1] < 4 * width * EPSILON * reach**2
        return np.take_along_axis(inside, order, 1), doubtful

    return found


def some(rows: NDArray[Any], most: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return at most so many of the rows, at random and in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _encode(
    column: Column, records: int, end: int | None, rng: np.random.Generator
) -> tuple[FloatArray, str]:
    """Return the coordinates of a column, or why it is ignored."""
    # Rows before `records` are audited, those from there to `end`, if there are any, synthetic.
    why = _flaw(column, records)
    if why:
        return np.empty((0, 0)), why
    if column.kind in {"word", "flag"}:
        block, why = _words(column, records, end, rng)
    else:
        block, why = _numbers(column, records)[:, None], ""
    if column.is_exact:
        # Integers this large are ids or moments: what copies one copies all of its digits.
        same, none = _words(as_codes(column), records, end, rng)
        block = block if none else np.column_stack([block, same])
    if column.missing.any() and not why:
        block = np.column_stack([block, column.missing])
    return block, why


def _flaw(column: Column, records: int) -> str:
    """Return why a column says nothing: only what varies among audited records tells them apart."""
    known = ~column.missing[:records]
    there = np.unique(column.values[:records][known])
    if not there.size:
        return "is missing in all records"
    return "is the same in all records" if there.size == 1 and known.all() else ""


def _numbers(column: Column, records: int) -> FloatArray:
    """Return numbers or dates in units of their spread; far ones grow as logarithms do."""
    values = column.values
    if column.kind in {"date", "zoned"}:
        days = (values - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        values = np.where(column.missing, 0.0, days)
    if column.is_exact:
        # Differences from one of them are small where they are near each other.
        values = np.where(column.missing, 0, values - np.min(values[~column.missing]))
    largest = np.abs(values).max()
    values = (values / largest if largest > LARGEST else values).astype(np.float64)
    inside = np.sort(values[:records][~column.missing[:records]])
    low, middle, high = np.quantile(inside, [0.25, 0.5, 0.75])
    spread = (high - low) / NORMAL_IQR or float(inside.std()) or 1.0
    return np.asarray(np.where(column.missing, 0.0, np.arcsinh((values - middle) / spread)))


def _words(
    column: Column, records: int, end: int | None, rng: np.random.Generator
) -> tuple[FloatArray, str]:
    """Return a coordinate for each word or, if there are many, a random vector for each."""
    known = ~column.missing
    words, code = np.unique(column.values, return_inverse=True)
    if words.size == 2:
        vectors = np.array([[0.0], [1.0]])
    elif words.size <= ONE_HOT:
        vectors = np.eye(words.size) / np.sqrt(2)
    else:
        audited = np.unique(code[:records][known[:records]])
        made = audited if end is None else np.unique(code[records:end][known[records:end]])
        if not np.intersect1d(audited, made).size:
            return np.empty((0, 0)), "has no word in common with the synthetic table"
        vectors = rng.choice([-1.0, 1.0], (words.size, CODE)) / np.sqrt(2 * CODE)
    return np.where(column.missing[:, None], 0.0, vectors[code]), ""
