"""Compute every value of four golden files again, at 60 digits, from the arguments of its row.

python tests/golden/generate/check.py    names rows whose value differs, in a minute

Formulas are plain ones: sums of point probabilities, integrals where they are long, error
functions of mpmath. None is the method under test.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath
from mpmath import mpf

GOLDEN = Path(__file__).parent.parent
MANY = 10**9
# Relative difference of what is written to 25 digits.
LAST = mpf("1e-23")
Row = dict[str, str]
Values = dict[str, mpf]
"""Numbers of a row by the names of their columns."""
Chance = tuple[mpf, mpf]
"""A probability and its complement."""


def sf(x: mpf) -> mpf:
    """1 - Phi(x), to full relative precision for any x > -1e6."""
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def ln_sf(x: mpf) -> mpf:
    """ln(1 - Phi(x)); beyond 1e4 by the asymptotic series of the Mills ratio, good to 1e-90."""
    if x > 10**4:
        term = total = mpf(1)
        for k in range(1, 12):
            term *= -(2 * k - 1) / x**2
            total += term
        return -(x**2) / 2 - mpmath.log(x * mpmath.sqrt(2 * mpmath.pi)) + mpmath.log(total)
    return mpmath.log1p(-sf(-x)) if x < 0 else mpmath.log(sf(x))


def quantile(p: mpf) -> mpf:
    """Phi^-1(p), by the secant method."""
    if p >= mpf(1) / 2:
        return -quantile(1 - p) if p > mpf(1) / 2 else mpf(0)
    target = mpmath.log(p)
    start = mpmath.sqrt(-2 * target)
    return -mpmath.findroot(lambda x: ln_sf(x) - target, (start, 0.9 * start), tol=1e-110)


def deviance(x: mpf, mean: mpf) -> mpf:
    """x ln(x/mean) + mean - x."""
    return mean if x == 0 else x * mpmath.log(x / mean) + mean - x


def divergence(successes: mpf, trials: mpf, p: mpf) -> mpf:
    """The sum of the deviances of successes and failures."""
    return deviance(successes, trials * p) + deviance(trials - successes, trials * (1 - p))


def stirling_error(n: mpf) -> mpf:
    """ln n! less Stirling's formula."""
    with mpmath.workdps(90):
        formula = mpmath.log(2 * mpmath.pi * n) / 2 + n * mpmath.log(n) - n
        return mpmath.loggamma(n + 1) - formula


def ln(value: mpf, other: mpf) -> mpf:
    """Return ln `value` for value + other = 1, or -inf."""
    if value == 0:
        return mpf("-inf")
    return mpmath.log1p(-other) if other < value else mpmath.log(value)


def ln_pmf(trials: int, v: int, of: Chance) -> mpf:
    """ln P(X = v), by logarithms that lose nothing where p or q is close to 1."""
    if v > trials:
        return mpf("-inf")
    with mpmath.workdps(90):
        choices = mpmath.loggamma(trials + 1)
        choices -= mpmath.loggamma(v + 1) + mpmath.loggamma(trials - v + 1)
        exponents = v * ln(*of) + (trials - v) * ln(*of[::-1])
        return choices + exponents if 0 < v < trials else exponents


def far_tail(trials: int, v: int, of: Chance) -> mpf:
    """P(X >= v) for v >= (trials + 1) p; beyond 10^9 trials an integral over logits."""
    term = total = mpmath.exp(ln_pmf(trials, v, of))
    if trials > MANY:
        p, q = of
        unit = 1 / max(v - (trials + 1) * p, mpmath.sqrt((trials + 1) * p * q))

        def integrand(u: mpf) -> mpf:
            shift = u * unit
            return mpmath.exp(-v * shift - (trials + 1) * mpmath.log1p(p * mpmath.expm1(-shift)))

        return term * v * q * unit * mpmath.quad(integrand, [0, 1, 2, 4, 8, 16, 32, 64, 128])
    while term > total * mpf(10) ** -45:
        term *= of[0] / of[1] * (trials - v) / (v + 1)
        total += term
        v += 1
    return total


def upper_tail(trials: int, v: int, of: Chance) -> Chance:
    """P(X >= v) and its complement, the smaller of them by its own sum."""
    if not 0 < v <= trials:
        return (mpf(1), mpf(0)) if v <= 0 else (mpf(0), mpf(1))
    if v * of[1] >= (trials + 1 - v) * of[0]:
        tail = far_tail(trials, v, of)
        return tail, 1 - tail
    other = far_tail(trials, trials - v + 1, of[::-1])
    return 1 - other, other


def normal(row: Row) -> Values:
    """Tails, their ratio to the density, quantiles."""
    formulas: dict[str, Callable[[mpf], mpf]] = {
        "sf": sf,
        "ln_sf": ln_sf,
        "mills_ratio": lambda x: sf(x) / mpmath.npdf(x),
        "quantile": quantile,
    }
    return {"value": formulas[row["function"]](mpf(float(row["x"])))}


def elementary(row: Row) -> Values:
    """Of `binomial_divergence_q` the arguments are failures, trials and p, the rarer side's."""
    formulas: dict[str, Callable[..., mpf]] = {
        "softplus": lambda x, *_: mpmath.log1p(mpmath.exp(x)),
        "log_expit": lambda x, *_: -mpmath.log1p(mpmath.exp(-x)),
        "expit": lambda x, *_: 1 / (1 + mpmath.exp(-x)),
        "logit": lambda x, *_: mpmath.log(x / (1 - x)),
        "binomial_divergence": divergence,
        "binomial_divergence_q": lambda x, n, p: divergence(n - x, n, p),
        "stirling_error": lambda n, *_: stirling_error(n),
    }
    return {"value": formulas[row["function"]](*(mpf(float(row[name])) for name in "xyz"))}


def binomial(row: Row) -> Values:
    """Whichever of p and q is the smaller is exact, and the other its complement."""
    trials, v = int(row["trials"]), int(row["successes"])
    p, q = (mpf(float(row[name])) for name in "pq")
    of = (p, 1 - p) if p <= q else (1 - q, q)
    if row["function"] == "pmf":
        log = ln_pmf(trials, v, of)
        return {"value": mpmath.exp(log), "ln_value": log}
    lower = row["function"] == "lower_tail"
    above, below = upper_tail(trials, v + lower, of)
    value = (below, above) if lower else (above, below)
    return {"value": value[0], "ln_value": ln(*value)}


def clopper_pearson(row: Row) -> Values:
    """The p with P(Bin(trials, p) >= successes) = beta, searched from the value that is there."""
    successes, trials, beta = int(row["successes"]), int(row["trials"]), mpf(float(row["beta"]))
    if successes == 0:
        return {"p": mpf(0), "q": mpf(1)}
    if successes == trials:
        log = mpmath.log(beta) / trials
        return {"p": mpmath.exp(log), "q": -mpmath.expm1(log)}

    def at(logit: mpf) -> Chance:
        return 1 / (1 + mpmath.exp(-logit)), 1 / (1 + mpmath.exp(logit))

    def off(logit: mpf) -> mpf:
        return ln(*upper_tail(trials, successes, at(logit))) - mpmath.log(beta)

    start = mpmath.log(mpf(row["p"]) / mpf(row["q"]))
    found = at(mpmath.findroot(off, (start, start - mpf("0.01")), solver="secant", tol=1e-60))
    return dict(zip("pq", found, strict=True))


def differing() -> Iterator[str]:
    """Yield the rows whose values are not those of the formulas, to all digits but the last."""
    for formula in (normal, elementary, binomial, clopper_pearson):
        with (GOLDEN / f"{formula.__name__}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                for name, value in formula(row).items():
                    written = mpf(row[name])
                    if written != value and not mpmath.almosteq(written, value, LAST):
                        yield f"{formula.__name__}.csv: {name} of {row} is {value}"


if __name__ == "__main__":
    mpmath.mp.dps = 60
    sys.exit("\n".join(differing()) or None)
