"""Logistic regression whose classes are those of the data (diffprivlib #106)."""

import numpy as np
from diffprivlib.models import LogisticRegression

claim, parameter = "pure", 1.0
x = np.linspace(-0.5, 0.5, 10)[:, None]
d0 = (x, np.array([0, 1] * 5))
d1 = (x, np.array([0, 1] * 4 + [0, 2]))  # one record of a class that no other has


def run(data, rng):
    model = LogisticRegression(epsilon=parameter, data_norm=1.0).fit(*data)
    return model.classes_, model.coef_
