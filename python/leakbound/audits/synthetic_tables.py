"""The tables of an audit of synthetic data: how they are read, and what a reader should know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.checks import choice, shown
from leakbound._base.tables import Column, TableInput, Writing, named, read_columns
from leakbound._base.types import BoolArray, IntArray
from leakbound.attacks.synthetic import Tables
from leakbound.attacks.synthetic.columns import pooled, same_columns
from leakbound.attacks.synthetic.encoding import Coordinates, coordinates, digests
from leakbound.audits.member_count import IMPOSSIBLE
from leakbound.errors import DesignError, InputError, InputTypeError, OptionError
from leakbound.stats import poisson_binomial_tail

# What a column is besides its values: how records were split, or how numbers are read.
ColumnRole: TypeAlias = Literal[
    "stratum", "group", "secret", "codes", "stratum of codes", "secret of codes"
]
# p-value below which members are copied more often than non-members.
_COPIED_BELOW = 1e-3


class Roles(NamedTuple):
    """The columns that say how records were split, if there are any, secrets and codes."""

    stratum: str | None = None
    group: str | None = None
    codes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: object) -> Self:
        """Read what columns are; at most one is a stratum, and one a group."""
        if columns is None:
            return cls()
        if not isinstance(columns, Mapping):
            raise InputTypeError(
                f"columns must be a mapping from names to roles, got {shown(columns)}"
            )
        names: dict[str, list[str]] = {"stratum": [], "group": [], "codes": [], "secret": []}
        for name, role in columns.items():
            choice(role, f"columns[{name!r}]", ColumnRole)
            for part in role.split(" of "):
                names[part].append(name)
        several = [role for role in ("stratum", "group") if len(names[role]) > 1]
        if several:
            raise OptionError(
                f"one column at most is the {several[0]}, got {', '.join(names[several[0]])}"
            )
        stratum, group = (next(iter(names[role]), None) for role in ("stratum", "group"))
        return cls(stratum, group, tuple(names["codes"]), tuple(names["secret"]))


@dataclass(frozen=True, eq=False)
class Records:
    """The audited records: members first, as columns whose kinds were settled for both together."""

    columns: Mapping[str, Column]
    member: BoolArray
    strata: NDArray[np.str_] | None
    groups: NDArray[np.str_] | None

    @classmethod
    def read(
        cls, members: TableInput, nonmembers: TableInput, roles: Roles, writing: Writing
    ) -> Self:
        """Read both tables and put them together."""
        tables = {
            "the members": read_columns(members, "the members", writing),
            "the non-members": read_columns(nonmembers, "the non-members", writing),
        }
        inside, outside = tables.values()
        codes = {*roles.codes, roles.group}
        columns = {
            name: pooled(inside[name], outside[name], name, codes=name in codes)
            for name in same_columns(tables)
        }
        sizes = [next(iter(table.values())).missing.size for table in tables.values()]
        moved = _codes(columns, roles.group, "group")
        if moved is not None:
            _check_whole(moved[: sizes[0]], moved[sizes[0] :])
        return cls(
            columns={name: column for name, column in columns.items() if name != roles.group},
            member=np.arange(sum(sizes)) < sizes[0],
            strata=_codes(columns, roles.stratum, "stratum"),
            groups=moved,
        )


def _check_whole(inside: NDArray[np.str_], outside: NDArray[np.str_]) -> None:
    """Check that no group is in both tables."""
    torn = np.intersect1d(inside, outside)
    if torn.size:
        row, other = (int(np.flatnonzero(one == torn[0])[0]) for one in (inside, outside))
        raise InputError(
            f"{torn.size:,} of {np.union1d(inside, outside).size:,} groups are not whole: "
            f"{torn[0]} is a group of members (row {row} of them) and of non-members (row {other} "
            "of them). A group is a set of records that the split kept together: leave groups out "
            "if it moved single records, or name the column of these groups"
        )


def _codes(
    columns: Mapping[str, Column], name: str | None, role: ColumnRole
) -> NDArray[np.str_] | None:
    """Return the words of a column that says how records were split."""
    if name is None:
        return None
    if name not in columns:
        raise OptionError(f"the {role} is {shown(name)}, and the columns are {', '.join(columns)}")
    column = columns[name]
    if column.missing.any():
        raise InputError(
            f"column {name!r}, the {role}, is missing in {int(column.missing.sum()):,} records: "
            "give each record a value, a different one if necessary"
        )
    return column.as_words()


@dataclass(frozen=True, eq=False)
class Inputs:
    """What an audit of a synthetic table reads: the records, and what attacks see of all tables.

    `order` is that of the records by their content, in which their places in files cannot matter.
    """

    records: Records
    tables: Tables
    order: IntArray
    roles: Roles

    @classmethod
    def read(
        cls,
        members: TableInput,
        nonmembers: TableInput,
        synthetic: TableInput,
        reference: TableInput | None,
        roles: Roles,
        writing: Writing,
        seed: int,
    ) -> Self:
        """Read all tables alike, members and non-members as one."""
        records = Records.read(members, nonmembers, roles, writing)
        parts = {
            "the records": records.columns,
            "the synthetic table": _read(synthetic, "the synthetic table", roles.group, writing),
        }
        if reference is not None:
            parts["the reference"] = _read(reference, "the reference", roles.group, writing)
        _check_secrets(roles.secrets, records.columns)
        tables = Tables.of_columns(
            parts, categorical=roles.codes, secrets=roles.secrets, seed=seed, progress=True
        )
        # The order and what a reference is judged by are of these records alone: a generator knows
        # the members, and must have no part in whether its bound is withheld.
        order = np.argsort(digests([records.columns], roles.codes), kind="stable")
        if reference is not None:
            both = [records.columns, parts["the reference"]]
            _check_reference(digests(both, roles.codes), records)
        return cls(records, tables, order, roles)

    def alone(self) -> Coordinates:
        """Return the records as coordinates in which no other table has a part."""
        columns = self.records.columns
        return coordinates([columns], self.roles.codes, self.tables.seed, synthetic=False)


def _check_secrets(secrets: Sequence[str], columns: Mapping[str, Column]) -> None:
    """Check that secrets are there, and something else to infer them from."""
    unknown = [name for name in secrets if name not in columns]
    if unknown:
        raise OptionError(
            f"a secret is {unknown[0]!r}, and the columns are {', '.join(columns)}: name one that "
            "is compared"
        )
    if secrets and len(columns) == 1:
        raise OptionError(
            f"the secret {secrets[0]!r} is the only column: there is nothing to infer it from"
        )


def _read(table: TableInput, name: str, groups: str | None, writing: Writing) -> dict[str, Column]:
    """Read a table without the column of groups, which it need not have."""
    columns = read_columns(table, name, writing)
    return {label: one for label, one in columns.items() if label != groups}


def marks(missing: object) -> tuple[str, ...]:
    """Read marks of missing values."""
    marks = (missing,) if isinstance(missing, str) else missing
    if not isinstance(marks, Sequence) or not all(isinstance(one, str) for one in marks):
        raise InputTypeError(
            f'missing must be a list of words, such as ["<0.5", "-9"], got {shown(missing)}'
        )
    return tuple(marks)


class _Held(NamedTuple):
    """How much of what the split moved as one is in some table, and if a side is there too often.

    The p-values are those of so many members, and of so many non-members.
    """

    members: int
    nonmembers: int
    of_members: int
    of_nonmembers: int
    p_members: float
    p_nonmembers: float

    @classmethod
    def of(cls, there: BoolArray, records: Records) -> Self:
        """Count members and non-members, each with the share of members of its stratum.

        `there` says which of the audited records are in the table.
        """
        # 1. What the split moved as one, and which of it the table holds.
        units = np.arange(there.size) if records.groups is None else records.groups
        _, first, unit = np.unique(units, return_index=True, return_inverse=True)
        held = np.zeros(first.size, dtype=np.bool_)
        held[unit[there]] = True
        # 2. Are both sides held as often as the share of members of each stratum says?
        member = records.member[first]
        strata = np.zeros(there.size) if records.strata is None else records.strata
        within = np.unique(strata[first], return_inverse=True)[1]
        share = (np.bincount(within, member) / np.bincount(within))[within[held]]
        inside = int(member[held].sum())
        outside = int((~member[held]).sum())
        return cls(
            inside,
            outside,
            int(member.sum()),
            int((~member).sum()),
            float(poisson_binomial_tail(inside, share)),
            float(poisson_binomial_tail(outside, 1 - share)),
        )


def _check_reference(rows: NDArray[np.void], records: Records) -> None:
    """Check that the reference holds members and non-members alike, if it holds any.

    `rows` are digests of the audited records, and of the reference below them.
    """
    size = records.member.size
    there = np.isin(rows[:size], rows[size:])
    if not there.any():
        return
    held = _Held.of(there, records)
    tails = (held.p_members, held.p_nonmembers)
    if shares.REFERENCE_SIDES.price(len(tails)) * min(tails) < IMPOSSIBLE:
        of, groups = ("", "") if records.groups is None else ("records of ", "groups of ")
        raise DesignError(
            f"the reference holds {of}{held.members:,} of {held.of_members:,} {groups}members and "
            f"{of}{held.nonmembers:,} of {held.of_nonmembers:,} {groups}non-members: it was chosen "
            "by membership, and so it would reveal membership to the attacks. Give a third set, or "
            "none: then attacks compare records with each other"
        )


def notes(tables: Tables, records: Records, copies: float) -> tuple[str, ...]:
    """Return what a reader should know of the tables."""
    found = list(tables.notes)
    if copies == 1:
        found += _copied(tables, records)
    member = records.member
    both = np.isin(tables.place, tables.place[member]) & ~member
    if both.any():
        found.append(
            f"{int(both.sum()):,} of {int((~member).sum()):,} non-members equal a member in every "
            "column that is compared: pairs of equal records are not guessed"
        )
    return tuple(found)


def _copied(tables: Tables, records: Records) -> list[str]:
    """Say that a table whose records all equal members is a copy, if few equal non-members."""
    held = _Held.of(np.isin(tables.place, tables.copied), records)
    if held.p_members >= _COPIED_BELOW:
        return []
    of, groups = ("", "") if records.groups is None else ("records of ", "groups of ")
    note = (
        "every synthetic record equals a member in the columns compared "
        f"({named(dict.fromkeys(tables.sources))}), and the table has {of}{held.members:,} of "
        f"{held.of_members:,} {groups}members but {of}{held.nonmembers:,} of "
        f"{held.of_nonmembers:,} {groups}non-members: it is a copy of training data"
    )
    return [note]
