"""Cut policies under (ε, δ)-DP, and the choice between them before labels are seen.

Each is a policy of `leakbound.cuts` that knows how many examples there are and how likely a failure
is. Guesses on a path with fewer guesses than examples are all of one role.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

import leakbound._core as _core
from leakbound._base.types import JsonValue, Relaxation, Sides, TailBound, TailOptions
from leakbound.audits.policies.reference import REFERENCE
from leakbound.claims import ApproxDP
from leakbound.claims.base import counts_of
from leakbound.cuts import (
    BestCut,
    CurvePoints,
    CutPolicy,
    Fixed,
    Game,
    KLScan,
    OutsideIn,
    PathPolicy,
    Proof,
    UnionBound,
)
from leakbound.cuts.outside_in import chosen_cut, marked
from leakbound.cuts.policies import GridPolicy
from leakbound.cuts.policy import Best, DerivedPolicy
from leakbound.errors import OptionError

_FEWEST = 100
"""The smallest number of guesses of a scan, where there are so many examples."""
_SHARES = (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5)
"""Shares of the level that planning tries for failures."""
_SHARED = 32
"""Numbers of guesses at which it does."""
_FORMS: dict[TailBound, str] = {
    "exact": (
        "The largest probability of so many correct guesses that Theorem 3.1 of Mahloujifar et al. "
        "(2025) allows for the tradeoff curve e^ε x + δ, in closed form."
    ),
    "coupling": (
        "The guesses are dominated by independent ones and rare failures of known mean; a "
        "knapsack bounds what these can do, whatever their dependence."
    ),
    "panoramia": "As published: Kazmi et al. (2024), Propositions 3 and 4.",
}


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """What a policy under (ε, δ)-DP has to know."""

    delta: float
    examples: int
    sides: Sides
    form: TailBound

    def one_sided(self, path: _core.Path) -> bool:
        if self.sides == "pairs":
            return False
        return self.sides == "member" or path.guesses < self.examples

    def options(self, path: _core.Path) -> TailOptions:
        return {
            "bound": self.form,
            "m": self.examples,
            "delta": self.delta,
            "k": 2,
            "one_sided": self.one_sided(path),
        }

    def failures(self, path: _core.Path) -> float:
        return (1 if self.one_sided(path) else 2) * self.examples * self.delta / 2


B = TypeVar("B", bound=PathPolicy)


@dataclass(frozen=True, kw_only=True)
class ApproxPolicy(DerivedPolicy[B]):
    """A policy with bounds that hold under (ε, δ)-DP."""

    forms: ClassVar[tuple[TailBound, ...]] = ("exact", "coupling", "panoramia")
    """The bounds on so many correct guesses that it has."""
    claim: _Claim

    @classmethod
    def of(cls, base: B, claim: _Claim) -> Self:
        """Return the policy with what stands for None filled in."""
        return cls(base=base, claim=claim)

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: beyond 1/δ failures outweigh what examples add."""
        return math.ceil(min(100_000, 1 / self.claim.delta))

    def with_size(self, guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`."""
        base = self.base.with_size(guesses, examples)
        return replace(self, base=base, claim=replace(self.claim, examples=examples))


class _ApproxScan(ApproxPolicy[KLScan]):
    """All cuts at once, by coupling."""

    forms: ClassVar[tuple[TailBound, ...]] = ("coupling",)

    @classmethod
    def of(cls, base: KLScan, claim: _Claim) -> Self:
        """Return the policy from the number of guesses on that failures leave worth testing."""
        least = base.min_guesses or min(_FEWEST, claim.examples)
        return cls(base=replace(base, min_guesses=least), claim=claim)

    @property
    def method(self) -> str:
        return f"{self.base.method} {_FORMS[self.claim.form]}"

    def bound(self, path: _core.Path, level: float, /) -> BestCut:
        return self.base.bound(path, level, failures=self.claim.failures(path))

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        return self.base.curve(path, level, points, failures=self.claim.failures(path))


class _ApproxGrid(ApproxPolicy[GridPolicy]):
    """A few cuts, each by the tail bound of the claim."""

    @property
    def method(self) -> str:
        return f"{self.base.design} {_FORMS[self.claim.form]}"

    def bound(self, path: _core.Path, level: float, /) -> BestCut:
        grid, ratio = self.base.grid_on(path)
        return _core.union_bound(
            path, beta=level, grid=grid, ratio=ratio, tail=self.claim.options(path)
        )

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        grid, ratio = self.base.grid_on(path)
        options = self.claim.options(path)
        return _core.union_curve(
            path, beta=level, grid=grid, ratio=ratio, tail=options, points=points
        )


class _ApproxFixed(_ApproxGrid):
    """One cut, which no other one is shown beside."""

    base: Fixed

    def bound(self, path: _core.Path, level: float, /) -> BestCut:
        return Best(super().bound(path, level).logit, *self.base.cut(path))

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        return self.base.curve(path, level, points)


_JOINT = (
    "The count is tested by the largest probability that Theorem 3.1 of Mahloujifar et al. (2025) "
    "allows number and count together for the tradeoff curve e^ε x + δ, in closed form."
)


@dataclass(frozen=True, kw_only=True)
class _Joint:
    """Limits that hold whatever number of guesses is chosen, by the output or from outside in."""

    claim: _Claim
    level: float

    @property
    def failures(self) -> float:
        """The share of the level that failures have, fixed before labels are seen."""
        claim = self.claim
        return failure_share(claim.examples, self.level, claim.delta, claim.sides)

    def plan(self, cuts: OutsideIn) -> _core.OutsideIn:
        """Return the ladder, and the rule that stops on it."""
        claim = self.claim
        return cuts.plan(
            claim.examples, self.level, claim.sides, "approximate", claim.delta, self.failures
        )

    def limit(self, guesses: int, correct: int) -> float:
        """Return the limit on ε of a count, not clipped."""
        one_sided = self.claim.sides == "member"
        counts = counts_of(correct, guesses, self.claim.examples, one_sided=one_sided)
        return _core.approx_joint_epsilon(counts, self.claim.delta, self.level, self.failures)


class _ApproxOutsideIn(ApproxPolicy[OutsideIn]):
    """The number of guesses chosen by labels from the outside in, under one joint bound."""

    forms: ClassVar[tuple[TailBound, ...]] = ("exact",)

    @property
    def method(self) -> str:
        return f"{self.base.design} {_JOINT}"

    def audit(self, game: Game, level: float, /) -> Proof:
        found = super().audit(game, level)
        best, claim = found.best, ApproxDP(delta=self.claim.delta)
        joint = _Joint(claim=self.claim, level=level)
        chosen: dict[str, JsonValue] = {
            "levels": list(joint.plan(self.base).levels),
            "guesses": best.cut,
            "bound_if_fixed": claim.lower_bound(
                best.successes,
                best.cut,
                self.claim.examples,
                level,
                one_sided=self.claim.sides == "member",
            ),
            "failures": joint.failures,
        }
        return replace(found, options=found.options | {"outside_in": chosen})

    def ladder(self, _examples: int, level: float, _sides: Sides, /) -> tuple[int, ...]:
        return tuple(_Joint(claim=self.claim, level=level).plan(self.base).levels)

    def bound(self, path: _core.Path, level: float, /) -> Best:
        joint = _Joint(claim=self.claim, level=level)
        guesses, correct = chosen_cut(joint.plan(self.base), path)
        return Best(joint.limit(guesses, correct), guesses, correct)

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        best = self.bound(path, level)
        return marked(path, points, best.cut, best.logit)


@lru_cache(maxsize=256)
def failure_share(examples: int, level: float, delta: float, sides: Sides) -> float:
    """Return the share of the level for failures that proves most at the reference, of a few."""
    guessed, right = REFERENCE.curve(sides)
    made = np.unique(np.rint(np.geomspace(1, examples, _SHARED))).astype(int)
    correct = np.floor(np.interp(made / examples, guessed, right) * examples).astype(int)

    def proved(share: float) -> float:
        limits = (
            _core.approx_joint_epsilon(
                counts_of(c, r, examples, one_sided=sides == "member"),
                delta,
                level,
                share,
            )
            for r, c in zip(made.tolist(), np.minimum(correct, made).tolist(), strict=True)
        )
        return max(limits)

    return max(_SHARES, key=proved)


_BY_CUTS: dict[type[PathPolicy], type[ApproxPolicy[Any]]] = {
    Fixed: _ApproxFixed,
    KLScan: _ApproxScan,
    OutsideIn: _ApproxOutsideIn,
    UnionBound: _ApproxGrid,
}
"""The policies that have a form under δ > 0, and which."""


def _derived(cuts: CutPolicy) -> type[ApproxPolicy[Any]] | None:
    return next((form for kind, form in _BY_CUTS.items() if isinstance(cuts, kind)), None)


def _check_tail(cuts: CutPolicy) -> None:
    """Refuse a tail that has no form where guarantees may fail."""
    if isinstance(cuts, UnionBound) and cuts.tail != "exact":
        message = (
            f'UnionBound(tail="{cuts.tail}") is for pure DP: where delta or gamma is above 0 the '
            "limits are exact"
        )
        raise OptionError(message)


def approx_policy(
    cuts: CutPolicy | None, delta: float, *, examples: int, sides: Sides
) -> tuple[ApproxPolicy[PathPolicy], dict[str, JsonValue]]:
    """Return the policy of an audit under (ε, δ)-DP, fixed before labels are seen, and options.

    Without `cuts` it is `OutsideIn()`. Raise OptionError if the policy or its tail
    has no form under δ > 0.
    """
    cuts = OutsideIn() if cuts is None else cuts
    derived = _derived(cuts)
    if derived is None:
        message = (
            f"cuts={type(cuts).__name__} is for pure DP: under delta > 0 take OutsideIn, Fixed, "
            "KLScan or UnionBound"
        )
        raise OptionError(message)
    _check_tail(cuts)
    form = derived.forms[0]
    context = _Claim(delta=delta, examples=examples, sides=sides, form=form)
    return derived.of(cuts, context), {"bound": form}


def relaxed_policy(
    cuts: CutPolicy | None, failures: float, relaxation: Relaxation, *, examples: int
) -> ApproxPolicy[PathPolicy]:
    """Return the policy for guesses of "member" about members and generated points.

    Without `cuts` it is `OutsideIn()`, or for the published form `UnionBound()`; `failures` is
    γ + δ - γδ. Raise OptionError if the policy has no such form.
    """
    if cuts is None:
        cuts = UnionBound() if relaxation == "published" else OutsideIn()
    _check_tail(cuts)
    allowed: tuple[TailBound, ...]
    allowed = ("panoramia",) if relaxation == "published" else ("coupling", "exact")
    derived = _derived(cuts)
    forms = () if derived is None else derived.forms
    form = next((form for form in allowed if form in forms), None)
    if derived is None or form is None:
        fit = [kind for kind, one in _BY_CUTS.items() if not set(allowed).isdisjoint(one.forms)]
        listed = ", ".join(sorted(kind.__name__ for kind in fit))
        message = (
            f"cuts={type(cuts).__name__} has no {relaxation} form: with gamma or delta above 0 "
            f"take one of {listed}"
        )
        raise OptionError(message)
    context = _Claim(delta=failures, examples=examples, sides="member", form=form)
    return derived.of(cuts, context)
