"""Several files of scores as one table: shards, or one of members and one of non-members."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound._base.types import AnyArray
from leakbound.cli.files import (
    Columns,
    Layout,
    Signs,
    check_roles,
    read,
    read_in_batches,
)
from leakbound.cli.formats import Stored, in_one
from leakbound.errors import FormatError, InputError

# Most rows whose ids are compared if they are text, of which each takes many bytes.
_COMPARED = 1 << 20


@dataclass(frozen=True)
class TwoFiles:
    """Columns of a file of members and of one of non-members, members first."""

    members: Columns
    nonmembers: Columns

    def __contains__(self, name: str) -> bool:
        return name in self.members and name in self.nonmembers

    def __len__(self) -> int:
        return len(self.members) + len(self.nonmembers)

    @property
    def paths(self) -> list[Path]:
        """The files that hold the rows."""
        return [self.members.path, self.nonmembers.path]

    @property
    def signs(self) -> Signs:
        """How the files are written."""
        return self.members.signs

    def numbers(self, name: str) -> AnyArray:
        """Return a column as numbers."""
        return np.concatenate([self.members.numbers(name), self.nonmembers.numbers(name)])

    def words(self, name: str) -> AnyArray:
        """Return a column of ids, strata or groups."""
        return np.concatenate([self.members.words(name), self.nonmembers.words(name)])

    def as_stored(self, name: str) -> Stored:
        """Return a column of whatever it holds."""
        return in_one([part.as_stored(name) for part in (self.members, self.nonmembers)])

    def member(self) -> AnyArray:
        """Return who was a member: the rows of the first file."""
        return np.arange(len(self)) < len(self.members)


def read_parts(
    paths: Sequence[Path],
    wanted: Sequence[str],
    signs: Signs,
    *,
    optional: Sequence[str] = ("id",),
) -> TwoFiles:
    """Read the columns that an audit needs from a file of members and one of others."""
    members, nonmembers = (read(path, wanted, signs, optional=optional) for path in paths)
    return TwoFiles(members, nonmembers)


@dataclass(frozen=True)
class Roles:
    """What columns are read as: numbers, words, or what a table of features makes of them.

    The shards must have them all, but for the optional ones.
    """

    numbers: Sequence[str]
    words: Sequence[str] = ()
    features: Sequence[str] = ()
    optional: Sequence[str] = ("id",)

    def __post_init__(self) -> None:
        check_roles(self.needed)

    @property
    def needed(self) -> list[str]:
        """The columns that have to be there."""
        return [*self.numbers, *self.words, *self.features]

    @property
    def free(self) -> list[str]:
        """The optional columns that have no other role."""
        return [name for name in self.optional if name not in self.needed]


class Joined:
    """Columns of several files, as those of one that has all of their rows.

    Text is read into numbers batch by batch, and forgotten: a row takes 9 bytes, and 8 for each
    further column of numbers. Columns of features are kept as they are.
    """

    def __init__(self, paths: Sequence[Path], roles: Roles, layout: Layout) -> None:
        self.paths = [*paths]
        self.signs: Signs = layout
        self._features = defaultdict[str, list[Stored]](list)
        self._parts = defaultdict[str, list[AnyArray]](list)
        self._member: list[NDArray[np.bool_]] = []
        self._lacking = set[str]()
        self._unread = dict[str, FormatError]()
        self._rows = 0
        self._files = 0
        path_of_digest = dict[bytes, Path]()
        with bar("Reading", total=len(paths)) as move:
            for path in paths:
                first_batch = len(self._member)
                self._add(path, roles, layout)
                self._check_new(path, roles, first_batch, path_of_digest)
                move(advance=1)
        if not self._rows:
            raise FormatError(
                f"{paths[0]} and the other files have no rows: add one row for each example"
            )

    def __contains__(self, name: str) -> bool:
        return name in self._parts and name not in self._lacking

    def __len__(self) -> int:
        return self._rows

    def numbers(self, name: str) -> AnyArray:
        """Return a column as numbers; raise what was wrong with an optional one."""
        if name in self._unread:
            raise self._unread[name]
        return self._whole(name)

    def words(self, name: str) -> AnyArray:
        """Return a column of ids, strata or groups: text, if some files have text."""
        parts = self._parts[name]
        if len({part.dtype.kind for part in parts}) > 1:
            self._parts[name] = [part.astype(np.str_) for part in parts]
        return self._whole(name)

    def as_stored(self, name: str) -> Stored:
        """Return a column of features, of whatever it holds."""
        return in_one(self._features[name])

    def member(self) -> NDArray[np.bool_]:
        """Return who was a member."""
        return np.concatenate(self._member)

    def _whole(self, name: str) -> AnyArray:
        """Return a column in one piece, which is kept in place of its parts."""
        try:
            whole_column = np.concatenate(self._parts[name])
        except MemoryError as error:
            raise FormatError(
                f"the column {name!r} of {self._rows:,} rows does not fit in memory: let an engine "
                "pair and count them (lb.Pairing), and give the tallies of pairs"
            ) from error
        self._parts[name] = [whole_column]
        return whole_column

    def _add(self, path: Path, roles: Roles, layout: Layout) -> None:
        """Read the rows of a file."""
        wanted = [*roles.needed, layout.member_col]
        with read_in_batches(path, wanted, layout, optional=roles.free) as batches:
            for batch in batches:
                self._lacking.update(name for name in roles.free if name not in batch)
                self._add_batch(batch, roles)

    def _add_batch(self, batch: Columns, roles: Roles) -> None:
        """Read a batch of rows; what need not be there is left out where it cannot be read."""
        layout = batch.signs
        assert isinstance(layout, Layout)
        row_count = len(batch)
        try:
            self._member.append(check_membership(batch.member(), row_count))
        except InputError as error:
            raise FormatError(
                f"{batch.path}: column {layout.member_col!r}, rows from {batch.first} on: {error}"
            ) from error
        self._rows += row_count
        for name in roles.numbers:
            self._parts[name].append(_numbers_without_nan(batch, name))
        for name in roles.words:
            self._parts[name].append(batch.words(name))
        for name in roles.features:
            self._features[name].append(batch.as_stored(name))
        for name in roles.free:
            if name not in batch:
                continue
            if name == "id":
                self._add_ids(batch)
                continue
            try:
                self._parts[name].append(batch.numbers(name))
            except FormatError as error:
                self._unread[name] = error

    def _add_ids(self, batch: Columns) -> None:
        """Read ids; forget them all where they are text of more rows than are compared."""
        ids = batch.words("id")
        if ids.dtype.kind not in "iu" and self._rows > _COMPARED:
            self._lacking.add("id")
        if "id" in self._lacking:
            self._parts["id"] = []
            return
        self._parts["id"].append(ids)

    def _check_new(
        self, path: Path, roles: Roles, first_batch: int, path_of_digest: dict[bytes, Path]
    ) -> None:
        """Refuse a file whose rows are those of another: most likely it was given twice."""
        batch_count = len(self._member) - first_batch
        if not batch_count:
            return
        digest_of_rows = sha256()
        for batches_of_column in (self._member, *(self._parts[name] for name in roles.numbers)):
            for part in batches_of_column[-batch_count:]:
                digest_of_rows.update(part.astype(np.float64).tobytes())
        path_with_digest = path_of_digest.setdefault(digest_of_rows.digest(), path)
        if len(path_of_digest) == self._files:
            raise FormatError(
                f"{path} has the scores and membership of {path_with_digest}, row by row: no "
                "example may be counted twice; if small files are equal by chance, join them in "
                "one file"
            )
        self._files = len(path_of_digest)


def _numbers_without_nan(batch: Columns, name: str) -> AnyArray:
    """Return a column of numbers, none of them NaN."""
    column_numbers = batch.numbers(name)
    missing_rows = np.flatnonzero(np.isnan(column_numbers))
    if missing_rows.size:
        raise FormatError(
            f"{batch.path}: column {name!r} must not be NaN, but it is at row "
            f"{batch.first + missing_rows[0]} (rows count from 0, without the header): drop these "
            "examples or repair them"
        )
    return column_numbers


Table: TypeAlias = Columns | TwoFiles | Joined
"""Rows of one file, of two files of scores, or of several shards."""


def ids_of(table: Table) -> AnyArray | None:
    """Return the column `id`, if all files have it."""
    if "id" in table:
        return table.words("id")
    return None
