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
    """Return a classifier's mean cross-entropy.

    Parameters
    ----------
    network : nn.Module
        Returns logits.
    batch : tuple of Tensor
        Inputs and labels.

    Returns
    -------
    Tensor
        One number.
    """
    inputs, targets = batch
    return nn.functional.cross_entropy(network(inputs), targets)


@dataclass(frozen=True)
class Recipe:
    """How to train a network.

    Parameters
    ----------
    network : callable
        Returns the network; its weights are drawn from torch's generator.
    batch_size : int
        Examples in a batch.
    learning_rate : float
        Of the optimizer.
    private_batch_size : int
        Mean number of examples in a batch of DP-SGD.
    private_learning_rate : float
        Of DP-SGD.
    loss : callable
        What is made smaller.
    optimizer, private_optimizer : type
        Of torch: without privacy, and for DP-SGD.
    """

    network: Callable[[], nn.Module]
    batch_size: int
    learning_rate: float
    private_batch_size: int = 256
    private_learning_rate: float = 0.5
    loss: Loss = loss_of_labels
    optimizer: type[torch.optim.Optimizer] = torch.optim.Adam
    private_optimizer: type[torch.optim.Optimizer] = torch.optim.SGD

    def new(self, seed: int) -> nn.Module:
        """Return the network before training.

        Parameters
        ----------
        seed : int
            Of its weights.

        Returns
        -------
        nn.Module
            The network.
        """
        torch.manual_seed(Purpose.DEMO_NETWORK.derived(seed))
        return self.network()

    def overfit(
        self, data: TensorDataset, marks: list[int], seed: int, ticks: Ticks
    ) -> Iterator[TrainedModel]:
        """Train one network far past its best, and hand it out at each mark.

        Parameters
        ----------
        data : TensorDataset
            Training set.
        marks : list of int
            Epochs, increasing.
        seed : int
            Of weights and batches.
        ticks : Ticks
            Told of each epoch.

        Yields
        ------
        TrainedModel
            The same network every time, trained for longer.
        """
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
        """Train a network with DP-SGD: Poisson batches, clipped gradients, calibrated noise.

        Parameters
        ----------
        data : TensorDataset
            Training set.
        epsilon : float
            ε of the guarantee at δ = 1e-5.
        epochs : int
            Passes over the data.
        seed : int
            Of weights, batches and noise.
        ticks : Ticks
            Told of each epoch.

        Returns
        -------
        TrainedModel
            The network.
        """
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
    """Return the share of right predictions.

    Parameters
    ----------
    network : nn.Module
        A classifier.
    data : TensorDataset
        Inputs and labels.

    Returns
    -------
    float
        In [0, 1].
    """
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
