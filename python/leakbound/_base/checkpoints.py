"""Outcomes of long work kept in a folder, so that an interrupted run goes on where it was.

The folder has a record of what its outcomes were made of, and a file of arrays for each outcome,
sealed with its name and that record. Files are written whole or not at all. What is damaged, of
another run or of another version is refused.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.files import DamagedFileError, open_archive, replacing, write_text
from leakbound._base.streams import SCHEME
from leakbound.errors import CheckpointError

Arrays: TypeAlias = dict[str, NDArray[Any]]

_SCHEME = "leakbound checkpoints, scheme 2"
"""Of the files; raised with every change that makes older ones unreadable."""
_RECORD = "made-of.json"
_SEAL = "sha256"
"""Name of the digest among the arrays of an outcome, and in the record."""
_LISTED = 5
"""How many files a message names."""


class Checkpoints:
    """Outcomes of one run by name, in a folder, which is made if need be; None keeps nothing.

    `made_of` is compared with that of the folder; `told` is kept in its record and not compared.
    With `alone`, a folder without a record must be empty, not only free of outcomes.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        made_of: Mapping[str, str],
        *,
        told: Mapping[str, str | None] | None = None,
        alone: bool = False,
    ) -> None:
        made_of = {**made_of, "random streams": SCHEME}
        self.told = dict(told or {})
        self._key = _sealed(made_of)
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        record = self._folder / _RECORD
        if record.exists():
            self.told = _same(record, made_of)
            return
        kept = sorted(file.name for file in self._folder.glob("[!.]*" if alone else "*.npz"))
        if kept:
            message = (
                f"{self._folder} holds {_listed(kept)} without the record of what they were made "
                "of, and so they are of nobody knows what: name an empty or new folder"
            )
            raise CheckpointError(message)
        content = {"scheme": _SCHEME, "made of": made_of, "told": self.told}
        content[_SEAL] = _sealed(content)
        write_text(record, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def load(self, name: str) -> Arrays | None:
        """Return an outcome if it is kept; refuse one that is damaged or of another name."""
        file = self._file(name)
        if file is None or not file.exists():
            return None
        try:
            with open_archive(file) as content:
                outcome = {one: content[one] for one in content.names}
        except (DamagedFileError, OSError) as error:
            message = f"the checkpoint {file} cannot be read: {error}; remove it to redo its work"
            raise CheckpointError(message) from error
        seal = outcome.pop(_SEAL, None)
        if seal is None or str(seal) != self._seal(name, outcome):
            message = (
                f"the checkpoint {file} is not as {name!r} was stored: remove it to redo its work"
            )
            raise CheckpointError(message)
        return outcome

    def save(self, name: str, outcome: Arrays) -> None:
        """Keep an outcome, in place of one of the same name."""
        file = self._file(name)
        if file is not None:
            seal = np.array(self._seal(name, outcome))
            with replacing(file) as stream:
                np.savez(stream, allow_pickle=False, **outcome, **{_SEAL: seal})

    def phase(self, name: str, work: Callable[[], Arrays]) -> Arrays:
        """Return the outcome that is kept, or else do the work and keep it."""
        outcome = self.load(name)
        if outcome is None:
            outcome = work()
            self.save(name, outcome)
        return outcome

    def _file(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{name}.npz"

    def _seal(self, name: str, outcome: Arrays) -> str:
        """Return a digest: the run, the name, and names, types, shapes and values of arrays."""
        return digest(np.array([self._key, name, *outcome]), *outcome.values())


def digest(*arrays: NDArray[Any] | None) -> str:
    """Return the SHA-256, in hexadecimal, of arrays: their types, shapes and values."""
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _same(record: Path, made_of: Mapping[str, str]) -> dict[str, str | None]:
    """Compare what a folder's outcomes were made of with a run; return what else was told."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        message = f"{record} is not a record of checkpoints: {error}; name another folder"
        raise CheckpointError(message) from error
    anew = "name another folder, or remove this one to start anew"
    if not isinstance(content, dict):
        message = f"{record} is not a record of checkpoints: {anew}"
        raise CheckpointError(message)
    if content.get("scheme") != _SCHEME:
        message = f"the checkpoints in {record.parent} are of another version of leakbound; {anew}"
        raise CheckpointError(message)
    if content.pop(_SEAL, None) != _sealed(content):
        message = f"{record} is not a record of checkpoints as it was written: {anew}"
        raise CheckpointError(message)
    kept: dict[str, str] = content["made of"]
    differing = [name for name in {**kept, **made_of} if kept.get(name) != made_of.get(name)]
    if differing:
        named = " and another ".join(differing)
        message = f"the checkpoints in {record.parent} are of another {named}; {anew}"
        raise CheckpointError(message)
    told: dict[str, str | None] = content["told"]
    return told


def _sealed(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([_SCHEME, content], sort_keys=True).encode()).hexdigest()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
