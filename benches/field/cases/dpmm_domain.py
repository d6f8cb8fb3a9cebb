"""PrivBayes of dpmm 0.1 without a domain, which is read from the data (dpmm #18)."""

import copy

import pandas as pd
from dpmm.models.priv_bayes import PrivBayesGM

DOMAIN = None
claim, parameter = "approx:1e-5", 1.0
d0 = pd.DataFrame({"grade": [0] * 10})
d1 = pd.DataFrame({"grade": [0] * 10 + [3]})  # one record more
# Made once, which takes most of a second; iterations only fit it to counts that have their noise
untrained = PrivBayesGM(
    epsilon=parameter, delta=1e-5, n_iters=10, compress=False, domain=DOMAIN, n_jobs=1
)


def run(data, rng):
    model = copy.deepcopy(untrained)
    model.fit(data)
    return model.generate(10)["grade"].tolist()
