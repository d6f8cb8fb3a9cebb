"""One batch on its way through a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from leakbound.torch.placement import precision, to_device


@dataclass(frozen=True)
class Batch:
    """Inputs and targets as the data has them, and which rows of the data they are."""

    inputs: Tensor
    others: Mapping[str, Tensor]
    targets: Tensor
    device: torch.device
    first: int
    ids: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.inputs)

    def through(self, model: nn.Module, parameters: dict[str, Tensor] | None = None) -> Any:
        """Return what `model` answers; inputs in float64 are given its precision."""
        wanted = precision(model)
        others = {name: self._ready(tensor, wanted) for name, tensor in self.others.items()}
        inputs = self._ready(self.inputs, wanted)
        if parameters is None:
            return model(inputs, **others)
        return functional_call(model, parameters, (inputs,), others)

    def labels(self) -> Tensor:
        """Return the targets, on the device."""
        return to_device(self.targets, self.device)

    def _ready(self, tensor: Tensor, wanted: torch.dtype) -> Tensor:
        tensor = tensor.to(wanted) if tensor.dtype == torch.float64 else tensor
        return to_device(tensor, self.device)
