"""Local noise of Flower with FLIP's published defaults: a setting, no fault of Flower (FLIP #833).

Updates are clipped at 1, and noise is for a sensitivity of 0.0001.
"""

import math

import numpy as np
from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
from flwr.supercore.differential_privacy import (
    add_localdp_gaussian_noise_to_params,
    compute_clip_model_update,
)

NORM, EPSILON, DELTA = 1.0, 10.0, 1e-5
SENSITIVITY = 1e-4
claim, parameter = "gaussian", EPSILON / math.sqrt(2 * math.log(1.25 / DELTA))
d0, d1 = -100.0, 100.0  # updates of one weight, to be clipped at 1


def run(data, rng):
    update = [np.array([data])]
    compute_clip_model_update(update, [np.zeros(1)], NORM)
    noisy = add_localdp_gaussian_noise_to_params(
        ndarrays_to_parameters(update), SENSITIVITY, EPSILON, DELTA
    )
    return parameters_to_ndarrays(noisy)[0]
