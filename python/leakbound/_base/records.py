"""Results to JSON and back: frozen dataclasses of numbers, words, arrays and lazy values.

Every object carries its type; infinities are "inf" and "-inf"; NaN (a value that does not exist)
is null. The text is read and written by `json`, its content checked by pydantic, which is imported
when something is read: its parser keeps the last of two values of one name and reads 1e999 as
infinite, and its writer spells floats with other digits than Python does.

A digest of JSON is of its content, as there is one spelling: names sorted by code point, no white
space, ASCII with escapes in lower case, integers in decimal, other numbers by the fewest digits
that give the double again, as Python's `repr` spells them.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import (
    IO,
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
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from leakbound._base.files import write_text
from leakbound._base.types import InWords, JsonObject, JsonValue, Named, PathInput
from leakbound.errors import FormatError, InputTypeError, LeakboundError, OptionError

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
        content_of_json: Any = data
        if not isinstance(content_of_json, dict):
            content_of_json = {}
        stored_content = dict(content_of_json)
        schema = stored_content.pop("schema", None)
        if type(schema) is not int or schema != SCHEMA:  # True is 1 to Python
            raise FormatError(
                f"not a {cls.__name__} of this version of leakbound: schema must be {SCHEMA}"
            )
        stored_type = stored_content.get("type")
        if isinstance(stored_type, str) and stored_type != cls.__name__:
            raise FormatError(
                f"its type is {stored_type:.60}, not {cls.__name__}: leakbound.load reads any "
                "result"
            )
        record: Self = _record_of_content(cls, stored_content)
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
        fields_of_json = stored_fields(record)
        other_values = dict[str, object]()
        for field_of_record in fields(record):
            if field_of_record not in fields_of_json:
                other_values[field_of_record.name] = getattr(self, field_of_record.name)
        return type(self).from_dict, (self.to_dict(),), other_values


def encode(value: Any) -> JsonValue:
    """Return the JSON form of a dataclass, array, number or word, or of what is made of them."""
    if isinstance(value, Lazy):
        return encode(value.value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [encode(element) for element in value]
    if isinstance(value, dict):
        return {key: encode(element) for key, element in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        json_object: JsonObject = {"type": type(value).__name__}
        for stored_field in stored_fields(value):
            field_value = getattr(value, stored_field.name)
            if not _is_left_out(field_value, stored_field):
                # A lazy value is in a private field, and is stored under its public name.
                json_object[stored_field.name.lstrip("_")] = encode(field_value)
        return json_object
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return _json_of_not_finite(value)
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    json_value: JsonValue = value
    return json_value


def _is_left_out(field_value: object, stored_field: Field[object]) -> bool:
    """Return whether a field has its default, which is not stored."""
    if "if_any" not in stored_field.metadata:
        return False
    default = stored_field.default
    return field_value is default or (isinstance(field_value, str) and field_value == default)


def _public_name(stored_field: Field[object]) -> str:
    """Return the name in JSON: a lazy value is in a private field, and has its public name."""
    return stored_field.name.lstrip("_")


def _json_of_not_finite(value: float) -> str | None:
    """Return the name of an infinite number, or None for NaN."""
    if math.isnan(value):
        return None
    return str(float(value))


def parsed(text: str) -> Any:
    """Read JSON strictly: no NaN, no name twice, no number beyond a double, no deep nesting."""
    try:
        content_of_json = json.loads(
            text,
            parse_constant=_finite_float,
            parse_float=_finite_float,
            parse_int=_integer_of_few_bits,
            object_pairs_hook=_object_without_repetition,
        )
        if _depth_of_json(content_of_json) <= _DEEPEST:
            return content_of_json
        problem = f"it is nested more than {_DEEPEST} deep"
    except (ValueError, RecursionError) as error:  # ValueError: also integers of 5,000 digits
        problem = " ".join(str(error).split())
    raise FormatError(f"not JSON of this package: {problem}")


def text_of(source: str | bytes | os.PathLike[str], most: int = _LARGEST) -> str:
    """Return text that begins with a brace, bytes, or a file of at most so many bytes, as text."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        if isinstance(source, bytes):
            return source.decode("utf-8")
        with Path(source).open("rb") as file:
            bytes_of_file = file.read(most + 1)
        if len(bytes_of_file) <= most:
            return bytes_of_file.decode("utf-8")
        problem = f"it has more than {most:,} bytes"
    except (TypeError, ValueError) as error:  # no UTF-8, or a name with a NUL byte
        problem = str(error)
    raise FormatError(
        f"{source!r:.60} is neither JSON that begins with a brace nor a text file: {problem}"
    )


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(
            f"{digits:.40} is not JSON, or too large for a double: write infinity as text and NaN "
            "as null"
        )
    return value


def _integer_of_few_bits(digits: str) -> int:
    value = int(digits)
    if value.bit_length() >= _BITS:
        raise ValueError(
            f"an integer of {value.bit_length()} bits is more than the {_BITS - 1} allowed"
        )
    return value


def _object_without_repetition(pairs: list[tuple[str, object]]) -> Named:
    repeated_name = repeated(name for name, _ in pairs)
    if repeated_name is not None:
        raise ValueError(f"{repeated_name!r:.60} occurs twice in one object")
    return dict(pairs)


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of some names that one before it has, if any."""
    earlier_names = set[str]()
    for name in names:
        if name in earlier_names:
            return name
        earlier_names.add(name)
    return None


def _depth_of_json(data: object) -> int:
    """Return how deep lists and objects are nested."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        return 1 + max(map(_depth_of_json, data), default=0)
    return 0


def _record_of_content(kind: Any, content: Named) -> Any:
    """Build a dataclass from its stored form; FormatError says which field is wrong."""
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_python(content)
    except ValidationError as error:
        first_error = error.errors(include_url=False)[0]
        place_of_error = ".".join(map(str, [kind.__name__, *first_error["loc"]]))
        message = f"{place_of_error}: {first_error['msg'].removeprefix('Value error, ')}"
    except UnicodeEncodeError:  # of a name, where pydantic looks for it
        message = f"{kind.__name__} has names or text that UTF-8 cannot encode"
    raise FormatError(message)


@cache
def adapter(kind: object) -> Any:
    """Return pydantic's reader of the stored form of a dataclass."""
    from pydantic import TypeAdapter

    return TypeAdapter(_json_form_of_dataclass(kind))


@cache
def _json_form_of_dataclass(kind: Any) -> Any:
    """Return the stored form of a dataclass: an object with its type, and nothing unknown."""
    from pydantic import AfterValidator, ConfigDict
    from typing_extensions import TypedDict

    type_hints = get_type_hints(kind)
    json_forms: Named = {"type": Literal[kind.__name__]}
    for stored_field in stored_fields(kind):
        json_form = _json_form(type_hints[stored_field.name])
        if "if_any" in stored_field.metadata:
            json_form = NotRequired[json_form]
        json_forms[_public_name(stored_field)] = json_form
    make_typed_dict: Any = TypedDict
    typed_dict = make_typed_dict(kind.__name__, json_forms)
    typed_dict.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")
    return Annotated[typed_dict, AfterValidator(partial(_record_of_fields, kind))]


def _json_form(hint: object) -> Any:
    """Return the stored form, for pydantic, of a type that `encode` takes."""
    from pydantic import AfterValidator, Discriminator

    if isinstance(hint, InWords):
        return _json_form(hint.kind)
    if isinstance(hint, type) and is_dataclass(hint):
        return _json_form_of_dataclass(hint)
    if hint is float:
        return _json_form_of_float()
    if hint is int:
        return _json_form_of_integer(_BITS)
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is Lazy:
        as_lazy_value = AfterValidator(lambda value: Lazy(lambda: value))
        return Annotated[_json_form(arguments[0]), as_lazy_value]
    if origin is np.ndarray:
        (element_type,) = get_args(arguments[1])
        json_form_of_element = _json_form_of_integer(bits=64)
        if element_type is np.float64:
            json_form_of_element = _json_form_of_float() | None
        as_array = AfterValidator(partial(np.array, dtype=element_type))
        return Annotated[GenericAlias(list, json_form_of_element), as_array]
    if origin is tuple:
        return Annotated[GenericAlias(list, _json_form(arguments[0])), AfterValidator(tuple)]
    if origin is dict:
        return GenericAlias(dict, (str, _json_form(arguments[1])))
    if origin is Callable:
        return Annotated[str, AfterValidator(_function_stored_by_name)]
    if origin in {Union, UnionType}:
        json_forms = [_json_form(argument) for argument in arguments if argument is not NoneType]
        json_form = json_forms[0]
        if len(json_forms) > 1:
            json_form = Annotated[Union[*json_forms], Discriminator("type")]
        if NoneType in arguments:
            return json_form | None
        return json_form
    return hint  # bool, int, str, one of a few words, or anything at all


def _json_form_of_integer(bits: int) -> object:
    from pydantic import Field as Limits

    integer_beyond = 1 << bits - 1
    return Annotated[int, Limits(ge=-integer_beyond, lt=integer_beyond)]


@cache
def _json_form_of_float() -> Any:
    """Return the stored form of a float: a finite number, or the name of an infinite one."""
    from pydantic import FiniteFloat, Strict, WithJsonSchema, WrapValidator
    from typing_extensions import TypeAliasType

    def float_of_json(json_value: object, finite_float: Callable[[Any], float]) -> float:
        if json_value in ("inf", "-inf"):
            return float(json_value)
        return finite_float(json_value)

    json_schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf"]}]}
    json_form = Annotated[
        FiniteFloat, Strict(), WrapValidator(float_of_json), WithJsonSchema(json_schema)
    ]
    return TypeAliasType("Number", json_form)


def _record_of_fields(kind: "type[DataclassInstance]", content: Named) -> object:
    """Build a dataclass from its fields, and refuse those that cannot go together."""
    field_values = dict[str, Any]()
    for stored_field in stored_fields(kind):
        public_name = _public_name(stored_field)
        if public_name in content:
            field_values[stored_field.name] = content[public_name]
    try:
        record = kind(**field_values)
        flaw = getattr(record, "_flaw", str)()
    except LeakboundError as error:
        flaw = str(error)
    if flaw:
        raise ValueError(flaw)
    return record


def _function_stored_by_name(name: str) -> Callable[..., Any]:
    """Return what stands for a function that was stored by its name."""

    def refuse_call(*_: object, **__: object) -> Any:
        raise FormatError(f"only the name of the function {name} was stored: define it again")

    refuse_call.__qualname__ = name
    return refuse_call


# Of the longest integer, which is a seed from the system's entropy.
_MOST_BITS = 128
# Levels of nesting: a protocol has two or three.
_MOST_LEVELS = 30


def canonical_json(value: JsonValue) -> bytes:
    """Return the only spelling of a value as JSON."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii")


# Types of JSON, without those derived from them
_JSON_TYPES = (NoneType, bool, int, float, str)


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def is_digest(text: object) -> bool:
    """Return whether this is a SHA-256 in 64 hexadecimal digits of lower case."""
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def digest(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file from here to its end, read block by block."""
    return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()


def plain(value: object, name: str, depth: int = 0) -> JsonValue:
    """Check that a value is made of text, finite numbers, booleans, lists and tables; copy it."""
    if depth > _MOST_LEVELS:
        option, _, _ = name.partition(".")
        raise OptionError(f"{option} is nested more than {_MOST_LEVELS} deep")
    if isinstance(value, dict):
        plain_table: JsonObject = {}
        for key in value:
            if not isinstance(key, str):
                raise InputTypeError(f"{name} has the name {key!r:.60}, which is not text")
        for key, element in value.items():
            plain(key, name)
            plain_table[key] = plain(element, name=f"{name}.{key:.60}", depth=depth + 1)
        return plain_table
    if isinstance(value, list | tuple):
        plain_elements: list[JsonValue] = []
        for position, element in enumerate(value):
            plain_elements.append(plain(element, name=f"{name}[{position}]", depth=depth + 1))
        return plain_elements
    if not isinstance(value, _JSON_TYPES) or type(value) not in _JSON_TYPES:
        raise InputTypeError(
            f"{name} is of type {type(value).__name__}: give text, a number, true or false, a "
            "list or a table (a date goes as text)"
        )
    _check_json_value(value, name)
    return value


def _check_json_value(value: object, name: str) -> None:
    """Refuse numbers and text that JSON cannot have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f"{name} is {value}: a protocol can only have finite numbers")
    if type(value) is int and value.bit_length() > _MOST_BITS:
        raise OptionError(
            f"{name} is an integer of {value.bit_length()} bits; at most {_MOST_BITS} are allowed"
        )
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise OptionError(f"{name} has text that UTF-8 cannot encode: {value!r:.60}")


_PACKAGE = __name__.partition(".")[0]


def derived(kind: type[object], name: str, attribute: str = "__name__") -> Any:
    """Return the class that was derived from another, outside the package, by what files call it.

    That is the text in a class attribute, its own or inherited: its `__name__`, unless another
    attribute is given. It is found once the module that defines it was imported; the last
    definition counts. None if there is none.
    """
    last_defined_class = None
    for subclass in _subclasses_outside_package(kind):
        if getattr(subclass, attribute, None) == name:
            last_defined_class = subclass
    return last_defined_class


def _subclasses_outside_package(kind: type[object]) -> Iterator[type[object]]:
    """Yield classes that other packages derive from a class, or from those derived from it."""
    for subclass in kind.__subclasses__():
        package, _, _ = subclass.__module__.partition(".")
        if package != _PACKAGE:
            yield subclass
        yield from _subclasses_outside_package(subclass)
