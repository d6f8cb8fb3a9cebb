"""PANORAMIA: audits of a trained model against generated non-members, without retraining.

Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining", 2024
(arXiv 2402.09477).
"""

import math
from dataclasses import replace

from leakbound._rounding import down
from leakbound._typing import ArrayInput, FloatArray, HasMember, Kind, Tail
from leakbound._validate import (
    check_ids,
    check_length,
    check_membership,
    check_scores,
    choice,
    complement,
    instance,
    integer,
    real,
)
from leakbound.audits._details import provenance
from leakbound.audits._engine import audit_scores
from leakbound.audits._warnings import coin_warnings
from leakbound.claims import PureDP
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan, UnionBound
from leakbound.errors import IncompatibleOptionsError
from leakbound.results import Assumption, PanoramiaResult, ScoreAudit

__all__ = ["audit_panoramia"]

_THEOREM = (
    "If the generator is c-close, each member guess of the baseline is right with probability at "
    "most e^c / (1 + e^c), given the scores and the coins before; if the model is also ε-DP, each "
    "of the attack with probability at most e^(c+ε) / (1 + e^(c+ε)) (Kazmi et al. 2024, "
    "Propositions 1 and 2). Each bound has half of the probability of error (Corollary 1). "
)
_NO_DIFFERENCE = (
    "the attack proves no more than the baseline: the generated points may be too easy to tell "
    "from real ones, the attack may be too weak, or the model may leak little (Kazmi et al. 2024, "
    "appendix D.5)"
)


def audit_panoramia(
    baseline_scores: ArrayInput,
    attack_scores: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    tail: Tail = "exact",
    real_nonmembers: bool = False,
    c_upper: float | None = None,
    ids: ArrayInput | None = None,
    seed: int = 0,
) -> PanoramiaResult:
    """Compare an attack on a trained model with a baseline that never saw the model.

    A fair coin decided for each of m pairs whether the auditor sees a known member of the training
    set or a generated point. The baseline scores the point alone, the attack the point and what
    the model says about it. What the attack proves beyond the baseline is put down to the model.

    Parameters
    ----------
    baseline_scores : array-like, shape (m,)
        Real numbers from the examples alone, higher for likelier members; ±inf allowed.
    attack_scores : array-like, shape (m,)
        Real numbers that may also depend on the audited model.
    member : array-like of shape (m,), or InclusionPlan
        Which examples are members: booleans, {0, 1} or {-1, +1}.
    confidence : float
        Probability that both bounds are not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts of each ranking are tested; `KLScan()` if None. `UnionBound()` is the paper's.
    tail : {"exact", "hoeffding"}
        Limits of `UnionBound`: Clopper-Pearson, or Hoeffding's (equation 1 of the paper).
    real_nonmembers : bool
        Whether the non-members are real and exchangeable with the members. Then c = 0, the result
        is a lower bound, and the baseline only checks that it finds nothing.
    c_upper : float, optional
        An upper limit on c that the caller vouches for, at least 0. It makes the result a lower
        bound.
    ids : array-like, shape (m,), optional
        One id for each example; checked for repetition.
    seed : int
        Seed of whatever the audit draws: the parts of `Split`.

    Returns
    -------
    PanoramiaResult
        Bounds on c and c + ε, and their difference ε̃, which is an estimate of ε.

    Raises
    ------
    ArrayTypeError, ShapeError
        If an array cannot be read, is empty or not one-dimensional.
    NaNScoresError, AbstentionError
        If a score is NaN, or all scores of a ranking are equal.
    LengthMismatchError, MembershipError
        If the arrays differ in length, or a membership value is outside the allowed sets.
    ConflictingIdsError, DuplicateIdsError
        If an id is repeated.
    IncompatibleOptionsError
        If `tail` is given for a policy that has none, or both `real_nonmembers` and `c_upper`.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    c-closeness bounds the generator from below only, so all guesses are "member". The unseen real
    point of a pair stays in the training set: ε is that of replacing one example, which for
    training that is ε'-DP under adding or removing one is as much as 2ε'.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(4000) < 0.5
    >>> baseline = rng.normal(size=4000) + 0.3 * member
    >>> attack = rng.normal(size=4000) + 2.0 * member
    >>> result = audit_panoramia(baseline, attack, member)
    >>> result.kind, result.lower_bound
    ('estimate', None)
    >>> 0 < result.c_lb < result.c_plus_epsilon_lb
    True
    """
    beta = complement(confidence)
    policy = _policy(KLScan() if cuts is None else cuts, tail)
    limit = _upper_limit(c_upper, real_nonmembers=real_nonmembers)
    seed = integer(seed, "seed", least=0)
    baseline_values = check_scores(baseline_scores, "baseline_scores")
    attack_values = check_scores(attack_scores, "attack_scores")
    check_length(baseline_values, attack_values.size, "baseline_scores")
    included = check_membership(member, attack_values.size)
    if ids is not None:
        check_ids(ids, included)

    def prove(values: FloatArray, name: str) -> ScoreAudit:
        return audit_scores(
            values, included, cuts=policy, sides="member", beta=beta / 2, seed=seed, name=name
        )

    baseline, attack = prove(baseline_values, "baseline scores"), prove(attack_values, "scores")
    c_lb = 0.0 if real_nonmembers else baseline.bound
    kind = _kind(policy, limit)
    bound = max(0.0, attack.bound - (c_lb if limit is None else limit))
    return PanoramiaResult(
        kind=kind,
        claim=PureDP(),
        bound=bound,
        reason="" if bound else _NO_DIFFERENCE if limit is None else _no_excess(limit),
        confidence=float(confidence),
        m=attack.m,
        c_lb=c_lb,
        c_plus_epsilon_lb=attack.bound,
        epsilon_tilde=max(0.0, attack.bound - c_lb),
        c_upper=limit,
        lower_bound=bound if kind == "lower_bound" else None,
        baseline=baseline,
        attack=attack,
        theorem=_THEOREM + policy.method + _meaning(limit),
        assumptions=_assumptions(limit, real_nonmembers=real_nonmembers),
        options={
            "cuts": attack.options["cuts"],
            "level": beta / 2,
            "real_nonmembers": real_nonmembers,
            "seed": seed,
        },
        warnings=_warnings(baseline, attack, limit),
        _provenance=provenance(
            seed, baseline_scores=baseline_values, attack_scores=attack_values, member=included
        ),
    )


def _policy(cuts: CutPolicy, tail: Tail) -> CutPolicy:
    """Return the policy with the limits asked for."""
    instance(cuts, "cuts", CUT_POLICIES)
    choice(tail, "tail", Tail)
    if tail == "exact":
        return cuts
    if not isinstance(cuts, UnionBound):
        message = (
            f'tail="{tail}" is for cuts=UnionBound(): {type(cuts).__name__} has no such limits'
        )
        raise IncompatibleOptionsError(message)
    return replace(cuts, tail=tail)


def _upper_limit(c_upper: float | None, *, real_nonmembers: bool) -> float | None:
    """Return what c is known not to exceed, if anything."""
    if c_upper is None:
        return 0.0 if real_nonmembers else None
    if real_nonmembers:
        message = (
            "real_nonmembers=True means c = 0: leave out c_upper, or set real_nonmembers=False"
        )
        raise IncompatibleOptionsError(message)
    return real(c_upper, "c_upper", least=0, below=math.inf)


def _kind(policy: CutPolicy, limit: float | None) -> Kind:
    if policy.kind == "invalid":
        return "invalid"
    return "estimate" if limit is None else "lower_bound"


def _meaning(limit: float | None) -> str:
    if limit is None:
        return (
            " ε̃ is not a lower bound on ε: c-closeness could not be rejected beyond c_lb; if that "
            "is tight, the model is not ε̃-DP (section 4.2)."
        )
    return f" Where c is at most {limit:g}, ε is at least the bound on c + ε minus {limit:g}."


def _no_excess(limit: float) -> str:
    return f"the bound on c + epsilon does not exceed {limit:g}, the upper limit on c"


def _warnings(baseline: ScoreAudit, attack: ScoreAudit, limit: float | None) -> tuple[str, ...]:
    return (
        *_contradiction(baseline, limit),
        *coin_warnings(attack.members, attack.m),
        *(f"baseline: {text}" for text in baseline.warnings),
        *(f"attack: {text}" for text in attack.warnings),
    )


def _contradiction(baseline: ScoreAudit, limit: float | None) -> tuple[str, ...]:
    if limit is None or baseline.bound <= limit:
        return ()
    note = (
        f"the baseline proves c >= {down(baseline.bound)}, above the upper limit {limit:g}: that "
        "limit is wrong, and the lower bound with it"
    )
    return (note,)


def _assumptions(limit: float | None, *, real_nonmembers: bool) -> tuple[Assumption, ...]:
    return (
        Assumption(
            "independent fair coins",
            "A fair coin of its own decided for each pair whether the member or the non-member is "
            "shown, after everything that scores the examples was trained.",
            "declared",
        ),
        _about_c(limit, real_nonmembers=real_nonmembers),
        Assumption(
            "replace one example",
            "The hidden member of a pair stays in the training set, so ε is that of replacing one "
            "example; training that is ε-DP under adding or removing one may reach 2ε here.",
            "declared",
        ),
        Assumption(
            "separate training data",
            "No audited member trained the generator, the baseline or the attack, and the baseline "
            "saw nothing of the model.",
            "declared",
        ),
        Assumption(
            "options before the look",
            "Policy and confidence were chosen before membership was looked at, and no other "
            "baseline or attack was tried on it.",
            "declared",
        ),
        Assumption(
            "order from scores alone",
            "Cuts and order of the guesses depend on scores only; ties stay together.",
            "checked",
        ),
    )


def _about_c(limit: float | None, *, real_nonmembers: bool) -> Assumption:
    if real_nonmembers:
        statement = "Members and non-members are exchangeable but for training: c = 0."
        return Assumption("real non-members", statement, "declared")
    if limit is not None:
        statement = f"The generator is c-close for c = {limit:g}."
        return Assumption("upper limit on c", statement, "declared")
    return Assumption(
        "a tight baseline",
        "The generator is c-close for c = c_lb: the baseline finds all that tells its points from "
        "real ones. Otherwise part of ε̃ is the generator's, not the model's.",
        "unverifiable",
    )
