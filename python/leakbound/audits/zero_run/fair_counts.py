"""What half of several draws prove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import IntArray
    from leakbound.claims import Claim


def middle(
    kept: IntArray,
    made: IntArray,
    right: IntArray,
    claim: Claim,
    proved: Callable[[int, int, int], float],
) -> tuple[float, int, int, int]:
    """Return a bound that half of the draws reach, with its guesses, right ones and kept."""
    needed = (right.size + 1) // 2
    number = int(np.sort(made)[::-1][needed - 1])
    if not number:
        return proved(0, 0, 0), 0, 0, int(np.sort(kept)[needed - 1])
    # draws that keep fewer examples than there are guesses make fewer: theirs are compared alone
    if (made == made.max()).sum() < needed:
        each = sorted(
            (proved(int(c), int(n), int(k)), int(n), int(c), int(k))
            for k, n, c in zip(kept, made, right, strict=True)
        )
        return each[right.size - needed]
    bounds = [(proved(c, n, k), n, c, k) for n, c, k in candidates(kept, made, right)]
    return max(bounds, key=lambda one: claim.strength(one[0]))


def candidates(kept: IntArray, made: IntArray, right: IntArray) -> list[tuple[int, int, int]]:
    """Return guesses, right ones and kept, such that half of the draws have no fewer, and no more.

    A bound grows with the correct guesses and falls with the examples kept: for each number of
    correct guesses, the draws with at least so many and fewest kept are asked.
    """
    needed = (right.size + 1) // 2
    full = made == made.max()
    found: list[tuple[int, int, int]] = []
    for correct in np.unique(right[full])[::-1]:
        enough = np.sort(kept[full & (right >= correct)])
        if enough.size >= needed:
            most = int(enough[needed - 1])
            if not found or most < found[-1][2]:
                found.append((int(made.max()), int(correct), most))
    return found
