"""Rows of independent trials: at the boundary of each claim; and coins of one run as trials."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from leakbound import simulate
from leakbound._base.types import FloatArray, SidesChoice
from leakbound.claims import ApproxDP, GaussianDP, LaplaceDP
from validity.asymmetric import SHARE, GivenAway, Told, share_family
from validity.games import Audited, LaplaceNoise, Play
from validity.lengths import DEAR, FUTILE
from validity.suite import Case
from validity.trials import ERROR, OneRun, Stream

__all__ = ["independent_cases"]

_SIDES: tuple[SidesChoice, ...] = ("both", "member")
_M = 100
_DELTA = 0.05
"""δ of games for approximate DP: more than 1/m, so that several trials fail."""


@dataclass(frozen=True)
class _Rounded:
    """The same game with scores of few values, most of them tied."""

    play: Play

    def __call__(self, *, seed: int) -> Any:
        game = self.play(seed=seed)
        return _Coarse(np.rint(game.scores), game)


@dataclass(frozen=True)
class _Coarse:
    scores: FloatArray
    game: Audited

    def __getattr__(self, name: str) -> Any:
        return getattr(self.game, name)


@dataclass(frozen=True)
class _Share:
    """Whether trials refute the share of members that a mechanism gives away."""

    told: Any

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        row = OneRun(
            GivenAway(m=_M, told=self.told), share_family(self.told, 0.01), design="trials"
        )
        return row.outcome(seed)[1].bound > SHARE


def independent_cases() -> Iterator[Case]:
    """Yield the rows of trials."""
    row = partial(Case, audit="trials", cuts="ranks", sides="auto", error=ERROR, quick=0, long=DEAR)
    gaussian = partial(simulate.gaussian, _M, 1.0)
    failing = partial(simulate.randomized_response, _M, 1.0, delta=_DELTA)
    games: dict[str, tuple[Any, Play]] = {
        "noise": (GaussianDP(), partial(simulate.null, _M)),
        "gaussian": (GaussianDP(), gaussian),
        "tied": (GaussianDP(), _Rounded(gaussian)),
        "laplace": (LaplaceDP(), LaplaceNoise(m=_M)),
        "failing": (ApproxDP(delta=_DELTA), failing),
        "gaussian-μ=3": (GaussianDP(), partial(simulate.gaussian, _M, 3.0)),
        "ten": (GaussianDP(), partial(simulate.gaussian, 10, 1.0)),
    }
    for truth, (claim, play) in games.items():
        case = row(claim=claim.name, truth=truth, trial=OneRun(play, claim, design="trials"))
        yield replace(case, cuts="look") if isinstance(claim, ApproxDP) else case
    # Looked at after each batch
    streams = {"noise": 0.0, "gaussian": 1.0, "tied": 1.0, "laplace": None, "failing": None}
    for truth, parameter in streams.items():
        claim, play = games[truth]
        for sides in _SIDES:
            trial = Stream(play, sides, claim=claim, truth=parameter)
            case = row(claim=claim.name, truth=truth, trial=trial)
            yield replace(case, audit="stream-trials", cuts="bets", sides=sides)
    # Most of these batches are tied, and pay their fees
    kinds: tuple[Told, ...] = ("members", "non-members")
    for told, batch in product(kinds, (2, 3, 7)):
        play = GivenAway(m=batch, told=told)
        trial = Stream(play, "both", 60, claim=share_family(told, 0.01), truth=SHARE)
        case = row(claim="share", truth=f"{told}-told-{batch}", trial=trial)
        yield replace(case, audit="stream-trials", cuts="bets", sides="both")
    for told in ("members", "non-members"):
        yield row(claim="share", truth=f"{told}-told", trial=_Share(told))
    mixture = OneRun(partial(simulate.mixture, 400, 1.0), GaussianDP(), design="trials")
    trap: dict[str, Any] = {"audit": "trials-trap", "valid": False, "long": FUTILE}
    yield row(claim="Gaussian DP", truth="mixture-of-one-run", trial=mixture, **trap)
