"""Counts of chunks of games, kept in a folder, so that an interrupted run goes on where it was."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from leakbound._base.files import write_text
from leakbound.errors import CheckpointError

__all__ = ["Checkpoint", "Chunk"]

Chunk: TypeAlias = tuple[int, int]
"""Numbers of the first game of a chunk, and of the first after it."""


class Checkpoint:
    """Counts of one run, in a folder or nowhere.

    Each case has a file of its own, which is replaced whole when a chunk of its games is over.

    Parameters
    ----------
    folder : str or os.PathLike or None
        Where to; made if need be. None keeps nothing.
    made_of : mapping of str to str
        What every count depends on, by name: the seed, the version and digest of the code.
    commit : str or None
        Commit of the code, if known. It is told and not compared: the digest says which code it is.

    Raises
    ------
    CheckpointError
        If the folder holds counts of another seed or other code, or no counts.
    OSError
        If it cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        made_of: Mapping[str, str],
        commit: str | None,
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        self.commit = commit
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        record = self._folder / "made-of.json"
        if record.exists():
            self.commit = _same(record, made_of)
            return
        if any(self._folder.iterdir()):
            message = f"{self._folder} holds other files than counts: name an empty or new folder"
            raise CheckpointError(message)
        write_text(record, _text({**made_of, "commit": commit}))

    def read(self, case: str) -> dict[Chunk, int]:
        """Return the counts of a case that are kept.

        Parameters
        ----------
        case : str
            All that tells the case from others.

        Returns
        -------
        dict of (int, int) to int
            The count of each chunk.

        Raises
        ------
        CheckpointError
            If the file of the case is damaged, or of another case.
        """
        file = self._file(case)
        return {} if file is None or not file.exists() else _read(file, case)

    def write(self, case: str, counts: Mapping[Chunk, int]) -> None:
        """Keep the counts of a case in place of those that were kept.

        Parameters
        ----------
        case : str
            All that tells the case from others.
        counts : mapping of (int, int) to int
            The count of each chunk.
        """
        file = self._file(case)
        if file is not None:
            rows = [[*chunk, count] for chunk, count in sorted(counts.items())]
            write_text(file, _text({"case": case, "counts": rows}))

    def _file(self, case: str) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{hashlib.sha256(case.encode()).hexdigest()[:24]}.json"


def _text(content: Mapping[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


def _load(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{file} is damaged: {error}; remove it to play its games again"
        raise CheckpointError(message) from error
    if not isinstance(content, dict):
        message = f"{file} is damaged: not an object; remove it to play its games again"
        raise CheckpointError(message)
    return content


def _same(record: Path, made_of: Mapping[str, str]) -> str | None:
    """Compare what the folder's counts depend on with what the run does; return their commit."""
    kept = _load(record)
    commit = kept.pop("commit", None)
    differing = [name for name in {**made_of, **kept} if kept.get(name) != made_of.get(name)]
    if differing:
        message = (
            f"the counts in {record.parent} are of another {' and another '.join(differing)}; name "
            "another folder, or remove this one to start anew"
        )
        raise CheckpointError(message)
    return commit if isinstance(commit, str) else None


def _read(file: Path, case: str) -> dict[Chunk, int]:
    content = _load(file)
    rows = content.get("counts")
    if content.get("case") != case or not isinstance(rows, list) or not all(map(_is_count, rows)):
        message = f"{file} does not hold counts of this case; remove it to play its games again"
        raise CheckpointError(message)
    return {(first, last): count for first, last, count in rows}


def _is_count(row: object) -> bool:
    """Whether a row is a chunk and a count that it can have."""
    if not isinstance(row, list) or [type(item) for item in row] != [int, int, int]:
        return False
    first, last, count = row
    return bool(0 <= first < last and 0 <= count <= last - first)
