"""JSON in one spelling only, so that a digest of it is a digest of its content.

Names sorted by code point, no white space, ASCII with escapes in lower case, integers in decimal,
other numbers by the fewest digits that give the double again, as Python's `repr` spells them.
"""

import hashlib
import json
import re
from typing import IO, Any, cast

from leakbound._base.records import parsed
from leakbound._base.types import JsonValue
from leakbound.errors import OptionError


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


def digest(file: IO[bytes]) -> str:
    """Return the SHA-256 of a file from here to its end, read block by block."""
    return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()


def plain(value: Any, name: str) -> JsonValue:
    """Return a copy of a value made of text, finite numbers, booleans, lists and tables."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
        return cast("JsonValue", parsed(text))
    except (TypeError, ValueError, RecursionError) as error:
        message = (
            f"{name} is made of text (dates too), finite numbers, true and false, lists and tables:"
            f" {' '.join(str(error).split())[:200]}"
        )
        raise OptionError(message) from error
