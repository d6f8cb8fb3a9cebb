"""Claims without a trade-off family: pure and approximate DP, also of replacing one."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import integer, real
from leakbound._base.types import CountOptions, FdpTest, TailBound, TailOptions
from leakbound.claims.base import Guarantee

# The core counts the guesses of a tail bound in 32 bits
_MOST = 2**32 - 1


@dataclass(frozen=True)
class PureDP(Guarantee):
    """Pure ε-differential privacy: one example changes any odds by a factor of at most e^ε."""

    name: ClassVar[str] = "pure DP"
    parameter: ClassVar[str] = "epsilon"
    delta: ClassVar[float] = 0.0

    def _least_refuted(
        self, counts: CountOptions, level: float, _form: TailBound, _test: FdpTest
    ) -> float:
        pair = (np.array([n], dtype=np.uint64) for n in (counts["correct"], counts["guesses"]))
        p = float(_core.clopper_pearson(*pair, beta=np.array([level]))[0])
        return max(0.0, math.log(p) - math.log1p(-p)) if p > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class ApproxDP(Guarantee):
    """(ε, δ)-differential privacy at one δ, the probability that odds change by more than e^ε.

    Parameters
    ----------
    delta : float
        δ, in (0, 1).
    """

    parameter: ClassVar[str] = "epsilon"
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", real(self.delta, "delta", above=0, below=1))

    @property
    def name(self) -> str:
        """How results and reports call the claim."""
        return f"approximate DP with delta = {self.delta:g}"

    def _least_refuted(
        self, counts: CountOptions, level: float, form: TailBound, _test: FdpTest
    ) -> float:
        made = integer(counts["guesses"], "guesses", least=1, most=_MOST)
        tail: TailOptions = {
            "bound": form,
            "m": counts["m"],
            "delta": self.delta,
            "k": counts["k"],
            "one_sided": counts["one_sided"],
        }
        return _core.approx_epsilon(counts["correct"], made, level, tail)


def replacing(epsilon: float, delta: float = 0.0) -> tuple[float, float]:
    """Return the guarantee for replacing one example that follows from one for adding it.

    To replace an example is to remove one and add another. If training is (ε, δ)-DP for both, it is
    (2ε, (1 + e^ε) δ)-DP for the replacement, and for no smaller values in general. A δ above 1
    guarantees nothing.

    Parameters
    ----------
    epsilon, delta : float
        ε of adding or removing one example, at least 0, in nats, and its δ, in [0, 1).

    Notes
    -----
    Halving an ε at the same δ is no way back: μ-Gaussian DP with μ = 1 has ε(10⁻⁵) = 4.38, and
    replacing one example, 2μ, has 10.0.

    Examples
    --------
    >>> replacing(1.0)
    (2.0, 0.0)
    >>> round(replacing(1.0, 1e-5)[1] * 1e5, 3)
    3.718
    """
    loss = real(epsilon, "epsilon", least=0, below=math.inf)
    failure = real(delta, "delta", least=0, below=1)
    return 2 * loss, (1 + math.exp(min(loss, 700.0))) * failure
