"""Columns in units of their spread."""

import numpy as np

from leakbound._base.types import FloatArray


def standardised(columns: FloatArray, farthest: float) -> FloatArray:
    """Return columns in standard deviations from their means, clipped at so many of them.

    Constant columns are 0. Clipped values keep a few rows from deciding what is learnt or tested.
    """
    spread = columns.std(axis=0)
    deviations = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    clipped: FloatArray = np.clip(deviations, -farthest, farthest)
    return clipped
