"""Which examples a Zero-Run audit looks at, chosen by features alone, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.streams import Purpose
from leakbound.audits.zero_run.propensities import no_overlap
from leakbound.errors import AbstentionError

if TYPE_CHECKING:
    from collections.abc import Collection

    from leakbound._base.types import BoolArray, FloatArray, IntArray, ZeroRunDesign

__all__ = ["audited_rows"]

_SPARE = 4.0
"""Standard deviations of a number of members by which a draw from fixed pools stays inside them."""


def audited_rows(
    scores: Collection[FloatArray],
    member: BoolArray,
    largest: FloatArray,
    limit: float | None,
    design: ZeroRunDesign,
    seed: int,
) -> IntArray:
    """Return the rows that are audited, in an order that says nothing about membership.

    `largest` has the largest |λ| of each example. With fixed numbers, how many of each kind are
    drawn depends on membership. NoOverlapError or AbstentionError where nothing can be compared.
    """
    allowed = np.flatnonzero(largest <= (np.inf if limit is None else limit))
    if allowed.size < 2:
        size = f"{allowed.size} example{'' if allowed.size == 1 else 's'}"
        within = "" if limit is None else f" with |log-odds| of at most {limit:g}"
        found = f"there is no pair to compare among {size}{within}"
        raise no_overlap(found)
    if any(values[allowed].min() == values[allowed].max() for values in scores):
        message = (
            f"all {allowed.size} scores are equal, so every example abstains: use a score that "
            "differs between examples"
        )
        raise AbstentionError(message)
    if design == "fixed_size":
        allowed = _as_coins(allowed, member[allowed], Purpose.AUDITED_SUBSET.rng(seed))
    return Purpose.AUDITED_ORDER.rng(seed).permutation(allowed)


def _as_coins(rows: IntArray, member: BoolArray, rng: np.random.Generator) -> IntArray:
    """Draw a subset in which the number of members is binomial, from pools of fixed sizes."""
    members, others = rows[member], rows[~member]
    share = members.size / rows.size
    spread = np.sqrt(share * (1 - share) * rows.size)
    # the smaller pool must hold a number that is _SPARE spreads above its mean
    size = int(rows.size - _SPARE * spread / max(1e-9, min(share, 1 - share)))
    size = max(size, rows.size // 2, 2)
    chosen = int(np.clip(rng.binomial(size, share), size - others.size, members.size))
    return np.concatenate(
        [
            rng.choice(members, chosen, replace=False),
            rng.choice(others, size - chosen, replace=False),
        ]
    )
