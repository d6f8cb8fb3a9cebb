"""Binomial point probabilities and tails at 60 digits: writes `binomial.csv`.

A probability is given by whichever of p and q = 1 - p is the smaller, as an exact double; the other
column is that one's complement, rounded. Tails are plain sums of point probabilities; those of more
than 10^9 trials are integrals of the beta density.
"""

import random
from collections.abc import Iterator

import mpmath
from mpmath import mpf

from rows import write

mpmath.mp.dps = 60
MANY = 10**9


Chance = tuple[mpf, mpf]
"""A probability and its complement."""
Case = tuple[int, int, Chance]
"""Trials, successes and the probability of one."""


def chances(p: float) -> tuple[Chance, Chance]:
    """Return the chance of the exact double `p` <= 1/2, and that of the complement."""
    exact = mpf(p)
    return (exact, 1 - exact), (1 - exact, exact)


def ln_pmf(trials: int, v: int, of: Chance) -> mpf:
    """ln P(X = v), by logarithms that lose nothing where p or q is close to 1."""
    if v > trials:
        return mpf("-inf")
    with mpmath.workdps(90):
        choices = mpmath.loggamma(trials + 1)
        choices -= mpmath.loggamma(v + 1) + mpmath.loggamma(trials - v + 1)
        exponents = v * ln(*of) + (trials - v) * ln(*of[::-1])
        return choices + exponents if 0 < v < trials else exponents


def ln(value: mpf, other: mpf) -> mpf:
    """Return ln `value` for value + other = 1, or -inf."""
    if value == 0:
        return mpf("-inf")
    return mpmath.log1p(-other) if other < value else mpmath.log(value)


def far_tail(trials: int, v: int, of: Chance) -> mpf:
    """P(X >= v) for v >= (trials + 1) p."""
    first = mpmath.exp(ln_pmf(trials, v, of))
    if trials > MANY:
        return first * mills_ratio(trials, v, of)
    term = total = first
    while term > total * mpf(10) ** -45:
        term *= of[0] / of[1] * (trials - v) / (v + 1)
        total += term
        v += 1
    return total


def mills_ratio(trials: int, v: int, of: Chance) -> mpf:
    """P(X >= v) / P(X = v) = v q times the integral of (t/p)^v ((1-t)/q)^(n+1-v) over logits."""
    p, q = of
    unit = 1 / max(v - (trials + 1) * p, mpmath.sqrt((trials + 1) * p * q))

    def integrand(u: mpf) -> mpf:
        shift = u * unit
        return mpmath.exp(-v * shift - (trials + 1) * mpmath.log1p(p * mpmath.expm1(-shift)))

    return v * q * unit * mpmath.quad(integrand, [0, 1, 2, 4, 8, 16, 32, 64, 128])


def upper_tail(trials: int, v: int, of: Chance) -> tuple[mpf, mpf]:
    """P(X >= v) and its complement, the smaller of them by its own sum."""
    if v <= 0:
        return mpf(1), mpf(0)
    if v > trials:
        return mpf(0), mpf(1)
    if v * of[1] >= (trials + 1 - v) * of[0]:
        tail = far_tail(trials, v, of)
        return tail, 1 - tail
    other = far_tail(trials, trials - v + 1, of[::-1])
    return 1 - other, other


def small_cases() -> Iterator[Case]:
    """Every count of a few trials, beyond them too, and ends of larger numbers of trials."""
    for p in [0.5, 0.3, 1e-3, 1e-300]:
        for of in chances(p):
            for trials in range(5):
                for v in range(trials + 2):
                    yield trials, v, of
            for trials in (1000, 10**7):
                for v in (0, 1, 2, trials - 1, trials):
                    yield trials, v, of


def random_cases(rng: random.Random) -> Iterator[Case]:
    """Up to ten million trials, rare and even chances, from the centre to 38 deviations."""
    for _ in range(150):
        trials = int(10.0 ** rng.uniform(0.7, 7.0))
        p = rng.choice([rng.uniform(0.0, 0.5), 10.0 ** rng.uniform(-7.0, -0.4), 0.5])
        of = rng.choice(chances(p))
        x = rng.choice([rng.uniform(-5.0, 5.0), rng.uniform(-38.0, 38.0)])
        yield trials, min(max(around(trials, of, x), 1), trials), of


def around(trials: int, of: Chance, x: float) -> int:
    """Return the count nearest to x standard deviations above the mean."""
    return round(float(trials * of[0] + x * mpmath.sqrt(trials * of[0] * of[1])))


def large_cases() -> Iterator[Case]:
    """Ten million trials: the centre, both tails down to 1e-300, and far below."""
    trials = 10**7
    for p in (0.5, 0.1, 1e-3, 1e-6):
        for of in chances(p):
            mean = round(trials * float(of[0]))
            for v in (mean - 1, mean, mean + 1):
                yield trials, v, of
            for x in (0.3, 1.645, 3.0, 3.99, 4.01, 6.0, 12.0, 25.0, 36.5, 60.0, 1200.0):
                for v in (around(trials, of, x), around(trials, of, -x)):
                    if 0 < v <= trials:
                        yield trials, v, of


def seam_cases() -> Iterator[Case]:
    """Around the standard deviation 40, where the series hands over to the expansion."""
    for p in (0.5, 0.03, 1e-4):
        for variance in (1590.0, 1598.0, 1602.0, 1650.0):
            for of in chances(p):
                trials = round(variance / (p * (1.0 - p)))
                for x in (0.0, 0.7, 2.0, 3.9, 4.1, 5.0):
                    yield trials, around(trials, of, x) + 1, of


def huge_cases() -> Iterator[Case]:
    """2^53 trials, the most that doubles count."""
    trials = 2**53
    for p in (0.5, 1e-3, 1e-12):
        for of in chances(p):
            for x in (0.5, 4.0, 5.0, 30.0):
                yield trials, around(trials, of, x), of


def rows() -> Iterator[tuple[object, ...]]:
    """Yield the rows of the file: what `binomial::relative_error` promises is their tolerance."""
    cases = [*small_cases(), *random_cases(random.Random(2)), *large_cases(), *seam_cases()]
    for case in [*cases, *huge_cases()]:
        trials, v, of = case
        inputs = (trials, v, *map(float, of))
        log = ln_pmf(*case)
        yield "pmf", *inputs, mpmath.exp(log), log, *point_tolerances(log, ends=v in (0, trials))
        above, below = upper_tail(*case)
        yield "upper_tail", *inputs, above, ln(above, below), *tolerances(above, below)
        if trials <= MANY:
            above, below = upper_tail(trials, v + 1, of)
            yield "lower_tail", *inputs, below, ln(below, above), *tolerances(below, above)


def point_tolerances(log: mpf, *, ends: bool) -> tuple[float, float]:
    """Relative tolerances of a point probability and of its logarithm, a product at the ends."""
    if log == 0 or mpmath.isinf(log):
        return 0.0, 0.0
    size = abs(float(log))
    return held_to(size), 1e-15 if ends else held_to(size) / size


def tolerances(value: mpf, other: mpf) -> tuple[float, float]:
    """Relative tolerances of a tail and of its logarithm: through 1 - other where that is small."""
    if value == 0 or other == 0:
        return 0.0, 0.0
    if value < mpf(1) / 2:
        size = abs(float(mpmath.log(value)))
        return held_to(size), held_to(size) / size
    return 2e-14, 2.0 * held_to(abs(float(mpmath.log(other))))


def held_to(size: float) -> float:
    """Return what these cases are held to: a little less than `binomial::relative_error`."""
    return 2e-14 + 6.5e-16 * size


COLUMNS = ["function", "trials", "successes", "p", "q", "value", "ln_value", "rtol", "ln_rtol"]

if __name__ == "__main__":
    write("binomial", COLUMNS, rows())
