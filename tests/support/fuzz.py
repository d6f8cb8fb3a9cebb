"""Calls of public functions with arguments of any kind, and what became of each."""

import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leakbound.errors import InternalError, LeakboundError
from peak_memory import forget_highest, highest, resident, return_free_memory

__all__ = ["HOSTILE", "Outcomes", "fuzz"]

HANGS = 12
"""Seconds that a call may take."""
MEMORY = 1 << 26
"""Bytes by which a call may raise the memory of the process, whatever its arguments."""
TIMES = 4
"""How often the bytes of its arguments it may take beside them."""

HOSTILE: list[Callable[[], Any]] = [
    *(lambda value=value: value for value in (None, True, -1, 0, 1, 2, 7, 2**31, 2**63, 2**200)),
    *(lambda value=value: value for value in (0.5, -0.5, 1.0, 1e-320, 1e-17, 1e17, 1e308)),
    *(lambda value=value: value for value in (math.nan, math.inf, -math.inf, 1j, "", "x", "1")),
    *(lambda value=value: value for value in (b"\xff", "\ud800", "9" * 5000, (), (1, 2), range(3))),
    list,
    dict,
    set,
    object,
    lambda: [1],
    lambda: [[1, 2], [3]],
    lambda: {"a": 1},
    lambda: lambda: None,
    lambda: np.zeros(0),
    lambda: np.float64(0.3),
    lambda: np.array(3),
    lambda: np.array([1.0, math.nan]),
    lambda: np.array([math.inf, -math.inf, 0.0]),
    lambda: np.array([1, "x", None], dtype=object),
    lambda: np.array(["a", "b"]),
    lambda: np.zeros((2, 3)),
    lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    lambda: np.array(["2024-01-01"], dtype="datetime64[D]"),
    lambda: (x for x in (1, 2)),
]
"""What nobody means to pass."""


@dataclass
class Outcomes:
    """How many calls ended how, and words about those that should not have ended so."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The counts in one line."""
        names = ("calls", "results", "named refusals", "raw errors", "NaN", "hangs", "memory")
        return ", ".join(f"{self.counts[name]:,} {name}" for name in names)

    def add(self, how: str, words: str = "") -> None:
        self.counts[how] += 1
        if words:
            self.wrong.setdefault(words, how)


def fuzz(
    calls: Mapping[str, tuple[Callable[..., Any], Mapping[str, Sequence[Any]]]],
    number: int,
    seed: int,
    *,
    warm: bool = True,
) -> Outcomes:
    """Make calls, each with usual arguments of which some are replaced by hostile ones.

    Each function is called once before, for what it imports.
    """
    rng, outcomes = np.random.default_rng(seed), Outcomes()
    for function, usual in calls.values() if warm else ():
        with suppress(Exception):
            function(**{key: values[0] for key, values in usual.items()})
    names = [*calls]
    for _ in range(number):
        name = names[rng.integers(len(names))]
        function, usual = calls[name]
        arguments = {key: values[int(rng.integers(len(values)))] for key, values in usual.items()}
        for key in arguments:
            if rng.random() < 0.3:
                arguments[key] = HOSTILE[rng.integers(len(HOSTILE))]()
        said = f"{name}({', '.join(f'{key}={value!r:.40}' for key, value in arguments.items())})"
        _call(function, arguments, said, outcomes)
    return outcomes


def _call(
    function: Callable[..., Any], arguments: dict[str, Any], said: str, outcomes: Outcomes
) -> None:
    outcomes.counts["calls"] += 1
    most = MEMORY + TIMES * sum(map(_size, arguments.values()))
    before = _resident_before_call()
    begun = time.monotonic()
    try:
        with _alarm():
            result = function(**arguments)
    except InternalError as error:
        outcomes.add("raw errors", f"{said}: {type(error).__name__}: {error}")
    except (LeakboundError, OSError):  # a file that is not there
        outcomes.add("named refusals")
    except TimeoutError:
        outcomes.add("hangs", f"{said}: more than {HANGS} s")
    except Exception as error:
        outcomes.add("raw errors", f"{said}: {type(error).__name__}: {error}")
    else:
        is_nan = _has_nan(result)
        outcomes.add("NaN" if is_nan else "results", f"{said} is NaN" if is_nan else "")
    if time.monotonic() - begun > HANGS:
        outcomes.counts["slow"] += 1
    taken = highest() - before
    if taken > most:
        # What a first call imports, and pages that the system had put aside, come in but once.
        before = _resident_before_call()
        with suppress(Exception):
            function(**arguments)
        taken = highest() - before
    if taken > most:
        outcomes.add("memory", f"{said}: {taken >> 20} MB")


def _resident_before_call() -> int:
    """Return the bytes in memory, without those that are free, and let these be the most."""
    return_free_memory()
    forget_highest()
    return resident()


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise TimeoutError in the block where it takes too long."""

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANGS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _has_nan(result: Any) -> bool:
    if not isinstance(result, float | np.ndarray):
        return False
    with suppress(TypeError):
        return bool(np.isnan(result).any())
    return False


def _size(value: Any) -> int:
    """Return the bytes of an argument, those of what it holds included."""
    held = getattr(value, "nbytes", 0)
    if not held and isinstance(value, list | tuple):
        held = sum(map(_size, value))
    return held + sys.getsizeof(value, 0)
