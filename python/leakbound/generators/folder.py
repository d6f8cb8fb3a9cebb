"""Samples made by another program, and a filter that drops obviously bad ones."""

import os
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance, integer, real
from leakbound._base.files import open_archive, read_array_file
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.errors import FormatError, InputError, OptionError
from leakbound.generators.images import Labeler
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import FittedGenerator, Generator, Samples, joined

IMAGES = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz")
FOLDS = 3  # each member is judged by a classifier of two thirds of the others
ATTEMPTS = 20  # batches drawn before a filter that keeps next to nothing is an error


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

    path: str | os.PathLike[str]
    _: KW_ONLY
    labeler: Labeler = field(default_factory=Labeler)

    def __post_init__(self) -> None:
        instance(self.labeler, "labeler", Labeler)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Read the files, in the dtype of the members that the external generator learnt from.

        See `Generator.fit`; an FormatError says what is wrong with a file.
        """
        array = read_array(members)
        classes = read_labels(labels, len(array))
        parts = [_read(file, array) for file in _files(Path(self.path))]
        if len({part.labels is None for part in parts}) > 1:
            message = (
                f"{self.path}: some files have labels and others do not; give labels in all or none"
            )
            raise FormatError(message)
        pool, labeler = joined(parts), None
        if classes is None:
            pool = Samples(pool.values)
        elif pool.labels is None:
            labeler = self.labeler.fit(array, classes)

        def draw(n: int, seed: int) -> Samples:
            # Each at most once; another seed draws from the same pool.
            if n > len(pool):
                message = (
                    f"{n} samples are needed and the files have only {len(pool)}: generate more"
                )
                raise InputError(message)
            drawn = pool.take(Purpose.FOLDER_SAMPLES.rng(seed).permutation(len(pool))[:n])
            return drawn if labeler is None else labeler.label(drawn.values, seed=seed)

        return FittedGenerator(draw, pool)


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if file.suffix.lower() in IMAGES + ARRAYS and file.is_file()]
    if not files:
        message = f"{path} has no samples: give {', '.join(IMAGES + ARRAYS)} files"
        raise FormatError(message)
    return files


def _read(file: Path, members: NDArray[Any]) -> Samples:
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
                labels = archive["labels"] if "labels" in archive.names else None
        if not values.ndim or values.shape[1:] != members.shape[1:] or not len(values):
            message = f"its shape is {values.shape}, but that of the members is {members.shape}"
            raise OptionError(message)
        # Bytes are not converted to floats: their scale is unknown.
        kind, wanted = values.dtype.kind, members.dtype
        if kind not in "biuf" or (kind == "f") != (wanted.kind == "f"):
            message = (
                f"its dtype is {values.dtype}, but that of the members is {wanted}: use one dtype"
            )
            raise OptionError(message)
        return Samples(values.astype(wanted), read_labels(labels, len(values)))
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        message = f"{file} cannot be read as samples: {error}"
        raise FormatError(message) from error


@dataclass(frozen=True)
class Filtered:
    """A generator whose obviously bad samples are dropped.

    A classifier learns to tell the members of the generator from samples of it. Samples that look
    less real than all but a small share of those members, each judged by a classifier that did not
    see it, are dropped and redrawn. So large a share of real members is of a kind that is never
    generated, and a baseline may find it out: keep it small.

    Parameters
    ----------
    generator : Generator
        What makes the samples.
    share : float
        Share of members that look less real than every sample kept, in [0, 1).
    seed : int
        Seed of the fit.
    """

    generator: Generator
    _: KW_ONLY
    share: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        instance(self.generator, "generator", Generator)
        if isinstance(self.generator, FolderOfSamples):
            message = (
                "a filter cannot be trained on the same pool of samples that it filters: filter "
                "the files first"
            )
            raise OptionError(message)
        real(self.share, "share", least=0, below=1)
        integer(self.seed, "seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Fit the generator, then the filter, to the same members: see `Generator.fit`."""
        with needs("ml", "Filtered"):
            from sklearn.ensemble import HistGradientBoostingClassifier
            from sklearn.model_selection import cross_val_predict
        array = read_array(members)
        classes = read_labels(labels, len(array))
        sampler = self.generator.fit(array, classes)
        drawn = sampler.sample(len(array), seed=Purpose.FILTER_LESSON.derived(self.seed, bits=32))
        # 1. A classifier of members against as many samples.
        names = None if classes is None else np.unique(classes)
        rows = np.concatenate([_rows(Samples(array, classes), names), _rows(drawn, names)])
        is_real = np.arange(len(rows)) < len(array)
        judge = HistGradientBoostingClassifier(
            max_iter=50, random_state=Purpose.FILTER_JUDGE.derived(self.seed, bits=32)
        )
        # 2. The limit is what members reach under classifiers that did not see them.
        unseen = cross_val_predict(judge, rows, is_real, cv=FOLDS, method="predict_proba")[:, 1]
        least = float(np.quantile(unseen[is_real], self.share, method="lower"))
        judge.fit(rows, is_real)

        def draw(n: int, seed: int) -> Samples:
            passed = list[Samples]()
            for attempt in range(ATTEMPTS):
                fresh = Purpose.FILTER_SAMPLES.derived(seed, attempt, bits=32)
                batch = sampler.sample(n, seed=fresh)
                realness = judge.predict_proba(_rows(batch, names))[:, 1]
                passed.append(batch.take(realness >= least))
                if sum(map(len, passed)) >= n:
                    return joined(passed).take(slice(n))
            message = (
                f"the filter kept only {sum(map(len, passed))} of {ATTEMPTS * n} samples, but {n} "
                "are needed: use a generator that is closer to its members"
            )
            raise InputError(message)

        return FittedGenerator(draw)


def _rows(samples: Samples, names: NDArray[Any] | None) -> FloatArray:
    """Return samples as rows of numbers, the label as the last."""
    flat = samples.values.reshape(len(samples), -1).astype(np.float64)
    if names is None or samples.labels is None:
        return flat
    return np.column_stack([flat, np.searchsorted(names, samples.labels)])
