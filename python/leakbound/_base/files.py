"""Files and folders that are either the old ones or the new ones, never half of each.

Arrays are read without unpickling objects, and whatever is wrong with their file is one error.
Outcomes of long work are kept in a folder, so that an interrupted run goes on where it was.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.streams import SCHEME
from leakbound.errors import CheckpointError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    The bytes go to a new file in the same folder, reach the disk, and only then get the name; a
    reader sees the old content or the new, and a block that raises leaves the old in place.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 to `path`, all of it or nothing."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends without an error.

    Files go to a new folder beside it, reach the disk, and only then the folder gets the name; a
    block that raises leaves the old folder as it was.
    """
    target = Path(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    temporary.mkdir()
    try:
        yield temporary
        _sync_folder(temporary)
        _take_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_folder(target.parent)


def _take_place(new: Path, target: Path) -> None:
    """Give a folder its name; the old one of this name steps aside for a moment, and goes."""
    try:
        new.rename(target)  # over nothing, or an empty folder
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST, errno.EACCES}:
            raise
        old = target.with_name(f"{new.name}.old")
        target.rename(old)
        try:
            new.rename(target)
        except OSError:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where folders can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_PLAIN, _RATIO = 1 << 28, 100
"""Bytes that an array may unpack to whatever it was packed from, and how often its packed size a
larger one may be: scores and memberships pack less well."""
_SMALL = 1 << 30
"""Bytes for which there is memory: where there is none, the header is to blame."""


class DamagedFileError(Exception):
    """A file that is not what it should be; callers raise their own error from it."""


class Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, content: zipfile.ZipFile, most: int | None = None) -> None:
        self._content = content
        total = sum(member.file_size for member in content.infolist())
        if most is not None and total > most:
            message = f"its arrays have {total:,} bytes in all, and at most {most:,} are read"
            raise DamagedFileError(message)
        self._members = {name.removesuffix(".npy"): name for name in content.namelist()}
        self.names = [*self._members]
        if len(self.names) < len(content.namelist()):
            message = "two of its arrays have one name"
            raise DamagedFileError(message)

    def get(self, name: str) -> NDArray[Any] | None:
        """Read one array; None if there is none of this name."""
        return self[name] if name in self._members else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read one array; its checksum is verified."""
        if name not in self._members:
            message = f"it has no array named {name!r}"
            raise DamagedFileError(message)
        member = self._content.getinfo(self._members[name])
        if member.file_size > max(_PLAIN, _RATIO * member.compress_size):
            message = (
                f"its array {name!r} would unpack from {member.compress_size:,} to "
                f"{member.file_size:,} bytes; if that is meant, save it with numpy.savez, unpacked"
            )
            raise DamagedFileError(message)
        with _explained(), self._content.open(member) as stream:
            return _read(stream, member.file_size)

    def typed(self, name: str, dtype: type[np.generic], *, axes: int = 1) -> NDArray[Any]:
        """Read one array that must be of a type, in any byte order, and of a number of axes."""
        array = self[name]
        if array.dtype.type is not dtype or array.ndim != axes:
            message = f"its array {name!r} is of type {array.dtype} and shape {array.shape}"
            raise DamagedFileError(message)
        return array


@contextmanager
def open_archive(
    source: str | os.PathLike[str] | IO[bytes], *, most: int | None = None
) -> Iterator[Archive]:
    """Open an .npz file; `most` is how many bytes its arrays may have in all, unpacked."""
    with _opened(source) as file:
        with _explained():
            content = zipfile.ZipFile(file)
            archive = Archive(content, most)
        with content:
            yield archive


def read_array_file(source: str | os.PathLike[str] | IO[bytes]) -> NDArray[Any]:
    """Read an .npy file."""
    with _opened(source) as file, _explained():
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return _read(file, size)


@contextmanager
def _opened(source: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            yield file
    else:
        yield source


@contextmanager
def _explained() -> Iterator[None]:
    """Turn whatever parsing hostile bytes raises into one error."""
    try:
        yield
    except (DamagedFileError, MemoryError):
        raise
    except Exception as error:  # zipfile and NumPy have a dozen ways to say that bytes are wrong
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise DamagedFileError(message) from error


def _read(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a stream of `size` bytes."""
    array: NDArray[Any]
    try:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    except MemoryError as error:
        if size > _SMALL:
            raise
        message = f"it declares an array far beyond its {size:,} bytes"
        raise DamagedFileError(message) from error
    if stream.read(1):
        message = "bytes follow its array"
        raise DamagedFileError(message)
    # A byte other than 0 and 1 is true: sums of booleans must count 1.
    return array.view(np.uint8) != 0 if array.dtype == np.bool_ and array.ndim else array


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
