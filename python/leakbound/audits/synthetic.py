"""Audits of a generator by the synthetic table that it made of a random part of the records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_length, check_scores, choice, flag, seed_of, shown
from leakbound._base.streams import Purpose
from leakbound._base.tables import Column, TableInput, Writing, named, read_columns
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound.attacks.synthetic import ATTACKS, Tables, similarity
from leakbound.attacks.synthetic.columns import pooled, same_columns
from leakbound.attacks.synthetic.scores import DEFAULT
from leakbound.attacks.synthetic.tables import coordinates, digests
from leakbound.audits.member_count import IMPOSSIBLE
from leakbound.audits.random_split import RandomSplit, SplitWords
from leakbound.audits.road import Request
from leakbound.claims import Claim, PureDP
from leakbound.cuts import CutPolicy
from leakbound.errors import DesignError, InputError, InputTypeError, OptionError
from leakbound.results import Assumption, AuditResult
from leakbound.results.synthetic import SyntheticResult
from leakbound.stats import poisson_binomial_tail

# What a column is besides its values: how records were split, or how numbers are read.
ColumnRole: TypeAlias = Literal["stratum", "group", "codes", "stratum of codes"]
_PURE_DP = PureDP()
# Pairs of records on which classifiers bet from records alone, unless told otherwise.
_MOST_BETS = 10_000
# p-value below which members are copied more often than non-members.
_COPIED_BELOW = 1e-3

_WORDS = SplitWords(unit="record", output="synthetic table")
_LABEL_FREE = Assumption(
    "scores without membership",
    "All audited records were put together, sorted by content, and scored by attacks that see "
    "them, the synthetic table and the reference; equal records have equal scores. Which records "
    "the generator was trained on was not used.",
    "checked",
)
_REFERENCE = Assumption(
    "reference chosen without membership",
    "The reference table has records that were chosen without knowing which of the audited "
    "records the generator was trained on: a third set, not the part that was held out.",
    "declared",
)
_ONE_TABLE = Assumption(
    "generator trained on members only",
    "The synthetic table was made from the members, public knowledge and fresh randomness. "
    "Held-out records were not used to make it, or to choose among tables or generators.",
    "declared",
)


def audit_synthetic(
    members: TableInput,
    nonmembers: TableInput,
    synthetic: TableInput,
    *,
    reference: TableInput | None = None,
    claim: Claim = _PURE_DP,
    attacks: str | Sequence[str] | Mapping[str, ArrayInput] = "default",
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    columns: Mapping[str, ColumnRole] | None = None,
    missing: Sequence[str] = (),
    challenge: bool | None = None,
    seed: int | None = None,
) -> SyntheticResult:
    """Bound the privacy loss of a generator from below, from the synthetic table that it made.

    The records were split at random: the generator learnt from the members, and the non-members
    were held out. Attacks that do not know who is a member guess which of a random pair looks more
    like one, given the synthetic table. The bound is on replacing one training record by another,
    and holds for the generator, not for one table.

    Parameters
    ----------
    members, nonmembers : table
        What the generator was trained on, and the rest of the same random split: data frames of
        any library, mappings from names to columns, or arrays of shape (records, columns) such as
        embeddings of texts or images. Numbers, dates, words and booleans; None, NaN and NaT are
        missing. Text is numbers, booleans or dates (ISO 8601) if all words of a column are. Words
        such as "NA", "." and "-" are missing values there, which a warning counts.
    synthetic : table
        What the generator made, any number of rows of the same columns.
    reference : table, optional
        Further records of the population that attacks compare with, chosen without a look at
        membership: a third set. Never the non-members, which raises.
    claim, confidence, cuts, seed : optional
        As for `audit`; the claim is about replacing one record, and attacks draw from the seed too.
    attacks : str, sequence of str, or mapping of str to array-like
        Names from `leakbound.attacks.synthetic.ATTACKS`, each at its share of the probability of
        error; "default" are four of them. A mapping has scores of your own, each computed without a
        look at which is which: members first, then non-members, or joined by their pandas index
        with those of both tables.
    columns : mapping of str to {"stratum", "group", "codes", "stratum of codes"}, optional
        What columns are, besides values; those of an array are named "0", "1", …. The split was
        stratified by a "stratum". Values of a "group" were split as one, such as an id of the
        person: all rows of a group are on one side. It is not compared, and the synthetic table
        need not have it. "codes" are numbers or dates that stand for words.
    missing : sequence of str, optional
        Further words or numbers that mark missing values in any column, such as "<0.5" or "-9", and
        those that need no warning.
    challenge : bool, optional
        Whether the records alone, without the synthetic table, challenge the split, as `features`
        of `RandomSplit` do. If a random split would hardly show what they show (p < 0.001), the
        split was not random, and the bound is withheld. If None, classifiers bet on 10,000 pairs of
        records at most; if True, on all.

    Returns
    -------
    SyntheticResult
        An `AuditResult` whose bound is on replacing one record, with the attack that won and
        the usual similarity metrics. LeakboundError is raised if tables cannot be read or differ in
        columns, the reference was chosen by membership, or a group is on both sides.

    Notes
    -----
    `docs/theory/synthetic.md` says what is random and what is fixed, and proves validity.
    The attacks name their sources.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(400, 4))
    >>> order = rng.permutation(400)
    >>> members, nonmembers = records[order[:200]], records[order[200:]]
    >>> copies = members + rng.normal(0, 0.1, members.shape)
    >>> result = audit_synthetic(members, nonmembers, copies, seed=1)
    >>> result.bound > 3, result.check(epsilon=1.0, relation="replace")
    (True, 'refuted')
    """
    seed = seed_of(seed)
    if challenge is not None:
        flag(challenge, "challenge")
    named = () if isinstance(attacks, Mapping) else _names(attacks)
    roles, writing = _roles(columns), Writing(missing=_marks(missing))
    # 1. All tables, read alike; members and non-members as one, in the order of their content, in
    #    which their places in files cannot matter.
    audited = _Records.read(members, nonmembers, roles, writing)
    parts = {
        "the records": audited.columns,
        "the synthetic table": _read(synthetic, "the synthetic table", roles.group, writing),
    }
    if reference is not None:
        parts["the reference"] = _read(reference, "the reference", roles.group, writing)
    tables = Tables.of_columns(parts, categorical=roles.codes, seed=seed, progress=True)
    # The order and the features that a split is judged by are of the audited records alone: a
    # generator knows the members, and must have no part in whether its bound is withheld.
    order = np.argsort(digests([audited.columns], roles.codes), kind="stable")
    alone = None
    if challenge is not False:
        alone = coordinates([audited.columns], roles.codes, seed, synthetic=False)
    if reference is not None:
        _check_reference(digests([audited.columns, parts["the reference"]], roles.codes), audited)
    # 2. Scores that no membership has a part in.
    if isinstance(attacks, Mapping):
        rows = ExampleOrder.of_tables([members, nonmembers], "the index of members and non-members")
        scores = {}
        for name, values in attacks.items():
            own = f"scores of {name!r}"
            scores[name] = check_scores(rows.placed(values, own), own)
            check_length(scores[name], audited.member.size, f"{own}, members first,")
    else:
        scores = {name: _telling(ATTACKS[name](tables).values, tables) for name in named}
    # 3. The audit of the random split.
    design = RandomSplit(
        audited.member[order],
        strata=None if audited.strata is None else audited.strata[order],
        groups=None if audited.groups is None else audited.groups[order],
        features=None if alone is None else alone.rows[order],
    )
    result = design.audit(
        {name: values[order] for name, values in scores.items()},
        Request(claim=claim, confidence=confidence, cuts=cuts, seed=seed),
        replace(_WORDS, columns=() if alone is None else alone.sources),
        most_bets=None if challenge else _MOST_BETS,
    )
    # 4. In the words of a generator, with the usual metrics beside it.
    words = {"audited examples did not choose the model": _ONE_TABLE}
    words |= {"scores without membership": _LABEL_FREE} if named else {}
    stated = [words.get(one.name, one) for one in result.assumptions]
    metrics = similarity(tables, audited.member)
    result = replace(
        result,
        assumptions=(*stated, *([] if reference is None else [_REFERENCE])),
        options=result.options
        | {"reference": reference is not None, "synthetic": len(tables.synthetic)},
        warnings=(*result.warnings, *_warnings(tables, audited, metrics.copies_of_members)),
    )
    held = {one.name: getattr(result, one.name) for one in fields(AuditResult)}
    return SyntheticResult(**held, similarity=metrics)


class _Roles(NamedTuple):
    """The columns that say how records were split, if there are any, and those of codes."""

    stratum: str | None = None
    group: str | None = None
    codes: tuple[str, ...] = ()


def _roles(columns: Any) -> _Roles:
    """Read what columns are; at most one is a stratum, and one a group."""
    if columns is None:
        return _Roles()
    if not isinstance(columns, Mapping):
        raise InputTypeError(f"columns must be a mapping from names to roles, got {shown(columns)}")
    names: dict[str, list[str]] = {"stratum": [], "group": [], "codes": []}
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
    return _Roles(stratum, group, tuple(names["codes"]))


@dataclass(frozen=True, eq=False)
class _Records:
    """The audited records: members first, as columns whose kinds were settled for both together."""

    columns: Mapping[str, Column]
    member: BoolArray
    strata: NDArray[np.str_] | None
    groups: NDArray[np.str_] | None

    @classmethod
    def read(
        cls, members: TableInput, nonmembers: TableInput, roles: _Roles, writing: Writing
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


def _read(table: TableInput, name: str, groups: str | None, writing: Writing) -> dict[str, Column]:
    """Read a table without the column of groups, which it need not have."""
    columns = read_columns(table, name, writing)
    return {label: one for label, one in columns.items() if label != groups}


def _marks(missing: object) -> tuple[str, ...]:
    """Read marks of missing values."""
    marks = (missing,) if isinstance(missing, str) else missing
    if not isinstance(marks, Sequence) or not all(isinstance(one, str) for one in marks):
        raise InputTypeError(
            f'missing must be a list of words, such as ["<0.5", "-9"], got {shown(missing)}'
        )
    return tuple(marks)


def _names(attacks: object) -> tuple[str, ...]:
    """Return the names of attacks that were asked for."""
    one = DEFAULT if attacks == "default" else (attacks,)
    names = one if isinstance(attacks, str) else attacks
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(
            f"attacks must be names, or a mapping to scores, got {type(attacks).__name__}"
        )
    if not names or not set(names) <= set(ATTACKS) or len(set(names)) < len(names):
        raise OptionError(
            f"attacks must be different names among {', '.join(ATTACKS)}, or default; got "
            f"{shown(attacks)}",
            option="attacks",
        )
    return tuple(names)


def _telling(values: FloatArray, tables: Tables) -> FloatArray:
    """Return scores; where an attack says the same of all records, it guesses at random."""
    if values.min() < values.max():
        return values
    noise = Purpose.SYNTHETIC_NOISE.rng(tables.seed).permutation(len(tables.points))
    return tables.at_records(noise.astype(np.float64))


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
    def of(cls, there: BoolArray, records: _Records) -> Self:
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
        inside, outside = int(member[held].sum()), int((~member[held]).sum())
        return cls(
            inside,
            outside,
            int(member.sum()),
            int((~member).sum()),
            float(poisson_binomial_tail(inside, share)),
            float(poisson_binomial_tail(outside, 1 - share)),
        )


def _check_reference(rows: NDArray[np.void], records: _Records) -> None:
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


def _warnings(tables: Tables, records: _Records, copies: float) -> tuple[str, ...]:
    """Return what a reader should know of the tables."""
    notes = list(tables.notes)
    if copies == 1:
        notes += _copied(tables, records)
    member = records.member
    both = np.isin(tables.place, tables.place[member]) & ~member
    if both.any():
        notes.append(
            f"{int(both.sum()):,} of {int((~member).sum()):,} non-members equal a member in every "
            "column that is compared: pairs of equal records are not guessed"
        )
    return tuple(notes)


def _copied(tables: Tables, records: _Records) -> list[str]:
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
