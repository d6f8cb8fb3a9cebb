"""Rows of the second look: the default, and each of its tests alone, where outer scores are noise.

A test with a small share of the error probability could be wrong five times as often as its share
and add 2 points to 10 %, which rows of the whole could not see. So each test is played alone, too,
with nearly all of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound import simulate
from leakbound._base.types import BoolArray, CoinSides, FloatArray, IntArray
from leakbound._tally.tally import Tally
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import SecondLook
from validity.choices import ChoiceTrial
from validity.games import Boundary, Play
from validity.lengths import DEAR
from validity.random_splits import Split, SplitGame
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR, OneRun

__all__ = ["PARTS", "look_cases", "noisy", "quick_look_cases"]

_DELTA = 0.01
_NOISE = 0.08
"""Share of the examples whose scores are the outermost ones, and noise."""
_REST = 1e-3
PARTS: dict[str, SecondLook | None] = {
    "whole": None,
    "look-alone": SecondLook(look=1 - 2 * _REST, scan=_REST),
    "first-alone": SecondLook(look=_REST, scan=_REST),
    "scan-alone": SecondLook(look=_REST, scan=1 - 2 * _REST),
}
"""The default, and policies in which one test has all but a thousandth or two of the level."""
_SIDES: tuple[CoinSides, ...] = ("auto", "both", "member")


def noisy(scores: FloatArray, seed: int) -> FloatArray:
    """Put some of the scores beyond all others, at either end: what is left is no more private."""
    rng = stream("second-look", seed)
    outer = rng.random(scores.size) < _NOISE
    ends = np.where(rng.random(scores.size) < 0.5, 1.0, -1.0) * (50 + rng.random(scores.size))
    return np.where(outer, ends, scores)


@dataclass(frozen=True)
class _Noisy:
    """A game of coins with noise at its ends."""

    play: Play

    def __call__(self, *, seed: int) -> Any:
        """Play the game of a seed."""
        game = self.play(seed=seed)
        return _Shown(noisy(game.scores, seed), game)


@dataclass(frozen=True)
class _Shown:
    scores: FloatArray
    game: Any

    @property
    def member(self) -> BoolArray:
        return np.asarray(self.game.member)

    def epsilon(self, delta: float) -> float:
        return float(self.game.epsilon(delta))


@dataclass(frozen=True)
class _Tallied:
    """A game whose scores are rounded, and counted: it has ties, the outermost noise most."""

    play: Play

    def __call__(self, *, seed: int) -> Any:
        """Play the game of a seed."""
        game = self.play(seed=seed)
        return _Counted(Tally.of(np.round(game.scores, 1), game.member), game)


@dataclass(frozen=True)
class _Counted:
    scores: Tally
    game: Any
    member: None = None

    def epsilon(self, delta: float) -> float:
        return float(self.game.epsilon(delta))


@dataclass(frozen=True, kw_only=True)
class _NoisySplit(SplitGame):
    """A random split with noise at the ends."""

    def __call__(self, seed: int) -> tuple[FloatArray, BoolArray, dict[str, Any]]:
        """Return scores, membership and design of a seed."""
        scores, member, design = super().__call__(seed)
        return noisy(scores, seed), member, design


@dataclass(frozen=True, kw_only=True)
class _NoisyChoices(ChoiceTrial):
    """Choices of which some name a candidate at random, by the largest margins."""

    def play(self, seed: int) -> tuple[FloatArray, IntArray]:
        """Return scores of all candidates, and the chosen ones, of a seed."""
        scores, chosen = super().play(seed)
        rng = stream("second-look", seed)
        named = 50 * np.eye(self.k)[rng.integers(self.k, size=self.m)]
        outer = rng.random((self.m, 1)) < _NOISE
        return np.where(outer, named + rng.random((self.m, 1)), scores), chosen


_M = 300
_COINS: dict[str, tuple[Claim, Play]] = {
    "noise": (PureDP(), partial(simulate.null, _M)),
    "response": (PureDP(), Boundary(m=_M, p=0.73)),
    "failing": (
        ApproxDP(delta=_DELTA),
        partial(simulate.randomized_response, _M, 1.0, delta=_DELTA),
    ),
    "gaussian": (GaussianDP(), partial(simulate.gaussian, _M, 1.5)),
    "mixture": (GaussianDP(), partial(simulate.mixture, _M, 1.5)),
}
_Leak: TypeAlias = Literal["response", "failing", "gaussian"]
_OTHERS: dict[_Leak, Claim] = {
    "response": PureDP(),
    "failing": ApproxDP(delta=_DELTA),
    "gaussian": GaussianDP(),
}


def _parts(claim: Claim, *, sided: bool) -> Iterator[tuple[str, SecondLook | None]]:
    """Yield the tests that a claim has, where sides are fixed or not."""
    for name, cuts in PARTS.items():
        if name != "scan-alone" or (isinstance(claim, PureDP) and not sided):
            yield name, cuts


def look_cases() -> Iterator[Case]:
    """Yield the rows of coins from either end, of fixed sides, tallies, splits and choices."""
    row = partial(Case, audit="second-look", error=ERROR, quick=0, long=DEAR)
    for sides in _SIDES:
        for truth, (claim, play) in _COINS.items():
            for name, cuts in _parts(claim, sided=sides != "auto"):
                trial = OneRun(_Noisy(play), claim, {"cuts": cuts, "sides": sides})
                yield row(claim=claim.name, cuts=name, sides=sides, truth=truth, trial=trial)
    for truth, (claim, play) in _COINS.items():
        for name, cuts in _parts(claim, sided=False):
            trial = OneRun(_Tallied(_Noisy(play)), claim, {"cuts": cuts, "sides": "auto"})
            yield row(
                claim=claim.name, cuts=name, sides="auto", truth=f"{truth}-tally", trial=trial
            )
    pairs = partial(row, sides="pairs")
    for leak, claim in _OTHERS.items():
        for name, cuts in _parts(claim, sided=True):
            split = Split(_NoisySplit(members=_M, others=_M, mechanism=leak), claim, cuts)
            secrets = _NoisyChoices(m=_M, k=3, mechanism=leak, claim=claim, cuts=cuts)
            yield pairs(claim=claim.name, cuts=name, truth=f"{leak}-split", trial=split)
            yield pairs(claim=claim.name, cuts=name, truth=secrets.game, trial=secrets)


def quick_look_cases(error: float) -> Iterator[Case]:
    """Yield a row of the look alone for each claim, at an error that few games can tell doubled."""
    for truth, quick in (("response", 1000), ("failing", 500), ("gaussian", 150)):
        claim, play = _COINS[truth]
        options = {"cuts": PARTS["look-alone"], "sides": "auto"}
        yield Case(
            audit="one-run",
            claim=claim.name,
            cuts="look-alone",
            sides="auto",
            truth=f"noisy-{truth}",
            error=error,
            trial=OneRun(_Noisy(play), claim, options, error),
            quick=quick,
            long=DEAR,
        )
