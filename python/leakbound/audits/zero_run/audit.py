"""Zero-Run: audits of a deployed model from given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.records import Lazy, encode
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    BoolArray,
    BootstrapMethod,
    Correction,
    CorrectionChoice,
    Design,
    FdpTest,
    FloatArray,
    HasMember,
    Sides,
    ZeroRunVariant,
)
from leakbound._base.validation import check_ids, choice, complement, flag, instance, integer, real
from leakbound.audits.engine.evidence import family_assumption, histogram, provenance
from leakbound.audits.engine.warnings import delta_warnings
from leakbound.audits.multiplicity import Attacks, simultaneous_results
from leakbound.audits.one_run.audit import audit_coins
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.zero_run.assumptions import conditions, shift_warnings
from leakbound.audits.zero_run.cross_fitting import Fold, Folds
from leakbound.audits.zero_run.proof import ShiftedProof
from leakbound.audits.zero_run.propensities import (
    Shift,
    check_certain,
    in_order,
    member_count,
    read_shift,
)
from leakbound.audits.zero_run.shift_curve import shift_curve
from leakbound.audits.zero_run.study import Study
from leakbound.audits.zero_run.subset import audited_rows
from leakbound.claims import CLAIMS, FAMILIES, ApproxDP, Claim, GaussianDP, PureDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import CUT_POLICIES, CutPolicy, Fixed, Split, Uncorrected, Weighted
from leakbound.errors import IncompatibleOptionsError
from leakbound.propensity import CrossFit, Falsification, PropensityFit
from leakbound.propensity import falsify as falsify_propensities
from leakbound.propensity.overlap import overlap
from leakbound.results import AuditResult
from leakbound.results.zero_run import ZeroRunResult

__all__ = ["audit_zero_run"]

_GAUSSIAN_DP = GaussianDP()

_DRAWS = 51
"""Draws of what is kept, of which the middle bound counts, where matching is derandomised."""


class _Options(TypedDict, total=False):
    """What an audit takes beside scores, membership, propensities and claim."""

    correction: CorrectionChoice
    confidence: float
    cuts: CutPolicy | None
    sides: Sides
    adversary: Adversary | None
    variant: ZeroRunVariant
    bootstrap: BootstrapMethod
    features: ArrayInput | None
    max_log_odds: float | None
    derandomize: bool
    test: FdpTest
    falsify: bool
    release_refuted: bool
    design: Design
    ids: ArrayInput | None
    seed: int
    executor: Executor | None
    checkpoint: str | os.PathLike[str] | None


@overload
def audit_zero_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    propensity: ArrayInput | PropensityFit | CrossFit | tuple[ArrayInput, ArrayInput],
    *,
    claim: Claim = ...,
    **options: Unpack[_Options],
) -> ZeroRunResult: ...
@overload
def audit_zero_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    propensity: ArrayInput | PropensityFit | CrossFit | tuple[ArrayInput, ArrayInput],
    *,
    claim: Sequence[Claim],
    **options: Unpack[_Options],
) -> tuple[ZeroRunResult, ...]: ...
def audit_zero_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    propensity: ArrayInput | PropensityFit | CrossFit | tuple[ArrayInput, ArrayInput],
    *,
    claim: Claim | Sequence[Claim] = _GAUSSIAN_DP,
    correction: CorrectionChoice = "conditional",
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    adversary: Adversary | None = None,
    variant: ZeroRunVariant = "directional",
    bootstrap: BootstrapMethod = "percentile",
    features: ArrayInput | None = None,
    max_log_odds: float | None = None,
    derandomize: bool = False,
    test: FdpTest = "tight",
    falsify: bool = True,
    release_refuted: bool = False,
    design: Design = "coins",
    ids: ArrayInput | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> ZeroRunResult | tuple[ZeroRunResult, ...]:
    """Bound the privacy loss of a model from below, from given members and non-members.

    Nothing was randomised: these examples were in the training set, those were not, and they may
    differ in distribution, so that right guesses may owe nothing to the model. The propensity
    π(x) = P(member | features x) says what features alone give away; a correction takes it out, and
    what is left refutes guarantees too strong to explain it.

    Parameters
    ----------
    scores : array-like of shape (m,) or (A, m), or mapping of str to array-like
        Real numbers, higher for likelier members; ±inf allowed. Rows, or a mapping from names, are
        attacks to audit together: each has its share of the probability of error, the best wins,
        and `options` tells which it is and what the others cost.
    member : array-like of shape (m,), or InclusionPlan
        Booleans, {0, 1} or {-1, +1}. What carries ids (a plan, a pandas index) is joined with the
        ids of the scores, propensities and features too.
    propensity : array-like of shape (m,) or (K, m), PropensityFit, CrossFit, or two array-likes
        Propensities; K replicates of them, or a model fitted to other examples (then half of the
        error probability is spent on their uncertainty); models of `propensity.cross_fit`, of which
        each audits the fold that it did not see at its share of the error probability, and the best
        fold wins; or a tuple of lower and upper limits, of which the worse one counts for each
        guess.
    claim : PureDP, ApproxDP or a family of trade-off functions
        The family of guarantees. Of a sequence of claims each has its share of the probability of
        error, so that all bounds hold together with the stated confidence.
    correction : {"conditional", "match", "poisson_binomial", "tamper", "composition"}
        How shift is taken out; "conditional" is "poisson_binomial" for `PureDP`, else "match", or
        "tamper" where there are limits only.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1), propensities included.
    cuts : CutPolicy, optional
        Which cuts are tested. If None, `KLScan()` for `PureDP` by matching or with odds of its own
        for each guess, else `Fixed` at a number planned from what is kept.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    adversary : {"raw", "paper_aware", "residual", "bayes"}, optional
        What guesses are ranked by: the scores; the scores less their median, weighted by what
        tampering leaves; what scores say beyond features (`stats.residual_scores`); or the
        probability to be right and survive (`stats.bayes_guesses`). If None, "bayes" for "tamper",
        "raw" for "composition", else "residual".
    variant : {"directional", "paper", "symmetric", "absolute", "untampered"}
        How guesses are tampered with (`stats.tamper_probability`); for "poisson_binomial" Tλ
        ("directional") or |λ| (the others), which stays safe if λ is too large. "untampered" is
        "poisson_binomial" for `ApproxDP`, with |λ|, and Markov's inequality for failures; "match"
        proves more.
    bootstrap : {"percentile", "recentred", "basic"}
        How the bound follows from replicates: see `stats.bootstrap_quantile`.
    features : array-like, shape (m, d), optional
        Features of the examples, for a fitted model and its falsification.
    max_log_odds : float, optional
        Examples with |λ| above this are left out. Needed if propensities are 0 or 1.
    derandomize : bool
        Whether the bound is one that half of all draws reach, at half the level, instead of that
        of one draw fixed by the seed. For "match" and "tamper".
    test : {"tight", "recursion"}
        For families of trade-off functions, which test of the number of right guesses.
    falsify : bool
        Whether an independent model, where there are features, tries to refute the propensities.
    release_refuted : bool
        Whether to report the bound although the propensities were refuted, instead of 0. The
        assumption is "contradicted" all the same.
    design : {"coins", "fixed_size"}
        Whether each example joined training independently of the others given the features, or
        numbers were fixed. Then a subset with random numbers is audited and the claim is about
        replacing an example.
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, joined with those of
        `member`, and compared with those the model was fitted to.
    seed : int
        Seed of everything drawn: the order of ties, what is kept or tampered with, refits.
    executor : concurrent.futures.Executor, optional
        Where to run the 600 refits of a fitted model, such as a process pool; on all threads of
        this process if None. The bound is the same.
    checkpoint : str or os.PathLike, optional
        A folder to keep finished refits in, from which an interrupted audit carries on: see
        `PropensityFit.bootstrap`.

    Returns
    -------
    ZeroRunResult or tuple of ZeroRunResult
        The bound, of kind "conditional_lower_bound": it holds if the propensities do; one for each
        claim of a sequence.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, FeaturesError
        If an array cannot be read, or does not fit the others.
    NaNScoresError, AbstentionError
        If a score is NaN, or all are equal.
    MembershipError, ConflictingIdsError, DuplicateIdsError, OverlappingIdsError, UnmatchedIdsError
        If membership or ids are not what they must be.
    ImplausibleCoinsError
        If the number of members is one that propensities that are known, or all between limits,
        give with a probability below 1e-6. Those that are learnt count as refuted instead.
    OptionError, OptionTypeError
        If an option is outside its range; or a propensity outside [0, 1], or 0 or 1 without
        `max_log_odds`.
    NoOverlapError
        If no example could have been both a member and a non-member.
    IncompatibleOptionsError
        If options make no sense together.
    PropensityFitError, ClassMissingError
        If a refit of a fitted model is not finite, or resamples lack a class.
    CheckpointError, OSError
        If `checkpoint` was begun with other data or options, or cannot be written.
    MissingExtraError
        If the propensities are to be refuted and scikit-learn is not installed.

    Notes
    -----
    `docs/zero-run.md` says of each correction what is tested, what is random and what is assumed.

    References
    ----------
    T. Cebere, M. Even, L. Bleistein and A. Bellet, "Privacy auditing with zero (0) training run".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> log_odds = 1.5 * rng.normal(size=4000)
    >>> member = rng.random(4000) < 1 / (1 + np.exp(-log_odds))
    >>> shifted = log_odds + 0.5 * rng.normal(size=4000)  # knows features, not membership
    >>> result = audit_zero_run(shifted, member, 1 / (1 + np.exp(-log_odds)))
    >>> result.bound, result.naive.bound > 0.5
    (0.0, True)
    """
    options: _Options = {
        "correction": correction,
        "cuts": cuts,
        "sides": sides,
        "adversary": adversary,
        "variant": variant,
        "bootstrap": bootstrap,
        "max_log_odds": max_log_odds,
        "derandomize": derandomize,
        "test": test,
        "falsify": falsify,
        "release_refuted": release_refuted,
        "design": design,
        "seed": seed,
        "executor": executor,
    }
    given: Any = propensity
    if isinstance(claim, Sequence):
        options |= {"features": features, "ids": ids, "checkpoint": checkpoint}

        def alone(one: Claim, confidence: float) -> ZeroRunResult:
            shared: _Options = {**options, "confidence": confidence}
            result: ZeroRunResult = audit_zero_run(scores, member, given, claim=one, **shared)
            return result

        return simultaneous_results(claim, confidence, alone)
    instance(claim, "claim", CLAIMS)
    if cuts is not None:
        instance(cuts, "cuts", CUT_POLICIES)
    for value, name, allowed in (
        (correction, "correction", CorrectionChoice),
        (sides, "sides", Sides),
        (variant, "variant", ZeroRunVariant),
        (bootstrap, "bootstrap", BootstrapMethod),
        (design, "design", Design),
        (test, "test", FdpTest),
    ):
        choice(value, name, allowed)
    for switch, name in (
        (derandomize, "derandomize"),
        (falsify, "falsify"),
        (release_refuted, "release_refuted"),
    ):
        flag(switch, name)
    if adversary is not None:
        choice(adversary, "adversary", Adversary)
    beta = complement(confidence)
    seed = integer(seed, "seed", least=0)
    order = ExampleOrder(ids)
    attacks = Attacks.read(scores, order)
    included = order.member(member, attacks.examples)
    if ids is not None:
        check_ids(ids, included)

    def naive() -> AuditResult:
        uncorrected = audit_coins(
            attacks.given,
            included,
            OneRunRequest(claim=claim, confidence=confidence, sides=sides, test=test, seed=seed),
        )
        return replace(uncorrected, kind="invalid", theorem=_NAIVE + uncorrected.theorem)

    if isinstance(propensity, CrossFit):
        crossed = Folds(propensity, attacks, included, ids, checkpoint)
        crossed.check(features)

        def of_fold(fold: Fold, confidence: float) -> ZeroRunResult:
            shared: _Options = {**options, **fold.options, "confidence": confidence}
            model: Any = fold.model
            result: ZeroRunResult = audit_zero_run(
                fold.scores, fold.member, model, claim=claim, **shared
            )
            return result

        return replace(
            crossed.best(beta, of_fold),
            confidence=float(confidence),
            _naive=Lazy(naive),
            _provenance=provenance(
                seed, **attacks.digested, member=included, features=propensity.features
            ),
        )
    features = None if features is None else order.placed(features, "features")
    shift = read_shift(
        in_order(propensity, order),
        included,
        features=features,
        ids=ids,
        seed=seed,
        executor=executor,
        checkpoint=checkpoint,
    )
    limit = None if max_log_odds is None else real(max_log_odds, "max_log_odds", above=0)
    check_certain(shift, limit)
    kind = _correction(correction, claim, shift, variant)
    _check_policy(cuts)
    count = member_count(shift, included, limit)
    if shift.draws is None:
        count.refuse()
    rows = audited_rows(attacks.scores.values(), included, shift, limit, design, seed)
    if isinstance(cuts, Fixed):
        cuts.check(rows.size)
    uniforms = Purpose.MATCHING.rng(seed).random(
        (_DRAWS if derandomize and kind == "match" else 1, rows.size)
    )
    seen = shift.rows(rows)

    def prove(values: FloatArray, beta: float) -> ShiftedProof:
        level = beta if shift.draws is None else beta / 2
        study = Study(
            scores=values[rows],
            member=included[rows],
            shift=seen,
            uniforms=uniforms,
            claim=claim,
            cuts=cuts,
            sides=sides,
            adversary=adversary or _ADVERSARIES[kind],
            variant=variant,
            level=level / 2 if derandomize else level,
            derandomize=bool(derandomize),
            test=test,
            seed=seed,
        )
        return ShiftedProof.of(study, kind, p=level, method=bootstrap)

    proof = attacks.prove(beta, prove)
    study, corrected, audit = proof.study, proof.corrected, proof.corrected.audit
    refutation = _falsified(shift, features, included, seed) if falsify else None
    refuted = count.impossible or (refutation is not None and refutation.refuted)
    withheld = refuted and not release_refuted
    bound, reason = (claim.nothing, _WITHHELD) if withheld else (proof.bound, proof.reason)

    def tampered() -> float | None:
        return None if withheld or kind != "match" else proof.by_tampering(bootstrap)

    return ZeroRunResult(
        kind="conditional_lower_bound",
        claim=claim,
        confidence=float(confidence),
        bound=bound,
        reason=reason,
        m=rows.size,
        members=int(included[rows].sum()),
        guesses=audit.guesses,
        correct=audit.correct,
        path=audit.path,
        auc=audit.auc,
        theorem=corrected.theorem,
        assumptions=conditions(shift, count, refutation, design, limit, attacks.others)
        + family_assumption(claim),
        options=audit.options
        | {
            "correction": kind,
            "sides": sides,
            "adversary": study.adversary,
            "variant": variant,
            "max_log_odds": limit,
            "derandomize": bool(derandomize),
            "test": test,
            "design": design,
            "level": study.level,
            "seed": seed,
            "claim": encode(claim),
        }
        | proof.options,
        warnings=audit.warnings
        + study.warnings()
        + shift.warnings
        + count.warnings()
        + shift_warnings(corrected, shift, refutation, rows.size, design)
        + delta_warnings(claim.delta, rows.size),
        rejected=_curve(claim, bound, sides),
        _rejectable=Lazy(lambda: _curve(claim, audit.ceiling, sides)),
        correction=kind,
        kept=corrected.kept,
        m_eff=corrected.m_eff,
        abstained=int((shift.largest > (np.inf if limit is None else limit)).sum()),
        bootstrap=proof.replicates,
        falsification=refutation,
        withheld=withheld,
        _ceiling=Lazy(lambda: audit.ceiling),
        _curve=Lazy(lambda: audit.curve),
        _roc=Lazy(lambda: audit.roc),
        _histogram=Lazy(lambda: histogram(study.scores, study.member)),
        _naive=Lazy(naive),
        _overlap=Lazy(lambda: overlap(shift.log_odds, included)),
        _by_tampering=Lazy(tampered),
        _shift_curve=Lazy(lambda: None if withheld else shift_curve(study, kind, audit.guesses)),
        _provenance=provenance(seed, **attacks.digested, member=included, log_odds=shift.log_odds),
    )


_ADVERSARIES: dict[Correction, Adversary] = {
    "match": "residual",
    "poisson_binomial": "residual",
    "tamper": "bayes",
    "composition": "raw",
}

_WITHHELD = (
    "the propensity model was refuted, so the bound is withheld: fit a richer one, or ask for the "
    "bound with release_refuted=True"
)
_NAIVE = "INVALID under distribution shift: propensities are taken to be 1/2. "


def _correction(
    correction: CorrectionChoice, claim: Claim, shift: Shift, variant: ZeroRunVariant
) -> Correction:
    if variant == "untampered":
        if isinstance(claim, ApproxDP) and correction in {"conditional", "poisson_binomial"}:
            return "poisson_binomial"
        message = (
            f'variant="untampered" is for ApproxDP(δ) by correction="poisson_binomial", got '
            f"{claim!r} by {correction!r}: take another variant"
        )
        raise IncompatibleOptionsError(message)
    if correction != "conditional":
        return correction
    if isinstance(claim, PureDP):
        return "poisson_binomial"
    return "tamper" if shift.limited else "match"


def _curve(claim: Claim, bound: float, sides: Sides) -> TradeOff | None:
    """Return the curve of a family at a bound; None if nothing is bounded, or no family."""
    if not isinstance(claim, FAMILIES) or bound == claim.nothing:
        return None
    return claim.attained(bound, sides)


def _check_policy(cuts: CutPolicy | None) -> None:
    if isinstance(cuts, Split | Uncorrected | Weighted):
        message = (
            f"cuts={cuts!r} has no form for Zero-Run: choose a policy that is fixed in advance"
        )
        raise IncompatibleOptionsError(message)


def _falsified(
    shift: Shift, features: ArrayInput | None, member: BoolArray, seed: int
) -> Falsification | None:
    """Try to refute the propensities as numbers, where features are known."""
    if features is None or shift.limited:
        return None
    return falsify_propensities(shift.log_odds, features, member, seed=seed)
