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


class GeneratorStates(NamedTuple):
    """The states of all global generators."""

    torch: Tensor
    devices: list[Tensor]
    numpy: _NumpyState
    python: tuple[object, ...]


def generator_states() -> GeneratorStates:
    """Return the states of all global generators."""
    cuda_states: list[Tensor] = []
    if torch.cuda.is_available():
        cuda_states = torch.cuda.get_rng_state_all()
    numpy_state = np.random.get_state()  # noqa: NPY002
    return GeneratorStates(torch.get_rng_state(), cuda_states, numpy_state, random.getstate())


def restore_generators(states: GeneratorStates) -> None:
    """Put the states of all global generators back."""
    torch.set_rng_state(states.torch)
    if states.devices:
        torch.cuda.set_rng_state_all(states.devices)
    np.random.set_state(states.numpy)  # noqa: NPY002
    random.setstate(states.python)


def same_torch_states(first: GeneratorStates, second: GeneratorStates) -> bool:
    """Return whether generators of PyTorch are in the same states."""
    if len(first.devices) != len(second.devices):
        return False
    if not torch.equal(first.torch, second.torch):
        return False
    return all(map(torch.equal, first.devices, second.devices))


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
