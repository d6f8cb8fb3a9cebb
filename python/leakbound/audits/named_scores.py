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
        scores_by_name = _named_score_columns(scores)
        if scores_by_name is not None:
            _check_attack_names(scores_by_name)
            return scores_by_name
    if _are_rows_of_scores(scores):
        return {
            f"attack {attack_number}": scores_of_attack
            for attack_number, scores_of_attack in enumerate(scores)
        }
    return None


def _are_rows_of_scores(scores: object) -> bool:
    """Return whether scores are rows, one of each attack, and no vector or column."""
    if isinstance(scores, list | tuple):
        return len(scores) > 0 and isinstance(scores[0], list | tuple | np.ndarray)
    table_shape: tuple[int, ...] = getattr(scores, "shape", ())
    return len(table_shape) == 2 and table_shape[1] != 1


def refuse_membership_as_attack(
    scores: object, attacks: Mapping[str, FloatArray], member: BoolArray
) -> None:
    """Refuse a column of a table that is membership itself, and so no attack."""
    if isinstance(scores, list | tuple | np.ndarray) or type(scores) is dict:
        return
    for name, scores_of_attack in attacks.items():
        is_above_lowest = scores_of_attack > scores_of_attack.min()
        if np.array_equal(is_above_lowest, member) and np.unique(scores_of_attack).size == 2:
            raise InputError(
                f"column {name!r} of scores is membership itself: name the columns that are "
                f"attacks, such as scores[['score']]; if {name!r} is one, pass "
                f"{{{name!r}: scores[{name!r}]}}"
            )


def _check_attack_names(scores_by_name: Named) -> None:
    """Refuse names that files have for what is no attack."""
    attack_names = list[str]()
    reserved_names = list[str]()
    for name in scores_by_name:
        if name in _NO_ATTACKS:
            reserved_names.append(name)
        else:
            attack_names.append(name)
    if reserved_names:
        raise InputError(
            f"scores has {reserved_names[0]!r}, which is not an attack: pass the columns of "
            f"attacks alone, such as scores[{attack_names or ['score']!r:.60}], and membership to "
            "the design"
        )


def _named_score_columns(scores: object) -> Named | None:
    """Return the columns of a frame, or the values of a mapping, by name; else None."""
    if isinstance(scores, Mapping):
        if scores and all(isinstance(value, Real) for value in scores.values()):
            raise InputError(
                "scores is a mapping of single numbers, and needs an array for each attack: if its "
                "keys are ids, pass [*scores.values()] and ids=[*scores]"
            )
        return dict(scores)
    refuse_unread(scores, "scores")
    names_of_columns = column_names(scores)
    if not names_of_columns or not hasattr(scores, "__getitem__"):
        return None
    for name in names_of_columns:
        if not isinstance(name, str) or names_of_columns.count(name) > 1:
            raise InputError(f"columns of scores must have different names, got {name!r}")
    return {name: scores[name] for name in names_of_columns}
