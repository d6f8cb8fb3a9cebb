"""Images, or anything of fixed shape, as a mixture of normal distributions."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance, integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.generators.labels import FittedLabeler, Labeler
from leakbound.generators.protocol import Samples, SeededSampler
from leakbound.generators.tables import read_array, read_labels

ROUNDING = 1e-9
"""Share of a variance that is 0 but for rounding."""
RIDGE = 1e-3
"""Variance added to every component, as a share of the mean variance of the principal ones."""


@dataclass(frozen=True)
class Shape:
    """Shape, dtype and range of the members."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: float
    high: float

    @classmethod
    def of(cls, members: NDArray[Any]) -> "Shape":
        """Describe members."""
        return cls(members.shape[1:], members.dtype, float(members.min()), float(members.max()))

    def samples(self, flat: NDArray[Any], labeler: FittedLabeler | None, seed: int) -> Samples:
        """Return rows as samples: within the range, whole where members are, and labelled."""
        rows = np.clip(flat, self.low, self.high)
        if self.dtype.kind != "f":
            rows = np.round(rows)
        values = rows.astype(self.dtype).reshape(-1, *self.shape)
        return Samples(values, None if labeler is None else labeler.sample(values, seed=seed))


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components, and what they leave over: noise in all other directions."""

    mean: FloatArray
    noise: FloatArray
    directions: FloatArray

    @classmethod
    def fit(cls, flat: FloatArray, components: int, *, seed: int) -> tuple["Principal", FloatArray]:
        """Find the components, and return the coordinates of the rows too."""
        with needs("ml", "PCAMixture"):
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


@dataclass(frozen=True, kw_only=True)
class PCAMixture:
    """Images: a mixture of normal distributions on principal components.

    Each image becomes its first principal components, whose distribution is a mixture of normals
    with full covariances; what is left over is independent noise in every pixel. It is fitted in
    seconds and has no network to train, and suits small images.

    Parameters
    ----------
    components : int
        Most principal components.
    mixtures : int
        Most normal distributions; at least 20 members for each.
    labeler : Labeler
        What labels samples, if the members have labels.
    seed : int
        Seed of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).normal(size=(200, 4, 4)).astype(np.float32)
    >>> PCAMixture(components=5, mixtures=3).fit(images).sample(10, seed=0)
    Samples(n=10, shape=(4, 4))
    """

    components: int = 40
    mixtures: int = 40
    labeler: Labeler = field(default_factory=Labeler)
    seed: int = 0

    def __post_init__(self) -> None:
        integer(self.components, "components", least=1)
        integer(self.mixtures, "mixtures", least=1)
        instance(self.labeler, "labeler", Labeler)
        integer(self.seed, "seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedPCAMixture":
        """Find components and mixture, from at least 20 images: see `Generator.fit`."""
        array = read_array(members)
        classes = read_labels(labels, len(array))
        with needs("ml", "PCAMixture"):
            from sklearn.mixture import GaussianMixture
        flat = array.reshape(len(array), -1).astype(np.float64)
        principal, reduced = Principal.fit(flat, self.components, seed=self.seed)
        mixture = GaussianMixture(
            min(self.mixtures, len(flat) // 20),
            reg_covar=RIDGE * (float(reduced.var(0).mean()) or 1.0),
            random_state=Purpose.MIXTURE_FIT.derived(self.seed, bits=32),
            max_iter=100,
            tol=1e-2,
        ).fit(reduced)
        return FittedPCAMixture(
            shape=Shape.of(array),
            principal=principal,
            weights=mixture.weights_,
            centres=mixture.means_,
            roots=np.linalg.cholesky(mixture.covariances_),
            labeler=None if classes is None else self.labeler.fit(array, classes),
        )


@dataclass(frozen=True, eq=False)
class FittedPCAMixture(SeededSampler):
    """What `PCAMixture.fit` returns."""

    shape: Shape
    principal: Principal
    weights: FloatArray
    centres: FloatArray
    roots: FloatArray
    labeler: FittedLabeler | None

    def _draw(self, n: int, seed: int) -> Samples:
        rng = Purpose.MIXTURE_SAMPLES.rng(seed)
        which = rng.choice(self.weights.size, n, p=self.weights / self.weights.sum())
        reduced = self.centres[which]
        for k in range(self.weights.size):
            rows = np.flatnonzero(which == k)
            reduced[rows] += rng.standard_normal((rows.size, reduced.shape[1])) @ self.roots[k].T
        return self.shape.samples(self.principal.restore(reduced, rng), self.labeler, seed)
