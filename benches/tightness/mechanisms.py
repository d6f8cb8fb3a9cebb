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

from leakbound._base.numerics import expit, logit
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


class _Simulated:
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


class OfCoins(ABC):
    """A game whose members are drawn by fair coins."""

    def __call__(self, m: int, *, seed: int) -> Game:
        rng = generator(seed)
        member = rng.random(m) < 0.5
        return self.shown(rng, member)

    def shown(self, rng: np.random.Generator, member: BoolArray) -> Game:
        """Play the game of members that are given."""
        return Game(member=member, **self._show(rng, member))

    @abstractmethod
    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        """Return the scores of members and non-members, and the truth."""


def generator(seed: int) -> np.random.Generator:
    """Return a stream that no audit of the seed has."""
    name = f"{SCHEME}:simulate/canaries:{seed:x}"
    digest = sha256(name.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


@dataclass(frozen=True)
class Ties(OfCoins):
    """Reports that are correct with odds e^ε, and whose sizes are integers from 1 to `values`."""

    epsilon: float = 1.0
    values: int = 4

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        probability_of_correct = 1 / (1 + math.exp(-self.epsilon))
        is_correct = rng.random(member.size) < probability_of_correct
        reported_member = member == is_correct
        magnitudes = rng.integers(1, self.values, size=member.size, endpoint=True)
        scores = np.where(reported_member, magnitudes, -magnitudes).astype(np.float64)
        return {"scores": scores, "truth": self.epsilon, "parameter": "epsilon"}


@dataclass(frozen=True)
class Laplace(OfCoins):
    """Membership, 0 or 1, with Laplace noise of scale 1/ε, ε above 0."""

    epsilon: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        laplace_noise = rng.laplace(scale=1 / self.epsilon, size=member.size)
        scores = member + laplace_noise

        def profile(claimed_epsilon: float) -> float:
            excess_epsilon = self.epsilon - claimed_epsilon
            return max(0.0, -math.expm1(-excess_epsilon / 2))

        return {"scores": scores, "truth": self.epsilon, "parameter": "epsilon", "profile": profile}


@dataclass(frozen=True)
class LossesNearZero(OfCoins):
    """Losses of an overfit network in half precision: the smaller ones are 0, and tied.

    Margins are N(6 ± μ, 4), which is μ-Gaussian DP and the truth; the score is minus the logistic
    loss of a probability that was rounded to 11 bits.
    """

    mu: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        mean_margins = 6 + np.where(member, self.mu, -self.mu)
        margins = mean_margins + 2 * rng.normal(size=member.size)
        rounded_probabilities = expit(margins).astype(np.float16)
        scores = np.log(rounded_probabilities.astype(np.float64))
        return {"scores": scores, "truth": self.mu, "parameter": "mu"}


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
        nonmember_shift = self._nonmember_shifts * self.shift
        is_shifted = rng.random(member.size) < self.share
        shifts = np.where(member, self.shift, nonmember_shift)
        gaussian_noise = rng.normal(size=member.size)
        scores = gaussian_noise + is_shifted * shifts
        return {
            "scores": scores,
            "truth": math.inf,
            "parameter": "epsilon",
            "profile": _tail_profile(self.share, self.shift, nonmember_shift),
        }


@dataclass(frozen=True)
class TwoSidedTail(OneSidedTail):
    """The same, and the same share of the non-members is N(-shift, 1)."""

    _nonmember_shifts = -1.0


@lru_cache(maxsize=64)
def _tail_profile(share: float, member_shift: float, nonmember_shift: float) -> Profile:
    """Return δ(ε), which is never 0: no test beats a threshold, as likelihood ratios increase."""
    deviations = np.linspace(-_DEVIATIONS, _DEVIATIONS, num=_THRESHOLDS)
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
        excesses_above = members_above - factor * nonmembers_above
        excesses_below = nonmembers_below - factor * members_below
        largest_excess = max(excesses_above.max(), excesses_below.max())
        return max(LEAST_DELTA, float(largest_excess))

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
        log_likelihood_ratios = np.zeros(member.size)
        for _ in range(self.steps):
            uniforms = rng.random(member.size)
            is_sampled = member & (uniforms < self.sampling_rate)
            gaussian_noise = self.noise * rng.normal(size=member.size)
            released = is_sampled + gaussian_noise
            excess_ratio_if_sampled = np.expm1((released - 0.5) / self.noise**2)
            log_likelihood_ratios += np.log1p(self.sampling_rate * excess_ratio_if_sampled)

        def profile(epsilon: float) -> float:
            return float(_tradeoff_of_dp_sgd(self).delta(epsilon))

        return {
            "scores": log_likelihood_ratios,
            "truth": 1 / self.noise,
            "parameter": "inverse_noise",
            "profile": profile,
        }


@lru_cache(maxsize=64)
def _tradeoff_of_dp_sgd(game: DPSGD) -> TradeOff:
    """Return the curve of a game, which takes up to a second."""
    family = SubsampledGaussianDP(sampling_rate=game.sampling_rate, steps=game.steps)
    return family.tradeoff(1 / game.noise)


@dataclass(frozen=True)
class Shifted:
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
        rng = generator(seed)
        log_odds = self.shift * rng.normal(size=m)
        propensities = expit(log_odds)
        member = rng.random(m) < propensities
        gaussian_noise = rng.normal(size=m)
        scores = self.mu * member + gaussian_noise + log_odds
        design = partial(ZeroRun, member, propensities)
        return Game(scores=scores, member=member, truth=self.mu, parameter="mu", design=design)


@dataclass(frozen=True)
class Rankings(OfCoins):
    """PANORAMIA's pair: a baseline and an attack that are correct with these probabilities.

    ε is what the log-odds of `attack` exceed those of `baseline` by, both in [0.5, 1).
    """

    baseline: float = 0.6
    attack: float = 0.8

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        c = logit(self.baseline)
        epsilon = max(0.0, logit(self.attack) - c)
        baseline_scores = _ranking(member, self.baseline, rng)
        attack_scores = _ranking(member, self.attack, rng)
        design = partial(Panoramia, member, baseline=baseline_scores, c_upper=c)
        return {"scores": attack_scores, "truth": epsilon, "parameter": "epsilon", "design": design}


def _ranking(member: BoolArray, accuracy: float, rng: np.random.Generator) -> FloatArray:
    """Return scores whose signs are correct with a probability, whatever their sizes."""
    is_correct = rng.random(member.size) < accuracy
    signs = np.where(member == is_correct, 1, -1)
    return signs * (1 - rng.random(member.size))
