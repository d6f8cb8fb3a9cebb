"""Games at the boundary of a claim, and traps, beside those of `leakbound.simulate`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray
from validity.streams import logit, stream

__all__ = [
    "Attacks",
    "Audited",
    "Boundary",
    "LaplaceNoise",
    "Looks",
    "Play",
    "Played",
    "Rankings",
    "Response",
    "reports",
    "two_rankings",
]


class Audited(Protocol):
    """What a row needs of a game."""

    @property
    def scores(self) -> FloatArray:
        """Scores of the examples."""

    @property
    def member(self) -> BoolArray:
        """What the coins said."""

    def epsilon(self, delta: float, /) -> float:
        """Return the ε that no bound at δ may exceed."""


Play: TypeAlias = Callable[..., Audited]
"""Something that plays the game of a keyword `seed`."""


@dataclass(frozen=True)
class Played:
    """A game that was played, and the leakage it has."""

    scores: FloatArray
    member: BoolArray
    truth: float

    def epsilon(self, _delta: float, /) -> float:
        """Return the truth at any δ."""
        return self.truth


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """Every guess is right with probability p, given all before, and coins are fair: the worst.

    The upper half of the scores is likely members, the lower half likely non-members.
    """

    m: int
    p: float
    tied: bool = False
    wavering: bool = False

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("signed-guesses", seed)
        size = np.ceil(6 * rng.random(self.m)) if self.tied else 1 - rng.random(self.m)
        right = rng.random(self.m) < self.p
        if self.wavering:
            right = self._waver(right, rng.random(self.m) < 0.5 / self.p)
        upper = rng.permutation(self.m) < self.m // 2
        return Played(np.where(upper, size, -size), upper == right, logit(self.p))

    def _waver(self, right: BoolArray, kept: BoolArray) -> BoolArray:
        """Keep a correct guess after a wrong one with probability 1/(2p)."""
        before = True
        for i in range(self.m):
            before = bool(right[i] and (before or kept[i]))
            right[i] = before
        return right


def _sureness(seed: int, attacks: int, examples: int) -> FloatArray:
    """Return how sure attacks are of their guesses: a number in (0, 1], by chance."""
    return 1 - stream("sureness", seed).random((attacks, examples))


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """Attacks that read the same reports, each as well as ε allows, and are as sure or not."""

    play: Play
    number: int

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        game = self.play(seed=2 * seed)
        size = _sureness(seed, self.number, game.scores.size)
        return Played(np.sign(game.scores) * size, game.member, game.epsilon(0.0))


@dataclass(frozen=True)
class _Looked:
    """Several attacks on the output of one game."""

    scores: FloatArray
    game: Audited

    @property
    def member(self) -> BoolArray:
        """What the coins said."""
        return self.game.member

    def epsilon(self, delta: float) -> float:
        """Return the truth: that of the game, as scores are made of its output."""
        return self.game.epsilon(delta)


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Attacks on one output: as it is, and others that are sure of what it says by chance."""

    play: Play
    number: int

    def __call__(self, *, seed: int) -> _Looked:
        """Play the game of a seed."""
        game = self.play(seed=2 * seed)
        size = _sureness(seed, self.number - 1, game.scores.size)
        centred = game.scores - np.median(game.scores)
        return _Looked(np.vstack([game.scores, centred * size]), game)


@dataclass(frozen=True, kw_only=True)
class Response:
    """Randomised response about coins that are not fair."""

    m: int
    prior: float
    epsilon: float

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("prior-game", seed)
        member = rng.random(self.m) < self.prior
        return Played(reports(rng, member, self.epsilon), member, self.epsilon)


@dataclass(frozen=True)
class _Laplace:
    scores: FloatArray
    member: BoolArray

    def epsilon(self, delta: float) -> float:
        """Return ε of δ(ε) = 1 - e^((ε - 1)/2), the profile of Laplace noise at μ = 1."""
        return max(0.0, 1 + 2 * math.log1p(-delta))


@dataclass(frozen=True, kw_only=True)
class LaplaceNoise:
    """Membership, 0 or 1, with Laplace noise of scale 1: the Laplace mechanism at μ = 1."""

    m: int

    def __call__(self, *, seed: int) -> _Laplace:
        """Play the game of a seed."""
        rng = stream("laplace-game", seed)
        member = rng.random(self.m) < 0.5
        return _Laplace(member + rng.laplace(size=self.m), member)


def reports(rng: np.random.Generator, member: BoolArray, epsilon: float) -> FloatArray:
    """Return scores whose signs say "member" or not, rightly with log-odds ε."""
    honest = rng.random(member.size) * (1 + math.exp(-epsilon)) < 1
    return np.where(member == honest, 1, -1) * (1 - rng.random(member.size))


Rankings = tuple[FloatArray, FloatArray, BoolArray]
"""Scores of a baseline, scores of an attack, and who is a member."""


def two_rankings(m: int, baseline: float, attack: float, seed: int) -> Rankings:
    """Draw a game whose c and c + ε are exactly the log-odds of two probabilities."""
    rng = stream("two-rankings", seed)
    member = rng.random(m) < 0.5

    def scores(p: float) -> FloatArray:
        upper = member == (rng.random(m) < p)
        return np.where(upper, 1, -1) * rng.random(m)

    return scores(baseline), scores(attack), member
