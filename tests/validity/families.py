"""Rows of claims that are families by accountants: zero-concentrated DP, and noise of events."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import dp_accounting as dp
import numpy as np

from leakbound import simulate
from leakbound._base.types import FloatArray
from leakbound.claims import EventFamily, GaussianDP, ZeroConcentratedDP, from_event
from validity.games import LaplaceNoise, Play, Played
from validity.lengths import COSTLY, DEAREST, FUTILE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR, OneRun

__all__ = ["GAMES", "HIGH", "family_cases"]

HIGH = 0.45
"""Share of false claims that quick rows allow: so that few games see twice the rate."""
GAMES = 36
"""Games of a quick row: enough to see twice the rate, with probability 0.8."""
_RHO = 0.5
_FEW, _MANY = 20, 100
_ZCDP = ZeroConcentratedDP()


@cache
def _border(rho: float) -> tuple[FloatArray, FloatArray]:
    """Return corners of a curve that obeys all Rényi orders: levels, and their powers."""
    level, missed = _ZCDP.attained(rho, "both").corners()
    return level, 1 - missed


@dataclass(frozen=True, kw_only=True)
class Border:
    """Trials whose thresholds have the levels and powers of a curve at the border of ρ-zCDP."""

    m: int

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed: a score is minus the level at which it is a member's."""
        rng = stream("border-game", seed)
        member = rng.random(self.m) < 0.5
        power = rng.random(self.m)
        level, powers = _border(_RHO)
        return Played(-np.where(member, np.interp(power, powers, level), power), member, _RHO)


@dataclass(frozen=True, kw_only=True)
class Composed:
    """Membership with Gaussian noise, and with Laplace noise, as a log-likelihood ratio."""

    m: int

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("composed-game", seed)
        member = rng.random(self.m) < 0.5
        first = member + rng.normal(size=self.m)
        second = member + rng.laplace(size=self.m)
        ratio = first - 0.5 + np.abs(second) - np.abs(second - 1)
        return Played(ratio, member, 1.0)


@dataclass(frozen=True)
class AboveTruth:
    """Whether the bound on a family's parameter is above the truth."""

    run: OneRun
    truth: float

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        return self.run.outcome(seed)[1].bound > self.truth


def _trial(
    play: Play, claim: Any, truth: float, *, error: float = ERROR, design: str = "trials"
) -> AboveTruth:
    return AboveTruth(OneRun(play, claim, {}, error, design), truth)


def _event(event: Any) -> EventFamily:
    return from_event(event, relation="add_remove")


def family_cases() -> Iterator[Case]:
    """Yield rows at the border of ρ-zCDP, and of noise that is as its event says."""
    row = partial(Case, cuts="ranks", sides="auto", error=ERROR, quick=0, long=COSTLY)
    laplace = _event(dp.LaplaceDpEvent(1.0))
    both = _event(dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.LaplaceDpEvent(1.0)]))
    gaussian = _event(dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 4))
    # 1. Short rows
    few: tuple[tuple[str, Any, Play, float], ...] = (
        ("zcdp", _ZCDP, Border(m=_FEW), _RHO),
        ("events", laplace, LaplaceNoise(m=_FEW), 1.0),
    )
    for audit, claim, play, parameter in few:
        trial = _trial(play, claim, parameter, error=HIGH)
        case = row(audit=audit, claim=claim.name, truth="few", error=HIGH, trial=trial)
        yield replace(case, quick=GAMES)
    # 2. Long ones
    noise = partial(simulate.gaussian, _MANY, 1.0)
    games: dict[str, tuple[str, Any, Play, float]] = {
        "border": ("zcdp", _ZCDP, Border(m=_MANY), _RHO),
        "gaussian": ("zcdp", _ZCDP, noise, _RHO),
        "laplace": ("events", laplace, LaplaceNoise(m=_MANY), 1.0),
        "composed": ("events", both, Composed(m=_MANY), 1.0),
        "gaussian-four-times": ("events", gaussian, noise, 1.0),
    }
    for truth, (audit, claim, play, parameter) in games.items():
        trial = _trial(play, claim, parameter)
        yield row(audit=audit, claim=claim.name, truth=truth, trial=trial)
    for truth in ("border", "composed"):
        audit, claim, play, parameter = games[truth]
        trial = _trial(play, claim, parameter, design="coins")
        yield row(
            audit=audit,
            claim=claim.name,
            cuts="planned",
            sides="both",
            truth=f"{truth}-of-one-run",
            trial=trial,
            long=DEAREST,
        )
    # 3. A bound on μ does not hold for half of its square
    translated = _trial(Border(m=4 * _MANY), GaussianDP(), (2 * _RHO) ** 0.5)
    yield row(
        audit="zcdp-trap",
        claim="ρ by Gaussian DP",  # noqa: RUF001 (Greek)
        truth="border",
        trial=translated,
        valid=False,
        long=FUTILE,
    )
