"""Laplace noise in floating point, whose low-order bits tell the value (diffprivlib #94)."""

import numpy as np
from diffprivlib.mechanisms import Laplace

claim, parameter = "pure", 1.0
noisy = Laplace(epsilon=parameter, sensitivity=1.0)
d0, d1 = 0.0, 1.0


def run(data, rng):
    return noisy.randomise(data)


def score(outputs):
    """An output below 1/2 that is finer than sums with 1 can be came from 0."""
    coarsest = 2.0**-53  # doubles between 1/2 and 1
    return np.where(np.mod(outputs, coarsest) == 0, 1.0, -1.0)
