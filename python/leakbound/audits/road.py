"""The one road: scores and a design in, a lower bound out.

`audit` checks the options; the design puts its data in one order and makes games of them
(`Examples`); each attack's game is tested against the claim by a cut policy (`prove`), and the best
proof is recorded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from leakbound._base import checks, shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.messages import OF_CLAIMS, OF_DESIGNS, TWO_PARTS, Message, Option, hinted
from leakbound._base.records import Lazy
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    CoinSides,
    FloatArray,
    GenericArray,
    HasMember,
    IntArray,
    InWords,
    JsonObject,
    JsonValue,
    Kind,
    MemberInput,
    Named,
    Sides,
    Strings,
)
from leakbound.audits import grouping, premises
from leakbound.audits.arguments import asked, check_design_class, error_of_wording
from leakbound.audits.figures import curve, histogram_of, roc
from leakbound.audits.member_count import MemberCount
from leakbound.audits.named_scores import refuse_membership_as_attack, scores_by_attack
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.biased_coins import odds_in_options, prior_policy
from leakbound.audits.policies.f_dp import family_policy
from leakbound.audits.policies.second_look import DEFAULT, second_look
from leakbound.audits.policies.trials import of_trials
from leakbound.claims import CLAIMS, ApproxDP, Claim, PureDP
from leakbound.claims.families import refuse_claim
from leakbound.cuts import CutPolicy, Game, Policy, Proof, ScoreGame, SecondLook
from leakbound.cuts.games import TrialGame
from leakbound.cuts.policies import check_policy
from leakbound.cuts.policy import PATH_NAMES, Proved
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.report.parts import Assumptions
from leakbound.results import AuditResult, Provenance
from leakbound.results.base import Result
from leakbound.results.one_run import Exposed
from leakbound.results.wording import Wording

Listed: TypeAlias = ArrayInput | Mapping[str, ArrayInput]
"""Scores of one attack or of several, one for each example."""
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
R_co = TypeVar("R_co", bound=Result, covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """What is tested, and how surely: the options of `leakbound.audit`, checked once."""

    claim: Claim = PureDP()  # noqa: RUF009 (frozen)
    confidence: float = 0.95
    cuts: CutPolicy | None = None
    sides: CoinSides = "both"
    ids: ArrayInput | None = None
    seed: int
    level: float = field(init=False)
    """The probability of error."""

    def __post_init__(self) -> None:
        if type(self.claim) not in CLAIMS:
            refuse_claim(self.claim, name="claim")
        if self.cuts is not None:
            check_policy(self.cuts)
        checks.choice(self.sides, "sides", CoinSides)
        object.__setattr__(self, "level", checks.complement(self.confidence))
        object.__setattr__(self, "confidence", float(self.confidence))

    def about_replacing(self) -> "Request":
        """Return the request with a claim about replacing an example."""
        claim = premises.claim_of_replacing(self.claim)
        if claim is self.claim:
            return self
        return replace(self, claim=claim)


class Design(ABC, Generic[S_contra, R_co]):
    """What was random, and so what a right guess proves: where an audit's own options live.

    It says which scores it takes, listed or counted, so that type checkers refuse all others.
    """

    name: ClassVar[str]
    """How results and the command line call it."""
    claim: ClassVar[Claim] = PureDP()
    """What is tested if nothing else is claimed."""
    sides: ClassVar[tuple[CoinSides, ...]] = ("both",)
    """Whom guesses may call members."""

    @property
    @abstractmethod
    def wording(self) -> Wording:
        """The words of sentences about it: a class attribute, unless options change it."""

    @abstractmethod
    def audit(self, scores: S_contra, request: Request, /) -> R_co:
        """Bound the claim's parameter from below."""

    def audit_by(self, _scores: S_contra, request: Request, _by: ArrayInput, /) -> dict[Any, R_co]:
        """Audit each subgroup that labels tell apart."""
        message = "{by=} is not for {design}: audit k subgroups, each at confidence 1 - {level} / k"
        raise OptionError(Message(message, design=type(self).__name__, level=request.level))


if TYPE_CHECKING:
    AnyDesign: TypeAlias = Design[Any, Any]
    AnyScores: TypeAlias = Any
    AnyResult: TypeAlias = Any
else:
    AnyDesign = InWords("Design")
    AnyScores = InWords("array-like or tally")
    AnyResult = InWords("AuditResult")


@overload
def audit(
    scores: S,
    design: Design[S, R_co],
    *,
    claim: Claim | None = ...,
    confidence: float = ...,
    cuts: CutPolicy | None = ...,
    sides: CoinSides = ...,
    ids: ArrayInput | None = ...,
    by: None = ...,
    seed: int | None = ...,
) -> R_co: ...
@overload
def audit(
    scores: S,
    design: Design[S, R_co],
    *,
    claim: Claim | None = ...,
    confidence: float = ...,
    cuts: CutPolicy | None = ...,
    sides: CoinSides = ...,
    ids: ArrayInput | None = ...,
    by: ArrayInput,
    seed: int | None = ...,
) -> dict[Any, R_co]: ...
@hinted(**OF_CLAIMS, **OF_DESIGNS)
def audit(
    scores: AnyScores,
    design: AnyDesign,
    *,
    claim: Claim | None = None,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: CoinSides = "auto",
    ids: ArrayInput | None = None,
    by: ArrayInput | None = None,
    seed: int | None = None,
) -> AnyResult:
    """Bound the privacy loss of a trained model from below.

    The examples with the highest scores are guessed to be members, those with the lowest to be
    non-members. The design says how members were chosen. That determines how often guesses can be
    right under a given guarantee. The bound is the largest ε that the observed guesses rule out.

    Parameters
    ----------
    scores : array-like of shape (m,), (m, 1) or (A, m), mapping of str to array-like, or a tally
        Real numbers, higher for likelier members; ±inf allowed. To audit several attacks together,
        pass them as rows, as a mapping from names, or as columns of a pandas, polars or Arrow
        frame: they share the probability of error, the largest bound counts, and `options` says
        which attack gave it and what the others cost. Counts are a `Tally` for `Coins()`, a
        `PairTally` for `RandomSplit()`, or a mapping of these; `Choices` takes scores of
        shape (m, k), and several attacks by name.
    design : Coins, Trials, RandomSplit, Choices, Panoramia or ZeroRun
        What was random, with the membership of the examples and the options of this design.
    claim : Claim
        The kind of guarantee whose parameter is bounded: `PureDP`, `ApproxDP`, or a family:
        `GaussianDP`, `LaplaceDP`, `SubsampledGaussianDP`, `TradeOffFamily`,
        `claims.ZeroConcentratedDP`, or the `EventFamily` of `claims.from_event`. If None,
        `PureDP()`, and for `ZeroRun` `GaussianDP()`. For three claims, audit three times at a third
        of the error.
    confidence : float
        Probability, at least, that the bound is not above the truth, in (0, 1).
    cuts : CutPolicy, optional
        Which thresholds are tested, from `leakbound.cuts`. If None, `SecondLook()`: guesses at
        ranks chosen with a pilot sample get 5 % of the error probability, and `OutsideIn()` the
        rest. For pure DP, `KLScan()` gets 5 % too, or all of the rest where the sides are fixed.
        `ZeroRun` and `Panoramia` document their defaults.
    sides : {"auto", "both", "member"}
        Guess as many members as non-members, or members only: for `Coins` and `ZeroRun`. With
        `Coins` and `OutsideIn`, "auto" uses records that are not tested to decide how many guesses
        are "member" and how many "non-member", as a leak may be at one end of the ranking.
        Elsewhere it is "both".
    ids : array-like, shape (m,), optional
        One id for each score, in their order; checked for repetition, and joined with what carries
        ids: a plan, the scores of `leakbound.torch.score`, a pandas index.
    by : array-like, shape (m,), optional
        A label of each example, such as a region, that does not depend on membership, for `Coins`
        and `RandomSplit`: each subgroup is audited separately at an equal share of the probability
        of error, so that all bounds hold together. The result is a dict from labels to results,
        which name the labels that could not be audited.
    seed : int, optional
        Seed of whatever the audit draws: matching, the order of ties. By default a new one, which
        `options` records: pass it to repeat an audit. The confidence includes the randomness of
        the seed, so if one seed is used for many audits, they may all be wrong more often.

    Returns
    -------
    AuditResult, PanoramiaResult or ZeroRunResult
        The bound, in units of the claim's parameter, with its assumptions. LeakboundError is
        raised if an input cannot be read, members cannot have been chosen as declared, or options
        do not go together.

    Notes
    -----
    Tied scores are ordered at random, from `seed`. Exception: under pure DP with equal chances,
    `KLScan`, `UnionBound` and `Fixed` never split ties.
    Except for random splits, any increasing transformation of the scores gives the same result.

    Examples
    --------
    >>> import numpy as np
    >>> import leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(1000) < 0.5
    >>> scores = rng.normal(size=1000) + 2 * member
    >>> result = lb.audit(scores, lb.Coins(member))
    >>> result.kind, 1 < result.bound < result.ceiling
    ('lower_bound', True)
    >>> result.check(epsilon=0.5)
    'refuted'
    """
    # 1. Options; what the design decides is filled in.
    if not isinstance(design, Design):
        raise InputTypeError(_message_without_design(design))
    check_design_class(type(design))
    if claim is None:
        claim = design.claim
    request = Request(
        claim=claim,
        confidence=confidence,
        cuts=cuts,
        sides=_sides_of_design(design, sides),
        ids=ids,
        seed=checks.seed_of(seed),
    )
    # 2. Scores, membership and what else the design holds, in one order: then `Examples.audit`.
    if by is not None:
        return design.audit_by(scores, request, by)
    return design.audit(scores, request)


def _sides_of_design(design: AnyDesign, sides: CoinSides) -> CoinSides:
    """Return the sides of an audit: "auto" is "both" where the design leaves no choice."""
    checks.choice(sides, "sides", CoinSides)
    if sides in design.sides:
        return sides
    if sides == "auto":
        return "both"
    message = Message(
        "{sides} does not apply to {design}: leave it out",
        sides=Option("sides", sides),
        design=type(design).__name__,
    )
    raise OptionError(message)


def _message_without_design(design: object) -> str:
    """Return what to pass in the place of membership, or of a class."""
    if isinstance(design, type) and issubclass(design, Design):
        name = design.__name__
        return (
            f"design is the class {name}: call it, for example lb.audit(scores, lb.{name}(member))"
        )
    designs = (
        "lb.Coins(member) if a coin decided on each example, lb.RandomSplit(member) if they were "
        "split at random"
    )
    if _are_scores_of_attack(design):
        designs += f". If these are scores of two parts, {TWO_PARTS.format('RandomSplit')}"
    return f"design must say how members were chosen, got {type(design).__name__}: pass {designs}"


def _are_scores_of_attack(values: Any) -> bool:
    """Return whether values are numbers, and not those of membership."""
    try:
        numbers = checks.check_scores(values)
    except LeakboundError:
        return False
    return not {*np.unique(numbers).tolist()} <= {-1.0, 0.0, 1.0}


@dataclass(frozen=True, kw_only=True, eq=False)
class Grounds:
    """The grounds of a bound: why it holds, if what is true, and what was read.

    `kind` is that of the claim if None.
    """

    theorem: str = ""
    assumptions: Assumptions = ()
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    warnings: Strings = ()
    inputs: Mapping[str, GenericArray] = field(default_factory=dict)
    kind: Kind | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Examples(Grounds, Generic[S]):
    """What a design makes of scores: games, and the grounds of a bound from them.

    `game` makes the game of one attack's scores. `prior` has the probabilities of the coins, None
    if all are fair, and `count` the members that they gave. `exposed` lists the most exposed
    members by the best of several attacks, where coins are independent. Proofs have a part
    `share` of the probability of error. Each member was inserted `copies` times: what is proved is
    about all of them at once, and the record about one. `wording` is that of the design if None.
    `filled` has a warning for each attack of which one part has a single score.
    """

    attacks: "AnyAttacks[S]"
    game: Callable[[S], Game]
    prior: FloatArray | None = None
    count: MemberCount | None = None
    exposed: Callable[[Any, int], Exposed] | None = None
    share: float = 1.0
    copies: int = 1
    wording: Wording | None = None
    filled: Mapping[str, str] = field(default_factory=dict)

    def audit(self, request: Request, design: AnyDesign) -> AuditResult:
        """Return what the best attack proves, in the words of a design."""
        # 3. A number of members that the design cannot give is refused.
        if self.count is not None:
            self.count.refuse()
            if self.copies > 1:
                grouping.check_group_claim(self.copies, request.claim, self.count.examples)
        # 4. Each attack is tested at its share of the level; the best proof counts.
        proof = self.attacks.prove(
            self.share * request.level,
            lambda scores, level: prove(request, self.game(scores), level, self.prior),
        )
        # 5. Numbers in a record; words are made of it when somebody asks.
        fields = assemble(proof, self, request)
        if self.copies > 1:
            fields |= grouping.fields_of_one_record(fields, self.copies, proof.game.sides)
        if self.prior is not None or proof.game.k > 2:
            for name, odds in odds_in_options(self.prior, proof.game).items():
                fields["options"].setdefault(name, odds)
        fields["options"] |= {"design": design.name, "seed": request.seed, **asked(request.cuts)}
        fields["wording"] = self.wording or design.wording
        if not isinstance(fields["wording"], Wording):
            raise error_of_wording(type(design), fields["wording"])
        filled = self.filled.get(str(proof.options.get("attack", "")), "")
        fields["warnings"] = premises.with_filled(filled, fields["warnings"])
        return AuditResult(**fields, _exposed=Lazy(lambda: self._exposed_members(proof.game)))

    def _exposed_members(self, game: Game) -> Exposed | None:
        """List the most exposed members, unless fair coins may not have decided who was one."""
        is_doubtful = self.count is not None and self.count.doubtful
        if self.exposed is None or self.prior is not None or is_doubtful:
            return None
        return self.exposed(game, len(self.attacks.scores))


def assemble(proof: Proof, design: Grounds, request: Request) -> Named:
    """Return the fields of a result: what is proved, and the grounds that a design gives for it."""
    claim = request.claim
    sides = proof.game.sides
    proved = parts(proof)
    ceiling = proved["_ceiling"]
    return {
        **proved,
        "options": {**proof.options, **design.options},
        "warnings": (*proof.warnings, *design.warnings),
        "kind": design.kind or claim.kind,
        "claim": claim,
        "confidence": request.confidence,
        "theorem": design.theorem + proof.theorem,
        "assumptions": design.assumptions,
        "rejected": claim.rejected(proof.bound, sides),
        "least_delta": claim.stored_least_delta(sides),
        "_rejectable": Lazy(lambda: claim.rejected(ceiling.value, sides)),
        "_provenance": Lazy(lambda: Provenance.of(request.seed, **design.inputs)),
    }


class AlignedScores(NamedTuple):
    """Scores of attacks and membership in one order, in which whatever else there is is placed."""

    order: ExampleOrder
    attacks: "Attacks"
    member: BoolArray


def read(
    scores: object, member: MemberInput, ids: ArrayInput | None, *, copies: bool = False
) -> AlignedScores:
    """Read scores and membership, and put them into one order.

    A plan sets this order, whatever the order of the scores. One of several `copies` of each member
    is refused unless the design knows them.
    """
    order = ExampleOrder(ids)
    attacks = Attacks.read(scores, order)
    if not attacks.alone:
        _refuse_columns_of_attacks(attacks, member)
    if isinstance(member, HasMember):
        attacks = attacks.taken(order.follow(member, "member"))
    included = order.member(member, attacks.examples, copies=copies)
    if not attacks.alone:
        refuse_membership_as_attack(scores, attacks.scores, included)
    if ids is not None:
        checks.check_ids(ids, included)
    return AlignedScores(order, attacks, included)


def _refuse_columns_of_attacks(attacks: "Attacks", member: MemberInput) -> None:
    """Refuse columns of attacks, as of class probabilities, that were read as rows."""
    rows = len(attacks.scores)
    if attacks.examples < rows == checks.membership_vector(member).size:
        raise InputError(
            f"scores has shape ({rows}, {attacks.examples}), and rows are attacks: pass one of its "
            f"columns, such as scores[:, 1], or scores.T for {attacks.examples} attacks on "
            f"{rows} examples"
        )


def prove(request: Request, game: Game, level: float, prior: FloatArray | None = None) -> Proof:
    """Test one attack at a level, by the form that the claim has of the cut policy.

    `prior` has the chances of the coins, None if all are fair.
    """
    if prior is not None and isinstance(game, ScoreGame):
        return prior_policy(request.cuts, game, prior).audit(game, level)
    if isinstance(game, TrialGame):
        return of_trials(request.claim, game.examples).audit(game, level)
    policy = policy_of(
        request.claim,
        request.cuts,
        examples=game.examples,
        sides=game.sides,
        level=level,
        k=game.k,
    )
    return policy.audit(game, level)


def policy_of(
    claim: Claim, cuts: CutPolicy | None, examples: int, sides: Sides, level: float, k: int = 2
) -> Policy:
    """Return the form that a claim has of a cut policy, its default if None."""
    if cuts is None or isinstance(cuts, SecondLook):
        return second_look(cuts or DEFAULT, claim, examples=examples, sides=sides, level=level, k=k)
    if isinstance(claim, PureDP):
        return cuts
    if isinstance(claim, ApproxDP):
        return approx_policy(cuts, claim.delta, examples=examples, sides=sides, k=k)
    return family_policy(cuts, claim, examples=examples, sides=sides, k=k)


def parts(proof: Proof) -> Named:
    """Return the fields that every record of a ranking has, on the claim's parameter."""
    ranking = proof.examples
    best = proof.best
    return {
        "bound": proof.bound,
        "reason": proof.reason,
        "m": ranking.examples,
        "members": ranking.members,
        "guesses": best.cut,
        "correct": best.successes,
        "path": PATH_NAMES[proof.order],
        "auc": ranking.auc,
        "guessed": proof.guessed,
        "searched": proof.searched,
        "_ceiling": Lazy(lambda: proof.ceiling),
        "_curve": Lazy(lambda: curve(proof)),
        "_roc": Lazy(lambda: roc(ranking)),
        "_histogram": Lazy(lambda: histogram_of(proof.game.shown())),
    }


P = TypeVar("P", bound=Proved)


@dataclass(frozen=True, eq=False)
class AnyAttacks(Generic[S]):
    """The scores of one attack or of several, by name; alone, an attack has an empty name."""

    scores: dict[str, S]

    @property
    def alone(self) -> bool:
        """Whether there is one attack, without a name."""
        return [*self.scores] == [""]

    @property
    def others(self) -> str:
        """What is assumed of attacks that are not here, but for its verb's object."""
        attacks = len(self.scores)
        if attacks == 1:
            return "no other attack was"
        return f"no attack but these {attacks} was"

    def prove(self, beta: float, prove: Callable[[S, float], P]) -> P:
        """Audit every attack at its share of the level and keep the best; on equality the first.

        The options of the winner name it, and what the others cost.
        """
        if self.alone:
            return prove(self.scores[""], beta)
        return self._best_proof_of_attacks(beta, prove)

    def _best_proof_of_attacks(self, beta: float, prove: Callable[[S, float], P]) -> P:
        """Return the best proof of several attacks."""
        attack_level = shares.ATTACKS.of(beta, len(self.scores))
        proofs = {name: prove(scores, attack_level) for name, scores in self.scores.items()}
        bounds: JsonObject = {name: proof.bound for name, proof in proofs.items()}
        best_attack = max(proofs, key=lambda name: proofs[name].bound)
        best_proof = proofs[best_attack]
        # What the others cost is what the best one proves alone, at the whole level.
        cost = 0.0
        if len(proofs) > 1:
            proof_at_whole_level = prove(self.scores[best_attack], beta)
            cost = max(0.0, proof_at_whole_level.bound - best_proof.bound)
        return best_proof.with_options(
            {
                "attack": best_attack,
                "attacks": bounds,
                "attacks_level": attack_level,
                "attacks_cost": cost,
            }
        )


@dataclass(frozen=True, eq=False)
class Attacks(AnyAttacks[FloatArray]):
    """Attacks whose scores are listed."""

    @classmethod
    def read(cls, scores: object, order: ExampleOrder) -> "Attacks":
        """Read one vector of scores, rows of them, or a mapping from names; ids are joined."""
        scores_by_name = scores_by_attack(scores)
        if scores_by_name is None:
            return cls({"": checks.check_scores(order.scores(scores, "scores"))})
        return cls.named(scores_by_name, order, checks.check_scores)

    @classmethod
    def named(
        cls,
        named: Mapping[str, object],
        order: ExampleOrder,
        check: Callable[[Any, str], FloatArray],
    ) -> "Attacks":
        """Read scores of several attacks by a check; ids are joined."""
        if not named:
            raise InputError("scores is empty: at least one attack is needed")
        scores_by_name: dict[str, FloatArray] = {}
        for name, stored_scores in named.items():
            label = "scores"
            if name:
                label = f"scores of {name!r}"
            scores = check(order.scores(stored_scores, label), label)
            examples = len(next(iter(scores_by_name.values()), scores))
            checks.check_length(scores, examples, label)
            scores_by_name[name] = scores
        return cls(scores_by_name)

    def taken(self, rows: IntArray | None) -> "Attacks":
        """Return the same attacks with some rows of the scores; None for all as they are."""
        if rows is None:
            return self
        return Attacks({name: scores[rows] for name, scores in self.scores.items()})

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(next(iter(self.scores.values())))

    @property
    def digested(self) -> dict[str, FloatArray]:
        """The scores under the names of their digests."""
        scores_alone = self.scores.get("")
        if scores_alone is not None:
            return {"scores": scores_alone}
        return {f"scores of {name}": scores for name, scores in self.scores.items()}
