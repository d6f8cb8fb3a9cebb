"""Formats of tables: text in any encoding, csv, JSON lines and parquet, in batches of Arrow.

Text is read by the main thread alone, since a thread of Arrow that waits for Python may outlive it.
"""

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, cast

import numpy as np

from leakbound._base.checks import WHOLE
from leakbound._base.files import Unpacked, parquet_batches
from leakbound._base.reading import ArrowBatch, ArrowColumn, ArrowType
from leakbound._base.types import AnyArray
from leakbound.errors import FormatError


class Bytes(Protocol):
    """An open file of bytes, as it is stored or unpacked."""

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, or all that are left."""


Stored: TypeAlias = ArrowColumn | AnyArray
"""A column of Arrow, or an array of an archive."""
Batches: TypeAlias = Iterator[Mapping[str, Stored]]
Reader: TypeAlias = tuple[list[str], Callable[[Sequence[str]], Iterable[ArrowBatch]]]
"""The names of columns, and a function that yields some of them in batches."""

# Bytes of text that are decoded at once.
_BYTES_DECODED = 1 << 16
# First bytes, which tell the encoding and the ends of lines.
_FIRST_BYTES = 1 << 16
# Bytes of text that are read at once, and the most of one row.
_BYTES_OF_BLOCK = 1 << 22
_MOST_BYTES_OF_ROW = 1 << 26
# Levels of nesting in JSON: the parser of Arrow calls itself for each, until the stack ends.
_DEEPEST = 1000
_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# By how much each byte changes the level.
_LEVELS = np.zeros(256, dtype=np.int8)
_LEVELS[[*b"[{"]] = 1
_LEVELS[[*b"]}"]] = -1
# Most bytes of a header: a file without line breaks must not fill the memory.
_MOST_BYTES_OF_HEADER = 1 << 24


class _Recoded(io.RawIOBase):
    """Text in UTF-8 with line feeds, whatever the encoding and the line ends of a file are."""

    def __init__(
        self, start: bytes, file: Bytes, decoder: codecs.IncrementalDecoder | None
    ) -> None:
        self._unread_start = start
        self._file = file
        self._decoder = decoder
        if decoder is not None:
            first_text = decoder.decode(start)
            decoder.reset()
        else:
            first_text = start.decode("utf-8", "replace")
        # A carriage return alone ended the lines of old Macs.
        self._is_mac = "\r" in first_text[:-1] and "\n" not in first_text
        self._pending = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes it holds: none at the end only."""
        while not self._pending:
            stored = self._unread_start or self._file.read(len(buffer))
            self._unread_start = b""
            text = stored
            if self._decoder is not None:
                decoded = self._decoder.decode(stored, final=not stored)
                text = decoded.encode("utf-8", "surrogatepass")
            if self._is_mac:
                text = text.replace(b"\r", b"\n")
            self._pending = text
            if not stored:
                break
        count = min(len(buffer), len(self._pending))
        buffer[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count


def as_utf8(file: Bytes, encoding: str) -> io.BufferedReader:
    """Return a file of text as one in UTF-8; UTF-16 and UTF-32 are told by first bytes."""
    start = file.read(_FIRST_BYTES)
    encoding = encoding or _encoding_told_by(start)
    decoder = None
    if encoding and codecs.lookup(encoding).name != "utf-8":
        decoder = codecs.getincrementaldecoder(encoding)()
    recoded = _Recoded(start=start, file=file, decoder=decoder)
    return io.BufferedReader(recoded, _BYTES_DECODED)


def _encoding_told_by(start: bytes) -> str:
    """Return UTF-32 or UTF-16 if the first bytes of a file tell it, else ""."""
    if start[:4] in {codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE}:
        return "utf-32"
    if start[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
        return "utf-16"
    # A zero in the first letter: UTF-16 without a mark.
    if start[:2].count(0) != 1:
        return ""
    if start[0] == 0:
        return "utf-16-be"
    return "utf-16-le"


def read_text(
    suffix: str, stored: Bytes, sep: str | None, encoding: str, unpacked: Unpacked
) -> Reader:
    """Read JSON lines, or columns that are parted by a sign, by default that of the suffix."""
    file = as_utf8(stored, encoding)
    if suffix in {".jsonl", ".ndjson"}:
        return read_json(file, unpacked)
    separator = sep or ","
    if sep == "tab" or (not sep and suffix == ".tsv"):
        separator = "\t"
    return read_csv(file, separator, unpacked)


def read_csv(file: io.BufferedReader, separator: str, unpacked: Unpacked) -> Reader:
    """Read a table of text whose columns are parted by a sign; all columns are text."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    header = file.readline(_MOST_BYTES_OF_HEADER).decode("utf-8-sig")
    stated_separator = re.fullmatch(r'"?sep=([,;\t|])"?\s*', header)  # as spreadsheets write it
    if stated_separator:
        separator = stated_separator[1]
        header = file.readline(_MOST_BYTES_OF_HEADER).decode("utf-8")
    cells = next(csv.reader([header], delimiter=separator), [])
    names = [cell.strip() for cell in cells]
    columns = [str(position) for position in range(len(names))]  # names may repeat

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        parse_options = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
        convert_options = arrow.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=[columns[names.index(name)] for name in picked],
        )
        rows_before = 0
        for block_of_rows in _blocks_of_rows(file, separator.encode()):
            read_options = arrow.ReadOptions(
                column_names=columns,
                block_size=len(block_of_rows) + 1,
                use_threads=False,
            )
            try:
                csv_table = arrow.read_csv(
                    pa.BufferReader(block_of_rows),
                    read_options=read_options,
                    parse_options=parse_options,
                    convert_options=convert_options,
                )
            except pa.ArrowInvalid as error:
                message = _with_rows_of_file(str(error), r"Row #(\d+)", rows_before - 1)
                raise FormatError(message) from error
            rows_before += len(csv_table)
            unpacked.add(0, len(csv_table))
            for batch in csv_table.to_batches():
                yield pa.record_batch(batch.columns, names=[*picked])

    return names, batches


def _blocks_of_rows(file: io.BufferedReader, separator: bytes) -> Iterator[bytes]:
    """Yield the rest of a file of text in blocks of whole rows.

    They are read here: Arrow would read ahead in a thread, which needs Python while Python ends.
    """
    separator_pattern = re.escape(separator)
    quoted_cell = b'"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+' % separator_pattern
    bare_cell = b'[^"%s\n][^%s\n]*+' % (separator_pattern, separator_pattern)
    cell_pattern = b"(?:%s|%s|)" % (quoted_cell, bare_cell)
    whole_rows = re.compile(
        b"(?:(?:%s%s)*+%s\n)*+" % (cell_pattern, separator_pattern, cell_pattern)
    )
    unfinished = b""
    while piece_of_file := file.read(_BYTES_OF_BLOCK):
        unfinished += piece_of_file
        end_of_rows = unfinished.rfind(b"\n") + 1
        # A line break between quotation marks does not end a row.
        if b'"' in unfinished and (found_rows := whole_rows.match(unfinished)):
            end_of_rows = found_rows.end()
        if end_of_rows:
            yield unfinished[:end_of_rows]
            unfinished = unfinished[end_of_rows:]
        elif len(unfinished) > _MOST_BYTES_OF_ROW:
            raise FormatError(
                f"a row has more than {_MOST_BYTES_OF_ROW:,} bytes: is a quotation mark not closed?"
            )
    if unfinished:
        yield unfinished


def _with_rows_of_file(message: str, row_of_block: str, rows_before: int) -> str:
    """Return an error of Arrow, in which a pattern finds rows, with rows of all blocks."""

    def row_of_file(match: re.Match[str]) -> str:
        return f"row {int(match[1]) + rows_before}"

    return re.sub(row_of_block, row_of_file, message)


def read_json(file: io.BufferedReader, unpacked: Unpacked) -> Reader:
    """Read JSON, an object in each line, in blocks of lines; one list of objects is read whole.

    Names are those of the first block. Columns that change their type within a block are text.
    """
    blocks = _blocks_of_lines(file, unpacked)
    start = file.peek(1).lstrip(codecs.BOM_UTF8 + b" \t\r\n")
    if start.startswith(b"["):
        whole_file = b"".join(_pieces_with_counted_lines(file, unpacked))
        blocks = iter([whole_file])
    first_block = next(blocks, b"")
    names, load_first = _json_block(first_block, lines_before=0)

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        yield from load_first(picked)
        lines_before = first_block.count(b"\n")
        for block in blocks:
            if block.strip():
                _, load = _json_block(block, lines_before)
                yield from _with_all_columns(load(picked), picked)
            lines_before += block.count(b"\n")

    return names, batches


def _blocks_of_lines(file: io.BufferedReader, unpacked: Unpacked) -> Iterator[bytes]:
    """Yield a file of text in blocks of whole lines, read here as in `_blocks_of_rows`."""
    unfinished_line: list[bytes] = []
    bytes_of_line = 0
    for piece in _pieces_with_counted_lines(file, unpacked):
        end_of_lines = piece.rfind(b"\n") + 1
        if end_of_lines:
            yield b"".join([*unfinished_line, piece[:end_of_lines]])
            unfinished_line = []
            bytes_of_line = 0
        unfinished_line.append(piece[end_of_lines:])
        bytes_of_line += len(piece) - end_of_lines
        if bytes_of_line > _MOST_BYTES_OF_ROW:
            raise FormatError(
                f"a line has more than {_MOST_BYTES_OF_ROW:,} bytes: give one object in each"
            )
    if bytes_of_line:
        yield b"".join(unfinished_line)


def _pieces_with_counted_lines(file: io.BufferedReader, unpacked: Unpacked) -> Iterator[bytes]:
    """Yield a file of text piece by piece, and count its lines."""
    while piece := file.read(_BYTES_OF_BLOCK):
        unpacked.add(0, piece.count(b"\n"))
        yield piece


def _check_depth(block: bytes) -> None:
    """Refuse JSON that is nested too deep, within a line or across lines."""
    # No text has a line break, so that "}" and "{" around one end an object and begin the next:
    # other signs that begin something are all that can be nested.
    begun_values = block.count(b"{") + block.count(b"[")
    if begun_values - block.count(b"}\n{") <= _DEEPEST:
        return
    brackets_and_others = np.frombuffer(_JSON_TEXT.sub(b"", block), dtype=np.uint8)
    nesting_depth = np.take(_LEVELS, brackets_and_others).cumsum(dtype=np.int32)
    if nesting_depth.max(initial=0) > _DEEPEST:
        raise FormatError(
            f"it is nested more than {_DEEPEST:,} deep: give an object of numbers and words in "
            "each line"
        )


def _json_block(block: bytes, lines_before: int) -> Reader:
    """Read lines of JSON, after so many other lines."""
    import pyarrow as pa
    from pyarrow import json as arrow

    block.decode("utf-8")  # which Arrow does not check
    read_options = arrow.ReadOptions(block_size=_BYTES_OF_BLOCK)
    _check_depth(block)
    try:
        json_table = arrow.read_json(pa.BufferReader(block), read_options)
    except pa.ArrowInvalid as error:
        # Arrow stops at any column that changes its type, also one that nobody asked for.
        with suppress(ValueError, RecursionError):
            return _json_by_column(block, lines_before)
        message = _with_rows_of_file(str(error), r"(?<=in )row (\d+)", lines_before)
        raise FormatError(message) from error
    json_table = json_table.combine_chunks()
    for position, field in enumerate(json_table.schema):
        if str(field.type) == "double" and _loses_digits(json_table[field.name]):
            digits = _numbers_as_written(block, field.name)
            json_table = json_table.set_column(position, field.name, digits)
    return json_table.column_names, lambda _: json_table.combine_chunks().to_batches()


def _with_all_columns(batches: Iterable[ArrowBatch], picked: Sequence[str]) -> Iterator[ArrowBatch]:
    """Yield batches with all columns, those that their lines lack without a value."""
    import pyarrow as pa

    for batch in batches:
        batch_columns = []
        for name in picked:
            column = pa.nulls(len(batch))
            if name in batch.schema.names:
                column = batch.column(name)
            batch_columns.append(column)
        yield pa.record_batch(batch_columns, names=[*picked])


def _json_by_column(content: bytes, lines_before: int) -> Reader:
    """Read objects, one in each line or in one list, by the columns that are asked for."""
    import pyarrow as pa

    text = content.decode("utf-8-sig")
    is_one_list = text.lstrip().startswith("[")
    json_texts = [text]
    if not is_one_list:
        json_texts = [line for line in text.split("\n") if line.strip()]
    records = [json.loads(one, parse_int=_Digits, parse_float=_Digits) for one in json_texts]
    if is_one_list:
        (records,) = records
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("no objects")
    names = [*dict.fromkeys(name for record in records for name in record)]

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        arrays = []
        for name in picked:
            values = [record.get(name) for record in records]
            arrays.append(_column_of_one_type(values, name, lines_before))
        yield pa.record_batch(arrays, names=[*picked])

    return names, batches


class _Digits(str):
    """A number in JSON, with all of its digits."""

    __slots__ = ()


def _column_of_one_type(values: list[object], name: str, lines_before: int) -> ArrowColumn:
    """Return values of JSON as a column: booleans, or text of whatever they are."""
    import pyarrow as pa

    if all(value is None or isinstance(value, bool) for value in values):
        booleans: ArrowColumn = pa.array(values, pa.bool_())
        return booleans
    for row, value in enumerate(values):
        if isinstance(value, list | dict):
            kind = "an object"
            if isinstance(value, list):
                kind = "a list"
            raise FormatError(
                f"column {name!r} holds {kind} at row {row + lines_before}: give one number or "
                "word in each line"
            )
    texts_of_values = [_as_text(value) for value in values]
    words: ArrowColumn = pa.array(texts_of_values, pa.string())
    return words


def _as_text(value: object) -> str | None:
    """Return the text of a value of JSON; of booleans and floats as JSON writes them."""
    if value is None:
        return None
    if isinstance(value, bool | float):
        return str(value).lower()
    return str(value)


def _loses_digits(doubles: Any) -> bool:
    """Return whether some numbers have integers next to them that are the same double."""
    values = array_of_column(doubles.drop_null().combine_chunks())
    return bool((np.abs(values[np.isfinite(values)]) >= WHOLE).any())


def _numbers_as_written(content: bytes, name: str) -> ArrowColumn:
    """Return a column of numbers in JSON lines as text, with all of their digits."""
    import pyarrow as pa

    digits = []
    for line in content.split(b"\n"):
        if line.strip():
            record = json.loads(line, parse_int=str, parse_float=str)
            digits.append(record.get(name))
    column: ArrowColumn = pa.chunked_array([pa.array(digits, pa.string())])
    return column


def read_parquet(path: Path, rows: int, unpacked: Unpacked) -> Reader:
    """Read parquet, so many rows at once."""
    schema, _ = parquet_batches(path)

    def batches(picked: Sequence[str]) -> Iterable[ArrowBatch]:
        _, batches_of_file = parquet_batches(path, columns=picked, rows=rows, unpacked=unpacked)
        return batches_of_file

    return schema.names, batches


class Packed(gzip.GzipFile):
    """A file packed by gzip, whose bytes are counted as they come out."""

    def __init__(self, path: Path, unpacked: Unpacked) -> None:
        super().__init__(path)
        self._unpacked = unpacked

    def read(self, size: int | None = -1) -> bytes:
        """Return so many bytes."""
        content = super().read(size)
        self._unpacked.add(len(content))
        return content


@contextmanager
def opened_still(path: Path) -> Iterator[Bytes]:
    """Open a file that nobody writes: what grows as fast as it is read has no end."""
    with path.open("rb") as file:
        yield _StillFile(file, path.stat().st_size)


@dataclass
class _StillFile:
    """An open file, refused once more was read than it held when it was opened."""

    file: Bytes
    bytes_left: int

    def read(self, size: int = -1, /) -> bytes:
        """See `Bytes.read`."""
        piece = self.file.read(size)
        self.bytes_left -= len(piece)
        if self.bytes_left < 0:
            raise FormatError("it grows while it is read: wait until its writer ends")
        return piece


def is_of_reading(error: Exception, path: Path) -> bool:
    """Return whether an error is about the content of a file, and does not name it."""
    if str(error).startswith(str(path)):
        return False
    errors_of_content = (FormatError, EOFError, UnicodeError, csv.Error, zlib.error)
    is_of_content = isinstance(error, errors_of_content)
    is_of_arrow = type(error).__module__.startswith("pyarrow")
    # Of gzip: an OSError that the system has not raised.
    has_no_code = getattr(error, "errno", 0) is None
    return is_of_arrow or is_of_content or has_no_code


def said_of(error: Exception) -> str:
    """Return what is wrong with the content of a file, and what helps."""
    message_of_error = str(error)
    hints = ""
    if re.search(r"row \d", message_of_error):
        hints += " (rows count from 0, without the header)"
    is_not_utf8 = re.search("invalid UTF-?8", message_of_error, re.IGNORECASE)
    if isinstance(error, UnicodeDecodeError) or is_not_utf8:
        hints += ": its text is not UTF-8; name its encoding, such as --encoding latin-1"
    if "Expected 1 columns" in message_of_error:
        hints += " (use --sep if columns are not separated by commas, or tabs in a .tsv)"
    return message_of_error + hints


def in_one(pieces: Sequence[Stored]) -> Stored:
    """Return pieces of a column, of files of any kind, as one column."""
    arrays = [array_of_column(piece) for piece in pieces if isinstance(piece, np.ndarray)]
    if len(arrays) == len(pieces):
        return np.concatenate(arrays)
    import pyarrow as pa

    arrow_pieces = list[ArrowColumn]()
    for piece in pieces:
        if isinstance(piece, np.ndarray):
            arrow_pieces.append(pa.array(array_of_column(piece)))
        else:
            arrow_pieces.append(piece)
    chunked_column = pa.chunked_array(_pieces_of_one_type(arrow_pieces))
    column: ArrowColumn = chunked_column.combine_chunks()
    return column


def _pieces_of_one_type(pieces: list[ArrowColumn]) -> list[ArrowColumn]:
    """Return pieces of a column as doubles if their types differ and are numbers, else as text."""
    import pyarrow as pa

    kinds = {piece.type for piece in pieces}
    if len(kinds) == 1:
        return pieces
    if all(map(_is_of_numbers, kinds)):
        with suppress(pa.ArrowInvalid):  # of integers that no double holds
            return [piece.cast(pa.float64()) for piece in pieces]
    return [piece.cast(pa.string()) for piece in pieces]


def decoded_columns(batches: Iterable[ArrowBatch], picked: Sequence[str]) -> Batches:
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


def is_text(column: Stored) -> TypeGuard[ArrowColumn]:
    """Return whether a column is of Arrow and holds text."""
    return not isinstance(column, np.ndarray) and str(column.type) in {"string", "large_string"}


def _is_of_numbers(kind: ArrowType) -> bool:
    """Return whether a type of Arrow is one of numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def array_of_column(column: Stored) -> AnyArray:
    """Return a column of an archive or of Arrow as a vector."""
    if isinstance(column, np.ndarray):
        values = column
    else:
        try:
            values = _array_of_arrow_column(column)
        except Exception as error:  # Arrow does not check text in parquet before it is read
            is_of_arrow = type(error).__module__.startswith("pyarrow")
            if not is_of_arrow and not isinstance(error, UnicodeError):
                raise
            raise FormatError(f"a column cannot be read: {error}") from error
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    return values


def _array_of_arrow_column(column: ArrowColumn) -> AnyArray:
    """Return text and numbers without `to_numpy` of Arrow, which imports pandas."""
    if is_text(column):
        return np.array(column.to_pylist(), dtype=np.object_)
    if _is_of_numbers(column.type) and not column.null_count:
        numbers: AnyArray = np.from_dlpack(cast("Any", column))
        return numbers
    return column.to_numpy(zero_copy_only=False)
