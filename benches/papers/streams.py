"""Random numbers of what is made up and trained here: streams named as those of the package are."""

from hashlib import sha256
from typing import Literal

import numpy as np

from leakbound._base.streams import SCHEME

__all__ = ["derived", "generator"]


def generator(purpose: str, seed: int, *further: int) -> np.random.Generator:
    """Return the generator of a purpose, a seed and further numbers."""
    seed_sequence = _seed_sequence(purpose, seed, *further)
    return np.random.Generator(np.random.PCG64(seed_sequence))


def derived(purpose: str, seed: int, *further: int, bits: Literal[32, 64] = 64) -> int:
    """Return the seed of a generator other than NumPy's."""
    seed_sequence = _seed_sequence(purpose, seed, *further)
    (word,) = seed_sequence.generate_state(1, np.uint64)
    return int(word) >> (64 - bits)


def _seed_sequence(purpose: str, *numbers: int) -> np.random.SeedSequence:
    """Return the seed of a purpose and numbers: the SHA-256 of their names."""
    hexadecimal_numbers = [f"{number:x}" for number in numbers]
    name = ":".join([SCHEME, purpose, *hexadecimal_numbers])
    digest = sha256(name.encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest, "little"))
