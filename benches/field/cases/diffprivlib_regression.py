"""Linear regression whose squares have noise for the lower bound alone (diffprivlib #104, #105)."""

import numpy as np
from diffprivlib.models import LinearRegression

claim, parameter = "pure", 1.0
d0 = (np.ones((10, 1)), np.zeros(10))
d1 = (np.append(np.ones((9, 1)), [[100.0]], axis=0), np.zeros(10))  # one record of another value


def run(data, rng):
    model = LinearRegression(
        epsilon=parameter, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False
    )
    return model.fit(*data).coef_
