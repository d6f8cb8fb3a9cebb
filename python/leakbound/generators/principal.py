"""Vectors as coordinates along principal components, and back."""

import math
from dataclasses import dataclass

import numpy as np

from leakbound._base.extras import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray

ROUNDING = 1e-9
"""Share of a variance that is 0 but for rounding."""


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components, and what they leave over: noise in all other directions."""

    mean: FloatArray
    noise: FloatArray
    directions: FloatArray

    @classmethod
    def fit(
        cls, flat: FloatArray, components: int, *, seed: int, what: str
    ) -> tuple["Principal", FloatArray]:
        """Find the components, and return the coordinates of the rows too."""
        with needs("ml", what):
            from sklearn.decomposition import PCA
        with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
            pca = PCA(
                min(components, *flat.shape),
                random_state=Purpose.PRINCIPAL_COMPONENTS.derived(seed, bits=32),
            ).fit(flat)
        reduced: FloatArray = pca.transform(flat)
        left = flat - pca.inverse_transform(reduced)
        return cls(pca.mean_, left.std(0), pca.components_), reduced

    def restore(self, reduced: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return rows with these coordinates."""
        noise = rng.standard_normal((len(reduced), self.mean.size)) * self.noise
        noise -= (noise @ self.directions.T) @ self.directions
        flat: FloatArray = self.mean + reduced @ self.directions + self._scale * noise
        return flat

    @property
    def _scale(self) -> float:
        """What gives noise the variance that the components leave over, once they take theirs."""
        wanted = float((self.noise**2).sum())
        left = wanted - float(((self.directions * self.noise) ** 2).sum())
        return math.sqrt(wanted / left) if left > ROUNDING * wanted else 0.0
