"""Zero-Run with learnt log-odds: the least bound over all log-odds that labels do not rule out.

A bound that is right where the log-odds are known is computed at every member of a confidence set;
the least one is above the truth only if the true log-odds are outside of the set, or the bound at
them errs: with probability p_set + p_test at most, although both use the same labels (Berger and
Boos, "P values maximized over a confidence set for the nuisance parameter", 1994).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import CorrectionChoice, SidesChoice
from leakbound._base.validation import check_length, check_scores, choice, instance, integer, real
from leakbound.audits.one_run.audit import audit_coins
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.zero_run.residuals import beyond_features
from leakbound.audits.zero_run.set_matching import draws_of, least_by_matching
from leakbound.audits.zero_run.set_offsets import least_by_offsets
from leakbound.audits.zero_run.set_study import LeastFavourable, SetStudy, explained, usable
from leakbound.audits.zero_run.study import confidence_of, two_sided
from leakbound.claims import CLAIMS, ApproxDP, GaussianDP, PureDP
from leakbound.errors import ClassMissingError, IncompatibleOptionsError, PropensityFitError
from leakbound.propensity import LogisticPropensity
from leakbound.propensity.confidence import ConfidenceSet
from leakbound.propensity.data import check_features
from leakbound.stats.composition import remaining_leakage
from leakbound.stats.distribution_shift import survival, surviving_guesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import ArrayInput, Correction, FloatArray, HasMember
    from leakbound.claims import Claim

SET_SHARE = 0.2
"""Share of the probability of error that the confidence set takes."""


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
    guesses: int | None = None,
    seed: int | None = None,
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
    seed : int, optional
        Of everything drawn; by default a new one, which `options` tells.

    Returns
    -------
    LeastFavourable
        The bound; 0 with the reason where labels allow no confidence set.

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
    seed = seed_of(seed)
    order = ExampleOrder()
    scores = order.placed(scores, "scores")
    labels = order.member(member, check_features(features).shape[0])
    features = order.placed(features, "features")
    try:
        found = ConfidenceSet.fit(
            features, labels, reference=reference, level=SET_SHARE * p, seed=seed
        )
    except PropensityFitError as error:
        least = LeastFavourable.none(claim, str(error), kind, test_level, labels.size, sides)
    else:
        weights = None if reference is None else planning_log_odds(reference, found, seed)
        least = bound_over_set(
            scores,
            found,
            claim=claim,
            level=test_level,
            sides=sides,
            correction=kind,
            guesses=guesses,
            planned=weights,
            seed=seed,
        )
    return replace(least, options=least.options | {"seed": seed})


def planning_log_odds(
    reference: tuple[ArrayInput, ArrayInput | HasMember], found: ConfidenceSet, seed: int
) -> FloatArray | None:
    """Return log-odds of the audited examples learnt from D' alone, to plan guesses with."""
    try:
        learnt = LogisticPropensity().fit(*reference, seed=seed)
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
    guesses: int | None = None,
    planned: FloatArray | None = None,
    seed: int,
) -> LeastFavourable:
    """Return the least bound over a confidence set, at a level of its own."""
    instance(claim, "claim", CLAIMS)
    choice(correction, "correction", CorrectionChoice)
    study = study_of(
        scores,
        found,
        claim=claim,
        level=level,
        sides=sides,
        guesses=guesses,
        planned=planned,
        seed=seed,
    )
    return _CORRECTIONS[correction_over_set(correction, claim)](study)


def study_of(
    scores: ArrayInput,
    found: ConfidenceSet,
    *,
    claim: Claim,
    level: float,
    sides: SidesChoice = "both",
    guesses: int | None = None,
    planned: FloatArray | None = None,
    seed: int,
) -> SetStudy:
    """Return scores and the set with all that is drawn: what a bound over the set rests on."""
    values = check_scores(scores)
    check_length(values, found.audited, "scores")
    choice(sides, "sides", SidesChoice)
    number = None
    if guesses is not None:
        number = integer(guesses, "guesses", least=1, most=found.audited)
    return SetStudy(
        scores=usable(values),
        found=found,
        claim=claim,
        level=real(level, "level", above=0, below=1),
        sides=sides,
        guesses=number,
        planned=np.zeros(values.size) if planned is None else planned,
        ties=Purpose.SET_TIES.rng(seed).permutation(values.size),
        uniforms=Purpose.SET_MATCHING.rng(seed).random((draws_of(values.size), values.size)),
        seed=seed,
    )


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
    scores: FloatArray, features: FloatArray, *, trees: bool = False, seed: int
) -> FloatArray:
    """Return finite scores less what features predict of them, labels unseen."""
    return beyond_features(usable(scores), features, trees=trees, seed=seed)


def _by_tampering(study: SetStudy) -> LeastFavourable:
    """Count the correct guesses that stand in half of all draws, at half the level."""
    found = study.found
    guesses = study.plan(found.audited, study.level / 2)
    rows, signs = two_sided(study.matched(guesses), guesses, study.sides)
    right = study.right(rows, signs)
    right_rows, right_signs = rows[right], signs[right]
    estimate, least = found.log_odds(), {}

    def standing(odds: FloatArray, epsilon: float) -> int:
        excess = np.maximum(odds[right_rows] * right_signs, 0.0)
        return surviving_guesses(survival(excess, np.array([epsilon])))

    def anywhere(epsilon: float) -> int:
        _, *least[epsilon] = found.core.least_surviving(right_rows, right_signs, epsilon=epsilon)
        return min(standing(least[epsilon][1], epsilon), standing(estimate, epsilon))

    bound, epsilon = _fixed_point(study, anywhere, guesses)
    at_estimate, _ = _fixed_point(study, lambda level: standing(estimate, level), guesses)
    coefficients, odds = least[epsilon]
    correct = anywhere(epsilon)
    return LeastFavourable(
        bound=bound,
        reason="" if study.claim.strength(bound) > 0 else explained(correct, guesses),
        at_estimate=at_estimate,
        correction="tamper",
        level=study.level,
        guesses=guesses,
        correct=correct,
        kept=found.audited,
        coefficients=coefficients,
        log_odds=odds,
        rows=rows,
        signs=signs,
        one_sided=study.one_sided,
    )


def _fixed_point(
    study: SetStudy, standing: Callable[[float], int], guesses: int
) -> tuple[float, float]:
    """Return inf{ε : not refuted}, and the ε whose tampering it was found with.

    From 0 upwards, ε becomes the largest that its own count refutes, until it stays. Families of
    trade-off functions are tampered with at 0, whatever their parameter.
    """
    examples = study.found.audited
    epsilon = 0.0
    while True:
        further = study.fair(standing(epsilon), guesses, examples)
        if not isinstance(study.claim, PureDP | ApproxDP):
            return further, epsilon
        if further <= epsilon:
            return epsilon, epsilon
        epsilon = further


def _by_composition(study: SetStudy) -> LeastFavourable:
    """Audit as if all coins were fair, and take off the largest |log-odds| of any example in C."""
    found, level = study.found, study.level
    claim = cast("PureDP | ApproxDP | GaussianDP", study.claim)
    ranks = study.ranked(study.scores)
    if study.guesses is None and isinstance(claim, PureDP):
        scan = audit_coins(
            ranks,
            found.member,
            OneRunRequest(
                claim=claim, confidence=confidence_of(level), sides=study.sides, seed=study.seed
            ),
        )
        guesses, correct, total = scan.guesses, scan.correct, scan.bound
        rows, signs = two_sided(ranks, found.audited, study.sides)
    else:
        # all m examples count, also where members alone are guessed: their coins are not fair
        guesses = study.plan(found.audited, level)
        rows, signs = two_sided(ranks, guesses, study.sides)
        correct = int(study.right(rows, signs).sum())
        total = claim.lower_bound(correct, guesses, found.audited, level)
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
        one_sided=study.one_sided,
    )


_CORRECTIONS: dict[str, Callable[[SetStudy], LeastFavourable]] = {
    "match": least_by_matching,
    "poisson_binomial": least_by_offsets,
    "tamper": _by_tampering,
    "composition": _by_composition,
}
