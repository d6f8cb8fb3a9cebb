"""What the JSON of a dataclass must be, by pydantic: checked when read, published as a schema.

This module alone needs pydantic, and is imported when something is read.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import cache, partial
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    FiniteFloat,
    Strict,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
)
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypeAliasType, TypedDict

from leakbound._base.records import Lazy, stored_fields
from leakbound.errors import LeakboundError, ResultFormatError

T = TypeVar("T")

_MOST_BITS = 128
"""Of an integer, as in what is committed to."""
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def _infinite_or(data: Any, finite: Callable[[Any], float]) -> float:
    known = isinstance(data, str) and data in _INFINITIES
    return _INFINITIES[data] if known else finite(data)


Number = TypeAliasType(
    "Number",
    Annotated[
        FiniteFloat,
        Strict(),
        WrapValidator(_infinite_or),
        WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": [*_INFINITIES]}]}),
    ],
)


def read(kind: type[T], data: Any) -> T:
    """Build a dataclass from its stored form; ResultFormatError says which field is wrong."""
    try:
        return cast("T", _adapter(cast("Any", kind)).validate_python(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, [kind.__name__, *first["loc"]]))
        message = f"{place}: {first['msg']}"
    except UnicodeEncodeError:  # of a name, where pydantic looks for it
        message = f"{kind.__name__} has names or text that UTF-8 cannot hold"
    raise ResultFormatError(message)


class _Untitled(GenerateJsonSchema):
    """Schemas without titles of fields, which would repeat their names."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        return False


def json_schema(kinds: Iterable[type[Any]], version: int) -> dict[str, Any]:
    """Return the JSON Schema of the stored forms of dataclasses, each a file with this version."""
    named: dict[str, Any] = {kind.__name__: kind for kind in kinds}
    forms, content = TypeAdapter.json_schemas(
        [(name, "validation", _adapter(kind)) for name, kind in named.items()],
        schema_generator=_Untitled,
    )
    for name in named:
        content["$defs"][name]["properties"]["schema"] = {"const": version}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": f"Results of leakbound, schema {version}",
        "required": ["schema"],
        "oneOf": list(forms.values()),
        **content,
    }


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(_object(kind))


@cache
def _object(kind: Any) -> Any:
    """Return the stored form of a dataclass: an object with its type, and nothing unknown."""
    hints = get_type_hints(kind)
    content: dict[str, Any] = {"type": Literal[kind.__name__]}
    for one in stored_fields(kind):
        form = _form(hints[one.name])
        content[one.name.lstrip("_")] = NotRequired[form] if "if_any" in one.metadata else form
    make: Any = TypedDict
    fields = make(kind.__name__, content)
    fields.__pydantic_config__ = ConfigDict(strict=True, extra="forbid")
    return Annotated[fields, AfterValidator(partial(_made, kind))]


def _form(hint: Any) -> Any:
    """Return the stored form, for pydantic, of a type that `encode` takes."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return _object(cast("Any", hint))
    if hint is float:
        return Number
    if hint is int:
        return Annotated[int, AfterValidator(_of_few_bits)]
    if origin is Lazy:
        return Annotated[_form(inner[0]), AfterValidator(lambda value: Lazy(lambda: value))]
    if origin is np.ndarray:
        dtype = get_args(inner[1])[0]
        items: Any = list[Number | None] if dtype is np.float64 else list[int]
        return Annotated[items, AfterValidator(partial(_array, dtype))]
    if origin is tuple:
        items = GenericAlias(list, _form(inner[0]))
        return Annotated[items, AfterValidator(tuple)]
    if origin is dict:
        return GenericAlias(dict, (str, _form(inner[1])))
    if origin is Callable:
        return Annotated[str, AfterValidator(_Forgotten)]
    if origin in {Union, UnionType}:
        forms = [_form(one) for one in inner if one is not NoneType]
        form = forms[0] if len(forms) == 1 else Annotated[Union[*forms], Discriminator("type")]
        return form | None if NoneType in inner else form
    return hint  # bool, str, one of a few words, or anything at all


def _of_few_bits(value: int) -> int:
    """Return an integer that a double holds; seeds, the longest that there are, have 128 bits."""
    if value.bit_length() > _MOST_BITS:
        message = f"an integer of {value.bit_length():,} bits, and at most {_MOST_BITS} are read"
        raise ValueError(message)
    return value


def _array(dtype: Any, values: list[float | None]) -> NDArray[np.generic]:
    try:
        return np.array(values, dtype=dtype)
    except OverflowError:
        message = f"it has an integer beyond {np.dtype(dtype)}"
    raise ValueError(message)


def _made(kind: type[Any], content: dict[str, Any]) -> Any:
    """Build a dataclass from its fields, and refuse those that cannot go together."""
    try:
        stored = ((one.name, one.name.lstrip("_")) for one in stored_fields(kind))
        made = kind(**{name: content[public] for name, public in stored if public in content})
        flaw = getattr(made, "_flaw", str)()
    except LeakboundError as error:
        flaw = str(error)
    if flaw:
        raise ValueError(flaw)
    return made


class _Forgotten:
    """Stands for a function that was stored by its name."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, *_: object, **__: object) -> Any:
        message = f"the function {self.__qualname__} was not stored, only its name: make it anew"
        raise ResultFormatError(message)
