"""Training of small networks, reproducibly: ever longer without privacy, or with DP-SGD."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from leakbound.torch.device import descend
from streams import derived

# Moves a bar of `leakbound._base.console`, as in ``move(description="epoch 1 of 2", advance=1)``.
Move: TypeAlias = Callable[..., None]
# Takes a network and a batch, and returns the mean loss.
Loss: TypeAlias = Callable[[nn.Module, tuple[Tensor, ...]], Tensor]
Batches: TypeAlias = DataLoader[tuple[Tensor, ...]]

DELTA = 1e-5  # of every model trained with DP-SGD
GRADIENT_NORM = 1.0  # where DP-SGD clips the gradient of an example


@dataclass(frozen=True)
class TrainedModel:
    """A network at some moment of its training."""

    name: str
    network: nn.Module
    epochs: int
    epsilon: float | None


def move_no_bar(**_: object) -> None:
    """Show nothing of the training."""


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
        torch.manual_seed(derived("demos/network", seed))
        return self.network()

    def overfit(
        self, data: TensorDataset, marks: list[int], seed: int, move: Move = move_no_bar
    ) -> Iterator[TrainedModel]:
        """Train one network far past its best, and hand it out at each mark."""
        network = self.new(seed)
        optimizer = self.optimizer(network.parameters(), lr=self.learning_rate)  # type: ignore[call-arg]
        batches = BatchSampler(RandomSampler(data), self.batch_size, drop_last=False)
        loader: Batches = DataLoader(data, sampler=batches, batch_size=None)
        last_epoch = max(marks, default=0)
        for epoch in range(1, last_epoch + 1):
            self._train_one_epoch(network, optimizer=optimizer, loader=loader)
            move(description=f"training, epoch {epoch} of {last_epoch}", advance=1)
            if epoch in marks:
                name = f"{epoch} epochs"
                if epoch == 1:
                    name = "1 epoch"
                yield TrainedModel(name=name, network=network, epochs=epoch, epsilon=None)

    def privately(
        self,
        data: TensorDataset,
        epsilon: float,
        epochs: int,
        seed: int,
        move: Move = move_no_bar,
    ) -> TrainedModel:
        """Train a network with DP-SGD: Poisson batches, clipped gradients, calibrated noise."""
        network = self.new(seed)
        with quiet_opacus():
            private, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
                module=network,
                optimizer=self.private_optimizer(
                    network.parameters(),
                    lr=self.private_learning_rate,  # type: ignore[call-arg]
                ),
                data_loader=DataLoader(data, batch_size=self.private_batch_size, shuffle=True),
                target_epsilon=epsilon,
                target_delta=DELTA,
                epochs=epochs,
                max_grad_norm=GRADIENT_NORM,
            )
            for epoch in range(1, epochs + 1):
                self._train_one_epoch(private, optimizer=optimizer, loader=loader)
                description = f"DP-SGD at ε = {epsilon:g}, epoch {epoch} of {epochs}"
                move(description=description, advance=1)
        return TrainedModel(
            name=f"DP-SGD, ε = {epsilon:g}",
            network=private.to_standard_module(),
            epochs=epochs,
            epsilon=epsilon,
        )

    def _train_one_epoch(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, loader: Batches
    ) -> None:
        network.train()
        for batch in loader:
            descend(optimizer, self.loss(network, tuple(batch)))


def classifier_of_images(pixels: int) -> Recipe:
    """Return how ten classes of images with so many pixels are learnt."""

    def network() -> nn.Module:
        return nn.Sequential(nn.Linear(pixels, 128), nn.Tanh(), nn.Linear(128, 10))

    return Recipe(network, batch_size=64, learning_rate=3e-3)


def accuracy(network: nn.Module, data: TensorDataset) -> float:
    """Return the share of right predictions."""
    inputs, targets = data.tensors
    network.eval()
    with torch.no_grad():
        is_correct = network(inputs).argmax(1) == targets
    return float(is_correct.double().mean())


@contextmanager
def quiet_opacus() -> Iterator[None]:
    """Silence what opacus warns of on every run and what does not matter here."""
    with warnings.catch_warnings():
        # A guarantee against an adversary who predicts the generator needs another package.
        warnings.filterwarnings("ignore", "Secure RNG turned off", UserWarning)
        # The inputs of a first layer need no gradient; per-example gradients are unaffected.
        warnings.filterwarnings("ignore", "Full backward hook is firing", UserWarning)
        # The noise is first bracketed with a coarse accountant, then found with an exact one.
        warnings.filterwarnings("ignore", "Optimal order is the", UserWarning)
        yield
