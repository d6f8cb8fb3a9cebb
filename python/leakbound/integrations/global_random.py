"""The global random generators that users' code draws from: their states, put back and seeded.

Nothing of this package draws from them. A probe runs the users' own code again and again, with the
same random numbers, and leaves them as they were.
"""

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def states() -> tuple[object, ...]:
    """Return the states of all global generators."""
    cuda: list[Tensor] = []
    if torch.cuda.is_available():
        cuda = torch.cuda.get_rng_state_all()
    return torch.get_rng_state(), cuda, np.random.get_state(), random.getstate()  # noqa: NPY002


def restore(before: tuple[Any, ...]) -> None:
    """Put the states of all global generators back."""
    torch.set_rng_state(before[0])
    if before[1]:
        torch.cuda.set_rng_state_all(before[1])
    np.random.set_state(before[2])  # noqa: NPY002
    random.setstate(before[3])


def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return whether generators of PyTorch are in the same states."""
    devices = zip([one[0], *one[1]], [other[0], *other[1]], strict=False)
    return len(one[1]) == len(other[1]) and all(torch.equal(*two) for two in devices)


def seed_torch(seed: int) -> None:
    """Seed the generators of PyTorch."""
    torch.manual_seed(seed)


def seed_all(seed: int) -> None:
    """Seed all global generators."""
    torch.manual_seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002
    random.seed(seed)


def generator_on(device: torch.device, seed: int) -> torch.Generator:
    """Return a generator of a device, seeded."""
    return torch.Generator(device=device).manual_seed(seed)
