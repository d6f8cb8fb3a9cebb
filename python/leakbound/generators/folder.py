"""Samples made by another program."""

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
from leakbound.generators.images import Labeler
from leakbound.generators.members import read_array, read_labels
from leakbound.generators.protocol import FittedGenerator, Samples, joined

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
            raise FormatError(
                f"{self.path}: some files have labels and others do not; give labels in all or none"
            )
        pool, labeler = joined(parts), None
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
            return drawn if labeler is None else labeler.label(drawn.values, seed=seed)

        return FittedGenerator(draw, pool)


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    files = [file for file in files if file.suffix.lower() in IMAGES + ARRAYS and file.is_file()]
    if not files:
        raise FormatError(f"{path} has no samples: give {', '.join(IMAGES + ARRAYS)} files")
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
            raise OptionError(
                f"its shape is {values.shape}, but that of the members is {members.shape}"
            )
        # Bytes are not converted to floats: their scale is unknown.
        kind, wanted = values.dtype.kind, members.dtype
        if kind not in "biuf" or (kind == "f") != (wanted.kind == "f"):
            raise OptionError(
                f"its dtype is {values.dtype}, but that of the members is {wanted}: use one dtype"
            )
        return Samples(values.astype(wanted), read_labels(labels, len(values)))
    except (FormatError, OSError, SyntaxError, ValueError, TypeError) as error:
        raise FormatError(f"{file} cannot be read as samples: {error}") from error
