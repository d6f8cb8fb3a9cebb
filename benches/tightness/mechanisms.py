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
_WIDTH = 12.0
_STEPS = 2001


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
        chance = 1 / (1 + math.exp(-real(self.epsilon, name="epsilon", least=0, below=math.inf)))
        said = member == (rng.random(member.size) < chance)
        sizes = rng.integers(1, integer(self.values, name="values", least=1) + 1, size=member.size)
        scores = np.where(said, 1.0, -1.0) * sizes
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
        margin = 6 + np.where(member, mu, -mu) + 2 * rng.normal(size=member.size)
        scores = np.log(expit(margin).astype(np.float16).astype(np.float64))
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
    _others: ClassVar[float] = 0.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = real(self.share, name="share", above=0, most=1)
        shift = real(self.shift, name="shift", above=0, most=30)
        other = self._others * shift
        shows = rng.random(member.size) < share
        scores = rng.normal(size=member.size) + shows * np.where(member, shift, other)
        profile = _tail_profile(share, inside=shift, outside=other)
        return {"scores": scores, "truth": math.inf, "parameter": "epsilon", "profile": profile}


@dataclass(frozen=True)
class TwoSidedTail(OneSidedTail):
    """The same, and the same share of the non-members is N(-shift, 1)."""

    _others = -1.0


@lru_cache(maxsize=64)
def _tail_profile(share: float, inside: float, outside: float) -> Profile:
    """Return δ(ε), which is never 0: no test beats a threshold, as likelihood ratios increase."""
    middles = (0.0, inside, outside)
    at = np.concatenate([mean + np.linspace(-_WIDTH, _WIDTH, _STEPS) for mean in middles])

    def chance(mean: float, sign: int) -> FloatArray:
        rest = normal_cdf(sign * at)
        shown = normal_cdf(sign * (at - mean))
        return np.asarray((1 - share) * rest + share * shown)

    # Members are found by high scores, and non-members by low ones.
    tests = (chance(inside, -1), chance(outside, -1)), (chance(outside, 1), chance(inside, 1))

    def delta(epsilon: float) -> float:
        gaps = (float((right - math.exp(epsilon) * wrong).max()) for right, wrong in tests)
        return max(LEAST_DELTA, *gaps)

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
        m = member.size
        scores = np.zeros(member.size)
        family = SubsampledGaussianDP(sampling_rate=rate, steps=self.steps)
        for _ in range(self.steps):
            seen = (member & (rng.random(m) < rate)) + sigma * rng.normal(size=m)
            scores += np.log1p(rate * np.expm1((seen - 0.5) / sigma**2))

        def profile(epsilon: float) -> float:
            return float(_curve(family, 1 / sigma).delta(epsilon))

        truth = {"truth": 1 / sigma, "parameter": "inverse_noise", "profile": profile}
        return {"scores": scores, **truth}


@lru_cache(maxsize=64)
def _curve(family: SubsampledGaussianDP, theta: float) -> TradeOff:
    """Return a curve of DP-SGD, which takes up to a second."""
    return family.tradeoff(theta)


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
        rng = generator(m, seed)
        odds = real(self.shift, name="shift", least=0, below=math.inf) * rng.normal(size=m)
        member = rng.random(m) < expit(odds)
        scores = mu * member + rng.normal(size=m) + odds
        design = partial(ZeroRun, member, expit(odds))
        return Game(scores=scores, member=member, truth=mu, parameter="mu", design=design)


@dataclass(frozen=True)
class Rankings(OfCoins):
    """PANORAMIA's pair: a baseline and an attack that are correct with these probabilities.

    ε is what the log-odds of `attack` exceed those of `baseline` by, both in [0.5, 1).
    """

    baseline: float = 0.6
    attack: float = 0.8

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        c = logit(real(self.baseline, name="baseline", least=0.5, below=1))
        epsilon = max(0.0, logit(real(self.attack, name="attack", least=0.5, below=1)) - c)
        baseline, scores = (
            np.where(member == (rng.random(member.size) < chance), 1, -1)
            * (1 - rng.random(member.size))
            for chance in (self.baseline, self.attack)
        )
        design = partial(Panoramia, member, baseline=baseline, c_upper=c)
        return {"scores": scores, "truth": epsilon, "parameter": "epsilon", "design": design}
