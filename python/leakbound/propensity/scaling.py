"""Features in units of their spread, before propensities are tested or labels are learnt."""

import numpy as np

from leakbound._base.types import FloatArray


def standardised(columns: FloatArray, farthest: float) -> FloatArray:
    """Return features in standard deviations from their means, clipped at so many of them.

    Constant columns are 0. Clipped values keep a few rows from deciding what is learnt or tested.
    """
    standard_deviations = columns.std(axis=0)
    standard_deviations[standard_deviations == 0] = 1.0
    standardised_columns = (columns - columns.mean(axis=0)) / standard_deviations
    clipped_columns: FloatArray = np.clip(standardised_columns, -farthest, farthest)
    return clipped_columns
