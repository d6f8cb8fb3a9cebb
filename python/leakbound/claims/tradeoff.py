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
from leakbound._base.bisection import halved
from leakbound._base.checks import choice, instance, real, reals, vector, vectorised
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
# 64 roundings of numbers near 1
_CLOSE = 2.0**-46
# Lines of a polygon, within these deviations of a Gaussian loss and the ±700 that a profile takes
_LINES = 1025
_DEVIATIONS = 8.0
_FARTHEST = 600.0
# From this μ on, losses reach beyond every profile.
_LARGEST = 1e100


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
            names = ", ".join(map(str, self.parameters))
            raise self._misused(f", got {names or 'nothing'}")
        values = {name: _vector(values, name) for name, values in self.parameters.items()}
        vars(self)["parameters"] = values
        vars(self)["_core"] = self._build()

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
        mu = real(mu, name="mu", least=0, below=math.inf)
        return cls._of("gaussian", mu=mu, delta=real(delta, name="delta", least=0, below=1))

    @classmethod
    def laplace(cls, epsilon: float) -> "TradeOff":
        """Return the curve of Laplace noise around 0 against around 1, of scale 1/ε, ε ≥ 0."""
        return cls._of("laplace", epsilon=real(epsilon, name="epsilon", least=0, below=math.inf))

    @classmethod
    def approx(cls, epsilon: float, delta: float = 0.0) -> "TradeOff":
        """Return the curve that (ε, δ)-DP allows, ε at least 0, in nats, and δ in [0, 1)."""
        epsilon = real(epsilon, name="epsilon", least=0, below=math.inf)
        return cls._of("approx", epsilon=epsilon, delta=real(delta, name="delta", least=0, below=1))

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
        return cls._of("table", alpha=_vector(alpha, "alpha"), f=_vector(f, "f"))

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
        return cls._of(
            "profile", epsilon=_vector(epsilon, "epsilon"), delta=_vector(delta, "delta")
        )

    @classmethod
    def _of(cls, family: Family, **parameters: float | FloatArray) -> "TradeOff":
        return cls(
            family=family,
            parameters={name: np.atleast_1d(value) for name, value in parameters.items()},
        )

    def _build(self) -> _core.TradeOff:
        """Return the curve of the core: of single numbers, where it has a formula."""
        values = self.parameters
        if not self._is_closed:
            return self._polygon()
        if any(value.size != 1 for value in values.values()):
            sizes = ", ".join(f"{name} of {value.size}" for name, value in values.items())
            raise self._misused(f", one number each, got {sizes}")
        single = {name: float(value[0]) for name, value in values.items()}
        built: _core.TradeOff = getattr(_core.TradeOff, self.family)(**single)
        return built

    def _polygon(self) -> _core.TradeOff:
        """Return the curve of the core of points, or of pairs (ε, δ)."""
        values = self.parameters
        if self.family == "table":
            return _core.TradeOff.tabulated(values["alpha"], values["f"])
        return _core.TradeOff.profile(values["epsilon"], values["delta"])

    def _misused(self, got: str) -> InputError:
        """Return the error of parameters that the family does not take."""
        names = " and ".join(sorted(_PARAMETERS[self.family]))
        return InputError(f"TradeOff.{self.family} takes {names}{got}")

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
        alpha, f = convex_hull(*self.corners())
        # Its own mirror image: points of the inverse lie on the curve, roundings allowed
        at_inverse = np.interp(np.minimum(f + _CLOSE, 1.0), alpha, f)
        if np.all(at_inverse <= alpha + _CLOSE):
            return self
        both_levels = np.concatenate([alpha, f])
        both_values = np.concatenate([f, alpha])
        return TradeOff.table(*convex_hull(both_levels, both_values))

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Return points (α, f(α)), both ends among them, whose convex hull is the curve, or below.

        Where the curve has no corners, it is the lines of many pairs (ε, δ(ε)), which allow more.
        """
        values = self.parameters
        if self._is_closed:
            mu = np.minimum(values.get("mu", 0.0), _LARGEST)
            # Losses are around μ²/2, or at most ε in size.
            farthest_loss = values.get("epsilon", mu**2 / 2) + _DEVIATIONS * mu
            epsilon = np.linspace(-1, 1, _LINES) * np.minimum(farthest_loss, _FARTHEST)
            return TradeOff.profile(epsilon, self.delta(epsilon)).corners()
        if self.family == "table":
            alpha = values["alpha"]
            return alpha, np.minimum(values["f"], 1.0 - alpha)
        return _corners_of_profile(values["epsilon"], values["delta"])

    @property
    def core(self) -> _core.TradeOff:
        """What the tests of the core take."""
        core: _core.TradeOff = vars(self)["_core"]
        return core

    def __repr__(self) -> str:
        stated = []
        for name, value in self.parameters.items():
            if value.size > 1:
                stated.append(f"{name}=<{value.size} values>")
            elif name != "delta" or value[0] != 0:
                stated.append(f"{name}={value[0]:g}")
        return f"TradeOff.{self.family}({', '.join(stated)})"

    def f(self, alpha: ArrayLike) -> Number:
        """Return f(α), the smallest error of the second kind at levels α in [0, 1]."""
        return vectorised(self.core.f, reals(alpha, name="alpha", least=0, most=1))

    def inverse(self, x: ArrayLike) -> Number:
        """Return f̄⁻¹(x), the lowest level of a test of power x in [0, 1], rounded down."""
        return vectorised(self.core.inverse, reals(x, name="x", least=0, most=1))

    def delta(self, epsilon: ArrayLike) -> Number:
        """Return δ(ε), the largest f̄(x) - e^ε x, rounded up: what obeys f is (ε, δ(ε))-DP.

        Any real numbers ε, in nats.
        """
        return vectorised(self.core.delta, reals(epsilon, name="epsilon"))

    def epsilon(self, delta: ArrayLike) -> Number:
        """Return ε(δ), the least ε ≥ 0 with δ(ε) ≤ δ, δ in [0, 1], rounded down; inf if none."""
        return vectorised(self.core.epsilon, reals(delta, name="delta", least=0, most=1))

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ) of one δ in [0, 1] that was checked before."""
        return float(self.core.epsilon(np.array([delta]))[0])


def _corners_of_profile(epsilon: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the curve that pairs (ε, δ) allow together.

    f is the highest of the lines 1 - δ - e^ε α of all pairs, which cross at the slopes of a hull.
    """
    # 1. The pairs by increasing ε, with what holds for every mechanism.
    order = np.argsort(epsilon, kind="stable")
    increasing_epsilon = epsilon[order]
    least_delta_of_all = -np.expm1(increasing_epsilon)
    delta_of_each = np.maximum(delta[order], least_delta_of_all)
    # δ never rises with ε: of pairs that say otherwise the smaller δ holds
    falling_delta = np.minimum.accumulate(delta_of_each)
    # 2. Where lines that count cross, by increasing slope.
    slopes = np.append(0.0, np.exp(increasing_epsilon))
    intercepts = np.append(1.0, falling_delta)
    slopes, intercepts = convex_hull(slopes, intercepts)
    crossings = -np.diff(intercepts) / np.diff(slopes)
    power_at_crossings = intercepts[1:] + slopes[1:] * crossings
    # 3. The steepest line comes first.
    increasing_levels = np.minimum(crossings[::-1], 1.0)
    alpha = np.concatenate([[0.0], increasing_levels, [1.0]])
    power = np.concatenate([intercepts[-1:], power_at_crossings[::-1], [1.0]])
    f = 1.0 - power * (1.0 + _CLOSE)
    return alpha, np.clip(f, 0.0, None)


def least_delta(curve: TradeOff) -> float:
    """Return the least δ at which a curve has a finite ε, exact as a double."""

    def has_none(delta: float) -> bool:
        return math.isinf(curve.epsilon(delta))

    if not has_none(0.0):
        return 0.0
    smallest = math.nextafter(0.0, 1.0)
    if not has_none(smallest):  # the curve has no failures, but its losses no limit
        return smallest
    return halved(smallest, 1.0, has_none)[1]


def _vector(values: ArrayLike, name: str) -> FloatArray:
    array = np.array(vector(values, name=name), dtype=np.float64)
    array.flags.writeable = False
    return array
