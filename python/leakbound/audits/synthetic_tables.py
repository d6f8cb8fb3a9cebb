"""The tables of an audit of synthetic data: how they are read, and what a reader should know."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.checks import choice, shown
from leakbound._base.messages import Message
from leakbound._base.numerics import log_choose
from leakbound._base.tables import Column, TableInput, Writing, named, read_columns
from leakbound._base.types import BoolArray, IntArray
from leakbound.attacks.synthetic import Tables
from leakbound.attacks.synthetic.encoding import (
    Coordinates,
    coordinates,
    digests,
    pooled,
    same_columns,
)
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
        names_of_role: dict[str, list[str]] = {
            "stratum": [],
            "group": [],
            "codes": [],
            "secret": [],
        }
        for name, role in columns.items():
            choice(role, f"columns[{name!r}]", ColumnRole)
            for single_role in role.split(" of "):
                names_of_role[single_role].append(name)
        for role in ("stratum", "group"):
            names = names_of_role[role]
            if len(names) > 1:
                raise OptionError(f"one column at most is the {role}, got {', '.join(names)}")
        return cls(
            stratum=next(iter(names_of_role["stratum"]), None),
            group=next(iter(names_of_role["group"]), None),
            codes=tuple(names_of_role["codes"]),
            secrets=tuple(names_of_role["secret"]),
        )


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
        member_columns = read_columns(members, "the members", writing)
        other_columns = read_columns(nonmembers, "the non-members", writing)
        names = same_columns({"the members": member_columns, "the non-members": other_columns})
        names_of_codes = {*roles.codes, roles.group}
        columns = dict[str, Column]()
        for name in names:
            columns[name] = pooled(
                member_columns[name],
                other_columns[name],
                name,
                codes=name in names_of_codes,
            )
        member_count = _row_count(member_columns)
        record_count = member_count + _row_count(other_columns)
        groups = _words_of_role(columns, roles.group, "group")
        if groups is not None:
            _check_groups_are_whole(groups[:member_count], groups[member_count:])
        return cls(
            columns={name: column for name, column in columns.items() if name != roles.group},
            member=np.arange(record_count) < member_count,
            strata=_words_of_role(columns, roles.stratum, "stratum"),
            groups=groups,
        )


def _check_groups_are_whole(
    groups_of_members: NDArray[np.str_], groups_of_others: NDArray[np.str_]
) -> None:
    """Check that no group is in both tables."""
    groups_in_both = np.intersect1d(groups_of_members, groups_of_others)
    if groups_in_both.size:
        first_torn_group = groups_in_both[0]
        groups_of_either = np.union1d(groups_of_members, groups_of_others)
        rows_of_members = np.flatnonzero(groups_of_members == first_torn_group)
        rows_of_others = np.flatnonzero(groups_of_others == first_torn_group)
        raise InputError(
            f"{groups_in_both.size:,} of {groups_of_either.size:,} groups are not whole: "
            f"{first_torn_group} is a group of members (row {rows_of_members[0]} of them) and of "
            f"non-members (row {rows_of_others[0]} of them). A group is a set of records that the "
            "split kept together: leave groups out if it moved single records, or name the column "
            "of these groups"
        )


def _row_count(columns: Mapping[str, Column]) -> int:
    """Return how many rows a table has."""
    first_column = next(iter(columns.values()))
    return first_column.missing.size


def _words_of_role(
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
        columns_of_tables = {
            "the records": records.columns,
            "the synthetic table": _columns_without_group(
                synthetic, "the synthetic table", roles.group, writing
            ),
        }
        if reference is not None:
            columns_of_tables["the reference"] = _columns_without_group(
                reference, "the reference", roles.group, writing
            )
        _check_secrets(roles.secrets, records.columns)
        tables = Tables.of_columns(
            columns_of_tables,
            categorical=roles.codes,
            secrets=roles.secrets,
            seed=seed,
            progress=True,
        )
        if records.groups is None:  # a group in both tables is refused
            _check_tables_differ(tables.place, records)
        # The order and what a reference is judged by are of these records alone: a generator knows
        # the members, and must have no part in whether its bound is withheld.
        digests_of_records = digests([records.columns], roles.codes)
        order = np.argsort(digests_of_records, kind="stable")
        if reference is not None:
            records_and_reference = [records.columns, columns_of_tables["the reference"]]
            _check_reference(digests(records_and_reference, roles.codes), records)
        return cls(records=records, tables=tables, order=order, roles=roles)

    def coordinates_of_records(self) -> Coordinates:
        """Return the records as coordinates in which no other table has a part."""
        columns = self.records.columns
        return coordinates([columns], self.roles.codes, self.tables.seed, synthetic=False)


def _check_tables_differ(place_of_record: IntArray, records: Records) -> None:
    """Check that the tables do not hold the same records, unless a random split may give that.

    `place_of_record` has one number for each record, the same for equal ones.
    """
    is_member = records.member
    members_at = np.bincount(place_of_record[is_member], minlength=place_of_record.max() + 1)
    others_at = np.bincount(place_of_record[~is_member], minlength=members_at.size)
    if not np.array_equal(members_at, others_at):
        return
    strata: NDArray[np.generic] = np.zeros(is_member.size)
    if records.strata is not None:
        strata = records.strata
    _, members_of_strata = np.unique(strata[is_member], return_counts=True)
    # Of all splits that halve each stratum, the part that halves each set of equal records.
    log_p_value = _log_number_of_halvings(members_at) - _log_number_of_halvings(members_of_strata)
    if log_p_value < math.log(IMPOSSIBLE):
        message = (
            "members and non-members are the same table: in the columns compared, both have the "
            "same {members:,} records, so nothing can tell which of them were trained on. Pass the "
            "records that were held out as {nonmembers=}"
        )
        raise InputError(Message(message, members=int(members_at.sum())))


def _log_number_of_halvings(half_sizes: IntArray) -> float:
    """Return the logarithm of in how many ways sets of twice these sizes are cut in half."""
    return sum(log_choose(2 * half_size, half_size) for half_size in half_sizes.tolist())


def _check_secrets(secrets: Sequence[str], columns: Mapping[str, Column]) -> None:
    """Check that secrets are there, and something else to infer them from."""
    unknown_names = [name for name in secrets if name not in columns]
    if unknown_names:
        raise OptionError(
            f"a secret is {unknown_names[0]!r}, and the columns are {', '.join(columns)}: name one "
            "that is compared"
        )
    if secrets and len(columns) == 1:
        raise OptionError(
            f"the secret {secrets[0]!r} is the only column: there is nothing to infer it from"
        )


def _columns_without_group(
    table: TableInput, table_name: str, group: str | None, writing: Writing
) -> dict[str, Column]:
    """Read a table without the column of groups, which it need not have."""
    columns = read_columns(table, table_name, writing)
    return {name: column for name, column in columns.items() if name != group}


def missing_marks(missing: object) -> tuple[str, ...]:
    """Read marks of missing values."""
    marks = missing
    if isinstance(missing, str):
        marks = (missing,)
    if not isinstance(marks, Sequence) or not all(isinstance(mark, str) for mark in marks):
        raise InputTypeError(
            f'missing must be a list of words, such as ["<0.5", "-9"], got {shown(missing)}'
        )
    return tuple(marks)


class _HeldByTable(NamedTuple):
    """How much of what the split moved as one is in some table, and if a side is there too often.

    The p-values are those of so many members, and of so many non-members.
    """

    members: int
    nonmembers: int
    of_members: int
    of_nonmembers: int
    p_members: float
    p_nonmembers: float
    are_groups: bool

    @classmethod
    def of(cls, in_table: BoolArray, records: Records) -> Self:
        """Count members and non-members, each with the share of members of its stratum.

        `in_table` says which of the audited records are in the table.
        """
        # 1. What the split moved as one, and which of it the table holds.
        unit_names: NDArray[np.generic] = np.arange(in_table.size)
        if records.groups is not None:
            unit_names = records.groups
        _, first_records, unit_of_record = np.unique(
            unit_names, return_index=True, return_inverse=True
        )
        is_held = np.zeros(first_records.size, dtype=np.bool_)
        is_held[unit_of_record[in_table]] = True
        # 2. Are both sides held as often as the share of members of each stratum says?
        is_member = records.member[first_records]
        strata: NDArray[np.generic] = np.zeros(first_records.size)
        if records.strata is not None:
            strata = records.strata[first_records]
        _, stratum_of_unit = np.unique(strata, return_inverse=True)
        members_of_strata = np.bincount(stratum_of_unit, weights=is_member)
        member_shares = members_of_strata / np.bincount(stratum_of_unit)
        member_share_of_held = member_shares[stratum_of_unit[is_held]]
        held_members = int(is_member[is_held].sum())
        held_nonmembers = int((~is_member[is_held]).sum())
        return cls(
            members=held_members,
            nonmembers=held_nonmembers,
            of_members=int(is_member.sum()),
            of_nonmembers=int((~is_member).sum()),
            p_members=float(poisson_binomial_tail(held_members, member_share_of_held)),
            p_nonmembers=float(poisson_binomial_tail(held_nonmembers, 1 - member_share_of_held)),
            are_groups=records.groups is not None,
        )

    def in_words(self, conjunction: str) -> str:
        """Return how many members and non-members are held, joined by a word."""
        records_of = ""
        groups_of = ""
        if self.are_groups:
            records_of = "records of "
            groups_of = "groups of "
        return (
            f"{records_of}{self.members:,} of {self.of_members:,} {groups_of}members {conjunction} "
            f"{records_of}{self.nonmembers:,} of {self.of_nonmembers:,} {groups_of}non-members"
        )


def _check_reference(digests_of_both: NDArray[np.void], records: Records) -> None:
    """Check that the reference holds members and non-members alike, if it holds any.

    `digests_of_both` are those of the audited records, and of the reference below them.
    """
    record_count = records.member.size
    in_reference = np.isin(digests_of_both[:record_count], digests_of_both[record_count:])
    if not in_reference.any():
        return
    held = _HeldByTable.of(in_reference, records)
    p_values = (held.p_members, held.p_nonmembers)
    if shares.REFERENCE_SIDES.price(len(p_values)) * min(p_values) < IMPOSSIBLE:
        raise DesignError(
            f"the reference holds {held.in_words('and')}: it was chosen "
            "by membership, and so it would reveal membership to the attacks. Give a third set, or "
            "none: then attacks compare records with each other"
        )


def notes_on_tables(tables: Tables, records: Records, copies: float) -> tuple[str, ...]:
    """Return what a reader should know of the tables."""
    notes = list(tables.notes)
    if copies == 1:
        notes += _notes_on_copying(tables, records)
    is_member = records.member
    equals_member = np.isin(tables.place, tables.place[is_member])
    copied_nonmembers = equals_member & ~is_member
    if copied_nonmembers.any():
        notes.append(
            f"{int(copied_nonmembers.sum()):,} of {int((~is_member).sum()):,} non-members equal a "
            "member in every column that is compared: pairs of equal records are not guessed"
        )
    return tuple(notes)


def _notes_on_copying(tables: Tables, records: Records) -> list[str]:
    """Say that a table whose records all equal members is a copy, if few equal non-members."""
    held = _HeldByTable.of(np.isin(tables.place, tables.copied), records)
    if held.p_members >= _COPIED_BELOW:
        return []
    note = (
        "every synthetic record equals a member in the columns compared "
        f"({named(dict.fromkeys(tables.sources))}), and the table has {held.in_words('but')}: it "
        "is a copy of training data"
    )
    return [note]
