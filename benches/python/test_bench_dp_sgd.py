"""A step of DP-SGD that is watched beside one that is not, of the same model and batches."""

import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch.nn import functional

import leakbound as lb
from convolutional import convolutional_network
from ratios import Compare

ROUNDS = 11
BATCH = 256
RATE = 0.05
CANARIES = 1_000
CLASSES = 10
STEPS = {"1,000 canaries, 10,000 steps": 10_000, "1,000 canaries, 400 steps": 400}
"""Of 10,000 steps each has 20 step canaries by default, of 400 it has 200."""


class Training:
    """A convolutional network of 66,000 parameters, and steps of DP-SGD on one batch."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = GradSampleModule(convolutional_network(CLASSES))
        self.optimizer = DPOptimizer(
            torch.optim.SGD(self.model.parameters(), lr=0.1),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            expected_batch_size=BATCH,
        )
        self.pixels = torch.randn(BATCH, 3, 32, 32)
        self.labels = torch.randint(CLASSES, (BATCH,))

    def step(self) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(self.pixels), self.labels)
        torch.autograd.backward(loss)
        self.optimizer.step()


@pytest.mark.parametrize("name", STEPS)
def test_watched_steps(compare: Compare, name: str) -> None:
    torch.set_num_threads(1)
    watched = Training()
    plain = Training()
    with lb.watch_dp_sgd(
        watched.optimizer, canaries=CANARIES, sampling_rate=RATE, max_steps=STEPS[name], seed=0
    ) as watch:
        watched.step()
        plain.step()
        ratio = compare(
            name,
            watched.step,
            peer="a step without canaries",
            run_peer=plain.step,
            size=BATCH,
            rounds=ROUNDS,
        )
    assert watch.observed.steps > ROUNDS
    assert ratio.ratio < 1.1
