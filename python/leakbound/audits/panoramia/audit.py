"""PANORAMIA: audits of a trained model against generated non-members, without retraining."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import check_ids, check_length, check_scores, flag, real
from leakbound._base.features import placed_features
from leakbound._base.formatting import down
from leakbound._base.messages import OF_AUDITS, Message, hinted
from leakbound._base.records import Lazy
from leakbound._base.types import (
    ArrayInput,
    BoolArray,
    FloatArray,
    HasMember,
    JsonValue,
    Kind,
    Strings,
)
from leakbound._tally.tally import AnyTally, Tally, by_attack, recorded
from leakbound.audits import premises
from leakbound.audits.arguments import asked
from leakbound.audits.member_count import MemberCount
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.panoramia.conditional import REPLACED, conditional_bounds
from leakbound.audits.panoramia.rankings import Games, Rankings, Relaxation, Relaxed
from leakbound.audits.premises import delta_warnings
from leakbound.audits.road import Design, Request
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts.games import Game, ScoreGame, TallyGame
from leakbound.errors import OptionError
from leakbound.results import Assumption, PanoramiaResult, Provenance, ScoreAudit, ZeroRunResult
from leakbound.results.wording import PAIRS, Wording

# Share of its ceiling above which c_lb leaves little room for ε̃.
_CROWDED = 2 / 3


@hinted(**OF_AUDITS)
@dataclass(frozen=True, eq=False)
class Panoramia(Design[ArrayInput | Tally | PairTally, PanoramiaResult]):
    """A coin decided for each pair whether the auditor sees a member or a generated point.

    The baseline scores the point alone, the audited scores also know what the model says about it.
    What they prove beyond the baseline is put down to the model.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Which examples are members, left out with tallies: booleans, {0, 1} or {-1, +1}.
    baseline : array-like, shape (m,), Tally or PairTally
        Scores from the examples alone, higher for likelier members; ±inf allowed. Counted if the
        scores are: a `Tally` each, of real non-members a `PairTally` each, of one pairing.
    gamma : float
        γ of a generator that is (c, γ)-close, in [0, 1): it may miss real points of this mass.
    relaxation : {"knapsack", "published"}
        How γ and the claim's δ are allowed for: whatever failures depend on, or for `Fixed` and
        `UnionBound` as published, where they depend on nothing.
    max_recall : float
        Cuts are tested up to this share of the examples, in (0, 1], which is their recall if scores
        say nothing. It is fixed in advance, so it is free.
    real_nonmembers : bool
        Whether the non-members are real and exchangeable with the members. Then c = 0, and the
        examples shown are audited as a random split, in pairs: the result is a lower bound, and the
        baseline only checks that it finds nothing.
    c_upper : float, optional
        An upper limit on c that the caller vouches for, at least 0. It makes the result a lower
        bound.
    features : array-like or data frame, shape (m, d), optional
        Features of the examples, as for `ZeroRun`. With them the result has a conditional lower
        bound on ε: Zero-Run over all logistic models, of the features and the baseline's score,
        that the coins do not rule out; tests try to refute that form.

    Notes
    -----
    The claim is `PureDP` or `ApproxDP`. Cuts are `KLScan()`, and `OutsideIn()` for a ranking with γ
    or δ above 0; `UnionBound()` is the paper's; `Weighted()` takes scores in [0, 1] as weights.
    c-closeness bounds the generator from below only, so all guesses are "member". The unseen real
    point of a pair stays in the training set: ε is that of replacing one example, as much as 2ε'
    for training that is ε'-DP under adding or removing one.

    With `features` the examples are audited as those of `ZeroRun` too, at the same confidence: by
    the propensity of each example (`conditional`; after matching for δ > 0) and after matching
    (`conditional_by_match`). A fifth of the error goes to a confidence set of propensities, learnt
    from the audited coins. Each bound holds by itself, the largest of them does not.
    `docs/theory/panoramia.md` has the argument.

    References
    ----------
    Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining", 2024
    (arXiv 2402.09477).

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(4000) < 0.5
    >>> baseline = rng.normal(size=4000) + 0.3 * member
    >>> scores = rng.normal(size=4000) + 2.0 * member
    >>> result = lb.audit(scores, lb.Panoramia(member, baseline=baseline))
    >>> result.kind, result.lower_bound
    ('estimate', None)
    >>> 0 < result.c_lb < result.c_plus_epsilon_lb
    True
    """

    name: ClassVar[str] = "panoramia"
    wording: ClassVar[Wording] = PAIRS
    member: ArrayInput | HasMember | None = None
    _: KW_ONLY
    baseline: ArrayInput | Tally | PairTally
    gamma: float = 0.0
    relaxation: Relaxation = "knapsack"
    max_recall: float = 1.0
    real_nonmembers: bool = False
    c_upper: float | None = None
    features: ArrayInput | None = None

    __repr__ = brief

    def audit(self, scores: ArrayInput | Tally | PairTally, request: Request, /) -> PanoramiaResult:
        """See `Design.audit`."""
        claim = request.claim
        if not isinstance(claim, PureDP | ApproxDP):
            raise _no_form(claim)
        relaxed = Relaxed.read(self.gamma, claim=claim, relaxation=self.relaxation)
        closeness = self._closeness(relaxed.gamma)
        recall = real(self.max_recall, name="max_recall", above=0, most=1)
        # 1. Both rankings, of examples or of counts, and whether fair coins give their members.
        if isinstance(scores, AnyTally) or isinstance(self.baseline, AnyTally):
            audited = self._counted(scores, request, closeness)
        else:
            audited = self._listed(scores, request, closeness)
        # 2. What each ranking proves, and how much of it is not the generator's.
        rankings = closeness.rankings(audited.games, request, relaxed, recall)
        bound = closeness.bound(rankings)
        reason = ""
        if not bound:
            reason = closeness.why_nothing
        return PanoramiaResult(
            kind=closeness.kind,
            claim=claim,
            bound=bound,
            reason=reason,
            confidence=request.confidence,
            m=rankings.attack.m,
            c_lb=rankings.c_lb,
            c_plus_epsilon_lb=rankings.attack.bound,
            epsilon_tilde=rankings.epsilon_tilde,
            c_upper=closeness.limit,
            lower_bound=closeness.certified(bound),
            baseline=rankings.baseline,
            attack=rankings.attack,
            theorem=rankings.theorem + closeness.meaning,
            assumptions=_assumptions(closeness, audited, rankings),
            options=_options(closeness, audited, rankings, relaxed, request),
            warnings=_warnings(closeness, audited, rankings, delta=claim.delta),
            conditional=audited.conditional,
            conditional_by_match=audited.conditional_by_match,
            _provenance=Lazy(lambda: Provenance.of(request.seed, **audited.inputs)),
        )

    def _closeness(self, gamma: float) -> "_Closeness":
        """Return what is known of the generator's c."""
        if flag(self.real_nonmembers, name="real_nonmembers"):
            return self._no_distance()
        closeness = "c-close"
        if gamma:
            closeness = f"(c, {gamma:g})-close"
        if self.c_upper is None:
            return _UnlimitedCloseness(closeness)
        return _LimitedCloseness.read(closeness, self.c_upper)

    def _no_distance(self) -> "_RealNonMembers":
        """Return that c is 0 of real non-members, and refuse what says otherwise."""
        message = "{real_nonmembers=True} means c = 0 and gamma = 0: leave out {c_upper=}"
        if self.gamma:
            message = "{real_nonmembers=True} means c = 0 and gamma = 0: leave out {gamma=}"
        if self.gamma or self.c_upper:
            raise OptionError(Message(message))
        return _RealNonMembers("c-close", limit=0.0)

    def _listed(self, scores: object, request: Request, closeness: "_Closeness") -> "_AuditedGames":
        """Read scores and membership in one order."""
        if self.member is None:
            raise _without_member()
        order = ExampleOrder(request.ids)
        attack_scores = check_scores(order.scores(scores, "scores"))
        baseline_scores = check_scores(order.scores(self.baseline, "baseline"), name="baseline")
        check_length(baseline_scores, examples=attack_scores.size, name="baseline")
        member = order.member(self.member, attack_scores.size)
        if request.ids is not None:
            check_ids(request.ids, member)
        count = MemberCount.of_coins(int(member.sum()), member.size, pairs=True)
        count.refuse()
        conditional = by_match = None
        if self.features is not None:
            features = placed_features(order, self.features)
            check_length(features.rows, examples=member.size, name="features")
            conditional, by_match = conditional_bounds(
                baseline_scores, attack_scores, member, features, request
            )
        return _AuditedGames(
            games=closeness.games(baseline_scores, attack_scores, member, request.seed),
            count=count,
            inputs={
                "baseline_scores": baseline_scores,
                "attack_scores": attack_scores,
                "member": member,
            },
            conditional=conditional,
            conditional_by_match=by_match,
            filled=premises.filled({"": attack_scores}, member).get("", ""),
        )

    def _counted(
        self, scores: object, request: Request, closeness: "_Closeness"
    ) -> "_AuditedGames":
        """Read counts of both rankings: no bound but the conditional one needs them together."""
        given = {"member": self.member, "features": self.features, "ids": request.ids}
        needless = [name for name, value in given.items() if value is not None]
        if needless:
            raise OptionError(f"tallies have counts, not single examples: leave out {needless[0]}")
        kind: type[Tally | PairTally] = Tally
        if closeness.is_exchangeable:
            kind = PairTally
        both = {"baseline": self.baseline, "scores": scores}
        if not all(isinstance(one, kind) for one in both.values()):
            raise OptionError(
                "count the baseline and the scores as Tally, real non-members as PairTally: got "
                f"{type(self.baseline).__name__} and {type(scores).__name__}"
            )
        tallies = by_attack(both, kind)
        assert tallies is not None
        options, inputs = recorded(tallies)
        games = list[Game]()
        for tally in tallies.values():
            if isinstance(tally, Tally):
                games.append(TallyGame(tally=tally, sides="member", seed=request.seed))
            else:
                games.append(tally.game(request.seed))
        baseline, attack = games
        count = MemberCount.of_coins(tallies["scores"].members, tallies["scores"].m, pairs=True)
        count.refuse()
        assumed = Assumption(*tallies["scores"].assumed, "declared")
        return _AuditedGames(
            games=(baseline, attack),
            count=count,
            inputs=inputs,
            assumed=(assumed,),
            options=options,
        )


@dataclass(frozen=True)
class _AuditedGames:
    """The games of the baseline and of the attack, and what else is read with them."""

    games: Games
    count: MemberCount
    inputs: Mapping[str, NDArray[np.generic]]
    assumed: tuple[Assumption, ...] = ()
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    conditional: ZeroRunResult | None = None
    conditional_by_match: ZeroRunResult | None = None
    filled: str = ""


def _games_of_members(
    baseline: FloatArray, attack: FloatArray, member: BoolArray, seed: int
) -> Games:
    """Return the games of baseline and attack, against generated non-members."""
    game = partial(ScoreGame, member=member, sides="member", seed=seed)
    return game(scores=baseline), game(scores=attack)


def _games_of_pairs(
    baseline: FloatArray, attack: FloatArray, member: BoolArray, seed: int
) -> Games:
    """Return the games of baseline and attack, of pairs as non-members are real."""
    units = Units.of(member, strata=None, groups=None, aggregate="mean")
    pairs = Pairs.drawn(units, seed)
    return pairs.game(baseline, seed), pairs.game(attack, seed)


@dataclass(frozen=True)
class _UnlimitedCloseness:
    """No upper limit on c is known: what the attack proves beyond the baseline is an estimate."""

    kind: ClassVar[Kind] = "estimate"
    limit: ClassVar[float | None] = None
    meaning = (
        " ε̃ is not a lower bound on ε: c-closeness could not be rejected beyond c_lb; if that "
        "is tight, the model is not ε̃-DP (section 4.2)."
    )
    why_nothing = (
        "the attack finds no more than the baseline: the generated points may be too easy to tell "
        "from real ones, the attack may be too weak, or the model may leak little (Kazmi et al. "
        "2024, appendix D.5)"
    )
    is_exchangeable = False
    games = staticmethod(_games_of_members)
    rankings = staticmethod(Rankings.against_generated)
    close: str
    """Of the generator, in words: "c-close", or "(c, γ)-close"."""

    def bound(self, rankings: Rankings) -> float:
        """Return what the attack proves beyond the baseline."""
        return rankings.epsilon_tilde

    def certified(self, _bound: float) -> None:
        """Return no lower bound on ε."""

    def assumption(self, _c_lb: float) -> Assumption:
        """Return what is assumed of the generator."""
        return Assumption(
            name="a tight baseline",
            statement=f"The generator is {self.close} for c = c_lb: the baseline finds every "
            "difference between generated and real points. Otherwise part of ε̃ is due to the "
            "generator.",
            status="unverifiable",
        )

    def warnings(self, baseline: ScoreAudit) -> Strings:
        """Say that ε̃ has little room, if so."""
        return saturation_warnings(baseline.bound, lambda: baseline.ceiling)


@dataclass(frozen=True)
class _LimitedCloseness:
    """The caller vouches for an upper limit on c: beyond it, the model leaks."""

    kind: ClassVar[Kind] = "lower_bound"
    is_exchangeable = False
    name = "upper limit on c"
    games = staticmethod(_games_of_members)
    rankings = staticmethod(Rankings.against_generated)
    close: str
    limit: float

    @classmethod
    def read(cls, close: str, limit: float) -> Self:
        """Check the limit."""
        return cls(close, limit=real(limit, name="c_upper", least=0, below=math.inf))

    @property
    def meaning(self) -> str:
        """What the bounds are of ε."""
        limit = f"{self.limit:g}"
        return f" Where c is at most {limit}, ε is at least the bound on c + ε minus {limit}."

    @property
    def why_nothing(self) -> str:
        """Why the bound is 0, if it is."""
        return f"the bound on c + epsilon does not exceed {self.limit:g}, the upper limit on c"

    @property
    def statement(self) -> str:
        """What is assumed of the generator."""
        return f"The generator is {self.close} for c = {self.limit:g}."

    def bound(self, rankings: Rankings) -> float:
        """Return what the attack proves beyond the limit."""
        return max(0.0, rankings.attack.bound - self.limit)

    def certified(self, bound: float) -> float:
        """Return the lower bound on ε."""
        return bound

    def assumption(self, c_lb: float) -> Assumption:
        """Return what is assumed of the generator, and whether the baseline contradicts it."""
        if c_lb <= self.limit:
            return Assumption(name=self.name, statement=self.statement, status="declared")
        contradicted = f"{self.statement} But the baseline gives c >= {down(c_lb)}."
        return Assumption(name=self.name, statement=contradicted, status="contradicted")

    def warnings(self, baseline: ScoreAudit) -> Strings:
        """Say that the baseline contradicts the limit, if so."""
        if baseline.bound <= self.limit:
            return ()
        contradicted = (
            f"the baseline gives c >= {down(baseline.bound)}, above the upper limit "
            f"{self.limit:g}: that limit is wrong, and the lower bound with it"
        )
        return (contradicted,)


class _RealNonMembers(_LimitedCloseness):
    """Non-members are real and exchangeable with the members: c is 0."""

    is_exchangeable = True
    name = "real non-members"
    meaning = " The bound on c + ε is then a bound on ε for replacing one example."
    statement = "Members and non-members are exchangeable except for training: c = 0."
    games = staticmethod(_games_of_pairs)
    rankings = staticmethod(Rankings.against_real)


_Closeness: TypeAlias = _UnlimitedCloseness | _LimitedCloseness


def _options(
    closeness: _Closeness,
    audited: _AuditedGames,
    rankings: Rankings,
    relaxed: Relaxed,
    request: Request,
) -> dict[str, Any]:
    """Return what was asked, and how, as results store it."""
    return {
        "cuts": rankings.attack.options["cuts"],
        "level": rankings.level,
        "gamma": relaxed.gamma,
        "delta": request.claim.delta,
        "relaxation": relaxed.how,
        "max_recall": rankings.recall,
        "real_nonmembers": closeness.is_exchangeable,
        "seed": request.seed,
        **asked(request.cuts),
        **audited.options,
        **rankings.pairs,
    }


def _warnings(
    closeness: _Closeness, audited: _AuditedGames, rankings: Rankings, delta: float
) -> Strings:
    """Say what limits the audit, and what each ranking says."""
    of_attack = premises.with_filled(audited.filled, rankings.attack.warnings)
    return (
        *closeness.warnings(rankings.baseline),
        *audited.count.warnings(),
        *delta_warnings(delta, rankings.guesses),
        *[f"baseline: {text}" for text in rankings.baseline.warnings],
        *[f"attack: {text}" for text in of_attack],
        *_withheld_warnings(audited.conditional),
    )


def _withheld_warnings(conditional: ZeroRunResult | None) -> Strings:
    """Say that the conditional bound is withheld, if there is one and it is."""
    if conditional is None or not conditional.withheld:
        return ()
    return (_withheld_in_words(conditional.tested),)


def _withheld_in_words(p_value: float | None) -> str:
    return (
        "the conditional lower bound is withheld: the data contradict the propensity model (p = "
        f"{p_value:.2g}), so the examples reveal more about membership than a logistic "
        "regression on the baseline's score and the features"
    )


_IN_ADVANCE = (
    REPLACED,
    Assumption(
        name="separate training data",
        statement="No audited member was used to train the generator, the baseline or the "
        "attack, and the baseline did not use the model.",
        status="declared",
    ),
    Assumption(
        name="options chosen in advance",
        statement="All audit options were chosen before membership was known, and no other "
        "baseline or attack was tried.",
        status="declared",
    ),
)


def _assumptions(
    closeness: _Closeness, audited: _AuditedGames, rankings: Rankings
) -> tuple[Assumption, ...]:
    """Return what must be true for the bounds."""
    return (
        audited.count.assumption(
            "independent fair coins",
            "For each pair, a separate fair coin decided whether the member or the non-member is "
            "shown, after all models that score the examples were trained.",
        ),
        closeness.assumption(rankings.baseline.bound),
        *_IN_ADVANCE,
        Assumption(
            name="guesses ordered by scores only", statement=rankings.order, status="checked"
        ),
        *audited.assumed,
    )


def saturation_warnings(c_lb: float, ceiling: Callable[[], float]) -> tuple[str, ...]:
    """Say that a generator is so easily told from real data that ε̃ has little room."""
    if c_lb <= 0 or c_lb <= _CROWDED * (reached := ceiling()):
        return ()
    return (_saturated(c_lb, reached),)


def _saturated(c_lb: float, reached: float) -> str:
    room = down(reached - c_lb)
    return (
        f"the generator is easily told from real data: c_lb = {down(c_lb)}, and a perfect attack "
        f"on these examples reaches c = {down(reached)}, so that ε̃ cannot exceed {room} whatever "
        "the model leaks; use a better generator, or more examples"
    )


def _no_form(claim: Claim) -> OptionError:
    """Return the error of a claim that this audit has no bound for."""
    message = "PANORAMIA bounds {PureDP()} or {ApproxDP(delta=…)}, not {claim}"
    return OptionError(Message(message, claim=claim.name))


def _without_member() -> OptionError:
    """Return the error of scores that are listed without membership."""
    message = "member is missing: give {Panoramia(member, …)}, or audit tallies"
    return OptionError(Message(message))
