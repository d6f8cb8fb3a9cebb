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
    return GeneratorStates(
        torch=torch.get_rng_state(),
        devices=cuda_states,
        numpy=numpy_state,
        python=random.getstate(),
    )


def restore_generators(generator_states_before: GeneratorStates) -> None:
    """Put the states of all global generators back."""
    torch.set_rng_state(generator_states_before.torch)
    if generator_states_before.devices:
        torch.cuda.set_rng_state_all(generator_states_before.devices)
    np.random.set_state(generator_states_before.numpy)  # noqa: NPY002
    random.setstate(generator_states_before.python)


def same_torch_states(states_before: GeneratorStates, states_after: GeneratorStates) -> bool:
    """Return whether generators of PyTorch are in the same states."""
    if len(states_before.devices) != len(states_after.devices):
        return False
    if not torch.equal(states_before.torch, states_after.torch):
        return False
    return all(map(torch.equal, states_before.devices, states_after.devices))


def seed_torch(torch_seed: int) -> None:
    """Seed the generators of PyTorch."""
    torch.manual_seed(torch_seed)


def seed_all(seed: int) -> None:
    """Seed all global generators."""
    torch.manual_seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002
    random.seed(seed)


def generator_on(device: torch.device, generator_seed: int) -> torch.Generator:
    """Return a generator of a device, seeded."""
    return torch.Generator(device=device).manual_seed(generator_seed)
