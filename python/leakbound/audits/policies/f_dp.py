"""Cut policies under a family of trade-off functions, with one number of guesses or several.

Bounds are on the parameter of the family; 0 means that nothing is rejected. Where labels choose
the number of guesses, `leakbound_core::fdp::certificate::joint` states the theorem: levels are
named before labels are seen, the one that is tested depends on scores, and on labels beyond it at
most.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.messages import Message, Option
from leakbound._base.types import CountOptions, FloatArray, IntArray, PathOrder, Sides
from leakbound.claims import AnyFamily, GaussianDP, LaplaceDP
from leakbound.claims.base import counts_of, unexplained
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import CutPolicy, Fixed, OutsideIn, UnionBound
from leakbound.cuts.games import Ties
from leakbound.cuts.outside_in import LadderPolicy, planned_rule
from leakbound.cuts.policy import ORDERS, B, Best, DerivedPolicy
from leakbound.errors import OptionError
from leakbound.results.one_run import valued

_TEST = (
    "The count is tested against the worst distribution that the inequalities for all sets of "
    "counts allow, with a proof that none is worse; or by Algorithm 3 of Mahloujifar et al. "
    "(2025), where that rejects more."
)
# Critical values are rounded down to so many steps between powers of two: see `_certified_bound`.
_GRID_STEPS = 2.0**20
# A proof made at a parameter within this share of what it proves is as good as any.
_NEAR_SHARE = 0.04
# Where proofs begin at a proxy, they are made at what the one before proves: so often, and of a
# profile so often at most, until one gains no more than a share.
_MOST_ROUNDS = 1
_MOST_ROUNDS_OF_PROFILE = 8
_LEAST_GAIN = 1e-3
# Bits of a δ that a search for a proof is shown, and of the level over the number of examples.
_BITS_OF_DELTA = 20
_BITS_OF_SMALLEST = 14


@dataclass(frozen=True, kw_only=True)
class FamilyPolicy(DerivedPolicy[B]):
    """A policy whose bounds are on a family of trade-off functions."""

    ties: ClassVar[Ties] = "broken"
    of_odds = False
    claim: AnyFamily
    examples: int
    sides: Sides
    k: int = 2

    def valued(self, bound: float, _symbol: str, /) -> str:
        """See `PathPolicy.valued`."""
        return valued(self.claim, value=bound, sides=self.sides)

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`: the one path that guesses of both sides, or of one, take."""
        return ORDERS[sides][-1:]

    def unproved(self, guesses: int, correct: int, level: float, /) -> str:
        """See `PathPolicy.unproved`: fair coins hardly give a count that no mechanism explains."""
        if not unexplained(self._counts_of_guesses(guesses, correct), level):
            return super().unproved(guesses, correct, level)
        return (
            f"of {guesses} guesses of “member” {correct} are right, which fair coins give with "
            f"probability below {level:g} whatever the mechanism tells: the coins are in doubt"
        )

    def _counts_of_guesses(self, guesses: int, correct: int) -> CountOptions:
        one_sided = self.sides == "member"
        return counts_of(correct, guesses=guesses, m=self.examples, one_sided=one_sided, k=self.k)


class GridFamily(FamilyPolicy[Fixed | UnionBound]):
    """A few cuts, each at an equal share of the level."""

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return f"{self.base.design} {_TEST}"

    def bound(self, path: _core.Path, _order: PathOrder, level: float, /) -> Best:
        """See `PathPolicy.bound`; a cut that rejects no more than one before need not be solved."""
        counts_at_cuts = [path.count(cut) for cut in self.base.cuts(path.guesses)]
        level_of_cut = shares.FAMILY_GRID.of(level, len(counts_at_cuts))
        best = Best(0.0, *counts_at_cuts[0])
        for guesses, correct in counts_at_cuts:
            counts = self._counts_of_guesses(guesses, correct)
            if best.logit:
                curve = self.claim.curve(best.logit, self.sides)
                if not _core.fdp_rejects(counts, curve.core, level_of_cut, "tight"):
                    continue
            critical_parameter = self.claim.critical(counts, level_of_cut, "tight") or 0.0
            if critical_parameter > best.logit:
                best = Best(critical_parameter, guesses, correct)
        return best


@dataclass(frozen=True, kw_only=True)
class JointTest:
    """What counts prove of a family where one of several numbers of guesses was chosen.

    `tau` are the levels of Algorithm 3 whose least counts are the vector v(t): those of so many
    examples as are there, or as were planned for. A certificate of some vector holds with fewer
    examples too, so that a bound by one vector, `planned` being the same, falls as examples are
    added.
    """

    claim: AnyFamily
    levels: tuple[int, ...]
    tau: tuple[float, ...]
    examples: int
    sides: Sides
    level: float
    k: int = 2
    planned: int | None = None

    @property
    def proxy(self) -> GaussianDP | LaplaceDP:
        """The family whose critical values weigh levels against each other."""
        if isinstance(self.claim, GaussianDP | LaplaceDP):
            return self.claim
        return GaussianDP()

    def counts(self, index: int, correct: int) -> CountOptions:
        """Return the counts of so many correct guesses at a level."""
        one_sided = self.sides == "member"
        guesses = self.levels[index]
        return counts_of(correct, guesses=guesses, m=self.examples, one_sided=one_sided, k=self.k)

    def as_planned(self) -> "JointTest":
        """Return the test of as many examples as were planned for."""
        if self.planned is None:
            return self
        return replace(self, examples=self.planned, planned=None)

    def rough(self, index: int, correct: int) -> float:
        """Return what Algorithm 3 alone would prove of the proxy at a level."""
        counts = self.counts(index, correct)
        return self.proxy.critical(counts, self.tau[index], "recursion") or 0.0

    def quick(self, index: int, correct: int) -> float:
        """Return about what a certificate would prove of the proxy.

        It is what Algorithm 3 would prove at the whole level, were this number fixed in advance:
        seldom as much as 2 % less than the certificate, as that corrects for the choice.
        """
        counts = self.counts(index, correct)
        return self.proxy.critical(counts, self.level, "recursion") or 0.0

    def bound(self, index: int, correct: int) -> float:
        """Return the bound that so many correct guesses at a level prove, 0 for nothing."""
        if unexplained(self.counts(index, correct), self.level):
            return 0.0
        find = _certified_bound
        if self.proxy is self.claim:
            find = _remembered_certified_bound
        return find(self, index, correct)


def _certified_bound(test: JointTest, index: int, correct: int) -> float:
    """Return the bound that `correct` guesses right at a level prove, 0 for nothing.

    What is reported is proved of the vector v(t), at whichever curve the proof was made; vectors
    are nested in t, so that the least of those that prove too much bounds all of them. t is rounded
    down to a grid so coarse that roundings of the recursion cannot make the least counts of two of
    its values fall; the count seen is then compared with that of its level once more.
    """
    # 1. The value t of the proxy that the count reaches, rounded down, and its least counts v(t).
    claim = test.claim
    proxy = test.proxy
    sides = test.sides
    level = test.level
    planned_test = test.as_planned()
    critical_parameter = planned_test.rough(index, correct)
    if not critical_parameter:
        return 0.0
    t = _rounded_to_grid(critical_parameter)
    proxy_curve_at_t = proxy.curve(t, sides)
    no_correct_guesses = [planned_test.counts(place, 0) for place in range(len(test.levels))]
    least_counts = _core.fdp_least_rejected(no_correct_guesses, proxy_curve_at_t.core, test.tau)
    if correct < least_counts[index]:
        return 0.0
    tested_counts = []
    for place, least_count in enumerate(least_counts):
        if least_count <= test.levels[place]:
            tested_counts.append(test.counts(place, least_count))
    if proxy is not claim:
        certificate = _core.JointCertificate(tested_counts, proxy_curve_at_t.core)
        return _certified_bound_from_proxy(test, index, correct, certificate)
    # 2. A certificate of v(t), made at the parameter that it is expected to prove; and once more at
    # the one that it proves, if that is not close. Searches along curves with an edge are not sure
    # to come from there to a proof. It is on the grid too: last bits would lead to another proof.
    expected = t
    if isinstance(claim, GaussianDP):
        expected = max(t, _rounded_to_grid(test.quick(index, correct)))
    curve_at_expected = claim.curve(expected, sides)
    certificate = _core.JointCertificate(tested_counts, curve_at_expected.core)
    first_bound = _certified_parameter(claim, certificate, sides, level, expected)
    if first_bound is None and expected > t:
        expected = t
        certificate = _core.JointCertificate(tested_counts, proxy_curve_at_t.core)
        first_bound = _certified_parameter(claim, certificate, sides, level, t)
    if first_bound is None:
        return 0.0
    if abs(first_bound - expected) <= _NEAR_SHARE * expected:
        return first_bound
    curve_at_bound = claim.curve(first_bound, sides)
    second_certificate = certificate.made_at(curve_at_bound.core)
    second_bound = _certified_parameter(claim, second_certificate, sides, level, first_bound) or 0.0
    return max(first_bound, second_bound)


def _rounded_to_grid(theta: float) -> float:
    """Return a parameter rounded down to a grid that last bits hardly move it on."""
    mantissa, exponent = math.frexp(theta)
    rounded_mantissa = math.floor(mantissa * _GRID_STEPS - 1) / _GRID_STEPS
    return math.ldexp(rounded_mantissa, exponent)


def _certified_bound_from_proxy(
    test: JointTest, index: int, correct: int, certificate: _core.JointCertificate
) -> float:
    """Return the bound that certificates prove, the first of which was made at a proxy's curve.

    Each is made at the parameter that the one before proves. A search that begins far from what it
    proves comes to a halt on its way, and last bits of a curve decide where: profiles are computed,
    with noise in these bits, so that certificates of them are made until they prove no more.
    """
    claim = test.claim
    sides = test.sides
    level = test.level

    def certificate_made_at(curve: TradeOff) -> _core.JointCertificate:
        return certificate.made_at(_without_last_bits(curve, level / test.examples).core)

    certified = _certified_parameter(claim, certificate=certificate, sides=sides, level=level)
    if certified is None:
        own_parameter = claim.critical(test.counts(index, correct), test.tau[index], "recursion")
        if own_parameter is None:
            return 0.0
        # The proxy may be unlike the family: begin at its own curve
        certificate = certificate_made_at(claim.curve(own_parameter, sides))
        certified = _certified_parameter(claim, certificate, sides, level)
    best = certified or 0.0
    rounds = 0
    while certified is not None:
        curve = claim.curve(best, sides)
        most_rounds = _MOST_ROUNDS
        if curve.family == "profile":
            most_rounds = _MOST_ROUNDS_OF_PROFILE
        if rounds >= most_rounds:
            break
        best_before = best
        rounds += 1
        certificate = certificate_made_at(curve)
        certified = _certified_parameter(claim, certificate, sides, level)
        best = max(best, certified or 0.0)
        if best <= best_before * (1 + _LEAST_GAIN):
            break
    return best


def _without_last_bits(curve: TradeOff, smallest: float) -> TradeOff:
    """Return a curve without the last bits of its δ, for a search whose proof is checked after it.

    A search goes down slopes with edges, where its next step is decided by last bits: those of a
    Fourier transform, which machines round differently. What is found holds for any curve, and is
    valued at the exact one. `smallest` is a δ that matters little.
    """
    if curve.family != "profile":
        return curve
    delta = curve.parameters["delta"]
    _, smallest_exponent = math.frexp(smallest)
    _, exponents = np.frexp(np.maximum(delta, smallest))
    least_last_bit = smallest_exponent - _BITS_OF_SMALLEST
    last_bits = np.maximum(exponents - _BITS_OF_DELTA, least_last_bit)
    units_of_last_bit = np.rint(np.ldexp(delta, -last_bits))
    rounded_delta = np.ldexp(np.maximum(units_of_last_bit, 1.0), last_bits)
    epsilon = curve.parameters["epsilon"]
    # no mechanism has less than one that ignores its data
    least_delta_of_all = np.maximum(0.0, -np.expm1(epsilon))
    return TradeOff.profile(epsilon, np.clip(rounded_delta, least_delta_of_all, 1.0))


def _certified_parameter(
    claim: AnyFamily,
    certificate: _core.JointCertificate,
    sides: Sides,
    level: float,
    near: float | None = None,
) -> float | None:
    """Return the least private parameter that a certificate refutes, if any.

    It is found in fewer steps if it is near one; values asked then depend on more than answers.
    """

    def error_probability(theta: float) -> float:
        return certificate.bound_for(claim.curve(theta, sides).core)

    if near is None:
        return claim.least_private(lambda theta: error_probability(theta) <= level)
    bracket = ((1 - _NEAR_SHARE) * near, (1 + _NEAR_SHARE) * near)
    return claim.least_private_near(error_probability, level, bracket)


_remembered_certified_bound = lru_cache(maxsize=65_536)(_certified_bound)


@dataclass(frozen=True, kw_only=True)
class OutsideInFamily(LadderPolicy, FamilyPolicy[OutsideIn]):
    """The number of guesses chosen by labels from outside in, one certificate for them all.

    At a value t of a proxy's parameter, each level l has a least count v_l(t), which never falls
    with t. From the count at the level chosen follow t and the vector v(t); what is reported is the
    least private parameter at which a certificate of this vector proves at most the level.
    """

    method = (
        f"{OutsideIn.design} Number and count are tested against their worst joint distribution "
        "that the inequalities for all sets of them allow, with a proof that none is worse."
    )
    least: float = 0.0
    planned: float | None = None
    """The level that numbers of guesses are planned for; None for that of the test."""
    larger: float = 1.0
    """A number of guesses has the weight that the plan gives to one so many times smaller."""

    def rule(self, _examples: int, level: float, _sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`."""
        level = self.planned or level
        return planned_rule(self.base, self.examples, level, self.sides, "family", k=self.k)

    def weights(self, rule: _core.OutsideIn) -> FloatArray:
        """See `LadderPolicy.weights`: those of numbers that are so many times smaller."""
        levels = np.array(rule.levels, dtype=np.float64)
        return np.interp(levels / self.larger, levels, rule.shares)

    def expected(
        self,
        rule: _core.OutsideIn | None,
        numbers: IntArray,
        accuracy: FloatArray,
        level: float,
        /,
    ) -> FloatArray:
        """See `LadderPolicy.expected`: the rule knows it of the level it was planned for.

        A smaller level asks for more: it is as if so many standard deviations fewer were right.
        """
        assert rule is not None
        places = np.searchsorted(rule.levels, numbers)
        levels = level * self.weights(rule)[places]
        planned_levels = (self.planned or level) * np.array(rule.shares)[places]
        # Standard scores that a count must reach at the level, and at the planned one
        scores = -_core.normal_quantile(levels)
        planned_scores = -_core.normal_quantile(planned_levels)
        deviation = np.sqrt(numbers * accuracy * (1 - accuracy))
        correct_guesses = numbers * accuracy - (scores - planned_scores) * deviation
        expected_bounds = map(rule.worth, places.tolist(), correct_guesses.tolist())
        return np.array([*expected_bounds])

    def above(self, least: float) -> Self:
        """See `Policy.above`."""
        return replace(self, least=least)

    def limit(
        self, rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """See `LadderPolicy.limit`: a cut at none of the levels rejects nothing."""
        if rule is None:
            return 0.0
        levels = tuple(rule.levels)
        if guesses not in levels:
            return 0.0
        test = JointTest(
            claim=self.claim,
            levels=levels,
            tau=tuple((level * self.weights(rule)).tolist()),
            examples=self.examples,
            sides=self.sides,
            level=level,
            k=self.k,
        )
        index = levels.index(guesses)
        # A certificate is slow: none is made where the quick test shows that it is of no use.
        if self.least and test.quick(index, correct) <= self.least:
            return 0.0
        return test.bound(index, correct)


def family_policy(
    cuts: CutPolicy | None, claim: AnyFamily, *, examples: int, sides: Sides, k: int = 2
) -> GridFamily | OutsideInFamily:
    """Return the policy of an audit of a family, fixed before labels are seen, at k values each.

    Without `cuts` it is `OutsideIn()`. Raise OptionError if there is no form for families.
    """
    if cuts is None or isinstance(cuts, OutsideIn):
        ladder = cuts or OutsideIn()
        return OutsideInFamily(base=ladder, claim=claim, examples=examples, sides=sides, k=k)
    if isinstance(cuts, UnionBound):
        _check_union_bound(cuts)
    elif not isinstance(cuts, Fixed):
        raise _no_form_for_families(cuts, claim)
    return GridFamily(base=cuts, claim=claim, examples=examples, sides=sides, k=k)


def _no_form_for_families(cuts: CutPolicy, claim: AnyFamily) -> OptionError:
    """Return the error that a policy has no form for families."""
    message = "{cuts} is not for {claim}: use {OutsideIn}, {Fixed} or {UnionBound}"
    return OptionError(Message(message, cuts=Option("cuts", type(cuts)), claim=claim.name))


def _check_union_bound(cuts: UnionBound) -> None:
    """Refuse a union bound over all numbers of guesses, or by another tail."""
    if cuts.grid == "all" or cuts.tail != "exact":
        raise OptionError(
            'a union bound for trade-off functions needs tail="exact" and a grid: "geometric", or '
            "a few numbers of guesses"
        )
