"""Audits of one training run in which a coin of its own decided on each example."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack, overload

from leakbound._base.alignment import ExampleOrder
from leakbound._base.records import Lazy
from leakbound._base.types import (
    ApproxBound,
    ArrayInput,
    Design,
    FdpTest,
    FloatArray,
    HasMember,
    Sides,
)
from leakbound._base.validation import check_ids
from leakbound.audits.engine.coins import MemberCount
from leakbound.audits.engine.evidence import family_assumption, provenance
from leakbound.audits.engine.warnings import delta_warnings
from leakbound.audits.multiplicity import Attacks, Proof, simultaneous_results
from leakbound.audits.one_run.proofs import one_run_proof
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.policies.biased_coins import check_prior, describe
from leakbound.claims import FAMILIES, Claim, PureDP
from leakbound.cuts import CutPolicy, Game
from leakbound.errors import IncompatibleOptionsError
from leakbound.results import Assumption, AuditResult

__all__ = ["audit_one_run"]

_PURE_DP = PureDP()

_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with "
    "probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, Nasr and Jagielski 2023, "
    "Proposition 5.1). "
)

_APPROX_THEOREM = (
    "Given the coins of the other examples, each guess is right with probability at most "
    "e^ε / (1 + e^ε), but for failures that (ε, δ)-DP makes rare. "
)

_PRIOR_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with odds of "
    "at most e^ε times those of its example's own coin if training is ε-DP (as Steinke, Nasr and "
    "Jagielski 2023, Proposition 5.1, for a coin that is not fair). "
)

_FAMILY_THEOREM = (
    "Given the coins of the other examples, each correct guess obeys the trade-off function, and "
    "so do the probabilities of all counts of correct guesses together (Mahloujifar, Melis and "
    "Chaudhuri 2025, Theorem 3.1). ε is a conversion of the rejected curve and holds within the "
    "family. "
)

_FIXED_SIZE = (
    "exactly so many examples were included, not each by its own coin: the guesses are dependent "
    "and the confidence is approximate, in either direction; draw coins next time"
)


class _Options(TypedDict, total=False):
    """What an audit takes beside scores, membership and claim."""

    confidence: float
    cuts: CutPolicy | None
    sides: Sides
    bound: ApproxBound
    test: FdpTest
    prior: float | ArrayInput
    design: Design
    assume: str | None
    ids: ArrayInput | None
    seed: int


@overload
def audit_one_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    *,
    claim: Claim = ...,
    **options: Unpack[_Options],
) -> AuditResult: ...
@overload
def audit_one_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    *,
    claim: Sequence[Claim],
    **options: Unpack[_Options],
) -> tuple[AuditResult, ...]: ...
def audit_one_run(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    *,
    claim: Claim | Sequence[Claim] = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    bound: ApproxBound = "auto",
    test: FdpTest = "tight",
    prior: float | ArrayInput = 0.5,
    design: Design = "coins",
    assume: str | None = None,
    ids: ArrayInput | None = None,
    seed: int = 0,
) -> AuditResult | tuple[AuditResult, ...]:
    """Bound the privacy loss of one training run from below.

    A fair coin decided for each of m examples whether it was in the training set; each example
    then got a score from the trained model. The examples of highest score are guessed members,
    those of lowest score non-members, and the number of correct guesses refutes every ε too small
    to explain it.

    Parameters
    ----------
    scores : array-like of shape (m,) or (A, m), or mapping of str to array-like
        Real numbers, higher for likelier members; ±inf allowed. Anything that NumPy reads. Rows,
        or a mapping from names, are attacks to audit together: each has its share of the
        probability of error, the best wins, and `options` tells which it is and what the others
        cost.
    member : array-like of shape (m,), or InclusionPlan
        What the coins said: booleans, {0, 1} or {-1, +1}. A plan, or a pandas Series, is joined
        with scores that have ids: `ids`, those of `leakbound.torch.score`, or a pandas index.
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        The guarantees, whose parameter is bounded. Of a sequence of claims each has its share of
        the probability of error, so that all bounds hold together with the stated confidence.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested, from `leakbound.cuts`. If None, `KLScan()` for
        `PureDP`; for `ApproxDP` and families of trade-off functions `OutsideIn()`, whose levels
        are planned from m, confidence, claim and sides alone, as `options` tells. With another
        `bound` or `test` than the default, `Fixed` at a number planned likewise.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    bound : {"auto", "exact", "steinke", "coupling"}
        For δ > 0, the bound on so many correct guesses: the closed form for `Fixed` and
        `UnionBound`, coupling for `KLScan` ("auto"), or what is named.
    test : {"tight", "recursion"}
        For a family of trade-off functions, the test of the number of correct guesses: against the
        worst law that all inequalities allow, or by Algorithm 3 of Mahloujifar et al. alone.
    prior : float or array-like, shape (m,)
        Probability of each coin to include, in (0, 1), in the order of the scores or with ids to
        join by. Other than ½ it is for `PureDP` with `KLScan` or `Fixed`; ties are then broken by
        the seed.
    design : {"coins", "fixed_size"}
        How the members were drawn: by independent fair coins, or as a random subset of fixed size
        (then the bound is approximate).
    assume : None
        Bounds here hold for every mechanism that satisfies the claim. "product", guesses that are
        independent given the model, is refused: for pure DP it adds nothing, and otherwise it
        needs that no example abstains.
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, and joined with those of
        `member`.
    seed : int
        Seed of whatever the audit draws: the parts of `Split`, the order of ties.

    Returns
    -------
    AuditResult or tuple of AuditResult
        The bound, in units of the claim's parameter, with what it rests on; one for each claim of
        a sequence.

    Raises
    ------
    ArrayTypeError, ShapeError
        If an array cannot be read, is empty or not one-dimensional.
    NaNScoresError, AbstentionError
        If a score is NaN, or all are equal.
    LengthMismatchError, MembershipError
        If `member` has another length than `scores`, or a value outside the allowed sets.
    UnmatchedIdsError
        If scores and membership have ids, and they are not the same.
    ConflictingIdsError, DuplicateIdsError
        If an id is repeated.
    ImplausibleCoinsError
        If the number of members is one that the coins give with a probability below 1e-6.
    IncompatibleOptionsError
        If claim, cuts, bound and prior do not go together, or `assume` is given.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    For pure DP tied scores are never split, so nothing about membership can order them; for other
    claims cuts must not depend on scores, and a random permutation from `seed` orders ties. The
    result is the same for any increasing transformation of the scores and, without ties, any order
    of the examples.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", 2023
    (arXiv 2305.08846); S. Mahloujifar, L. Melis and K. Chaudhuri, "Auditing f-differential privacy
    in one run", 2025 (arXiv 2410.22235).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = audit_one_run(scores, member)
    >>> result.kind, 1 < result.bound < result.ceiling
    ('lower_bound', True)
    >>> result.check(epsilon=0.5)
    'refuted'
    """

    def audit(one: Claim, confidence: float) -> AuditResult:
        request = OneRunRequest(
            claim=one,
            confidence=confidence,
            cuts=cuts,
            sides=sides,
            bound=bound,
            test=test,
            prior=prior,
            design=design,
            assume=assume,
            ids=ids,
            seed=seed,
        )
        return audit_coins(scores, member, request, declared=True)

    if isinstance(claim, Sequence):
        return simultaneous_results(claim, confidence, audit)
    return audit(claim, confidence)


def audit_coins(
    scores: ArrayInput | Mapping[str, ArrayInput],
    member: ArrayInput | HasMember,
    request: OneRunRequest,
    *,
    declared: bool = False,
) -> AuditResult:
    """Audit one claim as `audit_one_run` does, or as a step of another audit.

    `declared` says that coins are what the caller declared, so that the number of members must be
    one that they can give. Other audits ask this of their own design, before they come here.
    """
    claim, seed = request.claim, request.seed
    order = ExampleOrder(request.ids)
    attacks = Attacks.read(scores, order)
    included = order.member(member, attacks.examples)
    if request.ids is not None:
        check_ids(request.ids, included)
    chances = _chances(request, order.placed(request.prior, "prior"), attacks.examples)
    count = MemberCount.of_coins(int(included.sum()), included.size, chances)
    if declared:
        count.refuse(request.design)

    def prove(scores: FloatArray, level: float) -> Proof:
        game = Game(scores=scores, member=included, sides=request.sides, seed=seed)
        return one_run_proof(request, game, chances, level)

    proof = attacks.prove(request.level, prove)
    audit = proof.audit
    return AuditResult(
        bound=audit.bound,
        reason=audit.reason,
        m=audit.m,
        members=audit.members,
        guesses=audit.guesses,
        correct=audit.correct,
        path=audit.path,
        auc=audit.auc,
        options={
            **audit.options,
            "sides": request.sides,
            "prior": describe(chances),
            "design": request.design,
            "seed": seed,
            **proof.options,
        },
        warnings=(
            *audit.warnings,
            *(count.warnings() if declared else ()),
            *((_FIXED_SIZE,) if request.design == "fixed_size" else ()),
            *delta_warnings(claim.delta, attacks.examples),
        ),
        kind=proof.kind,
        claim=claim,
        confidence=request.confidence,
        theorem=_theorem(claim, chances) + proof.method,
        assumptions=_assumptions(claim, request.design, chances, count, attacks.others),
        rejected=proof.rejected,
        _ceiling=Lazy(lambda: audit.ceiling),
        _curve=Lazy(lambda: audit.curve),
        _roc=Lazy(lambda: audit.roc),
        _histogram=Lazy(lambda: audit.histogram),
        _rejectable=proof.rejectable,
        _provenance=provenance(seed, **attacks.digested, member=included, **_digested(chances)),
    )


def _chances(request: OneRunRequest, prior: float | ArrayInput, examples: int) -> FloatArray | None:
    """Return the probabilities of the coins, or None if all are fair."""
    chances = check_prior(prior, examples)
    if chances is None:
        return None
    if not isinstance(request.claim, PureDP):
        message = (
            f"prior other than 1/2 is for PureDP(): under {request.claim.name} which guesses a "
            "failure can make right depends on the scores, and the bounds here need coins that "
            "are fair"
        )
        raise IncompatibleOptionsError(message)
    request.check_bound()
    return chances


def _digested(chances: FloatArray | None) -> dict[str, FloatArray]:
    return {} if chances is None else {"prior": chances}


def _theorem(claim: Claim, chances: FloatArray | None) -> str:
    if chances is not None:
        return _PRIOR_THEOREM
    if isinstance(claim, FAMILIES):
        return _FAMILY_THEOREM
    return _APPROX_THEOREM if claim.delta else _THEOREM


def _assumptions(
    claim: Claim, design: Design, chances: FloatArray | None, count: MemberCount, others: str
) -> tuple[Assumption, ...]:
    coins = "fair coin" if chances is None else "coin, of the probability given,"
    apart = not isinstance(claim, PureDP) or chances is not None
    subject = "The trade-off function" if isinstance(claim, FAMILIES) else "ε"
    return (
        Assumption(
            "independent fair coins" if chances is None else "independent coins of known odds",
            count.statement(
                f"Each example was in the training set if its own {coins} said so; the bound is "
                "over these coins and whatever training draws, given everything else."
            ),
            count.status("declared" if design == "coins" else "approximate"),
        ),
        Assumption(
            "add or remove one example",
            f"{subject} is that of training with and without one example, also an audited one."
            + (f" δ is {claim.delta:g}." if claim.delta else ""),
            "declared",
        ),
        Assumption(
            "scores without membership",
            "The scores come from the trained model and the examples; no score was computed or "
            "chosen with a look at which of these examples were members.",
            "declared",
        ),
        Assumption(
            "options before the look",
            "Policy, sides and confidence were chosen before membership was looked at, and "
            f"{others} tried on it.",
            "declared",
        ),
        Assumption(
            "order from scores alone",
            "Cuts, sides and order of the guesses depend on scores only; "
            + ("ties are broken by the seed." if apart else "ties stay together."),
            "checked",
        ),
        *family_assumption(claim),
    )
