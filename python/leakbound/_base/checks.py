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
# What a number is meant as, where an option takes objects.
_OF_NUMBERS = {
    "claim": "ε is what is bounded, and result.check(epsilon={}) tests one",
    "cuts": "for a number of guesses write Fixed({})",
}
# Of the longest integers: seeds from the system's entropy have so many.
_BITS = 128
# Bits of the longest integers that NumPy has a type for.
_LONGEST = 64
# Characters of a wrong value that a message shows.
_WORDS = 80
# Limits of a number by their words.
_KEEPS = {"above": gt, "at least": ge, "at most": le, "below": lt}


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
        allowed = "use a number between -1.8e308 and 1.8e308"
        raise OptionError(f"{name} is too large for a float: {allowed}", option=name) from None
    limits = {"above": above, "at least": least, "at most": most, "below": below}
    kept = [limit is None or _KEEPS[word](number, limit) for word, limit in limits.items()]
    if math.isnan(number) or not all(kept):
        raise OptionError(f"{name} must be {_allowed(limits)}, got {number:g}", option=name)
    return number


def _allowed(limits: Mapping[str, object]) -> str:
    stated = []
    for word, limit in limits.items():
        if isinstance(limit, float):
            stated.append(f"{word} {limit:g}")
        elif limit is not None:
            stated.append(f"{word} {limit}")
    return " and ".join(stated) or "a number"


def integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Check that an option is an integer within limits, both included."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputTypeError(f"{name} must be an integer, got {shown(value)}", option=name)
    number = int(value)
    if number.bit_length() > _BITS:
        message = f"at most {_BITS} bits, got an integer of {number.bit_length()}"
        raise OptionError(f"{name} must have {message}", option=name)
    if number < least or (most is not None and number > most):
        allowed = _allowed({"at least": least, "at most": most})
        raise OptionError(f"{name} must be {allowed}, got {number}", option=name)
    return number


def flag(value: object, name: str) -> bool:
    """Check that an option is a boolean, and nothing that only converts to one."""
    if not isinstance(value, bool | np.bool_):
        raise InputTypeError(f"{name} must be True or False, got {shown(value)}", option=name)
    return bool(value)


def choice(value: object, name: str, allowed: object) -> None:
    """Check that an option is one of the values of a `Literal`."""
    values = get_args(allowed)
    if isinstance(value, str) and value in values:
        return
    listed = ", ".join(map(repr, values))
    raise OptionError(f"{name} must be one of {listed}, got {shown(value)}", option=name)


def instance(value: object, name: str, types: type[T] | tuple[type[T], ...]) -> None:
    """Check that an option is an object of one of some types."""
    if not isinstance(value, types):
        raise InputTypeError(_not_of(value, name, types), option=name)


def _not_of(value: object, name: str, types: type[T] | tuple[type[T], ...]) -> str:
    """Say that an option is an object of another type."""
    classes = (types,) if isinstance(types, type) else types
    listed = ", ".join(f"{one.__name__}(...)" for one in classes)
    return f"{name} must be one of {listed}, got {shown(value)}{_meant(value, name, classes)}"


def _meant(value: object, name: str, classes: tuple[type, ...]) -> str:
    """Say what to write in place of a class, a number, or a word that begins as a class does."""
    if isinstance(value, type):
        return ": call it"
    if isinstance(value, Real) and name in _OF_NUMBERS:
        return f": {_OF_NUMBERS[name].format(value)}"
    if isinstance(value, str) and value:
        begins = value.lower()
        named = [one.__name__ for one in classes if one.__name__.lower().startswith(begins)]
        if named:
            return f": write {named[0]}(...)"
    return ""


def complement(confidence: float) -> float:
    """Check a confidence and return one minus it, exact in decimals, which is below 1 as a double.

    With an error probability of 1 all claims are refuted, and a search for one that is not has no
    end.
    """
    try:
        checked = real(confidence, name="confidence", above=0, below=1)
    except OptionError as error:
        if not 1 < confidence < _PERCENT:
            raise
        message = f"{error}: write {confidence / _PERCENT:g}"
        raise OptionError(message, option="confidence") from error
    level = float(1 - Decimal(repr(checked)))
    if level == 1:
        raise OptionError(
            f"confidence must be at least 1e-16, got {confidence:g}: use 0.95", option="confidence"
        )
    return level


def shown(value: object) -> str:
    """Return a value as shown in messages, even if its repr raises."""
    try:
        shown = repr(value)
    except Exception:  # a repr is anybody's code, and refuses integers of 5,000 digits
        return f"an object of type {type(value).__name__}"
    if len(shown) <= _WORDS:
        return shown
    return shown[: _WORDS - 1] + "…"


# Codes of the dtypes of real numbers: booleans, integers, floats.
_REAL = "biuf"
# How many offending rows a message names.
_LISTED = 5
WHOLE = 2.0**53
"""Up to here float64 holds every integer."""


def vector(values: ArrayInput, name: str, *, kinds: str = _REAL) -> GenericArray:
    """Read `values` as a one-dimensional array of at least one element; a column is one, too."""
    array = _read(values, name=name, kinds=kinds)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise InputError(_no_vector(array, name))
    return array


def _no_vector(array: AnyArray, name: str) -> str:
    if array.ndim != 1:
        return f"{name} must be one-dimensional, got shape {array.shape}; pick a column or ravel"
    return f"{name} is empty: at least one value is needed"


def whole_numbers(values: GenericArray) -> GenericArray:
    """Return ids or codes so that equal ones compare equal, and different ones do not.

    Objects that are all text or all integers become such where a type of NumPy holds them; large
    whole doubles become integers of Python, which are compared with others exactly.
    """
    if values.dtype.kind == "O":
        listed = values.tolist()
        if {type(one) for one in listed} not in ({str}, {int}):
            return values.copy()
        packed = np.array(listed)
        if packed.dtype.kind == "f":  # above and below the largest of 63 bits, or of both signs
            exact = min(listed) >= 0 and max(listed).bit_length() <= _LONGEST
            if exact:
                return np.array(listed, dtype=np.uint64)
            return values.copy()
        return packed
    if values.dtype.kind != "f" or not (np.abs(values) >= WHOLE).any():
        return values.copy()
    numbers = values.astype(object)
    whole = np.isfinite(values) & (values == np.floor(values))
    numbers[whole] = list(map(int, numbers[whole]))
    return numbers


def numbers(
    values: ArrayInput,
    name: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    whole: bool = False,
) -> GenericArray:
    """Read numbers of any shape and check that all lie within limits, both included."""
    array: AnyArray = _read(values, name=name, kinds=_REAL)
    # As float64: a limit beyond the range of float16 would count as infinite.
    valid = (array >= np.float64(least)) & (array <= np.float64(most))
    if whole:
        valid &= array == np.floor(array)
    if valid.all():
        return array
    for index in map(tuple, np.argwhere(~valid)[:1].tolist()):
        kind = "a number"
        if whole:
            kind = "a whole number"
        place = ""
        if index:
            place = f" at index {', '.join(map(str, index))}"
        message = f"{name} must be {kind} in [{least:g}, {most:g}], got {array[index]:g}{place}"
        raise OptionError(message, option=name)
    return array


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
        shapes = ", ".join(str(one.shape) for one in arguments)
        raise InputError(
            f"the arguments have the shapes {shapes}, which do not go together: give single "
            "numbers, or arrays of one shape"
        ) from None


def vectorised(function: Callable[..., FloatArray], *arguments: AnyArray) -> Number:
    """Call a function of vectors with arguments of any shapes that broadcast."""
    together = broadcast(*arguments)
    values = function(*(np.ascontiguousarray(one).ravel() for one in together))
    shape = together[0].shape
    if shape:
        return values.reshape(shape)
    return float(values[0])


def check_scores(scores: ArrayInput, name: str = "scores") -> FloatArray:
    """Read scores as float64: a copy that nobody else can write to."""
    stored = vector(scores, name=name)
    with np.errstate(over="ignore"):
        values = np.array(stored, dtype=np.float64)
    values.flags.writeable = False
    if stored.dtype != np.float64 or isinstance(scores, Sequence):
        _check_distinct(stored, scores=scores, values=values, name=name)
    if np.isnan(values.min()):
        raise InputError(_missing(values, name))
    return values


def _missing(values: FloatArray, name: str) -> str:
    rows = np.flatnonzero(np.isnan(values))
    return (
        f"{name} must not be NaN, but {rows.size} of {values.size} are, at {_rows(rows)}; "
        "drop these examples or repair the score"
    )


def check_features(
    features: ArrayInput, name: str = "features", columns: int | None = None
) -> FloatArray:
    """Read features as float64, one row for each example."""
    table = _read(features, name=name, kinds=_REAL)
    if table.ndim != 2 or table.size == 0:
        raise InputError(_no_table(table, name))
    if columns is not None and table.shape[1] != columns:
        raise InputError(
            f"{name} has {table.shape[1]} columns and D' has {columns}; both must hold the same "
            "features in the same order"
        )
    values: FloatArray = np.ascontiguousarray(table, dtype=np.float64)
    # The sum of finite values may overflow, and then costs a second look; it hides no other.
    if not np.isfinite(values.sum()):
        _check_finite(values, name)
    return values


def _no_table(table: AnyArray, name: str) -> str:
    hint = ""
    if table.ndim == 1:
        hint = "; for a single feature pass x[:, None]"
    return (
        f"{name} must be two-dimensional, one row for each example and one column for each "
        f"feature, got shape {table.shape}{hint}"
    )


def _check_finite(table: FloatArray, name: str) -> None:
    """Refuse features that are infinite or NaN."""
    strange = ~np.isfinite(table)
    if strange.any():
        row, column = np.argwhere(strange)[0].tolist()
        rows = int(strange.any(axis=1).sum())
        raise InputError(
            f"{name} must be finite, got {table[row, column]} at row {row}, column {column} "
            f"({rows} such rows); drop the rows or fill them in"
        )


def check_membership(member: MemberInput, examples: int) -> BoolArray:
    """Read booleans, {0, 1}, {-1, +1}, words or a plan as booleans that nobody else can write to.

    Words are those of one pair in `MEMBERSHIP`, in either case.
    """
    values = membership_vector(member)
    if values.size != examples:
        _refuse_rows(values, examples)
    check_length(values, examples=examples, name="member")
    if values.dtype.kind in _REAL:
        return booleans(values, name="member")
    return _membership_in_words(values)


def _membership_in_words(values: AnyArray) -> BoolArray:
    said = [_said(one) for one in values.tolist()]
    read = membership_of(said)
    if None not in read:
        return booleans(np.array(read, dtype=np.int8), name="member")
    row = read.index(None)
    word = said[row]
    raise InputTypeError(
        f"member must be True or False, 0 or 1, -1 or 1, or words such as in and out, got {word!r} "
        f"at row {row}: say which word members have, numpy.asarray(member) == {word!r}"
    )


def _refuse_rows(values: AnyArray, examples: int) -> None:
    """Refuse values that are the numbers of some rows, and no membership."""
    within = values.dtype.kind in "iu" and values.min() >= 0 and 1 < values.max() < examples
    if within and np.unique(values).size == values.size:
        raise InputError(
            f"member has {values.size} values and there are {examples} scores; if these are the "
            f"rows of the members, pass numpy.isin(numpy.arange({examples}), member)"
        )


def membership_vector(member: MemberInput) -> AnyArray:
    """Read membership as a vector of numbers, booleans, text or objects."""
    if isinstance(member, HasMember):
        member = member.member
    return vector(member, name="member", kinds=_REAL + "SUTO")


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
    lowered = [word.strip().lower() for word in words]
    signs = {"1": 1, "1.0": 1, "-1": -1, "-1.0": -1}
    if signs.keys() >= {*lowered}:
        return [signs[word] for word in lowered]
    pairs = {word: pair for pair in MEMBERSHIP for side in pair for word in side}
    first = next((pairs[word] for word in lowered if word in pairs), (set[str](), set[str]()))
    known = {word: int(word in first[0]) for side in first for word in side}
    return [known.get(word) for word in lowered]


def _said(value: object) -> str:
    """Return a value of membership as a word."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def check_ids(ids: ArrayInput, member: BoolArray) -> None:
    """Check that every example has a different id."""
    values = vector(ids, name="ids", kinds="biufSUOT")
    check_length(values, examples=member.size, name="ids")
    try:
        if not _repeats(values):
            return
        _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    except (TypeError, ArithmeticError):  # such as of decimals that are no number
        raise InputTypeError(
            "ids must be all numbers or all strings, got a mixture of both"
        ) from None
    included = np.bincount(group, weights=member)
    mixed = (included > 0) & (included < count)
    offending = count > 1
    said = "occur more than once"
    if mixed.any():
        offending = mixed
        said = "are both members and non-members"
    which = np.flatnonzero(offending)
    rows = np.flatnonzero(group == which[0])
    raise InputError(
        f"{which.size} ids {said}, the first being {values[rows[0]]!s} at {_rows(rows)}: keep one "
        "row for each example: it is either a member or a non-member"
    )


def _repeats(values: AnyArray) -> bool:
    """Return whether a value occurs twice, in the memory of one sorted copy; NaN is one value."""
    ordered = np.sort(values)
    equal = ordered[1:] == ordered[:-1]
    unordered = ordered[-2:] != ordered[-2:]  # NaN is last, and equals nothing
    return bool(equal.any() or (unordered.size > 1 and unordered.all()))


def check_length(values: GenericArray, examples: int, name: str) -> None:
    """Check that there is one value for each example."""
    if len(values) != examples:
        raise InputError(
            f"{name} has {len(values)} values and there are {examples} scores; both must describe "
            "the same examples, members and non-members, in the same order"
        )


def _read(values: ArrayInput, name: str, kinds: str) -> GenericArray:
    if type(values) is np.ndarray:
        array: AnyArray = values
    else:
        refuse_masked(values, name=name)
        # Whatever may be objects is a name, and two names are one only if they are equal.
        array = array_of(values, name=name, exact="O" in kinds)
    if array.dtype.kind == "O" and "O" not in kinds and array.size and array.ndim:
        array = _of_numbers(array, name=name)
    if array.dtype.kind not in kinds:
        raise InputTypeError(_of_no_kind(array, name, kinds))
    if array.dtype == np.bool_:
        # A byte other than 0 and 1, as in a mask seen as booleans, is true, and sums must count 1.
        flags: BoolArray = array.view(np.uint8) != 0
        return flags
    return array


def _of_no_kind(array: AnyArray, name: str, kinds: str) -> str:
    if "O" in kinds:
        return (
            f"{name} must hold numbers or text, got dtype {array.dtype}: pass numbers in their "
            f"place, for example numpy.unique({name}, return_inverse=True)[1]"
        )
    return (
        f"{name} must hold real numbers, got dtype {array.dtype}; encode categories as "
        f"numbers, or convert it, for example with numpy.asarray({name}, dtype=float)"
    )


def _of_numbers(objects: AnyArray, name: str) -> AnyArray:
    """Return objects as doubles if all are numbers, such as decimals, that doubles tell apart."""
    for place, one in enumerate(objects.ravel().tolist()):
        if not isinstance(one, Real | Decimal | np.bool_):
            row = place // max(1, objects.size // len(objects))
            raise InputTypeError(
                f"{name} must hold real numbers, got {shown(one)} at row {row}; encode categories "
                "as numbers, and drop rows without a value"
            )
    try:
        values = objects.astype(np.float64)
    except (ValueError, OverflowError):  # a signalling NaN, an integer beyond all doubles
        return objects
    if (np.isfinite(values) & (np.abs(values) >= WHOLE)).any():
        raise InputTypeError(
            f"{name} has objects beyond 2^53, which float64 may not tell apart: pass their ranks, "
            f"numpy.unique({name}, return_inverse=True)[1]"
        )
    return values


def booleans(values: GenericArray, name: str) -> BoolArray:
    """Read a vector of {0, 1} or {-1, +1} as booleans that nobody else can write to."""
    ones: AnyArray = values
    if values.dtype != np.bool_:
        ones = values == 1
        whole = values.dtype.kind in "iu" and values.size
        if not whole or not {values.min(), values.max()} <= {0, 1}:
            _check_two(values, ones, name)
    ones.flags.writeable = False
    return ones


def _check_two(values: GenericArray, ones: BoolArray, name: str) -> None:
    """Check that numbers other than 1 are all 0, or all -1."""
    zero = 0
    seen = ""
    if (values == -1).any():
        zero = -1
        seen = f", while other rows hold {zero}"
    strange = np.flatnonzero(~(ones | (values == zero)))
    if strange.size:
        row = int(strange[0])
        swapped = ""
        if strange.size == values.size and name == "member":
            swapped = ": if these are scores, they come first, lb.audit(scores, lb.Coins(member))"
        raise InputError(
            f"{name} must be boolean, {{0, 1}} or {{-1, +1}} throughout, got "
            f"{values[row].item()!r} at row {row}{seen} ({strange.size} such rows){swapped}"
        )


def _check_distinct(stored: GenericArray, scores: object, values: FloatArray, name: str) -> None:
    """Check that no scores were merged by the conversion to float64."""
    exact: AnyArray = stored
    if stored.dtype.kind == "f" and stored.dtype.itemsize <= values.dtype.itemsize:
        if not isinstance(scores, Sequence) or np.abs(values).max() < WHOLE:
            return
        exact = np.array(scores, dtype=object)  # NumPy reads integers of both signs as floats
    elif stored.dtype.kind != "f" and np.abs(values).max() < WHOLE:
        return
    distinct = np.unique(exact[~np.isnan(values)])
    with np.errstate(over="ignore"):
        rounded = distinct.astype(np.float64)
    merged = np.flatnonzero(rounded[1:] == rounded[:-1])
    if merged.size:
        pair = [distinct[merged[0]], distinct[merged[0] + 1]]
        rows = [int(np.flatnonzero(exact == one)[0]) for one in pair]
        raise InputError(
            f"{name} lose precision in float64: {merged.size} of {distinct.size} values become "
            f"equal, the first being {pair[0]} at row {rows[0]} and {pair[1]} at row {rows[1]}; "
            f"pass their ranks, numpy.unique({name}, return_inverse=True)[1]"
        )


def _rows(rows: NDArray[np.intp]) -> str:
    listed = ", ".join(map(str, rows[:_LISTED]))
    if rows.size == 1:
        return f"row {listed}"
    if rows.size > _LISTED:
        return f"rows {listed}, …"
    return f"rows {listed}"


def seed_of(seed: int | None, *, bits: int = 53) -> int:
    """Return a seed, one of the system's entropy where none is given.

    JSON readers that know no integers but doubles hold 53 bits.
    """
    if seed is None:
        return secrets.randbits(bits)
    return integer(seed, name="seed", least=0)
