"""Mechanisms of known privacy: noise, responses, tails, ties, losses, DP-SGD, shift.

Each is a frozen dataclass of its parameters: ``game(m, seed=seed)`` plays it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real
from leakbound._base.odds import expit, logit
from leakbound._base.streams import SCHEME
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits import Panoramia, ZeroRun
from leakbound.claims import SubsampledGaussianDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.simulate import Game, gaussian, mixture, null, randomized_response
from leakbound.simulate.games import LEAST_DELTA, Profile
from leakbound.stats import normal_cdf

__all__ = [
    "DPSGD",
    "Gaussian",
    "Laplace",
    "LossesNearZero",
    "Mixture",
    "Noise",
    "OneSidedTail",
    "RandomizedResponse",
    "Rankings",
    "Shifted",
    "Ties",
    "TwoSidedTail",
]

# Thresholds at which tails are compared: so many deviations about the middle of each component.
_DEVIATIONS = 12.0
_THRESHOLDS = 2001


# Fields of a game but for membership.
Shown: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class _Mechanism(ABC):
    """A kind of game: ``game(m, seed=seed)`` plays one of m examples, and its truth is known."""

    def __post_init__(self) -> None:
        self(1, seed=0)  # parameters out of range are refused here

    @abstractmethod
    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""


class _Simulated(_Mechanism):
    """A function of `leakbound.simulate` with parameters."""

    _play: ClassVar[Callable[..., Game]]

    def __call__(self, m: int, *, seed: int) -> Game:
        return self._play(m, **vars(self), seed=seed)


@dataclass(frozen=True)
class Noise(_Simulated):
    """Scores that carry no information about membership: `leakbound.simulate.null`."""

    _play = staticmethod(null)


@dataclass(frozen=True)
class Gaussian(_Simulated):
    """Orthogonal canaries in Gaussian noise: `leakbound.simulate.gaussian`."""

    mu: float = 1.0
    _play = staticmethod(gaussian)


@dataclass(frozen=True)
class Mixture(_Simulated):
    """Gaussian DP whose canaries leak together: `leakbound.simulate.mixture`."""

    mu: float = 1.0
    dependence: float = 0.95
    _play = staticmethod(mixture)


@dataclass(frozen=True)
class RandomizedResponse(_Simulated):
    """Reports that are correct with odds e^ε: `leakbound.simulate.randomized_response`."""

    epsilon: float = 1.0
    fraction: float = 1.0
    delta: float = 0.0
    _play = staticmethod(randomized_response)


class OfCoins(_Mechanism):
    """A game whose members are drawn by fair coins."""

    def __call__(self, m: int, *, seed: int) -> Game:
        rng = generator(m, seed)
        return self.shown(rng, rng.random(m) < 0.5)

    def shown(self, rng: np.random.Generator, member: BoolArray) -> Game:
        """Play the game of members that are given."""
        return Game(member=member, **self._show(rng, member))

    @abstractmethod
    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        """Return the scores of members and non-members, and the truth."""


def generator(m: int, seed: int) -> np.random.Generator:
    """Return a stream that no audit of the seed has."""
    integer(m, name="m", least=1, most=MOST_EXAMPLES)
    named = f"{SCHEME}:simulate/canaries:{integer(seed, name='seed', least=0):x}"
    return np.random.default_rng(int.from_bytes(sha256(named.encode()).digest(), "little"))


@dataclass(frozen=True)
class Ties(OfCoins):
    """Reports that are correct with odds e^ε, and whose sizes are integers from 1 to `values`."""

    epsilon: float = 1.0
    values: int = 4

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        epsilon = real(self.epsilon, name="epsilon", least=0, below=math.inf)
        probability_of_correct = 1 / (1 + math.exp(-epsilon))
        is_correct = rng.random(member.size) < probability_of_correct
        reported_member = member == is_correct
        values = integer(self.values, name="values", least=1)
        sizes = rng.integers(1, values + 1, size=member.size)
        scores = np.where(reported_member, 1.0, -1.0) * sizes
        return {"scores": scores, "truth": self.epsilon, "parameter": "epsilon"}


@dataclass(frozen=True)
class Laplace(OfCoins):
    """Membership, 0 or 1, with Laplace noise of scale 1/ε, ε above 0."""

    epsilon: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        epsilon = real(self.epsilon, name="epsilon", above=0, below=math.inf)
        scores = member + rng.laplace(scale=1 / epsilon, size=member.size)

        def profile(claimed: float) -> float:
            return max(0.0, -math.expm1((claimed - epsilon) / 2))

        return {"scores": scores, "truth": epsilon, "parameter": "epsilon", "profile": profile}


@dataclass(frozen=True)
class LossesNearZero(OfCoins):
    """Losses of an overfit network in half precision: the smaller ones are 0, and tied.

    Margins are N(6 ± μ, 4), which is μ-Gaussian DP and the truth; the score is minus the logistic
    loss of a probability that was rounded to 11 bits.
    """

    mu: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        mu = real(self.mu, name="mu", least=0, below=math.inf)
        margins = 6 + np.where(member, mu, -mu) + 2 * rng.normal(size=member.size)
        rounded_probabilities = expit(margins).astype(np.float16)
        scores = np.log(rounded_probabilities.astype(np.float64))
        return {"scores": scores, "truth": mu, "parameter": "mu"}


@dataclass(frozen=True)
class OneSidedTail(OfCoins):
    """A share of the members is N(shift, 1), and all other scores are N(0, 1).

    Parameters
    ----------
    share, shift : float
        In (0, 1], and in (0, 30].
    """

    share: float = 0.05
    shift: float = 4.0
    # Where the share of the non-members is, in shifts.
    _nonmember_shifts: ClassVar[float] = 0.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = real(self.share, name="share", above=0, most=1)
        shift = real(self.shift, name="shift", above=0, most=30)
        nonmember_shift = self._nonmember_shifts * shift
        is_shifted = rng.random(member.size) < share
        shifts = np.where(member, shift, nonmember_shift)
        scores = rng.normal(size=member.size) + is_shifted * shifts
        return {
            "scores": scores,
            "truth": math.inf,
            "parameter": "epsilon",
            "profile": _tail_profile(share, shift, nonmember_shift),
        }


@dataclass(frozen=True)
class TwoSidedTail(OneSidedTail):
    """The same, and the same share of the non-members is N(-shift, 1)."""

    _nonmember_shifts = -1.0


@lru_cache(maxsize=64)
def _tail_profile(share: float, member_shift: float, nonmember_shift: float) -> Profile:
    """Return δ(ε), which is never 0: no test beats a threshold, as likelihood ratios increase."""
    deviations = np.linspace(-_DEVIATIONS, _DEVIATIONS, _THRESHOLDS)
    means = (0.0, member_shift, nonmember_shift)
    thresholds = np.concatenate([mean + deviations for mean in means])

    def mixture_tail(shift: float, sign: int) -> FloatArray:
        """Return the probability of scores beyond each threshold: above it if the sign is -1."""
        of_noise = normal_cdf(sign * thresholds)
        of_shifted = normal_cdf(sign * (thresholds - shift))
        return np.asarray((1 - share) * of_noise + share * of_shifted)

    # Members are found by high scores, and non-members by low ones.
    members_above = mixture_tail(member_shift, -1)
    nonmembers_above = mixture_tail(nonmember_shift, -1)
    members_below = mixture_tail(member_shift, 1)
    nonmembers_below = mixture_tail(nonmember_shift, 1)

    def delta(epsilon: float) -> float:
        factor = math.exp(epsilon)
        excess_above = float((members_above - factor * nonmembers_above).max())
        excess_below = float((nonmembers_below - factor * members_below).max())
        return max(LEAST_DELTA, excess_above, excess_below)

    return delta


@dataclass(frozen=True)
class DPSGD(OfCoins):
    """DP-SGD whose canaries have orthogonal gradients of the clipping norm. Needs the extra `dp`.

    Each step takes a canary in with probability `sampling_rate` and adds noise of deviation
    `noise`; scores are log-likelihood ratios of all that the steps show.
    """

    noise: float = 1.0
    sampling_rate: float = 0.1
    steps: int = 50

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        sigma = real(self.noise, name="noise", above=0, below=math.inf)
        rate = self.sampling_rate
        log_likelihood_ratios = np.zeros(member.size)
        family = SubsampledGaussianDP(sampling_rate=rate, steps=self.steps)
        for _ in range(self.steps):
            is_sampled = member & (rng.random(member.size) < rate)
            released = is_sampled + sigma * rng.normal(size=member.size)
            ratio_if_sampled = np.expm1((released - 0.5) / sigma**2)
            log_likelihood_ratios += np.log1p(rate * ratio_if_sampled)

        def profile(epsilon: float) -> float:
            return float(_tradeoff(family, 1 / sigma).delta(epsilon))

        return {
            "scores": log_likelihood_ratios,
            "truth": 1 / sigma,
            "parameter": "inverse_noise",
            "profile": profile,
        }


@lru_cache(maxsize=64)
def _tradeoff(family: SubsampledGaussianDP, inverse_noise: float) -> TradeOff:
    """Return a curve of DP-SGD, which takes up to a second."""
    return family.tradeoff(inverse_noise)


@dataclass(frozen=True)
class Shifted(_Mechanism):
    """μ-Gaussian DP of members that differ from the others, which scores show too: for Zero-Run.

    Parameters
    ----------
    mu, shift : float
        μ, and the standard deviation of the log-odds of membership, both at least 0.
    """

    mu: float = 1.0
    shift: float = 1.0

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        mu = real(self.mu, name="mu", least=0, below=math.inf)
        shift = real(self.shift, name="shift", least=0, below=math.inf)
        rng = generator(m, seed)
        log_odds = shift * rng.normal(size=m)
        propensities = expit(log_odds)
        member = rng.random(m) < propensities
        scores = mu * member + rng.normal(size=m) + log_odds
        design = partial(ZeroRun, member, propensities)
        return Game(scores=scores, member=member, truth=mu, parameter="mu", design=design)


@dataclass(frozen=True)
class Rankings(OfCoins):
    """PANORAMIA's pair: a baseline and an attack that are correct with these probabilities.

    ε is what the log-odds of `attack` exceed those of `baseline` by, both in [0.5, 1).
    """

    baseline: float = 0.6
    attack: float = 0.8

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        baseline_accuracy = real(self.baseline, name="baseline", least=0.5, below=1)
        attack_accuracy = real(self.attack, name="attack", least=0.5, below=1)
        c = logit(baseline_accuracy)
        epsilon = max(0.0, logit(attack_accuracy) - c)
        baseline = _ranking(member, self.baseline, rng)
        attack = _ranking(member, self.attack, rng)
        design = partial(Panoramia, member, baseline=baseline, c_upper=c)
        return {"scores": attack, "truth": epsilon, "parameter": "epsilon", "design": design}


def _ranking(member: BoolArray, accuracy: float, rng: np.random.Generator) -> FloatArray:
    """Return scores whose signs are correct with a probability, whatever their sizes."""
    is_correct = rng.random(member.size) < accuracy
    signs = np.where(member == is_correct, 1, -1)
    return signs * (1 - rng.random(member.size))
