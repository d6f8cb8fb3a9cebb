"""Normal, binomial and Poisson-binomial probabilities, their quantiles and limits."""

import sys

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.checks import (
    broadcast,
    flag,
    in_shape,
    numbers,
    real,
    reals,
    vector,
    vectorised,
)
from leakbound._base.reading import array_of
from leakbound._base.types import AnyArray, ArrayInput, ArrayLike, FloatArray, IntArray, Number
from leakbound.errors import InputError


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
    return vectorised(_core.normal_cdf, reals(x, name="x"))


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
    return vectorised(_core.normal_quantile, reals(p, name="p", least=0, most=1))


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
    return vectorised(_core.log_normal_cdf, reals(x, name="x"))


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
    in_logarithms = flag(log, name="log")
    return vectorised(
        lambda v, n, p: _core.binomial_tail(v, n, p, log=in_logarithms),
        _read_counts(v, "v"),
        _read_counts(n, "n", least=0),
        reals(p, name="p", least=0, most=1),
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
    successes, trials = broadcast(_read_counts(v, "v", least=0), _read_counts(n, "n", least=1))
    numbers(np.subtract(trials, successes, dtype=np.float64), name="n - v", least=0)
    level = reals(beta, name="beta", least=1e-300, most=1 - sys.float_info.epsilon)
    return vectorised(
        lambda v, n, beta: _core.clopper_pearson(v, n, beta=beta), successes, trials, level
    )


# The largest count: beyond it a double misses whole numbers
LARGEST = 2**53


def _read_counts(values: ArrayLike, name: str, *, least: int = -LARGEST) -> NDArray[np.uint64]:
    """Read counts; those below 0 mean what 0 means."""
    whole_numbers = numbers(values, name=name, least=least, most=LARGEST, whole=True)
    counts_from_zero = np.maximum(whole_numbers, 0)
    return np.ascontiguousarray(counts_from_zero, dtype=np.uint64).reshape(whole_numbers.shape)


_FINITE = np.finfo(np.float64).max.item()
_NO_EPSILON = np.zeros(())
"""No privacy loss, where probabilities are given themselves."""


def poisson_binomial_tail(
    v: ArrayLike, p: ArrayInput, *, counts: ArrayInput | None = None, log: bool = False
) -> Number:
    """Return P(S ≥ v) for S = Σ X_i with independent X_i ~ Bernoulli(p_i).

    Right to about 1e-15·(1 + |ln P|) relative, in the shape of `v`.

    Parameters
    ----------
    v : array-like of int
        Thresholds; any whole numbers.
    p : array-like, shape (n,)
        Probabilities in [0, 1], at least one.
    counts : array-like of int, shape (n,), optional
        How often each p_i occurs; once if None.
    log : bool
        Whether to return logarithms, in nats, right also where the tail underflows.

    Notes
    -----
    A tilted contour sum, O(n): with the tilt θ that moves the mean to v,
    P(S ≥ v) = exp(K(θ) − θv) Σ_{j≥0} exp(−θj) P̃(S = v + j), the sum by a trapezoidal rule for the
    tilted characteristic function. About 25 nodes matter for any n, since
    |ψ(φ)| ≤ exp(−var·(1 − cos φ)); aliasing is below 2e⁻³⁸ by Bennett's inequality (1962). Up to 96
    trials the probabilities are convolved one by one.

    Examples
    --------
    >>> poisson_binomial_tail(2, [0.5, 0.25, 1.0])
    0.625
    """
    return _poisson_binomial_tails(
        v,
        values=_read_vector(p, "p"),
        epsilon=_NO_EPSILON,
        counts=counts,
        name="p",
        log=log,
    )


def poisson_binomial_tail_offsets(
    v: ArrayLike,
    offsets: ArrayInput,
    epsilon: ArrayLike,
    *,
    counts: ArrayInput | None = None,
    log: bool = False,
) -> Number:
    """Return P(S ≥ v) for S = Σ X_i, X_i ~ Bernoulli(σ(ε + a_i)), σ the logistic function.

    Parameters
    ----------
    v, counts, log : the same
        As for `poisson_binomial_tail`.
    offsets : array-like, shape (n,)
        a_i, in nats: log odds at ε = 0. Finite ones within 300 of the middle of their range; ±inf
        for certainty.
    epsilon : array-like
        ε, finite, in nats; broadcast against `v`.

    Examples
    --------
    >>> round(poisson_binomial_tail_offsets(8, [-1.0, 0.0, 1.0], 0.25, counts=[5, 5, 5]), 6)
    0.675674
    """
    return _poisson_binomial_tails(
        v,
        values=_read_vector(offsets, "offsets"),
        epsilon=numbers(epsilon, name="epsilon", least=-_FINITE, most=_FINITE),
        counts=counts,
        name="offsets",
        log=log,
    )


def poisson_binomial_epsilon(
    v: ArrayLike, offsets: ArrayInput, *, beta: float, counts: ArrayInput | None = None
) -> Number:
    """Return the largest ε at which S = Σ X_i, X_i ~ Bernoulli(σ(ε + a_i)), has P(S ≥ v) ≤ β.

    In nats, right to 1e-13 and rounded down: at this ε the tail is at most β, its rounding errors
    included. -inf where certain terms alone reach v, inf where nothing does. It costs about one
    tail; every bit of the result is the same whatever the number of threads.

    Parameters
    ----------
    v : array-like of int
        Thresholds; one for each replicate if `offsets` or `counts` has rows.
    offsets : array-like, shape (n,) or (K, n)
        a_i, in nats, as for `poisson_binomial_tail_offsets`; a row for each of K replicates.
    beta : float
        Level, in (0, 1).
    counts : array-like of int, shape (n,) or (K, n), optional
        How often each term occurs, such as the multiplicities of a bootstrap resample; a row for
        each replicate.

    Examples
    --------
    >>> epsilon = poisson_binomial_epsilon(75, [0.0] * 100, beta=0.01)
    >>> round(epsilon, 9), poisson_binomial_tail_offsets(75, [0.0] * 100, epsilon) <= 0.01
    (0.555871167, True)
    """
    level = real(beta, name="beta", above=0, below=1)
    checked_offsets = numbers(_read_rows(offsets, "offsets"), name="offsets")
    offsets_of_terms = np.ascontiguousarray(checked_offsets, dtype=np.float64)
    counts_of_terms = None
    if counts is not None:
        counts_of_terms = _read_counts(_read_rows(counts, "counts"), "counts", least=0)
    has_rows_of_counts = counts_of_terms is not None and counts_of_terms.ndim == 2
    if offsets_of_terms.ndim == 2 or has_rows_of_counts:
        return _epsilons_of_replicates(
            v,
            offsets=offsets_of_terms,
            counts=counts_of_terms,
            beta=level,
        )
    thresholds = _read_thresholds(v)
    epsilons = _core.poisson_binomial_epsilon(
        offsets_of_terms,
        thresholds.ravel(),
        beta=level,
        counts=counts_of_terms,
    )
    return in_shape(epsilons, thresholds.shape)


def _poisson_binomial_tails(
    v: ArrayLike,
    values: FloatArray,
    epsilon: AnyArray,
    counts: ArrayInput | None,
    name: str,
    *,
    log: bool,
) -> Number:
    """Return tails or their logarithms in the shape of `v` broadcast against `epsilon`."""
    in_logarithms = flag(log, name="log")
    thresholds, epsilons = broadcast(_read_thresholds(v), epsilon)
    counts_of_terms = None
    if counts is not None:
        counts_of_terms = _read_counts(vector(counts, name="counts"), "counts", least=0)
    tails, log_tails, _ = _core.poisson_binomial_tail(
        values,
        np.ascontiguousarray(thresholds).ravel(),
        np.ascontiguousarray(epsilons, dtype=np.float64).ravel(),
        counts=counts_of_terms,
        offsets=name == "offsets",
    )
    if in_logarithms:
        tails = log_tails
    return in_shape(tails, thresholds.shape)


def _epsilons_of_replicates(
    v: ArrayLike, offsets: FloatArray, counts: NDArray[np.uint64] | None, beta: float
) -> FloatArray:
    """Return one ε for each row of offsets, of counts, or of both."""
    listed_thresholds = np.atleast_1d(array_of(v, name="v"))
    thresholds = _read_thresholds(vector(listed_thresholds, name="v"))
    replicates = thresholds.size
    terms = offsets.shape[-1]
    # Rows belong to replicates, columns to terms; what has no rows is shared by all.
    tables: list[tuple[str, AnyArray | None]] = [("offsets", offsets), ("counts", counts)]
    for name, table in tables:
        if table is not None and table.shape not in {(terms,), (replicates, terms)}:
            raise InputError(
                f"{name} has shape {table.shape}, and needs ({terms},) or ({replicates}, {terms})"
            )
    flat_counts = None
    if counts is not None:
        flat_counts = counts.ravel()
    return _core.replicated_epsilon(
        offsets.ravel(),
        thresholds,
        beta=beta,
        counts=flat_counts,
        terms=terms,
    )


def _read_vector(values: ArrayInput, name: str) -> FloatArray:
    # the core checks entries and lengths, and names the first that is wrong
    return np.ascontiguousarray(vector(values, name=name), dtype=np.float64)


def _read_rows(values: ArrayInput, name: str) -> AnyArray:
    """Read one row or several, at least one column each; their entries are checked later."""
    array = array_of(values, name=name)
    if array.ndim not in {1, 2} or array.size == 0:
        raise InputError(
            f"{name} must be a vector or a matrix of rows and not empty, got {array.shape}"
        )
    return array


def _read_thresholds(v: ArrayLike | int) -> IntArray:
    if isinstance(v, int) and not isinstance(v, bool) and abs(v) <= LARGEST:
        return np.array(v, dtype=np.int64)  # most calls, of which checks would take a third
    thresholds = numbers(v, name="v", least=-LARGEST, most=LARGEST, whole=True)
    return np.ascontiguousarray(thresholds, dtype=np.int64).reshape(thresholds.shape)
