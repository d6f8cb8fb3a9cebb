"""The normal distribution at 60 digits: writes `normal.csv`."""

import math
from collections.abc import Iterator

import mpmath
from mpmath import mpf

from rows import write

mpmath.mp.dps = 60
RTOL = 1e-15
SQRT_2 = mpmath.sqrt(2)


def sf(x: mpf) -> mpf:
    """1 - Phi(x), to full relative precision for any x > -1e6."""
    return mpmath.erfc(x / SQRT_2) / 2


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
    if p > mpf(1) / 2:
        return -quantile(1 - p)
    target = mpmath.log(p)
    start = mpmath.sqrt(-2 * target)
    found = mpmath.findroot(lambda x: ln_sf(x) - target, (start, 0.9 * start), tol=1e-110)
    return -found if p < mpf(1) / 2 else mpf(0)


def points() -> list[float]:
    """Return x >= 0: tiny, every branch and its ends, and out to where a double underflows."""
    near = [0.0, 1e-300, 1e-16, 1e-8, 1e-3, 0.1, 0.25, 0.5, 0.6744897501960817]
    seams = [math.nextafter(1.0, 0.0), 1.0, 1.0000001, 1.959963984540054, 4.999999, 5.0]
    return near + seams + [0.31 * k for k in range(1, 121)] + [37.5]


def chances() -> list[float]:
    """Return p <= 1/2 over the whole range, with the seams of the approximation."""
    seams = [0.075, math.nextafter(0.075, 0.0), 0.074, 0.4, 0.49, 0.499999, 0.5 - 1e-12, 0.5]
    seams += [math.exp(-25.0), 1.3e-11, 1.4e-11]
    return seams + [0.9 * 10.0**-k for k in range(1, 307, 5)] + [2.2250738585072014e-308, 1e-310]


def rows() -> Iterator[tuple[str, float, mpf, float]]:
    """Yield the rows of the file."""
    for x in points():
        yield "sf", x, sf(mpf(x)), RTOL
        yield "sf", -x, sf(mpf(-x)), RTOL
        yield "mills_ratio", x, sf(mpf(x)) / mpmath.npdf(mpf(x)), RTOL
    for x in [*points(), 38.0, 38.6, 50.0, 1e3, 12345.678, 1e8, 1e20, 1e150]:
        yield "ln_sf", x, ln_sf(mpf(x)), RTOL
        if x < 37.5:
            yield "ln_sf", -x, ln_sf(mpf(-x)), RTOL
    for p in chances():
        yield "quantile", p, quantile(mpf(p)), RTOL
    for p in [0.5000001, 0.51, 0.6, 0.925, 0.95, 0.975, 0.999, 1.0 - 1e-9, 1.0 - 2.0**-53]:
        yield "quantile", p, quantile(mpf(p)), RTOL


if __name__ == "__main__":
    write("normal", ["function", "x", "value", "rtol"], rows())
