"""The analytic Gaussian of smartnoise-core 0.1.0 has too little noise (smartnoise-core #316)."""

import math

import numpy as np
import opendp.smartnoise.core as sn

EPSILON, DELTA = 0.5, 0.01


def tail(x):
    return 0.5 * math.erfc(x / math.sqrt(2))


def spent(mu):
    """Return the delta at EPSILON of Gaussian DP with this mu (Balle and Wang 2018)."""
    ratio = EPSILON / mu
    return tail(ratio - mu / 2) - math.exp(EPSILON) * tail(ratio + mu / 2)


low, high = 0.0, 1.0
for _ in range(60):
    middle = (low + high) / 2
    if spent(middle) <= DELTA:
        low = middle
    else:
        high = middle
claim, parameter = "gaussian", high
d0 = np.zeros((20, 1))
d1 = np.append(np.zeros((19, 1)), [[1.0]], axis=0)


def run(data, rng):
    with sn.Analysis(protect_floating_point=False, filter_level="all") as analysis:
        numbers = sn.to_float(sn.literal(value=data, value_format="array", value_public=False))
        total = sn.dp_sum(
            numbers,
            mechanism="AnalyticGaussian",
            privacy_usage={"epsilon": EPSILON, "delta": DELTA},
            data_lower=0.0,
            data_upper=1.0,
            data_rows=len(data),
            data_columns=1,
        )
        analysis.release()
        return float(total.value[0, 0])


def score(outputs):
    """Noise is normal: the larger the sum, the more likely it has the record."""
    return np.asarray(outputs)
