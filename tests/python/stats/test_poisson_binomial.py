"""Poisson-binomial tails from Python: scipy, properties, bad input; Rust reads reference values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson_binom

from leakbound import errors, stats

SIZES = st.integers(min_value=1, max_value=60)


def test_agrees_with_scipy() -> None:
    p = np.random.default_rng(0).uniform(size=300)
    v = np.arange(120, 190)
    assert_allclose(stats.poisson_binomial_tail(v, p), poisson_binom.sf(v - 1, p), rtol=1e-10)


def test_ends() -> None:
    p = [0.0, 1.0, 0.25, 0.5]
    assert_array_equal(stats.poisson_binomial_tail([-3, 0, 1, 4], p), [1, 1, 1, 0])
    assert stats.poisson_binomial_tail(3, p) == 0.125
    assert stats.poisson_binomial_tail(4, p, log=True) == -math.inf
    assert stats.poisson_binomial_tail(0, [0.5], counts=[0]) == 1
    assert stats.poisson_binomial_tail(1, [0.5], counts=[0]) == 0
    assert stats.poisson_binomial_epsilon(0, [0.0], beta=0.1) == -math.inf
    assert stats.poisson_binomial_epsilon(2, [0.0], beta=0.1) == math.inf


def test_offsets_of_any_size_and_sign() -> None:
    assert stats.poisson_binomial_tail_offsets(1, [-1000.0], 0.0, log=True) == pytest.approx(-1000)
    assert stats.poisson_binomial_tail_offsets(2, [1000.0, 1000.0], 0.0) == 1
    assert stats.poisson_binomial_tail_offsets(1, [math.inf, -math.inf], -5.0) == 1
    assert stats.poisson_binomial_tail_offsets(1, [-900.0] * 200, 890.0) == pytest.approx(
        1 - (1 / (1 + math.exp(-10))) ** 200, rel=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(n=SIZES, seed=st.integers(0, 2**32 - 1), epsilon=st.floats(-4, 4))
def test_monotone_and_complementary(n: int, seed: int, epsilon: float) -> None:
    random = np.random.default_rng(seed)
    offsets = random.normal(scale=3, size=n)
    v = np.arange(n + 2)
    tails = stats.poisson_binomial_tail_offsets(v, offsets, epsilon)
    assert (np.diff(tails) <= 0).all()
    assert (stats.poisson_binomial_tail_offsets(v, offsets, epsilon + 0.5) >= tails).all()
    # P(S >= v) + P(n - S >= n - v + 1) = 1
    mirrored = stats.poisson_binomial_tail_offsets(n - v + 1, -offsets, -epsilon)
    assert_allclose(tails + mirrored, 1, rtol=1e-13)
    shuffled = stats.poisson_binomial_tail_offsets(v, random.permutation(offsets), epsilon)
    assert_allclose(shuffled, tails, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 400),
    share=st.floats(0.01, 1),
    beta=st.sampled_from([1e-200, 1e-9, 0.01, 0.3, 0.5, 0.9]),
    seed=st.integers(0, 2**32 - 1),
)
def test_inverse_is_proved_and_tight(n: int, share: float, beta: float, seed: int) -> None:
    offsets = np.random.default_rng(seed).normal(size=n)
    v = max(1, int(share * n))
    epsilon = stats.poisson_binomial_epsilon(v, offsets, beta=beta)
    log = math.log(beta)
    slack = 1e-13 * (1 + abs(log))
    assert stats.poisson_binomial_tail_offsets(v, offsets, epsilon, log=True) <= log + slack
    above = epsilon + 1e-11 * (1 + abs(epsilon))
    assert stats.poisson_binomial_tail_offsets(v, offsets, above, log=True) > log - slack


def test_replicates_are_the_single_inverses() -> None:
    random = np.random.default_rng(3)
    offsets = random.normal(size=500)
    counts = np.stack([np.bincount(random.integers(0, 500, 500), minlength=500) for _ in range(40)])
    v = random.integers(300, 400, 40)
    by_counts = stats.poisson_binomial_epsilon(v, offsets, beta=0.05, counts=counts)
    rows = np.stack([np.repeat(offsets, count) for count in counts])
    by_rows = stats.poisson_binomial_epsilon(v, rows, beta=0.05)
    singles = [
        stats.poisson_binomial_epsilon(t, row, beta=0.05) for t, row in zip(v, rows, strict=True)
    ]
    assert_allclose(by_counts, singles, atol=1e-13)
    assert_allclose(by_rows, singles, atol=1e-13)


tail, shifted = stats.poisson_binomial_tail, stats.poisson_binomial_tail_offsets
epsilon_of = stats.poisson_binomial_epsilon


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tail(1, [0.5, 1.5]), errors.OptionError, r"p\[1\] = 1.5"),
        (lambda: tail(1, [0.5, -0.1]), errors.OptionError, r"p\[1\] = -0.1"),
        (lambda: tail(1, [0.5, math.nan]), errors.OptionError, r"p\[1\]"),
        (lambda: tail(1, []), errors.InputError, "empty"),
        (lambda: tail([1, 1.5], [0.5]), errors.OptionError, "index 1"),
        (lambda: tail(1, ["a"]), errors.InputTypeError, "p"),
        (lambda: tail(1, [0.5], counts=[1, 2]), errors.InputError, "counts"),
        (lambda: tail(1, [0.5], counts=[-1]), errors.OptionError, "index 0"),
        (lambda: shifted(1, [0.0, math.nan], 0.0), errors.OptionError, r"offsets\[1\]"),
        (lambda: shifted(1, [0.0, 1e4], 0.0), errors.OptionError, r"offsets\[0\]"),
        (lambda: shifted(1, [0.0], math.inf), errors.OptionError, "epsilon"),
        (lambda: epsilon_of(1, [0.0], beta=1.0), errors.OptionError, "beta"),
        (
            lambda: epsilon_of([1, 1], np.zeros((3, 4)), beta=0.1),
            errors.InputError,
            "offsets has shape",
        ),
    ],
)
def test_bad_input_is_named(call, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()


def test_counts_repeat_terms() -> None:
    p, counts = np.array([0.1, 0.5, 0.8, 1.0, 0.0]), np.array([50, 70, 0, 3, 9])
    v = np.arange(-1, 140, 7)
    repeated = stats.poisson_binomial_tail(v, np.repeat(p, counts), log=True)
    assert_allclose(
        stats.poisson_binomial_tail(v, p, counts=counts, log=True), repeated, rtol=1e-13
    )


@pytest.mark.parametrize("size", [10, 1_000, 5_000])
def test_one_threshold_gives_the_bits_of_several(size: int) -> None:
    offsets = np.random.default_rng(size).normal(size=size)
    v = size // 2 + 3
    several = [v, v + 1]
    epsilons = stats.poisson_binomial_epsilon(several, offsets, beta=0.05)
    assert stats.poisson_binomial_epsilon(v, offsets, beta=0.05) == epsilons[0]
    tails = stats.poisson_binomial_tail_offsets(several, offsets, 0.3)
    assert stats.poisson_binomial_tail_offsets(v, offsets, 0.3) == tails[0]
    assert stats.poisson_binomial_tail_offsets(np.int32(v), offsets, 0.3) == tails[0]
