"""Training of small classifiers: ever longer without privacy, or with DP-SGD."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from leakbound.demos._private import train_privately
from leakbound.demos._training import Ticks, TrainedModel, train_to_marks

__all__ = ["Recipe", "accuracy"]


@dataclass(frozen=True)
class Recipe:
    """How to train a classifier.

    Parameters
    ----------
    network : callable
        Returns the network; its weights are drawn from torch's generator.
    batch_size : int
        Examples in a batch.
    learning_rate : float
        Of Adam.
    private_batch_size : int
        Mean number of examples in a batch of DP-SGD.
    private_learning_rate : float
        Of DP-SGD.
    """

    network: Callable[[], nn.Module]
    batch_size: int
    learning_rate: float
    private_batch_size: int = 256
    private_learning_rate: float = 0.5

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
        torch.manual_seed(seed)
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
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate)
        batches = BatchSampler(RandomSampler(data), self.batch_size, drop_last=False)
        loader: DataLoader[tuple[Tensor, ...]] = DataLoader(data, sampler=batches, batch_size=None)
        yield from train_to_marks(
            network, lambda: _train_one_epoch(network, optimizer, loader), marks, ticks
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
            torch.optim.SGD(network.parameters(), lr=self.private_learning_rate),
            data,
            _train_one_epoch,
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
    network: nn.Module, optimizer: torch.optim.Optimizer, loader: DataLoader[tuple[Tensor, ...]]
) -> None:
    network.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(inputs), targets)
        torch.autograd.backward(loss)
        optimizer.step()
