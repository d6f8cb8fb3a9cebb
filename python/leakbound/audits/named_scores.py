"""Scores of several attacks by their names."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from leakbound._base.alignment import column_names
from leakbound._base.reading import refuse_unread
from leakbound._base.types import Named
from leakbound.errors import InputError


def by_name(scores: Any) -> Named | None:
    """Return scores by name if they are a mapping, columns of a frame or rows; else None."""
    if isinstance(scores, list | tuple):
        in_rows = len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    else:
        if not isinstance(scores, np.ndarray):
            named = _of_columns(scores)
            if named is not None:
                return named
        shape: tuple[int, ...] = getattr(scores, "shape", ())
        in_rows = len(shape) == 2 and shape[1] != 1
    if in_rows:
        return {f"attack {row}": values for row, values in enumerate(scores)}
    return None


def _of_columns(scores: object) -> Named | None:
    """Return the columns of a frame, or the values of a mapping, by name; else None."""
    if isinstance(scores, Mapping):
        if scores and all(isinstance(one, Real) for one in scores.values()):
            raise InputError(
                "scores is a mapping of single numbers, and needs an array for each attack: if its "
                "keys are ids, pass [*scores.values()] and ids=[*scores]"
            )
        return dict(scores)
    refuse_unread(scores, "scores")
    names = column_names(scores)
    if not names or not hasattr(scores, "__getitem__"):
        return None
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            raise InputError(f"columns of scores must have different names, got {name!r}")
    return {name: scores[name] for name in names}
