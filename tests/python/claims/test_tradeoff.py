"""Trade-off functions: conversions, what is refused, and what survives storage."""

import pickle

import numpy as np
import pytest
from scipy import stats as scipy_stats

from leakbound import errors
from leakbound.claims import TradeOffFamily
from leakbound.claims.tradeoff import TradeOff

NORMAL = scipy_stats.norm
LEVELS = np.linspace(0, 1, 101)
GRID = np.linspace(-8, 8, 1601)
EXACT = TradeOff.gaussian(1.0)
CURVES = [
    EXACT,
    TradeOff.gaussian(2.0, 0.1),
    TradeOff.laplace(1.5),
    TradeOff.approx(0.7, 0.05),
    TradeOff.table(LEVELS, EXACT.f(LEVELS)),
    TradeOff.profile(GRID, EXACT.delta(GRID)),
]


def test_the_gaussian_curve_is_that_of_two_normals() -> None:
    np.testing.assert_allclose(EXACT.f(LEVELS), NORMAL.sf(NORMAL.ppf(LEVELS) + 1), atol=1e-14)
    np.testing.assert_allclose(
        EXACT.inverse(LEVELS), NORMAL.cdf(NORMAL.ppf(LEVELS) - 1), atol=1e-11
    )
    epsilon = np.array([-2.0, 0.0, 0.5, 3.0])
    expected = NORMAL.cdf(0.5 - epsilon) - np.exp(epsilon) * NORMAL.cdf(-0.5 - epsilon)
    np.testing.assert_allclose(EXACT.delta(epsilon), expected, rtol=1e-12)
    assert EXACT.epsilon(1e-300) == pytest.approx(37.448847912139, rel=1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_conversions_round_trip(curve: TradeOff) -> None:
    delta = curve.delta(0.5)
    assert curve.epsilon(delta) <= 0.5
    assert curve.epsilon(delta * (1 - 1e-9)) == pytest.approx(0.5, abs=1e-6)
    powers = 1 - curve.f(curve.inverse(LEVELS))
    assert np.all(powers >= LEVELS - 1e-9)
    assert np.all(np.diff(curve.f(LEVELS)) <= 1e-15)
    assert np.all(curve.f(LEVELS) <= 1 - LEVELS + 1e-15)
    assert isinstance(curve.f(0.5), float)
    assert curve.f(LEVELS[:4].reshape(2, 2)).shape == (2, 2)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_storage(curve: TradeOff) -> None:
    for copy in (TradeOff.from_json(curve.to_json()), pickle.loads(pickle.dumps(curve))):
        assert copy == curve
        np.testing.assert_array_equal(copy.inverse(LEVELS), curve.inverse(LEVELS))
    assert repr(curve).startswith(f"TradeOff.{curve.family}(")


def test_a_table_keeps_no_reference_to_the_caller() -> None:
    f = EXACT.f(LEVELS)
    curve = TradeOff.table(LEVELS, f)
    before = curve.f(0.3)
    f[:] = 0
    assert curve.f(0.3) == before
    with pytest.raises(ValueError, match="read-only"):
        curve.parameters["f"][0] = 0.5


@pytest.mark.parametrize(
    ("alpha", "f", "message"),
    [
        ([0, 0.5, 1], [1, 0.6, 0], r"f\[1\] lies above 1 - alpha"),
        ([0, 0.2, 0.5, 1], [0.5, 0.2, 0.3, 0], r"f\[2\] is larger than the value before"),
        ([0, 0.2, 0.5, 1], [0.5, 0.45, 0.1, 0], r"f\[1\] lies above the line"),
        ([0, 0.5], [1, 0], "alpha\\[0\\] = 0"),
        ([0, 0.5, 0.5, 1], [1, 0.2, 0.1, 0], r"alpha\[2\]"),
        ([0, 0.5, 1], [1, 0], "f must be as long as alpha"),
    ],
)
def test_tables_that_are_no_trade_offs(alpha: list[float], f: list[float], message: str) -> None:
    with pytest.raises(errors.InputError, match=message):
        TradeOff.table(alpha, f)


def test_bad_parameters() -> None:
    with pytest.raises(errors.OptionError, match="mu must be at least 0"):
        TradeOff.gaussian(-1.0)
    with pytest.raises(errors.OptionError, match="delta"):
        TradeOff.approx(1.0, 1.0)
    with pytest.raises(errors.InputTypeError, match="epsilon"):
        TradeOff.laplace("1")  # type: ignore[arg-type]
    with pytest.raises(errors.InputError, match="delta must be as long as epsilon"):
        TradeOff.profile([0.0, 1.0], [0.5])
    with pytest.raises(errors.OptionError, match=r"epsilon\[0\] = 1000"):
        TradeOff.profile([1000.0], [0.5])
    with pytest.raises(errors.OptionError, match=r"f\[1\] = NaN"):
        TradeOff.table([0, 0.5, 1], [1, np.nan, 0])
    with pytest.raises(errors.OptionError, match="alpha must be a number in"):
        EXACT.f(1.5)
    with pytest.raises(errors.OptionError, match="family"):
        TradeOff("normal", {})  # type: ignore[arg-type]


def test_profiles_below_perfect_privacy_are_refused() -> None:
    """Nothing has them, not even noise: with one, an audit would refute noise."""
    private = -np.expm1(np.minimum(GRID, 0.0))
    curve = TradeOff.profile(GRID, private)
    np.testing.assert_allclose(curve.f(LEVELS), 1 - LEVELS, atol=1e-9)
    assert (np.asarray(curve.f(LEVELS)) <= 1 - LEVELS).all()
    assert (np.asarray(curve.inverse(LEVELS)) <= LEVELS).all()
    rounded = TradeOff.profile(GRID, np.maximum(private - 5e-10, 0.0))
    assert (np.asarray(rounded.f(LEVELS)) <= 1 - LEVELS).all()
    level, missed = rounded.corners()
    assert (missed <= 1 - level + 1e-12).all()
    for slope in (-1.0, -1e-6, -700.0):
        for short in (0.0, -np.expm1(slope) - 2e-9):
            delta = max(short, 0.0)
            if delta >= -np.expm1(slope) - 1e-9:
                continue
            with pytest.raises(errors.InputError, match=r"delta\[1\] = .* is impossible"):
                TradeOff.profile([1.0, slope], [0.5, delta])


@pytest.mark.parametrize("epsilon", [0.0, 700.0, 701.0, 744.0, 745.0, 746.0, 1e3, 1e300])
def test_laplace_noise_of_any_scale(epsilon: float) -> None:
    curve = TradeOff.laplace(epsilon)
    x = np.array([0.0, 5e-324, 1e-300, 0.25, 0.5, 1 - 2.0**-53, 1.0])
    f, inverse = np.asarray(curve.f(x)), np.asarray(curve.inverse(x))
    assert (f[0], f[-1]) == (1.0, 0.0)
    assert (np.diff(f) <= 0).all()
    assert ((f >= 0) & (f <= 1 - x)).all()
    assert ((inverse >= 0) & (inverse <= x)).all()


def test_curves_of_any_size_have_corners_without_a_warning() -> None:
    for curve in (TradeOff.gaussian(1e200), TradeOff.gaussian(1.7e308, 0.5)):
        level, missed = curve.corners()
        assert np.isfinite(level).all()
        assert np.isfinite(missed).all()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"bracket": (1.0, 1.0)}, errors.OptionError),
        ({"bracket": (1.0,)}, errors.OptionError),
        ({"bracket": 1.0}, errors.InputTypeError),
        ({"bracket": (-1.0, 1.0)}, errors.OptionError),
        ({"tradeoff": 3}, errors.InputTypeError),
        ({"parameter": 3}, errors.InputTypeError),
    ],
)
def test_bad_families(change: dict[str, object], error: type[Exception]) -> None:
    fields = {"parameter": "mu", "tradeoff": TradeOff.gaussian, "bracket": (0.0, 10.0)}
    with pytest.raises(error):
        TradeOffFamily(**(fields | change))  # type: ignore[arg-type]
