"""Images, or anything of fixed shape: a mixture of normals, files of other generators, labels."""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import instance, integer
from leakbound._base.files import open_archive, read_array_file
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, FloatArray, PathInput
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import FittedGenerator, Samples, joined

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

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

    classifier: "ClassifierMixin | None" = None

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
            return FittedLabeler(model=None, classes=names)
        with needs("ml", "Labeler"):
            from sklearn.base import clone
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        model = logistic
        if self.classifier is not None:
            model = clone(self.classifier)
        model.fit(array.reshape(len(array), -1), classes)
        return FittedLabeler(model=model, classes=names)


@dataclass(frozen=True, eq=False)
class FittedLabeler:
    """What `Labeler.fit` returns."""

    model: Any
    classes: AnyArray

    def label(self, values: AnyArray, *, seed: int) -> Samples:
        """Return examples with a label drawn for each."""
        chances = np.ones((len(values), 1))
        if self.model is not None:
            chances = np.asarray(self.model.predict_proba(values.reshape(len(values), -1)))
        dice = Purpose.LABELS.rng(seed).random(len(values))[:, None]
        return Samples(
            values=values, labels=self.classes[(dice >= chances.cumsum(1)[:, :-1]).sum(1)]
        )


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
        integer(self.components, name="components", least=1)
        integer(self.mixtures, name="mixtures", least=1)
        instance(self.labeler, name="labeler", types=Labeler)
        integer(self.seed, name="seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Find components and mixture, from at least 20 images: see `Generator.fit`."""
        array = read_array(members)
        classes = read_labels(labels, len(array))
        flat = array.reshape(len(array), -1).astype(np.float64)
        # 1. A mixture of normals on the principal components.
        pca, mixture = self._on_components(flat)
        reduced = pca.transform(flat)
        # 2. What the components leave over is noise in every pixel.
        noise = (flat - pca.inverse_transform(reduced)).std(0)
        wanted = float((noise**2).sum())
        left = wanted - float(((pca.components_ * noise) ** 2).sum())
        scale = 0.0
        if left > ROUNDING * wanted:
            scale = np.sqrt(wanted / left)
        labeler = None
        if classes is not None:
            labeler = self.labeler.fit(array, classes)
        limits = (array.min(), array.max())
        kind = array.dtype
        shape = array.shape[1:]
        roots = np.linalg.cholesky(mixture.covariances_)
        directions = pca.components_

        def draw(n: int, seed: int) -> Samples:
            rng = Purpose.MIXTURE_SAMPLES.rng(seed)
            drawn = _mixed(n, rng=rng, mixture=mixture, roots=roots)
            left = rng.standard_normal((n, noise.size)) * noise
            # Noise has no part in the components, which the mixture draws.
            left -= (left @ directions.T) @ directions
            # Within the members' range, and whole where they are.
            flat = np.clip(pca.mean_ + drawn @ directions + scale * left, *limits)
            if kind.kind != "f":
                flat = np.round(flat)
            values = flat.astype(kind).reshape(-1, *shape)
            if labeler is None:
                return Samples(values)
            return labeler.label(values, seed=seed)

        return FittedGenerator(draw)

    def _on_components(self, flat: FloatArray) -> "tuple[PCA, GaussianMixture]":
        """Find principal components, and a mixture of normals on them."""
        with needs("ml", "PCAMixture"):
            from sklearn.decomposition import PCA
            from sklearn.mixture import GaussianMixture
        pca = PCA(
            min(self.components, *flat.shape),
            random_state=Purpose.PRINCIPAL_COMPONENTS.derived(self.seed, bits=32),
        )
        with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
            pca.fit(flat)
        reduced = pca.transform(flat)
        mixture = GaussianMixture(
            min(self.mixtures, len(flat) // 20),
            reg_covar=RIDGE * (float(reduced.var(0).mean()) or 1.0),
            random_state=Purpose.MIXTURE_FIT.derived(self.seed, bits=32),
            max_iter=100,
            tol=1e-2,
        )
        return pca, mixture.fit(reduced)


def _mixed(
    n: int, rng: np.random.Generator, mixture: "GaussianMixture", roots: FloatArray
) -> FloatArray:
    """Draw from a mixture of normals; `roots` are those of the covariances (Cholesky)."""
    weights = mixture.weights_
    which = rng.choice(weights.size, n, p=weights / weights.sum())
    drawn: FloatArray = mixture.means_[which]
    for k, root in enumerate(roots):
        rows = np.flatnonzero(which == k)
        drawn[rows] += rng.standard_normal((rows.size, drawn.shape[1])) @ root.T
    return drawn


IMAGES = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz")


@dataclass(frozen=True)
class FolderOfSamples:
    """Examples from any external generator: a folder of images or arrays, or one such file.

    Files are read in the order of their names: images (png, jpg) are one example each, arrays
    (npy, or npz with ``values`` and perhaps ``labels``) any number. Samples are drawn without
    replacement.

    Parameters
    ----------
    path, labeler : str or os.PathLike, and Labeler
        The folder or file, and what labels samples if the members have labels and the files not.
    """

    path: PathInput
    _: KW_ONLY
    labeler: Labeler = field(default_factory=Labeler)

    def __post_init__(self) -> None:
        instance(self.labeler, name="labeler", types=Labeler)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Read the files, in the dtype of the members that the external generator learnt from.

        See `Generator.fit`; an FormatError says what is wrong with a file.
        """
        array = read_array(members)
        classes = read_labels(labels, len(array))
        parts = [_read(file, array) for file in _files(Path(self.path))]
        if len({part.labels is None for part in parts}) > 1:
            raise FormatError(
                f"{self.path}: some files have labels and others do not; give labels in all or none"
            )
        pool = joined(parts)
        labeler = None
        if classes is None:
            pool = Samples(pool.values)
        elif pool.labels is None:
            labeler = self.labeler.fit(array, classes)

        def draw(n: int, seed: int) -> Samples:
            # Each at most once; another seed draws from the same pool.
            if n > len(pool):
                raise InputError(
                    f"{n} samples are needed and the files have only {len(pool)}: generate more"
                )
            drawn = pool.take(Purpose.FOLDER_SAMPLES.rng(seed).permutation(len(pool))[:n])
            if labeler is None:
                return drawn
            return labeler.label(drawn.values, seed=seed)

        return FittedGenerator(draw=draw, learnt=pool)


def _files(path: Path) -> list[Path]:
    files = [path]
    if path.is_dir():
        files = sorted(path.iterdir())
    files = [file for file in files if file.suffix.lower() in IMAGES + ARRAYS and file.is_file()]
    if not files:
        raise FormatError(f"{path} has no samples: give {', '.join(IMAGES + ARRAYS)} files")
    return files


def _read(file: Path, members: AnyArray) -> Samples:
    """Return the samples of one file, in the shape and dtype of the members."""
    labels = None
    try:
        if file.suffix.lower() in IMAGES:
            with needs("plot", "reading images"):
                from PIL import Image
            with Image.open(file) as image:
                values = np.asarray(image)[None]
        elif file.suffix.lower() == ".npy":
            values = read_array_file(file)
        else:
            with open_archive(file) as archive:
                values = archive["values"]
                labels = None
                if "labels" in archive.names:
                    labels = archive["labels"]
        if not values.ndim or values.shape[1:] != members.shape[1:] or not len(values):
            raise OptionError(
                f"its shape is {values.shape}, but that of the members is {members.shape}"
            )
        # Bytes are not converted to floats: their scale is unknown.
        kind = values.dtype.kind
        wanted = members.dtype
        if kind not in "biuf" or (kind == "f") != (wanted.kind == "f"):
            raise OptionError(
                f"its dtype is {values.dtype}, but that of the members is {wanted}: use one dtype"
            )
        return Samples(values=values.astype(wanted), labels=read_labels(labels, len(values)))
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        raise FormatError(f"{file} cannot be read as samples: {error}") from error
