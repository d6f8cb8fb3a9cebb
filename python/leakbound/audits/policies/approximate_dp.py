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
_FEWEST_GUESSES = 100
# Shares of the level that planning tries for failures.
_FAILURE_SHARES = (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5)
# Numbers of guesses at which it does.
_PLANNED_NUMBERS = 32
# Smaller levels than the best at the reference need more for failures, as each failure is a larger
# part of them: this much of the bound at the reference is given for that.
_LOSS_AT_REFERENCE = 0.005
_THEOREMS_OF_FORMS: dict[TailBound, str] = {
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
    method = f"{policies.KLScan.method} {_THEOREMS_OF_FORMS['coupling']}"

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> policies.BestCut:
        return self.base.bound(path, order, level, self._mean_failures(order))

    def curve(
        self, path: _core.Path, order: PathOrder, level: float, points: int, /
    ) -> policies.CurvePoints:
        return self.base.curve(path, order, level, points, self._mean_failures(order))

    def _mean_failures(self, order: PathOrder) -> float:
        """Return the mean number of guesses that a failure may make right."""
        mean_failures = self.examples * self.delta
        if _are_of_one_role(order):
            return mean_failures / 2
        return mean_failures


class _ApproxGrid(ApproxPolicy[policies.UnionBound | policies.Fixed]):
    """A few cuts, each by the tail bound of the claim."""

    forms = ("exact", "coupling", "panoramia")

    @property
    def method(self) -> str:
        return f"{self.base.design} {_THEOREMS_OF_FORMS[self.form]}"

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> policies.BestCut:
        return self.base.bound(path, order, level, self._tail_options(order))

    def curve(
        self, path: _core.Path, order: PathOrder, level: float, points: int, /
    ) -> policies.CurvePoints:
        if isinstance(self.base, policies.Fixed):
            return self.base.curve(path, order, level, points)
        return self.base.curve(path, order, level, points, self._tail_options(order))

    def _tail_options(self, order: PathOrder) -> TailOptions:
        return {
            "bound": self.form,
            "m": self.examples,
            "delta": self.delta,
            "k": self.k,
            "one_sided": _are_of_one_role(order),
        }


def _are_of_one_role(order: PathOrder) -> bool:
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
        chosen_level: Any = super().told(best, level)["outside_in"]
        failures = self._failure_share(level)
        return {"outside_in": chosen_level | {"failures": failures}}

    def rule(self, _examples: int, level: float, _sides: Sides, /) -> _core.OutsideIn:
        planned_level = self.planned or level
        failures = self._failure_share(planned_level)
        # By position: rules are remembered by how they are asked for.
        form = ("approximate", self.delta, failures, self.k)
        return planned_rule(self.base, self.examples, planned_level, self.sides, *form)

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        one_sided = self.sides == "member"
        counts = counts_of(correct, guesses, self.examples, one_sided=one_sided, k=self.k)
        joint_level = shares.JOINT.of(level)
        failures = self._failure_share(level)
        return _core.approx_joint_epsilon(counts, self.delta, joint_level, failures)

    def _failure_share(self, level: float) -> float:
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
    spaced_guesses = np.rint(np.geomspace(1, examples, _PLANNED_NUMBERS))
    guesses = np.unique(spaced_guesses).astype(int)
    right_shares = np.interp(guesses / examples, guessed_share, right_share)
    correct_guesses = np.floor(right_shares * examples).astype(int)
    correct_guesses = np.minimum(correct_guesses, guesses)
    one_sided = sides == "member"
    planned_counts = []
    for made, correct in zip(guesses.tolist(), correct_guesses.tolist(), strict=True):
        counts = counts_of(correct, guesses=made, m=examples, one_sided=one_sided, k=k)
        planned_counts.append(counts)
    largest_bounds = _core.approx_joint_largest(planned_counts, delta, level, _FAILURE_SHARES)
    best_bound = max(largest_bounds)
    least_bound = best_bound - _LOSS_AT_REFERENCE * abs(best_bound)
    bound_of_shares = zip(_FAILURE_SHARES, largest_bounds, strict=True)
    return max(share for share, bound in bound_of_shares if bound >= least_bound)


# The policies that have a form under δ > 0, and which.
_POLICIES_BY_CUTS: dict[type[object], type[ApproxPolicy[Any]]] = {
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
    derived = _POLICIES_BY_CUTS.get(type(cuts))
    form = None
    if derived is not None:
        form = next((form for form in forms if form in derived.forms), None)
    if derived is None or form is None:
        usable_names = []
        for policy_class, derived_class in _POLICIES_BY_CUTS.items():
            if set(forms) & set(derived_class.forms):
                usable_names.append(f"{{{policy_class.__name__}}}")
        listed = ", ".join(sorted(usable_names))
        message = f"{{cuts}} is not for delta or gamma above 0: use one of {listed}"
        raise OptionError(Message(message, cuts=Option("cuts", type(cuts))))
    if isinstance(cuts, policies.UnionBound) and cuts.tail != "exact":
        message = "{cuts} is for pure DP: with delta or gamma above 0 the limits are exact"
        raise OptionError(Message(message, cuts=Option("cuts", cuts)))
    if isinstance(cuts, policies.KLScan) and cuts.min_guesses is None:
        # among few guesses one failure is worth a lot
        fewest_guesses = min(_FEWEST_GUESSES, examples)
        cuts = replace(cuts, min_guesses=fewest_guesses)
    return derived(base=cuts, delta=delta, examples=examples, sides=sides, form=form, k=k)
