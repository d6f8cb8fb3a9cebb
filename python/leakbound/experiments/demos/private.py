"""DP-SGD: Poisson batches, clipped gradients, calibrated noise."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeAlias

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from leakbound.experiments.demos.training import DELTA, Ticks, TrainedModel, quiet_opacus

__all__ = ["train_privately"]

GRADIENT_NORM = 1.0

Epoch: TypeAlias = Callable[[nn.Module, torch.optim.Optimizer, DataLoader[tuple[Tensor, ...]]], Any]
"""Takes a network once through the batches."""


def train_privately(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: TensorDataset,
    train_one_epoch: Epoch,
    *,
    batch_size: int,
    epsilon: float,
    epochs: int,
    ticks: Ticks,
) -> TrainedModel:
    """Train a network with DP-SGD."""
    began = perf_counter()
    with quiet_opacus():
        private, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
            module=network,
            optimizer=optimizer,
            data_loader=DataLoader(data, batch_size=batch_size, shuffle=True),
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=epochs,
            max_grad_norm=GRADIENT_NORM,
        )
        for epoch in range(1, epochs + 1):
            train_one_epoch(private, optimizer, loader)
            ticks(f"DP-SGD at ε = {epsilon:g}, epoch {epoch} of {epochs}")
    name = f"DP-SGD, ε = {epsilon:g}"
    return TrainedModel(name, private.to_standard_module(), epochs, epsilon, perf_counter() - began)
