"""Atomic writing of files and folders, and reading of arrays.

Arrays are read without unpickling objects; every problem with their file raises FormatError.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, TypeAlias

import numpy as np
from numpy.lib.npyio import NpzFile

from leakbound._base.locks import hold, holder, locked_folder, take
from leakbound._base.messages import Message
from leakbound._base.streams import SCHEME
from leakbound._base.types import AnyArray, PathInput
from leakbound.errors import FormatError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa

# End of the name of a folder that another is replacing.
_OLD = ".old"


@contextmanager
def replacing(path: PathInput, *, secret: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    The bytes go to a new file in the same folder, reach the disk, and only then get the name; a
    reader sees the old content or the new, and a block that raises leaves the old in place. Links
    are followed, and the new file has the owner and the permissions of the old one; only its owner
    can read one that is `secret`. Devices and pipes are refused: a name is all that they are.
    """
    target = resolved(path)
    permissions = None
    replaced_file = None
    if target.exists():
        replaced_file = target.stat()
        _refuse_other_than_file(path, replaced_file)
        permissions = stat.S_IMODE(replaced_file.st_mode)
    if secret:
        permissions = 0o600
    temporary_file = _temporary_beside(target)
    with _named_in_errors(path, temporary_file):
        try:
            temporary_file.touch(0o666 if permissions is None else 0o600, exist_ok=False)
            with temporary_file.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if replaced_file is not None:
                _give_to_owner(temporary_file, replaced_file)
            if permissions is not None:
                temporary_file.chmod(permissions)
            temporary_file.replace(target)
        finally:
            temporary_file.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _refuse_other_than_file(path: PathInput, status: os.stat_result) -> None:
    """Refuse to put a file in the place of a folder, a device or a pipe."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = "a device or a pipe"
    if stat.S_ISDIR(status.st_mode):
        kind = "a folder"
    raise OptionError(f"{path} is {kind}, which a file would replace: choose another name")


def _temporary_beside(target: Path) -> Path:
    """Return a new name in the folder of a file or folder that it will replace."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")


@contextmanager
def _named_in_errors(path: PathInput, temporary: Path) -> Iterator[None]:
    """Name `path` in errors of the system that name a temporary file of it, or no file.

    Of a stream whose disk is full the system says no name.
    """
    try:
        yield
    except OSError as error:
        file_in_error = error.filename
        if file_in_error is None:
            file_in_error = str(temporary)
        is_temporary = isinstance(file_in_error, str) and Path(file_in_error).is_relative_to(
            temporary
        )
        if error.errno is None or not is_temporary:
            raise
        named_file = Path(path) / Path(file_in_error).relative_to(temporary)
        raise OSError(error.errno, error.strerror, str(named_file)) from error


def resolved(path: PathInput) -> Path:
    """Return what the links of a path lead to, which may not be there yet."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OptionError(f"{path} is a loop of links: choose another name")
    return target


def _give_to_owner(file: Path, replaced_file: os.stat_result) -> None:
    """Give a file to the owner of the one it replaces, where this user can."""
    new_file = file.stat()
    if (new_file.st_uid, new_file.st_gid) != (replaced_file.st_uid, replaced_file.st_gid):
        with suppress(OSError):
            os.chown(file, replaced_file.st_uid, replaced_file.st_gid)


def write_text(path: PathInput, text: str, *, secret: bool = False) -> None:
    """Write `text` as UTF-8 to `path`, all of it or nothing; see `replacing`."""
    with replacing(path, secret=secret) as file:
        file.write(text.encode())


def secret_folder(path: PathInput) -> Path:
    """Make a folder that only its owner reads.

    A folder with files stays as it is, for it may be shared, such as the home of a project; secret
    files have permissions of their own.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        with suppress(PermissionError):  # of another owner, who decides
            folder.chmod(0o700)
    return folder


@contextmanager
def replacing_folder(path: PathInput) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends without an error.

    Files go to a new folder beside it, reach the disk, and only then the folder gets the name. A
    block that raises leaves the old folder as it was, and so does one that is killed: the folder is
    without its name for a moment, and `recover_folder` gives it back.
    """
    target = resolved(path)
    if target.exists() and not target.is_dir():
        raise OptionError(f"{path} is not a folder, and would be lost: choose another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary_folder = _temporary_beside(target)
    with _named_in_errors(path, temporary_folder):
        temporary_folder.mkdir()
        try:
            yield temporary_folder
            _sync_folder(temporary_folder)
            with locked_folder(target.parent):
                _swap_folders(temporary_folder, target)
        finally:
            shutil.rmtree(temporary_folder, ignore_errors=True)
    _sync_folder(target.parent)


def _swap_folders(new_folder: Path, target: Path) -> None:
    """Give a new folder the name and the permissions of the old one, which is deleted."""
    _rename_old_folder(target)
    if not target.is_dir():
        new_folder.rename(target)
        return
    for old_path in (target, *target.iterdir()):
        new_path = new_folder / old_path.relative_to(target)
        if new_path.exists() and not old_path.is_symlink():
            new_path.chmod(stat.S_IMODE(old_path.stat().st_mode))
    for abandoned_folder in _old_folders(target):
        shutil.rmtree(abandoned_folder, ignore_errors=True)
    old_folder = target.rename(f"{new_folder}{_OLD}")
    try:
        new_folder.rename(target)
    except BaseException:  # an interrupt, too
        if not target.exists():
            old_folder.rename(target)
        raise
    try:
        old_folder = old_folder.rename(new_folder)  # what is half deleted must not be given back
    finally:
        shutil.rmtree(old_folder, ignore_errors=True)


def recover_folder(path: PathInput) -> None:
    """Give a folder its name back if a program that replaced it was killed just then."""
    target = resolved(path)
    if not target.exists() and _old_folders(target):
        with locked_folder(target.parent):  # whoever replaces it now may finish
            _rename_old_folder(target)


def _rename_old_folder(target: Path) -> None:
    """Give the latest old folder its name back, if no folder has it."""
    if target.exists():
        return
    for latest_folder in _old_folders(target)[-1:]:
        latest_folder.rename(target)


def _old_folders(target: Path) -> list[Path]:
    """Return the old folders that were not given back nor deleted, the latest last."""
    random_hexadecimal = "[0-9a-f]" * 16
    old_folders = target.parent.glob(f".{escape(target.name)}.{random_hexadecimal}{_OLD}")
    return sorted(old_folders, key=lambda folder: folder.stat().st_mtime_ns)


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where folders can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Bytes that arrays may unpack to whatever they were packed from, and how often their packed size
# more of them may be: scores and memberships pack less well.
_PLAIN = 1 << 28
_RATIO = 100
# Bytes that are read from parquet at once.
_PIECE = 1 << 16
# Bytes that fit in memory: if even these do not, the header is wrong.
_SMALL = 1 << 30


class Unpacked:
    """How much a file unpacks to: a small file must not fill the memory.

    Deflate packs 1,032 bytes into one, and parquet any number, and the size in a file is whatever
    its writer wants. So what comes out is counted, and refused where it is more than a gigabyte and
    more than 100 times the file. If `most_rows` is given, rows are counted in its place.
    """

    def __init__(self, packed: int, most_rows: int | None = None) -> None:
        self._packed = packed
        self._most_rows = most_rows
        self._bytes = 0
        self.rows = 0

    def add(self, size: int, rows: int = 0) -> None:
        """Count bytes and rows that came out; raise FormatError where they are too many."""
        self._bytes += size
        self.rows += rows
        most = max(_SMALL, _RATIO * self._packed)
        if self._most_rows is None and self._bytes > most:
            raise FormatError(
                f"it unpacks from {self._packed:,} to more than {most:,} bytes: if this is "
                "intended, write it with less compression, or say how many rows it has at most, "
                "--most-rows N"
            )
        if self._most_rows is not None and self.rows > self._most_rows:
            raise FormatError(f"it has more than {self._most_rows:,} rows, which is --most-rows")


def parquet_batches(
    path: PathInput,
    *,
    columns: Sequence[str] | None = None,
    rows: int = 1 << 18,
    unpacked: Unpacked | None = None,
) -> "tuple[pa.Schema, Iterator[pa.RecordBatch]]":
    """Return the schema of a parquet file, and its rows in batches whose size is counted."""
    from pyarrow import parquet

    if unpacked is None:
        unpacked = Unpacked(Path(path).stat().st_size)
    # By its path, and in pieces that stay in the cache: a third faster than an open file.
    parquet_file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=_PIECE)

    def counted_batches(counter: Unpacked) -> "Iterator[pa.RecordBatch]":
        for batch in parquet_file.iter_batches(rows, columns=columns):
            counter.add(batch.nbytes, len(batch))
            yield batch

    return parquet_file.schema_arrow, counted_batches(unpacked)


class Archive:
    """The arrays of an .npz file, by name, each read when it is asked for."""

    def __init__(self, content: NpzFile, most: int | None) -> None:
        assert content.zip is not None  # it is open
        self._unpacked_size = 0
        packed_size = 0
        for array_file in content.zip.infolist():
            self._unpacked_size += array_file.file_size
            packed_size += array_file.compress_size
        if most is not None and self._unpacked_size > most:
            raise FormatError(
                f"its arrays have {self._unpacked_size:,} bytes in total; at most {most:,} are read"
            )
        if self._unpacked_size > max(_PLAIN, _RATIO * packed_size):
            raise FormatError(
                f"its arrays would unpack from {packed_size:,} to {self._unpacked_size:,} bytes; "
                "if this is intended, save them uncompressed with numpy.savez"
            )
        self._content = content
        self.names = list(content.files)

    def __getitem__(self, name: str) -> AnyArray:
        """Read one array."""
        if name not in self.names:
            raise FormatError(f"it has no array named {name!r}")
        with _as_format_errors(self._unpacked_size):
            array: object = self._content[name]
            if isinstance(array, np.ndarray):
                return array
        raise FormatError(f"{name!r} is not an array")


@contextmanager
def open_archive(source: PathInput | IO[bytes], *, most: int | None = None) -> Iterator[Archive]:
    """Open an .npz file; `most` is how many bytes its arrays may have in all, unpacked."""
    with _loaded_by_numpy(source) as content:
        if not isinstance(content, NpzFile):
            raise FormatError("it is not an archive of arrays (.npz)")
        with content:
            yield Archive(content=content, most=most)


def read_array_file(source: PathInput | IO[bytes]) -> AnyArray:
    """Read an .npy file."""
    with _loaded_by_numpy(source) as array:
        if isinstance(array, np.ndarray):
            return array
    raise FormatError("it has several arrays; save one in an .npy file")


@contextmanager
def _loaded_by_numpy(source: PathInput | IO[bytes]) -> Iterator[object]:
    """Open a file with NumPy; it stays open for an archive."""
    with ExitStack() as open_files:
        file = source
        if isinstance(source, str | os.PathLike):
            file = open_files.enter_context(Path(source).open("rb"))
        with _as_format_errors():
            content = np.load(file, allow_pickle=False)
        yield content


@contextmanager
def _as_format_errors(unpacked_size: int = 0) -> Iterator[None]:
    """Convert all errors of reading a file into FormatError."""
    try:
        yield
    except FormatError:
        raise
    except MemoryError as error:
        if unpacked_size > _SMALL:
            raise
        raise FormatError("it declares an array that is much larger than the file") from error
    except Exception as error:  # zipfile and NumPy have a dozen ways to say that bytes are wrong
        raise FormatError(" ".join(str(error).split())[:200] or type(error).__name__) from error


Arrays: TypeAlias = dict[str, AnyArray]

# Of the files; raised with every change that makes older ones unreadable.
_SCHEME = "leakbound checkpoints, scheme 3"
RECORD = "made-of.json"
"""What the files of a folder were made of."""
# Name of the digest among the arrays of an outcome.
_SEAL = "sha256"
# How many differences from a stored record are named, and how much of a name is shown
_NAMED = 8
_LONG = 60


class Checkpoints:
    """Outcomes of one run by name, so that an interrupted run goes on; None keeps nothing.

    A folder has a record of what its outcomes were made of, and a file of arrays for each, sealed
    with its name and that record. What is damaged or of another run is refused.
    """

    def __init__(self, folder: PathInput | None, made_of: Mapping[str, str]) -> None:
        made_of_with_schemes = {"scheme": _SCHEME, "random streams": SCHEME, **made_of}
        self._made_of = json.dumps(made_of_with_schemes, sort_keys=True)
        self._folder = None
        if folder is None:
            return
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        with writing_alone(self, self._folder):
            kept_outcomes = self._folder.glob("*.npz")
            keep_record(self._folder, content=made_of_with_schemes, kept=kept_outcomes)

    def load(self, name: str) -> Arrays | None:
        """Return an outcome if it is kept; refuse one that is damaged or of another name."""
        checkpoint = self._checkpoint(name)
        if checkpoint is None or not checkpoint.exists():
            return None
        try:
            with open_archive(checkpoint) as archive:
                outcome = {array_name: archive[array_name] for array_name in archive.names}
            if str(outcome.pop(_SEAL, None)) == self._seal(name, outcome):
                return outcome
            flaw = f"is damaged or not the outcome {name!r}"
        except (FormatError, OSError) as error:
            flaw = f"cannot be read: {error}"
        raise FormatError(f"the checkpoint {checkpoint} {flaw}: delete it to repeat this step")

    def save(self, name: str, outcome: Arrays) -> None:
        """Keep an outcome, in place of one of the same name."""
        checkpoint = self._checkpoint(name)
        if checkpoint is not None:
            sealed_outcome = outcome | {_SEAL: np.array(self._seal(name, outcome))}
            with replacing(checkpoint) as file:
                np.savez(file, allow_pickle=False, **sealed_outcome)

    def phase(self, name: str, work: Callable[[], Arrays]) -> Arrays:
        """Return the outcome that is kept, or else do the work and keep it."""
        outcome = self.load(name)
        if outcome is None:
            outcome = work()
            self.save(name, outcome)
        return outcome

    def _checkpoint(self, name: str) -> Path | None:
        """Return the file of an outcome, if outcomes are kept."""
        if self._folder is None:
            return None
        return self._folder / f"{name}.npz"

    def _seal(self, name: str, outcome: Arrays) -> str:
        """Return a digest: the run, the name, and names, types, shapes and values of arrays."""
        return digest(np.array([self._made_of, name, *outcome]), *outcome.values())


def digest(*arrays: AnyArray | None) -> str:
    """Return the SHA-256, in hexadecimal, of arrays: their types, shapes and values."""
    digest_of_arrays = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest_of_arrays.update(b"none")
            continue
        digest_of_arrays.update(f"{array.dtype.str}{array.shape}".encode())
        digest_of_arrays.update(array.tobytes())
    return digest_of_arrays.hexdigest()


@contextmanager
def file_alone(path: PathInput | None) -> Iterator[None]:
    """Run the block while no other process runs one with the same file, which may be written often.

    A file that takes the place of another is not locked, so that a file beside it is: it goes when
    the block ends, and is free to be taken after a kill. Without a path there is nothing to hold.
    """
    if path is None:
        yield
        return
    target = resolved(path)
    lock_file = target.with_name(f".{target.name}.lock")
    with locked_folder(target.parent):
        descriptor_of_lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        if not take(descriptor_of_lock, wait=False):
            other_process = holder(os.fstat(descriptor_of_lock).st_ino)
            os.close(descriptor_of_lock)
            raise FormatError(
                f"{path} is being written by {other_process}: wait until it ends, or choose "
                "another file"
            )
    try:
        yield
    finally:
        with locked_folder(target.parent):
            os.close(descriptor_of_lock)
            lock_file.unlink(missing_ok=True)


@contextmanager
def writing_alone(owner: object, folder: Path) -> Iterator[None]:
    """Hold the record of a folder, which the block checks or writes, as long as an owner lives.

    One process writes a folder: what two make at once would be a mixture.
    """
    record = folder / RECORD
    with locked_folder(folder):
        _hold_record(owner, record)
        yield
        _hold_record(owner, record)


def _hold_record(owner: object, record: Path) -> None:
    """Hold the record of a folder, if it has one; raise FormatError if another process does."""
    if not record.exists():
        return
    other_process = hold(owner, record)
    if other_process:
        raise FormatError(
            f"{record.parent} is being written by {other_process}: wait until it ends, or choose "
            "another folder"
        )


def keep_record(folder: Path, content: Mapping[str, str], kept: Iterable[Path]) -> None:
    """Write what the kept files of a folder are made of, or compare it with what is written."""
    record = folder / RECORD
    if record.exists():
        _check_record(record, content)
        return
    first_kept_file = min(kept, default=None)
    if first_kept_file is not None:
        raise FormatError(
            f"{folder} has {first_kept_file.name} but no record of its inputs: choose an empty or "
            "new folder"
        )
    write_text(record, json.dumps(content, indent=1) + "\n")


def _field_of_message(name: str) -> str:
    """Return a name for a message's template: an option if it has several words, else a text."""
    if "_" in name and name.isidentifier():
        return f"{{{name}}}"
    return name[:_LONG].replace("{", "{{").replace("}", "}}")


def _check_record(record: Path, content: Mapping[str, str]) -> None:
    """Compare what a folder's outcomes were made of with a run."""
    remedy = "choose another folder, or delete this one to start again"
    try:
        stored_content = json.loads(record.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        stored_content = None
    if not isinstance(stored_content, dict):
        raise FormatError(f"{record} is not a record of checkpoints: {remedy}")
    differing_names = list[str]()
    for name in {**stored_content, **content}:
        if stored_content.get(name) != content.get(name):
            differing_names.append(name)
    if differing_names:
        differing_inputs: str = "version of leakbound"
        if "scheme" not in differing_names:
            fields = map(_field_of_message, differing_names[:_NAMED])
            differing_inputs = Message(" and another ".join(fields))
        message = Message(
            "the files in {folder} are from another {other}; {remedy}",
            folder=record.parent,
            other=differing_inputs,
            remedy=remedy,
        )
        raise FormatError(message)
