"""Images, or anything of fixed shape, as a mixture of normal distributions."""

from dataclasses import dataclass, field

import numpy as np

from leakbound._base.extras import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound._base.validation import instance, integer
from leakbound.generators.labels import FittedLabeler, Labeler
from leakbound.generators.principal import Principal
from leakbound.generators.protocol import Samples
from leakbound.generators.seeded import SeededSampler
from leakbound.generators.shapes import Shape
from leakbound.generators.tables import read_array, read_labels

RIDGE = 1e-3
"""Variance added to every component, as a share of the mean variance of the principal ones."""


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
        principal, reduced = Principal.fit(flat, self.components, seed=self.seed, what="PCAMixture")
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
