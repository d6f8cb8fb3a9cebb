"""Coins that are not fair: every guess has a chance of its own at ε = 0.

If example i is a member with probability πᵢ, a correct guess of "member" has odds of at most
e^ε πᵢ/(1 - πᵢ) and one of "non-member" of at most e^ε (1 - πᵢ)/πᵢ, given the trained model and all
other coins. So guess i is right with probability at most σ(ε + tᵢ logit πᵢ), tᵢ = ±1 its sign.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray, PathOrder, Sides
from leakbound.cuts import ORDERS, CurvePoints, CutPolicy, Fixed, KLScan, PathPolicy
from leakbound.cuts.policy import Best, DerivedPolicy
from leakbound.errors import OptionError

_HALF = 0.5
_FARTHEST = 300.0
"""The largest log-odds of a prior, either way, that the scan takes."""


@dataclass(frozen=True, eq=False)
class _Visit:
    """One path, and the log-odds of each of its guesses at ε = 0."""

    path: _core.Path
    offsets: FloatArray


B = TypeVar("B", bound=PathPolicy)


@dataclass(frozen=True, kw_only=True, eq=False)
class PriorPolicy(DerivedPolicy[B]):
    """A policy with bounds that hold where guesses have unlike chances, on one path of several.

    `member` and `log_odds`, logit πᵢ, are those of the examples, for the attack that knows them.
    """

    visits: Mapping[PathOrder, _Visit]
    member: BoolArray
    log_odds: FloatArray
    sides: Sides
    order: PathOrder = "member"

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: examples like these are repeated so often at most."""
        return 10 * self.member.size

    def routes(self, sides: Sides) -> dict[PathOrder, PathPolicy]:
        """See `PathPolicy.routes`."""
        return {order: replace(self, order=order) for order in self.orders(sides)}

    def path(self, _ranking: _core.Ranking, order: PathOrder, /) -> _core.Path:
        """See `PathPolicy.path`: roles part at the expected number of members."""
        return self.visits[order].path

    def bound(self, path: _core.Path, level: float, /) -> Best:
        """See `PathPolicy.bound`."""
        return self._bound(_Visit(path, self.visits[self.order].offsets), level)

    @abstractmethod
    def _bound(self, visit: _Visit, level: float) -> Best:
        """Return a bound on ε in the place of one on log-odds."""

    def curve(self, path: _core.Path, _level: float, points: int, /) -> CurvePoints:
        """See `PathPolicy.curve`: only the chosen cut has a bound of its own."""
        guesses, correct = path.sample(points)
        return guesses, correct, np.full(guesses.size, np.nan)

    def perfect(
        self, _order: PathOrder, _examples: int, level: float, _most: int | None, /
    ) -> float:
        """See `PathPolicy.perfect`: all members first, the least likely of them at the top."""
        sign = np.where(self.member, 1.0, -1.0)
        scores = 3 * _FARTHEST * sign - self.log_odds
        orders = self.orders(self.sides)
        visits = _visits(scores, self.member, self.log_odds, orders, sides=self.sides)
        return max(self._bound(visit, level).logit for visit in visits.values())

    def with_size(self, guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`: examples like these, as often as it takes."""
        return replace(
            self,
            base=self.base.with_size(guesses, examples),
            member=np.resize(self.member, examples),
            log_odds=np.resize(self.log_odds, examples),
        )


class _PriorFixed(PriorPolicy[Fixed]):
    """One cut, by the Poisson-binomial tail."""

    @property
    def method(self) -> str:
        return (
            "One cut, fixed in advance: the largest ε at which a sum of unlike Bernoulli "
            "variables is rarely so large (Poisson binomial)."
        )

    def _bound(self, visit: _Visit, level: float) -> Best:
        guesses, correct = self.base.cut(visit.path)
        epsilon = _core.poisson_binomial_epsilon(
            visit.offsets[:guesses], np.array([correct]), beta=level, counts=None
        )
        return Best(float(epsilon[0]), guesses, correct)


class _PriorScan(PriorPolicy[KLScan]):
    """All cuts at once, by a walk of unlike steps."""

    @property
    def method(self) -> str:
        return f"{self.base.method} Steps of the walk have unlike probabilities."

    def at_level(self, level: float, /) -> KLScan:
        return replace(self.base.at_level(level), grid="all")

    def _bound(self, visit: _Visit, level: float) -> Best:
        scan = self.base.at_level(level)
        best = _core.kl_scan_offsets(
            visit.path,
            visit.offsets,
            beta=level,
            kappa=scan.kappa,
            min_guesses=scan.min_guesses or 1,
        )
        return Best(best.epsilon, best.cut, best.successes)


_BY_CUTS: dict[type[PathPolicy], type[PriorPolicy[Any]]] = {Fixed: _PriorFixed, KLScan: _PriorScan}
"""The policies that have a form for unlike guesses, and which."""


def prior_policy(
    cuts: CutPolicy | None,
    scores: FloatArray,
    member: BoolArray,
    prior: FloatArray,
    *,
    sides: Sides,
) -> PriorPolicy[PathPolicy]:
    """Return the policy of an audit of pure DP with coins that are not fair; scores are distinct.

    Without `cuts` it is `KLScan()`. Raise OptionError if there is no such form.
    """
    base = KLScan() if cuts is None else cuts
    derived = next((form for kind, form in _BY_CUTS.items() if isinstance(base, kind)), None)
    if derived is None:
        message = (
            f"cuts={type(base).__name__} needs guesses that are all alike: with a prior other than "
            "1/2 take KLScan or Fixed"
        )
        raise OptionError(message)
    base.check(scores.size)
    log_odds = np.log(prior) - np.log1p(-prior)
    log_odds = np.clip(log_odds, -_FARTHEST, _FARTHEST)
    visits = _visits(scores, member, log_odds, ORDERS[sides], sides=sides)
    return derived(base=base, visits=visits, member=member, log_odds=log_odds, sides=sides)


def _visits(
    scores: FloatArray,
    member: BoolArray,
    log_odds: FloatArray,
    orders: tuple[PathOrder, ...],
    *,
    sides: Sides,
) -> dict[PathOrder, _Visit]:
    """Return the paths through a ranking, roles parted at the expected number of members."""
    down = np.argsort(-scores, kind="stable")
    expected = round(float(expit(log_odds).sum()))
    upper = min(max(1, expected), scores.size - 1) if sides == "both" else scores.size
    top, bottom = down[:upper], down[upper:][::-1]
    turn = np.argsort(
        np.concatenate([2 * np.arange(top.size), 2 * np.arange(bottom.size) + 1]), kind="stable"
    )
    rows = {
        "member": top,
        "member_half": top,
        "nonmember_half": bottom,
        "interleaved": np.concatenate([top, bottom])[turn],
    }
    guessed = np.zeros(scores.size, dtype=np.bool_)
    guessed[top] = True
    offsets = np.where(guessed, log_odds, -log_odds)
    right = guessed == member
    return {
        order: _Visit(_core.Path.from_successes(right[rows[order]]), offsets[rows[order]])
        for order in orders
    }
