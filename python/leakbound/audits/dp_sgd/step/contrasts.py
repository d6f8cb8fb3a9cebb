"""The noise of a step from runs with many seeds on one batch, and limits of μ that follow.

With K seeds there are K - 1 Helmert contrasts: independent, of the noise's law, and free of what
the batch contributes. docs/theory/dp-sgd.md proves the three limits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base import shares
from leakbound._base.bisection import halved
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.dp_sgd.step.contributions import Contribution
from leakbound.audits.dp_sgd.step.runs import Released, as_floats

# Rates of Chernoff's bound that are tried
_RATES = np.linspace(0.02, 0.98, 97)
# Halvings of a logarithm that lies within 40 of another one
_HALVINGS = 100
_FARTHEST = 40.0
# Values of all tensors together that assumptions are tested on
_TESTED = 1 << 18


@dataclass
class Noise:
    """Noise of one batch with several seeds."""

    squares: dict[str, float]
    """Sum of squares of the contrasts of each tensor."""
    counts: dict[str, int]
    """How many these are: values with noise times contrasts."""
    contrasts: dict[str, FloatArray]
    """Contrasts of some values with noise of each tensor, of shape (contrasts, values)."""
    along: FloatArray
    """Contrasts along one direction."""

    @property
    def used(self) -> list[str]:
        """The tensors that have noise."""
        return [name for name, count in self.counts.items() if count and self.squares[name] > 0]

    def deviation(self, name: str) -> float:
        """Return the estimate of σ of a tensor; 0 without noise."""
        if not self.counts[name]:
            return 0.0
        return math.sqrt(self.squares[name] / self.counts[name])


def contrasts(rows: FloatArray) -> FloatArray:
    """Return Helmert contrasts: one row less, independent, with the same covariance and mean 0."""
    numbers = np.arange(1, len(rows))[:, None]
    means = np.cumsum(rows, axis=0)[:-1] / numbers
    result: FloatArray = (rows[1:] - means) * np.sqrt(numbers / (numbers + 1))
    return result


def places_tested(
    still: dict[str, BoolArray], rng: np.random.Generator
) -> dict[str, NDArray[np.intp]]:
    """Return which values of each tensor the tests of assumptions look at, those with noise."""
    each = max(64, _TESTED // max(1, len(still)))
    places = {}
    for name, quiet in still.items():
        live = np.flatnonzero(~quiet)
        if live.size > each:
            live = np.sort(rng.choice(live, size=each, replace=False))
        places[name] = live
    return places


def measured(
    run: Callable[[], Released],
    runs: int,
    still: dict[str, BoolArray],
    places: dict[str, NDArray[np.intp]],
    direction: Released,
) -> Noise:
    """Run a batch with fresh seeds and return its noise; one run is held in memory at a time."""
    means = {name: np.zeros(quiet.size) for name, quiet in still.items()}
    squares = dict.fromkeys(still, 0.0)
    rows: dict[str, list[FloatArray]] = {name: [] for name in still}
    along = []
    for number in range(runs):
        released = run()
        dot = 0.0
        for name, values in released.items():
            floats = as_floats(values)
            rows[name].append(floats[places[name]])
            dot += float(floats @ as_floats(direction[name]))
            # Welford's update: these squares are those of the Helmert contrasts
            off = floats - means[name]
            squares[name] += float(off @ off) * number / (number + 1)
            means[name] += off / (number + 1)
        along.append(dot)
    counts = {
        name: (quiet.size - int(np.count_nonzero(quiet))) * (runs - 1)
        for name, quiet in still.items()
    }
    return Noise(
        squares=squares,
        counts=counts,
        contrasts={name: contrasts(np.stack(one)) for name, one in rows.items()},
        along=contrasts(np.array(along)[:, None])[:, 0],
    )


def tensor_limits(squares: FloatArray, counts: IntArray, level: float) -> FloatArray:
    """Return upper limits of σ of all tensors at once: a union over tensors.

    SS_l/σ_l² is χ² with as many degrees of freedom as there are values in SS_l.
    """
    from scipy.stats import chi2

    each = shares.STEP_TENSORS.of(level, len(counts))
    limits: FloatArray = np.sqrt(squares / chi2.ppf(each, counts))
    return limits


def along_limit(along: FloatArray, level: float) -> float:
    """Return the upper limit of the noise along one direction, whatever its covariance."""
    from scipy.stats import chi2

    least = float(chi2.ppf(shares.STEP_DIRECTION.of(level), along.size))
    return math.sqrt(float(along @ along) / least)


def joint_threshold(counts: IntArray, level: float) -> float:
    """Return t such that the sum of h(X_l) reaches it with the share of the level at most.

    X_l is χ² with n_l degrees of freedom, h(x) = (x - n - n ln(x/n))/2 below n and 0 above:
    Chernoff's bound, of which the moment generating function is an incomplete gamma function.
    """
    from scipy.special import gammainc, gammaincc, gammaln

    n = counts.astype(np.float64)
    share = math.log(shares.STEP_JOINT.of(level))

    def log_moment(rate: float) -> float:
        """Return ln E exp(rate Σ h(X_l))."""
        shape = n * (1 - rate) / 2
        below = (
            gammaln(shape)
            - gammaln(n / 2)
            - shape * np.log1p(-rate)
            - rate * n / 2 * np.log(2)
            + rate * n / 2 * (np.log(n) - 1)
            + np.log(gammainc(shape, shape))
        )
        return float(np.log(gammaincc(n / 2, n / 2) + np.exp(below)).sum())

    return float(min((log_moment(rate) - share) / rate for rate in _RATES.tolist()))


def joint_least(ratios: FloatArray, counts: IntArray, threshold: float) -> float:
    """Return the least Σ d_l x_l where Σ h(x_l) is below a threshold: at x_l = n_l a/(a + d_l)."""
    if not ratios.any():
        return 0.0
    n = counts.astype(np.float64)
    top = math.log(float(ratios.max()))

    def is_above(log_a: float) -> bool:
        x = 1 / (1 + ratios * math.exp(-log_a))
        return float((n * (x - 1 - np.log(x))).sum()) / 2 > threshold

    _, high = halved(top - _FARTHEST, top + _FARTHEST, is_above, most=_HALVINGS)
    return float((ratios * n / (1 + ratios * math.exp(-high))).sum())


class Limits:
    """Lower limits of μ of any pair: the regions of the noise know no contribution."""

    def __init__(self, noise: Noise, level: float) -> None:
        self.noise = noise
        self.used = noise.used
        self._squares = np.array([noise.squares[name] for name in self.used])
        self._counts = np.array([noise.counts[name] for name in self.used], dtype=np.int64)
        self.upper: dict[str, float] = dict.fromkeys(noise.counts, 0.0)
        self._joint = 0.0
        if self.used:
            limits = tensor_limits(self._squares, self._counts, level)
            self.upper |= dict(zip(self.used, limits.tolist(), strict=True))
            self._joint = joint_threshold(self._counts, level)

    def mu(self, pair: Contribution) -> float:
        """Return the larger one of two lower limits of μ: by tensors, and of all together."""
        if not pair.finite or pair.one_sided or pair.silent:
            return math.inf
        if not pair.coupled or not pair.factor:
            return 0.0  # its noise is of another law, which was not measured
        lengths = {name: one / pair.factor for name, one in pair.lengths.items()}
        if any(one for name, one in lengths.items() if name not in self.used):
            return math.inf
        moved = np.array([lengths[name] for name in self.used])
        limits = np.array([self.upper[name] for name in self.used])
        by_tensors = float(((moved / limits) ** 2).sum())
        jointly = joint_least(moved**2 / self._squares, self._counts, self._joint)
        return math.sqrt(max(by_tensors, jointly))
