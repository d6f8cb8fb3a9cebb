"""Features in units of their spread, before propensities are tested or labels are learnt."""

import numpy as np

from leakbound._base.types import FloatArray


def standardised(columns: FloatArray, farthest: float) -> FloatArray:
    """Return features in standard deviations from their means, clipped at so many of them.

    Constant columns are 0. Clipped values keep a few rows from deciding what is learnt or tested.
    """
    standard_deviations = columns.std(axis=0)
    divisors = np.where(standard_deviations > 0, standard_deviations, 1.0)
    z_scores = (columns - columns.mean(axis=0)) / divisors
    clipped: FloatArray = np.clip(z_scores, -farthest, farthest)
    return clipped
