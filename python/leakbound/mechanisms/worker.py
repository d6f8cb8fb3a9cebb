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
import io
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
_MOST_MESSAGE_BYTES = 1 << 40
# Levels of lists in lists that are read: what holds itself has no end
_MOST_LEVELS = 64
# Kinds of arrays that are kept as bytes: numbers, truth values, times and words
_PLAIN_ARRAY_KINDS = "biufcmMSU"
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
    bytes_of_arrays: list[bytes] = []
    header = _header_of_value(value, bytes_of_arrays, _MOST_LEVELS)
    header_bytes = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(header_bytes)), header_bytes, *bytes_of_arrays])


def unpack(content: bytes) -> Output:
    """Return the value that `pack` was given; raise ValueError for other bytes."""
    packed_bytes = io.BytesIO(content)
    try:
        header_length = int.from_bytes(packed_bytes.read(_LENGTH.size), "big")
        header = json.loads(packed_bytes.read(header_length))
        return _value_of_header(header, packed_bytes)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"not a packed value: {error}") from error


def outputs_together(outputs: Sequence[Output]) -> Output:
    """Return outputs as one array where all are numbers of one shape and kind, else as a list."""
    first_output = outputs[0]
    if not isinstance(first_output, np.ndarray) or first_output.dtype.kind not in "biuf":
        return list(outputs)
    for output in outputs:
        if not isinstance(output, np.ndarray):
            return list(outputs)
        if (output.shape, output.dtype.kind) != (first_output.shape, first_output.dtype.kind):
            return list(outputs)
    return np.array(outputs)


def _header_of_value(value: Output, bytes_of_arrays: list[bytes], levels_left: int) -> Header:
    """Return the header of a value, and append the bytes of its arrays to `bytes_of_arrays`.

    `levels_left` says how many levels of lists in lists there may be.
    """
    if levels_left == 0:
        raise TypeError("lists in lists, of more than 64 levels")
    if value is None or isinstance(value, bool):
        return value
    if _is_missing(value):
        return None
    # Scalars of NumPy are numbers and words of Python, too: first come those that know their width
    for header_of_kind in (
        _header_of_array,
        _header_of_python_number,
        _header_of_text_or_time,
        _header_of_frame,
    ):
        possible_header = header_of_kind(value, bytes_of_arrays, levels_left)
        if possible_header is not None:
            return possible_header
    if isinstance(value, Failure):
        return ["failure", value.kind, value.name, value.message]
    for name, sequence_type in _SEQUENCES.items():
        if isinstance(value, sequence_type):
            return _header_of_sequence(name, value, bytes_of_arrays, levels_left)
    if isinstance(value, dict):
        headers_of_pairs = []
        for mapping_key, mapping_value in value.items():
            key_header = _header_of_value(mapping_key, bytes_of_arrays, levels_left - 1)
            value_header = _header_of_value(mapping_value, bytes_of_arrays, levels_left - 1)
            headers_of_pairs.append([key_header, value_header])
        return ["dict", headers_of_pairs]
    unknown_type = type(value)
    raise TypeError(f"{unknown_type.__module__}.{unknown_type.__qualname__}")


def _header_of_python_number(
    python_number: Output, _bytes_of_arrays: list[bytes], _levels_left: int
) -> Header:
    """Return the header of a number of Python, with all its digits."""
    if isinstance(python_number, int):
        return ["int", hex(python_number)]
    if isinstance(python_number, float):
        return ["float", float(python_number).hex()]
    if isinstance(python_number, complex):
        return ["complex", python_number.real.hex(), python_number.imag.hex()]
    if isinstance(python_number, Decimal):
        return ["decimal", str(python_number)]
    if isinstance(python_number, Fraction):
        return ["fraction", hex(python_number.numerator), hex(python_number.denominator)]
    return None


def _header_of_text_or_time(
    value: Output, bytes_of_arrays: list[bytes], levels_left: int
) -> Header:
    """Return the header of text, bytes, dates and times."""
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ["bytes", base64.b64encode(value).decode()]
    nanoseconds = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) % 1000
    if nanoseconds:  # of pandas: the standard library has microseconds
        for method in ("to_datetime64", "to_timedelta64"):
            if hasattr(value, method):
                return _header_of_array(getattr(value, method)(), bytes_of_arrays, levels_left)
    for name, time_type in _TIMES.items():
        if isinstance(value, time_type):
            return [name, str(value.isoformat())]
    if isinstance(value, dt.timedelta):
        return ["timedelta", value.days, value.seconds, value.microseconds]
    return None


def _header_of_sequence(
    sequence_name: str, value: Output, bytes_of_arrays: list[bytes], levels_left: int
) -> Header:
    """Return the header of lists, tuples and sets."""
    if sequence_name in ("list", "tuple"):
        element_headers = [
            _header_of_value(element, bytes_of_arrays, levels_left - 1) for element in value
        ]
        return [sequence_name, element_headers]
    # Sets have another order in each process
    packed_elements = sorted(pack(element) for element in value)
    return [sequence_name, [base64.b64encode(packed).decode() for packed in packed_elements]]


def _header_of_array(value: Output, bytes_of_arrays: list[bytes], levels_left: int) -> Header:
    """Return the header of arrays of NumPy, and of what becomes one, such as tensors."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor
        value = value.detach().cpu().numpy()
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("an array with masked entries")
    array_of_value = np.asarray(value)
    array_shape = list(array_of_value.shape)
    if array_of_value.dtype == object:
        array_elements = array_of_value.ravel().tolist()
        element_headers = [
            _header_of_value(element, bytes_of_arrays, levels_left - 1)
            for element in array_elements
        ]
        return ["objects", array_shape, element_headers]
    if array_of_value.dtype.kind not in _PLAIN_ARRAY_KINDS:
        raise TypeError(f"an array of {array_of_value.dtype}")
    bytes_of_arrays.append(array_of_value.tobytes())
    kind_name = "array"
    if isinstance(value, np.generic):
        kind_name = "scalar"
    return [kind_name, array_of_value.dtype.str, array_shape]


def _header_of_frame(value: Output, bytes_of_arrays: list[bytes], levels_left: int) -> Header:
    """Return the header of frames and columns of pandas, polars and Arrow."""
    frame_package = type(value).__module__.partition(".")[0]
    if frame_package == "pyarrow":
        for method in ("as_py", "to_pydict", "to_pylist"):
            if hasattr(value, method):
                return _header_of_value(getattr(value, method)(), bytes_of_arrays, levels_left - 1)
    is_frame = hasattr(value, "columns") and len(getattr(value, "shape", ())) == 2
    is_column = hasattr(value, "to_list") and hasattr(value, "name")
    if frame_package not in ("pandas", "polars") or not (is_frame or is_column):
        return None
    index_cells = None
    if frame_package == "pandas":
        index_cells = _cells_of_column(value.index)
    if is_column:
        parts_of_frame = ["column", frame_package, value.name, index_cells, _cells_of_column(value)]
    else:
        cells_of_columns = [_cells_of_column(column) for column in _columns_of_frame(value)]
        names = list(value.columns)
        parts_of_frame = ["frame", frame_package, names, index_cells, cells_of_columns]
    return ["frame", _header_of_value(parts_of_frame, bytes_of_arrays, levels_left - 1)]


def _columns_of_frame(frame: Output) -> list[Output]:
    """Return the columns of a frame, of pandas or of polars."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    return list(frame.get_columns())


def _cells_of_column(column: Output) -> object:
    """Return numbers and times of a column as an array, and other cells as a list."""
    if isinstance(getattr(column, "dtype", None), np.dtype):
        array = np.asarray(column)
        if array.dtype.kind in "biufM":
            return array
    cells = column.to_list()
    return [None if _is_missing(cell) else cell for cell in cells]


def _is_missing(value: Output) -> bool:
    """Whether a value is what pandas has for a missing one, of times or of any type."""
    return type(value).__name__ in ("NAType", "NaTType")


def _value_of_header(header: Header, array_bytes: IO[bytes]) -> Output:
    """Return the value of a header, and read the bytes of its arrays."""
    if header is None or isinstance(header, bool):
        return header
    kind_name, *header_parts = header
    if kind_name == "array":
        return _unpacked_array(array_bytes, *header_parts)
    if kind_name == "scalar":
        return _unpacked_array(array_bytes, *header_parts)[()]
    if kind_name == "objects":
        array_shape, element_headers = header_parts
        elements = _values_of_headers(element_headers, array_bytes)
        return _object_array(elements).reshape(array_shape)
    if kind_name in ("list", "tuple"):
        elements = _values_of_headers(header_parts[0], array_bytes)
        return _SEQUENCES[kind_name](elements)
    if kind_name in _SEQUENCES:
        elements = [unpack(base64.b64decode(packed)) for packed in header_parts[0]]
        return _SEQUENCES[kind_name](elements)
    if kind_name == "dict":
        return dict(_values_of_headers(pair, array_bytes) for pair in header_parts[0])
    if kind_name == "frame":
        return _unpacked_frame_or_column(*_value_of_header(header_parts[0], array_bytes))
    return _ATOMS[kind_name](*header_parts)


def _unpacked_array(
    array_bytes: IO[bytes], dtype_name: str, array_shape: list[int]
) -> np.ndarray[Any, Any]:
    """Read an array of numbers, truth values, times or words."""
    dtype = np.dtype(dtype_name)
    element_count = int(np.prod(array_shape, dtype=np.int64))
    if dtype.kind not in _PLAIN_ARRAY_KINDS or element_count < 0:
        raise ValueError(f"an array of {dtype}, of shape {array_shape}")
    content_of_array = array_bytes.read(element_count * dtype.itemsize)
    return np.frombuffer(content_of_array, dtype=dtype).reshape(array_shape).copy()


def _values_of_headers(headers: Sequence[Header], array_bytes: IO[bytes]) -> list[Output]:
    """Return the values of headers, in their order."""
    return [_value_of_header(header, array_bytes) for header in headers]


# Of kinds without parts: what makes a value of what the header holds
_ATOMS: dict[str, Callable[..., Output]] = {
    "int": lambda digits: int(digits, 16),
    "float": float.fromhex,
    "complex": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "decimal": Decimal,
    "fraction": lambda numerator, denominator: Fraction(int(numerator, 16), int(denominator, 16)),
    "str": str,
    "bytes": base64.b64decode,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": dt.timedelta,
    "failure": Failure,
}


def _unpacked_frame_or_column(
    frame_kind: str,
    frame_package: str,
    column_names: Output,
    index_cells: Output,
    cells_of_columns: Output,
) -> Output:
    """Return a frame or a column of its package, or its parts where that is not installed."""
    try:
        if frame_package == "pandas":
            return _pandas_frame(frame_kind, column_names, index_cells, cells_of_columns)
        import polars as pl
    except ImportError:
        return {"columns": column_names, "index": index_cells, "cells": cells_of_columns}
    if frame_kind == "column":
        return pl.Series(column_names, cells_of_columns)
    return pl.DataFrame(dict(zip(column_names, cells_of_columns)))  # noqa: B905 (of 3.10)


def _pandas_frame(
    frame_kind: str, column_names: Output, index_cells: Output, cells_of_columns: Output
) -> Output:
    """Return a frame or a column of pandas."""
    import pandas as pd

    if frame_kind == "column":
        column = _unchanged_by_pandas(cells_of_columns)
        return pd.Series(column, index=index_cells, name=column_names)
    columns = [_unchanged_by_pandas(column_cells) for column_cells in cells_of_columns]
    frame = pd.DataFrame(dict(enumerate(columns)), index=index_cells)
    frame.columns = column_names
    return frame


def _unchanged_by_pandas(cells: Output) -> Output:
    """Return cells as an array whose values pandas does not change, such as None to NaN."""
    if isinstance(cells, np.ndarray):
        return cells
    return _object_array(cells)


def _object_array(elements: Sequence[Output]) -> np.ndarray[Any, Any]:
    """Return elements as they are, in an array of one dimension."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


class _Case:
    """A case file that was loaded, and the answers to requests about it."""

    def __init__(self, path: str) -> None:
        case_file = Path(path).resolve()
        self._folder = case_file.parent
        if str(self._folder) not in sys.path:
            sys.path.append(str(self._folder))  # last: a file there takes the place of no package
        self._source = case_file.read_bytes()
        # By its own name, so that processes that it starts can import it
        module = ModuleType(case_file.stem)
        module.__file__ = str(case_file)
        sys.modules[case_file.stem] = module
        exec(compile(self._source, str(case_file), "exec"), vars(module))
        self._module = module
        self._score_function: Any = getattr(module, "score", None)

    def flaw(self) -> str:
        """Return what a case lacks, or has another thing in the place of."""
        module = self._module
        needed_names = ("run", "d0", "d1", "claim", "parameter")
        missing_names = [name for name in needed_names if not hasattr(module, name)]
        if missing_names:
            return (
                f"has no {', '.join(missing_names)}: it needs run(data, rng), the inputs d0 and "
                "d1, claim and parameter"
            )
        if not callable(module.run):
            return "must have a function of data and rng as run"
        if self._score_function is not None and not callable(self._score_function):
            return "must have a function of outputs as score, or none"
        try:
            float(module.parameter)
        except (TypeError, ValueError):
            return f"must have a number as parameter, got {module.parameter!r}"
        if _are_equal_inputs(module.d0, module.d1):
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
            "has_score": self._score_function is not None,
            "identity": self._identity(),
        }

    def _identity(self) -> str:
        """Return a digest of the case, of files beside it that it imports, and of its packages."""
        package_versions = "\n".join(_package_versions())
        hashed_parts = [self._source, sys.version.encode(), package_versions.encode()]
        for module_name in sorted(sys.modules):
            file_of_module = getattr(sys.modules[module_name], "__file__", None)
            if not file_of_module:
                continue
            module_path = Path(file_of_module)
            if module_path.parent == self._folder and module_path.suffix == ".py":
                hashed_parts.append(module_path.read_bytes())
        part_digests = [hashlib.sha256(part).digest() for part in hashed_parts]
        return hashlib.sha256(b"".join(part_digests)).hexdigest()

    def run(self, coin: bool, seed: int) -> Output:  # noqa: FBT001 (a message, by position)
        """Run on one of the inputs, with all generators seeded."""
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 (what old packages draw from)
        rng = np.random.default_rng(seed)
        data = self._module.d0
        if coin:
            data = self._module.d1
        with suppress(Exception):  # a run may write to its input, if that can be copied
            data = copy.deepcopy(data)
        return self._module.run(data, rng)

    def score(self, outputs: Output) -> Output:
        """Return a score for each output."""
        return np.asarray(self._score_function(outputs))


def _are_equal_inputs(d0: Output, d1: Output) -> bool:
    """Return whether two inputs are the same, as far as this can be told."""
    try:
        return pack(d0) == pack(d1)
    except TypeError:
        return d0 is d1


def _package_versions() -> list[str]:
    """Return names and versions of all packages of this environment."""
    from importlib.metadata import distributions

    package_versions = set()
    for distribution in distributions():
        package_versions.add(f"{distribution.metadata['Name']}=={distribution.version}")
    return sorted(package_versions)


def send_message(file: IO[bytes], content: bytes) -> None:
    """Write a message that was packed."""
    file.write(_LENGTH.pack(len(content)) + content)
    file.flush()


def receive_message(file: IO[bytes]) -> Output:
    """Read a message; raise EOFError where there is none."""
    length_bytes = file.read(_LENGTH.size)
    if len(length_bytes) < _LENGTH.size:
        raise EOFError
    content_length = _LENGTH.unpack(length_bytes)[0]
    if content_length > _MOST_MESSAGE_BYTES:
        raise ValueError("not a message")
    message_content = file.read(content_length)
    if len(message_content) < content_length:
        raise EOFError
    return unpack(message_content)


def words_of_exception(error: BaseException) -> str:
    """Return the words of an exception, or none if they cannot be had."""
    try:
        return str(error)
    except Exception:
        return ""


def _traceback_outside(error: BaseException) -> str:
    """Return the traceback of an exception from where this file called others."""
    traceback_entry = error.__traceback__
    while traceback_entry is not None and traceback_entry.tb_frame.f_code.co_filename == __file__:
        traceback_entry = traceback_entry.tb_next
    return "".join(traceback.format_exception(type(error), error, traceback_entry)).rstrip()


def _packed_answer(function: Callable[[], Output]) -> bytes:
    """Return what a function returns or raises, as a message."""
    try:
        returned = function()
    except Exception as error:  # of the mechanism: this is its output
        name = type(error).__qualname__
        return pack(("raised", name, words_of_exception(error), _traceback_outside(error)))
    try:
        message = pack(("returned", returned))
        unpack(message)
    except Exception as error:  # of a container of any package
        return pack(("refused", words_of_exception(error)))
    return message


def main(path: str) -> None:
    """Answer requests until standard input ends."""
    request_pipe = os.fdopen(os.dup(0), "rb")
    answer_pipe = os.fdopen(os.dup(1), "wb")
    # What the mechanism prints or reads is no message
    empty_input = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty_input, 0)
    os.dup2(2, 1)
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    loaded_cases: list[_Case] = []

    def load() -> dict[str, object]:
        case = _Case(path)
        about = case.about()
        loaded_cases.append(case)
        return about

    send_message(answer_pipe, _packed_answer(load))
    if not loaded_cases:
        return
    case = loaded_cases[0]
    request_functions: dict[str, Callable[..., Output]] = {"run": case.run, "score": case.score}
    waiting_requests: queue.Queue[Output] = queue.Queue()
    listener = threading.Thread(
        target=_listen_for_requests, args=(request_pipe, waiting_requests), daemon=True
    )
    listener.start()
    while True:
        for request_name, *arguments in waiting_requests.get():
            answer = partial(request_functions[request_name], *arguments)
            send_message(answer_pipe, _packed_answer(answer))


def _listen_for_requests(request_pipe: IO[bytes], waiting_requests: queue.Queue[Output]) -> None:
    """Pass on requests; where nobody asks any more, end what runs, and all that it started."""
    try:
        while True:
            waiting_requests.put(receive_message(request_pipe))
    except EOFError:
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # files beside this one must not take the place of packages
    main(sys.argv[1])
