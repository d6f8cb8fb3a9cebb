"""What audits and designs were given: which options, and one array too many."""

from functools import wraps
from typing import TypeVar

from leakbound._base.types import JsonObject, JsonValue
from leakbound.errors import InputTypeError

D = TypeVar("D")

TWO_PARTS = (
    "a of members and b of others: lb.audit(numpy.concatenate([a, b]), "
    "lb.{}(numpy.arange(len(a) + len(b)) < len(a)))"
)


def of_one_array(design: type[D]) -> type[D]:
    """Refuse a second array of a design that takes membership alone, and say what to write."""
    made = design.__init__

    @wraps(made)
    def checked(self: D, *arrays: object, **options: object) -> None:
        if len(arrays) > 1:
            raise InputTypeError(_several(design.__name__, len(arrays)))
        made(self, *arrays, **options)

    setattr(design, "__init__", checked)  # noqa: B010 (mypy allows no other assignment)
    return design


def _several(design: str, arrays: int) -> str:
    return (
        f"{design} takes one array, which examples were members, and named options, got {arrays}: "
        f"if these are scores of two parts, {TWO_PARTS.format(design)}"
    )


def asked(cuts: object, **options: object) -> JsonObject:
    """Return what results store of options that an audit fills in, None here: names of those given.

    A bundle states these and no others, so that what runs again is what was asked.
    """
    given = {"cuts": cuts, **options}
    names: list[JsonValue] = [name for name, value in given.items() if value is not None]
    if not names:
        return {}
    return {"asked": names}
