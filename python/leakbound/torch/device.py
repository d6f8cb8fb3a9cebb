"""Where a model runs while it is scored, and how it is left: as it was found."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn

from leakbound._base.checks import shown
from leakbound._base.streams import Purpose
from leakbound.errors import OptionError


@contextmanager
def evaluating(model: nn.Module, device: str | torch.device) -> Iterator[torch.device]:
    """Put `model` on a device and into evaluation mode, without gradients; undo all of it after."""
    # A training run goes on after it as if nothing had happened: modes, devices, random state.
    tensors_of_model = chain(model.parameters(), model.buffers())
    devices_of_model = list({tensor.device: None for tensor in tensors_of_model})
    chosen_device = choose(device, devices_of_model)
    is_moved_for_scoring = len(devices_of_model) == 1 and devices_of_model != [chosen_device]
    training_modes = [(submodule, submodule.training) for submodule in model.modules()]
    # Not inference mode: what a model caches here stays usable in later training.
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        try:
            model.eval()
            if is_moved_for_scoring:
                model.to(chosen_device)
            yield chosen_device
        finally:
            for submodule, was_training in training_modes:
                submodule.training = was_training
            if is_moved_for_scoring:
                model.to(devices_of_model[0])


@contextmanager
def seeded(purpose: Purpose, seed: int, device: str) -> Iterator[None]:
    """Draw what torch draws for a purpose, here and on a device; undo it after."""
    seeded_devices = []
    if device.startswith("cuda"):
        seeded_devices.append(device)
    with torch.random.fork_rng(devices=seeded_devices):
        torch.manual_seed(purpose.derived(seed))
        yield


@contextmanager
def reproducible() -> Iterator[None]:
    """Run on one thread, with random streams of our own: same seed, same bits."""
    # one thread is also fastest for networks this small
    thread_count_before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(thread_count_before)


def descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Make one step down the gradient of a loss."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()


def weights_digest(model: nn.Module) -> str:
    """Return a digest of a model's parameters and buffers."""
    hash_of_weights = hashlib.sha256()
    for weight_name, weight_tensor in model.state_dict().items():
        if isinstance(weight_tensor, Tensor):  # not what a module adds of another type
            flattened_weights = weight_tensor.detach().cpu().contiguous().flatten()
            described_weights = f"{weight_name}{weight_tensor.dtype}{tuple(weight_tensor.shape)}"
            hash_of_weights.update(described_weights.encode())
            hash_of_weights.update(flattened_weights.view(torch.uint8).numpy().data)
    return hash_of_weights.hexdigest()


def copied_to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy to `device`; to a GPU from pinned memory, so that the copy overlaps with computing."""
    is_copied_to_gpu = device.type == "cuda" and tensor.is_cpu
    if is_copied_to_gpu and not tensor.is_pinned():
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


# What models compute in; types of 8 bits only store weights.
_TYPES_THAT_MODELS_COMPUTE_IN = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def precision_of_model(model: nn.Module) -> torch.dtype | None:
    """Return the floating dtype of a model: that of its first parameter which has one."""
    for parameter in model.parameters():
        if parameter.dtype in _TYPES_THAT_MODELS_COMPUTE_IN:
            return parameter.dtype
    return None


def choose(device: str | torch.device, devices_of_model: list[torch.device]) -> torch.device:
    """Return the device that was named; where none was, that of the model or an accelerator."""
    if isinstance(device, str) and device == "auto":  # an array compares with nothing
        if len(devices_of_model) > 1 or (devices_of_model and devices_of_model[0].type != "cpu"):
            return devices_of_model[0]
        available_accelerator = None
        if torch.accelerator.is_available():
            available_accelerator = torch.accelerator.current_accelerator()
        return available_accelerator or torch.device("cpu")
    try:
        chosen_device = torch.device(device)
        torch.empty(0, device=chosen_device)
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError) as error:
        reason_of_failure = str(error).strip().splitlines()[0]
        raise OptionError(
            f"device {shown(device)} cannot be used: {reason_of_failure}; leave device='auto' or "
            "name another"
        ) from error
    if len(devices_of_model) > 1:
        raise OptionError(
            f"the model is spread over {', '.join(map(str, devices_of_model))}: leave device='auto'"
        )
    return chosen_device
