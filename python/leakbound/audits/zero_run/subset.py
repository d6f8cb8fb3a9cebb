"""Which examples a Zero-Run audit looks at, chosen by features alone, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.streams import Purpose
from leakbound.audits.zero_run.propensities import no_overlap
from leakbound.errors import AbstentionError

if TYPE_CHECKING:
    from collections.abc import Collection

    from leakbound._base.types import FloatArray, IntArray


def audited_rows(
    scores: Collection[FloatArray],
    largest: FloatArray,
    limit: float | None,
    seed: int,
) -> IntArray:
    """Return the rows that are audited, in an order that says nothing about membership.

    `largest` has the largest |λ| of each example. NoOverlapError or AbstentionError where nothing
    can be compared.
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
    return Purpose.AUDITED_ORDER.rng(seed).permutation(allowed)
