"""Representations that fit on a line: of an array, the shape and the type."""

from collections.abc import Mapping, Sized
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Elements of a list, or of an array, that are shown one by one
_FEW = 8


def brief(self: "DataclassInstance") -> str:
    """Return a dataclass with the shapes of its arrays; ``__repr__ = brief`` uses it.

    Fields that are None are left out.

    Examples
    --------
    >>> from leakbound import Trials
    >>> Trials(np.arange(400) % 2)
    Trials(member=<array of 400 int64>, fixed=False)
    """
    shown = [(one.name, getattr(self, one.name)) for one in fields(self) if one.repr]
    parts = (f"{name}={_part(value)}" for name, value in shown if value is not None)
    return f"{type(self).__name__}({', '.join(parts)})"


def _part(value: object) -> str:
    """Return a value in a few words."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        sizes = " x ".join(map(str, shape))
        if isinstance(value, np.ndarray):
            return f"<array of {sizes} {value.dtype}>"
        return f"<{kind} of {sizes}>"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key!r}: {_part(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, Sized) and len(value) > _FEW:
        return f"<{kind} of {len(value)}>"
    if isinstance(value, tuple | list) and any(hasattr(one, "shape") for one in value):
        return f"({', '.join(map(_part, value))})"
    return repr(value)
