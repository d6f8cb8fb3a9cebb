"""Clopper-Pearson lower limits at 40 digits: writes `clopper_pearson.csv`.

An upper limit is one minus the lower limit for the failures, so lower limits suffice. p and q are
both values here, each to 25 digits.
"""

import random
from collections.abc import Iterator

import mpmath
from binomial import Chance, ln, upper_tail
from mpmath import mpf

from rows import write

RTOL = 1e-12


def lower_limit(successes: int, trials: int, beta: mpf) -> tuple[mpf, mpf]:
    """Return the p with P(Bin(trials, p) >= successes) = beta and its complement."""
    if successes == 0:
        return mpf(0), mpf(1)
    if successes == trials:
        return beta ** (mpf(1) / trials), -mpmath.expm1(mpmath.log(beta) / trials)

    def off(logit: mpf) -> mpf:
        return ln(*upper_tail(trials, successes, at(logit))) - mpmath.log(beta)

    start = wilson(successes, trials, beta)
    return at(mpmath.findroot(off, (start, start - mpf("0.01")), solver="secant", tol=1e-60))


def at(logit: mpf) -> Chance:
    """Return the chance with this logit."""
    return 1 / (1 + mpmath.exp(-logit)), 1 / (1 + mpmath.exp(logit))


def wilson(successes: int, trials: int, beta: mpf) -> mpf:
    """Return the logit of Wilson's limit, a start for the search."""
    z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * max(beta, mpf(10) ** -25))
    v, n = mpf(successes) - 0.5, mpf(trials)
    p = v * v / n / (v + z * z / 2 + z * mpmath.sqrt(v * (1 - v / n) + z * z / 4))
    return mpmath.log(p / (1 - p))


def cases() -> Iterator[tuple[int, int, float]]:
    """Yield successes, trials and level: ends, small numbers, and ten million at any share."""
    for beta in [0.5, 0.05, 1e-3, 1e-9, 1e-40, 1e-300]:
        for trials in [1, 2, 3, 10]:
            for successes in range(trials + 1):
                yield successes, trials, beta
        for successes in [0, 1, 2, 30, 50, 77, 98, 99, 100]:
            yield successes, 100, beta
    rng = random.Random(3)
    for _ in range(60):
        trials = int(10.0 ** rng.uniform(1.0, 5.5))
        yield rng.randrange(trials + 1), trials, rng.choice([0.5, 0.05, 0.05 / 3, 1e-6, 1e-100])
    for successes in [1, 2, 5, 1000, 10**6, 5 * 10**6, 8 * 10**6, 10**7 - 4, 10**7 - 1, 10**7]:
        for beta in [0.5, 0.05, 5e-9, 1e-300]:
            yield successes, 10**7, beta


def rows() -> Iterator[tuple[object, ...]]:
    """Yield the rows of the file."""
    for successes, trials, beta in cases():
        yield successes, trials, beta, *lower_limit(successes, trials, mpf(beta)), RTOL


if __name__ == "__main__":
    mpmath.mp.dps = 60
    write("clopper_pearson", ["successes", "trials", "beta", "p", "q", "rtol"], rows())
