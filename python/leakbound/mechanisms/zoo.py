"""Mechanisms that satisfy their claims, the same ones with published faults, and randomisers.

Each mechanism has what `audit_mechanism` takes: `run`, the neighbouring inputs `d0` and `d1`,
`claim` and `parameter`. Claims are about real numbers: for floats, see `FloatLaplace`. Sources:
Dwork and Roth, "The algorithmic foundations of differential privacy", Theorem 3.6; Dong, Roth and
Su, "Gaussian differential privacy", Theorem 1; Ghosh, Roughgarden and Sundararajan, "Universally
utility-maximizing privacy mechanisms"; Mironov, "On significance of the least significant bits for
differential privacy"; Lyu, Su and Li, "Understanding the sparse vector technique for differential
privacy", Theorem 2 and Figure 2; Ding, Kifer, Steinke, Wang, Xiao and Zhang, "The permute-and-flip
mechanism is identical to report-noisy-max with exponential noise"; Ding, Wang, Wang, Zhang and
Kifer, "Detecting violations of differential privacy".

The randomisers are local, of one of k values; their reports may be audited as trials.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_type_hints

import numpy as np

from leakbound._base.checks import MOST_K, choice, instance, integer, numbers, real, vector
from leakbound._base.types import AnyArray, ArrayInput, BoolArray, FloatArray, IntArray
from leakbound.claims import Claim, GaussianDP, PureDP
from leakbound.errors import InputError, OptionError

# What a sparse vector that releases values has for a query below, and for one that is not asked
_BELOW_THRESHOLD = -1000.0
_NOT_ASKED = -2000.0


class _NoiseScales(NamedTuple):
    """Scales of a sparse vector's Laplace noise, times ε.

    Of the threshold, and of queries: `query_fixed` plus c times `query_per_above`.
    """

    threshold: float
    query_fixed: float
    query_per_above: float


_NOISE_SCALES = {
    "": _NoiseScales(threshold=2, query_fixed=0, query_per_above=4),
    "released_values": _NoiseScales(threshold=2, query_fixed=0, query_per_above=2),
    "quarter_noise": _NoiseScales(threshold=4, query_fixed=4 / 3, query_per_above=0),
    "no_query_noise": _NoiseScales(threshold=2, query_fixed=0, query_per_above=0),
    "no_cut_off": _NoiseScales(threshold=2, query_fixed=2, query_per_above=0),
    "unscaled_noise": _NoiseScales(threshold=2, query_fixed=4, query_per_above=0),
    "no_threshold_noise": _NoiseScales(threshold=0, query_fixed=0, query_per_above=1),
}
# Uniform numbers are multiples of this; so many next to the inverse of an output may lead to it
_UNIFORM_GRID = 2.0**-53
_NEARBY_MULTIPLES = np.arange(-4.0, 5.0)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """What all mechanisms have."""

    claim: ClassVar[Claim] = PureDP()
    d0: ClassVar[Any] = 0
    d1: ClassVar[Any] = 1
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        real(self.epsilon, name="epsilon", above=0, below=math.inf)
        choice(vars(self)["fault"], name="fault", allowed=get_type_hints(type(self))["fault"])

    @property
    def parameter(self) -> float:
        """The parameter of the claim that the mechanism is said to satisfy."""
        return self.epsilon


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise(Mechanism):
    """A query of sensitivity 1 with Laplace noise of scale 1/ε: ε-DP (Dwork and Roth 2014).

    Parameters
    ----------
    epsilon : float
        The claimed ε.
    fault : {"", "half_noise"}
        Noise of half the scale, as for a sensitivity that is really 2.
    """

    fault: Literal["", "half_noise"] = ""

    def run(self, data: float, rng: np.random.Generator) -> float:
        """Return the noisy query."""
        return data + rng.laplace(scale=self._noise_scale)

    @property
    def _noise_scale(self) -> float:
        """The scale of the noise, half as large if it is at fault."""
        if self.fault:
            return 0.5 / self.epsilon
        return 1 / self.epsilon


@dataclass(frozen=True, kw_only=True)
class GaussianNoise(LaplaceNoise):
    """A query of sensitivity 1 with normal noise of scale 1/μ: μ-GDP (Dong, Roth and Su 2022).

    `epsilon` is the claimed μ, and faults are those of `LaplaceNoise`.
    """

    claim: ClassVar[Claim] = GaussianDP()

    def run(self, data: float, rng: np.random.Generator) -> float:
        """Return the noisy query."""
        return data + rng.normal(scale=self._noise_scale)


@dataclass(frozen=True, kw_only=True)
class FloatLaplace(Mechanism):
    """Geometric noise on integers: ε-DP (Ghosh et al. 2009); or Laplace noise, as floats have it.

    Parameters
    ----------
    epsilon : float
        The claimed ε.
    fault : {"", "inversion"}
        The logarithm of a uniform double for noise. Inputs reach different doubles, so the
        low-order bits of an output tell which it was (Mironov 2012).
    """

    fault: Literal["", "inversion"] = ""

    def run(self, data: int, rng: np.random.Generator) -> float:
        """Return the noisy query."""
        if not self.fault:
            # The difference of two geometric numbers has the discrete Laplace distribution.
            success_probability = -math.expm1(-self.epsilon)
            first_geometric, second_geometric = rng.geometric(success_probability, size=2)
            return data + int(first_geometric - second_geometric)
        noise_sign = -1.0
        if rng.random() < 0.5:
            noise_sign = 1.0
        return float(
            self._inverted_output(data, noise_sign=noise_sign, uniform_number=1 - rng.random())
        )

    def score(self, outputs: FloatArray) -> FloatArray:
        """Return 1 for outputs that `d1` alone can give, -1 for those of `d0` alone, and else 0."""
        possible_for_d1 = self._can_give_outputs(outputs, self.d1)
        possible_for_d0 = self._can_give_outputs(outputs, self.d0)
        return np.subtract(possible_for_d1, possible_for_d0, dtype=np.float64)

    def _inverted_output(
        self, data: int, noise_sign: float | FloatArray, uniform_number: float | FloatArray
    ) -> FloatArray:
        """Return a query with Laplace noise, by inversion of its distribution function."""
        exponential_noise = -np.log(uniform_number) / self.epsilon
        return np.asarray(data + noise_sign * exponential_noise)

    def _can_give_outputs(self, outputs: FloatArray, data: int) -> BoolArray:
        """Return whether some uniform number leads from an input to each output."""
        needed_noise = (outputs - data)[:, None]
        inverse_uniform = np.exp(-self.epsilon * np.abs(needed_noise))
        nearby_multiples = np.rint(inverse_uniform / _UNIFORM_GRID) + _NEARBY_MULTIPLES
        uniform_candidates = np.clip(nearby_multiples, 1, 1 / _UNIFORM_GRID) * _UNIFORM_GRID
        possible_outputs = self._inverted_output(
            data, noise_sign=np.sign(needed_noise), uniform_number=uniform_candidates
        )
        can_give: BoolArray = np.any(possible_outputs == outputs[:, None], axis=1)
        return can_give


@dataclass(frozen=True, kw_only=True)
class SparseVector(Mechanism):
    """The sparse vector technique: which of 20 queries are above a threshold.

    The output has 1 for a query above, 0 for one below, and -1 once `above` queries were above;
    with "released_values" the noisy value for 1, and -1000 and -2000 for the others.

    Parameters
    ----------
    epsilon : float
        The claimed ε.
    above : int
        After how many queries above the threshold it stops, c.
    fault : str
        "" for Algorithm 1 of Lyu et al. (2017), which is ε-DP. "released_values", "quarter_noise",
        "no_query_noise" and "no_cut_off" are their Algorithms 3 to 6; "quarter_noise" satisfies
        (1 + 6c) ε/4, and the other three no ε for any number of queries. "unscaled_noise" has the
        query noise of c = 1. "no_threshold_noise" regards the threshold as public, and charges ε/c
        for each query above; this shows best with ``above=1``.
    """

    d0: ClassVar[Any] = np.repeat([1.0, 0.0], 10)
    d1: ClassVar[Any] = np.repeat([0.0, 1.0], 10)
    above: int = 10
    fault: Literal[
        "",
        "released_values",
        "quarter_noise",
        "no_query_noise",
        "no_cut_off",
        "unscaled_noise",
        "no_threshold_noise",
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        integer(self.above, name="above", least=1)

    def run(self, data: FloatArray, rng: np.random.Generator) -> AnyArray:
        """Return what is said of each query."""
        noise_scales_of_fault = _NOISE_SCALES[self.fault]
        query_scale = (
            noise_scales_of_fault.query_fixed + noise_scales_of_fault.query_per_above * self.above
        )
        query_noise = rng.laplace(scale=query_scale / self.epsilon, size=len(data))
        noisy_queries = data + query_noise
        noisy_threshold = 0.5 + rng.laplace(scale=noise_scales_of_fault.threshold / self.epsilon)
        is_above_threshold = noisy_queries >= noisy_threshold
        queries_above: IntArray = np.cumsum(is_above_threshold)
        has_cut_off = self.fault not in {"no_query_noise", "no_cut_off"}
        is_not_asked = has_cut_off & (queries_above - is_above_threshold >= self.above)
        if self.fault == "released_values":
            released_values = np.where(is_above_threshold, noisy_queries, _BELOW_THRESHOLD)
            return np.where(is_not_asked, _NOT_ASKED, released_values)
        return np.where(is_not_asked, -1, is_above_threshold)


@dataclass(frozen=True, kw_only=True)
class NoisyMax(Mechanism):
    """Which of two counts is larger, with exponential noise of scale 2/ε: ε-DP (Ding et al. 2021).

    Parameters
    ----------
    epsilon : float
        The claimed ε.
    fault : {"", "half_noise", "released_value"}
        Noise of half the scale; or the noisy count released with its place, which satisfies no ε
        (Ding et al. 2018).
    """

    fault: Literal["", "half_noise", "released_value"] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(d0=np.array((1, 0)), d1=np.array((0, 1)))
        if self.fault == "released_value":
            vars(self).update(d0=np.array((5.0, 0.0)), d1=np.array((6.0, 1.0)))

    def run(self, data: FloatArray, rng: np.random.Generator) -> int | FloatArray:
        """Return the place of the larger count, and with "released_value" the noisy count."""
        noise_scale = 2 / self.epsilon
        if self.fault == "half_noise":
            noise_scale = 1 / self.epsilon
        noisy_counts = data + rng.exponential(noise_scale, size=len(data))
        largest_place = int(noisy_counts.argmax())
        if self.fault == "released_value":
            return np.array([largest_place, noisy_counts[largest_place]])
        return largest_place


def _checked_whole_numbers(values: ArrayInput, name: str, most: int) -> IntArray:
    """Return whole numbers from 0 to the largest that is allowed."""
    return numbers(values, name=name, least=0, most=most, whole=True).astype(np.int64)


@dataclass(frozen=True)
class _LocalRandomizer:
    """A mechanism of local differential privacy, which reports one of k values."""

    k: int
    epsilon: float

    def __post_init__(self) -> None:
        integer(self.k, name="k", least=2, most=MOST_K)
        real(self.epsilon, name="epsilon", above=0, most=30)  # random floats are multiples of 2⁻⁵³

    def reports(self, values: ArrayInput, rng: np.random.Generator) -> IntArray | BoolArray:
        """Draw a report for each value, a whole number from 0 to k - 1.

        Reports are integers of shape (n,) for `GRR`, and booleans of shape (n, k) for the others.
        """
        instance(rng, name="rng", types=np.random.Generator)
        values = vector(values, name="values")
        return self._randomised_reports(
            _checked_whole_numbers(values, name="values", most=self.k - 1), rng
        )

    def log_ratio(self, reports: ArrayInput, value: int, other: int) -> FloatArray:
        """Return ln P(report | value) - ln P(report | other): the best score for an audit.

        It is ε, 0 or -ε. `value` is that of users whose coin says member, `other` that of the rest.
        """
        integer(value, name="value", least=0, most=self.k - 1)
        integer(other, name="other", least=0, most=self.k - 1)
        if value == other:
            raise OptionError(f"value and other must be different, got {value} twice")
        supports_own_value = self._supports(reports, value)
        supports_other_value = self._supports(reports, other)
        return self.epsilon * np.subtract(
            supports_own_value, supports_other_value, dtype=np.float64
        )

    @abstractmethod
    def _randomised_reports(
        self, values: IntArray, rng: np.random.Generator
    ) -> IntArray | BoolArray:
        """Draw a report for each value."""

    @abstractmethod
    def _supports(self, reports: ArrayInput, value: int) -> BoolArray:
        """Return which reports speak for a value: they are e^ε times as likely under it."""


class GRR(_LocalRandomizer):
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

    def _randomised_reports(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        truth_probability = 1 / (1 + (self.k - 1) * math.exp(-self.epsilon))
        reports_truth = rng.random(values.size) < truth_probability
        other_values = (values + rng.integers(1, self.k, values.size)) % self.k
        return np.where(reports_truth, values, other_values)

    def _supports(self, reports: ArrayInput, value: int) -> BoolArray:
        reports = vector(reports, name="reports")
        reported_values = _checked_whole_numbers(reports, name="reports", most=self.k - 1)
        return np.equal(reported_values, value)


class _UnaryEncoding(_LocalRandomizer):
    """A bit for each of the k values, drawn independently."""

    @property
    @abstractmethod
    def _one_probabilities(self) -> tuple[float, float]:
        """Return the probabilities of a 1: for the bit of the user's value, and for the others."""

    def _randomised_reports(self, values: IntArray, rng: np.random.Generator) -> BoolArray:
        own_bit_probability, other_bit_probability = self._one_probabilities
        reported_bits = np.empty((values.size, self.k), dtype=np.bool_)
        for value in range(self.k):
            one_probability = np.where(values == value, own_bit_probability, other_bit_probability)
            reported_bits[:, value] = rng.random(values.size) < one_probability
        return reported_bits

    def _supports(self, reports: ArrayInput, value: int) -> BoolArray:
        reported_bits = _checked_whole_numbers(reports, name="reports", most=1)
        if reported_bits.ndim != 2 or reported_bits.shape[1] != self.k or not reported_bits.size:
            raise InputError(f"reports must have shape (n, {self.k}), got {reported_bits.shape}")
        return np.equal(reported_bits[:, value], 1)


class OUE(_UnaryEncoding):
    """Optimised unary encoding: a bit for each value (Wang et al. 2017).

    The bit of the user's value is 1 with probability ½, each other bit with 1 / (e^ε + 1).
    Parameters are those of `GRR`.
    """

    @property
    def _one_probabilities(self) -> tuple[float, float]:
        return 0.5, 1 / (math.exp(self.epsilon) + 1)


class SUE(_UnaryEncoding):
    """Symmetric unary encoding, or basic one-time RAPPOR (Erlingsson et al. 2014).

    Each bit is right with probability e^(ε/2) / (e^(ε/2) + 1). Parameters are those of `GRR`.
    """

    @property
    def _one_probabilities(self) -> tuple[float, float]:
        flip_probability = 1 / (math.exp(self.epsilon / 2) + 1)
        return 1 - flip_probability, flip_probability
