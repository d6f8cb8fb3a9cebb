"""How many runs refute faulty mechanisms, and how often right ones are refuted.

`python benches/papers/mechanism_faults.py [faults] [means] [right] [hard]` prints the tables of
`docs/audits/mechanisms.md`: the median and the 90 % quantile of the runs in 50 audits at 95 %, all
runs counted, also those that only trained the classifier.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeAlias

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
from printed_tables import Row, print_tables

AUDITS = 50
APPROXIMATE = lb.ApproxDP(delta=1e-5)
Score: TypeAlias = Callable[[Any], Any] | None
CLIPPED = partial(np.clip, a_min=0, a_max=1)
LAPLACE_SCORES: tuple[Score, Score] = (None, CLIPPED)
GAUSSIAN_SCORES: tuple[Score, Score] = (None, np.asarray)
Audited: TypeAlias = tuple[str, Any, Claim, float, Score]
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
        draw_noise = getattr(rng, self.noise)
        count = float(data.size)
        if not self.fault:
            noise_of_count = draw_noise(scale=2 / self.epsilon)
            count = max(1e-12, count + noise_of_count)
        noise_of_mean = draw_noise(scale=2 / (count * self.epsilon))
        return float(data.sum() / count + noise_of_mean)


def log_ratio(vector: SparseVector, nodes: int = 1000) -> Callable[[FloatArray], FloatArray]:
    """Return the log-likelihood ratio of a sparse vector that releases values: no score is better.

    It is averaged over equally likely values of the threshold.
    """
    # Quantiles of Laplace noise with scale 2/ε, about the threshold 0.5.
    probabilities = (np.arange(nodes) + 0.5) / nodes
    deviations_from_half = probabilities - 0.5
    magnitudes = -np.log1p(-2 * np.abs(deviations_from_half))
    standard_laplace = np.sign(deviations_from_half) * magnitudes
    thresholds = 0.5 + 2 / vector.epsilon * standard_laplace
    query_noise_scale = 2 * vector.above / vector.epsilon
    refused_output = -1000

    def log_likelihood(outputs: FloatArray, answers: FloatArray) -> FloatArray:
        """Return the log-likelihood of outputs, rows of queries, but for a constant."""
        # 1. P(answer + noise < threshold), for each threshold and query.
        deviations = (thresholds[:, None] - answers) / query_noise_scale
        log_outer_tails = math.log(0.5) - np.abs(deviations)
        log_inner_tails = np.log1p(-np.exp(log_outer_tails))
        log_refusals = np.where(deviations < 0, log_outer_tails, log_inner_tails)
        is_refused = (outputs == refused_output).astype(np.float64)
        log_likelihoods = is_refused @ log_refusals.T

        # 2. Densities of released values, none of which may be below the threshold.
        is_released = outputs > refused_output
        log_densities = -np.abs(outputs - answers) / query_noise_scale
        log_likelihoods += np.where(is_released, log_densities, 0).sum(axis=1)[:, None]
        smallest_released = np.where(is_released, outputs, np.inf).min(axis=1)
        is_possible = smallest_released[:, None] >= thresholds
        possible_log_likelihoods = np.where(is_possible, log_likelihoods, -1e6)
        over_thresholds: FloatArray = np.logaddexp.reduce(possible_log_likelihoods, axis=1)
        return over_thresholds

    def ratio(outputs: FloatArray) -> FloatArray:
        return log_likelihood(outputs, vector.d1) - log_likelihood(outputs, vector.d0)

    return ratio


def faults() -> Iterator[Audited]:
    """Faults of the zoo, at ε = 1 or μ = 1."""
    pure = lb.PureDP()
    laplace = LaplaceNoise(fault="half_noise")
    for score in LAPLACE_SCORES:
        yield "Laplace, half the noise", laplace, pure, 1, score
        yield "Laplace, half the noise", laplace, APPROXIMATE, 1, score
    gaussian = GaussianNoise(fault="half_noise")
    for score in GAUSSIAN_SCORES:
        yield "Gaussian, half the noise", gaussian, lb.GaussianDP(), 1, score
    for factor in (4, 8):
        # (1, 1e-5)-DP takes a standard deviation of 3.73, so 1/3.73 is the right parameter
        too_little_noise = GaussianNoise(epsilon=0.268 * factor)
        name = f"Gaussian, sensitivity {factor} times larger"
        yield name, too_little_noise, APPROXIMATE, 1, None
    for fault in ("no_query_noise", "no_cut_off", "quarter_noise"):
        yield f"sparse vector, {fault}", SparseVector(fault=fault), pure, 1, None
    public_threshold = SparseVector(fault="no_threshold_noise", above=1)
    yield "sparse vector, no_threshold_noise, c = 1", public_threshold, pure, 1, None
    yield "sparse vector, unscaled_noise", SparseVector(fault="unscaled_noise"), pure, 1, None
    yield "noisy max, half_noise", NoisyMax(fault="half_noise"), pure, 1, None
    yield "noisy max, released_value", NoisyMax(fault="released_value"), pure, 1, None
    inversion = FloatLaplace(fault="inversion")
    yield "Laplace by inversion", inversion, pure, 1, inversion.score


def hard() -> Iterator[Audited]:
    """The fault that shows only in rare outputs: values released with 80 queries, and c = 1."""
    vector = _LongSparseVector(fault="released_values", above=1)
    yield "sparse vector, released_values, c = 1", vector, lb.PureDP(), 1, log_ratio(vector)


class _LongSparseVector(SparseVector):
    """With more queries, all of them changed but for the last."""

    d0 = np.append(np.zeros(80), 1.0)
    d1 = np.append(np.ones(80), 0.0)


def means() -> Iterator[Audited]:
    """Noisy means, as published."""
    for epsilon in (0.01, 0.1):
        yield f"mean, Laplace, ε = {epsilon}", NoisyMean(epsilon), lb.PureDP(), epsilon, None
        normal = NoisyMean(epsilon=epsilon, noise="normal")
        yield f"mean, Gaussian, ε = {epsilon}", normal, APPROXIMATE, epsilon, None


def right() -> Iterator[Audited]:
    """Right mechanisms, at what they satisfy."""
    for claim in (lb.PureDP(), lb.LaplaceDP(), APPROXIMATE):
        for score in LAPLACE_SCORES:
            yield f"Laplace, {claim.name}", LaplaceNoise(), claim, 1, score
    for score in GAUSSIAN_SCORES:
        yield "Gaussian", GaussianNoise(), lb.GaussianDP(), 1, score
    for mechanism in (FloatLaplace(), SparseVector(), NoisyMax(), NoisyMean(0.1, fault=False)):
        yield type(mechanism).__name__, mechanism, lb.PureDP(), mechanism.epsilon, None


def runs_of(audited: Audited, seed: int, most_runs: int) -> float:
    """Return how many runs refute a claim, inf if none of as many as are allowed."""
    _, mechanism, claim, parameter, score = audited
    calls = count()

    def counted_run(data: Any, rng: np.random.Generator) -> Any:
        next(calls)
        return mechanism.run(data, rng)

    result = audit_mechanism(
        counted_run,
        mechanism.d0,
        mechanism.d1,
        claim,
        parameter=parameter,
        score=score,
        most_runs=most_runs,
        seed=seed,
    )
    if result.bound > parameter:
        return next(calls)
    return math.inf


def row(audited: Audited, most_runs: int) -> Row:
    """Return a row of a table: quantiles of runs, and how many audits refute."""
    name, _, claim, _, score = audited
    runs = np.sort([runs_of(audited, seed=seed, most_runs=most_runs) for seed in range(AUDITS)])
    median = runs[AUDITS // 2]
    ninth_decile = runs[9 * AUDITS // 10]
    refuted = np.isfinite(runs).sum()
    kind_of_score = "learnt"
    if score:
        kind_of_score = "given"
    return name, claim.name, kind_of_score, str(median), str(ninth_decile), f"{refuted} of {AUDITS}"


def rows(audits: Callable[[], Iterator[Audited]], most_runs: int) -> Iterator[Row]:
    """Yield the rows of a table."""
    for audited in audits():
        yield row(audited, most_runs)


if __name__ == "__main__":
    print_tables(
        {
            "faults": partial(rows, faults, most_runs=5000),
            "means": partial(rows, means, most_runs=5000),
            "right": partial(rows, right, most_runs=1000),
            "hard": partial(rows, hard, most_runs=50_000),
        },
        columns="claim | score | median | 90 % | refuted",
    )
