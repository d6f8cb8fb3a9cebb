"""Tables of scores and membership from csv, tsv, JSON lines, npz and parquet files.

Text may be compressed by gzip. `rows_of` reads any of it from a stream, `columns_of` makes arrays.

Numbers arrive as they were written: decimal text becomes the nearest double, binary columns keep
their bits. A file that cannot be used is refused with its name, the place, and what was expected.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import zlib
from array import array
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO, cast

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.archives import Archive, DamagedFileError, open_archive, read_array_file
from leakbound._base.scores import Scores
from leakbound.cli.layouts import Layout, decimal_sign, separator_of
from leakbound.errors import InputFileError, MissingExtraError, UnmatchedIdsError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from leakbound.planning.commitment import Coins

_PLAIN = Layout()
_IN_TEXT = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
"""Suffixes of tables in text."""
_INSTEAD = {
    ".json": "if each line is an object, rename it to .jsonl",
    ".txt": "rename it to .csv if commas, semicolons or tabs separate its columns",
    ".xls": "save the sheet as .csv",
    ".xlsx": "save the sheet as .csv",
}
"""What to do with files of other suffixes."""
_OPTIONS = {
    "score": "name another by --score-col",
    "member": "name another by --member-col",
    "propensity": "give a file of them by --propensity, or the --features to learn them from",
}
"""What to do where a column of an audit is missing."""
_OBJECT = '{"score": 0.5, "member": 1}'
_TEXT = frozenset({"member", "id", "split"})
"""Columns that are not numbers."""
_COLUMNS = 100_000
"""Most columns of a table."""
_QUOTED = 60
"""Most characters of a value that a message quotes."""
_LISTED = 20
"""Most columns that a message names."""
_SMALL = 1 << 20
"""Bytes that are read line by line in less time than Arrow takes to load."""
_LINE = 1 << 26
"""Longest line of a csv file, in characters."""


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
    needs = {**wanted, **{name: (name,) for name in words}}
    if coins is None:
        needs["member"] = (layout.member,)
    else:
        optional = (*optional, layout.member)
    text = (_TEXT - {"member"}) | {layout.member, *words}
    columns = read_columns(
        path, needs, optional=optional, text=text, layout=layout, options=_OPTIONS
    )
    member = columns.get("member" if coins is None else layout.member)
    if member is None and coins is not None:
        first = next(iter(columns.values()))
        try:
            member = joined(ids_like(columns.get("id"), coins), coins, len(first))
        except UnmatchedIdsError as error:
            message = f"{path}: {error}"
            raise InputFileError(message) from error
    elif member is not None:
        member = _said(path, member, layout)
    return Table(
        scores={name: columns[name] for name in wanted},
        member=np.asarray(member),
        ids=columns.get("id"),
        split=columns.get("split"),
        words={name: _filled(path, name, columns[name]) for name in words},
    )


def read_columns(
    path: Path,
    wanted: Mapping[str, tuple[str, ...]],
    *,
    optional: tuple[str, ...] = (),
    text: frozenset[str] = _TEXT,
    layout: Layout = _PLAIN,
    options: Mapping[str, str] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read columns of one length, each under the first of its names that the file has.

    `options` are what messages advise where a column is missing.
    """
    names_of, load = _format(path, layout)
    names = names_of(path)
    told = options or {}
    picked = {
        name: _pick(path, names, choices, wanted, told.get(name, ""))
        for name, choices in wanted.items()
    }
    picked |= {name: _pick(path, names, (name,), wanted) for name in optional if name in names}
    columns = load(path, names, sorted(set(picked.values())), text)
    lengths = {name: len(values) for name, values in columns.items()}
    if 0 in lengths.values():
        message = f"{path} has a header and no rows: it needs one row for each audited example"
        raise InputFileError(message)
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        message = f"{path} holds arrays of different lengths ({listed}): one value per example"
        raise InputFileError(message)
    return {name: columns[own] for name, own in picked.items()}


def _filled(path: Path, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Check that no text of a column is empty."""
    if values.dtype.kind in "OSU":
        empty = [row for row, one in enumerate(values.tolist()) if not str(one).strip()]
        if empty:
            message = (
                f"{path}: column {name!r} is empty at row {empty[0]} (rows count from 0, without "
                "the header): every example needs a value"
            )
            raise InputFileError(message)
    return values


def panoramia_columns(
    path: Path, model: str, layout: Layout = _PLAIN
) -> dict[str, tuple[str, ...]]:
    """Return the names that the scores of baseline and attack may have in a file."""
    names_of, _ = _format(path, layout)
    if model:
        attack: tuple[str, ...] = (f"mia_{model}_pred",)
    else:
        found = tuple(n for n in names_of(path) if n.startswith("mia_") and n.endswith("_pred"))
        if len(found) > 1:
            listed = ", ".join(name.removeprefix("mia_").removesuffix("_pred") for name in found)
            message = f"{path} has scores of several models: choose one by --model, of {listed}"
            raise InputFileError(message)
        attack = ("attack_score", "score", *found)
    return {"baseline": ("baseline_score", "baseline_pred"), "attack": attack}


def _format(
    path: Path, layout: Layout = _PLAIN
) -> tuple[Callable[..., list[str]], Callable[..., dict[str, NDArray[Any]]]]:
    """Return what lists and what loads the columns of a file of this kind."""
    _check_regular(path)
    kind = _kind(path)
    if kind == ".npz":
        return _npz_names, _npz
    if kind == ".parquet":
        return _parquet_names, _parquet
    return partial(_csv_names, layout=layout), partial(_csv, layout=layout)


def _kind(path: Path) -> str:
    """Return the suffix that says how a file is read, without that of a compressed one."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = path.with_suffix("").suffix.lower()
        if suffix in _IN_TEXT:
            return suffix
    elif suffix in {*_IN_TEXT, ".npz", ".parquet"}:
        return suffix
    if suffix == ".npy":
        message = (
            f"{path} holds one array, and an audit takes scores and who was a member: save both in "
            "one archive, numpy.savez('scores.npz', score=…, member=…)"
        )
        raise InputFileError(message)
    found = f"ends in {path.suffix!r}" if path.suffix else "has no suffix"
    way = _INSTEAD.get(suffix, "")
    message = (
        f"{path} {found}: expected a .csv, .npz or .parquet file, or .tsv, .jsonl, .csv.gz, "
        f".tsv.gz or .jsonl.gz{way and f'; {way}'}"
    )
    raise InputFileError(message)


def _said(path: Path, member: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Return membership as numbers, where its words were named and the file is not of text."""
    if layout.values is None or member.dtype == np.int8:
        return member
    words = np.char.strip(member.astype(np.str_)).tolist()
    told = [layout.membership_of(word) for word in words]
    if None in told:
        row = told.index(None)
        message = (
            f"{path}: {layout.member} must be {layout.known}; it is {_quoted(words[row])} at row "
            f"{row} (rows count from 0)"
        )
        raise InputFileError(message)
    return np.array(told, dtype=np.int8)


def joined(ids: NDArray[Any] | None, coins: Coins, examples: int) -> NDArray[np.bool_]:
    """Return who was a member by a plan, in the order of ids; without ids, in that of the plan.

    Raise UnmatchedIdsError where the plan is of other examples.
    """
    if ids is None and len(coins.ids) != examples:
        message = (
            f"{examples:,} rows without a column id, and {len(coins.ids):,} examples in the plan: "
            "--plan takes the one that decided on these examples, and every one of them needs a row"
        )
        raise UnmatchedIdsError(message)
    try:
        return ExampleOrder(ids).member(coins, examples)
    except UnmatchedIdsError as error:
        found = str(error).partition("; ")[0].replace("ids=", "the column id")
        found = re.sub(r"\b(in|of) member\b", r"\1 the plan", found)
        message = (
            f"{found}: --plan takes the one that decided on these examples, and every one of them "
            "needs a row"
        )
        raise UnmatchedIdsError(message) from error


def ids_like(ids: NDArray[Any] | None, coins: Coins) -> NDArray[Any] | None:
    """Return ids in the type of a plan's."""
    if ids is not None and ids.dtype.kind not in "iu" and coins.ids.dtype.kind in "iu":
        return whole(ids)
    return ids


def whole(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids that are whole numbers in text as numbers; others as they are."""
    with suppress(ValueError, OverflowError):
        return ids.astype(np.str_).astype(np.int64)
    return ids


def _check_regular(path: Path) -> None:
    """Check that what is read more than once is neither a folder nor a pipe."""
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "a pipe or a device"
        message = f"{path} is {what}: give a file, which is read more than once"
        raise InputFileError(message)


def read_propensities(path: Path, ids: NDArray[Any] | None) -> NDArray[Any]:
    """Read propensities from a file of their own, in the order of the scores."""
    if path.suffix.lower() == ".npy":
        return _array(path)
    names_of, load = _format(path)
    names = names_of(path)
    picked = [_pick(path, names, ("propensity",), {"propensity": ("propensity",)})]
    columns = load(path, names, [*picked, *({"id"} & set(names))], _TEXT)
    if "id" not in columns or ids is None:
        return columns["propensity"]
    # Ids are text in a csv file and may be numbers elsewhere.
    listed = Scores(columns["propensity"], _words(columns["id"]), "propensity")
    return np.asarray(ExampleOrder(_words(ids)).placed(listed, str(path)))


def read_records(path: Path, layout: Layout = _PLAIN) -> dict[str, NDArray[Any]]:
    """Read all columns of a table of records: words from csv, otherwise what the file holds."""
    names_of, _ = _format(path, layout)
    names = names_of(path)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        message = f"{path} has {names.count(twice[0])} columns named {twice[0]!r}: keep one"
        raise InputFileError(message)
    readers: dict[str, Any] = {".npz": _npz, ".parquet": _parquet_records}
    reader = readers.get(_kind(path), partial(_csv_words, layout=layout))
    columns: dict[str, NDArray[Any]] = reader(path, names, names)
    if not columns or 0 in {len(values) for values in columns.values()}:
        message = f"{path} has a header and no rows: it needs one row for each record"
        raise InputFileError(message)
    return columns


def separates(path: Path, layout: Layout = _PLAIN) -> str:
    """Return what separates the columns of a table in text; a comma for other tables."""
    if _kind(path) not in _IN_TEXT:
        return ","
    with _opened(path) as file:
        return rows_of(file, path, layout).separator


def _csv_words(
    path: Path, names: Sequence[str], _: Sequence[str], layout: Layout
) -> dict[str, NDArray[Any]]:
    with _opened(path) as file:
        rows = [row for _, row in rows_of(file, path, layout).lines]
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {
        name: np.char.strip(np.array(column, dtype=np.str_))
        for name, column in zip(names, columns, strict=True)
    }


def _parquet_records(path: Path, names: Sequence[str], _: Sequence[str]) -> dict[str, NDArray[Any]]:
    with _arrow(path) as parquet, path.open("rb") as file:
        from pyarrow import types

        table = parquet.read_table(file)
        columns = {}
        for name in names:
            column = table[name]
            if types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if types.is_decimal(column.type):
                column = column.cast("float64")
            columns[name] = column.to_numpy()
        return columns


def _words(ids: NDArray[Any]) -> NDArray[np.str_]:
    return np.char.strip(ids.astype(np.str_))


def _array(path: Path) -> NDArray[Any]:
    _check_regular(path)
    try:
        array = read_array_file(path)
    except DamagedFileError as error:
        message = f"{path} is not an .npy array of numbers: write it with numpy.save ({error})"
        raise InputFileError(message) from error
    if array.ndim not in {1, 2}:
        message = f"{path} must hold one array of one or two dimensions: write it with numpy.save"
        raise InputFileError(message)
    return array


def _pick(
    path: Path,
    names: Sequence[str],
    choices: tuple[str, ...],
    needs: Mapping[str, tuple[str, ...]],
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
    if len(names) == 1 and _kind(path) in _IN_TEXT and not re.fullmatch(r"\w+", names[0]):
        seen += " (columns are separated by a comma, a semicolon or a tab)"
    needed = ", ".join(" or ".join(map(repr, options)) for options in needs.values())
    other = f": {option}" if option and len(names) > 1 else ""
    message = (
        f"{path} has no column {' or '.join(map(repr, choices))}{other}; its columns are {seen}; "
        f"needed are {needed}, and 'id' may be there too"
    )
    raise InputFileError(message)


@dataclass(frozen=True)
class Rows:
    """A table in text: the names of its columns, what separates them, and its rows by line."""

    names: list[str]
    separator: str
    lines: Iterator[tuple[int, list[str]]]


def rows_of(file: TextIO, called: Path, layout: Layout = _PLAIN) -> Rows:
    """Read a table from a stream of text; `called` names it, and its suffix says what it is."""
    if _kind(called) in {".jsonl", ".ndjson"}:
        return _objects(file, called)
    lines = _bounded(file, called)
    first = next(lines, "")
    separator = separator_of(first, called, layout)
    reader = csv.reader(chain([first], lines), delimiter=separator, skipinitialspace=True)
    header = next(reader, None) if first else None
    if header is None:
        message = (
            f"{called} is empty: its first line must name the columns, for example score,member"
        )
        raise InputFileError(message)
    if reader.line_num > 1:
        message = f"{called} has a name of a column with a line break in it: rename the column"
        raise InputFileError(message)
    if len(header) > _COLUMNS:
        message = (
            f"{called} names {len(header):,} columns, and at most {_COLUMNS:,} are read: keep "
            "those that the audit takes"
        )
        raise InputFileError(message)
    names = [name.strip() for name in header]
    return Rows(names, separator, _below(reader, called, len(names)))


def _below(reader: Any, called: Path, fields: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the fields of every line below the header that is not blank."""
    for row in reader:
        if any("\0" in value for value in row):
            message = f"{called}, line {reader.line_num} has NUL bytes: save it as UTF-8 text"
            raise InputFileError(message)
        if row and len(row) != fields:
            message = (
                f"{called}, line {reader.line_num}: {len(row)} values where the header names "
                f"{fields} columns"
            )
            raise InputFileError(message)
        if row:
            yield reader.line_num, row


def _objects(file: TextIO, called: Path) -> Rows:
    """Read JSON lines: an object on each, with the names of the first one."""

    def objects() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(_bounded(file, called), 1):
            if not line.strip():
                continue
            try:
                one = json.loads(line)
            except (ValueError, RecursionError) as error:
                message = f"{called}, line {number} is not JSON: {error}"
                raise InputFileError(message) from error
            if not isinstance(one, dict):
                message = f"{called}, line {number} is not a JSON object, such as " + _OBJECT
                raise InputFileError(message)
            yield number, one

    every = objects()
    first = next(every, None)
    if first is None:
        message = f"{called} is empty: it needs a JSON object on each line, such as {_OBJECT}"
        raise InputFileError(message)
    names = list(first[1])

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, one in chain([first], every):
            missing = [name for name in names if name not in one]
            if missing:
                message = f"{called}, line {number} has no {missing[0]!r}, which the first line has"
                raise InputFileError(message)
            yield number, [_in_text(one[name]) for name in names]

    return Rows(names, ",", rows())


def _in_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv_names(path: Path, layout: Layout = _PLAIN) -> list[str]:
    with _opened(path) as file:
        return rows_of(file, path, layout).names


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """Open a table in text, compressed or not; say what is wrong with what is none."""
    packed = path.suffix.lower() == ".gz"
    with _text(path):
        if packed:
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                yield cast("TextIO", file)
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file


def _bounded(file: TextIO, path: Path) -> Iterator[str]:
    """Yield lines that are not so long that they are none."""
    for number, line in enumerate(iter(lambda: file.readline(_LINE), ""), 1):
        if len(line) == _LINE and not line.endswith("\n"):
            message = f"{path}, line {number} has more than {_LINE:,} characters: it is no table"
            raise InputFileError(message)
        yield line


def _csv(
    path: Path,
    names: Sequence[str],
    picked: Sequence[str],
    text: frozenset[str],
    layout: Layout = _PLAIN,
) -> dict[str, NDArray[Any]]:
    """Read large files by Arrow, if installed; what it refuses, the plain reader explains."""
    columns = None
    if path.suffix.lower() == ".csv" and layout.is_plain and path.stat().st_size >= _SMALL:
        columns = _csv_by_arrow(path, names, picked, text, layout)
    return _csv_by_line(path, names, picked, text, layout) if columns is None else columns


def _csv_by_arrow(
    path: Path,
    names: Sequence[str],
    picked: Sequence[str],
    text: frozenset[str] = _TEXT,
    layout: Layout = _PLAIN,
) -> dict[str, NDArray[Any]] | None:
    try:
        import pyarrow as pa
        from pyarrow import compute
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None

    def load(wanted: Sequence[str], words: Container[str]) -> Any:
        types = {name: pa.string() if name in words else pa.float64() for name in wanted}
        return arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=list(names), skip_rows=1),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(wanted),
                column_types=types,
                null_values=[],
                strings_can_be_null=False,
            ),
        )

    try:
        table = load(picked, text)
        columns = {name: table[name].combine_chunks() for name in picked}
        if layout.member in columns:
            words = columns[layout.member].dictionary_encode()
            known = [
                layout.membership[word.strip().lower()] for word in words.dictionary.to_pylist()
            ]
            columns[layout.member] = compute.take(pa.array(known, pa.int8()), words.indices)
        read = {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        for name, values in read.items():
            infinite = np.flatnonzero(np.isinf(values)) if values.dtype.kind == "f" else ()
            if len(infinite):
                written = load([name], [name])[name].take(infinite)
                if compute.any(compute.match_substring_regex(written, "[0-9]")).as_py():
                    return None  # too large for a double, as the plain reader says
    except (pa.ArrowException, KeyError, OSError, UnicodeError):
        return None
    return read


def _csv_by_line(
    path: Path,
    names: Sequence[str],
    picked: Sequence[str],
    text: frozenset[str] = _TEXT,
    layout: Layout = _PLAIN,
) -> dict[str, NDArray[Any]]:
    with _opened(path) as file:
        rows = rows_of(file, path, layout)
        return columns_of(replace(rows, names=list(names)), path, picked, text, layout)


def columns_of(
    rows: Rows,
    called: Path,
    picked: Sequence[str],
    text: frozenset[str] = _TEXT,
    layout: Layout = _PLAIN,
) -> dict[str, NDArray[Any]]:
    """Return columns as arrays: numbers, membership and, for the names in `text`, words."""
    places = {name: rows.names.index(name) for name in picked}
    numeric = [name for name in picked if name not in text]
    scores = {name: array("d") for name in numeric}
    member = array("b")
    texts: dict[str, list[str]] = {name: [] for name in picked if name in text - {layout.member}}
    lines = rows.lines
    if rows.separator != "," and not layout.decimal:
        kept = list(lines)
        written = (row[places[name]] for _, row in kept for name in numeric)
        sign = decimal_sign(written, rows.separator, called, layout)
        lines = iter(kept)
    else:
        sign = layout.decimal or "."
    for line, row in lines:
        for name, values in scores.items():
            values.append(_decimal(row[places[name]], called, line, name, sign))
        if layout.member in places:
            member.append(_membership(row[places[layout.member]], called, line, layout))
        for name, words in texts.items():
            words.append(row[places[name]])
    columns: dict[str, NDArray[Any]] = {
        name: np.frombuffer(values) if values else np.empty(0) for name, values in scores.items()
    }
    if layout.member in places:
        columns[layout.member] = np.array(member, dtype=np.int8)
    return columns | {name: np.array(words) for name, words in texts.items()}


def _decimal(text: str, path: Path, line: int, name: str, sign: str = ".") -> float:
    other = "." in text and sign == ","  # would stand for thousands
    try:
        value = math.nan if "_" in text or other else float(text.replace(sign, "."))
    except ValueError:
        value = math.nan
    if math.isinf(value) and any(character.isdigit() for character in text):
        message = (
            f"{path}, line {line}: {name} is {_quoted(text)}, which is beyond a double: write inf "
            "if it is meant"
        )
        raise InputFileError(message)
    if not math.isnan(value) or text.strip().lower().lstrip("+-") == "nan":
        return value
    message = (
        f"{path}, line {line}: {name} must be a number, such as -0.5 or inf; it is {_quoted(text)}"
    )
    raise InputFileError(message)


def _quoted(text: str) -> str:
    """Return a value as messages quote it, cut off where it is long."""
    if not text.strip():
        return "empty"
    return repr(text) if len(text) <= _QUOTED else f"{text[:_QUOTED]!r}…"


def _membership(text: str, path: Path, line: int, layout: Layout) -> int:
    said = layout.membership_of(text)
    if said is None:
        message = f"{path}, line {line}: {layout.member} must be {layout.known}; it is "
        raise InputFileError(message + _quoted(text))
    return said


@contextmanager
def _text(path: Path) -> Iterator[None]:
    """Say what is wrong with a file that is no table in text."""
    try:
        yield
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        message = f"{path} is not UTF-8 text (byte 0x{byte:02x}): save it as UTF-8"
        raise InputFileError(message) from error
    except csv.Error as error:
        message = f"{path} is not a csv file: {error}"
        raise InputFileError(message) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        message = f"{path} is not compressed by gzip: {error}"
        raise InputFileError(message) from error
    except EOFError as error:
        if path.suffix.lower() != ".gz":
            raise
        message = f"{path} is not compressed by gzip, or was cut off: {error}"
        raise InputFileError(message) from error


def _npz_names(path: Path) -> list[str]:
    with _archive(path) as archive:
        return archive.names


def _npz(
    path: Path, _: Sequence[str], picked: Sequence[str], _text: frozenset[str] = _TEXT
) -> dict[str, NDArray[Any]]:
    with _archive(path) as archive:
        arrays = {name: archive[name] for name in picked}
    columns = {
        name: values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        for name, values in arrays.items()
    }
    for name, values in columns.items():
        if values.ndim != 1:
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


def _parquet_names(path: Path) -> list[str]:
    with _arrow(path) as parquet, path.open("rb") as file:
        return list(parquet.read_schema(file).names)


def _parquet(
    path: Path, _: Sequence[str], picked: Sequence[str], _text: frozenset[str]
) -> dict[str, NDArray[Any]]:
    with _arrow(path) as parquet, path.open("rb") as file:
        table = parquet.read_table(file, columns=list(picked))
        for name in picked:
            if table[name].null_count:
                row = table[name].is_null().index(value=True).as_py()
                message = (
                    f"{path}: column {name!r} has {table[name].null_count:,} empty values, the "
                    f"first at row {row} (rows count from 0); drop these rows"
                )
                raise InputFileError(message)
        return {name: table[name].to_numpy() for name in picked}


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    """Lend Arrow's parquet reader; say what is wrong with a file that is not parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        message = (
            "reading parquet needs pyarrow, which is not installed: pip install 'leakbound[io]', "
            "or save the table as csv"
        )
        raise MissingExtraError(message) from error
    try:
        yield parquet
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # damage is an OSError, too
        if isinstance(error, OSError) and error.errno is not None:
            raise
        message = f"{path} is not a parquet file: {error}"
        raise InputFileError(message) from error
