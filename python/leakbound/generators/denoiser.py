r"""A small diffusion model of vectors, in PyTorch.

Data :math:`x` of unit variance is blurred to :math:`y = x + \sigma n` with normal noise n, and a
network D learns to undo it: :math:`D(y, \sigma) \approx E[x \mid y]`. From pure noise at a large
:math:`\sigma`, following :math:`\mathrm dy / \mathrm d\sigma = (y - D(y, \sigma)) / \sigma` down
to :math:`\sigma = 0` gives samples. Inputs, outputs and weights are scaled such that the network F
in

.. math:: D(y, \sigma) = \frac{y}{1 + \sigma^2}
          + \frac{\sigma}{\sqrt{1 + \sigma^2}} F\Bigl(\frac{y}{\sqrt{1 + \sigma^2}}, \sigma\Bigr)

has targets of unit variance at every :math:`\sigma`; F = 0 is exact for normal data, so that only
what is not normal has to be learnt.

References
----------
T. Karras, M. Aittala, T. Aila, S. Laine, "Elucidating the Design Space of Diffusion-Based
Generative Models", 2022, arXiv:2206.00364.
"""

import copy
import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from leakbound._base.streams import Purpose

__all__ = ["Denoiser", "follow", "train"]

BATCH = 256
LEARNING_RATE = 1e-3
AVERAGED = 0.999
"""How much of the running mean of the weights is kept at each step, after the first few hundred."""
FREQUENCIES = 16
TYPICAL, SPREAD = -1.2, 1.2
"""Mean and standard deviation of the log of the noise in training."""
MOST, LEAST = 30.0, 0.002
"""Noise that sampling starts from, and the last before none."""
BEND = 7.0
"""The higher, the more of the steps are at little noise."""
STEPS = 18
"""Steps of sampling, of two evaluations each."""
AT_ONCE = 4096
"""Most samples drawn at a time, to bound memory."""


class Denoiser(nn.Module):
    """The network: residual blocks that are told the amount of noise."""

    frequencies: Tensor

    def __init__(self, values: int, width: int, blocks: int) -> None:
        super().__init__()
        self.enter = nn.Linear(values, width)
        self.noise = nn.Sequential(
            nn.Linear(2 * FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(blocks)
        )
        self.leave = nn.Linear(width, values)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        self.register_buffer("frequencies", 2 * math.pi * torch.randn(FREQUENCIES))

    def forward(self, blurred: Tensor, sigma: Tensor) -> Tensor:
        """Return D, the mean of what may have been blurred."""
        total = 1 + sigma**2
        return blurred / total + sigma / total.sqrt() * self.learnt(blurred, sigma)

    def learnt(self, blurred: Tensor, sigma: Tensor) -> Tensor:
        """Return F, what the network adds to the answer for normal data."""
        angle = sigma.log() / 4 * self.frequencies
        level = self.noise(torch.cat([angle.sin(), angle.cos()], 1))
        hidden = self.enter(blurred / (1 + sigma**2).sqrt())
        for block in self.blocks:
            hidden = hidden + block(hidden + level)
        found: Tensor = self.leave(hidden)
        return found


def train(data: Tensor, *, steps: int, width: int, blocks: int, seed: int) -> Denoiser:
    """Train a denoiser on the device of the data."""
    torch.manual_seed(Purpose.DENOISER.derived(seed))
    network = Denoiser(data.shape[1], width, blocks).to(data.device)
    mean = copy.deepcopy(network)
    averages: list[Tensor] = list(mean.parameters())
    weights: list[Tensor] = list(network.parameters())
    optimizer = torch.optim.Adam(weights, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        clear = data[torch.randint(len(data), (BATCH,)).to(data.device)]
        sigma = (TYPICAL + SPREAD * torch.randn(BATCH, 1)).exp().to(data.device)
        blurred = clear + sigma * torch.randn(clear.shape).to(data.device)
        total = 1 + sigma**2
        target = (clear - blurred / total) / (sigma / total.sqrt())
        loss = nn.functional.mse_loss(network.learnt(blurred, sigma), target)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        keep = min(AVERAGED, (step + 1) / (step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(averages, weights, 1 - keep)
    return mean.eval()


def follow(network: Denoiser, noise: Tensor) -> Tensor:
    """Turn normal noise into samples, by Heun's second-order steps."""
    share = torch.linspace(0, 1, STEPS)
    levels = (MOST ** (1 / BEND) + share * (LEAST ** (1 / BEND) - MOST ** (1 / BEND))) ** BEND
    with torch.no_grad():
        return torch.cat([_descend(network, part, levels) for part in torch.split(noise, AT_ONCE)])


def _descend(network: Denoiser, noise: Tensor, levels: Tensor) -> Tensor:
    def slope(point: Tensor, sigma: Tensor) -> Tensor:
        clear: Tensor = network(point, sigma.expand(len(point), 1))
        return (point - clear) / sigma

    levels = levels.to(noise.device)
    point = noise * levels[0]
    for here, there in pairwise(levels.unbind()):
        down = slope(point, here)
        guess = point + (there - here) * down
        point = point + (there - here) * (down + slope(guess, there)) / 2
    found: Tensor = network(point, levels[-1].expand(len(point), 1))
    return found
