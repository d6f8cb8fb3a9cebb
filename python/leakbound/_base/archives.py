"""Arrays in files of NumPy, read so that a hostile file costs no more than its own size.

`numpy.load` allocates whatever a header declares. Here a header is believed only where the bytes
it declares are there: in the file, or in an archive whose member is not packed beyond reason.
Booleans are those of Python whatever their bytes, and objects are never unpickled.
"""

import io
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Archive", "DamagedFileError", "open_archive", "read_array_file"]

_CHUNK = 1 << 24
_PLAIN = 1 << 28
"""Bytes that a member may unpack to whatever it was packed from."""
_RATIO = 100
"""How often its packed size a larger member may be; scores and memberships pack less well."""
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_HEADER = 1 << 16
"""Longest header of an array, in bytes."""


class DamagedFileError(Exception):
    """A file that is not what it should be; callers raise their own error from it."""


class Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, content: zipfile.ZipFile, size: int, most: int | None = None) -> None:
        self._content = content
        self._size = size
        members = content.infolist()
        total = sum(member.file_size for member in members)
        if most is not None and total > most:
            message = f"its arrays have {total:,} bytes in all, and at most {most:,} are read"
            raise DamagedFileError(message)
        self.names = [member.filename.removesuffix(".npy") for member in members]
        self._members = dict(zip(self.names, members, strict=True))

    def get(self, name: str) -> NDArray[Any] | None:
        """Read one array; None if there is none of this name."""
        return self[name] if name in self._members else None

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Read one array; its checksum is verified."""
        with _explained():
            if self.names.count(name) != 1:
                message = f"it has {self.names.count(name)} arrays named {name!r}, in place of one"
                raise DamagedFileError(message)
            member = self._members[name]
            self._check(member)
            with self._content.open(member) as stream:
                array = _read(stream, member.file_size, repr(name))
                if stream.read(1):
                    message = f"bytes follow the array {name!r}"
                    raise DamagedFileError(message)
            return array

    def typed(self, name: str, dtype: type[np.generic], *, axes: int = 1) -> NDArray[Any]:
        """Read one array that must be of a type, in any byte order, and of a number of axes."""
        array = self[name]
        if array.dtype.type is not dtype or array.ndim != axes:
            message = f"its array {name!r} is of type {array.dtype} and shape {array.shape}"
            raise DamagedFileError(message)
        return array

    def _check(self, member: zipfile.ZipInfo) -> None:
        if member.flag_bits & 0x1:
            message = f"its member {member.filename!r} is encrypted"
            raise DamagedFileError(message)
        if member.compress_type not in _METHODS:
            message = f"its member {member.filename!r} is packed in a way that NumPy never writes"
            raise DamagedFileError(message)
        packed, unpacked = member.compress_size, member.file_size
        stored = member.compress_type == zipfile.ZIP_STORED
        if packed > self._size or (stored and packed != unpacked):
            message = f"its member {member.filename!r} declares more bytes than the file has"
            raise DamagedFileError(message)
        if unpacked > max(_PLAIN, _RATIO * packed):
            message = (
                f"its member {member.filename!r} would unpack from {packed:,} to {unpacked:,} "
                "bytes; if that is meant, save it with numpy.savez, unpacked"
            )
            raise DamagedFileError(message)


@contextmanager
def open_archive(
    source: str | os.PathLike[str] | IO[bytes], *, most: int | None = None
) -> Iterator[Archive]:
    """Open an .npz file; `most` is how many bytes its arrays may have in all, unpacked."""
    with _opened(source) as file:
        with _explained():
            size = file.seek(0, io.SEEK_END)
            content = zipfile.ZipFile(file)
            archive = Archive(content, size, most)
        with content:
            yield archive


def read_array_file(source: str | os.PathLike[str] | IO[bytes]) -> NDArray[Any]:
    """Read an .npy file."""
    with _opened(source) as file, _explained():
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        return _read(file, size, "it")


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


def _read(stream: IO[bytes], size: int, what: str) -> NDArray[Any]:
    """Read an array from a stream of `size` bytes in all, header included."""
    version = np.lib.format.read_magic(stream)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        message = f"{what} is an array of version {version}, which this package does not read"
        raise DamagedFileError(message)
    shape, fortran, dtype = readers[version](stream, max_header_size=_HEADER)
    if dtype.hasobject:
        message = f"{what} is other than plain arrays of numbers or text: objects are not unpickled"
        raise DamagedFileError(message)
    here = stream.tell()
    declared = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or declared != size - here:
        message = (
            f"{what} declares shape {shape} of {dtype}, {declared:,} bytes, where {size - here:,} "
            "follow"
        )
        raise DamagedFileError(message[:300])
    array = np.empty(math.prod(shape), dtype)
    target = array.view(np.uint8)
    for start in range(0, declared, _CHUNK):
        piece = stream.read(min(_CHUNK, declared - start))
        target[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
        if len(piece) < min(_CHUNK, declared - start):
            message = f"{what} ends after {start + len(piece):,} of {declared:,} bytes"
            raise DamagedFileError(message)
    values = target != 0 if dtype == np.bool_ else array
    return values.reshape(shape, order="F" if fortran else "C")
