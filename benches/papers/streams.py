"""Random numbers of what is made up and trained here: streams named as those of the package are."""

from hashlib import sha256
from typing import Literal

import numpy as np

__all__ = ["derived", "generator"]


def generator(purpose: str, seed: int, *further: int) -> np.random.Generator:
    """Return the generator of a purpose, a seed and further numbers."""
    return np.random.Generator(np.random.PCG64(_sequence(purpose, seed, *further)))


def derived(purpose: str, seed: int, *further: int, bits: Literal[32, 64] = 64) -> int:
    """Return the seed of a generator other than NumPy's."""
    (word,) = _sequence(purpose, seed, *further).generate_state(1, np.uint64)
    return int(word) >> (64 - bits)


def _sequence(purpose: str, *numbers: int) -> np.random.SeedSequence:
    named = ":".join(["leakbound/1", purpose, *(f"{number:x}" for number in numbers)])
    return np.random.SeedSequence(int.from_bytes(sha256(named.encode()).digest(), "little"))
