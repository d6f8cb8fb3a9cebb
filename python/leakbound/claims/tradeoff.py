"""Trade-off functions f: what a guarantee leaves to the best test of "was this example used?".

f(α) is the smallest error of the second kind of any test at level α, and f̄ = 1 - f its power. Every
number here errs so that a mechanism is allowed too much rather than too little.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.checks import choice, instance, real, reals, vector, vectorised
from leakbound._base.numerics import halved
from leakbound._base.records import Record
from leakbound._base.types import ArrayLike, FloatArray, Number
from leakbound.errors import InputError

Family: TypeAlias = Literal["gaussian", "laplace", "approx", "table", "profile"]
_PARAMETERS: dict[Family, set[str]] = {
    "gaussian": {"mu", "delta"},
    "laplace": {"epsilon"},
    "approx": {"epsilon", "delta"},
    "table": {"alpha", "f"},
    "profile": {"epsilon", "delta"},
}
_LIMITS_OF_NUMBERS = {"mu": math.inf, "epsilon": math.inf, "delta": 1.0}
# 64 roundings of numbers near 1
_TOLERANCE = 2.0**-46
# Lines of a polygon, within these deviations of a Gaussian loss and the ±700 that a profile takes
_POLYGON_LINES = 1025
_LOSS_DEVIATIONS = 8.0
_LARGEST_EPSILON = 600.0
# From this μ on, losses reach beyond every profile.
_LARGEST_MU = 1e100


def convex_hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the largest convex function below points (x, y), by increasing x.

    The points are in any order; of those at one x the lowest counts.
    """
    return _core.convex_hull(x, y)


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Record):
    """A convex, decreasing function f on [0, 1] with f(α) ≤ 1 - α; use one of the constructors.

    Parameters
    ----------
    family : {"gaussian", "laplace", "approx", "table", "profile"}
        Which constructor made it.
    parameters : dict of str to ndarray
        The constructor's arguments.

    Examples
    --------
    >>> curve = TradeOff.gaussian(1.0)
    >>> round(curve.epsilon(1e-5), 6), round(curve.delta(1.0), 6)
    (4.377178, 0.126937)
    >>> round(curve.f(0.05), 4), round(curve.inverse(0.5), 4)
    (0.7405, 0.1587)
    >>> TradeOff.table([0, 0.25, 1], [1, 0.25, 0]).f([0.0, 0.25, 1.0]).tolist()
    [1.0, 0.25, 0.0]
    >>> TradeOff.from_json(curve.to_json()) == curve
    True
    """

    family: Family
    parameters: dict[str, NDArray[np.float64]]

    def __post_init__(self) -> None:
        choice(self.family, name="family", allowed=Family)
        instance(self.parameters, name="parameters", types=dict)
        if set(self.parameters) != _PARAMETERS[self.family]:
            given_names = ", ".join(map(str, self.parameters)) or "nothing"
            raise self._misused(f", got {given_names}")
        read_only_parameters = {}
        for name, values in self.parameters.items():
            read_only_parameters[name] = _read_only_vector(values, name)
        vars(self)["parameters"] = read_only_parameters
        vars(self)["_core"] = self._core_curve()

    @classmethod
    def gaussian(cls, mu: float, delta: float = 0.0) -> "TradeOff":
        """Return the curve of N(0, 1) against N(μ, 1): Gaussian differential privacy.

        Parameters
        ----------
        mu : float
            μ, at least 0; 0 means no leakage at all.
        delta : float
            Probability of a failure that tells all, in [0, 1). With G the curve without failures,
            f(α) is then (1 - δ) G(α/(1 - δ)) for α ≤ 1 - δ, and 0 above.
        """
        return cls._of_numbers("gaussian", mu=mu, delta=delta)

    @classmethod
    def laplace(cls, epsilon: float) -> "TradeOff":
        """Return the curve of Laplace noise around 0 against around 1, of scale 1/ε, ε ≥ 0."""
        return cls._of_numbers("laplace", epsilon=epsilon)

    @classmethod
    def approx(cls, epsilon: float, delta: float = 0.0) -> "TradeOff":
        """Return the curve that (ε, δ)-DP allows, ε at least 0, in nats, and δ in [0, 1)."""
        return cls._of_numbers("approx", epsilon=epsilon, delta=delta)

    @classmethod
    def table(cls, alpha: ArrayLike, f: ArrayLike) -> "TradeOff":
        """Return the curve through given points, straight between them.

        Parameters
        ----------
        alpha : array-like, shape (n,)
            Levels, increasing from 0 to 1.
        f : array-like, shape (n,)
            Values of f there: decreasing, convex, at most 1 - `alpha`. Where rounding bends them
            the wrong way by less than 1e-9, the largest convex curve below them is taken.
        """
        return cls._of_vectors("table", alpha=alpha, f=f)

    @classmethod
    def profile(cls, epsilon: ArrayLike, delta: ArrayLike) -> "TradeOff":
        """Return the curve that pairs (ε, δ) allow together: whatever the grid, they imply it.

        Its f̄⁻¹(y) is the largest of (y - δ) e^{-ε} and 0.

        Parameters
        ----------
        epsilon : array-like, shape (n,)
            Any real numbers within ±700, in nats. Negative ones sharpen the curve at high power.
        delta : array-like, shape (n,)
            δ(ε) at each, or more: upper bounds, in [0, 1]. Where ε < 0, at least 1 - e^ε, which
            a mechanism has that ignores its data; by less than 1e-9 they may be below it.

        Examples
        --------
        >>> exact = TradeOff.gaussian(1.0)
        >>> grid = np.linspace(-8, 8, 1601)
        >>> curve = TradeOff.profile(grid, exact.delta(grid))
        >>> abs(exact.inverse(0.5) - curve.inverse(0.5)) < 1e-5
        True
        """
        return cls._of_vectors("profile", epsilon=epsilon, delta=delta)

    @classmethod
    def _of_numbers(cls, family: Family, **numbers: float) -> "TradeOff":
        """Return the curve with a formula of some numbers, each from 0 to below its limit."""
        parameters = {}
        for name, value in numbers.items():
            limit = _LIMITS_OF_NUMBERS[name]
            number = real(value, name=name, least=0, below=limit)
            parameters[name] = np.array([number])
        return cls(family=family, parameters=parameters)

    @classmethod
    def _of_vectors(cls, family: Family, **vectors: ArrayLike) -> "TradeOff":
        parameters = {name: _read_only_vector(values, name) for name, values in vectors.items()}
        return cls(family=family, parameters=parameters)

    def _core_curve(self) -> _core.TradeOff:
        """Return the curve of the core: of single numbers, where it has a formula."""
        parameters = self.parameters
        if self.family == "table":
            return _core.TradeOff.tabulated(parameters["alpha"], parameters["f"])
        if self.family == "profile":
            return _core.TradeOff.profile(parameters["epsilon"], parameters["delta"])
        if any(values.size != 1 for values in parameters.values()):
            sizes = ", ".join(f"{name} of {values.size}" for name, values in parameters.items())
            raise self._misused(f", one number each, got {sizes}")
        numbers = {name: float(values[0]) for name, values in parameters.items()}
        constructor = getattr(_core.TradeOff, self.family)
        core_curve: _core.TradeOff = constructor(**numbers)
        return core_curve

    def _misused(self, received: str) -> InputError:
        """Return the error of parameters that the family does not take."""
        parameter_names = " and ".join(sorted(_PARAMETERS[self.family]))
        return InputError(f"TradeOff.{self.family} takes {parameter_names}{received}")

    @property
    def _is_closed(self) -> bool:
        """Whether the curve has a formula, and is its own mirror image."""
        return self.family not in {"table", "profile"}

    def symmetrized(self) -> "TradeOff":
        """Return the curve that allows whatever this one or its mirror image allows.

        f bounds tests whose power is on training *with* the example; its inverse f⁻¹ bounds those
        whose power is on training without. Where both kinds of tests are mixed, as in guesses of
        members and of non-members, the average of the two needs one convex function below both: the
        largest such one. It is a table, or this curve where that is its own mirror image, to 64
        roundings.

        Examples
        --------
        >>> TradeOff.gaussian(1.0).symmetrized()
        TradeOff.gaussian(mu=1)
        >>> members_found = TradeOff.table([0, 1], [0.5, 0])
        >>> members_found.symmetrized().f([0.0, 0.25, 0.5]).tolist()
        [0.5, 0.25, 0.0]
        """
        if self._is_closed:
            return self
        return self._convex_with_mirror_image()

    def _convex_with_mirror_image(self) -> "TradeOff":
        """Return the largest convex curve below this one and its mirror image."""
        hull_levels, hull_errors = convex_hull(*self.corners())
        # Its own mirror image: points of the inverse lie on the curve, roundings allowed
        levels_of_mirror_image = np.minimum(hull_errors + _TOLERANCE, 1.0)
        f_of_mirror_image = np.interp(levels_of_mirror_image, hull_levels, hull_errors)
        if np.all(f_of_mirror_image <= hull_levels + _TOLERANCE):
            return self
        levels_of_both = np.concatenate([hull_levels, hull_errors])
        errors_of_both = np.concatenate([hull_errors, hull_levels])
        return TradeOff.table(*convex_hull(levels_of_both, errors_of_both))

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Return points (α, f(α)), both ends among them, whose convex hull is the curve, or below.

        Where the curve has no corners, it is the lines of many pairs (ε, δ(ε)), which allow more.
        """
        parameters = self.parameters
        if self._is_closed:
            # Losses are around μ²/2, or at most ε in size.
            mu = np.minimum(parameters.get("mu", 0.0), _LARGEST_MU)
            largest_loss = parameters.get("epsilon", mu**2 / 2) + _LOSS_DEVIATIONS * mu
            largest_epsilon = np.minimum(largest_loss, _LARGEST_EPSILON)
            epsilon = np.linspace(-1, 1, _POLYGON_LINES) * largest_epsilon
            return TradeOff.profile(epsilon, self.delta(epsilon)).corners()
        if self.family == "table":
            alpha = parameters["alpha"]
            return alpha, np.minimum(parameters["f"], 1.0 - alpha)
        return _corners_of_profile(parameters["epsilon"], parameters["delta"])

    @property
    def core(self) -> _core.TradeOff:
        """What the tests of the core take."""
        core_curve: _core.TradeOff = vars(self)["_core"]
        return core_curve

    def __repr__(self) -> str:
        arguments = []
        for name, values in self.parameters.items():
            if values.size > 1:
                arguments.append(f"{name}=<{values.size} values>")
            elif name != "delta" or values[0] != 0:
                arguments.append(f"{name}={values[0]:g}")
        return f"TradeOff.{self.family}({', '.join(arguments)})"

    def f(self, alpha: ArrayLike) -> Number:
        """Return f(α), the smallest error of the second kind at levels α in [0, 1]."""
        levels = reals(alpha, name="alpha", least=0, most=1)
        return vectorised(self.core.f, levels)

    def inverse(self, x: ArrayLike) -> Number:
        """Return f̄⁻¹(x), the lowest level of a test of power x in [0, 1], rounded down."""
        powers = reals(x, name="x", least=0, most=1)
        return vectorised(self.core.inverse, powers)

    def delta(self, epsilon: ArrayLike) -> Number:
        """Return δ(ε), the largest f̄(x) - e^ε x, rounded up: what obeys f is (ε, δ(ε))-DP.

        Any real numbers ε, in nats.
        """
        epsilons = reals(epsilon, name="epsilon")
        return vectorised(self.core.delta, epsilons)

    def epsilon(self, delta: ArrayLike) -> Number:
        """Return ε(δ), the least ε ≥ 0 with δ(ε) ≤ δ, δ in [0, 1], rounded down; inf if none."""
        deltas = reals(delta, name="delta", least=0, most=1)
        return vectorised(self.core.epsilon, deltas)

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ) of one δ in [0, 1] that was checked before."""
        epsilons = self.core.epsilon(np.array([delta]))
        return float(epsilons[0])


def _corners_of_profile(epsilon: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the curve that pairs (ε, δ) allow together.

    f is the highest of the lines 1 - δ - e^ε α of all pairs, which cross at the slopes of a hull.
    """
    # 1. The pairs by increasing ε, with what holds for every mechanism.
    order_by_epsilon = np.argsort(epsilon, kind="stable")
    increasing_epsilon = epsilon[order_by_epsilon]
    least_delta_of_all = -np.expm1(increasing_epsilon)
    delta_of_each = np.maximum(delta[order_by_epsilon], least_delta_of_all)
    # δ never rises with ε: of pairs that say otherwise the smaller δ holds
    falling_delta = np.minimum.accumulate(delta_of_each)
    # 2. Where lines that count cross, by increasing slope.
    slopes = np.append(0.0, np.exp(increasing_epsilon))
    intercepts = np.append(1.0, falling_delta)
    slopes, intercepts = convex_hull(slopes, intercepts)
    crossing_levels = -np.diff(intercepts) / np.diff(slopes)
    power_at_crossings = intercepts[1:] + slopes[1:] * crossing_levels
    # 3. The steepest line comes first.
    increasing_levels = np.minimum(crossing_levels[::-1], 1.0)
    increasing_power = power_at_crossings[::-1]
    levels_of_corners = np.concatenate([[0.0], increasing_levels, [1.0]])
    power_of_corners = np.concatenate([intercepts[-1:], increasing_power, [1.0]])
    errors_of_corners = 1.0 - power_of_corners * (1.0 + _TOLERANCE)
    return levels_of_corners, np.clip(errors_of_corners, 0.0, None)


def least_delta(curve: TradeOff) -> float:
    """Return the least δ at which a curve has a finite ε, exact as a double."""

    def has_no_epsilon(delta: float) -> bool:
        return math.isinf(curve.epsilon(delta))

    if not has_no_epsilon(0.0):
        return 0.0
    smallest_positive_delta = math.nextafter(0.0, 1.0)
    if not has_no_epsilon(
        smallest_positive_delta
    ):  # the curve has no failures, but its losses no limit
        return smallest_positive_delta
    return halved(smallest_positive_delta, 1.0, has_no_epsilon)[1]


def _read_only_vector(values: ArrayLike, name: str) -> FloatArray:
    array = np.array(vector(values, name=name), dtype=np.float64)
    array.flags.writeable = False
    return array
