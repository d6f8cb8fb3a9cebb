r"""Tables encoded as points, so that no attack can see which file a record came from.

The distance of two records is the root of a sum over columns, after Gower: numbers differ by
:math:`\operatorname{arsinh}((x - m)/s)` with median m and robust spread s of the column, dates
also, words by 0 or 1, and a missing value differs from every other by 1 at least.

Medians and spreads are those of the synthetic table, where the column varies there. Every other
statistic here (kinds of columns, sets of words) is one of *all audited records together*, with the
synthetic and the reference table. Then equal records become one point with a multiplicity, and
points are put into an order of digests of their values. What is computed from points is therefore a
function of the set of audited records, the synthetic table and the reference. Equal records have
equal scores, and no score depends on the file of a record.

References
----------
J. C. Gower, "A general coefficient of similarity and some of its properties", 1971.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from leakbound._base.checks import flag, seed_of
from leakbound._base.scores import Scores
from leakbound._base.streams import Purpose
from leakbound._base.tables import Column, TableInput, read_columns
from leakbound._base.types import FloatArray, IntArray
from leakbound.attacks.scores import as_scores
from leakbound.attacks.synthetic.columns import same_columns
from leakbound.attacks.synthetic.encoding import coordinates, digests
from leakbound.attacks.synthetic.neighbours import Neighbours, nearest, some
from leakbound.errors import OptionError

NEIGHBOURS = 10  # nearest records that attacks look at
CANDIDATES = 32  # nearest synthetic records by a half of the columns
MOST = 20_000  # synthetic records that halves are compared with: of more, a random part
BINS = 32  # classes of numbers, by which columns are told to be telling


class Values(NamedTuple):
    """Which values are equal: a code for each value of each column, -1 for a missing one.

    `columns` are those compared, of numbers or dates where `ordered` names them.
    """

    columns: tuple[str, ...]
    ordered: frozenset[str]
    points: IntArray
    synthetic: IntArray


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
    values : Values
        Which values of points and synthetic records are equal.
    notes : tuple of str
        Columns that are not compared, or only as words, and why.
    progress : bool
        Whether a bar is shown, on a terminal.
    secrets : tuple of str
        Columns that an intruder wants to infer; if there are none, every column in turn.

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
    values: Values
    notes: tuple[str, ...] = ()
    progress: bool = False
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        records: TableInput,
        synthetic: TableInput,
        *,
        reference: TableInput | None = None,
        categorical: tuple[str, ...] = (),
        secrets: tuple[str, ...] = (),
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
        secrets : tuple of str
            Columns that an intruder wants to infer; every column in turn if there are none.
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
        return cls.of_columns(
            read, categorical=categorical, secrets=secrets, seed=seed, progress=progress
        )

    @classmethod
    def of_columns(
        cls,
        read: Mapping[str, Mapping[str, Column]],
        *,
        categorical: tuple[str, ...] = (),
        secrets: tuple[str, ...] = (),
        seed: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Encode tables that were read: records, synthetic table and perhaps a reference."""
        flag(progress, "progress")
        names = same_columns(read)
        seed = seed_of(seed)
        _check_names("categorical", categorical, names)
        _check_names("secrets", secrets, names)
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
        values = Values(
            columns=tuple(dict.fromkeys(at.sources)),
            ordered=at.ordered,
            points=at.codes[kept][first],
            synthetic=at.codes[records : records + made],
        )
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
            values=values,
            secrets=secrets,
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

    def dimensions(self, *columns: str) -> IntArray:
        """Return the dimensions that come from some columns."""
        return np.flatnonzero(np.isin(self.sources, columns))

    @cached_property
    def halves(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Two halves of the columns that tell about as much each.

        Columns are sorted by their entropy in the synthetic table, and dealt 1-2-2-1.
        """
        entropy = {name: self._entropy(name) for name in self.values.columns}
        ranked = sorted(entropy, key=lambda name: (-entropy[name], name))
        first = tuple(name for place, name in enumerate(ranked) if place % 4 in {0, 3})
        return first, tuple(name for name in ranked if name not in first)

    def _entropy(self, name: str) -> float:
        """Return the entropy of a column in the synthetic table, of numbers in classes."""
        codes = self.values.synthetic[:, self.values.columns.index(name)]
        if name in self.values.ordered and np.unique(codes).size > BINS:
            edges = np.quantile(codes, np.linspace(0, 1, BINS + 1)[1:-1])
            codes = np.digitize(codes, np.unique(edges))
        share = np.unique(codes, return_counts=True)[1] / codes.size
        return float(-(share * np.log(share)).sum())

    @cached_property
    def joined(self) -> IntArray:
        """The synthetic records that halves are compared with, at most 20,000."""
        rng = Purpose.SYNTHETIC_HALVES.rng(self.seed)
        return some(np.arange(len(self.synthetic)), MOST, rng)

    @cached_property
    def of_halves(self) -> tuple[Neighbours, Neighbours]:
        """Which of `joined` are nearest to each point of `audited`, by either half of columns."""
        first, second = (self._by(names) for names in self.halves)
        return first, second

    def _by(self, names: tuple[str, ...]) -> Neighbours:
        dimensions = self.dimensions(*names)
        made = self.synthetic[self.joined][:, dimensions]
        queries = self.points[self.audited][:, dimensions]
        most = min(CANDIDATES, len(made))
        return nearest(made, queries, most, what="Links", shown=self.progress)

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


def _check_names(what: str, given: Collection[str], names: tuple[str, ...]) -> None:
    """Check that columns that an option names are there."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise OptionError(f"{what} names {unknown[0]!r}, and the columns are {', '.join(names)}")


def scored(tables: Tables, values: FloatArray, attack: str) -> Scores:
    """Return the values of points, or of audited ones, as the scores of an attack."""
    return as_scores(tables.at_records(values), None, attack)
