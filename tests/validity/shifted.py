"""Games of Zero-Run audits: members and non-members differ, and a mechanism leaks as it may."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray
from noisy_sums import noisy_sum
from validity.games import reports
from validity.streams import stream

__all__ = ["Leak", "NoisySums", "Shifted", "ShiftedGame", "ShiftedPlay"]

Leak: TypeAlias = Literal["nothing", "response", "gaussian"]
"""What a mechanism tells of members that differ from non-members."""

_DIRECTION = np.array([0.8, -0.5, 0.3]) / math.sqrt(0.98)
"""Which of three features tell of membership."""


@dataclass(frozen=True)
class ShiftedGame:
    """What an audit needs of a game, and the truth."""

    scores: FloatArray
    member: BoolArray
    propensity: FloatArray
    truth: float
    features: FloatArray
    holdout_features: FloatArray
    holdout_member: BoolArray


class ShiftedPlay(Protocol):
    """Something that plays the game of a seed."""

    def __call__(self, *, seed: int) -> ShiftedGame:
        """Play the game of a seed."""


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """Members and non-members that differ, and a mechanism as leaky as its guarantee allows."""

    m: int
    kind: Leak
    shift: float = 1.0
    failure: float = 0.0
    holdout: int = 0

    def __call__(self, *, seed: int) -> ShiftedGame:
        """Play the game of a seed."""
        rng = stream("shifted-game", seed)
        features, member = self._people(rng, self.m)
        others, joined = self._people(rng, self.holdout)
        odds = self.shift * (features @ _DIRECTION)
        scores, truth = odds, 0.0
        if self.kind == "nothing":
            scores = odds + rng.normal(size=member.size) / 2
        elif self.kind == "response":
            seen = reports(rng, member, 1.0)
            told = rng.random(member.size) < self.failure
            seen[told] = np.where(member[told], 1, -1) * np.abs(seen[told])
            scores, truth = 2 * seen + odds, 1.0
        else:
            scores = member + rng.normal(size=member.size) + odds
            truth = 1.0
        return ShiftedGame(scores, member, expit(odds), truth, features, others, joined)

    def _people(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, BoolArray]:
        features = rng.normal(size=(size, _DIRECTION.size))
        odds = self.shift * (features @ _DIRECTION)
        return features, rng.random(size) < expit(odds)


@dataclass(frozen=True, kw_only=True)
class NoisySums:
    """Noisy sums at μ = 1, and as many other examples to learn propensities from."""

    m: int
    ratio: float
    holdout: int

    def __call__(self, *, seed: int) -> ShiftedGame:
        """Play the game of a seed."""
        game = noisy_sum(
            self.m, mu=1.0, shift=self.ratio, features=3, holdout=self.holdout, seed=seed
        )
        return ShiftedGame(
            game.scores,
            game.member,
            game.propensity,
            game.truth,
            game.features,
            game.holdout_features,
            game.holdout_member,
        )
