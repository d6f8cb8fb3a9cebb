"""More mechanisms of known privacy, named by what their canaries show: what benchmarks audit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real
from leakbound._base.odds import expit, logit
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import SubsampledGaussianDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.simulate.games import LEAST_DELTA, Game, Profile, coins
from leakbound.stats import normal_cdf

# From random numbers and membership to scores.
Draw: TypeAlias = Callable[[np.random.Generator, BoolArray], FloatArray]
# Thresholds at which tails are compared: so many deviations about the middle of each component.
_WIDTH, _STEPS = 12.0, 2001


def _rng(m: int, seed: int) -> np.random.Generator:
    integer(m, "m", least=1, most=MOST_EXAMPLES)
    return Purpose.CANARIES.rng(integer(seed, "seed", least=0))


def _played(m: int, seed: int, draw: Draw, **truth: Any) -> Game:
    """Toss coins, draw scores, and say what is true of them."""
    rng = _rng(m, seed)
    member = coins(rng, m)
    return Game(scores=draw(rng, member), member=member, **truth)


def ties(m: int, epsilon: float = 1.0, *, values: int = 4, seed: int) -> Game:
    """Play randomised response whose reports are so sure, 1 to `values`, and no surer.

    Parameters
    ----------
    m, epsilon, seed : int, float and int
        Examples, ε, and the seed.
    values : int
        How many sizes there are, from 1 on.
    """
    chance = 1 / (1 + math.exp(-real(epsilon, "epsilon", least=0, below=math.inf)))
    sizes = integer(values, "values", least=1)

    def draw(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        said = member == (rng.random(m) < chance)
        return np.where(said, 1.0, -1.0) * rng.integers(1, sizes + 1, size=m)

    return _played(m, seed, draw, truth=epsilon, parameter="epsilon")


def laplace(m: int, epsilon: float = 1.0, *, seed: int) -> Game:
    """Play membership, 0 or 1, with Laplace noise of scale 1/ε.

    Parameters
    ----------
    m, epsilon, seed : int, float and int
        Examples, ε, above 0, and the seed.
    """
    epsilon = real(epsilon, "epsilon", above=0, below=math.inf)
    return _played(
        m,
        seed,
        lambda rng, member: member + rng.laplace(scale=1 / epsilon, size=m),
        truth=epsilon,
        parameter="epsilon",
        profile=lambda claimed: max(0.0, -math.expm1((claimed - epsilon) / 2)),
    )


def losses_near_zero(m: int, mu: float = 1.0, *, seed: int) -> Game:
    """Play losses of an overfit network in half precision: the smaller ones are 0, and tied.

    Margins are N(6 ± μ, 4), which is μ-Gaussian DP; the score is minus the logistic loss of a
    probability that was rounded to 11 bits. The truth is that of the margins.

    Parameters
    ----------
    m, mu, seed : int, float and int
        Examples, μ, at least 0, and the seed.
    """
    mu = real(mu, "mu", least=0, below=math.inf)

    def draw(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        margin = 6 + np.where(member, mu, -mu) + 2 * rng.normal(size=m)
        return np.asarray(np.log(expit(margin).astype(np.float16).astype(np.float64)))

    return _played(m, seed, draw, truth=mu, parameter="mu")


def two_sided_tail(m: int, share: float = 0.05, shift: float = 4.0, *, seed: int) -> Game:
    """Play canaries of which a share shows through, N(±shift, 1), and the others are N(0, 1).

    Parameters
    ----------
    m, share, shift, seed : int, float, float and int
        Examples, the share, in (0, 1], the shift, in (0, 30], and the seed.
    """
    return _tail(m, seed, share, shift, -shift)


def one_sided_tail(m: int, share: float = 0.05, shift: float = 4.0, *, seed: int) -> Game:
    """Play canaries of which a share of the members is N(shift, 1), and all others N(0, 1).

    Parameters
    ----------
    m, share, shift, seed : int, float, float and int
        Examples, the share, in (0, 1], the shift, in (0, 30], and the seed.
    """
    return _tail(m, seed, share, shift, 0.0)


def _tail(m: int, seed: int, share: float, inside: float, outside: float) -> Game:
    """Play the game in which a share is drawn about one mean or another, and the rest about 0."""
    share = real(share, "share", above=0, most=1)
    real(inside, "shift", above=0, most=30)

    def draw(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        shows = rng.random(m) < share
        return rng.normal(size=m) + shows * np.where(member, inside, outside)

    profile = _tail_profile(share, inside, outside)
    return _played(m, seed, draw, truth=math.inf, parameter="epsilon", profile=profile)


@lru_cache(maxsize=64)
def _tail_profile(share: float, inside: float, outside: float) -> Profile:
    """Return δ(ε), which is never 0: no test beats a threshold, as likelihood ratios increase."""
    middles = (0.0, inside, outside)
    at = np.concatenate([mean + np.linspace(-_WIDTH, _WIDTH, _STEPS) for mean in middles])

    def chance(mean: float, sign: int) -> FloatArray:
        rest, shown = normal_cdf(sign * at), normal_cdf(sign * (at - mean))
        return np.asarray((1 - share) * rest + share * shown)

    # What is told from what: members by high scores, and the others by low ones.
    tests = (
        (chance(inside, -1), chance(outside, -1)),
        (chance(outside, 1), chance(inside, 1)),
    )

    def delta(epsilon: float) -> float:
        gaps = (float((right - math.exp(epsilon) * wrong).max()) for right, wrong in tests)
        return max(LEAST_DELTA, *gaps)

    return delta


def dp_sgd(
    m: int, noise: float = 1.0, *, sampling_rate: float = 0.1, steps: int = 50, seed: int
) -> Game:
    """Play DP-SGD whose canaries have orthogonal gradients of the clipping norm.

    Each step takes a canary in with probability `sampling_rate` and adds noise of deviation
    `noise`; scores are log-likelihood ratios of all that the steps show. Needs the extra `dp`.

    Parameters
    ----------
    m, noise, seed : int, float and int
        Canaries, the noise multiplier, above 0, and the seed.
    sampling_rate, steps : float and int
        Probability of a canary to be in a batch, in (0, 1], and number of batches.
    """
    sigma = real(noise, "noise", above=0, below=math.inf)
    curve = _dp_sgd_curve(sigma, sampling_rate, steps)

    def draw(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        scores = np.zeros(m)
        for _ in range(steps):
            seen = (member & (rng.random(m) < sampling_rate)) + sigma * rng.normal(size=m)
            scores += np.log1p(sampling_rate * np.expm1((seen - 0.5) / sigma**2))
        return scores

    return _played(
        m,
        seed,
        draw,
        truth=1 / sigma,
        parameter="inverse_noise",
        profile=lambda epsilon: float(curve.delta(epsilon)),
    )


@lru_cache(maxsize=64)
def _dp_sgd_curve(noise: float, rate: float, steps: int) -> TradeOff:
    """Return the curve of DP-SGD, which takes a good part of a second."""
    return SubsampledGaussianDP(sampling_rate=rate, steps=steps).tradeoff(1 / noise)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShiftedGame(Game):
    """A game whose members differ from the others: `propensity` is the chance of each to be one."""

    propensity: FloatArray
    features: FloatArray


def shifted(m: int, mu: float = 1.0, *, shift: float = 1.0, seed: int) -> ShiftedGame:
    """Play Gaussian DP of members that differ from the others by what scores know too.

    Parameters
    ----------
    m, mu, shift, seed : int, float, float and int
        Examples, μ, at least 0, the standard deviation of the log-odds of membership, and the seed.
    """
    rng = _rng(m, seed)
    features = rng.normal(size=(m, 1))
    odds = real(shift, "shift", least=0, below=math.inf) * features[:, 0]
    member = rng.random(m) < expit(odds)
    return ShiftedGame(
        scores=mu * member + rng.normal(size=m) + odds,
        member=member,
        truth=real(mu, "mu", least=0, below=math.inf),
        parameter="mu",
        propensity=expit(odds),
        features=features,
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RankedGame(Game):
    """A game of PANORAMIA: `baseline` has scores without the model, and `c` is what they prove."""

    baseline: FloatArray
    c: float


def rankings(m: int, baseline: float = 0.6, attack: float = 0.8, *, seed: int) -> RankedGame:
    """Play PANORAMIA's pair: a baseline and an attack that are right with these probabilities.

    Its ε is what the log-odds of the attack exceed those of the baseline by.

    Parameters
    ----------
    m, baseline, attack, seed : int, float, float and int
        Examples, probabilities in [0.5, 1), and the seed.
    """
    c = logit(real(baseline, "baseline", least=0.5, below=1))
    both = logit(real(attack, "attack", least=0.5, below=1))
    rng = _rng(m, seed)
    member = coins(rng, m)
    without, scores = (
        np.where(member == (rng.random(m) < chance), 1, -1) * (1 - rng.random(m))
        for chance in (baseline, attack)
    )
    epsilon = max(0.0, both - c)
    truth: dict[str, Any] = {"truth": epsilon, "parameter": "epsilon", "c": c}
    return RankedGame(scores=scores, member=member, baseline=without, **truth)
