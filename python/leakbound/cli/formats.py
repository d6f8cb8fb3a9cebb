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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.arrow import ArrowBatch, ArrowColumn
from leakbound._base.checks import WHOLE
from leakbound._base.files import Unpacked, parquet_batches
from leakbound.errors import FormatError


class Bytes(Protocol):
    """An open file of bytes, as it is stored or unpacked."""

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, or all that are left."""


Reader: TypeAlias = tuple[list[str], Callable[[Sequence[str]], Iterable[ArrowBatch]]]
"""The names of columns, and a function that yields some of them in batches."""

# Bytes of text that are decoded at once.
_PIECE = 1 << 16
# Bytes that tell the encoding and the ends of lines.
_START = 1 << 16
# Bytes of text that are read at once, and the most of one row.
_BLOCK = 1 << 22
_LONGEST = 1 << 26
# Levels of nesting in JSON: the parser of Arrow calls itself for each, until the stack ends.
_DEEPEST = 1000
_JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# By how much each byte changes the level.
_LEVELS = np.zeros(256, dtype=np.int8)
_LEVELS[[*b"[{"]] = 1
_LEVELS[[*b"]}"]] = -1
# Most bytes of a header: a file without line breaks must not fill the memory.
_HEADER = 1 << 24


class _Recoded(io.RawIOBase):
    """Text in UTF-8 with line feeds, whatever the encoding and the line ends of a file are."""

    def __init__(
        self, start: bytes, file: Bytes, decoder: codecs.IncrementalDecoder | None
    ) -> None:
        self._start = start
        self._file = file
        self._decoder = decoder
        if decoder is not None:
            first = decoder.decode(start)
            decoder.reset()
        else:
            first = start.decode("utf-8", "replace")
        # A carriage return alone ended the lines of old Macs.
        self._is_mac = "\r" in first[:-1] and "\n" not in first
        self._held = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, and return how many bytes it holds: none at the end only."""
        while not self._held:
            piece = self._start or self._file.read(len(buffer))
            self._start = b""
            text = piece
            if self._decoder is not None:
                decoded = self._decoder.decode(piece, final=not piece)
                text = decoded.encode("utf-8", "surrogatepass")
            self._held = text
            if self._is_mac:
                self._held = text.replace(b"\r", b"\n")
            if not piece:
                break
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


def as_utf8(file: Bytes, encoding: str) -> io.BufferedReader:
    """Return a file of text as one in UTF-8; UTF-16 and UTF-32 are told by first bytes."""
    start = file.read(_START)
    if not encoding:
        zeros = start[:2].count(0)
        marks = start[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
        if start[:4] in {codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE}:
            encoding = "utf-32"
        elif marks:
            encoding = "utf-16"
        elif zeros == 1:  # of a first letter: UTF-16 without a mark
            encoding = "utf-16-le"
            if start[0] == 0:
                encoding = "utf-16-be"
    utf8 = not encoding or codecs.lookup(encoding).name == "utf-8"
    decoder = None
    if not utf8:
        decoder = codecs.getincrementaldecoder(encoding)()
    return io.BufferedReader(_Recoded(start=start, file=file, decoder=decoder), _PIECE)


def read_text(
    suffix: str, stored: Bytes, sep: str | None, encoding: str, unpacked: Unpacked
) -> Reader:
    """Read JSON lines, or columns that are parted by a sign, by default that of the suffix."""
    file = as_utf8(stored, encoding)
    if suffix in {".jsonl", ".ndjson"}:
        return read_json(file, unpacked)
    sign = sep or ("tab" if suffix == ".tsv" else ",")
    return read_csv(file, "\t" if sign == "tab" else sign, unpacked)


def read_csv(file: io.BufferedReader, separator: str, unpacked: Unpacked) -> Reader:
    """Read a table of text whose columns are parted by a sign; all columns are text."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    header = file.readline(_HEADER).decode("utf-8-sig")
    said = re.fullmatch(r'"?sep=([,;\t|])"?\s*', header)  # as spreadsheets write it
    if said:
        separator = said[1]
        header = file.readline(_HEADER).decode("utf-8")
    names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
    columns = [str(place) for place in range(len(names))]  # names may repeat

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        convert = arrow.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=[columns[names.index(name)] for name in picked],
        )
        done = 0
        for block in _blocks(file, separator.encode()):
            try:
                table = arrow.read_csv(
                    pa.BufferReader(block),
                    read_options=arrow.ReadOptions(
                        column_names=columns, block_size=len(block) + 1, use_threads=False
                    ),
                    parse_options=arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
                    convert_options=convert,
                )
            except pa.ArrowInvalid as error:
                raise FormatError(_counted(str(error), done)) from error
            done += len(table)
            unpacked.add(0, len(table))
            for batch in table.to_batches():
                yield pa.record_batch(batch.columns, names=[*picked])

    return names, batches


def _blocks(file: io.BufferedReader, separator: bytes) -> Iterator[bytes]:
    """Yield the rest of a file of text in blocks of whole rows.

    They are read here: Arrow would read ahead in a thread, which needs Python while Python ends.
    """
    sign = re.escape(separator)
    quoted = b'"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+' % sign
    bare = b'[^"%s\n][^%s\n]*+' % (sign, sign)
    field = b"(?:%s|%s|)" % (quoted, bare)
    rows = re.compile(b"(?:(?:%s%s)*+%s\n)*+" % (field, sign, field))
    held = b""
    while piece := file.read(_BLOCK):
        held += piece
        # A line break between quotation marks does not end a row.
        end = held.rfind(b"\n") + 1
        if b'"' in held and (found := rows.match(held)):
            end = found.end()
        if end:
            yield held[:end]
            held = held[end:]
        elif len(held) > _LONGEST:
            raise FormatError(
                f"a row has more than {_LONGEST:,} bytes: is a quotation mark not closed?"
            )
    if held:
        yield held


def _counted(message: str, rows: int) -> str:
    """Return an error of Arrow with rows counted from 0, through all blocks."""
    return re.sub(r"Row #(\d+)", lambda match: f"row {int(match[1]) - 1 + rows}", message)


def read_json(file: io.BufferedReader, unpacked: Unpacked) -> Reader:
    """Read JSON, an object in each line, in blocks of lines; one list of objects is read whole.

    Names are those of the first block. Columns that change their type within a block are text.
    """
    blocks = _lines(file, unpacked)
    if file.peek(1).lstrip(codecs.BOM_UTF8 + b" \t\r\n").startswith(b"["):
        blocks = iter([_all(file, unpacked)])
    first = next(blocks, b"")
    names, load = _json_block(first, 0)

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        yield from load(picked)
        done = first.count(b"\n")
        for block in blocks:
            if block.strip():
                yield from _with_all(_json_block(block, done)[1](picked), picked)
            done += block.count(b"\n")

    return names, batches


def _lines(file: io.BufferedReader, unpacked: Unpacked) -> Iterator[bytes]:
    """Yield a file of text in blocks of whole lines, read here as in `_blocks`."""
    held: list[bytes] = []
    size = 0
    while piece := file.read(_BLOCK):
        unpacked.add(0, piece.count(b"\n"))
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, piece[:end]])
            held = []
            size = 0
        held.append(piece[end:])
        size += len(piece) - end
        if size > _LONGEST:
            raise FormatError(f"a line has more than {_LONGEST:,} bytes: give one object in each")
    if size:
        yield b"".join(held)


def _all(file: io.BufferedReader, unpacked: Unpacked) -> bytes:
    """Return a file that is one list of objects."""
    pieces = []
    while piece := file.read(_BLOCK):
        unpacked.add(0, piece.count(b"\n"))
        pieces.append(piece)
    return b"".join(pieces)


def _check_depth(block: bytes) -> None:
    """Refuse JSON that is nested too deep, within a line or across lines."""
    # No text has a line break, so that "}" and "{" around one end an object and begin the next:
    # other signs that begin something are all that can be nested.
    begun = block.count(b"{") + block.count(b"[")
    if begun - block.count(b"}\n{") <= _DEEPEST:
        return
    signs = np.frombuffer(_JSON_TEXT.sub(b"", block), dtype=np.uint8)
    depth = np.take(_LEVELS, signs).cumsum(dtype=np.int32)
    if depth.max(initial=0) > _DEEPEST:
        raise FormatError(
            f"it is nested more than {_DEEPEST:,} deep: give an object of numbers and words in "
            "each line"
        )


def _json_block(block: bytes, done: int) -> Reader:
    """Read lines of JSON, after so many other lines."""
    import pyarrow as pa
    from pyarrow import json as arrow

    block.decode("utf-8")  # which Arrow does not check
    _check_depth(block)
    try:
        table = arrow.read_json(pa.BufferReader(block), arrow.ReadOptions(block_size=_BLOCK))
    except pa.ArrowInvalid as error:
        # Arrow stops at any column that changes its type, also one that nobody asked for.
        with suppress(ValueError, RecursionError):
            return _json_by_column(block, done)
        raise FormatError(_in_row(str(error), done)) from error
    table = table.combine_chunks()
    for place, one in enumerate(table.schema):
        if str(one.type) == "double" and _are_large(table[one.name].to_numpy()):
            table = table.set_column(place, one.name, _as_written(block, one.name))
    return table.column_names, lambda _: table.combine_chunks().to_batches()


def _in_row(message: str, done: int) -> str:
    """Return an error of Arrow with rows counted through all blocks."""
    return re.sub(r"in row (\d+)", lambda match: f"in row {int(match[1]) + done}", message)


def _with_all(batches: Iterable[ArrowBatch], picked: Sequence[str]) -> Iterator[ArrowBatch]:
    """Yield batches with all columns, those that their lines lack without a value."""
    import pyarrow as pa

    for batch in batches:
        there = batch.schema.names
        columns = [batch.column(name) if name in there else pa.nulls(len(batch)) for name in picked]
        yield pa.record_batch(columns, names=[*picked])


def _json_by_column(content: bytes, done: int) -> Reader:
    """Read objects, one in each line or in one list, by the columns that are asked for.

    `done` lines came before.
    """
    import pyarrow as pa

    text = content.decode("utf-8-sig")
    whole_file = text.lstrip().startswith("[")
    lines = [text]
    if not whole_file:
        lines = [line for line in text.split("\n") if line.strip()]
    records = [json.loads(line, parse_int=_Digits, parse_float=_Digits) for line in lines]
    if whole_file:
        records = records[0]
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("no objects")
    names = [*dict.fromkeys(name for record in records for name in record)]

    def batches(picked: Sequence[str]) -> Iterator[ArrowBatch]:
        columns = [[record.get(name) for record in records] for name in picked]
        named = zip(columns, picked, strict=True)
        arrays = [_one_type(values, name, done) for values, name in named]
        yield pa.record_batch(arrays, names=[*picked])

    return names, batches


class _Digits(str):
    """A number in JSON, with all of its digits."""

    __slots__ = ()


def _one_type(values: list[object], name: str, done: int) -> ArrowColumn:
    """Return values of JSON as a column: booleans, or text of whatever they are."""
    import pyarrow as pa

    there = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in there):
        booleans: ArrowColumn = pa.array(values, pa.bool_())
        return booleans
    for row, value in enumerate(values):
        if isinstance(value, list | dict):
            kind = "an object"
            if isinstance(value, list):
                kind = "a list"
            raise FormatError(
                f"column {name!r} holds {kind} at row {row + done}: give one number or word in "
                "each line"
            )
    words: ArrowColumn = pa.array([_as_text(value) for value in values], pa.string())
    return words


def _as_text(value: object) -> str | None:
    """Return the text of a value of JSON; of booleans and floats as JSON writes them."""
    if value is None:
        return None
    if isinstance(value, bool | float):
        return str(value).lower()
    return str(value)


def _are_large(values: NDArray[np.float64]) -> bool:
    """Return whether some numbers have integers next to them that are the same double."""
    return bool((np.abs(values[np.isfinite(values)]) >= WHOLE).any())


def _as_written(content: bytes, name: str) -> ArrowColumn:
    """Return a column of numbers in JSON lines as text, with all of their digits."""
    import pyarrow as pa

    lines = (line for line in content.split(b"\n") if line.strip())
    values = [json.loads(line, parse_int=str, parse_float=str).get(name) for line in lines]
    words: ArrowColumn = pa.chunked_array([pa.array(values, pa.string())])
    return words


def read_parquet(path: Path, rows: int, unpacked: Unpacked) -> Reader:
    """Read parquet, so many rows at once."""
    schema, _ = parquet_batches(path)
    return schema.names, lambda picked: parquet_batches(
        path, columns=picked, rows=rows, unpacked=unpacked
    )[1]


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


def is_of_reading(error: Exception, path: Path) -> bool:
    """Return whether an error is about the content of a file, and does not name it."""
    if str(error).startswith(str(path)):
        return False
    of_content = isinstance(error, (FormatError, EOFError, UnicodeError, csv.Error, zlib.error))
    arrow = type(error).__module__.startswith("pyarrow")
    return arrow or of_content or getattr(error, "errno", 0) is None


def said_of(error: Exception) -> str:
    """Return what is wrong with the content of a file, and what helps."""
    said = str(error)
    hints = ""
    if re.search(r"row \d", said):
        hints += " (rows count from 0, without the header)"
    if isinstance(error, UnicodeDecodeError) or re.search("invalid UTF-?8", said, re.IGNORECASE):
        hints += ": its text is not UTF-8; name its encoding, such as --encoding latin-1"
    if "Expected 1 columns" in said:
        hints += " (use --sep if columns are not separated by commas, or tabs in a .tsv)"
    return said + hints
