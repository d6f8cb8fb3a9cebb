"""What all games use: random numbers, a stream for each purpose and seed, and log-odds."""

import math
import zlib

import numpy as np

__all__ = ["logit", "stream"]


def stream(purpose: str, seed: int) -> np.random.Generator:
    """Return the generator of a seed, whose streams no other purpose and no audit shares."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def logit(p: float) -> float:
    """Return the log-odds of a probability."""
    return math.log(p) - math.log1p(-p)
