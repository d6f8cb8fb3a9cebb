"""What mechanisms return: numbers, and anything else that tells inputs apart."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import UnionType
from typing import Any, NamedTuple

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.reading import array_of, columns_of, readable, refuse_unread
from leakbound._base.types import AnyArray
from leakbound.errors import InputError, InputTypeError
from leakbound.mechanisms.worker import Failure, Output, pack, together, unpack

# Words of one place that have a feature of their own at most: the most frequent
_MOST_WORDS = 100
# Features times outputs at most, and places
_MOST_CELLS = 10_000_000
_MOST_FEATURES = 20_000


def output_of(returned: Output, where: str) -> Output:
    """Return a copy of what a run returned: an array of numbers, if it is numbers, or as it is.

    No number is changed: what a mask hides is refused, and what float64 would round stays apart.
    """
    if isinstance(returned, Failure):
        return returned
    try:
        numbers = _numbers_of(returned)
        if numbers is not None:
            return numbers
        return unpack(pack(returned))
    except Exception as error:  # of whatever package the values are
        wrong = str(error)
    raise InputTypeError(
        f"{where} returned {shown(returned)}: return a number, text, bytes, None, a date, or a "
        f"list, dictionary, set, array or frame of these, such as the parts of an object ({wrong})"
    )


def _numbers_of(returned: Output) -> AnyArray | None:
    """Return an array of what a run returned, or None if that would not be the same numbers."""
    if isinstance(returned, bytes | bytearray | memoryview):
        return None
    try:
        refuse_unread(returned, name="It")
        parts = list(_parts(returned))
        if any(np.ma.is_masked(part) for part in parts):
            return None
        # A copy, as mechanisms may write to their output again
        array = array_of(returned, name="It", exact=True).copy()
    except InputTypeError:
        return None
    if not array.size or array.dtype.kind not in "biuf":
        return None
    if array.dtype.kind == "f" and any(map(_is_changed, parts)):
        return None
    return array


def _parts(returned: Output, depth: int = 64) -> Iterator[Output]:
    """Yield what is in lists, of as many levels as NumPy reads, and in the columns of frames."""
    columns = columns_of(returned)
    if columns:
        yield from columns
    elif depth > 0 and isinstance(returned, list | tuple):
        for part in returned:
            yield from _parts(part, depth - 1)
    else:
        yield returned


def _is_changed(part: Output) -> bool:
    """Whether an array would not have the same numbers: rounded integers, or missing cells."""
    for name in ("to_list", "to_pylist"):
        if hasattr(part, name):
            listed = getattr(part, name)()
            if any(type(one).__name__ == "NAType" for one in listed):
                return True
            if np.asarray(part).tolist() != listed:
                return True
    whole = part
    if not isinstance(part, int):
        whole = np.asarray(readable(part))
    if isinstance(whole, np.ndarray) and whole.dtype.kind not in "iu":
        return False
    return any(int(float(one)) != one for one in np.ravel(whole).tolist())


def is_same(one: Output, other: Output) -> bool:
    """Whether two outputs have equal content; NaN equals NaN, and words of failures are ignored."""
    return _content(one) == _content(other)


def _content(output: Output) -> bytes:
    if isinstance(output, Failure):
        return pack([output.kind, output.name])
    return pack(output)


def repeated(outputs: Sequence[Output]) -> int:
    """Count outputs that repeat an earlier one although a number in them is drawn.

    Continuous noise gives numbers that are not whole, and not the same in all outputs.
    """
    if not outputs:
        return 0
    table = together(outputs)
    if isinstance(table, np.ndarray):
        rows = table.reshape(len(outputs), -1)
        varying = rows[:, (rows != rows[0]).any(axis=0)]
        drawn = (np.isfinite(varying) & (varying != np.round(varying))).any(axis=1)
    else:
        fractions = [set(_fractions(one)) for one in outputs]
        constant = set.intersection(*fractions)
        drawn = np.array([bool(one - constant) for one in fractions])
    contents = [_content(one) for one, is_drawn in zip(outputs, drawn, strict=True) if is_drawn]
    return len(contents) - len(set(contents))


def _fractions(output: Output) -> Iterator[tuple[str, float]]:
    """Yield places and values of the numbers of an output that are not whole."""
    for part in _flat(output):
        number = part.number
        if isinstance(number, float) and math.isfinite(number) and not number.is_integer():
            yield part.place, number


class _Part(NamedTuple):
    """One thing that an output says: at a place of it there is a word, or a number."""

    place: str
    word: str = ""
    number: Any = None


def features_of(outputs: Sequence[Output]) -> list[AnyArray]:
    """Return columns with a value for each output, which a classifier ranks.

    Numbers of one shape are their own features. Of other outputs, each place has a number, or
    minus infinity where there is none, and zero or one for each kind and each word found there:
    exceptions by their class, keys of dictionaries, elements of sets, lengths, and NaN.
    """
    table = together(outputs)
    if isinstance(table, np.ndarray):
        columns = list(table.reshape(len(outputs), -1).T)
        _refuse_too_many(len(columns))
        missing = [np.isnan(column).astype(np.float64) for column in columns]
        return columns + [column for column in missing if column.any()]
    numbers: dict[str, list[Output]] = defaultdict(lambda: [-math.inf] * len(outputs))
    words: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for run, output in enumerate(outputs):
        for part in _flat(output):
            if part.word:
                words[part.place].append((run, part.word))
            else:
                numbers[part.place][run] = part.number
            _refuse_too_many(len(numbers) + len(words))
    columns = [_column(numbers[place]) for place in sorted(numbers)]
    for place in sorted(words):
        columns += _indicators(words[place], len(outputs))
        if len(columns) * len(outputs) > _MOST_CELLS:
            raise InputError(
                f"outputs have more than {len(columns):,} words and numbers to learn from: pass "
                "score, or return fewer"
            )
    varying = [column for column in columns if (column != column[0]).any()]
    return varying or [np.zeros(len(outputs))]


def _refuse_too_many(places: int) -> None:
    if places > _MOST_FEATURES:
        raise InputError(
            f"outputs have more than {_MOST_FEATURES:,} numbers or words to learn from: return "
            "fewer, such as sums of parts, or pass a score"
        )


def _column(values: list[Output]) -> AnyArray:
    """Return numbers as floats, or as they are where floats would merge some of them."""
    is_exact = all(isinstance(one, float) or abs(one) <= 2**53 for one in values)
    are_simple = all(isinstance(one, int | float) for one in values)
    if is_exact and are_simple:
        return np.array(values, dtype=np.float64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _indicators(found: list[tuple[int, str]], size: int) -> list[AnyArray]:
    """Return a column of zeros and ones for each of the most frequent words of a place."""
    counts = Counter(word for _, word in found)
    columns = {word: np.zeros(size) for word, _ in counts.most_common(_MOST_WORDS)}
    for run, word in found:
        if word in columns:
            columns[word][run] = 1.0
    return list(columns.values())


def _flat(output: Output) -> Iterator[_Part]:
    """Yield what an output says, number by number."""
    for part in _parts_of(output, ""):
        if not isinstance(part.number, np.ndarray):
            yield from _without_nan(part)
            continue
        for place, number in enumerate(part.number.ravel().tolist()):
            yield from _without_nan(_Part(f"{part.place}[{place}]", number=number))


def _without_nan(part: _Part) -> Iterator[_Part]:
    number = part.number
    if isinstance(number, float) and math.isnan(number):
        yield _Part(part.place, word="NaN")
    else:
        yield part


def _parts_of(output: Output, place: str) -> Iterator[_Part]:
    """Yield the kind of an output, and what it holds: words, numbers, and arrays of numbers."""
    yield _Part(place, word=_kind(output))
    for types, parts in _PARTS:
        if isinstance(output, types):
            yield from parts(output, place)
            return
    if hasattr(output, "to_list"):
        yield from _parts_of_column(output, place)
    elif columns_of(output):
        yield from _parts_of_frame(output, place)


def _parts_of_number(output: Output, place: str) -> Iterator[_Part]:
    number = output
    if isinstance(output, Decimal):
        number = math.nan
        if output.is_finite():
            number = Fraction(output)
        elif output.is_infinite():
            number = float(output)
    yield _Part(place, number=number)


def _parts_of_complex(output: complex, place: str) -> Iterator[_Part]:
    yield from _parts_of([output.real, output.imag], place)


def _parts_of_failure(output: Failure, place: str) -> Iterator[_Part]:
    yield _Part(place, word=f"{output.kind} {output.name}")


def _parts_of_text(output: str | bytes, place: str) -> Iterator[_Part]:
    yield _length(output, place)
    yield _Part(place, word=repr(output))


def _parts_of_moment(output: Output, place: str) -> Iterator[_Part]:
    yield _Part(place, number=_moment(output))


def _parts_of_set(output: Output, place: str) -> Iterator[_Part]:
    yield _length(output, place)
    for element in sorted(map(pack, output)):  # the order of a set is another in each process
        yield _Part(f"{place}{{{element!r}}}", word="in it")


def _parts_of_mapping(output: Mapping[object, object], place: str) -> Iterator[_Part]:
    yield _length(output, place)
    for key, value in output.items():
        yield from _parts_of(value, f"{place}[{key!r}]")


def _parts_of_sequence(output: Sequence[Output], place: str) -> Iterator[_Part]:
    yield _length(output, place)
    for number, value in enumerate(output):
        yield from _parts_of(value, f"{place}[{number}]")


def _parts_of_scalar(output: Output, place: str) -> Iterator[_Part]:
    yield from _parts_of_array(np.asarray(output), place)


def _parts_of_array(array: AnyArray, place: str) -> Iterator[_Part]:
    if array.dtype.kind in "biuf":
        for axis, size in enumerate(array.shape):
            yield _Part(f"{place} size {axis}", number=size)
        yield _Part(place, number=array)
    elif array.dtype.kind in "mM":
        yield from _parts_of_array(array.astype(np.int64), place)
    else:
        yield from _parts_of(array.ravel().tolist(), place)


def _parts_of_column(output: Output, place: str) -> Iterator[_Part]:
    yield _Part(place, word=f"name {output.name!r}")
    yield from _parts_of(_index_of(output), f"{place} index")
    yield from _parts_of(output.to_list(), place)


def _parts_of_frame(output: Output, place: str) -> Iterator[_Part]:
    yield _Part(place, word=f"columns {list(output.columns)}")
    yield from _parts_of(_index_of(output), f"{place} index")
    for name, column in zip(output.columns, columns_of(output), strict=True):
        yield from _parts_of(column.to_list(), f"{place}[{name!r}]")


_PARTS: tuple[tuple[type | UnionType, Callable[[Any, str], Iterator[_Part]]], ...] = (
    (np.ndarray, _parts_of_array),
    (np.generic, _parts_of_scalar),
    (Failure, _parts_of_failure),
    (bool | int | float | Fraction | Decimal, _parts_of_number),
    (complex, _parts_of_complex),
    (str | bytes, _parts_of_text),
    (date | time | timedelta, _parts_of_moment),
    (set | frozenset, _parts_of_set),
    (Mapping, _parts_of_mapping),
    (Sequence, _parts_of_sequence),
)


def _length(output: Output, place: str) -> _Part:
    return _Part(f"{place} length", number=len(output))


def _kind(output: Output) -> str:
    if isinstance(output, np.ndarray):
        return f"array {output.dtype.kind} {output.ndim}"
    return type(output).__name__


def _index_of(frame: Output) -> list[Output]:
    index = getattr(frame, "index", None)
    if index is None or callable(index):
        return []
    found: list[Output] = index.to_list()
    return found


def _moment(value: Output) -> Output:
    """Return a date or a time as an exact number of microseconds."""
    unit = timedelta(microseconds=1)
    if isinstance(value, timedelta):
        return value // unit
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime.min) // unit
    if isinstance(value, time):
        start = datetime.min
        return (datetime.combine(start, value.replace(tzinfo=None)) - start) // unit
    return value.toordinal()
