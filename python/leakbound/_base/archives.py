"""Arrays in files of NumPy: objects are never unpickled, and whatever is wrong is one error."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

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
