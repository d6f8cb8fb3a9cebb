"""Representations that fit on a line: of an array, the shape and the type."""

from collections.abc import Mapping, Sized
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Elements of a list, or of an array, that are shown one by one
_SHOWN_ELEMENTS = 8


def brief(self: "DataclassInstance") -> str:
    """Return a dataclass with the shapes of its arrays; ``__repr__ = brief`` uses it.

    Fields that are None are left out.

    Examples
    --------
    >>> from leakbound import Trials
    >>> Trials(np.arange(400) % 2)
    Trials(member=<array of 400 int64>, fixed=False)
    """
    brief_fields = list[str]()
    for field in fields(self):
        field_value = getattr(self, field.name)
        if field.repr and field_value is not None:
            brief_fields.append(f"{field.name}={_brief_value(field_value)}")
    return f"{type(self).__name__}({', '.join(brief_fields)})"


def _brief_value(value: object) -> str:
    """Return a value in a few words."""
    type_name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        sizes_in_words = " x ".join(map(str, shape))
        if isinstance(value, np.ndarray):
            return f"<array of {sizes_in_words} {value.dtype}>"
        return f"<{type_name} of {sizes_in_words}>"
    if isinstance(value, Mapping):
        brief_items = [f"{key!r}: {_brief_value(element)}" for key, element in value.items()]
        return f"{{{', '.join(brief_items)}}}"
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, Sized) and len(value) > _SHOWN_ELEMENTS:
        return f"<{type_name} of {len(value)}>"
    if isinstance(value, tuple | list) and any(hasattr(element, "shape") for element in value):
        return f"({', '.join(map(_brief_value, value))})"
    return repr(value)
