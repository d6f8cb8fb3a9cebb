"""What took distribution shift out of a proof, where nobody drew who became a member."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leakbound._base.records import Lazy
from leakbound._base.types import Adversary, Correction, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """How the bound moves with the propensities."""

    _bounds: Lazy[FloatArray] = field(repr=False)
    estimate: float
    """The bound at the point estimate of the propensities."""
    p: float
    """Share of the error probability that the replicates take."""

    @property
    def bounds(self) -> FloatArray:
        """The bound under each replicate of the propensities, everything drawn held fixed.

        Pure DP computes those that the percentile does not need when they are first asked for.
        """
        return self._bounds.value


@dataclass(frozen=True, kw_only=True, eq=False)
class Shift:
    """How shift was taken out of a proof, and what that left.

    `rows` and `signs` are the guesses looked at, the most confident first. `bounds` returns what is
    proved under rows of log-odds, and `lowest`, where that takes less time than all, the bound of a
    rank from 1 upwards. Over a confidence set `coefficients` are those of the least
    favourable member, and `at_estimate` is what the likeliest one would have shown.
    """

    correction: Correction
    adversary: Adversary
    kept: int
    """Examples that matching keeps, at most if log-odds are a set."""
    effective: float
    """The effective number of examples of the test."""
    theorem: str = ""
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    signs: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bounds: Callable[[FloatArray], FloatArray] | None = None
    lowest: Callable[[FloatArray, int], float] | None = None
    bootstrap: Bootstrap | None = None
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    at_estimate: float = 0.0
