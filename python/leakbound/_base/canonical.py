"""JSON in one spelling only, so that a digest of it is a digest of its content.

Names sorted by code point, no white space, ASCII with escapes in lower case, integers in decimal,
other numbers by the fewest digits that give the double again, as Python's `repr` spells them.
"""

import hashlib
import json
import math
import re
from types import NoneType
from typing import IO, Any, cast

from leakbound._base.types import JsonObject, JsonValue
from leakbound.errors import InputTypeError, OptionError

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
