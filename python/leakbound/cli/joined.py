"""Shards of scores as one table: numbers, membership and words of all files, in their order."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_membership
from leakbound._base.console import bar
from leakbound.cli.files import Columns, Layout, TwoFiles, check_names, opened
from leakbound.cli.options import refuse
from leakbound.errors import FormatError, InputError

# Most rows whose ids are compared if they are text, of which each takes many bytes.
_COMPARED = 1 << 20


@dataclass(frozen=True)
class Roles:
    """What columns are read as: numbers or words, of the shards that must or may have them."""

    numbers: Sequence[str]
    words: Sequence[str] = ()
    optional: Sequence[str] = ("id",)

    def __post_init__(self) -> None:
        wanted = [*self.numbers, *self.words]
        if len(set(wanted)) < len(wanted):
            refuse(f"a column can have only one role, and options name one of {wanted} twice")

    @property
    def free(self) -> list[str]:
        """The optional columns that have no other role."""
        return [name for name in self.optional if name not in {*self.numbers, *self.words}]


class Joined:
    """Columns of several files, as those of one that has all of their rows.

    Text is read into numbers batch by batch, and forgotten: a row takes 9 bytes, and 8 for each
    further column of numbers.
    """

    def __init__(self, paths: Sequence[Path], roles: Roles, layout: Layout) -> None:
        self._parts = defaultdict[str, list[NDArray[Any]]](list)
        self._member: list[NDArray[np.bool_]] = []
        self._lacking = set[str]()
        self._unread = dict[str, FormatError]()
        self._rows = 0
        self._files = 0
        seen = dict[bytes, Path]()
        with bar("Reading", total=len(paths)) as move:
            for path in paths:
                start = len(self._member)
                self._add(path, roles, layout)
                self._check_new(path, roles, start, seen)
                move(advance=1)
        if not self._rows:
            raise FormatError(
                f"{paths[0]} and the other files have no rows: add one row for each example"
            )

    def __contains__(self, name: str) -> bool:
        return name in self._parts and name not in self._lacking

    def __len__(self) -> int:
        return self._rows

    @property
    def ids(self) -> NDArray[Any] | None:
        """The column `id`, if all files have it."""
        if "id" in self:
            return self.words("id")
        return None

    def numbers(self, name: str) -> NDArray[Any]:
        """Return a column as numbers; raise what was wrong with an optional one."""
        if name in self._unread:
            raise self._unread[name]
        return self._whole(name)

    def words(self, name: str) -> NDArray[Any]:
        """Return a column of ids, strata or groups: text, if some files have text."""
        parts = self._parts[name]
        if len({part.dtype.kind for part in parts}) > 1:
            self._parts[name] = [part.astype(np.str_) for part in parts]
        return self._whole(name)

    def matrix(self, names: Sequence[str]) -> Any:
        """Return columns of numbers as a matrix; None without columns."""
        if not names:
            return None
        return np.column_stack([self.numbers(name) for name in names])

    def member(self) -> NDArray[np.bool_]:
        """Return who was a member."""
        return np.concatenate(self._member)

    def _whole(self, name: str) -> NDArray[Any]:
        """Return a column in one piece, which is kept in place of its parts."""
        whole = np.concatenate(self._parts[name])
        self._parts[name] = [whole]
        return whole

    def _add(self, path: Path, roles: Roles, layout: Layout) -> None:
        """Read the rows of a file."""
        first = 0
        with opened(path, layout) as (names, load):
            needed = [*roles.numbers, *roles.words, layout.member_col]
            check_names(path, names, needed)
            there = [name for name in roles.free if names.count(name) == 1]
            for stored in load([*dict.fromkeys([*needed, *there])]):
                batch = Columns(path, stored, layout, first)
                if len(batch):
                    self._add_batch(batch, roles, there)
                first += len(batch)
        if first:
            self._lacking.update(name for name in roles.free if name not in there)

    def _add_batch(self, batch: Columns, roles: Roles, there: Sequence[str]) -> None:
        """Read a batch of rows; what need not be there is left out where it cannot be read."""
        layout = batch.signs
        assert isinstance(layout, Layout)
        rows = len(batch)
        try:
            self._member.append(check_membership(batch.member(), rows))
        except InputError as error:
            raise FormatError(
                f"{batch.path}: column {layout.member_col!r}, rows from {batch.first} on: {error}"
            ) from error
        self._rows += rows
        for name in roles.numbers:
            self._parts[name].append(_numbers(batch, name))
        for name in roles.words:
            self._parts[name].append(batch.words(name))
        for name in there:
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

    def _check_new(self, path: Path, roles: Roles, start: int, seen: dict[bytes, Path]) -> None:
        """Refuse a file whose rows are those of another: most likely it was given twice."""
        count = len(self._member) - start
        if not count:
            return
        mark = sha256()
        for values in (self._member, *(self._parts[name] for name in roles.numbers)):
            for part in values[-count:]:
                mark.update(part.astype(np.float64).tobytes())
        other = seen.setdefault(mark.digest(), path)
        if len(seen) == self._files:
            raise FormatError(
                f"{path} has the scores and membership of {other}, row by row: no example may be "
                "counted twice; if small files are equal by chance, join them in one file"
            )
        self._files = len(seen)


def _numbers(batch: Columns, name: str) -> NDArray[Any]:
    """Return a column of numbers, none of them NaN."""
    values = batch.numbers(name)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise FormatError(
            f"{batch.path}: column {name!r} must not be NaN, but it is at row "
            f"{batch.first + missing[0]} (rows count from 0, without the header): drop these "
            "examples or repair them"
        )
    return values


Table: TypeAlias = Columns | TwoFiles | Joined
