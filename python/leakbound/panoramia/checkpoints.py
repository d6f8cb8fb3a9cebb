"""Phases that leave their outcome in a folder, so that an interrupted run goes on where it was."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.archives import DamagedFileError, open_archive
from leakbound._base.files import replacing, write_text
from leakbound.errors import CheckpointError

__all__ = ["Arrays", "Checkpoints", "digest"]

Arrays: TypeAlias = dict[str, NDArray[Any]]

_SEAL = "sha256"
"""Name of the digest among the arrays of a phase."""
_MOST = 5
"""How many files a message names."""


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
        If the folder holds outcomes of other data or options, or of nobody knows what.
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
            kept = sorted(file.name for file in folder.glob("*.npz"))
            if kept:
                message = (
                    f"{folder} holds phases ({_listed(kept)}) without the record of what they were "
                    "made of, and so they may be of other data: name another folder, or remove them"
                )
                raise CheckpointError(message)
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
            If the file of the phase is damaged, or of another phase.
        """
        if self._folder is None:
            return work()
        file = self._folder / f"{name}.npz"
        if file.exists():
            return _load(file, name)
        outcome = work()
        seal = np.array(_seal(name, outcome))
        with replacing(file) as stream:
            np.savez(stream, allow_pickle=False, **outcome, **{_SEAL: seal})
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
    except (ValueError, RecursionError) as error:
        message = f"{file} is not a record of checkpoints: {error}; name another folder"
        raise CheckpointError(message) from error
    if not isinstance(record, dict) or not all(isinstance(one, str) for one in record.values()):
        message = f"{file} is not a record of checkpoints; name another folder"
        raise CheckpointError(message)
    return record


def _load(file: Path, name: str) -> Arrays:
    """Read the arrays of a phase, which are those that were sealed with its name."""
    try:
        with open_archive(file) as content:
            outcome = {one: content[one] for one in content.names}
    except (DamagedFileError, OSError) as error:
        message = f"the checkpoint {file} cannot be read: {error}; remove it to redo its phase"
        raise CheckpointError(message) from error
    seal = outcome.pop(_SEAL, None)
    if seal is None or str(seal) != _seal(name, outcome):
        message = (
            f"the checkpoint {file} is not as the phase {name!r} left it: remove it to redo the "
            "phase"
        )
        raise CheckpointError(message)
    return outcome


def _seal(name: str, outcome: Arrays) -> str:
    """Return a digest of a phase: its name, and the names, types, shapes and values of arrays."""
    return digest(np.array([name, *outcome]), *outcome.values())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST]) + (", …" if len(names) > _MOST else "")
