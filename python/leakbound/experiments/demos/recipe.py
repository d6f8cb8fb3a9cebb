"""Training of small networks: ever longer without privacy, or with DP-SGD."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from leakbound._base.streams import Purpose
from leakbound.experiments.demos.private import train_privately
from leakbound.experiments.demos.training import Ticks, TrainedModel, train_to_marks

__all__ = ["Loss", "Recipe", "accuracy", "loss_of_labels"]

Loss: TypeAlias = Callable[[nn.Module, tuple[Tensor, ...]], Tensor]
"""Takes a network and a batch, and returns the mean loss."""


def loss_of_labels(network: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return a classifier's mean cross-entropy."""
    inputs, targets = batch
    return nn.functional.cross_entropy(network(inputs), targets)


@dataclass(frozen=True)
class Recipe:
    """How to train a network."""

    network: Callable[[], nn.Module]
    batch_size: int
    learning_rate: float
    private_batch_size: int = 256
    private_learning_rate: float = 0.5
    loss: Loss = loss_of_labels
    optimizer: type[torch.optim.Optimizer] = torch.optim.Adam
    private_optimizer: type[torch.optim.Optimizer] = torch.optim.SGD

    def new(self, seed: int) -> nn.Module:
        """Return the network before training."""
        torch.manual_seed(Purpose.DEMO_NETWORK.derived(seed))
        return self.network()

    def overfit(
        self, data: TensorDataset, marks: list[int], seed: int, ticks: Ticks
    ) -> Iterator[TrainedModel]:
        """Train one network far past its best, and hand it out at each mark."""
        network = self.new(seed)
        optimizer = self.optimizer(network.parameters(), lr=self.learning_rate)  # type: ignore[call-arg]
        batches = BatchSampler(RandomSampler(data), self.batch_size, drop_last=False)
        loader: DataLoader[tuple[Tensor, ...]] = DataLoader(data, sampler=batches, batch_size=None)
        yield from train_to_marks(
            network, lambda: _train_one_epoch(self.loss, network, optimizer, loader), marks, ticks
        )

    def privately(
        self, data: TensorDataset, epsilon: float, epochs: int, seed: int, ticks: Ticks
    ) -> TrainedModel:
        """Train a network with DP-SGD: Poisson batches, clipped gradients, calibrated noise."""
        network = self.new(seed)
        return train_privately(
            network,
            self.private_optimizer(network.parameters(), lr=self.private_learning_rate),  # type: ignore[call-arg]
            data,
            partial(_train_one_epoch, self.loss),
            batch_size=self.private_batch_size,
            epsilon=epsilon,
            epochs=epochs,
            ticks=ticks,
        )


def accuracy(network: nn.Module, data: TensorDataset) -> float:
    """Return the share of right predictions."""
    inputs, targets = data.tensors
    network.eval()
    with torch.no_grad():
        right = network(inputs).argmax(1) == targets
    return float(right.double().mean())


def _train_one_epoch(
    loss: Loss,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[tuple[Tensor, ...]],
) -> None:
    network.train()
    for batch in loader:
        optimizer.zero_grad()
        torch.autograd.backward(loss(network, tuple(batch)))
        optimizer.step()
