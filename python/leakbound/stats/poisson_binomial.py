"""Sums of unlike Bernoulli terms: tails, their inverse, probabilities and bounds.

The public names are those of `leakbound.stats`.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import leakbound._core as _core
from leakbound._base.checks import flag, numbers, real, vector
from leakbound._base.types import ArrayInput, FloatArray, IntArray
from leakbound.errors import IncompatibleOptionsError, LengthMismatchError, OptionError, ShapeError

Number: TypeAlias = Any
"""A float for scalar arguments, else an array of float64: a union would burden every caller."""

_LARGEST = 2**53
"""The largest count: beyond it a double misses whole numbers."""


def poisson_binomial_tail(
    v: ArrayLike,
    p: ArrayInput,
    *,
    counts: ArrayInput | None = None,
    weights: ArrayInput | None = None,
    log: bool = False,
) -> Number:
    """Return P(S ≥ v) for S = Σ t_i X_i with independent X_i ~ Bernoulli(p_i).

    Parameters
    ----------
    v : array-like of int
        Thresholds; any whole numbers, or real ones with real `weights`.
    p : array-like, shape (n,)
        Probabilities in [0, 1], at least one.
    counts : array-like of int, shape (n,), optional
        How often each p_i occurs; once if None.
    weights : array-like, shape (n,), optional
        t_i: all whole and at least 0, or real in [0, 1]; 1 if None. Not together with `counts`.
    log : bool
        Whether to return logarithms, in nats, right also where the tail underflows.

    Returns
    -------
    float or ndarray of float64, shape of `v`
        The tails, to about 1e-15·(1 + |ln P|) relative. With real weights an upper bound: the tail
        of the weights rounded up to multiples of 1/4096.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError
        If `p`, `counts` or `weights` is not a vector of numbers, or they differ in length.
    OptionError
        If a probability is outside [0, 1] or NaN, a count or weight negative or not whole, or `v`
        not whole; the message names the index.
    IncompatibleOptionsError
        If both `counts` and `weights` are given.

    Notes
    -----
    A tilted contour sum, O(n): with the tilt θ that moves the mean to v,
    P(S ≥ v) = exp(K(θ) − θv) Σ_{j≥0} exp(−θj) P̃(S = v + j), the sum by a trapezoidal rule for the
    tilted characteristic function. About 25 nodes matter for any n, since
    |ψ(φ)| ≤ exp(−var·(1 − cos φ)); aliasing is below 2e⁻³⁸ by Bennett's inequality (Bennett,
    "Probability inequalities for the sum of independent random variables", 1962). Up to 96 trials
    the probabilities are convolved one by one.

    Examples
    --------
    >>> poisson_binomial_tail(2, [0.5, 0.25, 1.0])
    0.625
    >>> round(poisson_binomial_tail(900, [0.5] * 1000, log=True), 6)
    -371.116421
    """
    in_logs, values = flag(log, "log"), _vector(p, "p")
    tail, logarithm, _ = _tails(v, values, 0.0, counts=counts, weights=weights, offsets=False)
    return logarithm if in_logs else tail


def poisson_binomial_tail_offsets(
    v: ArrayLike,
    offsets: ArrayInput,
    epsilon: ArrayLike,
    *,
    counts: ArrayInput | None = None,
    weights: ArrayInput | None = None,
    log: bool = False,
) -> Number:
    """Return P(S ≥ v) for S = Σ t_i X_i, X_i ~ Bernoulli(σ(ε + a_i)), σ the logistic function.

    Parameters
    ----------
    v : array-like of int
        Thresholds; any whole numbers, or real ones with real `weights`.
    offsets : array-like, shape (n,)
        a_i, in nats: log odds at ε = 0. Finite ones within 300 of the middle of their range; ±inf
        for certainty.
    epsilon : array-like
        ε, finite, in nats; broadcast against `v`.
    counts, weights : array-like, shape (n,), optional
        As for `poisson_binomial_tail`.
    log : bool
        Whether to return logarithms, in nats.

    Returns
    -------
    float or ndarray of float64
        The tails, as `poisson_binomial_tail`.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, OptionError, IncompatibleOptionsError
        As for `poisson_binomial_tail`.

    Examples
    --------
    >>> poisson_binomial_tail_offsets(1, [0.0], 0.0)
    0.5
    >>> round(poisson_binomial_tail_offsets(8, [-1.0, 0.0, 1.0], 0.25, counts=[5, 5, 5]), 6)
    0.675674
    """
    in_logs, values = flag(log, "log"), _vector(offsets, "offsets")
    tail, logarithm, _ = _tails(v, values, epsilon, counts=counts, weights=weights, offsets=True)
    return logarithm if in_logs else tail


def poisson_binomial_epsilon(
    v: ArrayLike,
    offsets: ArrayInput,
    *,
    beta: float,
    counts: ArrayInput | None = None,
    weights: ArrayInput | None = None,
) -> Number:
    """Return the largest ε at which S = Σ t_i X_i, X_i ~ Bernoulli(σ(ε + a_i)), has P(S ≥ v) ≤ β.

    Parameters
    ----------
    v : array-like of int
        Thresholds; one for each replicate if `offsets` or `counts` has rows. Real ones with real
        `weights`.
    offsets : array-like, shape (n,) or (K, n)
        a_i, in nats, as for `poisson_binomial_tail_offsets`; a row for each of K replicates.
    beta : float
        Level, in (0, 1).
    counts : array-like of int, shape (n,) or (K, n), optional
        How often each term occurs, such as the multiplicities of a bootstrap resample; a row for
        each replicate.
    weights : array-like, shape (n,), optional
        As for `poisson_binomial_tail`; not with replicates.

    Returns
    -------
    float or ndarray of float64, shape of `v`, or (K,)
        ε in nats, right to 1e-13 and rounded down: at this ε the tail is at most β, its rounding
        errors included. -inf where certain terms alone reach v, inf where nothing does. With real
        weights, for the weights rounded up to multiples of 1/4096.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, OptionError, IncompatibleOptionsError
        As for `poisson_binomial_tail`.
    OptionError, OptionTypeError
        If `beta` is not a number in (0, 1).

    Notes
    -----
    Costs about one tail, since the tilted law does not depend on ε (eight with weights).
    Neighbouring thresholds and replicates start from each other in runs of 16, whatever the number
    of threads, and so does every bit of the result.

    Examples
    --------
    >>> epsilon = poisson_binomial_epsilon(75, [0.0] * 100, beta=0.01)
    >>> round(epsilon, 9), poisson_binomial_tail_offsets(75, [0.0] * 100, epsilon) <= 0.01
    (0.555871167, True)
    """
    level = real(beta, "beta", above=0, below=1)
    rows = numbers(_table(offsets, "offsets"), "offsets")
    table = np.ascontiguousarray(rows, dtype=np.float64)
    groups = None if counts is None else _whole(_table(counts, "counts"), "counts")
    if table.ndim == 2 or (groups is not None and groups.ndim == 2):
        if weights is not None:
            message = "weights cannot be combined with rows of offsets or counts"
            raise IncompatibleOptionsError(message)
        return _replicates(v, table, groups, level)
    if weights is None:
        if groups is not None:
            _same_length(groups, table.size, "counts", "offsets")
        thresholds = _thresholds(v)
        values = _core.poisson_binomial_epsilon(
            table, thresholds.ravel(), beta=level, counts=groups
        )
        return _shaped(values, thresholds.shape)
    _without_counts(counts)
    heavy = _weights(weights, table.size, "offsets")
    if heavy.dtype == np.uint64:
        thresholds = _thresholds(v)
        values = _core.weighted_epsilon(table, thresholds.ravel(), beta=level, weights=heavy)
        return _shaped(values, thresholds.shape)
    reals = _real_thresholds(v)
    values = _core.real_weighted_epsilon(table, reals.ravel(), beta=level, weights=heavy)
    return _shaped(values, reals.shape)


_FINITE = np.finfo(np.float64).max.item()


def _tails(
    v: ArrayLike,
    values: FloatArray,
    epsilon: ArrayLike,
    *,
    counts: ArrayInput | None,
    weights: ArrayInput | None,
    offsets: bool,
) -> tuple[Number, Number, Number]:
    """Tails, logarithms and relative errors in the shape of `v` broadcast against `epsilon`."""
    like = "offsets" if offsets else "p"
    heavy = None if weights is None else _weights(weights, values.size, like)
    whole = heavy is None or heavy.dtype == np.uint64
    thresholds: NDArray[Any] = _thresholds(v) if whole else _real_thresholds(v)
    epsilons: NDArray[Any] = numbers(epsilon, "epsilon", least=-_FINITE, most=_FINITE)
    if thresholds.shape != epsilons.shape:
        thresholds, epsilons = np.broadcast_arrays(thresholds, epsilons)
    shape = thresholds.shape
    at: NDArray[Any] = np.ascontiguousarray(thresholds).ravel()
    epsilons = np.ascontiguousarray(epsilons, dtype=np.float64).ravel()
    if heavy is None:
        groups = _groups(counts, values.size, like)
        tails = _core.poisson_binomial_tail(values, at, epsilons, counts=groups, offsets=offsets)
    else:
        _without_counts(counts)
        function = _core.weighted_tail if whole else _core.real_weighted_tail
        tails = function(values, at, epsilons, weights=heavy, offsets=offsets)
    value, logarithm, error = (_shaped(column, shape) for column in tails)
    return value, logarithm, error


def _replicates(
    v: ArrayLike, offsets: FloatArray, counts: NDArray[np.uint64] | None, beta: float
) -> FloatArray:
    """One ε for each row of offsets, of counts, or of both."""
    thresholds = _thresholds(vector(_vectorlike(v), "v"))
    rows = thresholds.size
    terms = offsets.shape[-1]
    tables: list[tuple[str, NDArray[Any] | None]] = [("offsets", offsets), ("counts", counts)]
    for name, table in tables:
        if table is None:
            continue
        if table.shape[-1] != terms:
            message = f"{name} has {table.shape[-1]} columns and offsets {terms}; they must agree"
            raise LengthMismatchError(message)
        if table.ndim == 2 and table.shape[0] != rows:
            message = (
                f"{name} has {table.shape[0]} rows and v {rows} values; pass one v for each row"
            )
            raise LengthMismatchError(message)
    return _core.replicated_epsilon(
        offsets.ravel(),
        thresholds,
        beta=beta,
        counts=None if counts is None else counts.ravel(),
        terms=terms,
    )


def _vectorlike(v: ArrayLike) -> ArrayLike:
    return np.atleast_1d(np.asarray(v))


def _shaped(values: FloatArray, shape: tuple[int, ...]) -> Number:
    return values.reshape(shape) if shape else float(values[0])


def _vector(values: ArrayInput, name: str) -> FloatArray:
    """Read a vector of float64; the core checks its entries and names the offending one."""
    return np.ascontiguousarray(vector(values, name), dtype=np.float64)


def _table(values: ArrayInput, name: str) -> NDArray[Any]:
    """Read one row or several, at least one column each; their entries are checked later."""
    array: NDArray[Any] = np.asarray(values)
    if array.ndim not in {1, 2} or array.size == 0:
        message = f"{name} must be a vector or a matrix of rows and not empty, got {array.shape}"
        raise ShapeError(message)
    return array


def _thresholds(v: ArrayLike) -> IntArray:
    whole = numbers(v, "v", least=-_LARGEST, most=_LARGEST, whole=True)
    return np.ascontiguousarray(whole, dtype=np.int64).reshape(whole.shape)


def _real_thresholds(v: ArrayLike) -> FloatArray:
    reals = numbers(v, "v", least=-_LARGEST, most=_LARGEST)
    return np.ascontiguousarray(reals, dtype=np.float64).reshape(reals.shape)


def _whole(values: NDArray[Any], name: str) -> NDArray[np.uint64]:
    return np.ascontiguousarray(
        numbers(values, name, least=0, most=_LARGEST, whole=True), dtype=np.uint64
    )


def _groups(counts: ArrayInput | None, terms: int, like: str) -> NDArray[np.uint64] | None:
    if counts is None:
        return None
    groups = _whole(vector(counts, "counts"), "counts")
    _same_length(groups, terms, "counts", like)
    return groups


def _weights(weights: ArrayInput, terms: int, like: str) -> NDArray[Any]:
    """Weights as unsigned integers if all are whole, else as floats in [0, 1]."""
    array: NDArray[Any] = numbers(vector(weights, "weights"), "weights", least=0, most=_LARGEST)
    _same_length(array, terms, "weights", like)
    if np.array_equal(array, np.floor(array)):
        return np.ascontiguousarray(array, dtype=np.uint64)
    outside = np.flatnonzero(array > 1)
    if outside.size:
        index = outside[0]
        message = (
            f"weights must lie in [0, 1] unless all are whole numbers, got {array[index]:g} at "
            f"index {index}; divide weights and v by the largest weight"
        )
        raise OptionError(message)
    return np.ascontiguousarray(array, dtype=np.float64)


def _without_counts(counts: ArrayInput | None) -> None:
    if counts is not None:
        message = "counts and weights cannot be combined; repeat the terms of each weight instead"
        raise IncompatibleOptionsError(message)


def _same_length(values: NDArray[Any], terms: int, name: str, like: str) -> None:
    if values.size != terms:
        message = f"{name} has {values.size} values and {like} {terms}; there must be one for each"
        raise LengthMismatchError(message)
