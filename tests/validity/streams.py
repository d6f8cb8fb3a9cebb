"""Random numbers of the games: a stream for each purpose and seed."""

import zlib

import numpy as np

__all__ = ["stream"]


def stream(purpose: str, seed: int) -> np.random.Generator:
    """Return the generator of a seed, whose streams no other purpose and no audit shares."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])
