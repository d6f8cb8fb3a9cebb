"""Tables of scores and membership: csv, tsv, JSON lines, parquet, npz archives.

Arrow reads everything but npz, and text may be compressed by gzip. Columns of csv stay text until
numbers, membership or words are needed, so that a message about a value names its file, column and
row, and the option that helps.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import WHOLE, membership_of
from leakbound._base.files import Unpacked, open_archive
from leakbound._base.imports import needs
from leakbound._base.messages import Message
from leakbound._base.reading import ArrowColumn
from leakbound._base.text import TYPED, grouped, is_mark, thousands_in, typed
from leakbound._base.types import AnyArray
from leakbound.cli.formats import (
    Batches,
    Bytes,
    Packed,
    Stored,
    array_of_column,
    decoded_columns,
    in_one,
    is_of_reading,
    is_text,
    opened_still,
    read_parquet,
    read_text,
    said_of,
)
from leakbound.cli.options import KINDS, option, refuse
from leakbound.errors import (
    FormatError,
    InputTypeError,
    InternalError,
    LeakboundError,
    MissingExtraError,
    OptionError,
)

Source: TypeAlias = tuple[list[str], Callable[[Sequence[str]], Batches]]

PIPE = Path("-")
TEXT = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
# Rows of a batch of parquet: a few megabytes.
_ROWS_OF_BATCH = 1 << 18
# Words that are looked at together.
_WORDS_OF_PAGE = 1000
# Most columns that a message names, and most characters of a value: a cell may hold megabytes.
_MOST_LISTED_COLUMNS = 20
_MOST_QUOTED_CHARACTERS = 60
_CODE_OF_NUMBER: dict[float | None, int] = {1.0: 1, 0.0: 0, -1.0: -1}
# Errors that are not about a column of a file, or already name the file.
_AS_THEY_ARE = (FormatError, InternalError, MissingExtraError, OptionError, InputTypeError)
# What to do about a missing column.
_REMEDY_OF_MISSING = {
    "score": "; name the column with --score-col",
    "member": "; name the column with --member-col, or give two files, --members A --nonmembers B",
    "propensity": "; fit it with --features",
}
_REMEDY_OF_BOTH_MISSING = (
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
    def other_sign(self) -> str:
        """The point or comma that is not the decimal sign."""
        if self.sign == ".":
            return ","
        return "."

    @property
    def grouping(self) -> str:
        """The sign between thousands; empty if there is none."""
        if self.thousands == "space":
            return " "
        return self.thousands or ""

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
        labels = self._labels
        if self.member_values and not (len(labels) == len(set(labels)) == 2 and all(labels)):
            refuse("--member-values must be two different labels, members first, such as in,out")

    @property
    def _labels(self) -> list[str]:
        return [label.strip() for label in self.member_values.split(",")]

    def membership(self, words: Sequence[str]) -> list[int | None]:
        """Return 1 for members, 0 or -1 for non-members, None for other words."""
        labels = [word.strip() for word in words]
        if self.member_values:
            code_of_label = dict(zip(self._labels, (1, 0), strict=True))
            return [code_of_label.get(label) for label in labels]
        codes = [_CODE_OF_NUMBER.get(_float_or_none(label)) for label in labels]
        if None in codes:
            return membership_of(labels)
        return codes


def _float_or_none(word: str) -> float | None:
    with suppress(ValueError):
        return float(word)
    return None


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the type of a file, in lower case, without .gz."""
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return path.suffix.lower()


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

    def as_stored(self, name: str) -> Stored:
        """Return a column of whatever it holds."""
        column = self.stored[name]
        if isinstance(column, np.ndarray):
            return array_of_column(column)
        return column

    def numbers(self, name: str) -> AnyArray:
        """Return a column as numbers; text that is not a number is refused.

        So are numbers that a double does not hold apart: large integers would become ties.
        """
        column = self._filled(name)
        if is_text(column):
            doubles = self._doubles_of_text(name)
            self._check_apart(name, doubles, column.to_pylist)
            return doubles
        stored_numbers = array_of_column(column)
        numbers = stored_numbers
        if stored_numbers.dtype.kind in "OSU":
            if not _are_numbers(stored_numbers):
                kind = getattr(column, "type", stored_numbers.dtype)
                raise FormatError(
                    f"{self.path}: column {name!r} must hold real numbers, one in each row, "
                    f"got {kind}"
                )
            numbers = stored_numbers.astype(np.float64)
        if stored_numbers.dtype.kind in "OSUiu":
            doubles = numbers.astype(np.float64)
            self._check_apart(name, doubles, stored_numbers.tolist)
        return numbers

    def _check_apart(
        self, name: str, doubles: NDArray[np.float64], as_written: Callable[[], list[object]]
    ) -> None:
        """Check that no two numbers become equal as doubles."""
        is_large = np.isfinite(doubles) & (np.abs(doubles) >= WHOLE)
        if not is_large.any():
            return
        written_numbers = as_written()
        first_with_double = dict[float, tuple[int, Decimal]]()
        for row in np.flatnonzero(is_large).tolist():
            digits = str(written_numbers[row]).strip().replace(self.signs.grouping, "")
            exact_number = Decimal(digits.replace(self.signs.sign, "."))
            first_row, first_number = first_with_double.setdefault(
                float(doubles[row]), (row, exact_number)
            )
            if first_number != exact_number:
                raise FormatError(
                    f"{self.path}: column {name!r} loses precision in float64: "
                    f"{written_numbers[first_row]} at row {first_row + self.first} and "
                    f"{written_numbers[row]} at row {row + self.first} become equal (rows count "
                    "from 0, without the header); write their ranks"
                )

    def _doubles_of_text(self, name: str) -> NDArray[np.float64]:
        """Return a column of text as doubles."""
        import pyarrow as pa
        from pyarrow import compute

        words = compute.utf8_trim_whitespace(self.stored[name])
        words = self._without_thousands_separators(name, words)
        if self.signs.sign == ",":  # a point would separate thousands; "_" makes it invalid
            words = compute.replace_substring(words, ".", "_")
            words = compute.replace_substring(words, ",", ".")
        try:
            doubles = array_of_column(compute.cast(words, pa.float64()))
        except pa.ArrowInvalid as error:
            not_a_number = re.search("string: '(.*)' as a scalar", str(error), re.DOTALL)
            assert not_a_number is not None
            row = compute.index(words, not_a_number[1]).as_py()
            hint = self._hint_about_number(name, row)
            raise self._refusal(name, row, f"must be a number, such as -0.5 or inf{hint}") from None
        is_infinite = np.isinf(doubles)
        if is_infinite.any():
            has_digits = compute.match_substring_regex(words, "[0-9]")
            is_too_large = compute.and_(has_digits, pa.array(is_infinite))
            row = compute.index(is_too_large, value=True).as_py()
            if row >= 0:
                raise self._refusal(
                    name, row, "is too large for a double; write inf if you mean it"
                )
        return doubles

    def _without_thousands_separators(self, name: str, words: ArrowColumn) -> ArrowColumn:
        """Return text of numbers without thousands separators; refuse it where they seem to be."""
        from pyarrow import compute

        separator = self.signs.grouping
        decimal = self.signs.sign
        if separator:
            for typed_sign, plain_sign in TYPED.items():
                if plain_sign == separator:
                    words = compute.replace_substring(words, typed_sign, plain_sign)
            has_separator = compute.match_substring(words, separator)
            grouped_number = grouped(separator, decimal).pattern
            is_grouped = compute.match_substring_regex(words, f"^{grouped_number}$")
            is_misplaced = compute.and_not(has_separator, is_grouped)
            row = compute.index(is_misplaced, value=True).as_py()
            if row >= 0:
                what = f"must have --thousands {self.signs.thousands} before groups of three digits"
                raise self._refusal(name, row, what)
            plain_digits: ArrowColumn = compute.replace_substring(words, separator, "")
            return plain_digits
        # The decimal sign itself may be one of thousands; most columns tell by their first numbers.
        has_decimal = compute.match_substring(words, decimal)
        if compute.any(has_decimal).as_py():
            grouped_number = thousands_in(_words_in_pages(words), decimal, decimal)
            if grouped_number:
                row = compute.index(words, grouped_number).as_py()
                raise self._refusal(
                    name,
                    row,
                    "has thousands separators, as three digits follow every "
                    f"{decimal!r} and other numbers have at most three: remove them, or give "
                    f"--decimal {self.signs.other_sign} --thousands {decimal}",
                )
        return words

    def _hint_about_number(self, name: str, row: int) -> str:
        """Return what to do about text that is no number: a mark, or thousands separators."""
        words = [typed(str(word)) for word in array_of_column(self.stored[name]).tolist()]
        word = words[row].strip()
        if is_mark(word):
            return ", and no mark of a missing value: drop these examples, or repair the value"
        other_sign = self.signs.other_sign
        named_separators = {other_sign: other_sign, "'": '"\'"', " ": "space"}
        for separator, separator_name in named_separators.items():
            if separator not in word:
                continue
            separated_words = (other for other in words if separator in other)
            if thousands_in(separated_words, separator, self.signs.sign):
                return f": remove the thousands separators, or give --thousands {separator_name}"
        if word.count(other_sign) != 1:
            return ""
        return f" (use --decimal {other_sign} if that is the decimal sign)"

    def matrix(self, names: Sequence[str]) -> AnyArray:
        """Return columns of numbers as a matrix."""
        return np.column_stack([self.numbers(name) for name in names])

    def member(self) -> AnyArray:
        """Return who was a member, as 1, 0 and -1 or booleans."""
        layout = cast("Layout", self.signs)
        column = self._filled(layout.member_col)
        if is_text(column):
            dictionary = column.dictionary_encode()
            labels = [str(label) for label in dictionary.dictionary.to_pylist()]
            label_of_row = array_of_column(dictionary.indices)
        else:
            stored_labels = array_of_column(column)
            if not layout.member_values and stored_labels.dtype.kind not in "OSU":
                return stored_labels
            words = stored_labels.astype(np.str_)
            distinct_labels, label_of_row = np.unique(words, return_inverse=True)
            labels = distinct_labels.tolist()
        codes = layout.membership(labels)
        if None in codes:
            row = np.flatnonzero(label_of_row == codes.index(None))[0]
            known = layout.member_values or "0 or 1, -1 or 1"
            what = f"must be {known}; name other labels with --member-values IN,OUT"
            raise self._refusal(layout.member_col, row, what)
        member: AnyArray = np.array(codes, dtype=np.int8)[label_of_row]
        return member

    def words(self, name: str) -> AnyArray:
        """Return a column of ids, strata or groups as it is stored, with text trimmed."""
        column = self._filled(name)
        words = array_of_column(column)
        if words.dtype.kind in "OSUMm":  # dates are text in csv, too
            words = np.char.strip(words.astype(np.str_))
            is_empty = words == ""
            if is_empty.any():
                row = int(is_empty.argmax())
                raise self._refusal(name, row, "needs a value for every example")
        return words

    def _filled(self, name: str) -> Stored:
        column = self.stored[name]
        if not isinstance(column, np.ndarray) and column.null_count:
            row = column.is_null().to_pylist().index(True)
            raise self._refusal(name, row, "needs a value for every example")
        return column

    def _refusal(self, name: str, row: int, what: str) -> FormatError:
        value = str(self.stored[name][row])
        quoted_value = "empty"
        if value.strip() not in {"", "None"}:
            quoted_value = repr(value[:_MOST_QUOTED_CHARACTERS])
        return FormatError(
            f"{self.path}: column {name!r} {what}; it is {quoted_value} at row "
            f"{self.first + row} (rows count from 0, without the header)"
        )


def read(
    path: Path, wanted: Sequence[str] | None, signs: Signs, *, optional: Sequence[str] = ("id",)
) -> Columns:
    """Read the columns that an audit needs, or all, and the optional ones that are there."""
    with opened(path, signs) as (names, load):
        if wanted is None:
            wanted = names
        check_names(path, names, wanted)
        check_roles(wanted)
        batches = load(_names_to_read(names, wanted, optional))
        columns = Columns(path, together(batches), signs)
    lengths = {name: len(column) for name, column in columns.stored.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise FormatError(f"{path} holds arrays of different lengths: {listed}")
    if not len(columns):
        raise FormatError(f"{path} has no rows below its header: add one row for each example")
    return columns


def check_roles(names: Sequence[str]) -> None:
    """Refuse a column that options name twice."""
    if len(set(names)) < len(names):
        refuse(f"a column can have only one role, and options name one of {names} twice")


@contextmanager
def read_in_batches(
    path: Path, wanted: Sequence[str], signs: Signs, *, optional: Sequence[str] = ()
) -> Iterator[Iterator[Columns]]:
    """Give the same columns, of some rows after the other; none of a file without rows.

    Within the block, what Arrow finds wrong with a column is an error that names the file.
    """
    with opened(path, signs) as (names, load):
        check_names(path, names, wanted)
        yield _numbered_batches(path, load(_names_to_read(names, wanted, optional)), signs)


def _numbered_batches(path: Path, batches: Batches, signs: Signs) -> Iterator[Columns]:
    first = 0
    for stored in batches:
        batch = Columns(path, stored, signs, first)
        if len(batch):
            yield batch
        first += len(batch)


def _names_to_read(
    names: Sequence[str], wanted: Sequence[str], optional: Sequence[str]
) -> list[str]:
    """Return the wanted columns and the optional ones that a file has, each once."""
    optional_names = [name for name in optional if names.count(name) == 1]
    return list(dict.fromkeys([*wanted, *optional_names]))


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


def check_names(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Check that a file has each wanted column exactly once."""
    name = next((name for name in wanted if names.count(name) != 1), None)
    if name is None:
        return
    listed = ", ".join(map(repr, names[:_MOST_LISTED_COLUMNS])) or "none"
    if len(names) > _MOST_LISTED_COLUMNS:
        listed += f" and {len(names) - _MOST_LISTED_COLUMNS:,} more"
    if suffix_of(path) in TEXT and re.search(r"[;\t ]", "".join(names)):
        listed += " (use --sep if columns are not separated by commas, or tabs in a .tsv)"
    number = "no column"
    if name in names:
        number = f"{names.count(name)} columns"
    missing = f"{number} {name!r}"
    if len(names) > 1 or name == "member":
        missing += _REMEDY_OF_MISSING.get(name, "")
    if len(names) > 1 and {"score", "member"}.issubset(set(wanted) - set(names)):
        missing = f"no columns 'score' and 'member'{_REMEDY_OF_BOTH_MISSING}"
    raise FormatError(f"{path} has {missing}; its columns are {listed}")


@contextmanager
def opened(path: Path, signs: Signs, at_once: int = _ROWS_OF_BATCH) -> Iterator[Source]:
    """Give the names of a file's columns, and a function that yields some of them in batches.

    `at_once` is the most rows of a batch of parquet.
    """
    suffix = _checked_suffix(path)
    packed_size = 0
    if path != PIPE:
        packed_size = path.stat().st_size
    unpacked = Unpacked(packed_size, signs.most_rows)
    try:
        if suffix == ".npz":
            with open_archive(path) as archive:
                yield (
                    archive.names,
                    lambda picked: iter(
                        [{name: array_of_column(archive[name]) for name in picked}]
                    ),
                )
            return
        with needs("io", f"reading {path}"), _stream(path, unpacked) as stored:
            if suffix == ".parquet":
                names, batches = read_parquet(path, at_once, unpacked)
            else:
                names, batches = read_text(suffix, stored, signs.sep, signs.encoding, unpacked)
            yield names, lambda picked: decoded_columns(batches(picked), picked)
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
        what = "a pipe or a device"
        if path.is_dir():
            what = "a directory"
        raise FormatError(f"{path} is {what}; give a file, or - for standard input")
    suffix = suffix_of(path)
    if path != PIPE and suffix not in TEXT | {".parquet", ".npz"}:
        raise FormatError(f"{path} has an unknown type: save it as one of {KINDS}")
    return suffix


def whole(ids: AnyArray) -> AnyArray:
    """Convert ids that are whole numbers in text to numbers; return others unchanged."""
    digits = ids.astype(np.str_)
    for dtype in (np.int64, np.uint64):
        with suppress(ValueError, OverflowError):
            return digits.astype(dtype)
    return ids


def together(batches: Batches) -> Mapping[str, Stored]:
    """Return batches as one."""
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    return {name: in_one([part[name] for part in parts]) for name in parts[0]}


def _stream(path: Path, unpacked: Unpacked) -> AbstractContextManager[Bytes]:
    if path == PIPE:
        if sys.stdin is None or sys.stdin.closed:
            raise FormatError("standard input is closed: give a file, or pipe a table into it")
        return nullcontext(sys.stdin.buffer)
    if path.suffix.lower() == ".gz":
        return Packed(path, unpacked)
    return opened_still(path)


def _words_in_pages(words: ArrowColumn) -> Iterator[str]:
    """Yield the words of a column of Arrow, a few at a time: most readers stop soon."""
    for start in range(0, len(words), _WORDS_OF_PAGE):
        page = words.slice(start, _WORDS_OF_PAGE)
        yield from map(str, page.to_pylist())


def _are_numbers(values: AnyArray) -> bool:
    """Return whether objects are all numbers, such as decimals."""
    if values.dtype.kind != "O":
        return False
    return all(isinstance(value, Real | Decimal) for value in values.tolist())
