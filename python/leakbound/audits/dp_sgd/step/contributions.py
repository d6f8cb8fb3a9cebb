"""What one example contributes to a step, by coupling: runs on two batches with one seed.

If a step is a function of the batch plus noise that does not depend on it, then its results on D'
and D with one seed differ by the same vector Δ whatever the seed. Where they do not, noise depends
on data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.dp_sgd.step.runs import Released, as_floats

# Rounding that is allowed for, in units of the precision of the summands
_ULPS = 8.0
# Relative difference below which noise counts as of one scale
_CLOSE = 1e-4
# Values that are treated at a time
_BLOCK = 1 << 22


@dataclass
class Contribution:
    """What one pair of batches showed, at two seeds."""

    name: str
    lengths: dict[str, float] = field(default_factory=dict)
    """|Δ_l| at least, for each tensor; rounding is taken off."""
    coupled: bool = True
    """Whether the noise of both batches is the same at both seeds."""
    scale: float | None = 1.0
    """Noise of D' in units of that of D; None if it is no multiple."""
    factor: float | None = 1.0
    """Noise of D in units of that of the batch where noise is measured; None if no multiple."""
    silent: float = 0.0
    """Length of Δ where there is no noise at all."""
    one_sided: bool = False
    """Whether some values have noise at one of both batches only."""
    finite: bool = True

    @property
    def length(self) -> float:
        """|Δ| at least, in units of the noise where that is measured; 0 if nothing follows."""
        if not self.coupled or not self.factor:
            return 0.0
        return math.hypot(*self.lengths.values()) / self.factor


class TwoSeeds:
    """What a step releases on one batch with two seeds."""

    def __init__(
        self,
        first: Released,
        second: Released,
        precision: dict[str, float],
        smallest: dict[str, float],
    ) -> None:
        self.first = first
        self.second = second
        self.precision = precision
        self.smallest = smallest
        self._tops = {name: max(_top(values), _top(second[name])) for name, values in first.items()}

    def blocks(self) -> Iterator[tuple[str, slice]]:
        """Yield parts of tensors, each small enough to be treated in double precision."""
        for name, values in self.first.items():
            for start in range(0, values.size, _BLOCK):
                yield name, slice(start, start + _BLOCK)

    def values(self, name: str, part: slice) -> tuple[FloatArray, FloatArray]:
        """Return a part of a tensor with both seeds."""
        return as_floats(self.first[name][part]), as_floats(self.second[name][part])

    def noise(self, name: str, part: slice) -> FloatArray:
        """Return the difference of both seeds, which has no contribution of data."""
        first, second = self.values(name, part)
        return first - second

    def rounding(self, name: str, part: slice) -> FloatArray:
        """Return what rounding may have done to each value."""
        first, second = self.values(name, part)
        unit = _ULPS * self.precision[name]
        # sums of clipped gradients have rounding of their own, on the scale of the tensor
        slack: FloatArray = unit * (np.abs(first) + np.abs(second) + self._tops[name])
        # below the normal range numbers have an absolute precision
        return slack + _ULPS * self.smallest[name]


def _top(values: FloatArray) -> float:
    return float(np.abs(values).max(initial=0.0))


def compared(
    name: str,
    without: TwoSeeds,
    with_: TwoSeeds,
    base: TwoSeeds,
    still: dict[str, BoolArray],
) -> tuple[Contribution, Released]:
    """Return what a pair shows, and Δ in single precision; `still` is where no noise is."""
    found = Contribution(name)
    squares = dict.fromkeys(without.first, 0.0)
    slacks = dict.fromkeys(without.first, 0.0)
    silent = 0.0
    delta: Released = {
        tensor: np.empty(one.size, np.float32) for tensor, one in without.first.items()
    }
    for tensor, part in without.blocks():
        rounding = without.rounding(tensor, part) + with_.rounding(tensor, part)
        before, after = without.noise(tensor, part), with_.noise(tensor, part)
        if (np.abs(after - before) > rounding).any():
            found.coupled = False
        a, b = without.values(tensor, part)
        c, d = with_.values(tensor, part)
        moved = (c - a + (d - b)) / 2
        squares[tensor] += float(moved @ moved)
        slacks[tensor] += float(rounding @ rounding)
        quiet = still[tensor][part] & (np.abs(moved) > rounding)
        silent += float(moved[quiet] @ moved[quiet])
        delta[tensor][part] = moved
    found.factor = noise_ratio(without, base)
    if found.coupled:
        found.lengths = {
            tensor: max(0.0, math.sqrt(squares[tensor]) - math.sqrt(slacks[tensor]))
            for tensor in squares
        }
        if found.factor == 1.0:
            found.silent = math.sqrt(silent)
    else:
        found.lengths = dict.fromkeys(squares, 0.0)
        found.scale = noise_ratio(with_, without)
    return found, delta


def noise_ratio(one: TwoSeeds, other: TwoSeeds) -> float | None:
    """Return noise in units of other noise at the same seeds; None if it is no multiple of it."""
    # Rounding moves the estimate, so that it tells of another scale only where one scale does not
    # fit. It is no more than what is taken off lengths.
    if one is other or _are_the_same(one, other):
        return 1.0
    product = squares = own = 0.0
    for name, part in one.blocks():
        noise, reference = one.noise(name, part), other.noise(name, part)
        product += float(noise @ reference)
        squares += float(reference @ reference)
        own += float(noise @ noise)
    if not squares:
        return None if own else 1.0
    ratio = product / squares
    if ratio <= 0:
        return None
    if abs(ratio - 1) <= _CLOSE:
        ratio = 1.0
    for name, part in one.blocks():
        noise, reference = one.noise(name, part), ratio * other.noise(name, part)
        allowed = one.rounding(name, part) + ratio * other.rounding(name, part)
        if (np.abs(noise - reference) > 2 * allowed + _CLOSE * np.abs(noise)).any():
            return None
    return ratio


def _are_the_same(one: TwoSeeds, other: TwoSeeds) -> bool:
    """Return whether two noises differ by rounding at most."""
    for name, part in one.blocks():
        apart = np.abs(one.noise(name, part) - other.noise(name, part))
        if (apart > one.rounding(name, part) + other.rounding(name, part)).any():
            return False
    return True


def noiseless(runs: list[Released]) -> dict[str, BoolArray]:
    """Return where all of several seeds gave the same value."""
    first = runs[0]
    still = {name: np.ones(values.size, np.bool_) for name, values in first.items()}
    for one in runs[1:]:
        for name, values in one.items():
            still[name] &= values == first[name]
    return still
