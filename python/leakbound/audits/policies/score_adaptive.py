"""A number of guesses that depends on scores, under a family of trade-off functions."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

import leakbound._core as _core
from leakbound._base.records import encode
from leakbound._base.types import FdpTest, FloatArray, IntArray, JsonValue, Sides
from leakbound.audits.policies.f_dp import FamilyPolicy
from leakbound.claims import AnyFamily, GaussianDP, LaplaceDP
from leakbound.claims.base import unexplained
from leakbound.cuts import Fixed, ScoreAdaptive
from leakbound.errors import IncompatibleOptionsError

__all__ = ["AdaptivePolicy", "Thresholds", "adaptive_policy", "outlying"]

_DEVIATIONS = 3.0
"""So many robust standard deviations from the median a score stands out."""
_NORMAL = 1.4826
"""Standard deviation of a normal law over its median distance from the median."""


@dataclass
class Thresholds:
    """Least counts of correct guesses that reject a curve, along a search for its parameter.

    For each value θ of the parameter and each level l the core gives a count c_l(θ), from the
    curve, the levels, m, sides and τ alone, with P(W ≥ c_L) ≤ τ under θ whatever level L the
    scores choose. A search reads θ where labels lead it, so a bound above the true θ* would be an
    error at any of many θ, unless the counts never fall from a curve to a less private one. So they
    are made monotone along the search: no lower than at the last value rejected, for raising counts
    is always valid; and where one of them is above that at the last value kept, all are as there,
    which is valid too, for a more private mechanism obeys the less private curve.

    The values a search can reach are a fixed tree: steps away from the private end, then halvings
    of the last step. Counts at a node depend on its ancestors, not on labels, and lie between those
    at the ends of its interval; so they are monotone over the whole tree. Let θ° be the first node
    that allows all that θ* does. A bound beyond θ* is a node at or beyond θ°, so W is at least
    c_L(θ°) too. The mechanism obeys the curve of θ°: this has probability τ at most.
    """

    policy: "AdaptivePolicy"
    tau: float
    rejected: IntArray | None = None
    kept: IntArray | None = None

    def at(self, theta: float) -> IntArray:
        """Return the counts at a value of the parameter, given where the search stands.

        One for each level, above the level where none suffices.
        """
        policy = self.policy
        curve = policy.claim.curve(theta, policy.sides).core
        one_sided = policy.sides == "member"
        found = _core.fdp_least_correct(policy.levels, policy.examples, one_sided, curve, self.tau)
        counts = np.array(found, dtype=np.int64)
        if self.kept is not None and np.any(counts > self.kept):
            return self.kept
        return counts if self.rejected is None else np.maximum(counts, self.rejected)

    def refuted(self, theta: float, level: int, correct: int) -> bool:
        """Return whether a value is rejected, and remember its counts; `level` is an index."""
        counts = self.at(theta)
        if correct >= counts[level]:
            self.rejected = counts
            return True
        self.kept = counts
        return False


@dataclass(frozen=True, kw_only=True)
class AdaptivePolicy(FamilyPolicy):
    """The test of one of several numbers of guesses, at counts that suit them all."""

    levels: tuple[int, ...]

    @property
    def method(self) -> str:
        """See `FamilyPolicy.method`."""
        return (
            f"One cut, at the one of {len(self.levels)} numbers of guesses, fixed in advance, that "
            "the scores suggest. The count is tested against the worst law of number and count "
            "together that the inequalities for all sets of them allow, with a proof that none is "
            "worse."
        )

    @property
    def fixed_guesses(self) -> None:
        """See `PathPolicy.fixed_guesses`: scores decide."""
        return

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: what else to ask for is other levels."""
        return 1

    def with_size(self, _guesses: int, examples: int, /) -> Self:
        """See `PathPolicy.with_size`."""
        return replace(self, examples=examples)

    def limits(self, guesses: IntArray, correct: IntArray, level: float, /) -> FloatArray:
        """See `FamilyPolicy.limits`: a cut at none of the levels rejects nothing."""
        limit = _remembered if isinstance(self.claim, GaussianDP | LaplaceDP) else _searched
        found = np.zeros(guesses.size)
        for i, (made, right) in enumerate(zip(guesses.tolist(), correct.tolist(), strict=True)):
            if made in self.levels and not unexplained(self._counts(made, right), level):
                theta = limit(self, self.levels.index(made), right, level)
                found[i] = 0.0 if theta is None else self.claim.strength(theta)
        return found


def _searched(policy: AdaptivePolicy, level: int, correct: int, tau: float) -> float | None:
    """Return the least private value that is rejected, None if none is."""
    thresholds = Thresholds(policy, tau)
    return policy.claim.least_private(lambda theta: thresholds.refuted(theta, level, correct))


_remembered = lru_cache(maxsize=1024)(_searched)


def adaptive_policy(
    cuts: ScoreAdaptive, claim: AnyFamily, test: FdpTest, scores: FloatArray, sides: Sides
) -> tuple[AdaptivePolicy, dict[str, JsonValue]]:
    """Return the policy of an audit whose number of guesses the scores choose, and options.

    Raise IncompatibleOptionsError for the recursion, which has no form for several levels.
    """
    if test != "tight":
        message = f'cuts=ScoreAdaptive(…) has no form for test="{test}": take test="tight"'
        raise IncompatibleOptionsError(message)
    cuts.check(scores.size)
    levels = tuple(cuts.levels)
    count = outlying(scores, sides)
    distance = np.abs(np.log(np.array(levels) / max(1, count)))
    guesses = levels[int(np.argmin(distance))]
    policy = AdaptivePolicy(
        base=Fixed(guesses),
        claim=claim,
        examples=scores.size,
        sides=sides,
        test=test,
        levels=levels,
    )
    chosen: dict[str, JsonValue] = {"outlying": count, "guesses": guesses}
    return policy, {"test": test, "cuts": encode(cuts), "adaptive": chosen}


def outlying(scores: FloatArray, sides: Sides) -> int:
    """Count the scores that stand out, low ones too where both sides are guessed."""
    median = float(np.median(scores))
    if not np.isfinite(median):
        apart = scores > median if sides == "member" else scores != median
        return int(apart.sum())
    distance = scores - median
    spread = _DEVIATIONS * _NORMAL * float(np.median(np.abs(distance)))
    return int(((distance if sides == "member" else np.abs(distance)) > spread).sum())
