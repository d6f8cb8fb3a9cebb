"""Checks of input and options: all other code may rely on them."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from leakbound._base.formatting import listed_first, shortened
from leakbound._base.messages import object_in_place_of
from leakbound._base.reading import array_of, refuse_masked
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    FloatArray,
    GenericArray,
    HasMember,
    MemberInput,
    Number,
)
from leakbound.errors import InputError, InputTypeError, OptionError

T = TypeVar("T")

MOST_EXAMPLES = 10**8
"""Examples that are drawn at most: games and plans are held in memory, at tens of bytes each."""
MOST_K = 10**6
"""Candidates of a secret at most."""
MOST_BATCH = 2**31 - 1
"""Examples of a batch at most: rows are counted in steps of it."""
MOST_REPLICATES = 10**6
"""Bootstrap replicates at most: each is a row of as many numbers as there are examples."""
_PERCENT = 100
# Of the longest integers: seeds from the system's entropy have so many.
_MOST_BITS = 128
# Bits of the longest integers that NumPy has a type for.
_BITS_OF_NUMPY = 64
# Characters of a wrong value that a message shows.
_SHOWN_CHARACTERS = 80
# Comparisons of a number with its limits, by their words.
_COMPARISONS = {"above": gt, "at least": ge, "at most": le, "below": lt}


def real(
    value: object,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Check that an option is a real number within limits, `least` and `most` included."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a real number, got {shown(value)}", option=name)
    try:
        number = float(value)
    except OverflowError:
        advice = "use a number between -1.8e308 and 1.8e308"
        raise OptionError(f"{name} is too large for a float: {advice}", option=name) from None
    limits = {"above": above, "at least": least, "at most": most, "below": below}
    _check_limits(number, name, limits)
    return number


def _check_limits(number: float, name: str, limits: Mapping[str, float | None]) -> None:
    """Check that a number lies within those limits that an option has."""
    stated_limits = {word: limit for word, limit in limits.items() if limit is not None}
    is_within = all(_COMPARISONS[word](number, limit) for word, limit in stated_limits.items())
    if is_within and not math.isnan(number):
        return
    limits_in_words = [f"{word} {_digits(limit)}" for word, limit in stated_limits.items()]
    allowed_numbers = " and ".join(limits_in_words) or "a number"
    raise OptionError(f"{name} must be {allowed_numbers}, got {_digits(number)}", option=name)


def _digits(number: object) -> str:
    """Return the first digits of a float, or all digits of an integer."""
    if isinstance(number, float):
        return f"{number:g}"
    return str(number)


def integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Check that an option is an integer within limits, both included."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be an integer, got {shown(value)}", option=name)
    number = int(value)
    if number.bit_length() > _MOST_BITS:
        message = f"at most {_MOST_BITS} bits, got an integer of {number.bit_length()}"
        raise OptionError(f"{name} must have {message}", option=name)
    _check_limits(number, name, {"at least": least, "at most": most})
    return number


def flag(value: object, name: str) -> bool:
    """Check that an option is a boolean, and nothing that only converts to one."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, got {shown(value)}", option=name)
    return bool(value)


def choice(value: object, name: str, allowed: object) -> None:
    """Check that an option is one of the values of a `Literal`."""
    allowed_values = get_args(allowed)
    if isinstance(value, str) and value in allowed_values:
        return
    listed_values = ", ".join(map(repr, allowed_values))
    raise OptionError(f"{name} must be one of {listed_values}, got {shown(value)}", option=name)


def instance(value: object, name: str, types: type[T] | tuple[type[T], ...]) -> None:
    """Check that an option is an object of one of some types."""
    if not isinstance(value, types):
        raise InputTypeError(_message_about_class(value, name, types), option=name)


def _message_about_class(value: object, name: str, types: type[T] | tuple[type[T], ...]) -> str:
    """Say that an option is an object of another class, and what to pass."""
    allowed_classes = types
    if isinstance(allowed_classes, type):
        allowed_classes = (allowed_classes,)
    listed_classes = ", ".join(f"{allowed.__name__}(...)" for allowed in allowed_classes)
    advice = object_in_place_of(value, name, allowed_classes)
    return f"{name} must be one of {listed_classes}, got {shown(value)}{advice}"


def complement(confidence: float) -> float:
    """Check a confidence and return one minus it, exact in decimals, which is below 1 as a double.

    With an error probability of 1 all claims are refuted, and a search for one that is not has no
    end.
    """
    try:
        checked_confidence = real(confidence, name="confidence", above=0, below=1)
    except OptionError as error:
        _refuse_percent(confidence, error)
        raise
    error_probability = float(1 - Decimal(repr(checked_confidence)))
    if error_probability == 1:
        raise OptionError(
            f"confidence must be at least 1e-16, got {confidence:g}: use 0.95", option="confidence"
        )
    return error_probability


def _refuse_percent(confidence: float, error: OptionError) -> None:
    """Raise an error with the number to write, where a confidence was meant in per cent."""
    if 1 < confidence < _PERCENT:
        message = f"{error}: write {confidence / _PERCENT:g}"
        raise OptionError(message, option="confidence") from error


def shown(value: object) -> str:
    """Return a value as shown in messages, even if its repr raises."""
    try:
        representation = repr(value)
    except Exception:  # a repr is anybody's code, and refuses integers of 5,000 digits
        return f"an object of type {type(value).__name__}"
    return shortened(representation, most_characters=_SHOWN_CHARACTERS)


# Codes of the dtypes of real numbers: booleans, integers, floats.
_REAL_KINDS = "biuf"
# How many offending rows a message names.
_LISTED_ROWS = 5
WHOLE = 2.0**53
"""Up to here float64 holds every integer."""


def vector(values: ArrayInput, name: str, *, kinds: str = _REAL_KINDS) -> GenericArray:
    """Read `values` as a one-dimensional array of at least one element; a column is one, too."""
    vector_or_column = _array_of_kinds(values, name=name, kinds=kinds)
    if vector_or_column.ndim == 2 and vector_or_column.shape[1] == 1:
        vector_or_column = vector_or_column[:, 0]
    if vector_or_column.ndim != 1:
        raise InputError(
            f"{name} must be one-dimensional, got shape {vector_or_column.shape}; pick a column or "
            "ravel"
        )
    if vector_or_column.size == 0:
        raise InputError(f"{name} is empty: at least one value is needed")
    return vector_or_column


def whole_numbers(values: GenericArray) -> GenericArray:
    """Return ids or codes so that equal ones compare equal, and different ones do not.

    Objects that are all text or all integers become such where a type of NumPy holds them; large
    whole doubles become integers of Python, which are compared with others exactly.
    """
    if values.dtype.kind == "O":
        return _packed_objects(values)
    if values.dtype.kind != "f" or not (np.abs(values) >= WHOLE).any():
        return values.copy()
    integers_and_floats = values.astype(object)
    is_whole_float = np.isfinite(values) & (values == np.floor(values))
    integers_and_floats[is_whole_float] = list(map(int, values[is_whole_float]))
    return integers_and_floats


def _packed_objects(values: GenericArray) -> GenericArray:
    """Return objects that are all text, or all integers, as an array of that type."""
    listed_objects = values.tolist()
    if set(map(type, listed_objects)) not in ({str}, {int}):
        return values.copy()
    packed_objects = np.array(listed_objects)
    if packed_objects.dtype.kind != "f":
        return packed_objects
    # Integers above and below the largest of 63 bits, or of both signs: NumPy made floats of them.
    if min(listed_objects) < 0 or max(listed_objects).bit_length() > _BITS_OF_NUMPY:
        return values.copy()
    return np.array(listed_objects, dtype=np.uint64)


def numbers(
    values: ArrayInput,
    name: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    whole: bool = False,
) -> GenericArray:
    """Read numbers of any shape and check that all lie within limits, both included."""
    array_of_numbers: AnyArray = _array_of_kinds(values, name=name, kinds=_REAL_KINDS)
    # As float64: a limit beyond the range of float16 would count as infinite.
    is_valid = (array_of_numbers >= np.float64(least)) & (array_of_numbers <= np.float64(most))
    kind_of_number = "a number"
    if whole:
        is_valid &= array_of_numbers == np.floor(array_of_numbers)
        kind_of_number = "a whole number"
    if is_valid.all():
        return array_of_numbers
    first_invalid = tuple(np.argwhere(~is_valid)[0].tolist())
    place = ""
    if first_invalid:
        place = f" at index {', '.join(map(str, first_invalid))}"
    raise OptionError(
        f"{name} must be {kind_of_number} in [{least:g}, {most:g}], got "
        f"{array_of_numbers[first_invalid]:g}{place}",
        option=name,
    )


def reals(
    values: ArrayInput, name: str, *, least: float = -math.inf, most: float = math.inf
) -> FloatArray:
    """Read real numbers within limits."""
    return numbers(values, name=name, least=least, most=most).astype(np.float64, copy=False)


def broadcast(*arguments: AnyArray) -> Sequence[AnyArray]:
    """Return arguments in one shape."""
    try:
        return np.broadcast_arrays(*arguments)
    except ValueError:
        shapes = ", ".join(str(argument.shape) for argument in arguments)
        raise InputError(
            f"the arguments have the shapes {shapes}, which do not go together: give single "
            "numbers, or arrays of one shape"
        ) from None


def vectorised(function: Callable[..., FloatArray], *arguments: AnyArray) -> Number:
    """Call a function of vectors with arguments of any shapes that broadcast."""
    broadcast_arguments = broadcast(*arguments)
    vectors = [np.ascontiguousarray(argument).ravel() for argument in broadcast_arguments]
    return in_shape(function(*vectors), broadcast_arguments[0].shape)


def in_shape(values: FloatArray, shape: tuple[int, ...]) -> Number:
    """Return a vector in another shape, as a Python float where it has no dimensions."""
    if shape:
        return values.reshape(shape)
    return float(values[0])


def check_scores(scores: ArrayInput, name: str = "scores") -> FloatArray:
    """Read scores as float64: a copy that nobody else can write to."""
    stored_scores = vector(scores, name=name)
    with np.errstate(over="ignore"):
        float_scores = np.array(stored_scores, dtype=np.float64)
    float_scores.flags.writeable = False
    if stored_scores.dtype != np.float64 or isinstance(scores, Sequence):
        _check_scores_stay_distinct(
            stored_scores, scores=scores, float_scores=float_scores, name=name
        )
    if np.isnan(float_scores.min()):
        raise InputError(_message_about_nan(float_scores, name))
    return float_scores


def _message_about_nan(scores: FloatArray, name: str) -> str:
    """Say which scores are NaN, and what to do."""
    nan_rows = np.flatnonzero(np.isnan(scores))
    return (
        f"{name} must not be NaN, but {nan_rows.size} of {scores.size} are, at "
        f"{_listed_rows(nan_rows)}; drop these examples or repair the score"
    )


def check_features(
    features: ArrayInput, name: str = "features", columns: int | None = None
) -> FloatArray:
    """Read features as float64, one row for each example."""
    feature_rows = _array_of_kinds(features, name=name, kinds=_REAL_KINDS)
    if feature_rows.ndim != 2 or feature_rows.size == 0:
        advice = ""
        if feature_rows.ndim == 1:
            advice = "; for a single feature pass x[:, None]"
        raise InputError(
            f"{name} must be two-dimensional, one row for each example and one column for each "
            f"feature, got shape {feature_rows.shape}{advice}"
        )
    number_of_columns = feature_rows.shape[1]
    if columns not in {None, number_of_columns}:
        raise InputError(
            f"{name} has {number_of_columns} columns and D' has {columns}; both must hold the same "
            "features in the same order"
        )
    float_features: FloatArray = np.ascontiguousarray(feature_rows, dtype=np.float64)
    # The sum of finite values may overflow, and then costs a second look; it hides no other.
    if not np.isfinite(float_features.sum()):
        _check_finite_features(float_features, name)
    return float_features


def _check_finite_features(features: FloatArray, name: str) -> None:
    """Refuse features that are infinite or NaN."""
    rows, columns = np.nonzero(~np.isfinite(features))
    if rows.size:
        raise InputError(
            f"{name} must be finite, got {features[rows[0], columns[0]]} at row {rows[0]}, column "
            f"{columns[0]} ({np.unique(rows).size} such rows); drop the rows or fill them in"
        )


def check_membership(member: MemberInput, examples: int) -> BoolArray:
    """Read booleans, {0, 1}, {-1, +1}, words or a plan as booleans that nobody else can write to.

    Words are those of one pair in `MEMBERSHIP`, in either case.
    """
    values = membership_vector(member)
    if values.size != examples:
        _refuse_row_numbers(values, examples)
    check_length(values, examples=examples, name="member")
    if values.dtype.kind in _REAL_KINDS:
        return booleans(values, name="member")
    return _membership_in_words(values)


def _membership_in_words(values: AnyArray) -> BoolArray:
    words = list[str]()
    for value in values.tolist():
        word = str(value)
        if isinstance(value, bytes):
            word = value.decode("utf-8", "replace")
        words.append(word)
    membership = membership_of(words)
    if None not in membership:
        return booleans(np.array(membership, dtype=np.int8), name="member")
    unknown_row = membership.index(None)
    unknown_word = words[unknown_row]
    raise InputTypeError(
        "member must be True or False, 0 or 1, -1 or 1, or words such as in and out, got "
        f"{unknown_word!r} at row {unknown_row}: say which word members have, "
        f"numpy.asarray(member) == {unknown_word!r}"
    )


def _refuse_row_numbers(member_values: AnyArray, examples: int) -> None:
    """Refuse values that are the numbers of some rows, and no membership."""
    may_be_rows = (
        member_values.dtype.kind in "iu"
        and member_values.min() >= 0
        and 1 < member_values.max() < examples
    )
    if may_be_rows and np.unique(member_values).size == member_values.size:
        raise InputError(
            f"member has {member_values.size} values and there are {examples} scores; if these are "
            f"the rows of the members, pass numpy.isin(numpy.arange({examples}), member)"
        )


def membership_vector(member: MemberInput) -> AnyArray:
    """Read membership as a vector of numbers, booleans, text or objects."""
    if isinstance(member, HasMember):
        member = member.member
    return vector(member, name="member", kinds=_REAL_KINDS + "SUTO")


MEMBERSHIP = (
    ({"true", "t", "1", "1.0"}, {"false", "f", "0", "0.0"}),
    ({"yes", "y"}, {"no", "n"}),
    ({"in", "included"}, {"out", "excluded"}),
    ({"member"}, {"nonmember", "non-member", "non_member", "non member"}),
    ({"members"}, {"nonmembers", "non-members", "non_members"}),
    ({"train", "training"}, {"test", "holdout", "heldout", "held-out"}),
)
"""Words of members and of non-members, in pairs that can mean nothing else."""


def membership_of(words: Sequence[str]) -> list[int | None]:
    """Return 1 for words of members and 0, or -1, for others; None for words of no one pair."""
    lowered_words = [word.strip().lower() for word in words]
    if {"1", "1.0", "-1", "-1.0"}.issuperset(lowered_words):
        return [int(float(sign)) for sign in lowered_words]
    for word in lowered_words:
        for words_of_members, words_of_others in MEMBERSHIP:
            if word in words_of_members or word in words_of_others:
                membership_of_word: dict[str, int] = dict.fromkeys(words_of_members, 1)
                membership_of_word |= dict.fromkeys(words_of_others, 0)
                return [membership_of_word.get(one) for one in lowered_words]
    return [None] * len(words)


def check_ids(ids: ArrayInput, member: BoolArray) -> None:
    """Check that every example has a different id."""
    example_ids = vector(ids, name="ids", kinds="biufSUOT")
    check_length(example_ids, examples=member.size, name="ids")
    try:
        if not _has_repeated_value(example_ids):
            return
        _, id_of_row, rows_of_id = np.unique(example_ids, return_inverse=True, return_counts=True)
    except (TypeError, ArithmeticError):  # such as of decimals that are no number
        raise InputTypeError(
            "ids must be all numbers or all strings, got a mixture of both"
        ) from None
    member_rows_of_id = np.bincount(id_of_row, weights=member)
    has_both_classes = (member_rows_of_id > 0) & (member_rows_of_id < rows_of_id)
    offending_ids = np.flatnonzero(rows_of_id > 1)
    problem = "occur more than once"
    if has_both_classes.any():
        offending_ids = np.flatnonzero(has_both_classes)
        problem = "are both members and non-members"
    rows_of_first_id = np.flatnonzero(id_of_row == offending_ids[0])
    raise InputError(
        f"{offending_ids.size} ids {problem}, the first being "
        f"{example_ids[rows_of_first_id[0]]!s} at {_listed_rows(rows_of_first_id)}: keep one row "
        "for each example: it is either a member or a non-member"
    )


def _has_repeated_value(values: AnyArray) -> bool:
    """Return whether a value occurs twice, in the memory of one sorted copy; NaN is one value."""
    sorted_values = np.sort(values)
    equals_next_value = sorted_values[1:] == sorted_values[:-1]
    is_nan_among_last = sorted_values[-2:] != sorted_values[-2:]  # NaN is last, and equals nothing
    return bool(equals_next_value.any() or (is_nan_among_last.size > 1 and is_nan_among_last.all()))


def check_length(values: GenericArray, examples: int, name: str) -> None:
    """Check that there is one value for each example."""
    if len(values) != examples:
        raise InputError(
            f"{name} has {len(values)} values and there are {examples} scores; both must describe "
            "the same examples, members and non-members, in the same order"
        )


def _array_of_kinds(values: ArrayInput, name: str, kinds: str) -> GenericArray:
    if type(values) is np.ndarray:
        array: AnyArray = values
    else:
        refuse_masked(values, name=name)
        # Whatever may be objects is a name, and two names are one only if they are equal.
        array = array_of(values, name=name, exact="O" in kinds)
    if array.dtype.kind == "O" and "O" not in kinds and array.size and array.ndim:
        array = _doubles_of_objects(array, name=name)
    if array.dtype.kind not in kinds:
        raise InputTypeError(_message_about_dtype(array, name, kinds))
    if array.dtype == np.bool_:
        # A byte other than 0 and 1, as in a mask seen as booleans, is true, and sums must count 1.
        flags: BoolArray = array.view(np.uint8) != 0
        return flags
    return array


def _message_about_dtype(array: AnyArray, name: str, kinds: str) -> str:
    """Say that an array holds values of a kind that is not read, and what to pass."""
    if "O" in kinds:
        return (
            f"{name} must hold numbers or text, got dtype {array.dtype}: pass numbers in their "
            f"place, for example numpy.unique({name}, return_inverse=True)[1]"
        )
    return (
        f"{name} must hold real numbers, got dtype {array.dtype}; encode categories as "
        f"numbers, or convert it, for example with numpy.asarray({name}, dtype=float)"
    )


def _doubles_of_objects(objects: AnyArray, name: str) -> AnyArray:
    """Return objects as doubles if all are numbers, such as decimals, that doubles tell apart."""
    for index, value in np.ndenumerate(objects):
        if not isinstance(value, Real | Decimal | np.bool_):
            raise InputTypeError(
                f"{name} must hold real numbers, got {shown(value)} at row {index[0]}; encode "
                "categories as numbers, and drop rows without a value"
            )
    try:
        doubles = objects.astype(np.float64)
    except (ValueError, OverflowError):  # a signalling NaN, an integer beyond all doubles
        return objects
    may_be_merged = np.isfinite(doubles) & (np.abs(doubles) >= WHOLE)
    if may_be_merged.any():
        raise InputTypeError(
            f"{name} has objects beyond 2^53, which float64 may not tell apart: pass their ranks, "
            f"numpy.unique({name}, return_inverse=True)[1]"
        )
    return doubles


def booleans(values: GenericArray, name: str) -> BoolArray:
    """Read a vector of {0, 1} or {-1, +1} as booleans that nobody else can write to."""
    is_one: AnyArray = values
    if values.dtype != np.bool_:
        is_one = values == 1
        are_integers = values.dtype.kind in "iu" and values.size
        if not are_integers or not {values.min(), values.max()} <= {0, 1}:
            _check_boolean_values(values, is_one, name)
    is_one.flags.writeable = False
    return is_one


def _check_boolean_values(values: GenericArray, is_one: BoolArray, name: str) -> None:
    """Check that numbers other than 1 are all 0, or all -1."""
    other_value = 0
    other_rows = ""
    if (values == -1).any():
        other_value = -1
        other_rows = f", while other rows hold {other_value}"
    wrong_rows = np.flatnonzero(~is_one & (values != other_value))
    if wrong_rows.size:
        first_wrong = wrong_rows[0]
        advice = ""
        if wrong_rows.size == values.size and name == "member":
            advice = ": if these are scores, they come first, lb.audit(scores, lb.Coins(member))"
        raise InputError(
            f"{name} must be boolean, {{0, 1}} or {{-1, +1}} throughout, got "
            f"{values[first_wrong].item()!r} at row {first_wrong}{other_rows} ({wrong_rows.size} "
            f"such rows){advice}"
        )


def _check_scores_stay_distinct(
    stored_scores: GenericArray, scores: object, float_scores: FloatArray, name: str
) -> None:
    """Check that no scores were merged by the conversion to float64."""
    exact_scores: AnyArray = stored_scores
    are_within_doubles = (
        stored_scores.dtype.kind == "f"
        and stored_scores.dtype.itemsize <= float_scores.dtype.itemsize
    )
    if are_within_doubles:
        if not isinstance(scores, Sequence) or np.abs(float_scores).max() < WHOLE:
            return
        exact_scores = np.array(scores, dtype=object)  # NumPy makes floats of some integers
    elif stored_scores.dtype.kind != "f" and np.abs(float_scores).max() < WHOLE:
        return
    distinct_scores = np.unique(exact_scores[~np.isnan(float_scores)])
    with np.errstate(over="ignore"):
        rounded_scores = distinct_scores.astype(np.float64)
    merged = np.flatnonzero(rounded_scores[1:] == rounded_scores[:-1])
    if merged.size:
        first = distinct_scores[merged[0]]
        second = distinct_scores[merged[0] + 1]
        row_of_first = int(np.flatnonzero(exact_scores == first)[0])
        row_of_second = int(np.flatnonzero(exact_scores == second)[0])
        raise InputError(
            f"{name} lose precision in float64: {merged.size} of {distinct_scores.size} values "
            f"become equal, the first being {first} at row {row_of_first} and {second} at row "
            f"{row_of_second}; pass their ranks, numpy.unique({name}, return_inverse=True)[1]"
        )


def _listed_rows(rows: NDArray[np.intp]) -> str:
    listed_rows = listed_first(rows.tolist(), most=_LISTED_ROWS)
    if rows.size == 1:
        return f"row {listed_rows}"
    return f"rows {listed_rows}"


def seed_of(seed: int | None, *, bits: int = 53) -> int:
    """Return a seed, one of the system's entropy where none is given.

    JSON readers that know no integers but doubles hold 53 bits.
    """
    if seed is None:
        return secrets.randbits(bits)
    return integer(seed, name="seed", least=0)
