"""Samples that some other program made."""

import os
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import instance
from leakbound._base.files import open_archive, read_array_file
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput
from leakbound.errors import FormatError, InputError, OptionError
from leakbound.generators.labels import FittedLabeler, Labeler
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import Samples, SeededSampler, joined

IMAGES = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz")


@dataclass(frozen=True)
class FolderOfSamples:
    """Examples from any external generator: a folder of images or arrays, or one such file.

    Files are read in the order of their names: images (png, jpg) are one example each, arrays
    (npy, or npz with ``values`` and perhaps ``labels``) any number. Samples are drawn without
    replacement. Fitting checks their shape, and learns labels where the files have none.

    Parameters
    ----------
    path : str or os.PathLike
        The folder or file.
    labeler : Labeler
        What labels samples if the members have labels and the files do not.
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    labeler: Labeler = field(default_factory=Labeler)

    def __post_init__(self) -> None:
        instance(self.labeler, "labeler", Labeler)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedFolderOfSamples":
        """Read the files, in the dtype of the members that the external generator learnt from.

        See `Generator.fit`; an FormatError says what is wrong with a file.
        """
        array = read_array(members)
        classes = read_labels(labels, len(array))
        parts = [_read(file, array) for file in _files(Path(self.path))]
        if len({part.labels is None for part in parts}) > 1:
            message = f"{self.path}: some files have labels and others have none; give all or none"
            raise FormatError(message)
        pool = joined(parts)
        if classes is None:
            return FittedFolderOfSamples(Samples(pool.values), None)
        fitted = None if pool.labels is not None else self.labeler.fit(array, classes)
        return FittedFolderOfSamples(pool, fitted)


@dataclass(frozen=True, eq=False)
class FittedFolderOfSamples(SeededSampler):
    """What `FolderOfSamples.fit` returns."""

    pool: Samples
    labeler: FittedLabeler | None

    def _draw(self, n: int, seed: int) -> Samples:
        # Each at most once; another seed draws from the same pool.
        rng = Purpose.FOLDER_SAMPLES.rng(seed)
        if n > len(self.pool):
            message = (
                f"{n} samples are asked for and the files hold {len(self.pool)}: generate more"
            )
            raise InputError(message)
        drawn = self.pool.take(rng.permutation(len(self.pool))[:n])
        if self.labeler is None:
            return drawn
        return Samples(drawn.values, self.labeler.sample(drawn.values, seed=seed))


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if file.suffix.lower() in IMAGES + ARRAYS and file.is_file()]
    if not files:
        message = f"{path} holds no samples: {', '.join(IMAGES + ARRAYS)} files are read"
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
                values, labels = archive["values"], archive.get("labels")
        if not values.ndim or values.shape[1:] != members.shape[1:] or not len(values):
            message = f"it has shape {values.shape}, and the members have {members.shape}"
            raise OptionError(message)
        # Bytes are not taken for floats: nobody knows what they would be scaled by.
        kind, wanted = values.dtype.kind, members.dtype
        if kind not in "biuf" or (kind == "f") != (wanted.kind == "f"):
            message = f"it holds {values.dtype} and the members {wanted}: give both in one dtype"
            raise OptionError(message)
        return Samples(values.astype(wanted), read_labels(labels, len(values)))
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        message = f"{file} cannot be read as samples: {error}"
        raise FormatError(message) from error
