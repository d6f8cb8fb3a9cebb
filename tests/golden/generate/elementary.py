"""Logistic function, deviances and Stirling's error at 60 digits: writes `elementary.csv`.

`binomial_divergence` has the successes, the trials and p <= 1/2 for arguments, or q <= 1/2 where
the function is named `binomial_divergence_q`; unused arguments are 0.
"""

import random
from collections.abc import Iterator

import mpmath
from mpmath import mpf

from rows import write

mpmath.mp.dps = 60
Row = tuple[str, float, float, float, mpf, float]


def deviance(x: mpf, mean: mpf) -> mpf:
    """x ln(x/mean) + mean - x."""
    return mean if x == 0 else x * mpmath.log(x / mean) + mean - x


def divergence(successes: mpf, trials: mpf, p: mpf) -> mpf:
    """The sum of the deviances of successes and failures."""
    return deviance(successes, trials * p) + deviance(trials - successes, trials * (1 - p))


def logistic_rows() -> Iterator[Row]:
    """Yield the rows of the logistic function and its relatives."""
    for x in [0.0, 1e-300, 1e-9, 0.1, 0.5, 1.0, 2.5, 10.0, 36.7, 40.0, 300.0, 700.0, 744.0]:
        for signed in (x, -x) if x else (x,):
            exact = mpf(signed)
            yield "softplus", signed, 0.0, 0.0, mpmath.log1p(mpmath.exp(exact)), 4e-16
            yield "log_expit", signed, 0.0, 0.0, -mpmath.log1p(mpmath.exp(-exact)), 4e-16
            if signed > -700.0:
                yield "expit", signed, 0.0, 0.0, 1 / (1 + mpmath.exp(-exact)), 4e-16
    for p in [1e-300, 1e-20, 1e-3, 0.2, 0.25, 0.3, 0.4999999, 0.5000001, 0.6, 0.75, 0.9, 0.999999]:
        yield "logit", p, 0.0, 0.0, mpmath.log(mpf(p) / (1 - mpf(p))), 5e-16


def deviance_rows(rng: random.Random) -> Iterator[Row]:
    """Yield the rows of the deviances, near the mean, at the seams and far from it."""
    ratios = [1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.49, 0.5, 0.51, 0.9, 0.99, 0.999999]
    for ratio in ratios + [1.0 / ratio for ratio in ratios]:
        for mean in [1e-3, 1.0, 12.5, 1e7]:
            value = deviance(mpf(ratio * mean), mpf(mean))
            yield "deviance", ratio * mean, mean, 0.0, value, 8e-16
    for _ in range(60):
        trials = float(round(10.0 ** rng.uniform(0.5, 7.0)))
        p = rng.choice([rng.uniform(0.0, 0.5), 10.0 ** rng.uniform(-8.0, -0.4)])
        near = trials * p + rng.uniform(-4.0, 4.0) * (trials * p) ** 0.5
        for w in (round(near), rng.randrange(int(trials) + 1), 0, int(trials)):
            if 0 <= w <= trials:
                yield from divergences(float(w), trials, p)


def centre_rows(rng: random.Random) -> Iterator[Row]:
    """Yield divergences of ten million trials whose share is within 1e-4 of p."""
    for _ in range(40):
        p = rng.uniform(0.001, 0.5)
        yield from divergences(float(round(1e7 * (p + rng.uniform(-1e-4, 1e-4)))), 1e7, p)


def divergences(successes: float, trials: float, p: float) -> Iterator[Row]:
    """Yield a divergence and its mirror image."""
    value = divergence(mpf(successes), mpf(trials), mpf(p))
    yield "binomial_divergence", successes, trials, p, value, 1e-15
    yield "binomial_divergence_q", trials - successes, trials, p, value, 1e-15


def stirling_rows() -> Iterator[Row]:
    """Yield the error of Stirling's formula, around the end of the table too."""
    for n in [1, 2, 5, 15, 16, 22, 23, 24, 25, 100, 10**4, 10**7, 2**53]:
        exact = mpf(n)
        with mpmath.workdps(90):
            stirling = mpmath.log(2 * mpmath.pi * exact) / 2 + exact * mpmath.log(exact) - exact
            value = mpmath.loggamma(exact + 1) - stirling
        yield "stirling_error", float(n), 0.0, 0.0, value, 4e-16


def rows() -> Iterator[Row]:
    """Yield the rows of the file."""
    rng = random.Random(1)
    yield from logistic_rows()
    yield from deviance_rows(rng)
    yield from centre_rows(rng)
    yield from stirling_rows()


if __name__ == "__main__":
    write("elementary", ["function", "x", "y", "z", "value", "rtol"], rows())
