"""Poisson-binomial tails from Python: reference values, scipy, properties, bad input."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, poisson_binom

import leakbound._core as _core
from leakbound import errors, stats

GOLDEN = Path(__file__).parents[2] / "golden" / "poisson_binomial.csv"
DOCS = Path(__file__).parents[3] / "docs" / "poisson-binomial.md"
SIZES = st.integers(min_value=1, max_value=60)


def rows(kind: str, largest: int = 20_000) -> list[dict[str, str]]:
    """Rows of the reference table small enough for a test in Python."""
    lines = GOLDEN.read_text().splitlines()[1:]
    return [
        row for row in csv.DictReader(lines) if row["kind"] == kind and int(row["n"]) <= largest
    ]


def sigmoid_offsets(family: str, n: int) -> np.ndarray:
    i = np.arange(n)
    return {"sig": (i % 17 - 8) / 4, "sigw": (i % 33 - 16) / 4, "sig0": np.zeros(n)}[family]


def probabilities(family: str, n: int, param: float) -> np.ndarray:
    i = np.arange(n)
    if family == "unif":
        return (2 * i + 1) / (2 * n)
    if family == "const":
        return np.full(n, param)
    if family == "rare":
        return (1 + 7919 * i % 101) / 2**20
    if family == "mix":
        return np.array([2.0**-40, 1 - 2.0**-40, 5 / 16, 2.0**-10])[i % 4]
    return np.array([0, 1, 0.5, 0.25])[i % 4]


@pytest.mark.parametrize(
    "row", rows("tail"), ids=lambda row: f"{row['family']}{row['n']}-{row['v']}"
)
def test_tails_match_the_reference(row: dict[str, str]) -> None:
    n, v, family, param = int(row["n"]), int(row["v"]), row["family"], float(row["param"])
    if family.startswith("sig"):
        offsets = sigmoid_offsets(family, n)
        log = stats.poisson_binomial_tail_offsets(v, offsets, param, log=True)
    else:
        log = stats.poisson_binomial_tail(v, probabilities(family, n, param), log=True)
    expected = float(row["ln_tail"])
    assert log == expected or abs(log - expected) <= 5e-15 * max(1, abs(expected))


@pytest.mark.parametrize("row", rows("wtail"), ids=lambda row: f"{row['n']}-{row['v']}")
def test_weighted_tails_match_the_reference(row: dict[str, str]) -> None:
    n, modulus = int(row["n"]), int(row["weights"].split("%")[1])
    weights = 1 + np.arange(n) ** 2 % modulus
    log = stats.poisson_binomial_tail_offsets(
        int(row["v"]),
        sigmoid_offsets(row["family"], n),
        float(row["param"]),
        weights=weights,
        log=True,
    )
    expected = float(row["ln_tail"])
    assert abs(log - expected) <= 5e-15 * max(1, abs(expected))


@pytest.mark.parametrize("row", rows("inverse"), ids=lambda row: f"{row['n']}-{row['v']}")
def test_inverses_match_the_reference_from_below(row: dict[str, str]) -> None:
    offsets, beta = sigmoid_offsets(row["family"], int(row["n"])), float(row["param"][5:])
    epsilon = stats.poisson_binomial_epsilon(int(row["v"]), offsets, beta=beta)
    assert 0 <= float(row["tail"]) - epsilon <= 1e-13


def test_agrees_with_scipy() -> None:
    p = np.random.default_rng(0).uniform(size=300)
    v = np.arange(120, 190)
    assert_allclose(stats.poisson_binomial_tail(v, p), poisson_binom.sf(v - 1, p), rtol=1e-10)


def test_groups_of_equal_terms_are_binomial() -> None:
    v = np.array([[2_900, 3_000], [3_100, 3_200]])
    tails = stats.poisson_binomial_tail(v, [0.3], counts=[10_000])
    assert tails.shape == v.shape
    assert_allclose(tails, binom.sf(v - 1, 10_000, 0.3), rtol=1e-11)


def test_counts_repeat_terms() -> None:
    p, counts = np.array([0.1, 0.5, 0.8, 1.0, 0.0]), np.array([50, 70, 0, 3, 9])
    v = np.arange(-1, 140, 7)
    repeated = stats.poisson_binomial_tail(v, np.repeat(p, counts), log=True)
    assert_allclose(
        stats.poisson_binomial_tail(v, p, counts=counts, log=True), repeated, rtol=1e-13
    )


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


def test_bits_do_not_depend_on_threads() -> None:
    random = np.random.default_rng(4)
    offsets, v = random.normal(size=3000), random.integers(1400, 1800, 100)
    before = _core.threads()
    outcomes = []
    for threads in (1, 2, 5):
        _core.set_threads(threads)
        outcomes.append(
            (
                stats.poisson_binomial_epsilon(v, offsets, beta=0.01).tobytes(),
                stats.poisson_binomial_tail_offsets(v, offsets, 0.25).tobytes(),
            )
        )
    _core.set_threads(before)
    assert len(set(outcomes)) == 1


def test_real_weights_are_bracketed_from_above() -> None:
    random = np.random.default_rng(5)
    p, weights = random.uniform(size=15), random.uniform(size=15)
    patterns = (np.arange(2**15)[:, None] >> np.arange(15)) & 1
    chances = np.where(patterns, p, 1 - p).prod(axis=1)
    sums = patterns @ weights
    for v in (2.0, 4.0, 6.0):
        exact = chances[sums >= v].sum()
        upper = stats.poisson_binomial_tail(v, p, weights=weights)
        assert exact * (1 - 1e-12) <= upper <= exact + 0.02
    epsilon = stats.poisson_binomial_epsilon(4.5, np.zeros(15), beta=0.05, weights=weights)
    assert stats.poisson_binomial_tail_offsets(4.5, np.zeros(15), epsilon, weights=weights) <= 0.05


def test_whole_weights_invert() -> None:
    offsets, weights = sigmoid_offsets("sig", 300), 1 + np.arange(300) % 4
    epsilon = stats.poisson_binomial_epsilon(500, offsets, beta=1e-4, weights=weights)
    tail = stats.poisson_binomial_tail_offsets(500, offsets, epsilon, weights=weights)
    assert 1e-4 * (1 - 1e-10) <= tail <= 1e-4


def test_the_worked_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    text = DOCS.read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```\n+^```text\n(.*?)^```", text, re.M | re.S)
    assert len(examples) == 2
    for source, printed in examples:
        exec(compile(source, str(DOCS), "exec"), names)
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stats.poisson_binomial_tail(1, [0.5, 1.5]), errors.OptionError, r"p\[1\] = 1.5"),
        (lambda: stats.poisson_binomial_tail(1, [0.5, math.nan]), errors.OptionError, r"p\[1\]"),
        (lambda: stats.poisson_binomial_tail(1, []), errors.ShapeError, "empty"),
        (lambda: stats.poisson_binomial_tail([1, 1.5], [0.5]), errors.OptionError, "index 1"),
        (lambda: stats.poisson_binomial_tail(1, ["a"]), errors.ArrayTypeError, "p"),
        (
            lambda: stats.poisson_binomial_tail(1, [0.5], counts=[1, 2]),
            errors.LengthMismatchError,
            "counts",
        ),
        (
            lambda: stats.poisson_binomial_tail(1, [0.5], counts=[-1]),
            errors.OptionError,
            "index 0",
        ),
        (
            lambda: stats.poisson_binomial_tail(1, [0.5, 0.5], weights=[1, -2]),
            errors.OptionError,
            "index 1",
        ),
        (
            lambda: stats.poisson_binomial_tail(1, [0.5, 0.5], weights=[0.5, 2.5]),
            errors.OptionError,
            "index 1",
        ),
        (
            lambda: stats.poisson_binomial_tail(1, [0.5], weights=[1], counts=[1]),
            errors.IncompatibleOptionsError,
            "counts",
        ),
        (
            lambda: stats.poisson_binomial_tail_offsets(1, [0.0, math.nan], 0.0),
            errors.OptionError,
            r"offsets\[1\]",
        ),
        (
            lambda: stats.poisson_binomial_tail_offsets(1, [0.0, 1e4], 0.0),
            errors.OptionError,
            r"offsets\[0\]",
        ),
        (
            lambda: stats.poisson_binomial_tail_offsets(1, [0.0], math.inf),
            errors.OptionError,
            "epsilon",
        ),
        (
            lambda: stats.poisson_binomial_epsilon(1, [0.0], beta=1.0),
            errors.OptionError,
            "beta",
        ),
        (
            lambda: stats.poisson_binomial_epsilon([1, 1], np.zeros((3, 4)), beta=0.1),
            errors.LengthMismatchError,
            "rows",
        ),
    ],
)
def test_bad_input_is_named(call, error, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()
