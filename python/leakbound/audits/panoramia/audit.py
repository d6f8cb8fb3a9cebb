"""PANORAMIA: audits of a trained model against generated non-members, without retraining.

Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining", 2024
(arXiv 2402.09477).
"""

import math
from dataclasses import dataclass

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import (
    check_ids,
    check_length,
    check_scores,
    choice,
    complement,
    flag,
    instance,
    real,
)
from leakbound._base.formatting import down
from leakbound._base.streams import seed_of
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    Kind,
    Relaxation,
    Tail,
)
from leakbound.audits.engine.coins import MemberCount
from leakbound.audits.engine.evidence import delta_warnings, provenance, saturation_warnings
from leakbound.audits.panoramia.conditional import REPLACED, PairAudit, Shown
from leakbound.audits.panoramia.rankings import Asked, Rankings, Relaxed
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import CUT_POLICIES, CutPolicy
from leakbound.errors import IncompatibleOptionsError
from leakbound.propensity.data import check_features
from leakbound.results import Assumption, PanoramiaResult, ScoreAudit, ZeroRunResult

_NO_DIFFERENCE = (
    "the attack finds no more than the baseline: the generated points may be too easy to tell "
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
    gamma: float = 0.0,
    delta: float = 0.0,
    tail: Tail = "exact",
    relaxation: Relaxation = "knapsack",
    max_recall: float = 1.0,
    real_nonmembers: bool = False,
    c_upper: float | None = None,
    features: ArrayInput | None = None,
    ids: ArrayInput | None = None,
    seed: int | None = None,
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
        Which cuts of each ranking are tested. If None, `KLScan()`, and `OutsideIn()` for a ranking
        with γ or δ above 0; with real non-members as for `audit_one_run` of a random split.
        `UnionBound()` is the paper's; `Weighted()` takes scores in [0, 1] as weights, without cuts.
    gamma : float
        γ of a generator that is (c, γ)-close, in [0, 1): it may miss real points of so much mass.
    delta : float
        δ of a model that is (ε, δ)-DP, in [0, 1).
    tail : {"exact", "hoeffding"}
        Limits of `UnionBound`: Clopper-Pearson, or Hoeffding's (equation 1 of the paper).
    relaxation : {"knapsack", "published"}
        How γ and δ are allowed for: whatever failures depend on (by coupling, and for `OutsideIn`
        with number and count in one proof), or for `Fixed` and `UnionBound` as published, where
        they depend on nothing.
    max_recall : float
        Cuts are tested up to this share of the examples, in (0, 1], which is their recall if scores
        say nothing. It is fixed in advance, so it is free.
    real_nonmembers : bool
        Whether the non-members are real and exchangeable with the members. Then c = 0, the examples
        shown are a random split and are audited as one: in pairs, each bound at the whole
        probability of error. The result is a lower bound, and the baseline only checks that it
        finds nothing.
    c_upper : float, optional
        An upper limit on c that the caller vouches for, at least 0. It makes the result a lower
        bound.
    features : array-like, shape (m, d), optional
        Features of the examples. With them the result has a conditional lower bound on ε beside the
        estimate: Zero-Run on the same examples, over all logistic models of the probability that
        an example is real given its features and the baseline's score which the coins do not rule
        out; tests try to refute that form.
    ids : array-like, shape (m,), optional
        One id for each attack score, in their order; checked for repetition. Baseline scores,
        membership and features that carry ids (a plan, a pandas index) are joined.
    seed : int, optional
        Seed of whatever the audit draws: the order of ties for γ or δ above
        0, and with features the halves of the confidence set and what is kept. By default a new
        one, which `options` records; one that is passed is chosen before the look.

    Returns
    -------
    PanoramiaResult
        Bounds on c and c + ε, and their difference ε̃, which is an estimate of ε; with features
        `conditional`, a lower bound on ε that holds if log-odds are linear in these.

    Raises
    ------
    ArrayTypeError, ShapeError
        If an array cannot be read, is empty or not one-dimensional.
    NaNScoresError, AbstentionError
        If a score is NaN, or all scores of a ranking are equal.
    LengthMismatchError, MembershipError
        If the arrays differ in length, or a membership value is outside the allowed sets.
    FeaturesError, MissingExtraError
        If a feature is not finite, or scikit-learn is not installed to test the propensities.
    ConflictingIdsError, DuplicateIdsError, UnmatchedIdsError
        If an id is repeated, or two arguments have ids that are not the same.
    ImplausibleCoinsError
        If the number of members is one that fair coins give with a probability below 1e-6.
    NoPairsError
        If the non-members are real, and there are none, or no members.
    IncompatibleOptionsError
        If `tail`, γ, δ, `relaxation` or `max_recall` is given for a policy that has no such form,
        or `real_nonmembers` with γ, `c_upper`, the published relaxation or `Weighted()`.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    c-closeness bounds the generator from below only, so all guesses are "member". The unseen real
    point of a pair stays in the training set: ε is that of replacing one example, which for
    training that is ε'-DP under adding or removing one is as much as 2ε'. Exchangeable non-members
    may be told by low scores as well: shown members are matched with shown non-members, and the
    larger score of each pair is guessed to be the member's (`docs/random-splits.md`).

    With `features` the examples are audited by `audit_zero_run` as well, at the same confidence: by
    each example's own odds (`conditional`; after matching for δ > 0) and after matching
    (`conditional_by_match`). Propensities are learnt from the audited coins themselves: a fifth of
    the error probability pays for a confidence set of them, and each bound is the least over that
    set. Each holds by itself, the largest of them does not. `docs/panoramia.md` has the argument.

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

    The first feature says all that these examples say of their coins:

    >>> result = audit_panoramia(baseline, attack, member, features=baseline[:, None])
    >>> result.conditional.kind, 1 < result.conditional.bound
    ('conditional_lower_bound', True)
    """
    complement(confidence)  # checks it before the arrays are read
    relaxed = Relaxed.read(gamma, delta, relaxation)
    if cuts is not None:
        instance(cuts, "cuts", CUT_POLICIES)
    choice(tail, "tail", Tail)
    real_nonmembers = flag(real_nonmembers, "real_nonmembers")
    if real_nonmembers and relaxed.gamma:
        message = "real_nonmembers=True means c = 0 and gamma = 0: leave out gamma"
        raise IncompatibleOptionsError(message)
    limit = _upper_limit(c_upper, real_nonmembers=real_nonmembers)
    seed = seed_of(seed)
    order = ExampleOrder(ids)
    attack_values = check_scores(order.scores(attack_scores, "attack_scores"), "attack_scores")
    baseline_values = check_scores(
        order.scores(baseline_scores, "baseline_scores"), "baseline_scores"
    )
    check_length(baseline_values, attack_values.size, "baseline_scores")
    included = order.member(member, attack_values.size)
    if ids is not None:
        check_ids(ids, included)
    count = MemberCount.of_coins(int(included.sum()), included.size, pairs=True)
    count.refuse()

    claim = relaxed.claim
    given = _Conditional(claim)
    if features is not None:
        table = order.placed(features, "features")
        given = _Conditional.of(
            (baseline_values, attack_values, included), table, claim, confidence, seed
        )
    asked = Asked(
        cuts=cuts,
        tail=tail,
        relaxed=relaxed,
        max_recall=max_recall,
        confidence=confidence,
        seed=seed,
    )
    audited = Rankings.of_split if real_nonmembers else Rankings.of_coins
    proved = audited(baseline_values, attack_values, included, asked)
    baseline, attack = proved.baseline, proved.attack
    c_lb = 0.0 if real_nonmembers else baseline.bound
    kind: Kind = "estimate" if limit is None else "lower_bound"
    bound = max(0.0, attack.bound - (c_lb if limit is None else limit))
    return PanoramiaResult(
        kind=kind,
        claim=claim,
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
        theorem=proved.theorem + _meaning(limit, real_nonmembers=real_nonmembers),
        assumptions=_assumptions(
            limit, relaxed, count, baseline.bound, real_nonmembers=real_nonmembers
        ),
        options={
            "cuts": attack.options["cuts"],
            "level": proved.level,
            **relaxed.options(),
            "max_recall": proved.recall,
            "real_nonmembers": real_nonmembers,
            **({"pairs": proved.guesses} if real_nonmembers else {}),
            "seed": seed,
        },
        warnings=_warnings(proved, count, limit, relaxed.delta) + given.warnings,
        conditional=given.bound,
        conditional_by_match=given.by_match,
        _provenance=provenance(
            seed, baseline_scores=baseline_values, attack_scores=attack_values, member=included
        ),
    )


@dataclass(frozen=True)
class _Conditional:
    """Lower bounds under a logistic model: the claim's own, and for pure DP by matching."""

    claim: PureDP | ApproxDP
    bound: ZeroRunResult | None = None
    by_match: ZeroRunResult | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        data: tuple[FloatArray, FloatArray, BoolArray],
        features: ArrayInput,
        claim: PureDP | ApproxDP,
        confidence: float,
        seed: int,
    ) -> "_Conditional":
        """Audit baseline scores, attack scores and coins, given features."""
        baseline, attack, member = data
        table = check_features(features, "features")
        check_length(table[:, 0], member.size, "features")
        shown = Shown.of_audited(baseline, table)
        audit = PairAudit.prepare(attack, member, shown, confidence=confidence, seed=seed)
        if isinstance(claim, ApproxDP):
            found, matched = audit.bound(claim, "match"), None
        else:
            found, matched = audit.bound(claim, "poisson_binomial"), audit.bound(claim, "match")
        return cls(claim, found, matched, _doubts(found))


def _doubts(found: ZeroRunResult) -> tuple[str, ...]:
    """Say that a conditional bound is withheld."""
    if not found.withheld:
        return ()
    note = (
        "the conditional lower bound is withheld: the propensity model was refuted (p = "
        f"{found.tested:.2g}), so the examples say more of their coins than the "
        "baseline's score and the features in a logistic regression do"
    )
    return (note,)


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


def _meaning(limit: float | None, *, real_nonmembers: bool) -> str:
    if real_nonmembers:
        return " The bound on c + ε is one on ε, of replacing one example."
    if limit is None:
        return (
            " ε̃ is not a lower bound on ε: c-closeness could not be rejected beyond c_lb; if that "
            "is tight, the model is not ε̃-DP (section 4.2)."
        )
    return f" Where c is at most {limit:g}, ε is at least the bound on c + ε minus {limit:g}."


def _no_excess(limit: float) -> str:
    return f"the bound on c + epsilon does not exceed {limit:g}, the upper limit on c"


def _warnings(
    proved: Rankings, count: MemberCount, limit: float | None, delta: float
) -> tuple[str, ...]:
    baseline, attack = proved.baseline, proved.attack
    return (
        *_contradiction(baseline, limit),
        *(() if limit is not None else _saturated(baseline)),
        *count.warnings(),
        *delta_warnings(delta, proved.guesses),
        *(f"baseline: {text}" for text in baseline.warnings),
        *(f"attack: {text}" for text in attack.warnings),
    )


def _saturated(baseline: ScoreAudit) -> tuple[str, ...]:
    return saturation_warnings(baseline.bound, lambda: baseline.ceiling)


def _contradiction(baseline: ScoreAudit, limit: float | None) -> tuple[str, ...]:
    if limit is None or baseline.bound <= limit:
        return ()
    note = (
        f"the baseline gives c >= {down(baseline.bound)}, above the upper limit {limit:g}: that "
        "limit is wrong, and the lower bound with it"
    )
    return (note,)


def _assumptions(
    limit: float | None,
    relaxed: Relaxed,
    count: MemberCount,
    c_lb: float,
    *,
    real_nonmembers: bool,
) -> tuple[Assumption, ...]:
    return (
        Assumption(
            "independent fair coins",
            count.statement(
                "A fair coin of its own decided for each pair whether the member or the non-member "
                "is shown, after everything that scores the examples was trained."
            ),
            count.status("declared"),
        ),
        _about_c(limit, relaxed.gamma, c_lb, real_nonmembers=real_nonmembers),
        REPLACED,
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
            (
                "Given membership and scores, examples shown were matched at random, from the "
                "seed; cuts and order of the guesses depend on the sizes of differences only."
                if real_nonmembers
                else "Cuts and order of the guesses depend on scores only; "
                + ("ties are broken by the seed." if relaxed.together else "ties stay together.")
            ),
            "checked",
        ),
    )


def _about_c(
    limit: float | None, gamma: float, c_lb: float, *, real_nonmembers: bool
) -> Assumption:
    close = f"(c, {gamma:g})-close" if gamma else "c-close"
    if limit is None:
        return Assumption(
            "a tight baseline",
            f"The generator is {close} for c = c_lb: the baseline finds all that tells its points "
            "from real ones. Otherwise part of ε̃ is the generator's, not the model's.",
            "unverifiable",
        )
    name, statement = (
        ("real non-members", "Members and non-members are exchangeable but for training: c = 0.")
        if real_nonmembers
        else ("upper limit on c", f"The generator is {close} for c = {limit:g}.")
    )
    if c_lb <= limit:
        return Assumption(name, statement, "declared")
    proved = f"{statement} But the baseline gives c >= {down(c_lb)}."
    return Assumption(name, proved, "contradicted")
