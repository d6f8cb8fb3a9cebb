"""Phases that leave their outcome in a folder, so that an interrupted run goes on where it was."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._files import replacing, write_text
from leakbound.errors import CheckpointError

__all__ = ["Arrays", "Checkpoints", "digest"]

Arrays: TypeAlias = dict[str, NDArray[Any]]


class Checkpoints:
    """Outcomes of phases, in a folder or nowhere.

    Parameters
    ----------
    folder : Path or None
        Where to; made if need be. None keeps nothing.
    made_of : mapping of str to str
        What the outcomes depend on, by name: digests of data, options in words.

    Raises
    ------
    CheckpointError
        If the folder holds outcomes of other data or options.
    OSError
        If it cannot be written.
    """

    def __init__(self, folder: Path | None, made_of: Mapping[str, str]) -> None:
        self._folder = folder
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        record = folder / "made-of.json"
        if not record.exists():
            write_text(record, json.dumps(dict(made_of), indent=1, ensure_ascii=False) + "\n")
            return
        _compare(folder, _read_record(record), made_of)

    def phase(self, name: str, work: Callable[[], Arrays]) -> Arrays:
        """Return the outcome of a phase: the one kept if there is one, or a new one, then kept.

        Parameters
        ----------
        name : str
            Of the phase; the same inputs must give the same name.
        work : callable
            Does it.

        Returns
        -------
        dict of str to ndarray
            The outcome.

        Raises
        ------
        CheckpointError
            If the file of the phase is damaged.
        """
        if self._folder is None:
            return work()
        file = self._folder / f"{name}.npz"
        if file.exists():
            return _load(file)
        outcome = work()
        with replacing(file) as stream:
            np.savez(stream, allow_pickle=False, **outcome)
        return outcome


def digest(*arrays: NDArray[Any] | None) -> str:
    """Return a digest of arrays: their types, shapes and values.

    Parameters
    ----------
    *arrays : ndarray or None
        In order.

    Returns
    -------
    str
        SHA-256 in hexadecimal.
    """
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _compare(folder: Path, kept: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    differing = [name for name in {**kept, **wanted} if kept.get(name) != wanted.get(name)]
    if differing:
        message = (
            f"the checkpoints in {folder} are of another {' and another '.join(differing)}; name "
            "another folder, or remove this one to start anew"
        )
        raise CheckpointError(message)


def _read_record(file: Path) -> dict[str, str]:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        message = f"{file} is not a record of checkpoints: {error}; name another folder"
        raise CheckpointError(message) from error
    if not isinstance(record, dict):
        message = f"{file} is not a record of checkpoints; name another folder"
        raise CheckpointError(message)
    return record


def _load(file: Path) -> Arrays:
    try:
        with np.load(file, allow_pickle=False) as content:
            return dict(content)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        message = f"the checkpoint {file} cannot be read: {error}; remove it to redo its phase"
        raise CheckpointError(message) from error
