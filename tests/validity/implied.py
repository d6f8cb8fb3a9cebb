"""Rows of what bounds imply: advantage, TPR at low FPR and posterior, against closed forms."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any, Protocol, cast

from leakbound import simulate
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import Fixed
from leakbound.results import AuditResult, Implied
from leakbound.results.base import Audit, implied_by
from validity.asymmetric import SHARE, GivenAway, Told, share_family
from validity.games import LaplaceNoise
from validity.lengths import COSTLY, DEAR, DEAREST
from validity.shifted import Shifted
from validity.suite import Case
from validity.trials import ERROR, OneRun, ZeroRun

__all__ = ["CLOSED", "Implies", "implied_cases"]


class Trial(Protocol):
    """A trial that returns what it played and the result of auditing it."""

    def outcome(self, seed: int) -> tuple[object, Audit]:
        """Return the game of a seed and the result of its audit."""
        ...


_M = 150
_RARE = 1e-6
"""δ, so small that no failure happens."""
_LEAST = 0.01
"""The least share that a bound is looked for at."""
_FIXED: dict[str, Any] = {"cuts": Fixed(75)}


def _attained(advantage: float, power: Callable[[float], float]) -> Implied:
    """Return what the best attack attains, of its advantage and its power at a rate."""
    low = power(0.001)
    return Implied(advantage, low, power(0.01), low / (low + 0.001))


def _gaussian_power(rate: float) -> float:
    normal = NormalDist()
    return normal.cdf(1 + normal.inv_cdf(rate))


CLOSED: dict[str, Implied] = {
    "response": _attained(math.tanh(0.5), lambda rate: math.e * rate),
    "gaussian": _attained(2 * NormalDist().cdf(0.5) - 1, _gaussian_power),
    "laplace": _attained(-math.expm1(-0.5), lambda rate: math.e * rate),
    "members-told": _attained(SHARE, lambda rate: SHARE + (1 - SHARE) * rate),
    "non-members-told": _attained(SHARE, lambda rate: rate / (1 - SHARE)),
}
"""Of randomised response at ε = 1, noise at μ = 1, and a share of one kind that is given away."""

_QUANTITIES: dict[str, tuple[str, ...]] = {
    "advantage": ("advantage",),
    "TPR@0.1%": ("tpr_at_fpr_0_001",),
    "TPR@1%": ("tpr_at_fpr_0_01",),
    "posterior": ("posterior",),
}
_ALL = "all-four"
_QUANTITIES[_ALL] = tuple(name for names in _QUANTITIES.values() for name in names)


@dataclass(frozen=True)
class Implies:
    """Whether any of some numbers implied by a bound is above what the best attack attains.

    With `hull`, numbers are those of the curve that guesses of both sides were tested against,
    which is no curve of the family if that is not its own mirror image.
    """

    trial: Trial
    truth: Implied
    names: tuple[str, ...]
    hull: bool = False

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, audit it and read what is implied."""
        _, result = self.trial.outcome(seed)
        hull = cast("AuditResult", result).rejected if self.hull else None
        found: Implied | None = implied_by(hull) if self.hull else result.implied()
        return any(getattr(found, name) > getattr(self.truth, name) for name in self.names)


def implied_cases() -> Iterator[Case]:
    """Yield the rows of what bounds imply, at the boundary of each claim."""
    games: tuple[tuple[str, Callable[..., Any], Claim, dict[str, Any]], ...] = (
        ("response", partial(simulate.randomized_response, _M, 1.0), PureDP(), {}),
        ("response", partial(simulate.randomized_response, 2 * _M, 1.0), ApproxDP(delta=_RARE), {}),
        ("gaussian", partial(simulate.gaussian, _M, 1.0), GaussianDP(), _FIXED),
        ("laplace", LaplaceNoise(m=_M), LaplaceDP(), _FIXED),
    )
    for truth, play, claim, options in games:
        for words in _QUANTITIES:
            yield _case("one-run", claim, words, truth, OneRun(play, claim, options))
        one_sided = OneRun(play, claim, options | {"sides": "member"})
        yield _case("one-run", claim, _ALL, truth, one_sided, sides="member")
    planned = OneRun(partial(simulate.gaussian, _M, 1.0), GaussianDP())
    yield _case("one-run", GaussianDP(), f"{_ALL},planned", "gaussian", planned, long=COSTLY)
    yield from _of_other_audits()
    yield from _of_two_roles()


def _of_other_audits() -> Iterator[Case]:
    for truth, claim, options in (
        ("response", PureDP(), {}),
        ("gaussian", GaussianDP(), {"cuts": Fixed(40)}),
    ):
        kind: Any = truth
        audit = ZeroRun(Shifted(m=_M, kind=kind), claim, {"correction": "match", **options})
        yield _case("zero-run", claim, _ALL, truth, audit)


def _of_two_roles() -> Iterator[Case]:
    """Yield cases of curves that are not their own mirror image, and the trap of their hull."""
    claims: dict[Told, Claim] = {
        told: share_family(told, _LEAST) for told in ("members", "non-members")
    }
    for told, claim in claims.items():
        for sides in ("both", "member"):
            audit = OneRun(GivenAway(m=_M, told=told), claim, {**_FIXED, "sides": sides})
            yield _case("one-run", claim, _ALL, f"{told}-told", audit, sides=sides, long=DEAREST)
    claim = claims["non-members"]
    audit = OneRun(GivenAway(m=_M, told="non-members"), claim, _FIXED)
    yield Case(
        audit="trap",
        claim=claim.name,
        cuts="implied-by-hull",
        sides="both",
        truth="non-members-told",
        error=ERROR,
        trial=Implies(audit, CLOSED["non-members-told"], _QUANTITIES[_ALL], hull=True),
        valid=False,
        quick=0,
        long=DEAREST,
    )


def _case(
    audit: str,
    claim: Claim,
    words: str,
    truth: str,
    trial: Trial,
    *,
    sides: str = "both",
    long: int = DEAR,
) -> Case:
    """Return the case of what is implied by a bound: one number, or any of all."""
    return Case(
        audit=audit,
        claim=claim.name,
        cuts=f"implied-{words}",
        sides=sides,
        truth=truth,
        error=ERROR,
        trial=Implies(trial, CLOSED[truth], _QUANTITIES[words.partition(",")[0]]),
        long=long,
    )
