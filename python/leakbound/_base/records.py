"""Results to JSON and back: frozen dataclasses of numbers, words, arrays and lazy values.

Every object carries its type; infinities are "inf" and "-inf"; NaN (a value that does not exist)
is null. A value that is computed when first asked for is stored under its public name. A field that
`unstored` makes is not part of the stored form: it is empty in what is read back. Words that were
others in earlier versions are read by the metadata "former" of their field, a dict from old to new.
"""

import json
import math
import os
from collections.abc import Callable
from dataclasses import Field, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import (
    Any,
    Generic,
    Literal,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from leakbound._base.files import write_text
from leakbound._base.types import JsonValue
from leakbound.errors import LeakboundError, ResultFormatError

__all__ = ["Lazy", "Record", "decode", "encode", "unstored"]

T = TypeVar("T")

SCHEMA = 1
"""Number of the JSON layout, raised whenever a field changes its name or meaning."""
_DEEPEST = 40
"""Levels of nesting: those of a result are about ten."""
_LARGEST = 1 << 28
"""Bytes of the largest file that is read."""
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class Lazy(Generic[T]):
    """A value that is computed when first asked for, and kept.

    Parameters
    ----------
    compute : callable
        Returns the value.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute

    @cached_property
    def value(self) -> T:
        """The value."""
        return self._compute()


def unstored() -> Any:
    """Return a dataclass field for a tuple that is too large for JSON.

    Returns
    -------
    dataclasses.Field
        Empty by default, and in what is read back; pickled, but not compared.
    """
    return field(default=(), repr=False, metadata={"stored": False})


def _stored(kind: Any) -> list[Field[Any]]:
    return [one for one in fields(kind) if one.metadata.get("stored", True)]


class Record:
    """Something that can be written as JSON, read back, compared and pickled by value."""

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts.

        Returns
        -------
        dict
            With the layout's number under "schema"; inf is "inf", NaN is None.
        """
        return {"schema": SCHEMA, **cast("dict[str, JsonValue]", encode(self))}

    @classmethod
    def from_dict(cls, data: dict[str, JsonValue]) -> Self:
        """Rebuild from what `to_dict` returned.

        Parameters
        ----------
        data : dict
            The stored form.

        Returns
        -------
        Self
            A result equal to the one stored.

        Raises
        ------
        ResultFormatError
            If `data` is not such a form.
        """
        given: object = data
        if not isinstance(given, dict) or given.get("schema") != SCHEMA:
            message = (
                f"not a {cls.__name__} of this version of leakbound: its schema must be {SCHEMA}"
            )
            raise ResultFormatError(message)
        return cast("Self", decode(cls, data, cls.__name__))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the result as JSON, and write it to `path` if given.

        Parameters
        ----------
        path : str or os.PathLike, optional
            File to write, all of it or nothing.

        Returns
        -------
        str
            The JSON text.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)
        if path is not None:
            write_text(path, text + "\n")
        return text

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Self:
        """Read a result from JSON.

        Parameters
        ----------
        source : str or os.PathLike
            The text itself (it starts with a brace) or the path of a file.

        Returns
        -------
        Self
            A result equal to the one written.

        Raises
        ------
        ResultFormatError
            If the text is not the JSON of such a result.
        OSError
            If the file cannot be read.
        """
        return cls.from_dict(parse(_text(source)))

    def _flaw(self) -> str:
        """Return which parts of a result that was read cannot go together; empty if all do."""
        return ""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        stored = _stored(self)
        rest = {f.name: getattr(self, f.name) for f in fields(cast("Any", self)) if f not in stored}
        return type(self).from_dict, (self.to_dict(),), rest


def parse(text: str) -> Any:
    """Read JSON strictly: no NaN, no name twice, no number beyond a double, no deep nesting.

    Parameters
    ----------
    text : str
        The JSON text.

    Returns
    -------
    JSON value
        What it holds.

    Raises
    ------
    ResultFormatError
        If it is not such JSON.
    """
    try:
        data = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once
        )
        if _depth(data) <= _DEEPEST:
            return data
        message = f"it is nested more than {_DEEPEST} deep"
    except ResultFormatError:
        raise
    except (ValueError, RecursionError) as error:  # ValueError: also integers of 5,000 digits
        message = " ".join(str(error).split())
    message = f"not JSON of this package: {message}"
    raise ResultFormatError(message)


def _text(source: str | os.PathLike[str]) -> str:
    """Return the text itself, or that of a file."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        with Path(source).open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode("utf-8")
    except (TypeError, ValueError) as error:  # no UTF-8, or a name with a NUL byte
        message = f"neither JSON, which starts with a brace, nor a file of it: {error}"
        raise ResultFormatError(message) from error
    if len(content) > _LARGEST:
        message = f"{source!r:.60} has more than {_LARGEST:,} bytes, which no result has"
        raise ResultFormatError(message)
    return text


def _refuse_constant(name: str) -> None:
    message = f"{name} is not JSON: infinities are stored as text, and NaN as null"
    raise ResultFormatError(message)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        message = f"{digits:.40} is beyond a double"
        raise ResultFormatError(message)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        message = f"{twice!r:.60} occurs twice in one object"
        raise ResultFormatError(message)
    return content


def _depth(data: Any) -> int:
    """Return how deep lists and objects are nested."""
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return 1 + max(map(_depth, inner), default=0)
    return 0


def encode(value: object) -> JsonValue:
    """Turn a value into what JSON can hold.

    Parameters
    ----------
    value : object
        A dataclass, array, number, string, None, or lists, tuples and dicts of them.

    Returns
    -------
    None, bool, int, float, str, list or dict
        Its JSON form.
    """
    if isinstance(value, Lazy):
        return encode(value.value)
    if isinstance(value, np.ndarray | tuple | list):
        items = value.tolist() if isinstance(value, np.ndarray) else value
        return [encode(item) for item in items]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name.lstrip("_"): encode(getattr(value, f.name)) for f in _stored(value)}
        return {"type": type(value).__name__, **content}
    if isinstance(value, float):
        return _encode_float(float(value))
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return cast("JsonValue", value)


def decode(kind: Any, data: JsonValue, where: str = "result") -> Any:
    """Rebuild a value of a known type from its JSON form.

    Parameters
    ----------
    kind : type
        What to build: a type hint made of the types that `encode` takes.
    data : JSON value
        What `encode` returned.
    where : str
        Name of the value in messages.

    Returns
    -------
    object
        A value of type `kind`.

    Raises
    ------
    ResultFormatError
        If `data` is not the form of such a value.
    """
    if kind is Any:
        return data
    if is_dataclass(kind):
        return _decode_dataclass(kind, data, where)
    if kind is float:
        return _decode_float(data, where)
    if kind in {bool, int, str}:
        return _expect(kind, data, where)
    return _decode_generic(get_origin(kind), get_args(kind), data, where)


class _Forgotten:
    """Stands for a function that was stored by its name."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, *_: object, **__: object) -> Any:
        message = f"the function {self.__qualname__} was not stored, only its name: make it anew"
        raise ResultFormatError(message)


def _decode_generic(origin: Any, arguments: tuple[Any, ...], data: JsonValue, where: str) -> Any:
    if origin is Lazy:
        value = decode(arguments[0], data, where)
        return Lazy(lambda: value)
    if origin is np.ndarray:
        return _decode_array(get_args(arguments[1])[0], data, where)
    if origin is tuple:
        items = _expect(list, data, where)
        return tuple(decode(arguments[0], x, f"{where}[{i}]") for i, x in enumerate(items))
    if origin is dict:
        content = _expect(dict, data, where)
        return {key: decode(arguments[1], x, f"{where}.{key}") for key, x in content.items()}
    if origin is Literal:
        return _decode_literal(arguments, data, where)
    if origin is Callable:
        return _Forgotten(_expect(str, data, where))
    if data is None and type(None) in arguments:
        return None
    kinds = [kind for kind in arguments if kind is not type(None)]
    return decode(kinds[0] if len(kinds) == 1 else _named(kinds, data, where), data, where)


def _named(kinds: list[Any], data: JsonValue, where: str) -> Any:
    """Return the dataclass, of several, whose name the stored form carries."""
    names = {kind.__name__: kind for kind in kinds}
    stored = _expect(dict, data, where).get("type")
    return names[_decode_literal(tuple(names), stored, f"{where}.type")]


def _decode_dataclass(kind: Any, data: JsonValue, where: str) -> Any:
    content = _expect(dict, data, where)
    _decode_literal((kind.__name__,), content.get("type"), f"{where}.type")
    names = {f.name: f.name.lstrip("_") for f in _stored(kind)}
    missing = sorted(set(names.values()) - set(content))
    if missing:
        message = f"{where} lacks {', '.join(missing)}"
        raise ResultFormatError(message)
    hints = get_type_hints(kind)
    former = {f.name: f.metadata["former"] for f in _stored(kind) if "former" in f.metadata}
    values = {
        name: decode(hints[name], _today(content[public], former.get(name)), f"{where}.{public}")
        for name, public in names.items()
    }
    try:
        made = kind(**values)
        flaw = made._flaw() if isinstance(made, Record) else ""  # noqa: SLF001 (of this module)
    except ResultFormatError:
        raise
    except LeakboundError as error:
        flaw = str(error)
    if flaw:
        message = f"{where} cannot be: {flaw}"
        raise ResultFormatError(message)
    return made


def _today(data: JsonValue, former: dict[str, str] | None) -> JsonValue:
    return former.get(data, data) if former and isinstance(data, str) else data


def _decode_array(dtype: Any, data: JsonValue, where: str) -> NDArray[np.generic]:
    items = _expect(list, data, where)
    kind = float if dtype is np.float64 else int
    values = [
        math.nan if item is None and kind is float else decode(kind, item, f"{where}[{i}]")
        for i, item in enumerate(items)
    ]
    try:
        return np.array(values, dtype=dtype)
    except OverflowError:
        message = f"{where} has an integer beyond {np.dtype(dtype)}"
        raise ResultFormatError(message) from None


def _decode_literal(allowed: tuple[Any, ...], data: JsonValue, where: str) -> Any:
    if data not in allowed:
        listed = " or ".join(map(repr, allowed))
        message = f"{where} must be {listed}, got {data!r:.60}"
        raise ResultFormatError(message)
    return data


def _decode_float(data: JsonValue, where: str) -> float:
    if isinstance(data, str) and data in _INFINITIES:
        return _INFINITIES[data]
    if isinstance(data, bool) or not isinstance(data, int | float):
        message = f"{where} must be a number, got {data!r:.60}"
        raise ResultFormatError(message)
    try:
        return float(data)
    except OverflowError:
        message = f"{where} must be a number that a double holds"
        raise ResultFormatError(message) from None


def _encode_float(value: float) -> JsonValue:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _expect(kind: type[T], data: JsonValue, where: str) -> T:
    if type(data) is not kind:
        message = f"{where} must be of type {kind.__name__}, got {data!r:.60}"
        raise ResultFormatError(message)
    return data
