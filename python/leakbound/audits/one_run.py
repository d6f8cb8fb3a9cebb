"""Audits of one training run in which a fair coin decided on each example."""

from leakbound._typing import ArrayInput, Design, HasMember, Sides
from leakbound._validate import (
    check_ids,
    check_membership,
    check_scores,
    choice,
    complement,
    instance,
    integer,
)
from leakbound.audits._details import provenance
from leakbound.audits._engine import audit_scores
from leakbound.audits._warnings import coin_warnings
from leakbound.claims import PureDP
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan
from leakbound.results import Assumption, AuditResult

__all__ = ["audit_one_run"]

_PURE_DP = PureDP()

_THEOREM = (
    "Given the trained model and the coins of the guesses before, each guess is right with "
    "probability at most e^ε / (1 + e^ε) if training is ε-DP (Steinke, Nasr and Jagielski 2023, "
    "Proposition 5.1). "
)

_FIXED_SIZE = (
    "exactly so many examples were included, not each by its own coin: the guesses are dependent "
    "and the confidence is approximate, in either direction; draw coins next time"
)


def audit_one_run(
    scores: ArrayInput,
    member: ArrayInput | HasMember,
    *,
    claim: PureDP = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    design: Design = "coins",
    ids: ArrayInput | None = None,
    seed: int = 0,
) -> AuditResult:
    """Bound the privacy loss of one training run from below.

    A fair coin decided for each of m examples whether it was in the training set; each example
    then got a score from the trained model. The examples of highest score are guessed members,
    those of lowest score non-members, and the number of right guesses refutes every ε too small to
    explain it.

    Parameters
    ----------
    scores : array-like, shape (m,)
        Real numbers, higher for likelier members; ±inf allowed. Anything that NumPy reads.
    member : array-like of shape (m,), or InclusionPlan
        What the coins said: booleans, {0, 1} or {-1, +1}. A plan is joined with scores that carry
        the same ids, such as those of `leakbound.torch.score`.
    claim : PureDP
        The family of guarantees.
    confidence : float
        Probability that the bound is not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts of the ranking are tested, from `leakbound.cuts`; `KLScan()` if None.
    sides : {"both", "member"}
        Guess members and non-members, or members only.
    design : {"coins", "fixed_size"}
        How the members were drawn: by independent fair coins, or as a random subset of fixed size
        (then the bound is approximate).
    ids : array-like, shape (m,), optional
        One id for each example; checked for repetition.
    seed : int
        Seed of whatever the audit draws: the parts of `Split`.

    Returns
    -------
    AuditResult
        The bound, in units of ε, with what it rests on.

    Raises
    ------
    ArrayTypeError, ShapeError
        If an array cannot be read, is empty or not one-dimensional.
    NaNScoresError, AbstentionError
        If a score is NaN, or all are equal.
    LengthMismatchError, MembershipError
        If `member` has another length than `scores`, or a value outside the allowed sets.
    ConflictingIdsError, DuplicateIdsError
        If an id is repeated.
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.

    Notes
    -----
    Tied scores are never split, so nothing about membership can order them. The result is the same
    for any increasing transformation of the scores and any order of the examples.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", 2023
    (arXiv 2305.08846).

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
    cuts = KLScan() if cuts is None else cuts
    instance(claim, "claim", PureDP)
    instance(cuts, "cuts", CUT_POLICIES)
    choice(sides, "sides", Sides)
    choice(design, "design", Design)
    beta = complement(confidence)
    seed = integer(seed, "seed", least=0)
    values = check_scores(scores)
    included = check_membership(member, values.size, scores)
    if ids is not None:
        check_ids(ids, included)
    audit = audit_scores(values, included, cuts=cuts, sides=sides, beta=beta, seed=seed)
    fields = vars(audit) | {
        "options": audit.options | {"sides": sides, "design": design, "seed": seed},
        "warnings": audit.warnings + _design_warnings(design, int(included.sum()), values.size),
    }
    return AuditResult(
        **fields,
        kind=cuts.kind,
        claim=claim,
        confidence=float(confidence),
        theorem=_THEOREM + cuts.method,
        assumptions=_assumptions(design),
        _provenance=provenance(seed, scores=values, member=included),
    )


def _design_warnings(design: Design, members: int, examples: int) -> tuple[str, ...]:
    if design == "coins":
        return coin_warnings(members, examples)
    return (_FIXED_SIZE,)


def _assumptions(design: Design) -> tuple[Assumption, ...]:
    return (
        Assumption(
            "independent fair coins",
            "Each example was in the training set if its own fair coin said so; the bound is over "
            "these coins and whatever training draws, given everything else.",
            "declared" if design == "coins" else "approximate",
        ),
        Assumption(
            "add or remove one example",
            "ε is that of training with and without one example, the audited ones included.",
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
            "Policy, sides and confidence were chosen before membership was looked at, and no "
            "other attack was tried on it.",
            "declared",
        ),
        Assumption(
            "order from scores alone",
            "Cuts, sides and order of the guesses depend on scores only; ties stay together.",
            "checked",
        ),
    )
