"""Scores of several attacks by their names."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from leakbound._base.alignment import column_names
from leakbound._base.reading import refuse_unread
from leakbound._base.types import BoolArray, FloatArray, Named
from leakbound.errors import InputError

# Columns of files of scores that are no attacks: see the guide on files.
_NO_ATTACKS = ("id", "member")


def scores_by_attack(scores: Any) -> Named | None:
    """Return scores by name if they are a mapping, columns of a frame or rows; else None."""
    if not isinstance(scores, list | tuple | np.ndarray):
        columns = _score_columns(scores)
        if columns is not None:
            _check_attack_names(columns)
            return columns
    if _are_rows_of_attacks(scores):
        return {f"attack {row}": values for row, values in enumerate(scores)}
    return None


def _are_rows_of_attacks(scores: Any) -> bool:
    """Return whether scores are rows, one of each attack, and no vector or column."""
    if isinstance(scores, list | tuple):
        return len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    return len(shape) == 2 and shape[1] != 1


def refuse_membership_as_attack(
    scores: object, attacks: Mapping[str, FloatArray], member: BoolArray
) -> None:
    """Refuse a column of a table that is membership itself, and so no attack."""
    if isinstance(scores, list | tuple | np.ndarray) or type(scores) is dict:
        return
    for name, values in attacks.items():
        above_lowest = values > values.min()
        if np.array_equal(above_lowest, member) and np.unique(values).size == 2:
            raise InputError(
                f"column {name!r} of scores is membership itself: name the columns that are "
                f"attacks, such as scores[['score']]; if {name!r} is one, pass "
                f"{{{name!r}: scores[{name!r}]}}"
            )


def _check_attack_names(columns: Named) -> None:
    """Refuse names that files have for what is no attack."""
    attacks = list[str]()
    others = list[str]()
    for name in columns:
        if name in _NO_ATTACKS:
            others.append(name)
        else:
            attacks.append(name)
    if others:
        raise InputError(
            f"scores has {others[0]!r}, which is not an attack: pass the columns of attacks alone, "
            f"such as scores[{attacks or ['score']!r:.60}], and membership to the design"
        )


def _score_columns(scores: object) -> Named | None:
    """Return the columns of a frame, or the values of a mapping, by name; else None."""
    if isinstance(scores, Mapping):
        if scores and all(isinstance(value, Real) for value in scores.values()):
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
