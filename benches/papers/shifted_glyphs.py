"""Glyphs whose fonts differ between members and non-members: images with a known shift.

A stand-in for photographs of other places. No feature states the font: a network that was trained
to tell fonts, on images that nobody audits, gives features to learn propensities from.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import TensorDataset

from glyphs import FONTS, noisy_labels, photographs
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.demo.training import Recipe, Ticks
from leakbound.torch import score
from leakbound.torch.placement import reproducible
from streams import generator
from targets import IMAGE_CLASSIFIER

__all__ = ["ShiftedGlyphs"]

PLACES = np.array([FONTS.index("DejaVuSans-Bold"), FONTS.index("STIXGeneral")])
"""The fonts of all images: strong strokes, which members favour, and thin ones."""
STRENGTH = 2.5
"""Log-odds of membership of an image in the bold font, at full shift."""
EMBEDDED = 50
"""Numbers in an embedding, as many as the paper keeps of its own."""
PUBLIC = 12_000
EMBEDDING_EPOCHS, TARGET_EPOCHS = 8, 40

_EMBEDDER = Recipe(
    lambda: nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, EMBEDDED),
        nn.Tanh(),
        nn.Linear(EMBEDDED, len(FONTS)),
    ),
    batch_size=128,
    learning_rate=2e-3,
)


@dataclass(frozen=True)
class ShiftedGlyphs:
    """Members and non-members in different fonts, and scores by a network that overfits."""

    scores: FloatArray
    member: BoolArray
    log_odds: FloatArray
    features: FloatArray
    holdout_features: FloatArray
    holdout_member: BoolArray

    @property
    def propensity(self) -> FloatArray:
        """The probability of membership given the font."""
        return expit(self.log_odds)

    @classmethod
    def create(cls, m: int, *, shift: float, seed: int) -> "ShiftedGlyphs":
        """Draw images, toss for membership, train on the members and score."""
        rng = generator("demos/shifted-glyphs", seed)
        thin, digits = rng.integers(0, 2, 2 * m), rng.integers(0, 10, 2 * m)
        odds: FloatArray = float(1 - shift) * STRENGTH * np.where(thin, -1.0, 1.0)
        member = rng.random(2 * m) < expit(odds)
        images, labels = photographs(digits, PLACES[thin], rng), noisy_labels(digits, rng)
        data = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
        chosen = torch.from_numpy(np.flatnonzero(member))
        with reproducible():
            network = _trained(IMAGE_CLASSIFIER, TensorDataset(*data[chosen]), TARGET_EPOCHS, seed)
            audited = data[torch.arange(m)]
            scores = score(network, audited, device="cpu", progress=False).values
        features = _embedded(images)
        return cls(scores, member[:m], odds[:m], features[:m], features[m:], member[m:])


def _trained(recipe: Recipe, data: TensorDataset, epochs: int, seed: int) -> nn.Module:
    (model,) = recipe.overfit(data, [epochs], seed, Ticks(None, epochs))
    return model.network


@cache
def _embedder() -> nn.Module:
    """Train a network to tell all fonts, on images that nobody audits."""
    rng = generator("demos/embedder", 0)
    fonts, digits = rng.integers(0, len(FONTS), PUBLIC), rng.integers(0, 10, PUBLIC)
    images = photographs(digits, fonts, rng)
    data = TensorDataset(torch.from_numpy(images), torch.from_numpy(fonts))
    with reproducible():
        network = _trained(_EMBEDDER, data, EMBEDDING_EPOCHS, seed=0)
    assert isinstance(network, nn.Sequential)
    return network[:-1].eval()


def _embedded(images: NDArray[np.float32]) -> FloatArray:
    network = _embedder()
    with reproducible(), torch.no_grad():
        features: FloatArray = network(torch.from_numpy(images)).numpy().astype(np.float64)
    return features
