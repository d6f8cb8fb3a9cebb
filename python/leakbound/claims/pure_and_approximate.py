"""Claims without a trade-off family: pure and approximate differential privacy."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import integer, real
from leakbound._base.types import Order
from leakbound.claims.base import Guarantee, Observation

_MOST = 2**32 - 1
"""The core counts the guesses of a tail bound in 32 bits."""


@dataclass(frozen=True)
class PureDP(Guarantee):
    """Pure ε-differential privacy: one example changes any odds by a factor of at most e^ε.

    Examples
    --------
    >>> PureDP().p(0.0)
    0.5
    >>> round(PureDP().p(1.0), 4)
    0.7311
    """

    name: ClassVar[str] = "pure DP"
    """How results and reports call the claim."""
    parameter: ClassVar[str] = "epsilon"
    """The parameter that audits bound from below."""
    delta: ClassVar[float] = 0.0
    """The largest δ that a bound on the parameter refers to."""
    order: ClassVar[Order] = "increasing"
    """More is allowed as ε increases."""

    def p(self, epsilon: float) -> float:
        """Return the largest probability that a guess about a fair coin is correct.

        Parameters
        ----------
        epsilon : float
            At least 0, in nats.

        Returns
        -------
        float
            e^ε / (1 + e^ε), in [1/2, 1].

        Raises
        ------
        InputTypeError
            If `epsilon` is not a real number.
        OptionError
            If `epsilon` is negative or NaN.

        Notes
        -----
        It holds for each guess given the trained model and all coins before it: Steinke, Nasr and
        Jagielski, "Privacy auditing with one (1) training run" (2023), proof of Proposition 5.1.
        """
        return 1.0 / (1.0 + math.exp(-real(epsilon, "epsilon", least=0)))

    def _least_refuted(self, observed: Observation, level: float) -> float:
        counts = (np.array([n], dtype=np.uint64) for n in (observed.correct, observed.guesses))
        p = float(_core.clopper_pearson(*counts, beta=np.array([level]))[0])
        return max(0.0, math.log(p) - math.log1p(-p)) if p > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy at one δ, the probability that odds change by more than e^ε.

    Parameters
    ----------
    delta : float
        δ, in (0, 1).

    Raises
    ------
    OptionError, InputTypeError
        If `delta` is outside its range.

    Examples
    --------
    >>> ApproxDP(delta=1e-5).name
    'approximate DP with delta = 1e-05'
    """

    parameter: ClassVar[str] = "epsilon"
    """The parameter that audits bound from below."""
    order: ClassVar[Order] = "increasing"
    """More is allowed as ε increases."""
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", real(self.delta, "delta", above=0, below=1))

    @property
    def name(self) -> str:
        """How results and reports call the claim."""
        return f"approximate DP with delta = {self.delta:g}"

    def _least_refuted(self, observed: Observation, level: float) -> float:
        made = integer(observed.guesses, "guesses", least=1, most=_MOST)
        return _core.approx_epsilon(observed.correct, made, level, observed.tail(self.delta))
