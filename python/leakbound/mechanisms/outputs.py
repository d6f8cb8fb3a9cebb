"""What mechanisms return: numbers, and anything else that tells inputs apart."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import compress
from types import UnionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.reading import array_of, columns_of, readable, refuse_unread
from leakbound._base.types import AnyArray
from leakbound.errors import InputError, InputTypeError
from leakbound.mechanisms.worker import Failure, Output, outputs_together, pack, unpack

# Words of one place that have a feature of their own at most: the most frequent
_MOST_WORDS = 100
# Features times outputs at most, and places
_MOST_CELLS = 10_000_000
_MOST_FEATURES = 20_000
# Doubles hold all integers up to here
_LARGEST_EXACT_INTEGER = 2**53


def output_of_run(returned: Output, name_of_run: str) -> Output:
    """Return a copy of what a run returned: an array of numbers, if it is numbers, or as it is.

    No number is changed: what a mask hides is refused, and what float64 would round stays apart.
    """
    if isinstance(returned, Failure):
        return returned
    try:
        number_array = _number_array_of_output(returned)
        if number_array is not None:
            return number_array
        return unpack(pack(returned))
    except Exception as error:  # of whatever package the values are
        reason_of_refusal = str(error)
    raise InputTypeError(
        f"{name_of_run} returned {shown(returned)}: return a number, text, bytes, None, a date, or "
        f"a list, dictionary, set, array or frame of these, such as the parts of an object "
        f"({reason_of_refusal})"
    )


def _number_array_of_output(returned: Output) -> AnyArray | None:
    """Return an array of what a run returned, or None if that would not be the same numbers."""
    if isinstance(returned, bytes | bytearray | memoryview):
        return None
    try:
        refuse_unread(returned, name="It")
        output_leaves = list(_leaves_of_output(returned))
        if any(map(np.ma.is_masked, output_leaves)):
            return None
        # A copy, as mechanisms may write to their output again
        array_of_numbers = array_of(returned, name="It", exact=True).copy()
    except InputTypeError:
        return None
    if not array_of_numbers.size or array_of_numbers.dtype.kind not in "biuf":
        return None
    if array_of_numbers.dtype.kind == "f" and any(map(_is_changed_by_float64, output_leaves)):
        return None
    return array_of_numbers


def _leaves_of_output(returned: Output, depth: int = 64) -> Iterator[Output]:
    """Yield what is in lists, of as many levels as NumPy reads, and in the columns of frames."""
    columns = columns_of(returned)
    if columns:
        yield from columns
    elif depth > 0 and isinstance(returned, list | tuple):
        for element in returned:
            yield from _leaves_of_output(element, depth - 1)
    else:
        yield returned


def _is_changed_by_float64(output_leaf: Output) -> bool:
    """Whether an array would not have the same numbers: rounded integers, or missing cells."""
    for list_method in ("to_list", "to_pylist"):
        if hasattr(output_leaf, list_method):
            cells_of_leaf = getattr(output_leaf, list_method)()
            if any(type(cell).__name__ == "NAType" for cell in cells_of_leaf):
                return True
            if np.asarray(output_leaf).tolist() != cells_of_leaf:
                return True
    integers_of_leaf = [output_leaf]
    if not isinstance(output_leaf, int):
        array_of_leaf = np.asarray(readable(output_leaf))
        if array_of_leaf.dtype.kind not in "iu":
            return False
        integers_of_leaf = array_of_leaf.ravel().tolist()
    return any(int(float(integer)) != integer for integer in integers_of_leaf)


def is_same_output(output: Output, other: Output) -> bool:
    """Whether two outputs have equal content; NaN equals NaN, and words of failures are ignored."""
    return _packed_content_of_output(output) == _packed_content_of_output(other)


def _packed_content_of_output(output: Output) -> bytes:
    """Return bytes that are the same for equal outputs."""
    if isinstance(output, Failure):
        return pack([output.kind, output.name])
    return pack(output)


def count_repeated_outputs(outputs: Sequence[Output]) -> int:
    """Count outputs that repeat an earlier one although a number in them is drawn.

    Continuous noise gives numbers that are not whole, and not the same in all outputs.
    """
    if not outputs:
        return 0
    array_of_outputs = outputs_together(outputs)
    if isinstance(array_of_outputs, np.ndarray):
        rows_of_outputs = array_of_outputs.reshape(len(outputs), -1)
        is_varying = (rows_of_outputs != rows_of_outputs[0]).any(axis=0)
        varying_numbers = rows_of_outputs[:, is_varying]
        is_fraction = np.isfinite(varying_numbers) & (varying_numbers != np.round(varying_numbers))
        is_drawn_output = is_fraction.any(axis=1).tolist()
    else:
        fractions_by_output = [set(_fractions_of_output(output)) for output in outputs]
        constant_fractions = set.intersection(*fractions_by_output)
        is_drawn_output = [
            not fractions_of_output <= constant_fractions
            for fractions_of_output in fractions_by_output
        ]
    contents_of_drawn_outputs = [
        _packed_content_of_output(output) for output in compress(outputs, is_drawn_output)
    ]
    return len(contents_of_drawn_outputs) - len(set(contents_of_drawn_outputs))


def _fractions_of_output(output: Output) -> Iterator[tuple[str, float]]:
    """Yield places and values of the numbers of an output that are not whole."""
    for part_of_output in _parts_with_single_numbers(output):
        number_of_part = part_of_output.number
        is_finite_float = isinstance(number_of_part, float) and math.isfinite(number_of_part)
        if is_finite_float and not number_of_part.is_integer():
            yield part_of_output.place, number_of_part


class _OutputPart(NamedTuple):
    """One thing that an output says: at a place of it there is a word, or a number."""

    place: str
    word: str = ""
    number: Any = None


_PartsOfOutput: TypeAlias = Iterator[_OutputPart]


def features_of(outputs: Sequence[Output]) -> list[AnyArray]:
    """Return columns with a value for each output, which a classifier ranks.

    Numbers of one shape are their own features. Of other outputs, each place has a number, or
    minus infinity where there is none, and zero or one for each kind and each word found there:
    exceptions by their class, keys of dictionaries, elements of sets, lengths, and NaN.
    """
    array_of_outputs = outputs_together(outputs)
    if isinstance(array_of_outputs, np.ndarray):
        return _features_of_number_table(array_of_outputs.reshape(len(outputs), -1))
    run_numbers_by_place: dict[str, list[Output]] = defaultdict(lambda: [-math.inf] * len(outputs))
    run_words_by_place: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for run_number, output in enumerate(outputs):
        for part_of_output in _parts_with_single_numbers(output):
            if part_of_output.word:
                run_words_by_place[part_of_output.place].append((run_number, part_of_output.word))
            else:
                run_numbers_by_place[part_of_output.place][run_number] = part_of_output.number
            _refuse_too_many_features(len(run_numbers_by_place) + len(run_words_by_place))
    columns_of_features = [
        _feature_of_numbers(run_numbers_by_place[place]) for place in sorted(run_numbers_by_place)
    ]
    for place in sorted(run_words_by_place):
        columns_of_features += _indicators_of_words(run_words_by_place[place], len(outputs))
        if len(columns_of_features) * len(outputs) > _MOST_CELLS:
            raise InputError(
                f"outputs have more than {len(columns_of_features):,} words and numbers to learn "
                "from: pass score, or return fewer"
            )
    varying_columns = [
        column_of_feature
        for column_of_feature in columns_of_features
        if (column_of_feature != column_of_feature[0]).any()
    ]
    return varying_columns or [np.zeros(len(outputs))]


def _features_of_number_table(output_rows: AnyArray) -> list[AnyArray]:
    """Return columns of numbers, and zeros and ones for those that are missing in some rows."""
    number_columns = list(output_rows.T)
    _refuse_too_many_features(len(number_columns))
    columns_and_indicators = number_columns.copy()
    for number_column in number_columns:
        is_missing = np.isnan(number_column)
        if is_missing.any():
            columns_and_indicators.append(is_missing.astype(np.float64))
    return columns_and_indicators


def _refuse_too_many_features(place_count: int) -> None:
    """Refuse outputs with more numbers and words than a classifier can learn from."""
    if place_count > _MOST_FEATURES:
        raise InputError(
            f"outputs have more than {_MOST_FEATURES:,} numbers or words to learn from: return "
            "fewer, such as sums of parts, or pass a score"
        )


def _feature_of_numbers(numbers_by_run: list[Output]) -> AnyArray:
    """Return numbers as floats, or as they are where floats would merge some of them."""
    if all(map(_is_exact_double, numbers_by_run)):
        return np.array(numbers_by_run, dtype=np.float64)
    exact_number_feature = np.empty(len(numbers_by_run), dtype=object)
    exact_number_feature[:] = numbers_by_run
    return exact_number_feature


def _is_exact_double(number_of_output: Output) -> bool:
    """Return whether a number is a float, or an integer that is one, too."""
    if isinstance(number_of_output, int):
        return abs(number_of_output) <= _LARGEST_EXACT_INTEGER
    return isinstance(number_of_output, float)


def _indicators_of_words(words_of_runs: list[tuple[int, str]], run_count: int) -> list[AnyArray]:
    """Return a column of zeros and ones for each of the most frequent words of a place."""
    runs_by_word = Counter(word for _, word in words_of_runs)
    word_indicators = {
        word: np.zeros(run_count) for word, _ in runs_by_word.most_common(_MOST_WORDS)
    }
    for run_number, word in words_of_runs:
        if word in word_indicators:
            word_indicators[word][run_number] = 1.0
    return list(word_indicators.values())


def _parts_with_single_numbers(output: Output) -> _PartsOfOutput:
    """Yield what an output says, number by number."""
    for part_of_output in _parts_of_output(output, ""):
        if not isinstance(part_of_output.number, np.ndarray):
            yield _output_part_without_nan(part_of_output)
            continue
        for flat_index, single_number in enumerate(part_of_output.number.ravel().tolist()):
            yield _output_part_without_nan(
                _OutputPart(f"{part_of_output.place}[{flat_index}]", number=single_number)
            )


def _output_part_without_nan(part_of_output: _OutputPart) -> _OutputPart:
    """Return a part, of which NaN becomes a word: it has no rank among numbers."""
    if isinstance(part_of_output.number, float) and math.isnan(part_of_output.number):
        return _OutputPart(part_of_output.place, word="NaN")
    return part_of_output


def _parts_of_output(output: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield the kind of an output, and what it holds: words, numbers, and arrays of numbers."""
    yield _OutputPart(place_in_output, word=_kind_of_output(output))
    for types, parts_of_type in _PARTS_OF_TYPES:
        if isinstance(output, types):
            yield from parts_of_type(output, place_in_output)
            return
    if hasattr(output, "to_list"):
        yield from _parts_of_column(output, place_in_output)
    elif columns_of(output):
        yield from _parts_of_frame(output, place_in_output)


def _parts_of_number(number_of_output: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield a number; a decimal as an exact fraction."""
    ranked_number = number_of_output
    if isinstance(number_of_output, Decimal):
        ranked_number = math.nan
        if number_of_output.is_finite():
            ranked_number = Fraction(number_of_output)
        elif number_of_output.is_infinite():
            ranked_number = float(number_of_output)
    yield _OutputPart(place_in_output, number=ranked_number)


def _parts_of_complex(complex_number: complex, place_in_output: str) -> _PartsOfOutput:
    """Yield the real and the imaginary part."""
    yield from _parts_of_output([complex_number.real, complex_number.imag], place_in_output)


def _parts_of_failure(failed_run: Failure, place_in_output: str) -> _PartsOfOutput:
    """Yield how a run failed; the words of an exception are not learnt from."""
    yield _OutputPart(place_in_output, word=f"{failed_run.kind} {failed_run.name}")


def _parts_of_text(text_or_bytes: str | bytes, place_in_output: str) -> _PartsOfOutput:
    """Yield a text, and how long it is."""
    yield _length_of_container(text_or_bytes, place_in_output)
    yield _OutputPart(place_in_output, word=repr(text_or_bytes))


def _parts_of_moment(date_or_time: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield a date or a time as a number."""
    yield _OutputPart(place_in_output, number=_moment_as_integer(date_or_time))


def _parts_of_set(set_of_elements: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield a word for each element of a set, and how many there are."""
    yield _length_of_container(set_of_elements, place_in_output)
    packed_set_elements = sorted(
        map(pack, set_of_elements)
    )  # a set has another order in each process
    for packed_set_element in packed_set_elements:
        yield _OutputPart(f"{place_in_output}{{{packed_set_element!r}}}", word="in it")


def _parts_of_mapping(
    mapping_in_output: Mapping[object, object], place_in_output: str
) -> _PartsOfOutput:
    """Yield the parts of each value, at the place of its key."""
    yield _length_of_container(mapping_in_output, place_in_output)
    for mapping_key, mapping_value in mapping_in_output.items():
        yield from _parts_of_output(mapping_value, f"{place_in_output}[{mapping_key!r}]")


def _parts_of_sequence(
    sequence_in_output: Sequence[Output], place_in_output: str
) -> _PartsOfOutput:
    """Yield the parts of each element, at the place of its index."""
    yield _length_of_container(sequence_in_output, place_in_output)
    for element_index, sequence_element in enumerate(sequence_in_output):
        yield from _parts_of_output(sequence_element, f"{place_in_output}[{element_index}]")


def _parts_of_array(array_or_scalar: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield the sizes of an array and its numbers; of other arrays the parts of each element."""
    array = np.asarray(array_or_scalar)
    if array.dtype.kind in "biuf":
        for axis, axis_size in enumerate(array.shape):
            yield _OutputPart(f"{place_in_output} size {axis}", number=axis_size)
        yield _OutputPart(place_in_output, number=array)
    elif array.dtype.kind in "mM":
        yield from _parts_of_array(array.astype(np.int64), place_in_output)
    else:
        yield from _parts_of_output(array.ravel().tolist(), place_in_output)


def _parts_of_column(output_column: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield the name, the index and the values of a column."""
    yield _OutputPart(place_in_output, word=f"name {output_column.name!r}")
    yield from _parts_of_output(_row_labels_of_frame(output_column), f"{place_in_output} index")
    yield from _parts_of_output(output_column.to_list(), place_in_output)


def _parts_of_frame(output_frame: Output, place_in_output: str) -> _PartsOfOutput:
    """Yield the names, the index and the values of the columns of a frame."""
    yield _OutputPart(place_in_output, word=f"columns {list(output_frame.columns)}")
    yield from _parts_of_output(_row_labels_of_frame(output_frame), f"{place_in_output} index")
    for column_name, frame_column in zip(
        output_frame.columns, columns_of(output_frame), strict=True
    ):
        yield from _parts_of_output(frame_column.to_list(), f"{place_in_output}[{column_name!r}]")


_PARTS_OF_TYPES: tuple[tuple[type | UnionType, Callable[[Any, str], _PartsOfOutput]], ...] = (
    (np.ndarray | np.generic, _parts_of_array),
    (Failure, _parts_of_failure),
    (bool | int | float | Fraction | Decimal, _parts_of_number),
    (complex, _parts_of_complex),
    (str | bytes, _parts_of_text),
    (date | time | timedelta, _parts_of_moment),
    (set | frozenset, _parts_of_set),
    (Mapping, _parts_of_mapping),
    (Sequence, _parts_of_sequence),
)


def _length_of_container(container_in_output: Output, place_in_output: str) -> _OutputPart:
    """Return the length of an output, at a place beside it."""
    return _OutputPart(f"{place_in_output} length", number=len(container_in_output))


def _kind_of_output(part_of_output: Output) -> str:
    """Return the class of an output; of an array, what it holds and its dimensions."""
    if isinstance(part_of_output, np.ndarray):
        return f"array {part_of_output.dtype.kind} {part_of_output.ndim}"
    return type(part_of_output).__name__


def _row_labels_of_frame(frame_or_column: Output) -> list[Output]:
    """Return the labels of the rows of a frame or column, if its package has them."""
    row_index = getattr(frame_or_column, "index", None)
    if row_index is None or callable(row_index):
        return []
    row_labels: list[Output] = row_index.to_list()
    return row_labels


def _moment_as_integer(date_or_time: Output) -> Output:
    """Return a date or a time as an exact number: of microseconds, or of days if it is a date."""
    if isinstance(date_or_time, time):
        date_or_time = datetime.combine(datetime.min, date_or_time)
    if isinstance(date_or_time, datetime):
        date_or_time = date_or_time.replace(tzinfo=None) - datetime.min
    if isinstance(date_or_time, timedelta):
        return date_or_time // timedelta(microseconds=1)
    return date_or_time.toordinal()
