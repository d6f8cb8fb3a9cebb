"""Strata and groups: what each example belongs to."""

import numpy as np

from leakbound._base.checks import check_length, vector
from leakbound._base.labels import missing_of
from leakbound._base.types import ArrayInput, GenericArray, IntArray
from leakbound.errors import InputTypeError


def by_first_row(
    codes: GenericArray,
) -> tuple[GenericArray, IntArray, IntArray]:
    """Return the names of strata or groups, their first rows, and which of them each row is in.

    They are in the order of these rows, so that names have no part in what a seed draws.
    """
    names, first_rows, code_of_row = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first_rows)
    place_in_order = np.argsort(order)
    return names[order], first_rows[order], place_in_order[code_of_row]


def check_codes(
    values: ArrayInput,
    examples: int,
    name: str,
    cure: str = "give each example one, unique if necessary",
) -> GenericArray:
    """Read strata or groups: numbers or text, one for each example, none missing."""
    codes = vector(values, name=name, kinds="biufSUO")
    check_length(codes, examples=examples, name=name)
    is_missing = missing_of(codes, name=name)
    if is_missing.any():
        first_row = int(is_missing.argmax())
        raise InputTypeError(f"{name} is missing at row {first_row}: {cure}")
    try:
        np.unique(codes)
    except TypeError:
        raise InputTypeError(
            f"{name} must be all numbers or all text, got a mixture that cannot be compared"
        ) from None
    return codes
