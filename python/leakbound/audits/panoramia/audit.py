"""PANORAMIA: audits of a trained model against generated non-members, without retraining."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.checks import check_ids, check_length, check_scores, flag, real
from leakbound._base.features import placed_features
from leakbound._base.formatting import down
from leakbound._base.hints import OF_AUDITS, hinted
from leakbound._base.messages import Message
from leakbound._base.records import Lazy
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, JsonValue, Kind
from leakbound._tally.tally import AnyTally, Tally, by_attack, recorded
from leakbound.audits import premises
from leakbound.audits.arguments import asked
from leakbound.audits.member_count import MemberCount
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.panoramia.conditional import REPLACED, PairAudit, of_audited
from leakbound.audits.panoramia.rankings import Rankings, Relaxation, Relaxed
from leakbound.audits.premises import delta_warnings
from leakbound.audits.road import Design, Request
from leakbound.claims import ApproxDP, Claim, PureDP
from leakbound.cuts.games import Game, ScoreGame, TallyGame
from leakbound.errors import OptionError
from leakbound.results import Assumption, PanoramiaResult, Provenance, ZeroRunResult
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
    the odds of each example (`conditional`; after matching for δ > 0) and after matching
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
        exchangeable = flag(self.real_nonmembers, name="real_nonmembers")
        limit = self._limit(exchangeable=exchangeable)
        # 1. Both rankings, of examples or of counts, and whether fair coins give their members.
        if isinstance(scores, AnyTally) or isinstance(self.baseline, AnyTally):
            seen = self._counted(scores, request)
        else:
            seen = self._listed(scores, request=request, claim=claim)
        # 2. What each ranking proves, and how much of it is not the generator's.
        proof = Rankings.of(
            seen.games,
            request=request,
            relaxed=relaxed,
            paired=exchangeable,
            max_recall=self.max_recall,
        )
        attack = proof.attack
        c_lb = 0.0
        if not exchangeable:
            c_lb = proof.baseline.bound
        kind: Kind = "estimate"
        c_most = c_lb
        if limit is not None:
            kind = "lower_bound"
            c_most = limit
        bound = max(0.0, attack.bound - c_most)
        reason = ""
        if not bound:
            reason = _nothing(limit)
        return PanoramiaResult(
            kind=kind,
            claim=claim,
            bound=bound,
            reason=reason,
            confidence=request.confidence,
            m=attack.m,
            c_lb=c_lb,
            c_plus_epsilon_lb=attack.bound,
            epsilon_tilde=max(0.0, attack.bound - c_lb),
            c_upper=limit,
            lower_bound=None if limit is None else bound,
            baseline=proof.baseline,
            attack=attack,
            theorem=proof.theorem + _meaning(limit, exchangeable=exchangeable),
            assumptions=_assumptions(limit, relaxed, seen, proof, exchangeable=exchangeable),
            options=_options(proof, relaxed, request, seen, exchangeable=exchangeable),
            warnings=_warnings(proof, seen=seen, limit=limit, delta=claim.delta),
            conditional=seen.conditional,
            conditional_by_match=seen.by_match,
            _provenance=Lazy(lambda: Provenance.of(request.seed, **seen.inputs)),
        )

    def _listed(self, scores: object, request: Request, claim: PureDP | ApproxDP) -> "_Seen":
        """Read scores and membership in one order."""
        if self.member is None:
            raise OptionError(
                Message("member is missing: give {Panoramia(member, …)}, or audit tallies")
            )
        order = ExampleOrder(request.ids)
        attack_scores = check_scores(order.scores(scores, "scores"), name="scores")
        baseline_scores = check_scores(order.scores(self.baseline, "baseline"), name="baseline")
        check_length(baseline_scores, examples=attack_scores.size, name="baseline")
        member = order.member(self.member, attack_scores.size)
        if request.ids is not None:
            check_ids(request.ids, member)
        count = MemberCount.of_coins(int(member.sum()), member.size, pairs=True)
        count.refuse()
        # What holds given features: by the odds of each example, or after matching for δ > 0.
        conditional = None
        by_match = None
        if self.features is not None:
            table = placed_features(order, self.features)
            check_length(table.rows, examples=member.size, name="features")
            learning = of_audited(baseline_scores, table)
            audit = PairAudit.prepare(
                attack_scores,
                member,
                learning,
                confidence=request.confidence,
                seed=request.seed,
            )
            conditional = audit.bound(claim, "match")
            if isinstance(claim, PureDP):
                by_match = conditional
                conditional = audit.bound(claim, "poisson_binomial")
        games = _games
        if self.real_nonmembers:
            games = _games_of_pairs
        return _Seen(
            games=games(baseline_scores, attack_scores, member, request.seed),
            count=count,
            inputs={
                "baseline_scores": baseline_scores,
                "attack_scores": attack_scores,
                "member": member,
            },
            conditional=conditional,
            by_match=by_match,
            filled=premises.filled({"": attack_scores}, member).get("", ""),
        )

    def _counted(self, scores: object, request: Request) -> "_Seen":
        """Read counts of both rankings: no bound but the conditional one needs them together."""
        given = {"member": self.member, "features": self.features, "ids": request.ids}
        needless = [name for name, value in given.items() if value is not None]
        if needless:
            raise OptionError(f"tallies have counts, not single examples: leave out {needless[0]}")
        kind: type[Tally | PairTally] = Tally
        if self.real_nonmembers:
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
        return _Seen(
            games=(baseline, attack),
            count=count,
            inputs=inputs,
            assumed=(assumed,),
            options=options,
        )

    def _limit(self, *, exchangeable: bool) -> float | None:
        """Return what c is known not to exceed, if anything."""
        if exchangeable:
            return self._exchangeable()
        if self.c_upper is None:
            return None
        return real(self.c_upper, name="c_upper", least=0, below=math.inf)

    def _exchangeable(self) -> float:
        """Return that c is 0 of real non-members, and refuse what says otherwise."""
        message = "{real_nonmembers=True} means c = 0 and gamma = 0: leave out {c_upper=}"
        if self.gamma:
            message = "{real_nonmembers=True} means c = 0 and gamma = 0: leave out {gamma=}"
        if self.gamma or self.c_upper:
            raise OptionError(Message(message))
        return 0.0


@dataclass(frozen=True)
class _Seen:
    """The games of the baseline and of the attack, and what else is read with them."""

    games: tuple[Game, Game]
    count: MemberCount
    inputs: Mapping[str, NDArray[np.generic]]
    assumed: tuple[Assumption, ...] = ()
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    conditional: ZeroRunResult | None = None
    by_match: ZeroRunResult | None = None
    filled: str = ""


def _games(
    baseline: FloatArray, attack: FloatArray, member: BoolArray, seed: int
) -> tuple[Game, Game]:
    """Return the games of baseline and attack, against generated non-members."""
    game = partial(ScoreGame, member=member, sides="member", seed=seed)
    return game(scores=baseline), game(scores=attack)


def _games_of_pairs(
    baseline: FloatArray, attack: FloatArray, member: BoolArray, seed: int
) -> tuple[Game, Game]:
    """Return the games of baseline and attack, of pairs as non-members are real."""
    units = Units.of(member, strata=None, groups=None, aggregate="mean")
    pairs = Pairs.drawn(units, seed)
    return pairs.game(baseline, seed), pairs.game(attack, seed)


def _nothing(limit: float | None) -> str:
    """Say why the bound is 0."""
    if limit is not None:
        return f"the bound on c + epsilon does not exceed {limit:g}, the upper limit on c"
    return (
        "the attack finds no more than the baseline: the generated points may be too easy to tell "
        "from real ones, the attack may be too weak, or the model may leak little (Kazmi et al. "
        "2024, appendix D.5)"
    )


def _meaning(limit: float | None, *, exchangeable: bool) -> str:
    """Say what the bounds are of ε."""
    if exchangeable:
        return " The bound on c + ε is then a bound on ε for replacing one example."
    if limit is None:
        return (
            " ε̃ is not a lower bound on ε: c-closeness could not be rejected beyond c_lb; if that "
            "is tight, the model is not ε̃-DP (section 4.2)."
        )
    return f" Where c is at most {limit:g}, ε is at least the bound on c + ε minus {limit:g}."


def _options(
    proof: Rankings, relaxed: Relaxed, request: Request, seen: _Seen, *, exchangeable: bool
) -> dict[str, Any]:
    """Return what was asked, and how, as results store it."""
    pairs = dict[str, int]()
    if exchangeable:
        pairs["pairs"] = proof.guesses
    return {
        "cuts": proof.attack.options["cuts"],
        "level": proof.level,
        "gamma": relaxed.gamma,
        "delta": request.claim.delta,
        "relaxation": relaxed.how,
        "max_recall": proof.recall,
        "real_nonmembers": exchangeable,
        "seed": request.seed,
        **asked(request.cuts),
        **seen.options,
        **pairs,
    }


def _doubted(p_value: float | None) -> str:
    """Say that the conditional bound is withheld."""
    return (
        "the conditional lower bound is withheld: the data contradict the propensity model (p = "
        f"{p_value:.2g}), so the examples reveal more about membership than a logistic "
        "regression on the baseline's score and the features"
    )


def _warnings(proof: Rankings, seen: _Seen, limit: float | None, delta: float) -> tuple[str, ...]:
    """Say what limits the audit, and what each ranking says."""
    baseline = proof.baseline
    notes = list[str]()
    if limit is None:
        notes += saturation_warnings(baseline.bound, lambda: baseline.ceiling)
    elif baseline.bound > limit:
        notes.append(_above_limit(baseline.bound, limit))
    notes += seen.count.warnings()
    notes += delta_warnings(delta, proof.guesses)
    notes += [f"baseline: {text}" for text in baseline.warnings]
    of_attack = premises.with_filled(seen.filled, proof.attack.warnings)
    notes += [f"attack: {text}" for text in of_attack]
    if seen.conditional is not None and seen.conditional.withheld:
        notes.append(_doubted(seen.conditional.tested))
    return tuple(notes)


def _above_limit(c_lb: float, limit: float) -> str:
    return (
        f"the baseline gives c >= {down(c_lb)}, above the upper limit {limit:g}: that limit is "
        "wrong, and the lower bound with it"
    )


def _assumptions(
    limit: float | None,
    relaxed: Relaxed,
    seen: _Seen,
    proof: Rankings,
    *,
    exchangeable: bool,
) -> tuple[Assumption, ...]:
    """Return what must be true for the bounds."""
    ties = "stay together"
    if proof.parted:
        ties = "are broken by the seed"
    how = f"Candidate thresholds and the order of guesses depend on scores only; ties {ties}."
    if exchangeable:
        how = (
            "Examples were matched at random, given membership and scores. Candidate "
            "thresholds and the order of guesses depend on the sizes of differences only."
        )
    return (
        seen.count.assumption(
            "independent fair coins",
            "For each pair, a separate fair coin decided whether the member or the non-member is "
            "shown, after all models that score the examples were trained.",
        ),
        _about_c(limit, gamma=relaxed.gamma, c_lb=proof.baseline.bound, exchangeable=exchangeable),
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
        Assumption(name="guesses ordered by scores only", statement=how, status="checked"),
        *seen.assumed,
    )


def _about_c(limit: float | None, gamma: float, c_lb: float, *, exchangeable: bool) -> Assumption:
    """Return what is assumed of the generator, and whether the baseline contradicts it."""
    close = "c-close"
    if gamma:
        close = f"(c, {gamma:g})-close"
    if limit is None:
        return Assumption(
            name="a tight baseline",
            statement=f"The generator is {close} for c = c_lb: the baseline finds every difference "
            "between generated and real points. Otherwise part of ε̃ is due to the generator.",
            status="unverifiable",
        )
    return _about_limit(limit, close, c_lb, exchangeable=exchangeable)


def _about_limit(limit: float, close: str, c_lb: float, *, exchangeable: bool) -> Assumption:
    """Return the same where c is known not to exceed a limit."""
    name = "upper limit on c"
    statement = f"The generator is {close} for c = {limit:g}."
    if exchangeable:
        name = "real non-members"
        statement = "Members and non-members are exchangeable except for training: c = 0."
    if c_lb <= limit:
        return Assumption(name=name, statement=statement, status="declared")
    proved = f"{statement} But the baseline gives c >= {down(c_lb)}."
    return Assumption(name=name, statement=proved, status="contradicted")


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
