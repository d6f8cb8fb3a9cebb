"""Sparse vector of updates, which up to 2.3 are not clipped before noise (NVFlare #462)."""

import logging

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

logging.disable(logging.CRITICAL)
private = SVTPrivacy(fraction=1.0, epsilon=1.0, noise_var=1.0, gamma=1.0, tau=0.0, replace=False)
claim = "pure"
# Threshold, query and release: 2.3 takes 2^(2/3) times epsilon for the query; 2.9 splits epsilon.
parameter = 1 + 2 ** (2 / 3) + 1
if hasattr(private, "get_privacy_spent"):
    parameter = 1.0 + 1.0
d0, d1 = -1000.0, 1000.0  # updates of one weight, to be clipped at 1


def run(data, rng):
    update = DXO(DataKind.WEIGHT_DIFF, {"weight": np.array([data])})
    return private.process_dxo(update, Shareable(), FLContext()).data["weight"]
