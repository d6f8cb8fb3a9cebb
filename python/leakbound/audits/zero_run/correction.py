"""How distribution shift is taken out of what guesses prove."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, cast

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.messages import Message, Option
from leakbound._base.records import Lazy, encode
from leakbound._base.types import Adversary, FloatArray, JsonValue, TailBound
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.policies.reference import plan_guesses
from leakbound.audits.road import policy_of
from leakbound.audits.zero_run.game import Guesses, ObservedGame
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet
from leakbound.audits.zero_run.options import ZeroRunVariant
from leakbound.claims import Claim
from leakbound.cuts import CurvePoints, CutPolicy, Fixed, OutsideIn, Proof
from leakbound.cuts.games import ScoreGame, inverted_warnings, near_ceiling
from leakbound.cuts.look import Parts
from leakbound.cuts.policy import ALL_GUESSES, SUREST_GUESSES, Best, Bootstrap, Shift, Stated
from leakbound.errors import OptionError
from leakbound.results.one_run import valued
from leakbound.stats.distribution_shift import (
    bootstrap_quantile,
    bootstrap_rank,
    residual_scores,
    survival,
)

AT_A_MEMBER = (
    "Draws are tested at half of the level, and a share of all draws must reach the bound that is "
    "uniform up to a half by the seed (Ramdas and Manole 2023, on Markov's inequality)."
)
"""What a theorem adds where log-odds are a member of a confidence set."""


@dataclass(frozen=True, kw_only=True)
class ShiftCorrected(Stated):
    """A test of guesses with shift taken out, in words of results."""

    on_path: ClassVar[bool] = False
    claim: Claim
    scanned: bool = False
    """Whether all numbers of guesses were tested."""
    called: str = ""
    """What guesses are called, if they are not the most confident ones."""

    def guessed(self, proof: Proof, /) -> str:
        """See `Procedure.guessed`: of the examples that are kept."""
        if self.called:
            return self.called
        assert proof.shift is not None
        return SUREST_GUESSES if proof.best.cut < proof.shift.kept else ALL_GUESSES

    def remarks(self, proof: Proof, /) -> tuple[str, ...]:
        """See `Procedure.remarks`: scores look inverted, or examples are few."""
        inverted = inverted_warnings(proof.ranking)
        best = proof.best
        sides = proof.game.sides
        if proof.reason or (self.scanned and _are_few_guesses(proof)):
            return inverted
        near = near_ceiling(
            best.logit,
            best.cut,
            best.successes,
            lambda: proof.ceiling,
            valued=lambda value: valued(self.claim, value, sides),
        )
        return (*inverted, near) if near else inverted


def _are_few_guesses(proof: Proof) -> bool:
    """Return whether a free number of guesses is below a tenth, which proves less than all do."""
    size = proof.ranking.examples
    if proof.game.sides == "member":
        size = proof.ranking.members
    return 10 * proof.best.cut < size


@dataclass(frozen=True, kw_only=True, eq=False)
class TestedGuesses:
    """Guesses that a correction tested, and what it adds to the words of a result."""

    guesses: Guesses
    theorem: str = ""
    thresholds: str = ""
    guessed: str = ""
    scanned: bool = False
    reason: str = ""
    options: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Correction(ABC):
    """A way to take distribution shift out of what guesses prove of a claim."""

    name: ClassVar[CorrectionName]
    claim: Claim
    cuts: CutPolicy | None = None
    adversary: Adversary = "residual"
    variant: ZeroRunVariant = "directional"

    @classmethod
    def usual_adversary(cls, _odds: Odds) -> Adversary:
        """Return what guesses are ranked by unless asked otherwise."""
        return "residual"

    def proof_at_level(self, odds: Odds, game: ObservedGame, level: float) -> Proof:
        """Return what guesses prove at a level, whatever the log-odds that are not ruled out."""
        if odds.refusal:
            return self._proof_without_set(odds, game, level)
        if not isinstance(odds, OddsSet):
            return self._proof_at_box(cast("OddsBox", odds), game, level)
        return replace(
            self.proof_over_set(odds, game, level),
            perfect=lambda: self.proof_over_set(odds, game.of_perfect_attack(), level).bound,
        )

    def _proof_at_box(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """Return what is proved at log-odds that are known, or learnt elsewhere with replicates."""
        proof = self.proof_at_known(odds, game, odds.level_of_test(level))
        if odds.draws is None:
            return proof
        return _percentile_over_replicates(proof, odds.draws, shares.PERCENTILE.of(level))

    @abstractmethod
    def proof_at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """Return what is proved at log-odds that are known, within limits of each at most."""

    @abstractmethod
    def proof_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """Return the least that is proved at any member of a confidence set."""

    def _proof_without_set(self, odds: Odds, game: ObservedGame, level: float) -> Proof:
        """Return that nothing is proved, as there is no confidence set."""
        nobody = game.guesses_by_rank(game.values, 0)
        tested = TestedGuesses(guesses=nobody, reason=odds.refusal)
        return self.proof_of_guesses(
            game, Best(0.0, 0, 0), self.shift_of(game), tested, level=level
        )

    # --- what is proved

    def shift_of(self, game: ObservedGame) -> Shift:
        """Return that shift is taken out this way, and no example is left out."""
        return Shift(
            correction=self.name,
            adversary=self.adversary,
            kept=game.examples,
            effective=float(game.examples),
        )

    def proof_of_guesses(
        self,
        game: ObservedGame,
        best: Best,
        shift: Shift,
        tested: TestedGuesses,
        *,
        level: float,
        perfect: Callable[[], float] = lambda: 0.0,
    ) -> Proof:
        """Return what is proved by guesses, with the reason where that is nothing."""
        guesses = tested.guesses
        cuts = OutsideIn() if "outside_in" in tested.options else Fixed(max(1, best.cut))
        thresholds = tested.thresholds or cuts.searched(shift.kept, game.sides)
        if not best.cut and not tested.scanned:
            thresholds = ""  # none could be
        reason = tested.reason
        if not reason and not best.logit > 0:
            reason = _shift_explains(best, shift)
        return Proof(
            policy=ShiftCorrected(
                theorem=tested.theorem,
                claim=self.claim,
                thresholds=thresholds,
                scanned=tested.scanned,
                called=tested.guessed,
            ),
            game=game,
            ranking=game.ranked(),
            order=guesses.order,
            best=best,
            level=level,
            reason=reason,
            options={"cuts": encode(cuts), **tested.options},
            shift=replace(shift, rows=guesses.rows, signs=guesses.signs),
            perfect=perfect,
            points=lambda most: _points_of_guesses(game.right(guesses), best, most),
        )

    def proof_as_fair_coins(
        self,
        ranks: FloatArray,
        game: ObservedGame,
        level: float,
        cuts: CutPolicy | None,
    ) -> Proof:
        """Audit examples as if every membership had been a fair coin."""
        coins = ScoreGame(scores=ranks, member=game.member, sides=game.sides, seed=game.seed)
        return proof_of_fair_coins(self.claim, cuts, coins, level)

    def planned_number(self, game: ObservedGame, examples: int, level: float) -> int:
        """Return the number of guesses about so many examples, fixed before labels."""
        cuts = self.cuts
        if cuts is None:
            cuts, _ = plan_guesses(examples, level, self.claim, game.sides)
        if not isinstance(cuts, Fixed):
            raise _cuts_without_fixed_number(cuts)
        return min(cuts.guesses, examples)

    def bound_of_counts(
        self,
        game: ObservedGame,
        counts: tuple[int, int, float],
        level: float,
        form: TailBound = "exact",
    ) -> float:
        """Return what correct guesses, of all those made about some examples, prove as coins."""
        correct, guesses, examples = counts
        one_sided = game.one_sided and form == "exact"
        return self.claim.lower_bound(
            correct, guesses, examples, level, form=form, one_sided=one_sided
        )

    # --- what guesses are ranked by, where log-odds are known

    def adversary_ranks(self, odds: OddsBox, game: ObservedGame) -> FloatArray:
        """Return what the adversary ranks by: a function of scores and propensities alone."""
        if self.adversary == "raw":
            return game.values
        if self.adversary == "residual":
            return residual_scores(game.values, odds.estimate)
        return self.survival_weights(odds) * (game.values - np.median(game.values))

    def survival_weights(self, odds: OddsBox) -> FloatArray:
        """Return the share of guesses that tampering leaves, whichever way they go."""
        excess = np.abs(odds.estimate)
        if self.variant == "paper":
            return np.exp(-excess)
        return survival(excess, np.zeros(1))


def _cuts_without_fixed_number(cuts: CutPolicy) -> OptionError:
    """Return the error of cuts that do not fix the number of guesses."""
    message = "{cuts} is not for this correction: take {Fixed}, or None"
    return OptionError(Message(message, cuts=Option("cuts", type(cuts))))


def larger_proof_over_set(
    parts: Parts, game: ObservedGame, proofs: list[Proof], level: float, theorem: str
) -> Proof:
    """Return the larger bound of several tests over a confidence set, and why it is valid."""
    joined = parts.joined(game, proofs, level)
    policy = joined.winner.policy
    assert isinstance(policy, ShiftCorrected)
    assert joined.shift is not None
    estimate = max(proof.shift.at_estimate for proof in proofs if proof.shift is not None)
    return replace(
        joined,
        policy=replace(policy, theorem=theorem),
        shift=replace(joined.shift, at_estimate=estimate),
        level=level,
    )


def proof_of_fair_coins(
    claim: Claim, cuts: CutPolicy | None, game: ScoreGame, level: float
) -> Proof:
    """Audit a game as if every membership had been a fair coin."""
    policy = policy_of(claim, cuts, game.examples, game.sides, level)
    return policy.audit(game, level)


def smallest_epsilon_left(refuted: Callable[[float], float]) -> float:
    """Return inf{ε : not refuted}, given what the count for an ε refutes, which rises with ε.

    From 0 upwards, ε becomes the largest that its own count refutes, until it stays.
    """
    epsilon = 0.0
    while (further := refuted(epsilon)) > epsilon:
        epsilon = further
    return epsilon


def _percentile_over_replicates(proof: Proof, draws: FloatArray, p: float) -> Proof:
    """Allow for the uncertainty of propensities with replicates, by a percentile of bounds."""
    shift = proof.shift
    assert shift is not None
    assert shift.bounds is not None
    replicates = Bootstrap(_bounds=Lazy(partial(shift.bounds, draws)), estimate=proof.bound, p=p)
    if shift.lowest is None:
        bound = bootstrap_quantile(replicates.bounds, p=p)
    else:
        bound = shift.lowest(draws, bootstrap_rank(len(draws), p))
    reason = ""
    if not bound > 0:
        reason = proof.reason or (
            "the propensities are too uncertain: the bound is "
            f"{replicates.estimate:.3g} at their estimate, and {bound:.3g} under enough of their "
            "replicates"
        )
    best = proof.best
    # Parts are what one fit proves, and not the percentile of many.
    options = {name: value for name, value in proof.options.items() if name != "parts"}
    return replace(
        proof,
        best=Best(bound, best.cut, best.successes),
        reason=reason,
        options=options,
        perfect=lambda: proof.ceiling,
        shift=replace(shift, bootstrap=replicates),
    )


def _shift_explains(best: Best, shift: Shift) -> str:
    """Say why nothing is proved."""
    if best.cut == 0:
        return "no tested threshold has more correct guesses than shift and chance explain"
    right = f"{best.successes} correct guesses of {best.cut}"
    if shift.coefficients.size:
        return f"{right} fit a plausible membership model without any leak"
    return f"shift and chance explain {right}"


def _points_of_guesses(right: np.ndarray, best: Best, most: int) -> CurvePoints:
    """Return cuts of a path of guesses, the chosen one among them, which alone has a bound."""
    sampled, _ = _core.Path.from_successes(right).sample(most)
    chosen = [best.cut] if best.cut else []
    guesses = np.union1d(sampled, chosen).astype(np.int64)
    correct = np.cumsum(right)[guesses - 1].astype(np.int64)
    return guesses, correct, np.where(guesses == best.cut, best.logit, np.nan)
