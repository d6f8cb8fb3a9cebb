"""Training of small classifiers: ever longer without privacy, or with DP-SGD."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from leakbound.demos._training import DELTA, Ticks, TrainedModel, quiet_opacus

__all__ = ["Recipe", "accuracy"]

GRADIENT_NORM = 1.0


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
        seconds = 0.0
        last = max(marks, default=0)
        for epoch in range(1, last + 1):
            began = perf_counter()
            _train_one_epoch(network, optimizer, loader)
            seconds += perf_counter() - began
            ticks(f"training, epoch {epoch} of {last}")
            if epoch in marks:
                name = "1 epoch" if epoch == 1 else f"{epoch} epochs"
                yield TrainedModel(name, network, epoch, None, seconds)

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
        began = perf_counter()
        network = self.new(seed)
        with quiet_opacus():
            private, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
                module=network,
                optimizer=torch.optim.SGD(network.parameters(), lr=self.private_learning_rate),
                data_loader=DataLoader(data, batch_size=self.private_batch_size, shuffle=True),
                target_epsilon=epsilon,
                target_delta=DELTA,
                epochs=epochs,
                max_grad_norm=GRADIENT_NORM,
            )
            for epoch in range(1, epochs + 1):
                _train_one_epoch(private, optimizer, loader)
                ticks(f"DP-SGD at ε = {epsilon:g}, epoch {epoch} of {epochs}")
        name = f"DP-SGD, ε = {epsilon:g}"
        seconds = perf_counter() - began
        return TrainedModel(name, private.to_standard_module(), epochs, epsilon, seconds)


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
