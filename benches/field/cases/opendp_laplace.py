"""Integer Laplace noise of scale 3, biased up to 0.14 (opendp #2638, dashu #57)."""

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
noisy = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=3.0)
claim, parameter = "pure", noisy.map(1)
d0, d1 = 0, 1


def run(data, rng):
    return noisy(data)


def score(outputs):
    """The log-likelihood ratio of the biased noise, from the steps of its law as released."""
    steps = np.array([0.338, 0.156, 0.506])
    outputs = np.asarray(outputs)
    right = steps[np.maximum(outputs - 1, 0) % 3]
    left = steps[np.maximum(-outputs, 0) % 3]
    return np.where(outputs >= 1, right, -left)
