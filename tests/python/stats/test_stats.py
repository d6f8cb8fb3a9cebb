"""The numbers behind the audits, against SciPy and mpmath; Rust tests read reference values."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as scipy_stats

from leakbound import errors, stats
from scans import kl_scan, union_bound

SCANS: dict[str, Callable[..., Any]] = {
    "union_all": lambda s, beta: union_bound(s, beta=beta),
    "union_geom1.5": lambda s, beta: union_bound(s, beta=beta, grid="geometric", ratio=1.5),
    "scan_kl": lambda s, beta, **kappa: kl_scan(s, beta=beta, **kappa),
}
mpmath.mp.dps = 40


def test_failures_only_lower_a_scan() -> None:
    path = np.random.default_rng(5).random(2000) < 0.8
    options: dict[str, Any] = {"beta": 0.05, "min_guesses": 100}
    bounds = [
        kl_scan(path, **options),
        *(kl_scan(path, **options, delta=delta) for delta in (1e-9, 1e-6, 1e-5, 1e-4)),
        kl_scan(path, **options, delta=1e-4, one_sided=False),
    ]
    logits = [bound.logit for bound in bounds]
    assert logits == sorted(logits, reverse=True)
    assert logits[1] == pytest.approx(logits[0], abs=1e-4)
    assert len({bound.cut for bound in bounds}) == 1
    nothing = kl_scan(path, **options, delta=0.5)
    assert (nothing.p, nothing.logit) == (0, -math.inf)


def test_a_coarse_grid_of_cuts_changes_a_scan_with_failures_little() -> None:
    path = np.random.default_rng(6).random(40_000) < 0.7
    options: dict[str, Any] = {"beta": 0.05, "min_guesses": 100, "delta": 1e-6}
    every = kl_scan(path, **options, grid="all")
    some = kl_scan(path, **options, grid="auto")
    assert some.logit == pytest.approx(every.logit, abs=0.01)
    assert some.logit > 0.5


@given(
    path=st.lists(st.booleans(), min_size=1, max_size=80),
    offset=st.floats(-6, 6),
    beta=st.sampled_from([0.3, 0.05, 1e-3]),
)
def test_equal_offsets_only_shift_a_scan(path: list[bool], offset: float, beta: float) -> None:
    plain = kl_scan(path, beta=beta)
    shifted = stats.kl_scan_offsets(path, [offset] * len(path), beta=beta)
    assert (shifted.cut == 0) == (plain.cut == 0)
    if plain.cut:
        assert shifted.epsilon == pytest.approx(plain.logit - offset, abs=1e-9)


def test_offsets_are_checked() -> None:
    with pytest.raises(errors.InputError, match="offsets"):
        stats.kl_scan_offsets([True, False], [0.0], beta=0.05)
    for offset in (math.nan, 301.0, -math.inf):
        with pytest.raises(errors.OptionError, match="offsets"):
            stats.kl_scan_offsets([True, False], [0.0, offset], beta=0.05)
    nothing = stats.kl_scan_offsets([False, False], [0.0, 1.0], beta=0.05)
    assert (nothing.epsilon, nothing.cut, nothing.successes) == (-math.inf, 0, 0)


@pytest.mark.parametrize("scan", list(SCANS))
@given(path=st.lists(st.booleans(), min_size=1, max_size=60), beta=st.floats(0.001, 0.5))
def test_bounds_are_consistent(scan: str, path: list[bool], beta: float) -> None:
    bound = SCANS[scan](path, beta)
    assert 0 <= bound.p < 1
    assert bound.successes == sum(path[: bound.cut])
    if bound.p > 0:
        assert bound.logit == pytest.approx(math.log(bound.p / (1 - bound.p)), abs=1e-9)
        # the threshold of the scan follows beta by default: at another one it is another test
        fixed = {"kappa": math.log(1 / beta) + 1} if scan == "scan_kl" else {}
        assert SCANS[scan](path, beta / 2, **fixed).p <= bound.p


def test_normal_at_the_ends() -> None:
    ends = stats.normal_quantile([0.0, 1.0])
    np.testing.assert_array_equal(ends, [-np.inf, np.inf])
    np.testing.assert_array_equal(stats.normal_cdf([-np.inf, np.inf]), [0, 1])
    assert stats.log_normal_cdf(-np.inf) == -np.inf


def exact_tail(v: int, n: int, p: float) -> mpmath.mpf:
    x = mpmath.mpf(p)
    return mpmath.fsum(
        mpmath.binomial(n, k) * x**k * (1 - x) ** (n - k) for k in range(max(v, 0), n + 1)
    )


@given(st.integers(0, 60), st.data())
def test_binomial_tail(n: int, data: st.DataObject) -> None:
    v, p = data.draw(st.integers(-2, n + 2)), data.draw(st.floats(0, 1))
    exact = exact_tail(v, n, p)
    assert stats.binomial_tail(v, n, p) == pytest.approx(float(exact), rel=1e-12, abs=1e-307)
    if exact > 0:
        log = float(mpmath.log(exact))
        assert stats.binomial_tail(v, n, p, log=True) == pytest.approx(log, rel=1e-12, abs=1e-14)


@given(st.integers(1, 60), st.floats(1e-6, 0.5), st.data())
def test_clopper_pearson_is_the_largest_rejected_p(
    n: int, beta: float, data: st.DataObject
) -> None:
    v = data.draw(st.integers(0, n))
    limit = stats.clopper_pearson(v, n, beta=beta)
    assert isinstance(limit, float)
    if v == 0:
        assert limit == 0
        return
    assert exact_tail(v, n, limit) <= beta
    assert exact_tail(v, n, limit * (1 + 1e-11)) > beta
    assert limit == pytest.approx(scipy_stats.beta.ppf(beta, v, n - v + 1), rel=1e-8)


def test_functions_of_numbers_broadcast() -> None:
    tails = stats.binomial_tail(np.arange(4)[:, None], 3, [0.2, 0.5])
    assert isinstance(tails, np.ndarray)
    assert tails.shape == (4, 2)
    assert tails[2, 1] == stats.binomial_tail(2, 3, 0.5)
    assert isinstance(stats.normal_cdf(np.float64(0.3)), float)
    assert stats.normal_cdf(np.zeros((2, 0))).shape == (2, 0)
    limits = stats.clopper_pearson(3, [4, 5], beta=0.1)
    assert limits[0] > limits[1]


@given(path=st.lists(st.booleans(), min_size=2, max_size=80), least=st.integers(1, 80))
def test_the_scan_starts_where_it_is_told(path: list[bool], least: int) -> None:
    least = min(least, len(path))
    bound = kl_scan(path, beta=0.05, min_guesses=least)
    assert bound.cut == 0 or bound.cut >= least


@given(st.floats(-1e7, 38))
def test_log_normal_cdf(x: float) -> None:
    assert stats.log_normal_cdf(x) == pytest.approx(float(special.log_ndtr(x)), rel=1e-12)
