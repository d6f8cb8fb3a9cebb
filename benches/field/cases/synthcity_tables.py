"""PrivBayes of synthcity: counts have the noise of probabilities (arXiv 2602.17454)."""

import logging
import sys
import warnings
from unittest.mock import MagicMock

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
# For plots and other models: PrivBayes calls none of them
for unused in ("synthcity.metrics", "synthcity.metrics.plots", "torchvision", "xgboost"):
    sys.modules[unused] = MagicMock()
from synthcity.plugins.privacy.plugin_privbayes import PrivBayes  # noqa: E402 (after the above)

claim, parameter = "pure", 1.0
d0 = pd.DataFrame({"ill": [1] * 5 + [0] * 95, "sex": [0, 1] * 50})
d1 = pd.DataFrame({"ill": [1] * 6 + [0] * 94, "sex": [0, 1] * 50})  # another value in one record


def run(data, rng):
    model = PrivBayes(epsilon=parameter, K=1).fit(data)
    return int(model.sample(10_000)["ill"].sum())


def score(outputs):
    """The more of the made records are ill, the more of the real ones are."""
    return np.asarray(outputs)
