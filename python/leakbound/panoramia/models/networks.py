"""Small networks of baseline and attack: their training, their log-odds, and the one on signals."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.panoramia.examples import Sample
from leakbound.panoramia.models.trees import flat_signals
from leakbound.torch.device import descend, seeded

HIDDEN = 64
DECAY = 1e-3
SCORED = 1024  # examples scored at a time, to bound memory
LEARNING_RATE = 0.01  # of the network on signals
STEPS = 200  # each sees all signals


@dataclass(frozen=True, eq=False)
class SignalNetwork:
    """A network on what models say."""

    network: nn.Sequential | None
    mean: FloatArray
    spread: FloatArray

    @classmethod
    def train(
        cls, sample: Sample, seed: int, validation: Sample | None = None, device: str = "cpu"
    ) -> Self:
        """Train it, with all examples in every step."""
        values = flat_signals(sample.signals)
        mean = values.mean(axis=0)
        spread = values.std(axis=0) + 1e-9
        if not values.shape[1]:
            return cls(network=None, mean=mean, spread=spread)
        with seeded(Purpose.SIGNALS, seed=seed, device=device):
            network = nn.Sequential(
                nn.Linear(values.shape[1], HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1), nn.Flatten(0)
            ).to(device)
            model = cls(network=network, mean=mean, spread=spread)
            inputs = [model.inputs(sample.signals)]
            targets = membership_targets(sample)
            optimizer = adamw_optimizer(network, LEARNING_RATE)
            full_batch_step = partial(
                gradient_step, network, optimizer=optimizer, inputs=inputs, targets=targets
            )
            if validation is None:
                for _ in range(STEPS):
                    full_batch_step()
            else:
                held_out_inputs = [model.inputs(validation.signals)]
                held_out_targets = membership_targets(validation)
                train_to_best(
                    network,
                    rounds=STEPS,
                    train=lambda _: full_batch_step(),
                    loss=lambda: mean_logistic_loss(network, held_out_inputs, held_out_targets),
                )
        return model

    def inputs(self, signals: FloatArray) -> Tensor:
        """Return what the network takes."""
        # Standardised as the training data were.
        values = (flat_signals(signals) - self.mean) / self.spread
        return torch.tensor(values, dtype=torch.float32)

    def logits(self, signals: FloatArray) -> list[FloatArray]:
        """Return the log-odds of membership, or nothing where there is no model."""
        if self.network is None:
            return []
        return [network_log_odds(self.network, [self.inputs(signals)])]


def membership_targets(sample: Sample) -> Tensor:
    """Return membership as a network learns it."""
    return torch.tensor(sample.member, dtype=torch.float32)


def adamw_optimizer(network: nn.Module, learning_rate: float, decay: float = DECAY) -> Optimizer:
    """Return the optimizer of a network: AdamW."""
    return AdamW(network.parameters(), lr=learning_rate, weight_decay=decay)


def train_to_best(
    network: nn.Module, rounds: int, train: Callable[[int], object], loss: Callable[[], float]
) -> None:
    """Train a network round by round, and leave it as it was where its loss was smallest."""
    best = copy.deepcopy(network.state_dict())
    least = float("inf")
    for number in range(1, rounds + 1):
        train(number)
        now = loss()
        if now < least:
            best = copy.deepcopy(network.state_dict())
            least = now
    network.load_state_dict(best)


def train_one_epoch(
    network: nn.Module,
    optimizer: Optimizer,
    inputs: Sequence[Tensor],
    targets: Tensor,
    *,
    batch: int,
    schedule: LRScheduler | None = None,
) -> None:
    """Train a network for one pass over the examples, in random batches."""
    network.train()
    for rows in torch.split(torch.randperm(len(targets)), batch):
        gradient_step(
            network,
            optimizer=optimizer,
            inputs=[part[rows] for part in inputs],
            targets=targets[rows],
        )
        if schedule is not None:
            schedule.step()


def gradient_step(
    network: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor
) -> None:
    """Make one step down the gradient of the logistic loss."""
    device = next(network.parameters()).device
    logits = network(*(part.to(device) for part in inputs))
    descend(optimizer, binary_cross_entropy_with_logits(logits, targets.to(device)))


def mean_logistic_loss(network: nn.Module, inputs: Sequence[Tensor], targets: Tensor) -> float:
    """Return a network's mean logistic loss."""
    logits = torch.from_numpy(network_log_odds(network, inputs))
    return float(binary_cross_entropy_with_logits(logits, targets.double()))


def network_log_odds(network: nn.Module, inputs: Sequence[Tensor]) -> FloatArray:
    """Return a network's log-odds, a limited number of examples at a time."""
    network.eval()
    device = next(network.parameters()).device
    with torch.no_grad():
        parts = [
            network(*(part[rows].to(device) for part in inputs)).cpu()
            for rows in torch.split(torch.arange(len(inputs[0])), SCORED)
        ]
    return torch.cat(parts).numpy().astype(np.float64)
