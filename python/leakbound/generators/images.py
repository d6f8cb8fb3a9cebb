"""Images, or anything of fixed shape: a mixture of normal distributions, and drawn labels."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance, integer
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput
from leakbound.errors import InputError, InputTypeError
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import FittedGenerator, Samples

ROUNDING = 1e-9  # share of a variance that is 0 but for rounding
RIDGE = 1e-3  # variance added to every component, in mean variances of the principal ones


@dataclass(frozen=True)
class Labeler:
    """Adds labels to generated examples, drawn from their distribution given the example.

    A classifier learns the probability of each label from the members of the generator, and labels
    are *drawn* from it. The likeliest label of each would be a giveaway: real labels are noisy.

    Parameters
    ----------
    classifier : object, optional
        An unfitted classifier of scikit-learn with `predict_proba`, well calibrated; by default a
        logistic regression on standardised values.
    """

    classifier: Any = None

    def __post_init__(self) -> None:
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise InputTypeError(
                f"classifier must be an unfitted classifier, got {self.classifier!r}"
            )

    def fit(self, values: ArrayInput, labels: ArrayInput) -> "FittedLabeler":
        """Learn labels (integers, booleans or strings) from the generator's members."""
        array = read_array(values)
        classes = read_labels(labels, len(array))
        if classes is None:
            raise InputError("a labeler needs labels, got None")
        # One label needs no classifier, and scikit-learn's refuse to learn from it.
        names = np.unique(classes)
        if names.size == 1:
            return FittedLabeler(None, names)
        with needs("ml", "Labeler"):
            from sklearn.base import clone
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        model = logistic if self.classifier is None else clone(self.classifier)
        model.fit(array.reshape(len(array), -1), classes)
        return FittedLabeler(model, names)


@dataclass(frozen=True, eq=False)
class FittedLabeler:
    """What `Labeler.fit` returns."""

    model: Any
    classes: NDArray[Any]

    def label(self, values: NDArray[Any], *, seed: int) -> Samples:
        """Return examples with a label drawn for each."""
        chances = np.ones((len(values), 1))
        if self.model is not None:
            chances = np.asarray(self.model.predict_proba(values.reshape(len(values), -1)))
        dice = Purpose.LABELS.rng(seed).random(len(values))[:, None]
        return Samples(values, self.classes[(dice >= chances.cumsum(1)[:, :-1]).sum(1)])


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

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Find components and mixture, from at least 20 images: see `Generator.fit`."""
        array = read_array(members)
        classes = read_labels(labels, len(array))
        with needs("ml", "PCAMixture"):
            from sklearn.decomposition import PCA
            from sklearn.mixture import GaussianMixture
        flat = array.reshape(len(array), -1).astype(np.float64)
        with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
            pca = PCA(
                min(self.components, *flat.shape),
                random_state=Purpose.PRINCIPAL_COMPONENTS.derived(self.seed, bits=32),
            ).fit(flat)
        # 1. A mixture of normals on the principal components.
        reduced = pca.transform(flat)
        mixture = GaussianMixture(
            min(self.mixtures, len(flat) // 20),
            reg_covar=RIDGE * (float(reduced.var(0).mean()) or 1.0),
            random_state=Purpose.MIXTURE_FIT.derived(self.seed, bits=32),
            max_iter=100,
            tol=1e-2,
        ).fit(reduced)
        # 2. What the components leave over is noise in every pixel.
        noise = (flat - pca.inverse_transform(reduced)).std(0)
        wanted = float((noise**2).sum())
        left = wanted - float(((pca.components_ * noise) ** 2).sum())
        scale = np.sqrt(wanted / left) if left > ROUNDING * wanted else 0.0
        labeler = None if classes is None else self.labeler.fit(array, classes)
        limits, kind, shape = (array.min(), array.max()), array.dtype, array.shape[1:]
        roots = np.linalg.cholesky(mixture.covariances_)

        def draw(n: int, seed: int) -> Samples:
            rng = Purpose.MIXTURE_SAMPLES.rng(seed)
            weights, directions = mixture.weights_, pca.components_
            which = rng.choice(weights.size, n, p=weights / weights.sum())
            drawn = mixture.means_[which]
            for k in range(weights.size):
                rows = np.flatnonzero(which == k)
                drawn[rows] += rng.standard_normal((rows.size, drawn.shape[1])) @ roots[k].T
            left = rng.standard_normal((n, noise.size)) * noise
            # Noise has no part in the components, which the mixture draws.
            left -= (left @ directions.T) @ directions
            # Within the members' range, and whole where they are.
            flat = np.clip(pca.mean_ + drawn @ directions + scale * left, *limits)
            whole = flat if kind.kind == "f" else np.round(flat)
            values = whole.astype(kind).reshape(-1, *shape)
            return Samples(values) if labeler is None else labeler.label(values, seed=seed)

        return FittedGenerator(draw)
