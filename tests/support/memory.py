"""People of the census, and targets: one that leaks all it can, and one of any size."""

import numpy as np
import torch
from torch import Tensor, nn

from census import Census, features

__all__ = ["Memory", "mlp", "people"]


def people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw people and their labels."""
    drawn = Census().sample(n, seed=seed)
    assert drawn.labels is not None
    return drawn.values, drawn.labels


def mlp() -> nn.Module:
    """Return a small classifier of people."""
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))


class Memory(nn.Module):
    """Memorises the labels of its members, and guesses all others."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor(features(x)), requires_grad=False)
        self.y = nn.Parameter(torch.tensor(y, dtype=torch.float32), requires_grad=False)

    def forward(self, inputs: Tensor) -> Tensor:
        distance, nearest = torch.cdist(inputs, self.x).min(1)
        sure = 4 * (distance < 1e-3) * (2 * self.y[nearest] - 1)
        return torch.stack([-sure, sure], 1)
