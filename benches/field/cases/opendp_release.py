"""One release of counts of 100,000 keys, with integer Laplace noise of scale 3 (opendp #2638)."""

import numpy as np
import opendp.prelude as dp

KEYS, SCALE = 100_000, 3.0
dp.enable_features("contrib")
noisy = dp.m.make_laplace(
    dp.vector_domain(dp.atom_domain(T=int), size=KEYS), dp.l1_distance(T=int), scale=SCALE
)
claim, parameter = "pure", noisy.map(1)


def counts(seed):
    """Five records of each key, and one more where its coin shows heads."""
    return 5 + (np.random.default_rng(seed).random(KEYS) < 0.5)


d0, d1 = counts(0), counts(1)


def run(data, rng):
    return np.array(noisy(data.tolist()))
