"""Zero-Run: audits of a deployed model from given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from leakbound._base.streams import seed_of
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    CorrectionChoice,
    HasMember,
    SidesChoice,
    Uncertainty,
    ZeroRunVariant,
)
from leakbound.audits.zero_run.by_shift import ShiftAudit
from leakbound.audits.zero_run.candidates import Candidates
from leakbound.audits.zero_run.cross_fitting import FoldsAudit
from leakbound.audits.zero_run.over_set import Learning, SetAudit
from leakbound.audits.zero_run.request import ZeroRunRequest
from leakbound.claims import Claim, GaussianDP
from leakbound.cuts import CutPolicy
from leakbound.errors import IncompatibleOptionsError
from leakbound.propensity import CrossFit, LogisticPropensity, PropensityFit, SklearnPropensity
from leakbound.results.zero_run import ZeroRunResult

Scores: TypeAlias = ArrayInput | Mapping[str, ArrayInput]
Propensities: TypeAlias = (
    ArrayInput | PropensityFit | CrossFit | LogisticPropensity | tuple[ArrayInput, ArrayInput]
)
_GAUSSIAN_DP = GaussianDP()


def audit_zero_run(
    scores: Scores,
    member: ArrayInput | HasMember,
    propensity: Propensities,
    *,
    claim: Claim = _GAUSSIAN_DP,
    correction: CorrectionChoice = "conditional",
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: SidesChoice = "both",
    adversary: Adversary | None = None,
    variant: ZeroRunVariant = "directional",
    uncertainty: Uncertainty | None = None,
    features: ArrayInput | None = None,
    max_log_odds: float | None = None,
    falsify: bool = True,
    release_refuted: bool = False,
    ids: ArrayInput | None = None,
    seed: int | None = None,
) -> ZeroRunResult:
    """Bound the privacy loss of a model from below, from given members and non-members.

    Nothing was randomised: these examples were in the training set, those were not, and they may
    differ in distribution, so that correct guesses may say nothing about the model. The propensity
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
    propensity : array-like, PropensityFit, LogisticPropensity, CrossFit, or two array-likes
        Propensities, shape (m,), taken as right; a model fitted to other examples (D'); a logistic
        model that is not fitted, to be learnt from the audited labels alone; or a tuple of lower
        and upper limits, of which the worse one counts for each guess. To explore, K replicates of
        shape (K, m), or models of `propensity.cross_fit`, of which each audits the fold that it did
        not see at its share of the error probability, and the best fold wins; logistic ones are
        learnt from all audited labels instead, unless a bootstrap is asked for.
    claim : PureDP, ApproxDP or a family of trade-off functions
        The family of guarantees.
    correction : {"conditional", "match", "poisson_binomial", "tamper", "composition"}
        How shift is taken out; "conditional" is "poisson_binomial" for `PureDP`, else "match", or
        "tamper" where there are limits only.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1), propensities included.
    cuts : CutPolicy, optional
        Which cuts are tested. If None, `KLScan()` for `PureDP` by matching or with odds of its own
        for each guess, `OutsideIn()` for other claims by matching, else `Fixed` at a planned
        number. Over a confidence set `Fixed`, or if None a number that labels choose from the
        outside in (matching, where there is D'), and else planned ones.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    adversary : {"raw", "paper_aware", "residual"}, optional
        What guesses are ranked by: the scores; the scores less their median, weighted by what
        tampering leaves; or what scores say beyond features (`stats.residual_scores`). If None,
        "raw" for "composition", else "residual". Over a confidence set leave it out: what features
        predict of the scores is taken off, and guesses are balanced against features.
    variant : {"directional", "paper", "untampered"}
        How guesses are tampered with (`stats.tamper_probability`); for "poisson_binomial" Tλ
        ("directional") or |λ| (the others), which stays safe if λ is too large. "untampered" is
        "poisson_binomial" for `ApproxDP`, with |λ|, and Markov's inequality for failures; "match"
        proves more.
    uncertainty : {"set", "bootstrap", "none"}, optional
        What is done about the error of a model. "set", the default of logistic ones: the bound is
        the least over a confidence set of their coefficients, which holds the true ones in finite
        samples. "bootstrap", the default of others: a low percentile of refits, the procedure of
        the paper, which is no confidence bound; "none": the model is taken as it is. Both are of
        kind "exploratory_lower_bound" and refute nothing.
    features : array-like, shape (m, d), optional
        Features of the examples, for a model and tests of it.
    max_log_odds : float, optional
        Examples with |λ| above this are left out. Needed if propensities are 0 or 1. With a fitted
        model λ is that of D'.
    falsify : bool
        Whether tests, where there are features, try to refute the propensities: an independent
        model, and for a confidence set score tests of its form. They take scikit-learn.
    release_refuted : bool
        Whether to report the bound although the propensities were refuted, instead of 0. The
        assumption is "contradicted" all the same.
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, joined with those of
        `member`, and compared with those the model was fitted to.
    seed : int, optional
        Seed of everything drawn: the order of ties, what is kept or tampered with, refits. By
        default a new one, which `options` records; one that is passed is chosen before the look.

    Returns
    -------
    ZeroRunResult
        The bound, of kind "conditional_lower_bound": it holds if the propensities do, or the form
        of a logistic model; "exploratory_lower_bound" with replicates and other models. Where
        labels allow no confidence set, 0 with the reason.

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
    >>> result.bound, result.naive > 0.5
    (0.0, True)
    """
    request = ZeroRunRequest(
        claim=claim,
        correction=correction,
        confidence=confidence,
        cuts=cuts,
        sides=sides,
        adversary=adversary,
        variant=variant,
        uncertainty=uncertainty,
        features=features,
        max_log_odds=max_log_odds,
        falsify=falsify,
        release_refuted=release_refuted,
        ids=ids,
        seed=seed_of(seed),
    )
    candidates = Candidates.read(scores, member, request)
    audit: Callable[[Claim, float], ZeroRunResult]
    if _by_set(propensity, request):
        logistic = cast("PropensityFit | CrossFit | LogisticPropensity", propensity)
        audit = SetAudit.prepare(candidates, Learning.of(logistic, candidates))
    elif isinstance(propensity, CrossFit):
        audit = FoldsAudit.prepare(candidates, propensity)
    else:
        audit = ShiftAudit.prepare(candidates, propensity)
    return audit(claim, request.confidence)


def _by_set(propensity: Propensities, request: ZeroRunRequest) -> bool:
    """Return whether log-odds are learnt over a confidence set, or refuse what has none."""
    asked, given = request.uncertainty, cast("Any", propensity)
    if isinstance(given, LogisticPropensity) and asked in {None, "set"}:
        return True
    if isinstance(given, LogisticPropensity | SklearnPropensity):
        message = (
            "a model that is not fitted learns from the audited labels, which takes a logistic one "
            "and a confidence set: fit it to other examples, or cross-fit it (cross_fit)"
        )
        raise IncompatibleOptionsError(message)
    if isinstance(propensity, PropensityFit | CrossFit):
        if asked == "set" and not propensity.logistic:
            message = (
                'uncertainty="set" is for logistic models, the only ones with a confidence set: '
                'take LogisticPropensity, or explore with uncertainty="bootstrap"'
            )
            raise IncompatibleOptionsError(message)
        return asked in {None, "set"} and propensity.logistic
    replicated = not isinstance(given, tuple) and np.ndim(given) == 2
    if asked is not None and not (replicated and asked == "bootstrap"):
        message = (
            f'uncertainty="{asked}" is for propensities that are learnt, and these are given: '
            "leave it out, or pass a model"
        )
        raise IncompatibleOptionsError(message)
    return False
