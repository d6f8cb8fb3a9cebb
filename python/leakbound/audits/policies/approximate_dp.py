"""Cut policies under (ε, δ)-DP, and the choice between them before labels are seen.

Each is a policy of `leakbound.cuts` that knows how many examples there are and how likely a failure
is.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

import leakbound._core as _core
from leakbound import cuts as policies
from leakbound._base import shares
from leakbound._base.messages import Message, Option
from leakbound._base.types import JsonObject, PathOrder, Sides, TailBound, TailOptions
from leakbound.audits.policies.reference import reference
from leakbound.claims.base import counts_of
from leakbound.cuts.games import Ties
from leakbound.cuts.outside_in import LadderPolicy, planned_rule
from leakbound.cuts.policy import B, DerivedPolicy
from leakbound.errors import OptionError

# The smallest number of guesses of a scan, where there are so many examples.
_FEWEST = 100
# Shares of the level that planning tries for failures.
_SHARES = (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5)
# Numbers of guesses at which it does.
_SHARED = 32
# Smaller levels than the best at the reference need more for failures, as each failure is a larger
# part of them: this much of the bound at the reference is given for that.
_GIVEN = 0.005
_FORMS: dict[TailBound, str] = {
    "exact": (
        "The largest probability of this many correct guesses that Theorem 3.1 of Mahloujifar et "
        "al. (2025) allows for the tradeoff curve e^ε x + δ, in closed form."
    ),
    "coupling": (
        "The guesses are dominated by independent ones and rare failures of known mean; a "
        "knapsack bounds their effect, whatever their dependence."
    ),
    "panoramia": "As published: Kazmi et al. (2024), Propositions 3 and 4.",
}


@dataclass(frozen=True, kw_only=True)
class ApproxPolicy(DerivedPolicy[B]):
    """A policy whose cuts are bounded as (ε, δ)-DP allows, for so many examples."""

    forms: ClassVar[tuple[TailBound, ...]]
    """The bounds on so many correct guesses that it has."""
    ties: ClassVar[Ties] = "broken"
    delta: float
    examples: int
    sides: Sides
    form: TailBound
    k: int = 2


class _ApproxScan(ApproxPolicy[policies.KLScan]):
    """All cuts at once, by coupling."""

    forms = ("coupling",)
    method = f"{policies.KLScan.method} {_FORMS['coupling']}"

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> policies.BestCut:
        return self.base.bound(path, order, level, self._failures(order))

    def curve(
        self, path: _core.Path, order: PathOrder, level: float, points: int, /
    ) -> policies.CurvePoints:
        return self.base.curve(path, order, level, points, self._failures(order))

    def _failures(self, order: PathOrder) -> float:
        """Return the mean number of guesses that a failure may make right."""
        failures = self.examples * self.delta
        if _one_sided(order):
            return failures / 2
        return failures


class _ApproxGrid(ApproxPolicy[policies.UnionBound | policies.Fixed]):
    """A few cuts, each by the tail bound of the claim."""

    forms = ("exact", "coupling", "panoramia")

    @property
    def method(self) -> str:
        return f"{self.base.design} {_FORMS[self.form]}"

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> policies.BestCut:
        return self.base.bound(path, order, level, self._tail(order))

    def curve(
        self, path: _core.Path, order: PathOrder, level: float, points: int, /
    ) -> policies.CurvePoints:
        if isinstance(self.base, policies.Fixed):
            return self.base.curve(path, order, level, points)
        return self.base.curve(path, order, level, points, self._tail(order))

    def _tail(self, order: PathOrder) -> TailOptions:
        return {
            "bound": self.form,
            "m": self.examples,
            "delta": self.delta,
            "k": self.k,
            "one_sided": _one_sided(order),
        }


def _one_sided(order: PathOrder) -> bool:
    """Return whether all guesses of a path are of one role."""
    return order not in {"interleaved", "pairs"}


@dataclass(frozen=True, kw_only=True)
class _ApproxOutsideIn(LadderPolicy, ApproxPolicy[policies.OutsideIn]):
    """The number of guesses chosen by labels from the outside in, under one joint bound."""

    forms = ("exact",)
    of_odds = False
    method = (
        f"{policies.OutsideIn.design} The count is tested by the largest probability that Theorem "
        "3.1 of Mahloujifar et al. (2025) allows number and count together for the tradeoff curve "
        "e^ε x + δ, in closed form."
    )
    planned: float | None = None
    """The level that numbers of guesses are planned for; None for that of the test."""

    def told(self, best: policies.BestCut, level: float, /) -> JsonObject:
        said: Any = super().told(best, level)["outside_in"]
        return {"outside_in": said | {"failures": self._failures(level)}}

    def rule(self, _examples: int, level: float, _sides: Sides, /) -> _core.OutsideIn:
        level = self.planned or level
        form = ("approximate", self.delta, self._failures(level), self.k)
        return planned_rule(self.base, self.examples, level, self.sides, *form)

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        one_sided = self.sides == "member"
        counts = counts_of(correct, guesses, self.examples, one_sided=one_sided, k=self.k)
        failures = self._failures(level)
        return _core.approx_joint_epsilon(counts, self.delta, shares.JOINT.of(level), failures)

    def _failures(self, level: float) -> float:
        """Return the share of the level that failures have, fixed before labels are seen.

        It is about the same at most of the level that numbers of guesses are planned for.
        """
        if self.planned and level > self.planned / 2:
            level = self.planned
        return failure_share(self.examples, level, self.delta, self.sides, self.k)


@lru_cache(maxsize=256)
def failure_share(examples: int, level: float, delta: float, sides: Sides, k: int = 2) -> float:
    """Return the largest share of the level for failures that proves nearly most of a few."""
    guessed_share, right_share = reference(sides, k)
    made = np.unique(np.rint(np.geomspace(1, examples, _SHARED))).astype(int)
    correct = np.floor(np.interp(made / examples, guessed_share, right_share) * examples).astype(
        int
    )
    correct = np.minimum(correct, made)
    one_sided = sides == "member"
    counts = [
        counts_of(right, guesses=guesses, m=examples, one_sided=one_sided, k=k)
        for guesses, right in zip(made.tolist(), correct.tolist(), strict=True)
    ]
    limits = _core.approx_joint_largest(counts, delta, level, _SHARES)
    most = max(limits)
    least = most - _GIVEN * abs(most)
    return max(share for share, limit in zip(_SHARES, limits, strict=True) if limit >= least)


# The policies that have a form under δ > 0, and which.
_BY_CUTS: dict[type[object], type[ApproxPolicy[Any]]] = {
    policies.Fixed: _ApproxGrid,
    policies.KLScan: _ApproxScan,
    policies.OutsideIn: _ApproxOutsideIn,
    policies.UnionBound: _ApproxGrid,
}


def approx_policy(
    cuts: policies.CutPolicy | None,
    delta: float,
    *,
    examples: int,
    sides: Sides,
    k: int = 2,
    forms: tuple[TailBound, ...] = ("exact", "coupling"),
) -> ApproxPolicy[policies.PathPolicy]:
    """Return the policy of an audit under (ε, δ)-DP, by the first of some forms that it has.

    Where a guess names one of more than two values, only the exact form is there.

    Without `cuts` it is `OutsideIn()`, and `UnionBound()` for the published form. Raise OptionError
    if the policy or its tail has no form under δ > 0.
    """
    if cuts is None:
        cuts = policies.OutsideIn()
        if forms == ("panoramia",):
            cuts = policies.UnionBound()
    if k > 2:
        forms = ("exact",)
    derived = _BY_CUTS.get(type(cuts))
    form = None
    if derived is not None:
        form = next((one for one in forms if one in derived.forms), None)
    if derived is None or form is None:
        usable = [kind for kind, one in _BY_CUTS.items() if {*forms} & {*one.forms}]
        listed = ", ".join(sorted(f"{{{kind.__name__}}}" for kind in usable))
        message = f"{{cuts}} is not for delta or gamma above 0: use one of {listed}"
        raise OptionError(Message(message, cuts=Option("cuts", type(cuts))))
    if isinstance(cuts, policies.UnionBound) and cuts.tail != "exact":
        message = "{cuts} is for pure DP: with delta or gamma above 0 the limits are exact"
        raise OptionError(Message(message, cuts=Option("cuts", cuts)))
    if isinstance(cuts, policies.KLScan) and cuts.min_guesses is None:
        # among few guesses one failure is worth a lot
        cuts = replace(cuts, min_guesses=min(_FEWEST, examples))
    return derived(base=cuts, delta=delta, examples=examples, sides=sides, form=form, k=k)
