"""Families of trade-off functions where the data choose the number of guesses: one joint proof.

`leakbound_core::fdp::certificate::joint` states the theorem: levels are named before labels are
seen, the one that is tested depends on scores, and on labels beyond it at most.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

import leakbound._core as _core
from leakbound._base.types import CountOptions, FloatArray, IntArray, JsonValue, Sides
from leakbound.audits.policies.f_dp import FamilyPolicy
from leakbound.claims import AnyFamily, GaussianDP, LaplaceDP
from leakbound.claims.base import counts_of, unexplained
from leakbound.cuts import CurvePoints, Fixed, Game, OutsideIn, Proof
from leakbound.cuts.outside_in import chosen_cut, marked
from leakbound.cuts.policy import Best

_FINENESS = 2.0**20
"""Critical values are rounded down to so many steps between powers of two: see `_bound`."""
_FARTHEST = 10_000
"""The most examples with which more of them are asked for."""
_CLOSE = 0.02
"""A proof made at a parameter within this share of what it proves is as good as any."""


@dataclass(frozen=True, kw_only=True)
class JointTest:
    """What counts prove of a family where one of several numbers of guesses was chosen.

    `tau` are the levels of Algorithm 3 whose least counts are the vector v(t).
    """

    claim: AnyFamily
    levels: tuple[int, ...]
    tau: tuple[float, ...]
    examples: int
    sides: Sides
    level: float

    @property
    def proxy(self) -> GaussianDP | LaplaceDP:
        """The family whose critical values weigh levels against each other."""
        return self.claim if isinstance(self.claim, GaussianDP | LaplaceDP) else GaussianDP()

    def counts(self, index: int, correct: int) -> CountOptions:
        """Return the counts of so many correct guesses at a level."""
        one_sided = self.sides == "member"
        return counts_of(correct, self.levels[index], self.examples, one_sided=one_sided)

    def rough(self, index: int, correct: int) -> float:
        """Return what Algorithm 3 alone would prove of the proxy at a level."""
        return self.proxy.critical(self.counts(index, correct), self.tau[index], "recursion") or 0.0

    def bound(self, index: int, correct: int) -> float:
        """Return the bound that so many correct guesses at a level prove, 0 for nothing."""
        if unexplained(self.counts(index, correct), self.level):
            return 0.0
        find = _remembered_bound if self.proxy is self.claim else _bound
        return find(self, index, correct)


def _bound(test: JointTest, index: int, correct: int) -> float:
    """Return the bound that `correct` guesses right at a level prove, 0 for nothing.

    What is reported is proved of the vector v(t), at whichever curve the proof was made; vectors
    are nested in t, so that the least of those that prove too much bounds all of them. t is rounded
    down to a grid so coarse that roundings of the recursion cannot make the least counts of two of
    its values fall; the count seen is then compared with that of its level once more.
    """
    claim, proxy, sides, level = test.claim, test.proxy, test.sides, test.level
    one_sided = sides == "member"
    critical = test.rough(index, correct)
    if not critical:
        return 0.0
    mantissa, exponent = math.frexp(critical)
    t = math.ldexp(math.floor(mantissa * _FINENESS - 1) / _FINENESS, exponent)
    curve = proxy.curve(t, sides)
    least = _core.fdp_least_rejected(test.levels, test.examples, one_sided, curve.core, test.tau)
    if correct < least[index]:
        return 0.0
    tested = [
        (made, right) for made, right in zip(test.levels, least, strict=True) if right <= made
    ]
    made, right = zip(*tested, strict=True)
    best: float | None = None
    proof = _core.JointCertificate(made, right, test.examples, one_sided, curve.core)
    for last in (False, True):
        theta = _proved(claim, proof, sides, level)
        if theta is None and best is None and proxy is not claim:
            own = claim.critical(test.counts(index, correct), test.tau[index], "recursion")
            if own is not None:  # the proxy may be unlike the family: begin at its own curve
                proof = proof.made_at(claim.curve(own, sides).core)
                theta = _proved(claim, proof, sides, level)
        if theta is None:
            break
        before, best = best, max(best or 0.0, theta)
        close = before is None and proxy is claim and abs(theta - t) <= _CLOSE * t
        if last or close:
            break
        proof = proof.made_at(claim.curve(theta, sides).core)
    return best or 0.0


def _proved(
    claim: AnyFamily, proof: _core.JointCertificate, sides: Sides, level: float
) -> float | None:
    """Return the least private parameter that a certificate refutes, if any."""
    return claim.least_private(
        lambda theta: proof.bound_for(claim.curve(theta, sides).core) <= level
    )


_remembered_bound = lru_cache(maxsize=65_536)(_bound)


@dataclass(frozen=True, kw_only=True)
class OutsideInFamily(FamilyPolicy):
    """The number of guesses chosen by labels from outside in, one certificate for them all.

    At a value t of a proxy's parameter, each level l has a least count v_l(t), which never falls
    with t. From the count at the level chosen follow t and the vector v(t); what is reported is the
    least private parameter at which a certificate of this vector proves at most the level.
    """

    cuts: OutsideIn
    beta: float

    @property
    def plan(self) -> _core.OutsideIn:
        """Levels, how they are weighed, and the rule that would choose from the outside in."""
        return self.cuts.plan(self.examples, self.beta, self.sides, "family")

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of guesses that may be chosen."""
        return tuple(self.plan.levels)

    def ladder(self, _examples: int, _level: float, _sides: Sides, /) -> tuple[int, ...]:
        """See `PathPolicy.ladder`."""
        return self.levels

    @property
    def fixed_guesses(self) -> None:
        """See `PathPolicy.fixed_guesses`: none is."""
        return

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: a few proofs for other numbers are soon made."""
        quick = self.cuts.levels is None and isinstance(self.claim, GaussianDP | LaplaceDP)
        return _FARTHEST if quick else 1

    def with_size(self, guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`."""
        cuts = self.cuts.with_size(guesses, examples)
        return replace(self, base=Fixed(guesses), examples=examples, cuts=cuts)

    def limits(self, guesses: IntArray, correct: IntArray, level: float, /) -> FloatArray:
        """See `FamilyPolicy.limits`: a cut at none of the levels rejects nothing."""
        index, test = {made: i for i, made in enumerate(self.levels)}, self.tested(level)
        pairs = zip(guesses.tolist(), correct.tolist(), strict=True)
        return np.array(
            [test.bound(index[made], right) if made in index else 0.0 for made, right in pairs]
        )

    def tested(self, level: float) -> JointTest:
        """Return the test of all levels together."""
        return JointTest(
            claim=self.claim,
            levels=self.levels,
            tau=tuple(share * level for share in self.plan.shares),
            examples=self.examples,
            sides=self.sides,
            level=level,
        )

    @property
    def method(self) -> str:
        """See `FamilyPolicy.method`."""
        return (
            f"{self.cuts.design} The count is tested against the worst law of number and count "
            "together that the inequalities for all sets of them allow, with a proof that none is "
            "worse."
        )

    def at_level(self, _level: float, /) -> OutsideIn:
        """See `PathPolicy.at_level`."""
        return self.cuts

    def check(self, examples: int, units: str = "examples") -> None:
        """See `Policy.check`."""
        self.cuts.check(examples, units)

    def bound(self, path: _core.Path, level: float, /) -> Best:
        """See `PathPolicy.bound`."""
        guesses, correct = chosen_cut(self.plan, path)
        bounds = self.limits(np.array([guesses]), np.array([correct]), level)
        return Best(float(bounds[0]), guesses, correct)

    def curve(self, path: _core.Path, level: float, points: int, /) -> CurvePoints:
        """See `PathPolicy.curve`: the chosen level is among the points, alone with a bound."""
        best = self.bound(path, level)
        return marked(path, points, best.cut, best.logit)

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`: options tell the levels, the one reached and what the proof costs."""
        found = super().audit(game, level)
        best = found.best
        chosen: dict[str, JsonValue] = {"levels": list(self.levels), "guesses": best.cut}
        if isinstance(self.claim, GaussianDP | LaplaceDP):  # for other curves it costs an audit
            counts = self._counts(best.cut, best.successes)
            chosen["bound_if_fixed"] = self.claim.critical(counts, level, "recursion") or 0.0
        return replace(found, options=found.options | {"outside_in": chosen})


def joint_policy(
    cuts: OutsideIn, claim: AnyFamily, *, examples: int, sides: Sides, beta: float
) -> OutsideInFamily:
    """Return the policy of an audit whose number of guesses labels choose from the outside in."""
    cuts.check(examples, "pairs" if sides == "pairs" else "examples")
    return OutsideInFamily(
        base=Fixed(1),
        claim=claim,
        examples=examples,
        sides=sides,
        cuts=cuts,
        beta=beta,
    )
