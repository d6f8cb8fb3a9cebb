"""Randomised response of a bit vector: up to 0.14 its last bit is never noised (opendp #2707)."""

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
respond = dp.m.make_randomized_response_bitvec(
    dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5
)
claim, parameter = "pure", respond.map(1)
d0, d1 = b"\x80", b"\x01"  # the last bit is the highest of its byte


def run(data, rng):
    return np.unpackbits(np.frombuffer(respond(data), dtype=np.uint8))
