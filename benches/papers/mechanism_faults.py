"""How many runs refute faulty mechanisms, and how often right ones are refuted.

`python benches/papers/mechanism_faults.py [faults] [means] [right] [hard]` prints the tables of
`docs/audits/mechanisms.md`: the median and the 90 % quantile of the runs in 50 audits at 95 %, all
runs counted, also those that only trained the classifier.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

import leakbound as lb
from leakbound._base.types import FloatArray
from leakbound.claims import Claim
from leakbound.mechanisms import (
    FloatLaplace,
    GaussianNoise,
    LaplaceNoise,
    NoisyMax,
    SparseVector,
    audit_mechanism,
)

AUDITS = 50
MOST = 5000
SMALL = lb.ApproxDP(delta=1e-5)
Score = Callable[[Any], Any] | None
CLIPPED = partial(np.clip, a_min=0, a_max=1)
BOTH: tuple[Score, Score] = (None, CLIPPED)
NORMAL: tuple[Score, Score] = (None, np.asarray)
Row = tuple[str, Any, Claim, float, Score]
"""Name, mechanism, claim, parameter, and the score or None for the classifier."""


@dataclass(frozen=True)
class NoisyMean:
    """DPLaplace and NonDPLaplace1 of González, Dulce-Rubio, Ramdas and Ribero (2025), or Gaussian.

    The right one divides a noisy sum by a noisy count, at ε/2 each; the wrong one knows the count.
    """

    epsilon: float
    noise: str = "laplace"
    fault: bool = True
    d0 = np.zeros(1)
    d1 = np.array([0.0, 1.0])

    def run(self, data: FloatArray, rng: np.random.Generator) -> float:
        draw = getattr(rng, self.noise)
        n = float(data.size)
        if not self.fault:
            n = max(1e-12, n + draw(scale=2 / self.epsilon))
        return float(data.sum() / n + draw(scale=2 / (n * self.epsilon)))


def log_ratio(vector: SparseVector, nodes: int = 1000) -> Callable[[FloatArray], FloatArray]:
    """Return the log-likelihood ratio of a sparse vector that releases values: no score is better.

    It is averaged over equally likely values of the threshold.
    """
    uniform = (np.arange(nodes) + 0.5) / nodes - 0.5
    threshold = 0.5 - 2 / vector.epsilon * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    scale = 2 * vector.above / vector.epsilon

    def likelihood(outputs: FloatArray, data: FloatArray) -> FloatArray:
        z = (threshold[:, None] - data) / scale
        far = math.log(0.5) - np.abs(z)
        below = np.where(z < 0, far, np.log1p(-np.exp(far)))
        released = outputs > -1000
        logs = (outputs == -1000) @ below.T
        logs += np.where(released, -np.abs(outputs - data) / scale, 0).sum(axis=1)[:, None]
        least = np.where(released, outputs, np.inf).min(axis=1)
        total: FloatArray = np.logaddexp.reduce(
            np.where(least[:, None] >= threshold, logs, -1e6), axis=1
        )
        return total

    return lambda outputs: likelihood(outputs, vector.d1) - likelihood(outputs, vector.d0)


def faults() -> Iterator[Row]:
    """Faults of the zoo, at ε = 1 or μ = 1."""
    pure = lb.PureDP()
    wrong = LaplaceNoise(fault="half_noise")
    for score in BOTH:
        yield "Laplace, half the noise", wrong, pure, 1, score
        yield "Laplace, half the noise", wrong, SMALL, 1, score
    wrong_normal = GaussianNoise(fault="half_noise")
    for score in NORMAL:
        yield "Gaussian, half the noise", wrong_normal, lb.GaussianDP(), 1, score
    for times in (4, 8):
        # (1, 1e-5)-DP takes a standard deviation of 3.73, so 1/3.73 is the right parameter
        loud = GaussianNoise(epsilon=0.268 * times)
        yield f"Gaussian, sensitivity {times} times larger", loud, SMALL, 1, None
    for fault in ("no_query_noise", "no_cut_off", "quarter_noise"):
        yield f"sparse vector, {fault}", SparseVector(fault=fault), pure, 1, None
    public = SparseVector(fault="no_threshold_noise", above=1)
    yield "sparse vector, no_threshold_noise, c = 1", public, pure, 1, None
    yield "sparse vector, unscaled_noise", SparseVector(fault="unscaled_noise"), pure, 1, None
    yield "noisy max, half_noise", NoisyMax(fault="half_noise"), pure, 1, None
    yield "noisy max, released_value", NoisyMax(fault="released_value"), pure, 1, None
    inversion = FloatLaplace(fault="inversion")
    yield "Laplace by inversion", inversion, pure, 1, inversion.score


def hard() -> Iterator[Row]:
    """The fault that shows only in rare outputs: values released with 80 queries, and c = 1."""
    vector = _Long(fault="released_values", above=1)
    yield "sparse vector, released_values, c = 1", vector, lb.PureDP(), 1, log_ratio(vector)


class _Long(SparseVector):
    """With more queries, all of them changed but for the last."""

    d0 = np.append(np.zeros(80), 1.0)
    d1 = np.append(np.ones(80), 0.0)


def means() -> Iterator[Row]:
    """Noisy means, as published."""
    for epsilon in (0.01, 0.1):
        yield f"mean, Laplace, ε = {epsilon}", NoisyMean(epsilon), lb.PureDP(), epsilon, None
        normal = NoisyMean(epsilon=epsilon, noise="normal")
        yield f"mean, Gaussian, ε = {epsilon}", normal, SMALL, epsilon, None


def right() -> Iterator[Row]:
    """Right mechanisms, at what they satisfy."""
    for claim in (lb.PureDP(), lb.LaplaceDP(), SMALL):
        for score in BOTH:
            yield f"Laplace, {claim.name}", LaplaceNoise(), claim, 1, score
    for score in NORMAL:
        yield "Gaussian", GaussianNoise(), lb.GaussianDP(), 1, score
    for mechanism in (FloatLaplace(), SparseVector(), NoisyMax(), NoisyMean(0.1, fault=False)):
        yield type(mechanism).__name__, mechanism, lb.PureDP(), mechanism.epsilon, None


def runs_of(row: Row, seed: int, most: int) -> float:
    """Return how many runs refute a claim, inf if none of as many as are allowed."""
    _, mechanism, claim, parameter, score = row
    calls = count()

    def run(data: Any, rng: np.random.Generator) -> Any:
        next(calls)
        return mechanism.run(data, rng)

    how: dict[str, Any] = {"score": score, "most_runs": most, "seed": seed}
    pair = mechanism.d0, mechanism.d1
    result = audit_mechanism(run, *pair, claim, parameter=parameter, **how)
    if result.bound > parameter:
        return next(calls)
    return math.inf


TABLES = {one.__name__: one for one in (faults, means, right, hard)}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        print(f"\n{table}: claim | score | median | 90 % | refuted")  # noqa: T201
        for row in TABLES[table]():
            most = {"right": 1000, "hard": 50_000}.get(table, MOST)
            runs = np.sort([runs_of(row, seed=seed, most=most) for seed in range(AUDITS)])
            median = runs[AUDITS // 2]
            late = runs[9 * AUDITS // 10]
            refuted = f"{np.isfinite(runs).sum()} of {AUDITS}"
            score = "learnt"
            if row[4]:
                score = "given"
            print(row[0], row[2].name, score, median, late, refuted, sep=" | ", flush=True)  # noqa: T201
