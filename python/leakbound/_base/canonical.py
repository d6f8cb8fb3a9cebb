"""JSON in one spelling only, so that a digest of it is a digest of its content.

Names sorted by code point, no white space, ASCII with escapes in lower case, integers in decimal,
other numbers by the fewest digits that give the double again, as Python's `repr` spells them.
"""

import hashlib
import json
import math
import re
from typing import IO, Any

from leakbound._base.types import JsonValue
from leakbound.errors import OptionError, OptionTypeError

_BITS = 128
"""Of the longest integer, which is a seed from the system's entropy."""
_DEEPEST = 30
"""Levels of nesting: a protocol has two or three."""
_BLOCK = 1 << 20
"""Bytes that are held at once of a file that is digested."""


def canonical_json(value: JsonValue) -> bytes:
    """Return the only spelling of a value as JSON."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def is_digest(text: object) -> bool:
    """Return whether this is a SHA-256 in 64 hexadecimal digits of lower case."""
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def digest(file: IO[bytes]) -> tuple[int, str]:
    """Return the size and the SHA-256 of a file from here to its end, read block by block."""
    size, found = 0, hashlib.sha256()
    while block := file.read(_BLOCK):
        size += len(block)
        found.update(block)
    return size, found.hexdigest()


def plain(value: Any, *path: str | int) -> JsonValue:
    """Check that a value is made of text, finite numbers, booleans, lists and tables; copy it.

    `path` is its name, and then those on the way to a part of it.
    """
    if len(path) > _DEEPEST + 1:
        message = f"{_named(path[:1])} is nested more than {_DEEPEST} deep"
        raise OptionError(message)
    if isinstance(value, dict):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None:
            message = f"{_named(path)} has the name {wrong!r:.60}, which is no text"
            raise OptionTypeError(message)
        for key in value:
            _check_text(key, path)
        return {key: plain(one, *path, key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, *path, i) for i, one in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{_named(path)} is {value}: a protocol holds finite numbers only"
        raise OptionError(message)
    if isinstance(value, str):
        _check_text(value, path)
    if type(value) is int and value.bit_length() > _BITS:
        message = f"{_named(path)} is an integer of {value.bit_length()} bits: {_BITS} at most"
        raise OptionError(message)
    if value is None or type(value) in (bool, int, float, str):
        return value  # type: ignore[no-any-return]
    message = (
        f"{_named(path)} is of type {type(value).__name__}: give text, a number, true or false, a "
        "list or a table (a date goes as text)"
    )
    raise OptionTypeError(message)


def _named(path: tuple[str | int, ...]) -> str:
    """Spell out where a value is: only where something is wrong, as the names may be long."""
    return "".join(
        f"[{one}]" if isinstance(one, int) else f"{'.' if i else ''}{one:.60}"
        for i, one in enumerate(path)
    )


def _check_text(value: str, path: tuple[str | int, ...]) -> None:
    """Refuse half of a surrogate pair, which no file of UTF-8 can hold."""
    if value.isascii():
        return
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        message = f"{_named(path)} holds text that UTF-8 cannot: {value!r:.60}"
        raise OptionError(message) from None
