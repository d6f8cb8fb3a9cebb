"""Results to JSON and back: frozen dataclasses of numbers, words, arrays and lazy values.

Every object carries its type; infinities are "inf" and "-inf"; NaN (a value that does not exist)
is null. The text is read and written by `json`, its content checked by pydantic, which is imported
when something is read: its parser keeps the last of two values of one name and reads 1e999 as
infinite, and its writer spells floats with other digits than Python does.
"""

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    Never,
    NotRequired,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from leakbound._base.files import write_text
from leakbound._base.types import InWords, JsonObject, JsonValue, Named, PathInput
from leakbound.errors import FormatError, LeakboundError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

SCHEMA: Literal[1] = 1
"""Number of the JSON layout, raised whenever a field changes its name or meaning."""
# Levels of nesting: those of a result are about ten.
_DEEPEST = 40
# Of integers with their sign: seeds, the longest that there are, have 128.
_BITS = 129
# Bytes of the largest file that is read: results of a million examples have a third of one.
_LARGEST = 1 << 24
IF_ANY = {"if_any": True}
"""Metadata of a dataclass field, None or a word, whose default is left out of the stored form."""


@dataclass(frozen=True, eq=False)
class Lazy(Generic[T]):
    """A value that is computed when first asked for, and kept."""

    compute: Callable[[], T]

    @cached_property
    def value(self) -> T:
        """The value."""
        found = self.compute()
        # What it was computed from may be large, and is not needed again
        object.__setattr__(self, "compute", lambda: found)
        return found


def unstored() -> tuple[Never, ...]:
    """Return a dataclass field for a tuple too large for JSON: pickled, but not compared."""
    return field(default=(), repr=False, metadata={"stored": False})


def stored_fields(kind: "DataclassInstance | type[DataclassInstance]") -> list[Field[object]]:
    """Return the fields of a dataclass that are part of its stored form."""
    return [one for one in fields(kind) if one.metadata.get("stored", True)]


class Record:
    """Something that can be written as JSON, read back, compared and pickled by value."""

    def to_dict(self) -> JsonObject:
        """Return everything as numbers, strings, lists and dicts; inf is "inf", NaN is None."""
        content: Any = encode(self)
        return {"schema": SCHEMA, **content}

    @classmethod
    def from_dict(cls, data: JsonObject) -> Self:
        """Rebuild from what `to_dict` returned.

        FormatError says which field is missing, unknown, of another type, or contradicts another.
        """
        table: object = data
        schema = None
        if isinstance(table, dict):
            schema = table.get("schema")
        if type(schema) is not int or schema != SCHEMA:  # True is 1 to Python
            raise FormatError(
                f"not a {cls.__name__} of this version of leakbound: schema must be {SCHEMA}"
            )
        kind = data.get("type")
        if isinstance(kind, str) and kind != cls.__name__:
            raise FormatError(
                f"its type is {kind:.60}, not {cls.__name__}: leakbound.load reads any result"
            )
        record: Self = _read(cls, {name: part for name, part in data.items() if name != "schema"})
        return record

    def to_json(self, path: PathInput | None = None) -> str:
        """Return the result as JSON, and write it to the file `path`, all of it, if given."""
        text = json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)
        if path is not None:
            write_text(path, text + "\n")
        return text

    @classmethod
    def from_json(cls, source: PathInput) -> Self:
        """Read a result from JSON: text that starts with a brace, or the path of a file."""
        return cls.from_dict(parsed(text_of(source)))

    def _flaw(self) -> str:
        """Return which parts of a result that was read cannot go together; empty if all do."""
        return ""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[object, ...]:
        record: Any = self
        stored = stored_fields(record)
        rest = {one.name: getattr(self, one.name) for one in fields(record) if one not in stored}
        return type(self).from_dict, (self.to_dict(),), rest


def encode(value: Any) -> JsonValue:
    """Return the JSON form of a dataclass, array, number or word, or of what is made of them."""
    if isinstance(value, Lazy):
        return encode(value.value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        content: JsonObject = {"type": type(value).__name__}
        for one in stored_fields(value):
            part = getattr(value, one.name)
            if "if_any" not in one.metadata or not _is_default(part, one.default):
                # A lazy value is in a private field, and is stored under its public name.
                content[one.name.lstrip("_")] = encode(part)
        return content
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return _not_finite(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    plain: JsonValue = value
    return plain


def _is_default(part: object, default: object) -> bool:
    return part is default or (isinstance(part, str) and part == default)


def _not_finite(value: float) -> str | None:
    if math.isnan(value):
        return None
    if value > 0:
        return "inf"
    return "-inf"


def parsed(text: str) -> Any:
    """Read JSON strictly: no NaN, no name twice, no number beyond a double, no deep nesting."""
    try:
        data = json.loads(
            text,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_table,
        )
        if _depth(data) <= _DEEPEST:
            return data
        message = f"it is nested more than {_DEEPEST} deep"
    except (ValueError, RecursionError) as error:  # ValueError: also integers of 5,000 digits
        message = " ".join(str(error).split())
    raise FormatError(f"not JSON of this package: {message}")


def text_of(source: str | bytes | os.PathLike[str], most: int = _LARGEST) -> str:
    """Return text that begins with a brace, bytes, or a file of at most so many bytes, as text."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        if isinstance(source, bytes):
            return source.decode("utf-8")
        with Path(source).open("rb") as file:
            content = file.read(most + 1)
        if len(content) <= most:
            return content.decode("utf-8")
        message = f"it has more than {most:,} bytes"
    except (TypeError, ValueError) as error:  # no UTF-8, or a name with a NUL byte
        message = str(error)
    raise FormatError(
        f"{source!r:.60} is neither JSON that begins with a brace nor a text file: {message}"
    )


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(
            f"{digits:.40} is not JSON, or too large for a double: write infinity as text and NaN "
            "as null"
        )
    return value


def _whole(digits: str) -> int:
    value = int(digits)
    if value.bit_length() >= _BITS:
        raise ValueError(
            f"an integer of {value.bit_length()} bits is more than the {_BITS - 1} allowed"
        )
    return value


def _table(pairs: list[tuple[str, object]]) -> Named:
    twice = repeated(name for name, _ in pairs)
    if twice is not None:
        raise ValueError(f"{twice!r:.60} occurs twice in one object")
    return dict(pairs)


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of some names that one before it has, if any."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _depth(data: object) -> int:
    """Return how deep lists and objects are nested."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        return 1 + max(map(_depth, data), default=0)
    return 0


def _read(kind: Any, data: Any) -> Any:
    """Build a dataclass from its stored form; FormatError says which field is wrong."""
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, [kind.__name__, *first["loc"]]))
        message = f"{place}: {first['msg'].removeprefix('Value error, ')}"
    except UnicodeEncodeError:  # of a name, where pydantic looks for it
        message = f"{kind.__name__} has names or text that UTF-8 cannot encode"
    raise FormatError(message)


@cache
def adapter(kind: object) -> Any:
    """Return pydantic's reader of the stored form of a dataclass."""
    from pydantic import TypeAdapter

    return TypeAdapter(_object(kind))


@cache
def _object(kind: Any) -> Any:
    """Return the stored form of a dataclass: an object with its type, and nothing unknown."""
    from pydantic import AfterValidator, ConfigDict
    from typing_extensions import TypedDict

    hints = get_type_hints(kind)
    content: Named = {"type": Literal[kind.__name__]}
    for one in stored_fields(kind):
        form = _form(hints[one.name])
        if "if_any" in one.metadata:
            form = NotRequired[form]
        content[one.name.lstrip("_")] = form
    make: Any = TypedDict
    fields = make(kind.__name__, content)
    fields.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")
    return Annotated[fields, AfterValidator(partial(_built, kind))]


def _form(hint: object) -> Any:
    """Return the stored form, for pydantic, of a type that `encode` takes."""
    from pydantic import AfterValidator, Discriminator

    if isinstance(hint, InWords):
        return _form(hint.kind)
    origin = get_origin(hint)
    inner = get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _object(hint)
    if hint is float:
        return _number()
    if hint is int:
        return _integer(_BITS)
    if origin is Lazy:
        return Annotated[_form(inner[0]), AfterValidator(lambda value: Lazy(lambda: value))]
    if origin is np.ndarray:
        dtype = get_args(inner[1])[0]
        items = _integer(64)
        if dtype is np.float64:
            items = _number() | None
        return Annotated[GenericAlias(list, items), AfterValidator(partial(np.array, dtype=dtype))]
    if origin is tuple:
        return Annotated[GenericAlias(list, _form(inner[0])), AfterValidator(tuple)]
    if origin is dict:
        return GenericAlias(dict, (str, _form(inner[1])))
    if origin is Callable:
        return Annotated[str, AfterValidator(_named)]
    if origin in {Union, UnionType}:
        forms = [_form(one) for one in inner if one is not NoneType]
        form = forms[0]
        if len(forms) > 1:
            form = Annotated[Union[*forms], Discriminator("type")]
        if NoneType in inner:
            return form | None
        return form
    return hint  # bool, int, str, one of a few words, or anything at all


def _integer(bits: int) -> object:
    from pydantic import Field as Limits

    beyond = 1 << bits - 1
    return Annotated[int, Limits(ge=-beyond, lt=beyond)]


@cache
def _number() -> Any:
    """Return the stored form of a float: a finite number, or the name of an infinite one."""
    from pydantic import FiniteFloat, Strict, WithJsonSchema, WrapValidator
    from typing_extensions import TypeAliasType

    def read(data: object, finite: Callable[[Any], float]) -> float:
        if data in ("inf", "-inf"):
            return float(data)
        return finite(data)

    schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
    form = Annotated[FiniteFloat, Strict(), WrapValidator(read), WithJsonSchema(schema)]
    return TypeAliasType("Number", form)


def _built(kind: "type[DataclassInstance]", content: Named) -> object:
    """Build a dataclass from its fields, and refuse those that cannot go together."""
    try:
        stored = ((one.name, one.name.lstrip("_")) for one in stored_fields(kind))
        record = kind(**{name: content[public] for name, public in stored if public in content})
        flaw = getattr(record, "_flaw", str)()
    except LeakboundError as error:
        flaw = str(error)
    if flaw:
        raise ValueError(flaw)
    return record


def _named(name: str) -> Callable[..., Any]:
    """Return what stands for a function that was stored by its name."""

    def function(*_: object, **__: object) -> Any:
        raise FormatError(f"only the name of the function {name} was stored: define it again")

    function.__qualname__ = name
    return function
