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
from leakbound.generators.members import read_labels, read_members
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
        member_values = read_members(values)
        labels_of_members = read_labels(labels, len(member_values))
        if labels_of_members is None:
            raise InputError("a labeler needs labels, got None")
        # One label needs no classifier, and scikit-learn's refuse to learn from it.
        distinct_classes = np.unique(labels_of_members)
        if distinct_classes.size == 1:
            return FittedLabeler(model=None, classes=distinct_classes)
        with needs("ml", "Labeler"):
            from sklearn.base import clone
            from sklearn.linear_model import LogisticRegression
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import StandardScaler
        logistic_regression = make_pipeline(
            StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)
        )
        model = logistic_regression
        if self.classifier is not None:
            model = clone(self.classifier)
        model.fit(member_values.reshape(len(member_values), -1), labels_of_members)
        return FittedLabeler(model=model, classes=distinct_classes)


@dataclass(frozen=True, eq=False)
class FittedLabeler:
    """What `Labeler.fit` returns."""

    model: Any
    classes: AnyArray

    def label(self, values: AnyArray, *, seed: int) -> Samples:
        """Return examples with a label drawn for each."""
        class_probabilities = np.ones((len(values), 1))
        if self.model is not None:
            class_probabilities = np.asarray(
                self.model.predict_proba(values.reshape(len(values), -1))
            )
        # Inverse of the distribution function; its last value is 1, and is left out.
        cumulative_probabilities = class_probabilities.cumsum(axis=1)
        uniform_numbers = Purpose.LABELS.rng(seed).random(len(values))[:, None]
        drawn_classes = (uniform_numbers >= cumulative_probabilities[:, :-1]).sum(axis=1)
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
        member_images = read_members(members)
        labels_of_images = read_labels(labels, len(member_images))
        pixel_rows = member_images.reshape(len(member_images), -1).astype(np.float64)
        # 1. A mixture of normals on the principal components.
        principal_components = self._fitted_components(pixel_rows)
        scores_on_components = principal_components.transform(pixel_rows)
        normal_mixture = self._fitted_mixture(scores_on_components)
        # 2. What the components leave over is noise in every pixel.
        noise_standard_deviations = (
            pixel_rows - principal_components.inverse_transform(scores_on_components)
        ).std(0)
        noise_variance = float((noise_standard_deviations**2).sum())
        variance_within_components = float(
            ((principal_components.components_ * noise_standard_deviations) ** 2).sum()
        )
        variance_outside_components = noise_variance - variance_within_components
        scale_of_noise = 0.0
        if variance_outside_components > VARIANCE_ROUNDING * noise_variance:
            scale_of_noise = np.sqrt(noise_variance / variance_outside_components)
        labeler = None
        if labels_of_images is not None:
            labeler = self.labeler.fit(member_images, labels_of_images)
        pixel_limits = (member_images.min(), member_images.max())
        dtype = member_images.dtype
        image_shape = member_images.shape[1:]
        cholesky_roots = np.linalg.cholesky(normal_mixture.covariances_)
        component_directions = principal_components.components_

        def draw(n: int, seed: int) -> Samples:
            sample_rng = Purpose.MIXTURE_SAMPLES.rng(seed)
            drawn_component_scores = _mixture_samples(n, sample_rng, normal_mixture, cholesky_roots)
            noise = (
                sample_rng.standard_normal((n, noise_standard_deviations.size))
                * noise_standard_deviations
            )
            # Noise has no part in the components, which the mixture draws.
            noise_scores = noise @ component_directions.T
            noise -= noise_scores @ component_directions
            drawn_pixels = (
                principal_components.mean_
                + drawn_component_scores @ component_directions
                + scale_of_noise * noise
            )
            # Within the members' range, and whole where they are.
            pixel_rows = np.clip(drawn_pixels, *pixel_limits)
            if dtype.kind != "f":
                pixel_rows = np.round(pixel_rows)
            values = pixel_rows.astype(dtype).reshape(-1, *image_shape)
            if labeler is None:
                return Samples(values)
            return labeler.label(values, seed=seed)

        return FittedGenerator(draw)

    def _fitted_components(self, pixel_rows: FloatArray) -> "PCA":
        """Find the principal components of images."""
        with needs("ml", "PCAMixture"):
            from sklearn.decomposition import PCA
        principal_components = PCA(
            n_components=min(self.components, *pixel_rows.shape),
            random_state=Purpose.PRINCIPAL_COMPONENTS.derived(self.seed, bits=32),
        )
        with np.errstate(invalid="ignore"):  # shares of a variance of 0, which are not used
            return principal_components.fit(pixel_rows)

    def _fitted_mixture(self, scores_on_components: FloatArray) -> "GaussianMixture":
        """Fit a mixture of normals to the scores of images on their principal components."""
        from sklearn.mixture import GaussianMixture

        mean_variance = float(scores_on_components.var(axis=0).mean())
        normal_mixture = GaussianMixture(
            n_components=min(self.mixtures, len(scores_on_components) // 20),
            reg_covar=RIDGE_SHARE * (mean_variance or 1.0),
            random_state=Purpose.MIXTURE_FIT.derived(self.seed, bits=32),
            max_iter=100,
            tol=1e-2,
        )
        return normal_mixture.fit(scores_on_components)


def _mixture_samples(
    n: int,
    sample_rng: np.random.Generator,
    normal_mixture: "GaussianMixture",
    cholesky_roots: FloatArray,
) -> FloatArray:
    """Draw from a mixture of normals; `cholesky_roots` are those of the covariances."""
    mixture_weights = normal_mixture.weights_
    component_of_sample = sample_rng.choice(
        mixture_weights.size, n, p=mixture_weights / mixture_weights.sum()
    )
    drawn_component_scores: FloatArray = normal_mixture.means_[component_of_sample]
    for component, cholesky_root in enumerate(cholesky_roots):
        rows_of_component = np.flatnonzero(component_of_sample == component)
        standard_normals = sample_rng.standard_normal(
            (rows_of_component.size, drawn_component_scores.shape[1])
        )
        drawn_component_scores[rows_of_component] += standard_normals @ cholesky_root.T
    return drawn_component_scores


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
        member_values = read_members(members)
        labels_of_members = read_labels(labels, len(member_values))
        sample_files = _sample_files_in(Path(self.path))
        samples_of_files = [_samples_of_file(file, member_values) for file in sample_files]
        if len({file_samples.labels is None for file_samples in samples_of_files}) > 1:
            raise FormatError(
                f"{self.path}: some files have labels and others do not; give labels in all or none"
            )
        samples_of_all_files = joined(samples_of_files)
        labeler = None
        if labels_of_members is None:
            samples_of_all_files = Samples(samples_of_all_files.values)
        elif samples_of_all_files.labels is None:
            labeler = self.labeler.fit(member_values, labels_of_members)

        def draw(n: int, seed: int) -> Samples:
            # Each at most once; another seed draws from the same pool.
            if n > len(samples_of_all_files):
                raise InputError(
                    f"{n} samples are needed and the files have only "
                    f"{len(samples_of_all_files)}: generate more"
                )
            random_order = Purpose.FOLDER_SAMPLES.rng(seed).permutation(len(samples_of_all_files))
            drawn_samples = samples_of_all_files.take(random_order[:n])
            if labeler is None:
                return drawn_samples
            return labeler.label(drawn_samples.values, seed=seed)

        return FittedGenerator(draw=draw, learnt=samples_of_all_files)


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
    file_labels = None
    try:
        if sample_file.suffix.lower() in IMAGE_SUFFIXES:
            with needs("plot", "reading images"):
                from PIL import Image
            with Image.open(sample_file) as image:
                file_values = np.asarray(image)[None]
        elif sample_file.suffix.lower() == ".npy":
            file_values = read_array_file(sample_file)
        else:
            with open_archive(sample_file) as archive:
                file_values = archive["values"]
                if "labels" in archive.names:
                    file_labels = archive["labels"]
        if (
            not file_values.ndim
            or file_values.shape[1:] != members.shape[1:]
            or not len(file_values)
        ):
            raise OptionError(
                f"its shape is {file_values.shape}, but that of the members is {members.shape}"
            )
        # Bytes are not converted to floats: their scale is unknown.
        kind_of_file = file_values.dtype.kind
        dtype_of_members = members.dtype
        if kind_of_file not in "biuf" or (kind_of_file == "f") != (dtype_of_members.kind == "f"):
            raise OptionError(
                f"its dtype is {file_values.dtype}, but that of the members is "
                f"{dtype_of_members}: use one dtype"
            )
        return Samples(
            values=file_values.astype(dtype_of_members),
            labels=read_labels(file_labels, len(file_values)),
        )
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        raise FormatError(f"{sample_file} cannot be read as samples: {error}") from error
