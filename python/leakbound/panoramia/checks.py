"""What a run checks of its data before hours of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound.errors import IncompatibleOptionsError, LengthMismatchError

if TYPE_CHECKING:
    from leakbound.panoramia.examples import Examples
    from leakbound.panoramia.game import Parts

__all__ = ["LEAST", "check_alike", "check_parts"]

LEAST = 20
"""Fewest pairs in a part."""


def check_alike(members: Examples, others: Examples | None, name: str = "nonmembers") -> None:
    """Check that two sets of examples are of one kind."""
    if others is None:
        return
    if members.x.shape[1:] != others.x.shape[1:]:
        message = (
            f"{name} have examples of shape {others.x.shape[1:]} and members of shape "
            f"{members.x.shape[1:]}; both must be of one kind"
        )
        raise LengthMismatchError(message)
    if (members.y is None) != (others.y is None):
        message = f"{name} must have labels if and only if members have"
        raise IncompatibleOptionsError(message)


def check_parts(parts: Parts) -> None:
    """Check that no part of a game is too small."""
    least = min(parts.train, parts.validation, parts.test)
    if least < LEAST:
        message = (
            f"every part needs at least {LEAST} pairs, got {parts}; pass more members and "
            "non-members, or other shares"
        )
        raise IncompatibleOptionsError(message)
