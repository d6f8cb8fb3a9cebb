"""Zero-Run with learnt log-odds: the least bound over all log-odds that labels do not rule out.

A bound that is right where the log-odds are known is computed at every member of a confidence set;
the least one is above the truth only if the true log-odds are outside of the set, or the bound at
them errs: with probability p_set + p_test at most, although both use the same labels (Berger and
Boos, "P values maximized over a confidence set for the nuisance parameter", 1994).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound._base.streams import Purpose
from leakbound._base.types import CorrectionChoice, FdpTest, SidesChoice
from leakbound._base.validation import (
    check_length,
    check_membership,
    check_scores,
    choice,
    instance,
    integer,
    real,
)
from leakbound.audits.one_run.audit import audit_coins
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.policies.reference import plan_guesses
from leakbound.audits.zero_run.fair_counts import middle
from leakbound.audits.zero_run.residuals import beyond_features
from leakbound.audits.zero_run.study import confidence_of, two_sided
from leakbound.claims import CLAIMS, ApproxDP, GaussianDP, PureDP
from leakbound.errors import ClassMissingError, IncompatibleOptionsError, PropensityFitError
from leakbound.propensity import LogisticPropensity
from leakbound.propensity.confidence import ConfidenceSet, balanced
from leakbound.propensity.data import check_features
from leakbound.stats.composition import remaining_leakage
from leakbound.stats.distribution_shift import survival, surviving_guesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import (
        ArrayInput,
        BoolArray,
        Correction,
        FloatArray,
        HasMember,
        IntArray,
        JsonValue,
    )
    from leakbound.claims import Claim

__all__ = [
    "SET_SHARE",
    "LeastFavourable",
    "blinded",
    "bound_over_set",
    "correction_over_set",
    "least_favourable_bound",
    "planning_log_odds",
]

SET_SHARE = 0.2
"""Share of the probability of error that the confidence set takes."""
_CUTS = (1.0, 0.2)
"""Shares of the largest number of guesses at which pure DP is tested."""
_PLANNED_EPSILON = 0.5
"""ε that guesses under pure DP are balanced for."""
_DRAWS = 51
"""Draws of what matching keeps, of which the middle bound counts."""
_PARTS = 200
"""Parts of the examples to which the number kept is rounded up: a bound falls with it."""
_TAIL = 4.0
"""Robust standard deviations beyond which a score counts by its logarithm in fits."""
_HUGE = 1e150
"""Scores beyond this in absolute value are scaled down first."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastFavourable:
    """What is proved whichever log-odds in a confidence set are the true ones.

    Attributes
    ----------
    bound : float
        On the claim's parameter.
    reason : str
        Why nothing is proved, if nothing is.
    at_estimate : float
        The same at the log-odds of largest likelihood: what a test at them alone would prove.
    correction : {"match", "poisson_binomial", "tamper", "composition"}
        How shift was taken out.
    level : float
        Probability of error of the test, the confidence set's not included.
    guesses, correct : int
        Guesses made, and right ones, that proved it: of matching and tampering, in the middle draw.
    kept : int
        Examples that matching keeps, the most that were reckoned with; else all.
    coefficients : ndarray of float64, shape (k,)
        The least favourable member of the set that was found; empty where there is no set.
    log_odds : ndarray of float64, shape (m,)
        Of the audited examples, there.
    rows, signs : ndarray of int64, shape (n,)
        All guesses that were looked at, most confident first: rows, and +1 for "member" or -1.
    options : dict
        What else was decided, for a result's options.
    one_sided : bool
        Whether members alone were guessed.
    """

    bound: float
    reason: str
    at_estimate: float
    correction: Correction
    level: float
    guesses: int
    correct: int
    kept: int
    coefficients: FloatArray
    log_odds: FloatArray
    rows: IntArray
    signs: IntArray
    options: dict[str, JsonValue] = field(default_factory=dict)
    one_sided: bool = False

    @classmethod
    def none(
        cls,
        claim: Claim,
        reason: str,
        correction: Correction,
        level: float,
        examples: int,
        sides: SidesChoice,
    ) -> LeastFavourable:
        """Return what is proved where there is no confidence set: nothing, for a reason."""
        empty = np.empty(0)
        return cls(
            bound=claim.nothing,
            reason=reason,
            at_estimate=claim.nothing,
            correction=correction,
            level=level,
            guesses=0,
            correct=0,
            kept=examples,
            coefficients=empty,
            log_odds=empty,
            rows=empty.astype(np.int64),
            signs=empty.astype(np.int64),
            one_sided=sides == "member",
        )


def least_favourable_bound(
    scores: ArrayInput,
    member: ArrayInput | HasMember,
    features: ArrayInput,
    *,
    reference: tuple[ArrayInput, ArrayInput | HasMember] | None = None,
    claim: Claim,
    level: float = 0.05,
    sides: SidesChoice = "both",
    correction: CorrectionChoice = "conditional",
    test: FdpTest = "tight",
    guesses: int | None = None,
    seed: int = 0,
) -> LeastFavourable:
    """Bound the privacy loss from below where log-odds of membership are learnt.

    Parameters
    ----------
    scores : array-like, shape (m,)
        Higher for likelier members; ±inf allowed.
    member : array-like of shape (m,), or InclusionPlan
        Their membership.
    features : array-like, shape (m, d)
        Features that the log-odds of membership are linear in.
    reference : tuple of array-like, shapes (n, d) and (n,), optional
        Features and membership of other examples, D'.
    claim : Claim
        The family of guarantees.
    level : float
        Probability that the bound is above the truth, in (0, 1); a fifth goes to the set.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    correction : {"conditional", "match", "poisson_binomial", "tamper", "composition"}
        How shift is taken out; "conditional" is "poisson_binomial" for `PureDP`, else "match".
    test : {"tight", "recursion"}
        For families of trade-off functions, which test of the correct guesses.
    guesses : int, optional
        How many to make, fixed before labels; planned if None.
    seed : int
        Seed of everything drawn.

    Returns
    -------
    LeastFavourable
        The bound; 0 with the reason where labels allow no confidence set.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, FeaturesError, MembershipError, NaNScoresError
        If the arrays do not describe the same examples.
    OptionError, OptionTypeError, IncompatibleOptionsError
        If an option is outside its range, or does not fit the others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 3))
    >>> member = rng.random(4000) < 1 / (1 + np.exp(-1.5 * x[:, 0]))
    >>> shift = 1.5 * x[:, 0] + rng.normal(size=4000)
    >>> least_favourable_bound(shift, member, x, claim=PureDP()).bound
    0.0
    >>> least_favourable_bound(shift + 3 * member, member, x, claim=PureDP()).bound > 0.5
    True
    """
    p = real(level, "level", above=0, below=1)
    test_level = (1 - SET_SHARE) * p
    instance(claim, "claim", CLAIMS)
    kind = correction_over_set(correction, claim)
    labels = check_membership(member, check_features(features).shape[0])
    try:
        found = ConfidenceSet.fit(
            features, labels, reference=reference, level=SET_SHARE * p, seed=seed
        )
    except PropensityFitError as error:
        return LeastFavourable.none(claim, str(error), kind, test_level, labels.size, sides)
    weights = None if reference is None else planning_log_odds(reference, found)
    return bound_over_set(
        scores,
        found,
        claim=claim,
        level=test_level,
        sides=sides,
        correction=kind,
        test=test,
        guesses=guesses,
        planned=weights,
        seed=seed,
    )


def planning_log_odds(
    reference: tuple[ArrayInput, ArrayInput | HasMember], found: ConfidenceSet
) -> FloatArray | None:
    """Return log-odds of the audited examples learnt from D' alone, to plan guesses with."""
    try:
        learnt = LogisticPropensity().fit(*reference)
        return learnt.log_odds(found.features) + found.offsets
    except (ClassMissingError, PropensityFitError):
        return None


def bound_over_set(
    scores: ArrayInput,
    found: ConfidenceSet,
    *,
    claim: Claim,
    level: float,
    sides: SidesChoice = "both",
    correction: CorrectionChoice = "conditional",
    test: FdpTest = "tight",
    guesses: int | None = None,
    planned: FloatArray | None = None,
    seed: int = 0,
) -> LeastFavourable:
    """Return the least bound over a confidence set, at a level of its own."""
    values = check_scores(scores)
    check_length(values, found.audited, "scores")
    instance(claim, "claim", CLAIMS)
    for value, name, allowed in (
        (sides, "sides", SidesChoice),
        (correction, "correction", CorrectionChoice),
        (test, "test", FdpTest),
    ):
        choice(value, name, allowed)
    kind = correction_over_set(correction, claim)
    seed = integer(seed, "seed", least=0)
    number = None
    if guesses is not None:
        number = integer(guesses, "guesses", least=1, most=found.audited)
    audit = _Audit(
        scores=_usable(values),
        found=found,
        claim=claim,
        level=real(level, "level", above=0, below=1),
        sides=sides,
        test=test,
        guesses=number,
        planned=np.zeros(values.size) if planned is None else planned,
        ties=Purpose.SET_TIES.rng(seed).permutation(values.size),
        uniforms=Purpose.SET_MATCHING.rng(seed).random((_DRAWS, values.size)),
        seed=seed,
    )
    return _CORRECTIONS[kind](audit)


def correction_over_set(correction: CorrectionChoice, claim: Claim) -> Correction:
    """Return how shift is taken out for a claim, or raise where there is no such form."""
    if correction == "conditional":
        return "poisson_binomial" if isinstance(claim, PureDP) else "match"
    if correction == "poisson_binomial" and not isinstance(claim, PureDP):
        message = (
            f'correction="poisson_binomial" is for pure DP, got {claim!r}: take "match" or "tamper"'
        )
        raise IncompatibleOptionsError(message)
    if correction == "composition" and not isinstance(claim, PureDP | ApproxDP | GaussianDP):
        message = (
            f'correction="composition" is for pure, approximate and Gaussian DP, got {claim!r}: '
            'take "match"'
        )
        raise IncompatibleOptionsError(message)
    return correction


def blinded(
    scores: FloatArray, features: FloatArray, *, trees: bool = False, seed: int = 0
) -> FloatArray:
    """Return finite scores less what features predict of them, labels unseen."""
    return beyond_features(_usable(scores), features, trees=trees, seed=seed)


@dataclass(frozen=True, kw_only=True)
class _Audit:
    """Scores, the set, and how guesses are made and tested."""

    scores: FloatArray
    found: ConfidenceSet
    claim: Claim
    level: float
    sides: SidesChoice
    test: FdpTest
    guesses: int | None
    planned: FloatArray
    ties: IntArray
    uniforms: FloatArray
    seed: int

    @property
    def one_sided(self) -> bool:
        return self.sides == "member"

    @property
    def labels(self) -> int:
        return self.found.audited + self.found.reference

    def plan(self, examples: int, level: float) -> int:
        """Return how many guesses to make about so many examples, before any label is seen."""
        if self.guesses is not None:
            return min(self.guesses, examples)
        planned, _ = plan_guesses(examples, level, self.claim, self.sides)
        return min(planned.guesses, examples)

    def ranked(self, values: FloatArray) -> FloatArray:
        """Return distinct ranks, ties broken at random."""
        ranks = np.empty(values.size)
        ranks[np.lexsort((self.ties, values))] = np.arange(values.size)
        return ranks

    def matched(self, guesses: int) -> FloatArray:
        """Return ranks balanced for guesses that matching, or tampering, leaves alone."""
        kept = 2 / (1 + np.exp(np.abs(self.planned)))
        return self.ranked(
            balanced(
                self.scores,
                self.found.features,
                kept / 4,
                counts=kept,
                guesses=guesses,
                labels=self.labels,
                one_sided=self.one_sided,
            )
        )

    def right(self, rows: IntArray, signs: IntArray) -> BoolArray:
        return np.asarray(self.found.member[rows] == (signs > 0))

    def fair(self, correct: int, guesses: int, examples: int) -> float:
        """Return what so many correct guesses among fair examples prove, at half of the level."""
        return self.claim.lower_bound(
            correct, guesses, examples, self.level / 2, test=self.test, one_sided=self.one_sided
        )


def _by_offsets(audit: _Audit) -> LeastFavourable:
    """Test the exact Poisson-binomial tail at two cuts, each at half the level."""
    examples = audit.found.audited
    most = examples // 2 if audit.one_sided else examples
    cuts = [max(1, round(share * most)) for share in _CUTS]
    if audit.guesses is not None:
        cuts = [audit.guesses]
    level = audit.level / len(cuts)
    outcomes = []
    for cut in cuts:
        rows, signs = _guessed(audit, cut)
        epsilon, coefficients, odds = audit.found.core.least_epsilon(rows, signs, level=level)
        outcomes.append((max(0.0, epsilon), cut, rows, signs, coefficients, odds))
    bound, cut, rows, signs, coefficients, odds = max(outcomes, key=lambda one: one[0])
    correct = int(audit.right(rows, signs).sum())
    here = audit.found.log_odds()[rows] * signs
    at_estimate = _core.poisson_binomial_epsilon(
        np.clip(here, -_CERTAIN, _CERTAIN), np.array([correct]), beta=level, counts=None
    )
    return LeastFavourable(
        bound=bound,
        reason="" if bound else _explained(correct, cut),
        at_estimate=max(0.0, float(at_estimate[0])),
        correction="poisson_binomial",
        level=audit.level,
        guesses=cut,
        correct=correct,
        kept=examples,
        coefficients=coefficients,
        log_odds=odds,
        rows=rows,
        signs=signs,
        options={"numbers_of_guesses": [int(one) for one in cuts]},
        one_sided=audit.one_sided,
    )


_CERTAIN = 250.0
"""Log-odds beyond which a guess counts as certain."""


def _guessed(audit: _Audit, cut: int) -> tuple[IntArray, IntArray]:
    """Return balanced guesses about the examples that scores tell most of, at a fixed number."""
    up = _spread(_PLANNED_EPSILON + audit.planned)
    down = _spread(_PLANNED_EPSILON - audit.planned)
    one_sided = audit.one_sided
    values = balanced(
        audit.scores,
        audit.found.features,
        up if one_sided else (up + down) / 2,
        odd=None if one_sided else (up - down) / 2,
        guesses=cut,
        labels=audit.labels,
        one_sided=one_sided,
    )
    strength = values if one_sided else np.abs(values)
    rows = np.lexsort((audit.ties, -strength))[:cut]
    signs = np.ones(cut, dtype=np.int64)
    if not one_sided:
        signs[values[rows] < 0] = -1
    return rows, signs


def _by_matching(audit: _Audit) -> LeastFavourable:
    """Match at the least favourable members: the middle bound of draws, at half the level."""
    found = audit.found
    expected = max(2, int((2 / (1 + np.exp(np.abs(audit.planned)))).sum()))
    guesses = audit.plan(min(expected, found.audited), audit.level / 2)
    ranks = audit.matched(guesses)
    rows, signs = two_sided(ranks, found.audited, audit.sides)
    coefficients, odds = found.core.least_matched(rows, signs, kept=guesses)
    counts = _core.matched_counts(
        ranks,
        found.member,
        odds.ravel(),
        audit.uniforms.ravel(),
        guesses=guesses,
        one_sided=audit.one_sided,
        residual=False,
    )
    kept, made, right = (np.asarray(one).reshape(len(odds), -1) for one in counts)
    step = max(1, found.audited // _PARTS)
    middles = [
        middle(-(-k // step) * step, n, c, audit.claim, audit.fair)
        for k, n, c in zip(kept, made, right, strict=True)
    ]
    bounds = [audit.claim.strength(middle[0]) for middle in middles]
    least = int(np.argmin(bounds))
    bound, made_there, correct, most = middles[least]
    return LeastFavourable(
        bound=bound,
        reason="" if bounds[least] > 0 else _explained(correct, made_there),
        at_estimate=middles[0][0],
        correction="match",
        level=audit.level,
        guesses=made_there,
        correct=correct,
        kept=most,
        coefficients=coefficients[least],
        log_odds=odds[least],
        rows=rows,
        signs=signs,
        options={"planned": guesses, "draws": _DRAWS},
        one_sided=audit.one_sided,
    )


def _by_tampering(audit: _Audit) -> LeastFavourable:
    """Count the correct guesses that stand in half of all draws, at half the level."""
    found = audit.found
    guesses = audit.plan(found.audited, audit.level / 2)
    rows, signs = two_sided(audit.matched(guesses), guesses, audit.sides)
    right = audit.right(rows, signs)
    right_rows, right_signs = rows[right], signs[right]
    estimate, least = found.log_odds(), {}

    def standing(odds: FloatArray, epsilon: float) -> int:
        excess = np.maximum(odds[right_rows] * right_signs, 0.0)
        return surviving_guesses(survival(excess, np.array([epsilon])))

    def anywhere(epsilon: float) -> int:
        _, *least[epsilon] = found.core.least_surviving(right_rows, right_signs, epsilon=epsilon)
        return min(standing(least[epsilon][1], epsilon), standing(estimate, epsilon))

    bound, epsilon = _fixed_point(audit, anywhere, guesses)
    at_estimate, _ = _fixed_point(audit, lambda level: standing(estimate, level), guesses)
    coefficients, odds = least[epsilon]
    correct = anywhere(epsilon)
    return LeastFavourable(
        bound=bound,
        reason="" if audit.claim.strength(bound) > 0 else _explained(correct, guesses),
        at_estimate=at_estimate,
        correction="tamper",
        level=audit.level,
        guesses=guesses,
        correct=correct,
        kept=found.audited,
        coefficients=coefficients,
        log_odds=odds,
        rows=rows,
        signs=signs,
        one_sided=audit.one_sided,
    )


def _fixed_point(
    audit: _Audit, standing: Callable[[float], int], guesses: int
) -> tuple[float, float]:
    """Return inf{ε : not refuted}, and the ε whose tampering it was found with.

    From 0 upwards, ε becomes the largest that its own count refutes, until it stays. Families of
    trade-off functions are tampered with at 0, whatever their parameter.
    """
    examples = audit.found.audited
    epsilon = 0.0
    while True:
        further = audit.fair(standing(epsilon), guesses, examples)
        if not isinstance(audit.claim, PureDP | ApproxDP):
            return further, epsilon
        if further <= epsilon:
            return epsilon, epsilon
        epsilon = further


def _by_composition(audit: _Audit) -> LeastFavourable:
    """Audit as if all coins were fair, and take off the largest |log-odds| of any example in C."""
    found, level = audit.found, audit.level
    claim = cast("PureDP | ApproxDP | GaussianDP", audit.claim)
    ranks = audit.ranked(audit.scores)
    if audit.guesses is None and isinstance(claim, PureDP):
        scan = audit_coins(
            ranks,
            found.member,
            OneRunRequest(
                claim=claim, confidence=confidence_of(level), sides=audit.sides, seed=audit.seed
            ),
        )
        guesses, correct, total = scan.guesses, scan.correct, scan.bound
        rows, signs = two_sided(ranks, found.audited, audit.sides)
    else:
        # all m examples count, also where members alone are guessed: their coins are not fair
        guesses = audit.plan(found.audited, level)
        rows, signs = two_sided(ranks, guesses, audit.sides)
        correct = int(audit.right(rows, signs).sum())
        total = claim.lower_bound(correct, guesses, found.audited, level, test=audit.test)
    shift = found.max_abs_log_odds()
    bound = remaining_leakage(total, shift, claim)
    at_estimate = float(np.abs(found.log_odds()).max())
    return LeastFavourable(
        bound=bound,
        reason="" if bound else f"the shift alone may leak as much as {shift:.3g} of ε",
        at_estimate=remaining_leakage(total, at_estimate, claim),
        correction="composition",
        level=level,
        guesses=guesses,
        correct=correct,
        kept=found.audited,
        coefficients=found.coefficients,
        log_odds=found.log_odds(),
        rows=rows,
        signs=signs,
        options={"largest_log_odds": shift},
        one_sided=audit.one_sided,
    )


_CORRECTIONS: dict[str, Callable[[_Audit], LeastFavourable]] = {
    "match": _by_matching,
    "poisson_binomial": _by_offsets,
    "tamper": _by_tampering,
    "composition": _by_composition,
}


def _usable(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return np.sign(scores)
    largest = float(np.abs(finite).max())
    if largest > _HUGE:  # differences of such scores are no numbers
        return _usable(scores / largest)
    centre = float(np.median(finite))
    spread = 1.4826 * float(np.median(np.abs(finite - centre))) or float(finite.std()) or 1.0
    low, high = finite.min() - spread, finite.max() + spread
    values = (np.clip(scores, low, high) - centre) / spread
    beyond = np.maximum(np.abs(values) - _TAIL, 0.0)
    usable: FloatArray = np.sign(values) * (np.minimum(np.abs(values), _TAIL) + np.log1p(beyond))
    return usable


def _spread(x: FloatArray) -> FloatArray:
    chance = expit(x)
    return chance * (1 - chance)


def _explained(correct: int, guesses: int) -> str:
    return (
        f"shift and chance explain {correct} correct guesses of {guesses} under some log-odds that "
        "the labels do not rule out"
    )
