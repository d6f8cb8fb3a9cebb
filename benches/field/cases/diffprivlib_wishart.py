"""The Wishart mechanism of diffprivlib 0.3 for second moments (diffprivlib #23, #42)."""

import warnings

import numpy as np

warnings.simplefilter("ignore")  # old packages warn of each other
from diffprivlib.mechanisms import Wishart  # noqa: E402 (what it imports warns)

claim, parameter = "pure", 1.0
noisy = Wishart().set_epsilon(parameter).set_sensitivity(1.0)
d0 = np.zeros((2, 2))
d1 = np.diag([1.0, 0.0])  # one record of norm 1


def run(data, rng):
    return noisy.randomise(data)
