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
from leakbound._base.tables import TableInput, read_columns
from leakbound._base.types import FloatArray, IntArray
from leakbound.attacks.reference_models import scores_of_attack
from leakbound.attacks.synthetic.encoding import (
    TableColumns,
    coordinates,
    digests,
    row_count_of_table,
    same_columns,
)
from leakbound.attacks.synthetic.neighbours import Neighbours, nearest, random_rows
from leakbound.errors import OptionError

NEIGHBOURS = 10  # nearest records that attacks look at
LINK_CANDIDATES = 32  # nearest synthetic records by a half of the columns
MOST_LINK_RECORDS = (
    20_000  # synthetic records that halves are compared with: of more, a random part
)
ENTROPY_BINS = 32  # classes of numbers, by which the entropy of a column is estimated


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
        columns_of_tables = {name: read_columns(table, name) for name, table in tables.items()}
        return cls.of_columns(
            columns_of_tables,
            categorical=categorical,
            secrets=secrets,
            seed=seed,
            progress=progress,
        )

    @classmethod
    def of_columns(
        cls,
        read: Mapping[str, TableColumns],
        *,
        categorical: tuple[str, ...] = (),
        secrets: tuple[str, ...] = (),
        seed: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Encode tables that were read: records, synthetic table and perhaps a reference."""
        flag(progress, "progress")
        column_names = same_columns(read)
        seed = seed_of(seed)
        _check_named_columns("categorical", categorical, column_names)
        _check_named_columns("secrets", secrets, column_names)
        # 1. Columns as coordinates; rows of the tables stay in the order given.
        tables = [*read.values()]
        encoded = coordinates(tables, categorical, seed, synthetic=True)
        row_digests = digests(tables, categorical, {*encoded.sources})
        audited_size = row_count_of_table(tables[0])
        synthetic_size = row_count_of_table(tables[1])
        # 2. Equal records become one point, in an order of digests of their values: no machine's
        #    last bits change it, and it does not depend on the file of a record or its values.
        synthetic_rows = slice(audited_size, audited_size + synthetic_size)
        real_rows = np.r_[:audited_size, synthetic_rows.stop : len(encoded.rows)]
        point_digests, first_rows, point_of_row, multiplicities = np.unique(
            row_digests[real_rows], return_index=True, return_inverse=True, return_counts=True
        )
        point_rows = real_rows[first_rows]
        # 3. Synthetic records that equal one of them: distances of many words can be 0 by chance.
        synthetic_digests = row_digests[synthetic_rows]
        candidate_points = np.searchsorted(point_digests, synthetic_digests)
        candidate_points = np.minimum(candidate_points, point_digests.size - 1)
        is_copy = point_digests[candidate_points] == synthetic_digests
        return cls(
            points=encoded.rows[point_rows],
            counts=multiplicities.astype(np.int64),
            place=point_of_row.astype(np.int64)[:audited_size],
            synthetic=encoded.rows[synthetic_rows],
            copied=np.where(is_copy, candidate_points, -1).astype(np.int64),
            columns=column_names,
            sources=encoded.sources,
            notes=encoded.notes,
            seed=seed,
            progress=progress,
            values=Values(
                columns=tuple(dict.fromkeys(encoded.sources)),
                ordered=encoded.ordered,
                points=encoded.codes[point_rows],
                synthetic=encoded.codes[synthetic_rows],
            ),
            secrets=secrets,
        )

    @cached_property
    def audited(self) -> IntArray:
        """The points that audited records are at, increasing."""
        return np.unique(self.place)

    @cached_property
    def of_synthetic(self) -> Neighbours:
        """The points nearest to each synthetic record, one more of them than `NEIGHBOURS`."""
        return nearest(
            self.points,
            self.synthetic,
            min(NEIGHBOURS + 1, len(self.points)),
            what="Nearest records of synthetic ones",
            shown=self.progress,
        )

    @cached_property
    def of_audited(self) -> Neighbours:
        """The synthetic records nearest to each point of `audited`."""
        return nearest(
            self.synthetic,
            self.points[self.audited],
            min(NEIGHBOURS, len(self.synthetic)),
            what="Nearest synthetic records",
            shown=self.progress,
        )

    def dimensions(self, *columns: str) -> IntArray:
        """Return the dimensions that come from some columns."""
        return np.flatnonzero(np.isin(self.sources, columns))

    @cached_property
    def halves(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Two halves of the columns that tell about as much each.

        Columns are sorted by their entropy in the synthetic table, and dealt 1-2-2-1.
        """
        entropies = {name: self._synthetic_entropy(name) for name in self.values.columns}
        by_entropy = sorted(entropies, key=lambda name: (-entropies[name], name))
        first_half = tuple(name for rank, name in enumerate(by_entropy) if rank % 4 in {0, 3})
        second_half = tuple(name for name in by_entropy if name not in first_half)
        return first_half, second_half

    def _synthetic_entropy(self, column_name: str) -> float:
        """Return the entropy of a column in the synthetic table, of numbers in classes."""
        value_codes = self.values.synthetic[:, self.values.columns.index(column_name)]
        is_ordered = column_name in self.values.ordered
        if is_ordered and np.unique(value_codes).size > ENTROPY_BINS:
            inner_levels = np.linspace(0, 1, ENTROPY_BINS + 1)[1:-1]
            bin_edges = np.quantile(value_codes, inner_levels)
            value_codes = np.digitize(value_codes, np.unique(bin_edges))
        _, value_counts = np.unique(value_codes, return_counts=True)
        # Shannon entropy, in nats
        frequencies = value_counts / value_codes.size
        return float(-(frequencies * np.log(frequencies)).sum())

    @cached_property
    def joined(self) -> IntArray:
        """The synthetic records that halves are compared with, at most 20,000."""
        rng = Purpose.SYNTHETIC_HALVES.rng(self.seed)
        return random_rows(np.arange(len(self.synthetic)), MOST_LINK_RECORDS, rng)

    @cached_property
    def of_halves(self) -> tuple[Neighbours, Neighbours]:
        """Which of `joined` are nearest to each point of `audited`, by either half of columns."""
        first_half, second_half = self.halves
        by_first_half = self.nearest_joined(self.dimensions(*first_half), LINK_CANDIDATES, "Links")
        by_second_half = self.nearest_joined(
            self.dimensions(*second_half), LINK_CANDIDATES, "Links"
        )
        return by_first_half, by_second_half

    def nearest_joined(self, dimensions: IntArray, most: int, what: str) -> Neighbours:
        """Return which of `joined` are nearest to each point of `audited`, in some dimensions.

        At most so many are looked for; `what` is what progress says.
        """
        return nearest(
            self.synthetic[self.joined][:, dimensions],
            self.points[self.audited][:, dimensions],
            min(most, self.joined.size),
            what=what,
            shown=self.progress,
        )

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


def _check_named_columns(
    option: str, given: Collection[str], column_names: tuple[str, ...]
) -> None:
    """Check that columns that an option names are there."""
    unknown = [name for name in given if name not in column_names]
    if unknown:
        known = ", ".join(column_names)
        raise OptionError(f"{option} names {unknown[0]!r}, and the columns are {known}")


def scored(tables: Tables, values: FloatArray, attack: str) -> Scores:
    """Return the values of points, or of audited ones, as the scores of an attack."""
    return scores_of_attack(tables.at_records(values), None, attack)
