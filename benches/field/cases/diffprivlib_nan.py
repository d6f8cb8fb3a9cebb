"""A mean with bounds: NaN is not clipped (arXiv 2602.17454)."""

import numpy as np
from diffprivlib.tools import mean

claim, parameter = "pure", 1.0
d0 = np.full(10, 0.5)
d1 = np.append(np.full(9, 0.5), np.nan)


def run(data, rng):
    return mean(data, epsilon=parameter, bounds=(0, 1))
