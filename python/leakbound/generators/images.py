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

VARIANCE_ROUNDING = 1e-9  # share of a variance that is 0 but for rounding
RIDGE_SHARE = 1e-3  # variance added to every component, in mean variances of the principal ones


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
        member_values = read_array(values)
        class_labels = read_labels(labels, len(member_values))
        if class_labels is None:
            raise InputError("a labeler needs labels, got None")
        # One label needs no classifier, and scikit-learn's refuse to learn from it.
        distinct_labels = np.unique(class_labels)
        if distinct_labels.size == 1:
            return FittedLabeler(model=None, classes=distinct_labels)
        with needs("ml", "Labeler"):
            from sklearn.base import clone
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        model = logistic
        if self.classifier is not None:
            model = clone(self.classifier)
        model.fit(member_values.reshape(len(member_values), -1), class_labels)
        return FittedLabeler(model=model, classes=distinct_labels)


@dataclass(frozen=True, eq=False)
class FittedLabeler:
    """What `Labeler.fit` returns."""

    model: Any
    classes: AnyArray

    def label(self, values: AnyArray, *, seed: int) -> Samples:
        """Return examples with a label drawn for each."""
        probabilities = np.ones((len(values), 1))
        if self.model is not None:
            probabilities = np.asarray(self.model.predict_proba(values.reshape(len(values), -1)))
        # Inverse of the distribution function; its last value is 1, and is left out.
        cumulative = probabilities.cumsum(axis=1)
        uniform_numbers = Purpose.LABELS.rng(seed).random(len(values))[:, None]
        drawn_classes = (uniform_numbers >= cumulative[:, :-1]).sum(axis=1)
        return Samples(values=values, labels=self.classes[drawn_classes])


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
        images = read_array(members)
        class_labels = read_labels(labels, len(images))
        pixels = images.reshape(len(images), -1).astype(np.float64)
        # 1. A mixture of normals on the principal components.
        pca, mixture = self._fitted_mixture(pixels)
        component_scores = pca.transform(pixels)
        # 2. What the components leave over is noise in every pixel.
        noise_deviations = (pixels - pca.inverse_transform(component_scores)).std(0)
        noise_variance = float((noise_deviations**2).sum())
        variance_along_components = float(((pca.components_ * noise_deviations) ** 2).sum())
        remaining_variance = noise_variance - variance_along_components
        noise_scale = 0.0
        if remaining_variance > VARIANCE_ROUNDING * noise_variance:
            noise_scale = np.sqrt(noise_variance / remaining_variance)
        labeler = None
        if class_labels is not None:
            labeler = self.labeler.fit(images, class_labels)
        pixel_limits = (images.min(), images.max())
        dtype = images.dtype
        image_shape = images.shape[1:]
        cholesky_roots = np.linalg.cholesky(mixture.covariances_)
        component_directions = pca.components_

        def draw(n: int, seed: int) -> Samples:
            rng = Purpose.MIXTURE_SAMPLES.rng(seed)
            drawn_scores = _mixture_samples(n, rng, mixture, cholesky_roots)
            noise = rng.standard_normal((n, noise_deviations.size)) * noise_deviations
            # Noise has no part in the components, which the mixture draws.
            noise_scores = noise @ component_directions.T
            noise -= noise_scores @ component_directions
            drawn_pixels = pca.mean_ + drawn_scores @ component_directions + noise_scale * noise
            # Within the members' range, and whole where they are.
            pixels = np.clip(drawn_pixels, *pixel_limits)
            if dtype.kind != "f":
                pixels = np.round(pixels)
            values = pixels.astype(dtype).reshape(-1, *image_shape)
            if labeler is None:
                return Samples(values)
            return labeler.label(values, seed=seed)

        return FittedGenerator(draw)

    def _fitted_mixture(self, pixels: FloatArray) -> "tuple[PCA, GaussianMixture]":
        """Find principal components, and a mixture of normals on them."""
        with needs("ml", "PCAMixture"):
            from sklearn.decomposition import PCA
            from sklearn.mixture import GaussianMixture
        pca = PCA(
            n_components=min(self.components, *pixels.shape),
            random_state=Purpose.PRINCIPAL_COMPONENTS.derived(self.seed, bits=32),
        )
        with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
            pca.fit(pixels)
        component_scores = pca.transform(pixels)
        mean_variance = float(component_scores.var(axis=0).mean())
        mixture = GaussianMixture(
            n_components=min(self.mixtures, len(pixels) // 20),
            reg_covar=RIDGE_SHARE * (mean_variance or 1.0),
            random_state=Purpose.MIXTURE_FIT.derived(self.seed, bits=32),
            max_iter=100,
            tol=1e-2,
        )
        return pca, mixture.fit(component_scores)


def _mixture_samples(
    n: int, rng: np.random.Generator, mixture: "GaussianMixture", cholesky_roots: FloatArray
) -> FloatArray:
    """Draw from a mixture of normals; `cholesky_roots` are those of the covariances."""
    weights = mixture.weights_
    component_of_sample = rng.choice(weights.size, n, p=weights / weights.sum())
    drawn_scores: FloatArray = mixture.means_[component_of_sample]
    for component, cholesky_root in enumerate(cholesky_roots):
        rows = np.flatnonzero(component_of_sample == component)
        standard_normals = rng.standard_normal((rows.size, drawn_scores.shape[1]))
        drawn_scores[rows] += standard_normals @ cholesky_root.T
    return drawn_scores


IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg")
ARRAY_SUFFIXES = (".npy", ".npz")


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

        See `Generator.fit`; a FormatError says what is wrong with a file.
        """
        member_values = read_array(members)
        class_labels = read_labels(labels, len(member_values))
        sample_files = _sample_files_in(Path(self.path))
        samples_of_files = [_samples_of_file(file, member_values) for file in sample_files]
        if len({file_samples.labels is None for file_samples in samples_of_files}) > 1:
            raise FormatError(
                f"{self.path}: some files have labels and others do not; give labels in all or none"
            )
        all_samples = joined(samples_of_files)
        labeler = None
        if class_labels is None:
            all_samples = Samples(all_samples.values)
        elif all_samples.labels is None:
            labeler = self.labeler.fit(member_values, class_labels)

        def draw(n: int, seed: int) -> Samples:
            # Each at most once; another seed draws from the same pool.
            if n > len(all_samples):
                raise InputError(
                    f"{n} samples are needed and the files have only {len(all_samples)}: generate "
                    "more"
                )
            random_order = Purpose.FOLDER_SAMPLES.rng(seed).permutation(len(all_samples))
            drawn = all_samples.take(random_order[:n])
            if labeler is None:
                return drawn
            return labeler.label(drawn.values, seed=seed)

        return FittedGenerator(draw=draw, learnt=all_samples)


def _sample_files_in(path: Path) -> list[Path]:
    """Return the files of samples in a folder, in the order of their names, or the only one."""
    files = [path]
    if path.is_dir():
        files = sorted(path.iterdir())
    suffixes = IMAGE_SUFFIXES + ARRAY_SUFFIXES
    sample_files = [file for file in files if file.suffix.lower() in suffixes and file.is_file()]
    if not sample_files:
        raise FormatError(f"{path} has no samples: give {', '.join(suffixes)} files")
    return sample_files


def _samples_of_file(sample_file: Path, members: AnyArray) -> Samples:
    """Return the samples of one file, in the shape and dtype of the members."""
    labels = None
    try:
        if sample_file.suffix.lower() in IMAGE_SUFFIXES:
            with needs("plot", "reading images"):
                from PIL import Image
            with Image.open(sample_file) as image:
                values = np.asarray(image)[None]
        elif sample_file.suffix.lower() == ".npy":
            values = read_array_file(sample_file)
        else:
            with open_archive(sample_file) as archive:
                values = archive["values"]
                labels = None
                if "labels" in archive.names:
                    labels = archive["labels"]
        if not values.ndim or values.shape[1:] != members.shape[1:] or not len(values):
            raise OptionError(
                f"its shape is {values.shape}, but that of the members is {members.shape}"
            )
        # Bytes are not converted to floats: their scale is unknown.
        dtype_kind = values.dtype.kind
        member_dtype = members.dtype
        if dtype_kind not in "biuf" or (dtype_kind == "f") != (member_dtype.kind == "f"):
            raise OptionError(
                f"its dtype is {values.dtype}, but that of the members is {member_dtype}: use one "
                "dtype"
            )
        return Samples(values=values.astype(member_dtype), labels=read_labels(labels, len(values)))
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        raise FormatError(f"{sample_file} cannot be read as samples: {error}") from error
