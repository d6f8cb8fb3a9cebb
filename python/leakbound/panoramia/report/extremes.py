"""What lies beyond everything that was generated: features whose extremes give members away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound._base.formatting import number
from leakbound.generators import FeatureExtreme, feature_extremes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leakbound._base.types import FloatArray
    from leakbound.panoramia.scores import GameScores

__all__ = ["FeatureExtreme", "ends_of", "warnings_of_ends"]

MOST = 8
"""Ends that are kept."""
LARGE, LEAST = 0.5, 0.1
"""Share of c_lb that one end has to prove alone to stand out, and the least that is worth it."""


def ends_of(
    values: FloatArray, game: GameScores, names: Sequence[str] | None
) -> tuple[FeatureExtreme, ...]:
    """Return the ends of features beyond which there are members and nothing was generated."""
    found = feature_extremes(
        values, game.member, names=names, baseline_scores=game.baseline, seed=game.seed
    )
    return tuple(end for end in found if end.beyond)[:MOST]


def warnings_of_ends(ends: Sequence[FeatureExtreme], c_lb: float) -> tuple[str, ...]:
    """Name the features one end of which proves much of what the baseline proves."""
    return tuple(
        f"{end.name} gives members away at its {end.side} end: {end.beyond} of them are beyond "
        f"{end.limit:g}, where nothing was generated, and this end alone gives c >= "
        f"{number(end.c_lb)} of the baseline's {number(c_lb)}; with heavy tails c_lb jumps from "
        "run to run with the few largest values: generate the logarithm of the column, or cut it "
        "off for members and generated examples alike"
        for end in ends
        if end.c_lb >= max(LEAST, LARGE * c_lb)
    )
