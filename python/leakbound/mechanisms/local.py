"""Local randomisers of one of k values, whose reports may be audited as trials."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.checks import MOST_K, instance, integer, numbers, real, vector
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.errors import InputError, OptionError


def _whole(values: ArrayInput, name: str, most: int) -> IntArray:
    return numbers(values, name, least=0, most=most, whole=True).astype(np.int64)


@dataclass(frozen=True)
class _Randomizer:
    k: int
    epsilon: float

    def __post_init__(self) -> None:
        integer(self.k, "k", least=2, most=MOST_K)
        real(self.epsilon, "epsilon", above=0, most=30)  # random floats are multiples of 2⁻⁵³

    def reports(self, values: ArrayInput, rng: np.random.Generator) -> Any:
        """Draw a report for each value, a whole number from 0 to k - 1.

        Reports are integers of shape (n,) for `GRR`, and booleans of shape (n, k) for the others.
        """
        instance(rng, "rng", np.random.Generator)
        return self._draw(_whole(vector(values, "values"), "values", self.k - 1), rng)

    def log_ratio(self, reports: ArrayInput, value: int, other: int) -> FloatArray:
        """Return ln P(report | value) - ln P(report | other): the best score for an audit.

        It is ε, 0 or -ε. `value` is that of users whose coin says member, `other` that of the rest.
        """
        integer(value, "value", least=0, most=self.k - 1)
        integer(other, "other", least=0, most=self.k - 1)
        if value == other:
            raise OptionError(f"value and other must be different, got {value} twice")
        says, says_other = (self._says(reports, one) for one in (value, other))
        return self.epsilon * np.subtract(says, says_other, dtype=np.float64)

    @abstractmethod
    def _draw(self, values: IntArray, rng: np.random.Generator) -> Any: ...

    @abstractmethod
    def _says(self, reports: ArrayInput, value: int) -> BoolArray: ...


class GRR(_Randomizer):
    """Generalised randomised response: the value, or else any other one (Kairouz et al. 2016).

    The value is reported with probability e^ε / (e^ε + k - 1).

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        ε of local differential privacy, above 0 and at most 30.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(2000) < 0.5
    >>> grr = lb.mechanisms.GRR(k=4, epsilon=2.0)
    >>> scores = grr.log_ratio(grr.reports(np.where(member, 3, 0), rng), 3, 0)
    >>> 1.5 < lb.audit(scores, lb.Trials(member), seed=0).bound < 2
    True
    """

    def _draw(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        kept = rng.random(values.size) < 1 / (1 + (self.k - 1) * math.exp(-self.epsilon))
        return np.where(kept, values, (values + rng.integers(1, self.k, values.size)) % self.k)

    def _says(self, reports: ArrayInput, value: int) -> Any:
        return _whole(vector(reports, "reports"), "reports", self.k - 1) == value


class _UnaryEncoding(_Randomizer):
    @property
    @abstractmethod
    def _ones(self) -> tuple[float, float]: ...

    def _draw(self, values: IntArray, rng: np.random.Generator) -> BoolArray:
        bits = np.empty((values.size, self.k), dtype=np.bool_)
        for value in range(self.k):
            bits[:, value] = rng.random(values.size) < np.where(values == value, *self._ones)
        return bits

    def _says(self, reports: ArrayInput, value: int) -> Any:
        bits = _whole(reports, "reports", 1)
        if bits.ndim != 2 or bits.shape[1] != self.k or not bits.size:
            raise InputError(f"reports must have shape (n, {self.k}), got {bits.shape}")
        return bits[:, value] == 1


class OUE(_UnaryEncoding):
    """Optimised unary encoding: a bit for each value (Wang et al. 2017).

    The bit of the user's value is 1 with probability ½, each other bit with 1 / (e^ε + 1).
    Parameters are those of `GRR`.
    """

    @property
    def _ones(self) -> tuple[float, float]:
        return 0.5, 1 / (math.exp(self.epsilon) + 1)


class SUE(_UnaryEncoding):
    """Symmetric unary encoding, or basic one-time RAPPOR (Erlingsson et al. 2014).

    Each bit is right with probability e^(ε/2) / (e^(ε/2) + 1). Parameters are those of `GRR`.
    """

    @property
    def _ones(self) -> tuple[float, float]:
        wrong = 1 / (math.exp(self.epsilon / 2) + 1)
        return 1 - wrong, wrong
