"""Valid bytes made invalid, reproducibly: flips, cuts, splices, and fields replaced."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from leakbound.errors import InternalError, LeakboundError

__all__ = ["LONG", "QUICK", "assaulted", "guarded", "mutants", "replaced"]

QUICK, LONG = 200, 100_000
"""Cases of `make test` and of `make validity`."""

_TOKENS = [
    *(b"", b"-", b"0", b"-1", b"1e999", b"9" * 5000, b"NaN", b"inf", b"null", b"\x00", b"\xff\xfe"),
    *(b'"', b"[" * 60, b"{", b"\r", b"\n\n", b",", b"PK\x03\x04", b"\xef\xbb\xbf", b"1_0", b"\xf0"),
]
_SECONDS = 20.0
"""Of the processor's time for one case, of which the slowest take two, however busy the machine."""


def mutants(valid: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` mutants of valid contents."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        content = bytearray(valid[int(rng.integers(len(valid)))])
        for _ in range(rng.integers(1, 4)):
            _mutate(content, rng, valid)
        yield bytes(content)


def _mutate(content: bytearray, rng: np.random.Generator, valid: Sequence[bytes]) -> None:
    size = len(content)
    place, end = sorted(rng.integers(0, size + 1, 2).tolist())
    how = rng.integers(6)
    if how == 0 and size:
        content[min(place, size - 1)] ^= 1 << int(rng.integers(8))
    elif how == 1:
        del content[place:]
    elif how == 2:
        del content[place : min(end, place + 40)]
    elif how == 3:
        other = valid[int(rng.integers(len(valid)))]
        content[place:end] = other[place:end][: 1 << 16]
    elif how == 4:
        content[place:place] = _TOKENS[rng.integers(len(_TOKENS))]
    else:
        token = _TOKENS[rng.integers(len(_TOKENS))]
        content[place : place + len(token)] = token


_VALUES: list[Any] = [
    *(None, True, "", "inf", "-inf", "x" * 99, -1, 0, 1, 2, 0.5, -0.5, 1e308, 10**30, 10**400),
    *([], [None], {}, {"type": "PureDP"}, "lower_bound", [[1]], 1e-320),
]


def replaced(data: Any, rng: np.random.Generator) -> Any:
    """Return JSON data with one of its parts replaced, dropped or put elsewhere."""
    paths: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else range(min(len(node), 3))
        for key in keys:
            paths.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(data)
    node, key = paths[rng.integers(len(paths))]
    if rng.random() < 0.2:
        del node[key]
    elif rng.random() < 0.3:
        other, place = paths[rng.integers(len(paths))]
        if not isinstance(other[place], dict | list):
            node[key] = other[place]
    else:
        node[key] = deepcopy(_VALUES[rng.integers(len(_VALUES))])  # or it would come to hold itself
    return data


class _Hang(BaseException):
    """A case that takes too long."""


def _hang(*_: object) -> None:
    raise _Hang


@contextmanager
def guarded(case: object) -> Iterator[None]:
    """Stop a case that hangs, and note a case on what it raises."""
    before = signal.signal(signal.SIGPROF, _hang)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {case!r:.2000}")
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def assaulted(
    cases: Iterator[Any],
    read: Callable[[Any], Any],
    allowed: tuple[type[BaseException], ...] = (LeakboundError,),
) -> tuple[int, int]:
    """Read every case; return how many were read and how many refused. Anything else is raised."""
    read_well = refused = 0
    for case in cases:
        with guarded(case):
            try:
                read(case)
                read_well += 1
            except InternalError:
                raise
            except allowed:
                refused += 1
    return read_well, refused
