"""Tables of scores and membership: csv, tsv, JSON lines, parquet, npz archives.

Arrow reads everything but npz, and text may be compressed by gzip. Columns of csv stay text until
numbers, membership or words are needed, so that a message about a value names its file, column and
row, and the option that helps.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from leakbound._base.arrow import ArrowBatch, ArrowColumn
from leakbound._base.checks import WHOLE, membership_of
from leakbound._base.files import Unpacked, open_archive
from leakbound._base.imports import needs
from leakbound._base.messages import Message
from leakbound._base.text import TYPED, grouped, is_mark, thousands_in, typed
from leakbound._base.types import AnyArray
from leakbound.cli.formats import Bytes, Packed, is_of_reading, read_parquet, read_text, said_of
from leakbound.cli.options import KINDS, option, refuse
from leakbound.errors import (
    FormatError,
    InputTypeError,
    InternalError,
    LeakboundError,
    MissingExtraError,
    OptionError,
)

Stored: TypeAlias = ArrowColumn | AnyArray
"""A column of Arrow, or an array of an archive."""
Batches: TypeAlias = Iterator[Mapping[str, Stored]]
Source: TypeAlias = tuple[list[str], Callable[[Sequence[str]], Batches]]

PIPE = Path("-")
TEXT = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
# Rows of a batch of parquet: a few megabytes.
_ROWS = 1 << 18
# Words that are looked at together.
_PAGE = 1000
# Most columns that a message names, and most characters of a value: a cell may hold megabytes.
_LISTED, _QUOTED = 20, 60
_SIGNS: dict[float | None, int] = {1.0: 1, 0.0: 0, -1.0: -1}
# Errors that are not about a column of a file, or already name the file.
_AS_THEY_ARE = (FormatError, InternalError, MissingExtraError, OptionError, InputTypeError)
# What to do about a missing column.
_SETTLED_BY = {
    "score": "; name the column with --score-col",
    "member": "; name the column with --member-col, or give two files, --members A --nonmembers B",
    "propensity": "; fit it with --features",
}
_BOTH = (
    "; name them with --score-col and --member-col, or give two files, --members A --nonmembers B; "
    "if its columns are scores of members and of others, save each as a file with a column "
    "'score', and give these two"
)


@dataclass(frozen=True)
class Signs:
    """How text files are written; nothing is guessed."""

    sep: Annotated[
        Literal[",", ";", "tab"] | None,
        option("", "Column separator. Default: a comma, or a tab in a .tsv."),
    ] = None
    decimal: Annotated[
        Literal[".", ","] | None,
        option("", "Decimal sign. Default: a point; required with --sep ;."),
    ] = None
    thousands: Annotated[
        Literal[",", ".", "'", "space"] | None,
        option("SIGN", "Thousands separator: , or . or ' or space. Default: none."),
    ] = None

    encoding: Annotated[
        str,
        option("NAME", "Encoding of text, such as latin-1. Default: UTF-8, or UTF-16 by its mark."),
    ] = ""
    most_rows: Annotated[
        int | None,
        option(
            "N",
            "Refuse files with more rows. Default: no limit, unless a file unpacks to more than "
            "1 GB and 100 times its size.",
            min=1,
        ),
    ] = None

    @property
    def sign(self) -> str:
        """The decimal sign."""
        return self.decimal or "."

    @property
    def grouping(self) -> str:
        """The sign between thousands; empty if there is none."""
        return " " if self.thousands == "space" else self.thousands or ""

    def __post_init__(self) -> None:
        with suppress(LookupError):
            if not self.encoding or "x".encode(self.encoding).decode(self.encoding) == "x":
                self._check_signs()
                return
        refuse(f"--encoding {self.encoding!r:.40} is unknown; use latin-1, cp1252, utf-16 or utf-8")

    def _check_signs(self) -> None:
        if self.grouping == self.sign:
            refuse(
                f"--thousands {self.grouping} needs another --decimal sign: {self.sign} is that one"
            )
        if self.sep == self.decimal == ",":
            refuse("--sep , and --decimal , cannot be combined: a comma cannot be both")
        if self.sep == ";" and not self.decimal:  # where 1.234 may be a thousand and more
            refuse("--sep ';' needs --decimal . or --decimal , because such files use both")


@dataclass(frozen=True)
class Layout(Signs):
    """The same, and the column of membership."""

    member_col: Annotated[str, option("COL", "Column of membership.")] = "member"
    member_values: Annotated[
        str,
        option(
            "IN,OUT",
            "Labels for members and non-members, such as a,b. Not needed for 1/0, 1/-1, "
            "true/false, yes/no, in/out, member/nonmember, train/test.",
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        words = self._words
        if self.member_values and not (len(words) == 2 and words[0] != words[1] and all(words)):
            refuse("--member-values must be two different labels, members first, such as in,out")

    @property
    def _words(self) -> list[str]:
        return [word.strip() for word in self.member_values.split(",")]

    def membership(self, words: Sequence[str]) -> list[int | None]:
        """Return 1 for members, 0 or -1 for non-members, None for other words."""
        stripped = [word.strip() for word in words]
        if self.member_values:
            known = dict(zip(self._words, (1, 0), strict=True))
            return [known.get(word) for word in stripped]
        numbers = [_SIGNS.get(_float(word)) for word in stripped]
        return membership_of(stripped) if None in numbers else numbers


def _float(word: str) -> float | None:
    with suppress(ValueError):
        return float(word)
    return None


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the type of a file, in lower case, without .gz."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


@dataclass(frozen=True)
class Columns:
    """Columns of a file, or of a batch of its rows, by name: as they are stored."""

    path: Path
    stored: Mapping[str, Stored]
    signs: Signs
    first: int = 0
    """The number of the first row in the file."""

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def __len__(self) -> int:
        return len(next(iter(self.stored.values())))

    @property
    def paths(self) -> list[Path]:
        """The files that hold the rows."""
        return [self.path]

    @property
    def ids(self) -> AnyArray | None:
        """The column `id`, if there is one."""
        return self.words("id") if "id" in self else None

    def as_stored(self, name: str) -> Stored:
        """Return a column of whatever it holds."""
        column = self.stored[name]
        if isinstance(column, np.ndarray):
            return _array(column)
        return column

    def numbers(self, name: str) -> AnyArray:
        """Return a column as numbers; text that is not a number is refused.

        So are numbers that a double does not hold apart: large integers would become ties.
        """
        column = self._filled(name)
        if is_text(column):
            values, written = self._read(name), column.to_pylist
        else:
            stored = _array(column)
            values, written = stored, stored.tolist
            if stored.dtype.kind in "OSU":
                if not _are_numbers(stored):
                    kind = getattr(column, "type", stored.dtype)
                    raise FormatError(
                        f"{self.path}: column {name!r} must hold real numbers, one in each row, "
                        f"got {kind}"
                    )
                values = stored.astype(np.float64)
            elif stored.dtype.kind not in "iu":
                return stored
        self._check_apart(name, values.astype(np.float64), written)
        return values

    def _check_apart(
        self, name: str, values: NDArray[np.float64], written: Callable[[], list[object]]
    ) -> None:
        """Check that no two numbers become equal as doubles."""
        large = np.flatnonzero(np.isfinite(values) & (np.abs(values) >= WHOLE))
        if not large.size:
            return
        listed, sign, grouping = written(), self.signs.sign, self.signs.grouping
        first = dict[float, tuple[int, Decimal]]()
        for row in large.tolist():
            word = str(listed[row]).strip()
            value = Decimal((word.replace(grouping, "") if grouping else word).replace(sign, "."))
            other, held = first.setdefault(float(values[row]), (row, value))
            if held != value:
                raise FormatError(
                    f"{self.path}: column {name!r} loses precision in float64: {listed[other]} at "
                    f"row {other + self.first} and {listed[row]} at row {row + self.first} become "
                    "equal (rows count from 0, without the header); write their ranks"
                )

    def _read(self, name: str) -> NDArray[np.float64]:
        """Return a column of text as doubles."""
        import pyarrow as pa
        from pyarrow import compute

        words = compute.utf8_trim_whitespace(self.stored[name])
        words = self._ungrouped(name, words)
        other = "." if self.signs.decimal == "," else ","
        if other == ".":  # a point would separate thousands; "_" makes it invalid
            words = compute.replace_substring(words, ".", "_")
            words = compute.replace_substring(words, ",", ".")
        try:
            values = _array(compute.cast(words, pa.float64()))
        except pa.ArrowInvalid as error:
            bad = cast("re.Match[str]", re.search("string: '(.*)' as a scalar", str(error), re.S))
            row = compute.index(words, bad[1]).as_py()
            hint = self._hint(name, row, other)
            raise self._refusal(name, row, f"must be a number, such as -0.5 or inf{hint}") from None
        if np.isinf(values).any():
            has_digits = compute.match_substring_regex(words, "[0-9]")
            too_large = compute.and_(has_digits, pa.array(np.isinf(values)))
            row = compute.index(too_large, value=True).as_py()
            if row >= 0:
                raise self._refusal(
                    name, row, "is too large for a double; write inf if you mean it"
                )
        return values

    def _ungrouped(self, name: str, words: ArrowColumn) -> ArrowColumn:
        """Return text of numbers without thousands separators; refuse it where they seem to be."""
        from pyarrow import compute

        sign, decimal = self.signs.grouping, self.signs.sign
        if sign:
            for written, plain in TYPED.items():
                if plain == sign:
                    words = compute.replace_substring(words, written, plain)
            marked = compute.match_substring(words, sign)
            form = compute.match_substring_regex(words, f"^{grouped(sign, decimal).pattern}$")
            strange = compute.index(compute.and_not(marked, form), value=True).as_py()
            if strange >= 0:
                what = f"must have --thousands {self.signs.thousands} before groups of three digits"
                raise self._refusal(name, strange, what)
            plain_digits: ArrowColumn = compute.replace_substring(words, sign, "")
            return plain_digits
        # The decimal sign itself may be one of thousands; most columns tell by their first numbers.
        if compute.any(compute.match_substring(words, decimal)).as_py():
            found = thousands_in(_listed(words), decimal, decimal)
            if found:
                row = compute.index(words, found).as_py()
                raise self._refusal(name, row, self._of_thousands(decimal))
        return words

    def _of_thousands(self, sign: str) -> str:
        other = "," if sign == "." else "."
        return (
            f"has thousands separators, as three digits follow every {sign!r} and other numbers "
            f"have at most three: remove them, or give --decimal {other} --thousands {sign}"
        )

    def _hint(self, name: str, row: int, other: str) -> str:
        """Return what to do about text that is no number: a mark, or thousands separators."""
        words = [typed(str(word)) for word in _array(self.stored[name]).tolist()]
        word, decimal = words[row].strip(), self.signs.sign
        if is_mark(word):
            return ", and no mark of a missing value: drop these examples, or repair the value"
        for sign, named in ((other, other), ("'", '"\'"'), (" ", "space")):
            if sign in word and thousands_in((one for one in words if sign in one), sign, decimal):
                return f": remove the thousands separators, or give --thousands {named}"
        if word.count(other) != 1:
            return ""
        return f" (use --decimal {other} if that is the decimal sign)"

    def matrix(self, names: Sequence[str]) -> AnyArray:
        """Return columns of numbers as a matrix."""
        return np.column_stack([self.numbers(name) for name in names])

    def member(self) -> AnyArray:
        """Return who was a member, as 1, 0 and -1 or booleans."""
        layout = cast("Layout", self.signs)
        column = self._filled(layout.member_col)
        if is_text(column):
            coded = column.dictionary_encode()
            words = [str(word) for word in coded.dictionary.to_pylist()]
            codes = _array(coded.indices)
        elif layout.member_values or _array(column).dtype.kind in "OSU":
            distinct, codes = np.unique(_array(column).astype(np.str_), return_inverse=True)
            words = distinct.tolist()
        else:
            return _array(column)
        read = layout.membership(words)
        if None in read:
            row = np.flatnonzero(codes == read.index(None))[0]
            known = layout.member_values or "0 or 1, -1 or 1"
            what = f"must be {known}; name other labels with --member-values IN,OUT"
            raise self._refusal(layout.member_col, row, what)
        said: AnyArray = np.array(read, dtype=np.int8)[codes]
        return said

    def words(self, name: str) -> AnyArray:
        """Return a column of ids, strata or groups as it is stored, with text trimmed."""
        values = _array(self._filled(name))
        if values.dtype.kind in "OSUMm":  # dates are text in csv, too
            values = np.char.strip(values.astype(np.str_))
            empty = np.flatnonzero(values == "")
            if empty.size:
                raise self._refusal(name, empty[0], "needs a value for every example")
        return values

    def _filled(self, name: str) -> Stored:
        column = self.stored[name]
        if not isinstance(column, np.ndarray) and column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise self._refusal(name, row, "needs a value for every example")
        return column

    def _refusal(self, name: str, row: int, what: str) -> FormatError:
        value = str(self.stored[name][row])
        shown = f"it is {value[:_QUOTED]!r}" if value.strip() not in {"", "None"} else "it is empty"
        message = (
            f"{self.path}: column {name!r} {what}; {shown} at row {self.first + row} (rows count "
            "from 0, without the header)"
        )
        return FormatError(message)


def read(
    path: Path, wanted: Sequence[str] | None, signs: Signs, *, optional: Sequence[str] = ("id",)
) -> Columns:
    """Read the columns that an audit needs, or all, and the optional ones that are there."""
    with opened(path, signs) as (names, load):
        wanted = names if wanted is None else wanted
        check_names(path, names, wanted)
        if len(set(wanted)) < len(wanted):
            refuse(f"a column can have only one role, and options name one of {wanted} twice")
        picked = dict.fromkeys([*wanted, *(name for name in optional if names.count(name) == 1)])
        columns = Columns(path, together(load([*picked])), signs)
    lengths = {name: len(values) for name, values in columns.stored.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise FormatError(f"{path} holds arrays of different lengths: {listed}")
    if not len(columns):
        raise FormatError(f"{path} has no rows below its header: add one row for each example")
    return columns


@contextmanager
def about(path: Path, counted: str = "without the header") -> Iterator[None]:
    """Name the file in messages about its columns, and say how rows are counted."""
    try:
        yield
    except _AS_THEY_ARE:
        raise
    except LeakboundError as error:
        rows = ""
        if " row" in str(error):
            rows = f" (rows count from 0, {counted})"
        message = Message("{path}: {error}{rows}", path=path, error=error, rows=rows)
        raise FormatError(message) from error


def check_names(path: Path, names: Sequence[str], wanted: Iterable[str]) -> None:
    """Check that a file has each wanted column exactly once."""
    both = {"score", "member"}.issubset(set(wanted) - set(names)) and len(names) > 1
    for name in wanted:
        if names.count(name) == 1:
            continue
        seen = ", ".join(map(repr, names[:_LISTED])) or "none"
        if len(names) > _LISTED:
            seen += f" and {len(names) - _LISTED:,} more"
        if suffix_of(path) in TEXT and re.search(r"[;\t ]", "".join(names)):
            seen += " (use --sep if columns are not separated by commas, or tabs in a .tsv)"
        number = f"{names.count(name)} columns" if name in names else "no column"
        settled = _SETTLED_BY.get(name, "") if len(names) > 1 or name == "member" else ""
        missing = f"{number} {name!r}{settled}"
        if both:
            missing = f"no columns 'score' and 'member'{_BOTH}"
        raise FormatError(f"{path} has {missing}; its columns are {seen}")


@contextmanager
def opened(path: Path, signs: Signs, at_once: int = _ROWS) -> Iterator[Source]:
    """Give the names of a file's columns, and a function that yields some of them in batches.

    `at_once` is the most rows of a batch of parquet.
    """
    suffix = _checked_suffix(path)
    unpacked = Unpacked(0 if path == PIPE else path.stat().st_size, signs.most_rows)
    try:
        if suffix == ".npz":
            with open_archive(path) as archive:
                yield (
                    archive.names,
                    lambda picked: iter([{one: _array(archive[one]) for one in picked}]),
                )
            return
        with needs("io", f"reading {path}"), _stream(path, unpacked) as stored:
            if suffix == ".parquet":
                names, batches = read_parquet(path, at_once, unpacked)
            else:
                names, batches = read_text(suffix, stored, signs.sep, signs.encoding, unpacked)
            yield names, lambda picked: _columns(batches(picked), picked)
    except MemoryError as error:
        raise FormatError(
            f"{path} does not fit in memory, at {unpacked.rows:,} rows: audit fewer, or count "
            "scores with leakbound tally, which reads them in batches"
        ) from error
    except Exception as error:
        if not is_of_reading(error, path):
            raise
        raise FormatError(f"{path} cannot be read: {said_of(error)}") from error


def _checked_suffix(path: Path) -> str:
    """Return the suffix of a file that can be read."""
    if path != PIPE and not path.is_file():
        path.stat()  # raises if it does not exist
        what = "a directory" if path.is_dir() else "a pipe or a device"
        raise FormatError(f"{path} is {what}; give a file, or - for standard input")
    suffix = suffix_of(path)
    if path != PIPE and suffix not in TEXT | {".parquet", ".npz"}:
        raise FormatError(f"{path} has an unknown type: save it as one of {KINDS}")
    return suffix


def whole(ids: AnyArray) -> AnyArray:
    """Convert ids that are whole numbers in text to numbers; return others unchanged."""
    words = ids.astype(np.str_)
    for dtype in (np.int64, np.uint64):
        with suppress(ValueError, OverflowError):
            return words.astype(dtype)
    return ids


def together(batches: Batches) -> Mapping[str, Stored]:
    """Return batches as one."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    return {name: in_one([part[name] for part in parts]) for name in parts[0]}


def in_one(pieces: Sequence[Stored]) -> Stored:
    """Return pieces of a column, of files of any kind, as one column."""
    arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if len(arrays) == len(pieces):
        return np.concatenate([_array(piece) for piece in arrays])
    import pyarrow as pa

    columns: list[ArrowColumn] = []
    for piece in pieces:
        if isinstance(piece, np.ndarray):
            columns.append(pa.array(_array(piece)))
        else:
            columns.append(piece)
    column: ArrowColumn = pa.chunked_array(_of_one_type(columns)).combine_chunks()
    return column


def _of_one_type(pieces: list[ArrowColumn]) -> list[ArrowColumn]:
    """Return pieces of a column as doubles if their types differ and are numbers, else as text."""
    import pyarrow as pa
    from pyarrow import types

    kinds = {piece.type for piece in pieces}
    if len(kinds) == 1:
        return pieces
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds):
        with suppress(pa.ArrowInvalid):  # of integers that no double holds
            return [piece.cast(pa.float64()) for piece in pieces]
    return [piece.cast(pa.string()) for piece in pieces]


def _stream(path: Path, unpacked: Unpacked) -> AbstractContextManager[Bytes]:
    if path == PIPE:
        if sys.stdin is None or sys.stdin.closed:
            raise FormatError("standard input is closed: give a file, or pipe a table into it")
        return nullcontext(sys.stdin.buffer)
    if path.suffix.lower() == ".gz":
        return Packed(path, unpacked)
    return _still(path)


@contextmanager
def _still(path: Path) -> Iterator[Bytes]:
    """Open a file that nobody writes: what grows as fast as it is read has no end."""
    with path.open("rb") as file:
        yield _Still(file, path.stat().st_size)


@dataclass
class _Still:
    """An open file, refused once more was read than it held when it was opened."""

    file: Bytes
    left: int

    def read(self, size: int = -1, /) -> bytes:
        """See `Bytes.read`."""
        piece = self.file.read(size)
        self.left -= len(piece)
        if self.left < 0:
            raise FormatError("it grows while it is read: wait until its writer ends")
        return piece


def _columns(batches: Iterable[ArrowBatch], picked: Sequence[str]) -> Batches:
    """Yield columns of Arrow records, with dictionaries decoded."""
    from pyarrow import types

    columns: dict[str, ArrowColumn] = {}
    for batch in batches:
        columns = {name: batch.column(name) for name in picked}
        for name, column in columns.items():
            if types.is_dictionary(column.type):
                columns[name] = column.cast(column.type.value_type)
        yield columns
    if not columns:
        yield {name: np.empty(0) for name in picked}


def _listed(words: ArrowColumn) -> Iterator[str]:
    """Yield the words of a column of Arrow, a few at a time: most readers stop soon."""
    for start in range(0, len(words), _PAGE):
        yield from map(str, words.slice(start, _PAGE).to_pylist())


def is_text(column: Stored) -> TypeGuard[ArrowColumn]:
    """Return whether a column is of Arrow and holds text."""
    return not isinstance(column, np.ndarray) and str(column.type) in {"string", "large_string"}


def _are_numbers(values: AnyArray) -> bool:
    """Return whether objects are all numbers, such as decimals."""
    if values.dtype.kind != "O":
        return False
    return all(isinstance(value, Real | Decimal) for value in values.tolist())


def _array(column: Stored) -> AnyArray:
    """Return a column of an archive or of Arrow as a vector."""
    if isinstance(column, np.ndarray):
        values = column
    else:
        try:
            values = _array_of_arrow(column)
        except Exception as error:  # Arrow does not check text in parquet before it is read
            is_of_arrow = type(error).__module__.startswith("pyarrow")
            if not is_of_arrow and not isinstance(error, UnicodeError):
                raise
            raise FormatError(f"a column cannot be read: {error}") from error
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _array_of_arrow(column: ArrowColumn) -> AnyArray:
    """Return text and numbers without `to_numpy` of Arrow, which imports pandas."""
    from pyarrow import types

    if is_text(column):
        return np.array(column.to_pylist(), dtype=np.object_)
    is_number = types.is_integer(column.type) or types.is_floating(column.type)
    if is_number and not column.null_count:
        numbers: AnyArray = np.from_dlpack(cast("Any", column))
        return numbers
    return column.to_numpy(zero_copy_only=False)
