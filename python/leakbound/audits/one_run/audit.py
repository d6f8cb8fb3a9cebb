"""Audits of one training run in which a coin of its own decided on each example."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids
from leakbound._base.streams import seed_of
from leakbound._base.tally import Tally
from leakbound._base.types import (
    Aggregate,
    ArrayInput,
    Design,
    FloatArray,
    HasMember,
    JsonValue,
    SidesChoice,
)
from leakbound.audits.engine.coins import MemberCount
from leakbound.audits.engine.evidence import delta_warnings, family_assumption
from leakbound.audits.multiplicity import Attacks, Proof
from leakbound.audits.one_run.grounds import SCORES, one_run_result, options_before
from leakbound.audits.one_run.proofs import one_run_proof
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.audits.policies.biased_coins import check_prior, describe
from leakbound.claims import FAMILIES, Claim, PureDP
from leakbound.cuts import CutPolicy, ScoreGame, TallyGame
from leakbound.errors import IncompatibleOptionsError
from leakbound.results import Assumption, AuditResult

_PURE_DP = PureDP()

_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with "
    "probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, Nasr and Jagielski 2023, "
    "Proposition 5.1). "
)

_COUNTED = Assumption(
    "every example counted once",
    "The counts are of different examples, each counted once, at a key of its score that has "
    "nothing of its membership; shards that were added twice are refused, copies within them are "
    "not seen.",
    "declared",
)
_HALF = 0.5

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


Scores: TypeAlias = ArrayInput | Mapping[str, ArrayInput] | Tally


def audit_one_run(
    scores: Scores,
    member: ArrayInput | HasMember | None = None,
    *,
    claim: Claim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: SidesChoice = "both",
    prior: float | ArrayInput = 0.5,
    design: Design = "coins",
    strata: ArrayInput | None = None,
    groups: ArrayInput | None = None,
    aggregate: Aggregate = "mean",
    features: ArrayInput | None = None,
    ids: ArrayInput | None = None,
    seed: int | None = None,
) -> AuditResult:
    """Bound the privacy loss of one training run from below.

    A fair coin decided for each of m examples whether it was in the training set; each example
    then got a score from the trained model. The examples of highest score are guessed members,
    those of lowest score non-members, and the number of correct guesses refutes every ε too small
    to explain it.

    Parameters
    ----------
    scores : array-like of shape (m,), (m, 1) or (A, m), mapping of str to array-like, or Tally
        Real numbers, higher for likelier members; ±inf allowed. Anything that NumPy reads. Rows, a
        mapping from names, or the columns of a pandas, polars or Arrow frame, are attacks to audit
        together: each has its share of the probability of error, the best wins, and `options`
        tells which it is and what the others cost. A `Tally` has counts of scores and members, and
        is audited in the memory of these.
    member : array-like of shape (m,), or InclusionPlan
        What the coins said, left out with a tally: booleans, {0, 1} or {-1, +1}. A plan, or a
        pandas Series, is joined with scores that have ids: `ids`, those of `leakbound.torch.score`,
        or a pandas index.
    claim : PureDP, ApproxDP, GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        The guarantees, whose parameter is bounded.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested, from `leakbound.cuts`. If None, `KLScan()` for
        `PureDP`, of a random split with kappa = ln(1/β); for `ApproxDP` and families of trade-off
        functions `OutsideIn()`, whose levels are planned from m, confidence, claim and sides alone,
        as `options` tells.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    prior : float or array-like, shape (m,)
        Probability of each coin to include, in (0, 1), in the order of the scores or with ids to
        join by. Other than ½ it is for `PureDP` with `KLScan` or `Fixed`; ties are then broken by
        the seed.
    design : {"coins", "random_split"}
        How the members were drawn: by independent coins, or as a random subset of the examples,
        as a split into training set and test set is. A random split is audited in pairs, and the
        bound is on replacing one example.
    strata : array-like, shape (m,), optional
        Under "random_split", the stratum of each example if the split was made within strata:
        numbers or text that training had no part in.
    groups : array-like, shape (m,), optional
        Under "random_split", the group of each example if whole groups were split, such as all
        rows of a user. The bound is then on replacing one of these.
    aggregate : {"mean", "max", "log_mean_exp"}
        The score of a group, from those of its rows.
    features : array-like, shape (m, d), optional
        Under "random_split", features of the examples, from which two classifiers bet on which of
        each pair is the member. If a random split would let them win so often with a probability
        below 0.001, its randomness is contradicted and the bound withheld.
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, and joined with those of
        `member`.
    seed : int, optional
        Seed of whatever the audit draws: the matching, the order of ties. By default a new one,
        which `options` records; one that is passed is chosen before the look.

    Returns
    -------
    AuditResult
        The bound, in units of the claim's parameter, with what it rests on.

    Raises
    ------
    ArrayTypeError, ShapeError
        If an array cannot be read, is empty or not one-dimensional.
    NaNScoresError, AbstentionError
        If a score is NaN, or all are equal.
    LengthMismatchError, MembershipError
        If `member` has another length than `scores`, or a value outside the allowed sets.
    FeaturesError, MissingExtraError
        If a feature is not finite, or scikit-learn is not installed to test the split.
    NoPairsError
        If a random split has no pair of member and non-member.
    UnmatchedIdsError
        If scores and membership have ids, and they are not the same.
    ConflictingIdsError, DuplicateIdsError
        If an id is repeated.
    ImplausibleCoinsError
        If the number of members is one that the coins give with a probability below 1e-6.
    IncompatibleOptionsError
        If claim, cuts and prior do not go together, `member` is missing, or an option tells apart
        examples that a tally counts.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    Of a random split, as many members and non-members as can be are matched at random, within
    strata, by the seed. Given the unordered pairs, which of the two is the member is decided by
    fair coins, whatever the sizes of the parts. A guess is the sign of the difference of the two
    scores, its size the confidence. A difference of 0 is no guess for pure DP; for other claims,
    where the number of guesses must not depend on scores, it is the toss of a coin. Sizes are
    compared on a scale that membership has no part in: z (1 + |z| / 4), z being scores less their
    median over 1.4826 times their median distance from it. One path, from the largest difference
    on, has the whole probability of error. `docs/random-splits.md` has theorem and proof.

    For pure DP tied scores are never split, so nothing about membership can order them; for other
    claims cuts must not depend on scores, and a random permutation from `seed` orders ties. Except
    for random splits, the result is the same for any increasing transformation of the scores and,
    without ties, any order of the examples.

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

    Of 1,000 examples, 800 were drawn to train on:

    >>> member = rng.permutation(1000) < 800
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = audit_one_run(scores, member, design="random_split")
    >>> result.options["pairs"], result.options["relation"], result.bound > 1
    (200, 'replace', True)
    """
    request = OneRunRequest(
        claim=claim,
        confidence=confidence,
        cuts=cuts,
        sides=sides,
        prior=prior,
        design=design,
        strata=strata,
        groups=groups,
        aggregate=aggregate,
        features=features,
        ids=ids,
        seed=seed_of(seed),
    )
    if isinstance(scores, Tally):
        check_countable(member, request)
        return audit_tally(scores, request)
    if member is None:
        message = (
            "member is missing: give membership of each example beside scores, or a Tally of both"
        )
        raise IncompatibleOptionsError(message)
    if request.design == "random_split":
        from leakbound.audits.one_run.random_split import audit_split  # loads challengers

        return audit_split(scores, member, request)
    return audit_coins(scores, member, request, declared=True)


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
    order = ExampleOrder(request.ids)
    attacks = Attacks.read(scores, order)
    included = order.member(member, attacks.examples)
    if request.ids is not None:
        check_ids(request.ids, included)
    chances = _chances(request, order.placed(request.prior, "prior"), attacks.examples)
    count = MemberCount.of_coins(int(included.sum()), included.size, chances)
    if declared:
        count.refuse()

    def prove(scores: FloatArray, level: float) -> Proof:
        game = ScoreGame(scores=scores, member=included, sides=request.sides, seed=request.seed)
        return one_run_proof(request, game, chances, level)

    proof = attacks.prove(request.level, prove)
    return one_run_result(
        proof,
        request,
        theorem=_theorem(request.claim, chances),
        assumptions=_assumptions(request.claim, chances, count, attacks.others),
        options={"sides": request.sides, "prior": describe(chances)},
        warnings=(
            *(count.warnings() if declared else ()),
            *(count.halved() if declared and getattr(member, "seed", None) is None else ()),
            *delta_warnings(request.claim.delta, attacks.examples),
        ),
        inputs={**attacks.digested, "member": included, **_digested(chances)},
    )


def audit_tally(tally: Tally, request: OneRunRequest) -> AuditResult:
    """Audit counted examples as `audit_one_run` does."""
    game = TallyGame(
        values=tally.values,
        counts=tally.examples_at,
        members=tally.members_at,
        sides=request.sides,
        seed=request.seed,
        name="keys of the tally",
    )
    if request.prior != _HALF:
        game.check_labels()
    chances = _chances(request, request.prior, tally.m)
    count = MemberCount.of_coins(tally.members, tally.m, chances)
    count.refuse()
    proof = one_run_proof(request, game, chances, request.level)
    counted: dict[str, JsonValue] = {
        "bits": tally.bits,
        "keys": len(tally),
        "shards": len(tally.shards),
    }
    return one_run_result(
        proof,
        request,
        theorem=_theorem(request.claim, chances),
        assumptions=(
            *_assumptions(request.claim, chances, count, "no other attack was"),
            _COUNTED,
        ),
        options={"sides": request.sides, "prior": describe(chances), "tally": counted},
        warnings=(
            *count.warnings(),
            *count.halved(),
            *delta_warnings(request.claim.delta, tally.m),
        ),
        inputs={
            "tally keys": tally.keys,
            "tally examples": tally.examples_at,
            "tally members": tally.members_at,
            **_digested(chances),
        },
    )


def check_countable(member: ArrayInput | HasMember | None, request: OneRunRequest) -> None:
    """Raise where an option tells examples apart, which counts do not."""
    if member is not None:
        message = "a tally has counts of members: leave out member="
        raise IncompatibleOptionsError(message)
    if request.design != "coins":
        message = (
            'design="random_split" pairs examples, and a tally only counts them: pass scores and '
            "member"
        )
        raise IncompatibleOptionsError(message)
    if request.ids is not None:
        message = "ids= has no meaning for a tally, which counts examples: join them beforehand"
        raise IncompatibleOptionsError(message)
    if not isinstance(request.prior, float | int | np.floating | np.integer):
        message = (
            "prior= must be one probability for a tally, which does not tell examples apart: audit "
            "those of each probability by themselves, or pass scores and member"
        )
        raise IncompatibleOptionsError(message)


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
    claim: Claim, chances: FloatArray | None, count: MemberCount, others: str
) -> tuple[Assumption, ...]:
    coins = "fair coin" if chances is None else "coin, of the probability given,"
    apart = not isinstance(claim, PureDP) or chances is not None
    subject = "The trade-off function" if isinstance(claim, FAMILIES) else "ε"
    return (
        Assumption(
            "independent fair coins" if chances is None else "independent coins of known odds",
            count.statement(
                f"Each example was in the training set if its own {coins} said so; the bound is "
                "over these coins and whatever training and audit draw, given everything else."
            ),
            count.status("declared"),
        ),
        Assumption(
            "add or remove one example",
            f"{subject} is that of training with and without one example, also an audited one."
            + (f" δ is {claim.delta:g}." if claim.delta else ""),
            "declared",
        ),
        SCORES,
        options_before(others),
        Assumption(
            "order from scores alone",
            "Cuts, sides and order of the guesses depend on scores only; "
            + ("ties are broken by the seed." if apart else "ties stay together."),
            "checked",
        ),
        *family_assumption(claim),
    )
