"""Run a case in the environment of its package, which need not have leakbound.

This file is also a program: ``python worker.py CASE`` loads a case and answers requests on standard
input. It needs Python 3.8 and NumPy, and imports nothing else of this package.

Messages and stored outputs are packed alike: a header in JSON, then the bytes of arrays. Nothing is
pickled, so that reading a file runs no code of others.
"""

from __future__ import annotations

import base64
import copy
import datetime as dt
import hashlib
import json
import os
import queue
import random
import signal
import struct
import sys
import threading
import traceback
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What a mechanism returns: anything that can be packed
Output = Any
# What JSON holds of it: its kind and its parts
Header = Any
# Bytes that say how long a message or a header is
_LENGTH = struct.Struct(">Q")
# Bytes of a message at most: more is no message
_LARGEST = 1 << 40
# Levels of lists in lists that are read: what holds itself has no end
_DEEPEST = 64
# Kinds of arrays that are kept as bytes: numbers, truth values, times and words
_PLAIN = "biufcmMSU"
_TIMES: dict[str, type[dt.datetime | dt.date | dt.time]] = {
    "datetime": dt.datetime,
    "date": dt.date,
    "time": dt.time,
}
_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


@dataclass(frozen=True)
class Failure:
    """A run that returned nothing: what happened is its output.

    Parameters
    ----------
    kind : {"raised", "died", "timed out"}
        An exception; the end of the process that ran the mechanism; or no output in time.
    name : str
        The class of the exception, the exit code or the signal, or the time allowed.
    message : str
        The words of the exception, or the last ones on standard error. No score that is learnt
        reads them.
    """

    kind: str
    name: str
    message: str = ""


def pack(value: Output) -> bytes:
    """Return a value as bytes: equal values of equal types give equal bytes, NaN included.

    Zeros of either sign are not equal here.

    Raises
    ------
    TypeError
        For anything but numbers, text, bytes, truth values, None, dates, lists, tuples, sets,
        dictionaries, arrays and frames of these.
    """
    blocks: list[bytes] = []
    header = json.dumps(_packed(value, blocks, _DEEPEST), separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *blocks])


def unpack(content: bytes) -> Output:
    """Return the value that `pack` was given; raise ValueError for other bytes."""
    try:
        start = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        value, _ = _read(json.loads(content[_LENGTH.size : start]), content, start)
    except (struct.error, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError(f"not a packed value: {error}") from error
    return value


def together(outputs: Sequence[Output]) -> Output:
    """Return outputs as one array where all are numbers of one shape and kind, else as a list."""
    first = outputs[0]
    if not isinstance(first, np.ndarray) or first.dtype.kind not in "biuf":
        return list(outputs)
    for one in outputs:
        if not isinstance(one, np.ndarray):
            return list(outputs)
        if (one.shape, one.dtype.kind) != (first.shape, first.dtype.kind):
            return list(outputs)
    return np.array(outputs)


def _packed(value: Output, blocks: list[bytes], depth: int) -> Header:
    """Return the header of a value, and append the bytes of its arrays to `blocks`."""
    if depth == 0:
        raise TypeError("lists in lists, of more than 64 levels")
    if value is None or isinstance(value, bool):
        return value
    if _is_missing(value):
        return None
    # Scalars of NumPy are numbers and words of Python, too: first come those that know their width
    for pack_one in (_packed_array, _packed_number, _packed_text_or_time, _packed_frame):
        header = pack_one(value, blocks, depth)
        if header is not None:
            return header
    if isinstance(value, Failure):
        return ["failure", value.kind, value.name, value.message]
    for name, kind in _SEQUENCES.items():
        if isinstance(value, kind):
            return _packed_sequence(name, value, blocks, depth)
    if isinstance(value, dict):
        pairs = [
            [_packed(key, blocks, depth - 1), _packed(one, blocks, depth - 1)]
            for key, one in value.items()
        ]
        return ["dict", pairs]
    kind = type(value)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__}")


def _packed_number(value: Output, _blocks: list[bytes], _depth: int) -> Header:
    if isinstance(value, int):
        return ["int", hex(value)]
    if isinstance(value, float):
        return ["float", float(value).hex()]
    if isinstance(value, complex):
        return ["complex", value.real.hex(), value.imag.hex()]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, Fraction):
        return ["fraction", hex(value.numerator), hex(value.denominator)]
    return None


def _packed_text_or_time(value: Output, _blocks: list[bytes], _depth: int) -> Header:
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ["bytes", base64.b64encode(value).decode()]
    finer = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) % 1000
    for name in ("to_datetime64", "to_timedelta64"):
        if finer and hasattr(value, name):  # of pandas: the standard library has microseconds
            return _packed_array(getattr(value, name)(), _blocks, _depth)
    for name, kind in _TIMES.items():
        if isinstance(value, kind):
            return [name, str(value.isoformat())]
    if isinstance(value, dt.timedelta):
        return ["timedelta", value.days, value.seconds, value.microseconds]
    return None


def _packed_sequence(name: str, value: Output, blocks: list[bytes], depth: int) -> Header:
    if name in ("list", "tuple"):
        return [name, [_packed(one, blocks, depth - 1) for one in value]]
    # Sets have another order in each process
    parts = sorted(pack(one) for one in value)
    return [name, [base64.b64encode(part).decode() for part in parts]]


def _packed_array(value: Output, blocks: list[bytes], depth: int) -> Header:
    """Return the header of arrays of NumPy, and of what becomes one, such as tensors."""
    is_tensor = hasattr(value, "detach") and hasattr(value, "cpu")
    if is_tensor:
        value = value.detach().cpu().numpy()
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("an array with masked entries")
    array = np.asarray(value)
    shape = list(array.shape)
    if array.dtype == object:
        parts = [_packed(one, blocks, depth - 1) for one in array.ravel().tolist()]
        return ["objects", shape, parts]
    if array.dtype.kind not in _PLAIN:
        raise TypeError(f"an array of {array.dtype}")
    blocks.append(array.tobytes())
    name = "scalar" if isinstance(value, np.generic) else "array"
    return [name, array.dtype.str, shape]


def _packed_frame(value: Output, blocks: list[bytes], depth: int) -> Header:
    """Return the header of frames and columns of pandas, polars and Arrow."""
    package = type(value).__module__.partition(".")[0]
    if package == "pyarrow" and hasattr(value, "as_py"):
        return _packed(value.as_py(), blocks, depth - 1)
    if package == "pyarrow" and hasattr(value, "to_pydict"):
        return _packed(value.to_pydict(), blocks, depth - 1)
    if package == "pyarrow" and hasattr(value, "to_pylist"):
        return _packed(value.to_pylist(), blocks, depth - 1)
    is_frame = hasattr(value, "columns") and len(getattr(value, "shape", ())) == 2
    is_column = hasattr(value, "to_list") and hasattr(value, "name")
    if package not in ("pandas", "polars") or not (is_frame or is_column):
        return None
    index = None
    if package == "pandas":
        index = _cells(value.index)
    if is_column:
        content = ["column", package, value.name, index, _cells(value)]
    else:
        columns = [_cells(column) for column in _columns(value)]
        content = ["frame", package, list(value.columns), index, columns]
    return ["frame", _packed(content, blocks, depth - 1)]


def _columns(frame: Output) -> list[Output]:
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, number] for number in range(frame.shape[1])]
    return list(frame.get_columns())


def _cells(column: Output) -> object:
    """Return numbers and times of a column as an array, and other cells as a list."""
    if isinstance(getattr(column, "dtype", None), np.dtype):
        array = np.asarray(column)
        if array.dtype.kind in "biufM":
            return array
    listed = column.to_list()
    return [None if _is_missing(cell) else cell for cell in listed]


def _is_missing(value: Output) -> bool:
    """Whether a value is what pandas has for a missing one, of times or of any type."""
    return type(value).__name__ in ("NAType", "NaTType")


def _read(header: Header, content: bytes, start: int) -> tuple[Output, int]:
    """Return a value, and where the bytes of later arrays begin."""
    if header is None or isinstance(header, bool):
        return header, start
    name, *parts = header
    if name in ("array", "scalar"):
        dtype = np.dtype(parts[0])
        if dtype.kind not in _PLAIN:
            raise ValueError(f"an array of {dtype}")
        size = int(np.prod(parts[1], dtype=np.int64))
        stop = start + size * dtype.itemsize
        array = np.frombuffer(content[start:stop], dtype=dtype).reshape(parts[1]).copy()
        return (array[()] if name == "scalar" else array), stop
    if name == "objects":
        found, stop = _read_all(parts[1], content, start)
        array = np.empty(len(found), dtype=object)
        array[:] = found
        return array.reshape(parts[0]), stop
    if name in ("list", "tuple"):
        found, stop = _read_all(parts[0], content, start)
        return _SEQUENCES[name](found), stop
    if name in _SEQUENCES:
        return _SEQUENCES[name](unpack(base64.b64decode(one)) for one in parts[0]), start
    if name == "dict":
        keys_and_values, stop = _read_all(
            [one for pair in parts[0] for one in pair], content, start
        )
        return dict(zip(keys_and_values[::2], keys_and_values[1::2])), stop  # noqa: B905 (of 3.10)
    if name == "frame":
        found, stop = _read(parts[0], content, start)
        return _frame(*found), stop
    return _ATOMS[name](*parts), start


def _read_all(headers: Sequence[Output], content: bytes, start: int) -> tuple[list[Output], int]:
    values = []
    for header in headers:
        value, start = _read(header, content, start)
        values.append(value)
    return values, start


_ATOMS: dict[str, Callable[..., Output]] = {
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "decimal": Decimal,
    "fraction": lambda over, under: Fraction(int(over, 16), int(under, 16)),
    "str": str,
    "bytes": base64.b64decode,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": dt.timedelta,
    "failure": Failure,
}


def _frame(shape: str, package: str, names: Output, index: Output, cells: Output) -> Output:
    """Return a frame or a column of its package, or its parts where that is not installed."""
    try:
        if package == "pandas":
            return _frame_of_pandas(shape, names, index, cells)
        import polars as pl
    except ImportError:
        return {"columns": names, "index": index, "cells": cells}
    if shape == "column":
        return pl.Series(names, cells)
    return pl.DataFrame(dict(zip(names, cells)))  # noqa: B905 (of 3.10)


def _frame_of_pandas(shape: str, names: Output, index: Output, cells: Output) -> Output:
    import pandas as pd

    if shape == "column":
        return pd.Series(_as_is(cells), index=index, name=names)
    frame = pd.DataFrame(dict(enumerate(map(_as_is, cells))), index=index)
    frame.columns = names
    return frame


def _as_is(cells: Output) -> Output:
    """Return cells as an array whose values pandas does not change, such as None to NaN."""
    if isinstance(cells, np.ndarray):
        return cells
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


class _Case:
    """A case file that was loaded, and the answers to requests about it."""

    def __init__(self, path: str) -> None:
        place = Path(path).resolve()
        self._folder = place.parent
        if str(self._folder) not in sys.path:
            sys.path.append(str(self._folder))  # last: a file there takes the place of no package
        self._content = place.read_bytes()
        # By its own name, so that processes that it starts can import it
        module = ModuleType(place.stem)
        module.__file__ = str(place)
        sys.modules[place.stem] = module
        exec(compile(self._content, str(place), "exec"), vars(module))
        self._module = module

    def flaw(self) -> str:
        """Return what a case lacks, or has another thing in the place of."""
        module = self._module
        needed = ("run", "d0", "d1", "claim", "parameter")
        missing = [name for name in needed if not hasattr(module, name)]
        if missing:
            return (
                f"has no {', '.join(missing)}: it needs run(data, rng), the inputs d0 and d1, "
                "claim and parameter"
            )
        if not callable(module.run):
            return "must have a function of data and rng as run"
        if self._score() is not None and not callable(self._score()):
            return "must have a function of outputs as score, or none"
        try:
            float(module.parameter)
        except (TypeError, ValueError):
            return f"must have a number as parameter, got {module.parameter!r}"
        if _is_equal(module.d0, module.d1):
            return (
                "has equal inputs d0 and d1, which nothing can tell apart: choose two that the "
                "claim regards as neighbours"
            )
        return ""

    def about(self) -> dict[str, Any]:
        """Return what a case says about itself, and the packages beside it."""
        flaw = self.flaw()
        if flaw:
            return {"flaw": flaw}
        return {
            "flaw": "",
            "claim": str(self._module.claim),
            "parameter": float(self._module.parameter),
            "has_score": self._score() is not None,
            "identity": self._identity(),
        }

    def _identity(self) -> str:
        """Return a digest of the case, of files beside it that it imports, and of its packages."""
        parts = [self._content, sys.version.encode(), "\n".join(_packages()).encode()]
        for name in sorted(sys.modules):
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == self._folder and Path(file).suffix == ".py":
                parts.append(Path(file).read_bytes())
        digests = [hashlib.sha256(part).digest() for part in parts]
        return hashlib.sha256(b"".join(digests)).hexdigest()

    def run(self, coin: bool, seed: int) -> Output:  # noqa: FBT001 (a message, by position)
        """Run on one of the inputs, with all generators seeded."""
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 (what old packages draw from)
        rng = np.random.default_rng(seed)
        data = self._module.d1 if coin else self._module.d0
        with suppress(Exception):  # a run may write to its input, if that can be copied
            data = copy.deepcopy(data)
        return self._module.run(data, rng)

    def score(self, outputs: Output) -> Output:
        """Return a score for each output."""
        return np.asarray(self._score()(outputs))

    def _score(self) -> Any:
        return getattr(self._module, "score", None)


def _is_equal(d0: Output, d1: Output) -> bool:
    try:
        return pack(d0) == pack(d1)
    except TypeError:
        return d0 is d1


def _packages() -> list[str]:
    """Return names and versions of all packages of this environment."""
    from importlib.metadata import distributions

    found = {f"{one.metadata['Name']}=={one.version}" for one in distributions()}
    return sorted(found)


def send(file: IO[bytes], content: bytes) -> None:
    """Write a message that was packed."""
    file.write(_LENGTH.pack(len(content)) + content)
    file.flush()


def receive(file: IO[bytes]) -> Output:
    """Read a message; raise EOFError where there is none."""
    start = file.read(_LENGTH.size)
    if len(start) < _LENGTH.size:
        raise EOFError
    size = _LENGTH.unpack(start)[0]
    if size > _LARGEST:
        raise ValueError("not a message")
    content = file.read(size)
    if len(content) < size:
        raise EOFError
    return unpack(content)


def words_of(error: BaseException) -> str:
    """Return the words of an exception, or none if they cannot be had."""
    try:
        return str(error)
    except Exception:
        return ""


def _trace(error: BaseException) -> str:
    """Return the traceback of an exception from where this file called others."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    return "".join(traceback.format_exception(type(error), error, place)).rstrip()


def _answer(act: Callable[[], Output]) -> bytes:
    """Return what a function returns or raises, as a message."""
    try:
        value = act()
    except Exception as error:  # of the mechanism: this is its output
        name = type(error).__qualname__
        return pack(("raised", name, words_of(error), _trace(error)))
    try:
        content = pack(("returned", value))
        unpack(content)
    except Exception as error:  # of a container of any package
        return pack(("refused", words_of(error)))
    return content


def main(path: str) -> None:
    """Answer requests until standard input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What the mechanism prints or reads is no message
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    loaded: list[_Case] = []

    def load() -> dict[str, object]:
        case = _Case(path)
        about = case.about()
        loaded.append(case)
        return about

    send(answers, _answer(load))
    if not loaded:
        return
    case = loaded[0]
    acts: dict[str, Callable[..., Output]] = {"run": case.run, "score": case.score}
    waiting: queue.Queue[Output] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    while True:
        for name, *given in waiting.get():
            send(answers, _answer(partial(acts[name], *given)))


def _listen(requests: IO[bytes], waiting: queue.Queue[Output]) -> None:
    """Pass on requests; where nobody asks any more, end what runs, and all that it started."""
    try:
        while True:
            waiting.put(receive(requests))
    except EOFError:
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # files beside this one must not take the place of packages
    main(sys.argv[1])
