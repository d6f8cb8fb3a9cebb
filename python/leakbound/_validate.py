"""The only checks of input: everything behind them may trust what it is given."""

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from leakbound._typing import ArrayInput, BoolArray, FloatArray, HasMember
from leakbound.errors import (
    ArrayTypeError,
    ConflictingIdsError,
    DuplicateIdsError,
    LengthMismatchError,
    MembershipError,
    NaNScoresError,
    OptionError,
    OptionTypeError,
    ShapeError,
)

__all__ = [
    "check_ids",
    "check_length",
    "check_membership",
    "check_scores",
    "check_successes",
    "choice",
    "complement",
    "instance",
    "integer",
    "numbers",
    "real",
    "vector",
]

T = TypeVar("T")

_REAL = "biuf"
"""Codes of the dtypes of real numbers: booleans, integers, floats."""
_LISTED = 5
"""How many offending rows a message names."""


def vector(values: ArrayInput, name: str, *, kinds: str = _REAL) -> NDArray[np.generic]:
    """Read `values` as a one-dimensional array that holds at least one element.

    Parameters
    ----------
    values : array-like
        Anything that NumPy reads.
    name : str
        What to call it in messages.
    kinds : str
        Codes of the dtypes allowed, as in ``numpy.dtype.kind``.

    Returns
    -------
    ndarray
        The values, not copied where NumPy can do without.

    Raises
    ------
    ArrayTypeError
        If NumPy cannot read them, or reads another kind than those allowed.
    ShapeError
        If they are empty or not one-dimensional.
    """
    array = _read(values, name, kinds)
    if array.ndim != 1:
        message = (
            f"{name} must be one-dimensional, one value for each example, got shape "
            f"{array.shape}; pick a column or ravel it"
        )
        raise ShapeError(message)
    if array.size == 0:
        message = f"{name} is empty: at least one value is needed"
        raise ShapeError(message)
    return array


def numbers(
    values: ArrayInput,
    name: str,
    *,
    least: float = -math.inf,
    most: float = math.inf,
    whole: bool = False,
) -> NDArray[np.generic]:
    """Read numbers of any shape and check that all lie within limits.

    Parameters
    ----------
    values : array-like
        Anything that NumPy reads.
    name : str
        What to call them in messages.
    least, most : float
        The limits, both included.
    whole : bool
        Whether they must be whole numbers.

    Returns
    -------
    ndarray
        The numbers.

    Raises
    ------
    ArrayTypeError
        If NumPy cannot read them as real numbers.
    OptionError
        If one is outside the limits, NaN, or not whole.
    """
    array: NDArray[Any] = _read(values, name, _REAL)
    valid = (array >= least) & (array <= most)
    if whole:
        valid &= array == np.floor(array)
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise OptionError(
            f"{name} must be {'a whole number' if whole else 'a number'} in "
            f"[{least:g}, {most:g}], got {array[index]:g}"
            + (f" at index {', '.join(map(str, index))}" if index else "")
        )
    return array


def check_scores(scores: ArrayInput, name: str = "scores") -> FloatArray:
    """Read scores as float64, with at most one copy.

    Parameters
    ----------
    scores : array-like, shape (m,)
        Real numbers, ±inf allowed.
    name : str
        What to call them in messages.

    Returns
    -------
    ndarray of float64, shape (m,)
        The scores.

    Raises
    ------
    ArrayTypeError, ShapeError
        As for `vector`.
    NaNScoresError
        If a score is not a number.
    """
    values = vector(scores, name).astype(np.float64, copy=False)
    if np.isnan(values.min()):
        rows = np.flatnonzero(np.isnan(values))
        message = (
            f"{name} must not be NaN, but {rows.size} of {values.size} are, at {_rows(rows)}; "
            "drop these examples or repair the score"
        )
        raise NaNScoresError(message)
    return values


def check_membership(
    member: ArrayInput | HasMember, examples: int, scores: object = None
) -> BoolArray:
    """Read membership as booleans, one for each example.

    Parameters
    ----------
    member : array-like of shape (m,), or an object with such a `member`
        Booleans, {0, 1} or {-1, +1}; or an `InclusionPlan`.
    examples : int
        m, the number of scores.
    scores : object, optional
        The scores as they were passed. If they and `member` carry the same `ids` in different
        orders, membership is put in the order of the scores.

    Returns
    -------
    ndarray of bool, shape (m,)
        True for members.

    Raises
    ------
    ArrayTypeError, ShapeError
        As for `vector`.
    LengthMismatchError
        If there is not one value for each score.
    MembershipError
        If a value is outside the allowed sets.
    """
    values = vector(member.member if isinstance(member, HasMember) else member, "member")
    check_length(values, examples, "member")
    ids, wanted = getattr(member, "ids", None), getattr(scores, "ids", None)
    if ids is not None and wanted is not None:
        values = _joined(values, np.asarray(ids), np.asarray(wanted))
    return _booleans(values, "member")


def check_successes(successes: ArrayInput) -> BoolArray:
    """Read which guesses were right as booleans.

    Parameters
    ----------
    successes : array-like, shape (m,)
        Booleans or {0, 1}, in visiting order.

    Returns
    -------
    ndarray of bool, shape (m,)
        True for right guesses.

    Raises
    ------
    ArrayTypeError, ShapeError
        As for `vector`.
    MembershipError
        If a value is outside the allowed sets.
    """
    return _booleans(vector(successes, "successes"), "successes")


def check_ids(ids: ArrayInput, member: BoolArray) -> None:
    """Check that every example has an id of its own.

    Parameters
    ----------
    ids : array-like, shape (m,)
        Numbers or strings.
    member : ndarray of bool, shape (m,)
        Membership of each example.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError
        As for `check_membership`.
    ConflictingIdsError
        If an id is both a member and a non-member.
    DuplicateIdsError
        If an id occurs twice.
    """
    values = vector(ids, "ids", kinds="biufSUOT")
    check_length(values, member.size, "ids")
    try:
        _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    except TypeError:
        message = "ids must be all numbers or all strings, got a mixture that cannot be compared"
        raise ArrayTypeError(message) from None
    if count.size == values.size:
        return
    included = np.bincount(group, weights=member)
    mixed = np.flatnonzero((included > 0) & (included < count))
    if mixed.size:
        message = (
            f"{mixed.size} ids are both members and non-members, the first being "
            f"{_occurrences(values, group, mixed[0])}; an example is either in the training set "
            "or not"
        )
        raise ConflictingIdsError(message)
    repeated = np.flatnonzero(count > 1)
    message = (
        f"{repeated.size} ids occur more than once, the first being "
        f"{_occurrences(values, group, repeated[0])}; guesses about the same example are not "
        "independent: keep one row of each"
    )
    raise DuplicateIdsError(message)


def check_length(values: NDArray[np.generic], examples: int, name: str) -> None:
    """Check that there is one value for each example.

    Parameters
    ----------
    values : ndarray
        One-dimensional.
    examples : int
        The number of scores.
    name : str
        What to call the values in the message.

    Raises
    ------
    LengthMismatchError
        If the numbers differ.
    """
    if values.size != examples:
        message = (
            f"{name} has {values.size} values and there are {examples} scores; both must "
            "describe the same examples in the same order"
        )
        raise LengthMismatchError(message)


def real(
    value: object,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
) -> float:
    """Check that an option is a real number within limits.

    Parameters
    ----------
    value : object
        The option.
    name : str
        What to call it in messages.
    above, least, below : float, optional
        The limits; only `least` is itself allowed.

    Returns
    -------
    float
        The option.

    Raises
    ------
    OptionTypeError
        If it is not a real number.
    OptionError
        If it is outside the limits or NaN.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        message = f"{name} must be a real number, got {value!r}"
        raise OptionTypeError(message)
    number = float(value)
    within = (
        not math.isnan(number)
        and (above is None or number > above)
        and (least is None or number >= least)
        and (below is None or number < below)
    )
    if not within:
        limits = {"above": above, "at least": least, "below": below}
        stated = " and ".join(f"{word} {x:g}" for word, x in limits.items() if x is not None)
        message = f"{name} must be {stated or 'a number'}, got {number:g}"
        raise OptionError(message)
    return number


def integer(value: object, name: str, *, least: int, most: int | None = None) -> int:
    """Check that an option is an integer within limits.

    Parameters
    ----------
    value : object
        The option.
    name : str
        What to call it in messages.
    least, most : int
        The limits, both included.

    Returns
    -------
    int
        The option.

    Raises
    ------
    OptionTypeError
        If it is not an integer.
    OptionError
        If it is outside the limits.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        message = f"{name} must be an integer, got {value!r}"
        raise OptionTypeError(message)
    number = int(value)
    if number < least or (most is not None and number > most):
        limits = f"at least {least}" + (f" and at most {most}" if most is not None else "")
        message = f"{name} must be {limits}, got {number}"
        raise OptionError(message)
    return number


def choice(value: object, name: str, allowed: object) -> None:
    """Check that an option is one of the values of a `Literal`.

    Parameters
    ----------
    value : object
        The option.
    name : str
        What to call it in the message.
    allowed : Literal
        The allowed values.

    Raises
    ------
    OptionError
        If it is none of them.
    """
    values = get_args(allowed)
    if not isinstance(value, str) or value not in values:
        listed = ", ".join(map(repr, values))
        message = f"{name} must be one of {listed}, got {value!r}"
        raise OptionError(message)


def instance(value: object, name: str, types: type[T] | Sequence[type[T]]) -> None:
    """Check that an option is an object of one of some types.

    Parameters
    ----------
    value : object
        The option.
    name : str
        What to call it in the message.
    types : type or sequence of types
        The allowed types.

    Raises
    ------
    OptionTypeError
        If it is an object of none of them.
    """
    classes = (types,) if isinstance(types, type) else tuple(types)
    if not isinstance(value, classes):
        listed = ", ".join(f"{one.__name__}(...)" for one in classes)
        hint = ": call it" if isinstance(value, type) else ""
        message = f"{name} must be one of {listed}, got {value!r}{hint}"
        raise OptionTypeError(message)


def complement(confidence: float) -> float:
    """Check a confidence and return one minus it, exact in decimals.

    Parameters
    ----------
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        The probability of error: 0.05 for 0.95, where ``1 - 0.95`` is a little more.

    Raises
    ------
    OptionTypeError
        If it is not a real number.
    OptionError
        If it is not strictly between 0 and 1.
    """
    return float(1 - Decimal(repr(real(confidence, "confidence", above=0, below=1))))


def _read(values: ArrayInput, name: str, kinds: str) -> NDArray[np.generic]:
    if np.ma.is_masked(values):
        message = f"{name} has masked entries; drop them first"
        raise ArrayTypeError(message)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        hint = "; pass .detach().float().cpu()" if hasattr(values, "detach") else ""
        message = f"{name} cannot be read as an array: {error}{hint}"
        raise ArrayTypeError(message) from error
    if array.dtype.kind not in kinds:
        message = (
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it first, for "
            f"example with numpy.asarray({name}, dtype=float)"
        )
        raise ArrayTypeError(message)
    return array


def _joined(
    values: NDArray[np.generic], ids: NDArray[Any], wanted: NDArray[Any]
) -> NDArray[np.generic]:
    """Put values in the order of the wanted ids; other ids mean that the order is that already."""
    if np.array_equal(ids, wanted):
        return values
    here, there = np.argsort(ids), np.argsort(wanted)
    if not np.array_equal(ids[here], wanted[there]):
        return values
    joined = np.empty_like(values)
    joined[there] = values[here]
    return joined


def _booleans(values: NDArray[np.generic], name: str) -> BoolArray:
    """Read {0, 1} or {-1, +1} as booleans."""
    if values.dtype == np.bool_:
        return cast("BoolArray", values)
    ones = values == 1
    zero = -1 if (values == -1).any() else 0
    strange = np.flatnonzero(~(ones | (values == zero)))
    if strange.size:
        row = int(strange[0])
        seen = f", where other rows hold {zero}" if zero else ""
        message = (
            f"{name} must be boolean, {{0, 1}} or {{-1, +1}} throughout, got "
            f"{values[row].item()!r} at row {row}{seen} ({strange.size} such rows)"
        )
        raise MembershipError(message)
    return cast("BoolArray", ones)


def _rows(rows: NDArray[np.intp]) -> str:
    listed = ", ".join(map(str, rows[:_LISTED]))
    return ("row " if rows.size == 1 else "rows ") + listed + (", …" if rows.size > _LISTED else "")


def _occurrences(values: NDArray[np.generic], group: NDArray[np.intp], which: np.intp) -> str:
    rows = np.flatnonzero(group == which)
    return f"{values[rows[0]]!s} at {_rows(rows)}"
