"""Legal and illegal input of every size, kind and layout, and what a call may do with it."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound.errors import InternalError, LeakboundError
from mutations import guarded

__all__ = ["STRANGE", "Hostile", "Tally", "outcome"]

EXTREME = [
    *(0.0, 1.0, 0.5, 1e-16, 1e-9, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-250, 1e-100),
    *(2.0, 10.0, 30.0, 37.0, 299.0, 300.0, 301.0, 388.0, 689.0, 700.0, 710.0, 745.2, 1e4),
    *(2.0**31, 2.0**53, 1e18, 1e155, 1e300, 1.7976931348623157e308),
]
BEYOND = [math.inf, -math.inf, math.nan]
UNIT = [0.0, -0.0, 1.0, 0.5, 5e-324, 1e-310, 1e-300, 1e-250, 1e-17, 1e-9, 1 - 2**-53, 1 - 1e-9]
STRANGE: list[Any] = [
    *(None, "False", "", b"1", True, False, -1, 0, 10**309, -(10**400), 2**64, math.nan, math.inf),
    *(Decimal("0.5"), Fraction(1, 3), np.float32(0.25), np.int8(3), np.array(0.5), np.bool_(1)),
    *([], [1], (), {}, 1j, object, np.float16(2), np.longdouble("0.3"), -0.0, 5e-324),
]


class Hostile:
    """Random cases of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_in(self, n: int) -> bool:
        return bool(self.rng.integers(n) == 0)

    def pick(self, values: list[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def size(self, most: int = 50) -> int:
        return int(self.rng.integers(1, most + 1))

    def real(self) -> float:
        """Any double, mostly finite."""
        kind = self.rng.integers(8)
        if kind == 0:
            return float(self.pick(BEYOND)) if self.one_in(4) else -0.0
        if kind < 4:
            return float(self.rng.choice([-1, 1]) * self.pick(EXTREME))
        if kind == 4:
            return float(self.rng.choice([-1, 1]) * 10.0 ** self.rng.uniform(-320, 308))
        return float(self.rng.normal(scale=10.0 ** self.rng.uniform(-3, 3)))

    def unit(self) -> float:
        """A number in [0, 1], and now and then outside."""
        if self.one_in(3):
            return float(self.pick(UNIT))
        if self.one_in(60):
            return self.real()
        return float(self.rng.random() ** self.rng.integers(1, 40))

    def level(self) -> float:
        """A number in (0, 1), up to its ends."""
        return float(self.pick([5e-324, 1e-300, 1e-17, 1e-9, 1e-3, 0.05, 0.5, 0.7, 1 - 2**-53]))

    def count(self, most: int) -> int:
        """A count about a number of trials."""
        if self.one_in(4):
            return int(self.pick([0, 1, -1, most, most - 1, most + 1, 2**31, 2**53, -(2**53)]))
        return int(self.rng.integers(0, most + 1))

    def reals(self, n: int) -> NDArray[np.float64]:
        """Offsets, log-odds or scores: of one size, two-valued, tied, or of every size."""
        kind = self.rng.integers(6)
        if kind == 0:
            return np.full(n, self.real())
        if kind == 1:
            return np.array([self.real(), self.real()])[self.rng.integers(2, size=n)]
        if kind == 2:
            return np.array([self.real() for _ in range(n)])
        if kind == 3:
            return self.rng.integers(-3, 4, size=n).astype(float)
        scale = 10.0 ** self.rng.uniform(-2, 2.5)
        drawn = self.rng.normal(scale=scale, size=n)
        if kind == 4:
            return np.minimum(np.maximum(drawn, -300.0), 300.0)
        signed: NDArray[np.float64] = scale * np.where(drawn < 0, -1.0, 1.0)
        return signed

    def units(self, n: int) -> NDArray[np.float64]:
        """Probabilities."""
        if self.one_in(3):
            return np.full(n, self.unit())
        return np.array([self.unit() for _ in range(n)])

    def counts(self, n: int) -> NDArray[np.int64]:
        """Multiplicities or weights."""
        most = int(self.pick([1, 2, 5, 100, 10**6, 2**40, 2**53]))
        return self.rng.integers(0, most, size=n, endpoint=True)

    def flags(self, n: int) -> Any:
        """Booleans in any guise."""
        drawn = self.rng.random(n) < self.pick([0.5, 0.5, 0.9, 0.0, 1.0])
        kind = self.rng.integers(6)
        if kind == 0:
            return (drawn * self.rng.integers(1, 256, size=n)).astype(np.uint8).view(bool)
        if kind == 1:
            return drawn.astype(self.pick(["i1", "u8", "f2", "g", ">i4"]))
        if kind == 2:
            return np.where(drawn, 1, -1)
        return self.laid_out(drawn)

    def array(self, values: NDArray[Any]) -> Any:
        """The values in another dtype or layout, and now and then of another shape."""
        if self.one_in(40):
            shapes = [values[:-1], values[None], values[:0], values.astype(object), values[0]]
            return self.pick(shapes)
        with np.errstate(all="ignore"):
            dtype = self.pick(["f8", "f8", "f8", "f8", "f2", "f4", "g", ">f8", "u8", "i8"])
            if dtype in {"u8", "i8"} and not (np.abs(values) < 2.0**62).all():
                dtype = "f8"
            changed = values.astype(dtype)
        return self.laid_out(changed)

    def laid_out(self, values: NDArray[Any]) -> Any:
        """The values strided, reversed, unaligned, broadcast, read-only, or in a list."""
        kind = self.rng.integers(8)
        if kind == 0:
            return np.repeat(values, 2)[::2]
        if kind == 1:
            return values[::-1]
        if kind == 2 and values.size:
            return np.broadcast_to(values[:1], values.shape)
        if kind == 3 and values.dtype.itemsize in {2, 4, 8}:
            return np.frombuffer(b"x" + values.tobytes(), dtype=values.dtype, offset=1)
        if kind == 4:
            frozen = values.copy()
            frozen.flags.writeable = False
            return frozen
        return values.tolist() if kind == 5 else values

    def option(self, good: Any) -> Any:
        """A good value of an option, and now and then a strange one."""
        return self.pick(STRANGE) if self.one_in(30) else good


class Tally:
    """How many cases ended in a result, and how many were refused."""

    def __init__(self) -> None:
        self.results = 0
        self.refusals = 0

    def check(self, call: Callable[[], Any], sound: Callable[[Any], bool], case: object) -> None:
        """Make a call; fail on any end but a sound result and an error of ours."""
        value = outcome(call, case)
        if isinstance(value, LeakboundError):
            self.refusals += 1
            return
        assert sound(value), f"{value!r} from {case!r}"
        self.results += 1


def outcome(call: Callable[[], Any], case: object) -> Any:
    """Return what a call returns, or its error, which must be one of leakbound's and no defect."""
    with guarded(case):
        try:
            return call()
        except LeakboundError as error:
            if isinstance(error, InternalError):
                raise
            return error
