"""Tables of scores and membership from csv, tsv, JSON lines, npz and parquet files.

Text may be compressed by gzip. Numbers arrive as they were written: decimal text becomes the
nearest double, binary columns keep their bits. A file that cannot be used is refused with its name,
the place, and the option or the form that would do.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_membership
from leakbound._base.files import Archive, DamagedFileError, open_archive
from leakbound._base.imports import needs
from leakbound.cli.layouts import IN_TEXT, Layout, suffix_of
from leakbound.cli.text import columns_of, opened_text, rows_of
from leakbound.errors import InputFileError, UnmatchedIdsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from leakbound.planning.commitment import Coins

    Columns: TypeAlias = dict[str, NDArray[Any]]
    Readers: TypeAlias = Mapping[str, Callable[[str], Any]]
    """For each column what reads its text; columns of binary files are what they are."""

_PLAIN = Layout()
_INSTEAD = {
    ".json": "; if each line is an object, rename it to .jsonl",
    ".npy": "; save scores and who was a member in one archive: "
    "numpy.savez('scores.npz', score=…, member=…)",
    ".txt": "; rename it to .csv if commas, semicolons or tabs separate its columns",
    ".xls": "; save the sheet as .csv",
    ".xlsx": "; save the sheet as .csv",
}
"""What to do with files of other suffixes."""
_OPTIONS = {
    "score": "name another by --score-col",
    "member": "name another by --member-col",
    "propensity": "give a file of them by --propensity, or the --features to learn them from",
}
"""What to do where a column of an audit is missing."""
_TEXT = frozenset({"id", "split"})
"""Columns that are not numbers."""
_LISTED = 20
"""Most columns that a message names."""


@dataclass(frozen=True)
class Table:
    """The columns of a file that an audit takes."""

    scores: dict[str, NDArray[Any]]
    member: NDArray[Any]
    ids: NDArray[Any] | None
    split: NDArray[Any] | None = None
    words: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def read(
    path: Path,
    wanted: Mapping[str, tuple[str, ...]],
    *,
    optional: tuple[str, ...] = ("id",),
    words: tuple[str, ...] = (),
    layout: Layout = _PLAIN,
    coins: Coins | None = None,
) -> Table:
    """Read the columns that an audit needs, those of `words` as text, and `id` if it is there.

    Where a plan knows the coins, the column of membership need not be there.
    """
    numeric = {name for names in wanted.values() for name in names}
    clash = sorted(set(words) & numeric | {layout.member} & (set(words) | numeric))
    if clash:
        message = f"{path}: column {clash[0]!r} cannot be read in two roles"
        if clash[0] == layout.member:
            message += ": --member-col names the one that says who was a member, and nothing else"
        raise InputFileError(message)
    needed = {**wanted, **{name: (name,) for name in words}}
    if coins is None:
        needed["member"] = (layout.member,)
    else:
        optional = (*optional, layout.member)
    text = _TEXT | {*words}
    columns = read_columns(
        path, needed, optional=optional, text=text, layout=layout, options=_OPTIONS
    )
    member, ids = columns.get("member" if coins is None else layout.member), columns.get("id")
    if member is not None:
        member = _said(path, member, layout)
    if coins is not None:
        ids = whole(ids) if ids is not None and coins.ids.dtype.kind in "iu" else ids
        member = _joined(path, ids, member, coins, len(next(iter(columns.values()))))
    for name in words:
        _check_filled(path, name, columns[name])
    return Table(
        scores={name: columns[name] for name in wanted},
        member=np.asarray(member),
        ids=ids,
        split=columns.get("split"),
        words={name: columns[name] for name in words},
    )


def read_columns(
    path: Path,
    wanted: Mapping[str, tuple[str, ...]],
    *,
    optional: tuple[str, ...] = (),
    text: frozenset[str] = _TEXT,
    layout: Layout = _PLAIN,
    options: Mapping[str, str] | None = None,
) -> Columns:
    """Read columns of one length, each under the first of its names that the file has.

    `options` are what messages advise where a column is missing.
    """
    told = options or {}
    with opened(path, layout) as (names, load):
        picked = {
            name: _pick(path, names, choices, wanted, told.get(name, ""))
            for name, choices in wanted.items()
        }
        picked |= {name: _pick(path, names, (name,), wanted) for name in optional if name in names}
        readers: dict[str, Callable[[str], Any]] = {
            own: str if own in text else layout.number for own in picked.values()
        }
        if layout.member in readers:
            readers[layout.member] = layout.membership
        columns = load(readers)
    lengths = {name: len(values) for name, values in columns.items()}
    if 0 in lengths.values():
        message = f"{path} has a header and no rows: it needs one row for each audited example"
        raise InputFileError(message)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        message = f"{path} holds arrays of different lengths ({listed}): one value per example"
        raise InputFileError(message)
    return {name: columns[own] for name, own in picked.items()}


def _check_filled(path: Path, name: str, values: NDArray[Any]) -> None:
    """Check that no text of a column is empty."""
    if values.dtype.kind in "OSU":
        empty = [row for row, one in enumerate(values.tolist()) if not str(one).strip()]
        if empty:
            message = (
                f"{path}: column {name!r} is empty at row {empty[0]} (rows count from 0, without "
                "the header): every example needs a value"
            )
            raise InputFileError(message)


def panoramia_columns(
    path: Path, model: str, layout: Layout = _PLAIN
) -> dict[str, tuple[str, ...]]:
    """Return the names that the scores of baseline and attack may have in a file."""
    if model:
        attack: tuple[str, ...] = (f"mia_{model}_pred",)
    else:
        with opened(path, layout) as (names, _):
            found = tuple(n for n in names if n.startswith("mia_") and n.endswith("_pred"))
        if len(found) > 1:
            listed = ", ".join(name.removeprefix("mia_").removesuffix("_pred") for name in found)
            message = f"{path} has scores of several models: choose one by --model, of {listed}"
            raise InputFileError(message)
        attack = ("attack_score", "score", *found)
    return {"baseline": ("baseline_score", "baseline_pred"), "attack": attack}


@contextmanager
def opened(
    path: Path, layout: Layout = _PLAIN, *, filled: bool = True
) -> Iterator[tuple[list[str], Callable[[Readers], Columns]]]:
    """Lend the names of a file's columns, and what loads some; all values are there if `filled`."""
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "a pipe or a device"
        message = f"{path} is {what}: give a file, which is read more than once"
        raise InputFileError(message)
    kind = _kind(path)
    if kind == ".npz":
        with _archive(path) as archive:
            yield archive.names, lambda readers: _arrays(path, archive, readers)
    elif kind == ".parquet":
        with _parquet(path) as shard:
            names = list(shard.schema_arrow.names)
            yield names, lambda readers: _arrow_columns(path, shard, readers, filled=filled)
    else:
        with opened_text(path) as file:
            names, lines = rows_of(file, path, layout)
            yield names, lambda readers: columns_of(names, lines, path, readers)


def _kind(path: Path) -> str:
    """Return the suffix that says how a file is read, without that of a compressed one."""
    suffix = suffix_of(path)
    if suffix in IN_TEXT or (suffix in {".npz", ".parquet"} and suffix == path.suffix.lower()):
        return suffix
    found = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
    message = (
        f"{path} {found}: expected a .csv, .npz or .parquet file, or .tsv, .jsonl, .csv.gz, "
        f".tsv.gz or .jsonl.gz{_INSTEAD.get(suffix, '')}"
    )
    raise InputFileError(message)


def _said(path: Path, member: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Return membership as numbers, where its words were named and no reader of text knew them."""
    if layout.values is None or _kind(path) in IN_TEXT:
        return member
    told = []
    for row, word in enumerate(member.astype(np.str_).tolist()):
        try:
            told.append(layout.membership(word))
        except ValueError as error:
            message = f"{path}: {layout.member} {error} at row {row} (rows count from 0)"
            raise InputFileError(message) from error
    return np.array(told, dtype=np.int8)


def _joined(
    path: Path,
    ids: NDArray[Any] | None,
    member: NDArray[Any] | None,
    coins: Coins,
    examples: int,
) -> NDArray[np.bool_]:
    """Return who was a member by a plan: in the order of ids, or without ids in that of the plan.

    Raise InputFileError where the plan is of other examples, or the file says otherwise.
    """
    by_plan, wrong = np.empty(0, dtype=np.bool_), ""
    if ids is None and len(coins.ids) != examples:
        wrong = (
            f"{examples:,} rows without a column id, and {len(coins.ids):,} examples in the plan"
        )
    else:
        try:
            by_plan = ExampleOrder(ids).member(coins, examples)
        except UnmatchedIdsError as error:
            wrong = str(error).partition("; ")[0].replace("ids=", "the column id")
            wrong = re.sub(r"\b(in|of) member\b", r"\1 the plan", wrong)
    if wrong:
        wrong += ": --plan takes the one that decided on these examples, and every one of them "
        wrong += "needs a row"
    elif member is not None:
        differ = np.flatnonzero(by_plan != check_membership(member, examples))
        if differ.size:
            wrong = f"column member is not that of the plan, first in row {differ[0]}: the plan was"
            wrong += " another one, or the rows have another order and no ids"
    if wrong:
        message = f"{path}: {wrong}"
        raise InputFileError(message)
    return by_plan


def whole(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids that are whole numbers in text as numbers; others as they are."""
    with suppress(ValueError, OverflowError):
        return ids.astype(np.str_).astype(np.int64)
    return ids


def _pick(
    path: Path,
    names: Sequence[str],
    choices: tuple[str, ...],
    needed: Mapping[str, tuple[str, ...]],
    option: str = "",
) -> str:
    """Return the first of `choices` that the file has."""
    for choice in choices:
        if names.count(choice) == 1:
            return choice
        if choice in names:
            message = f"{path} has {names.count(choice)} columns named {choice!r}: keep one"
            raise InputFileError(message)
    seen = ", ".join(map(repr, names[:_LISTED])) or "none"
    if len(names) > _LISTED:
        seen += f" and {len(names) - _LISTED:,} more"
    if _kind(path) in IN_TEXT and any(re.search(r"[;\t ]", name) for name in names):
        seen += " (say --sep if columns are not separated by commas, or tabs in a .tsv)"
    listed = ", ".join(" or ".join(map(repr, options)) for options in needed.values())
    other = f": {option}" if option and len(names) > 1 else ""
    message = (
        f"{path} has no column {' or '.join(map(repr, choices))}{other}; its columns are {seen}; "
        f"needed are {listed}, and 'id' may be there too"
    )
    raise InputFileError(message)


def _arrays(path: Path, archive: Archive, picked: Iterable[str]) -> Columns:
    columns = {name: archive[name] for name in picked}
    for name, values in columns.items():
        if values.ndim == 2 and values.shape[1] == 1:
            columns[name] = values[:, 0]
        elif values.ndim != 1:
            message = (
                f"{path}: array {name!r} has shape {values.shape}; it must have one value for each "
                "example, in one dimension or one column"
            )
            raise InputFileError(message)
    return columns


@contextmanager
def _archive(path: Path) -> Iterator[Archive]:
    """Open an archive of arrays; say what is wrong with a file that is none."""
    try:
        with open_archive(path) as archive:
            yield archive
    except DamagedFileError as error:
        message = f"{path} is not an .npz archive as numpy.savez writes it: {error}"
        raise InputFileError(message) from error


def _arrow_columns(path: Path, shard: Any, picked: Iterable[str], *, filled: bool) -> Columns:
    from pyarrow import types

    table, columns = shard.read(columns=list(picked)), {}
    for name in picked:
        column = table[name]
        if filled and column.null_count:
            row = column.is_null().index(value=True).as_py()
            message = (
                f"{path}: column {name!r} has {column.null_count:,} empty values, the first at row "
                f"{row} (rows count from 0); drop these rows"
            )
            raise InputFileError(message)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_decimal(column.type):
            column = column.cast("float64")
        columns[name] = column.to_numpy()
    return columns


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """Open a parquet file; say what is wrong with a file that is none."""
    with needs("io", "reading parquet"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        with path.open("rb") as file, parquet.ParquetFile(file) as shard:
            yield shard
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # damage is an OSError, too
        if isinstance(error, OSError) and error.errno is not None:
            raise
        message = f"{path} is not a parquet file: {error}"
        raise InputFileError(message) from error
