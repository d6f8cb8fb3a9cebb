"""Cases of guesses of two roles: curves that bound each otherwise, rare failures, tied streams."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits.designs import audit_of
from leakbound.claims import ApproxDP, PureDP, TradeOffFamily
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import Fixed
from validity.games import Boundary, Played
from validity.lengths import COSTLY, DEAR
from validity.shifted import Shifted
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR, Stream, ZeroRun

__all__ = ["SHARE", "GivenAway", "Told", "asymmetric_cases", "share_family"]

Told: TypeAlias = Literal["members", "non-members"]

SHARE = 0.4
"""Share of those told of that a mechanism gives away."""
_M = 200
_FAILURE = 0.02
_SIDES: tuple[SidesChoice, ...] = ("both", "member")
_FIXED: dict[str, Any] = {"cuts": Fixed(60)}
_CORRECTIONS: dict[str, dict[str, Any]] = {
    "match": {"correction": "match", "adversary": "raw"},
    "tamper": {"correction": "tamper", "adversary": "raw"},
}


def _members_told(share: float) -> TradeOff:
    return TradeOff.table([0, 1], [1 - share, 0])


def _others_told(share: float) -> TradeOff:
    return TradeOff.table([0, 1 - share, 1], [1, 0, 0])


_CURVES = {"members": _members_told, "non-members": _others_told}


def share_family(told: Told, least: float) -> TradeOffFamily:
    """Return the claim that at most a share of one kind is given away, from a least one on."""
    return TradeOffFamily(parameter="share", tradeoff=_CURVES[told], bracket=(least, 0.99))


def _scores(told: Told, member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return scores that give a share of one kind away, and are independent of the rest."""
    known = (member == (told == "members")) & (rng.random(member.size) < SHARE)
    return rng.random(member.size) + np.where(known, np.where(member, 5, -5), 0)


@dataclass(frozen=True, kw_only=True)
class GivenAway:
    """Fair coins, and a mechanism that gives a share of one kind away."""

    m: int
    told: Told

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed; its ε is infinite."""
        rng = stream("given-away", seed)
        member = rng.random(self.m) < 0.5
        return Played(_scores(self.told, member, rng), member, math.inf)


@dataclass(frozen=True)
class _Asymmetric:
    """Whether an audit rejects the curve of a mechanism that gives a share of one kind away.

    The curves of the two kinds are mirror images of each other, and no smaller share is looked at.
    With `shift`, propensities lie between .3 and .7.
    """

    told: Told
    sides: SidesChoice
    shift: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = stream("asymmetric", seed)
        propensity = 0.3 + 0.4 * rng.random(_M) if self.shift else np.full(_M, 0.5)
        member = rng.random(_M) < propensity
        scores = _scores(self.told, member, rng)
        how: dict[str, Any] = {
            "claim": share_family(self.told, SHARE),
            "confidence": 1 - ERROR,
            "sides": self.sides,
            "seed": 2 * seed + 1,
        }
        if self.shift:
            result = audit_of(
                "zero_run", scores, member=member, propensity=propensity, **how, **self.options
            )
            return bool(result.bound > 0)
        return bool(audit_of("coins", scores, member=member, **how, **self.options).bound > 0)


def asymmetric_cases() -> Iterator[Case]:
    """Yield cases in which guesses of members and of non-members are not alike."""
    told: Told
    for told in ("members", "non-members"):
        for sides in _SIDES:
            row: dict[str, Any] = {"claim": "share", "sides": sides, "truth": f"{told}-told"}
            counts: dict[str, Any] = {"error": ERROR, "long": COSTLY}
            trial = _Asymmetric(told, sides, options=_FIXED)
            yield Case(audit="one-run", cuts="fixed", trial=trial, **row, **counts)
            for cuts, options in _CORRECTIONS.items():
                trial = _Asymmetric(told, sides, shift=True, options=options | _FIXED)
                yield Case(audit="zero-run", cuts=cuts, trial=trial, **row, **counts)
    yield from _failing()
    yield from _tied()


def _failing() -> Iterator[Case]:
    claim = ApproxDP(delta=_FAILURE)
    for sides in _SIDES:
        options = {"correction": "tamper", "sides": sides, "cuts": Fixed(60)}
        game = Shifted(m=_M, kind="response", shift=1.5, failure=_FAILURE)
        yield Case(
            audit="zero-run",
            claim=claim.name,
            cuts="tamper",
            sides=sides,
            truth="shifted-failures",
            error=ERROR,
            trial=ZeroRun(game, claim, options),
            long=DEAR,
        )


def _tied() -> Iterator[Case]:
    for sides in _SIDES:
        for p in (0.5, 0.73):
            yield Case(
                audit="stream",
                claim=PureDP().name,
                cuts="ville",
                sides=sides,
                truth=f"p={p:g},tied",
                error=ERROR,
                trial=Stream(Boundary(m=30, p=p, tied=True), sides),
                long=COSTLY,
            )
