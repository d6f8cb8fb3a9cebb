"""Normal and binomial probabilities, their quantiles and limits."""

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import leakbound._core as _core
from leakbound._base.checks import flag, numbers
from leakbound._base.types import FloatArray

Number: TypeAlias = Any
"""A float for scalar arguments, else an array of float64: a union would burden every caller."""


def normal_cdf(x: ArrayLike) -> Number:
    """Return P(Z ≤ x) for a standard normal Z, to 1e-15 relative.

    Parameters
    ----------
    x : array-like
        Real numbers; ±inf allowed.

    Examples
    --------
    >>> normal_cdf(0.0)
    0.5
    """
    return vectorised(_core.normal_cdf, reals(x, "x"))


def normal_quantile(p: ArrayLike) -> Number:
    """Return the x at which a standard normal Z has P(Z ≤ x) = p; -inf at 0 and inf at 1.

    Parameters
    ----------
    p : array-like
        Probabilities in [0, 1].

    Examples
    --------
    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return vectorised(_core.normal_quantile, probabilities(p, "p"))


def log_normal_cdf(x: ArrayLike) -> Number:
    """Return ln P(Z ≤ x) for a standard normal Z, also where the probability underflows.

    Parameters
    ----------
    x : array-like
        Real numbers; ±inf allowed.

    Examples
    --------
    >>> round(log_normal_cdf(-40.0), 4)
    -804.6084
    """
    return vectorised(_core.log_normal_cdf, reals(x, "x"))


def binomial_tail(v: ArrayLike, n: ArrayLike, p: ArrayLike, *, log: bool = False) -> Number:
    """Return P(W ≥ v) for W ~ Bin(n, p), or its logarithm in nats; to 1e-12 relative.

    Loader's saddle-point form of the largest term (2000), and a continued fraction for the rest.

    Parameters
    ----------
    v, n : array-like of int
        Counts, of which at most 0 gives 1 and above n gives 0, and trials, at least 0.
    p : array-like
        Probabilities in [0, 1].
    log : bool
        Whether to return logarithms, right also where the tail underflows.

    Examples
    --------
    >>> round(binomial_tail(8, 10, 0.5), 6)
    0.054688
    """
    logarithm = flag(log, "log")
    return vectorised(
        lambda v, n, p: _core.binomial_tail(v, n, p, log=logarithm),
        counts(v, "v"),
        counts(n, "n", least=0),
        probabilities(p, "p"),
    )


def clopper_pearson(v: ArrayLike, n: ArrayLike, *, beta: ArrayLike) -> Number:
    """Return the largest p for which v or more successes in n trials have probability ≤ β.

    It is rounded down (Clopper and Pearson 1934).

    Parameters
    ----------
    v, n : array-like of int
        Successes, in [0, n], and trials, at least 1.
    beta : array-like
        Probability of error of the one-sided limit, in [1e-300, 1).

    Examples
    --------
    >>> round(clopper_pearson(118, 120, beta=0.05), 6)
    0.948466
    """
    successes, trials = counts(v, "v", least=0), counts(n, "n", least=1)
    numbers(np.subtract(trials, successes, dtype=np.float64), "n - v", least=0)
    level = reals(beta, "beta", least=1e-300, most=1 - sys.float_info.epsilon)
    return vectorised(
        lambda v, n, beta: _core.clopper_pearson(v, n, beta=beta), successes, trials, level
    )


# The largest count: beyond it a double misses whole numbers
LARGEST = 2**53


def vectorised(function: Callable[..., FloatArray], *arguments: NDArray[Any]) -> Number:
    """Call a function of vectors with arguments of any shapes that broadcast."""
    together = np.broadcast_arrays(*arguments)
    values = function(*(np.ascontiguousarray(one).ravel() for one in together))
    shape = together[0].shape
    return values.reshape(shape) if shape else float(values[0])


def reals(
    values: ArrayLike, name: str, *, least: float = -math.inf, most: float = math.inf
) -> FloatArray:
    """Read real numbers within limits."""
    return numbers(values, name, least=least, most=most).astype(np.float64, copy=False)


def probabilities(values: ArrayLike, name: str) -> FloatArray:
    """Read numbers in [0, 1]."""
    return reals(values, name, least=0, most=1)


def counts(values: ArrayLike, name: str, *, least: int = -LARGEST) -> NDArray[np.uint64]:
    """Read counts; those below 0 mean what 0 means."""
    whole = numbers(values, name, least=least, most=LARGEST, whole=True)
    counts: NDArray[np.uint64] = np.maximum(whole, 0).astype(np.uint64)
    return counts
