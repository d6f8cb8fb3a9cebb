"""The global random generators that users' code draws from: their states, put back and seeded.

Nothing of this package draws from them. A probe runs the users' own code again and again, with the
same random numbers, and leaves them as they were.
"""

import random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# As NumPy returns it: the algorithm's name, its words, and where it is in them.
_NumpyState = tuple[str, NDArray[np.uint32], int, int, float] | dict[str, object]


class States(NamedTuple):
    """The states of all global generators."""

    torch: Tensor
    devices: list[Tensor]
    numpy: _NumpyState
    python: tuple[object, ...]


def states() -> States:
    """Return the states of all global generators."""
    cuda: list[Tensor] = []
    if torch.cuda.is_available():
        cuda = torch.cuda.get_rng_state_all()
    numpy = np.random.get_state()  # noqa: NPY002
    return States(torch.get_rng_state(), cuda, numpy, random.getstate())


def restore(before: States) -> None:
    """Put the states of all global generators back."""
    torch.set_rng_state(before.torch)
    if before.devices:
        torch.cuda.set_rng_state_all(before.devices)
    np.random.set_state(before.numpy)  # noqa: NPY002
    random.setstate(before.python)


def alike(one: States, other: States) -> bool:
    """Return whether generators of PyTorch are in the same states."""
    if len(one.devices) != len(other.devices):
        return False
    devices = zip(one.devices, other.devices, strict=True)
    return torch.equal(one.torch, other.torch) and all(torch.equal(*two) for two in devices)


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
