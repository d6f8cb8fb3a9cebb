"""Zero-Run by matching: examples are kept so that the membership of each is a fair coin.

At known log-odds one draw of what is kept is audited as in one run. Over a confidence set a share
of all draws must reach the bound, at every member.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.messages import Message
from leakbound._base.records import encode
from leakbound._base.types import Correction as CorrectionName
from leakbound._base.types import FloatArray
from leakbound.audits.policies.second_look import DEFAULT, second_look
from leakbound.audits.road import policy_of
from leakbound.audits.zero_run.correction import (
    AT_A_MEMBER,
    Correction,
    TestedGuesses,
    larger_proof_over_set,
    proof_of_fair_coins,
)
from leakbound.audits.zero_run.game import ObservedGame, distinct_ranks
from leakbound.audits.zero_run.levels import (
    ChosenGuesses,
    MatchingPlan,
    guesses_from_outside_in,
    pilot_guesses,
    planned_guesses,
)
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet, keep_probability
from leakbound.audits.zero_run.options import no_overlap
from leakbound.audits.zero_run.search import LeastProved, MatchingSearch, least_of_searches
from leakbound.claims import PureDP
from leakbound.claims.base import GuessWords
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, Proof, SecondLook
from leakbound.cuts.games import ScoreGame
from leakbound.cuts.look import Look, Parts
from leakbound.cuts.policy import Best, Shift
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import match, residual_scores

# Parts of the examples to which the number kept is rounded up: a bound falls with it.
_KEPT_PARTS = 200
# Examples that matching must keep on average.
_FEWEST_EXPECTED = 2.0

_THEOREM = (
    "A member is kept with probability min(1, (1 - π)/π), a non-member with min(1, π/(1 - π)); "
    "given features and what is kept, membership of the kept examples is independent and fair, so "
    "an audit of one run applies to them. "
)


class Match(Correction):
    """Examples are kept so that the membership of each is a fair coin."""

    name: ClassVar[CorrectionName] = "match"

    def proof_at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_at_known`: one draw is audited as an audit of one run."""
        cuts = self._matching_cuts(odds, game, level)
        proof = self._proof_of_kept_draw(odds.estimate, game, level, cuts)

        def bounds(log_odds_of_draws: FloatArray) -> FloatArray:
            if isinstance(cuts, Fixed):
                return self._bounds_of_replicates(log_odds_of_draws, game, level, cuts.guesses)
            bounds_of_draws = []
            for log_odds in log_odds_of_draws:
                proof_of_draw = self._proof_of_kept_draw(log_odds, game, level, cuts)
                bounds_of_draws.append(proof_of_draw.bound)
            return np.array(bounds_of_draws)

        assert proof.shift is not None
        shift = replace(proof.shift, bounds=bounds)
        return replace(proof, shift=shift)

    def proof_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_over_set`: what a share of all draws reaches, at half the level."""
        if isinstance(self.cuts, Fixed):
            return self._planned_over_set(odds, game, level)
        parts, tests = self.tests(odds, game, level)
        part_levels = [part.of(level) for part in parts.parts]
        least_of_tests = least_of_searches([*map(MatchingSearch, tests)])
        proofs = list(map(self._proof_at_least_member, tests, least_of_tests, part_levels))
        if len(proofs) < len(part_levels):
            proofs.append(self._proof_without_guesses(game, part_levels[-1]))
        theorem = f"{_THEOREM}{AT_A_MEMBER} {parts.method}"
        return larger_proof_over_set(parts, game, proofs, level, theorem)

    def _planned_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """Return the least that a fixed number of guesses proves at any member."""
        plan = MatchingPlan.of(self, odds, game, odds.level_of_draw(level))
        chosen = planned_guesses(plan, plan.level)
        least = MatchingSearch(chosen).least_proved()
        return self._proof_at_least_member(chosen, least, level)

    def tests(
        self, odds: OddsSet, game: ObservedGame, level: float
    ) -> tuple[Parts, list[ChosenGuesses]]:
        """Return two tests over a set and the guesses chosen for each, unless cuts are fixed.

        For the second none are chosen where the pilot sample promises nothing.
        """
        plan = MatchingPlan.of(replace(self, cuts=None), odds, game, odds.level_of_draw(level))
        cuts = DEFAULT
        if isinstance(self.cuts, SecondLook):
            cuts = self.cuts
        joined = second_look(
            cuts,
            self.claim,
            examples=plan.expected_kept,
            sides=game.sides,
            level=plan.level,
        )
        first, look = joined.parts
        assert isinstance(look.policy, Look)
        first_level = first.of(plan.level)
        # Labels choose how many of the most confident ones where D' says how many are kept.
        chosen = None
        if odds.guide.any():
            chosen = guesses_from_outside_in(plan, first_level)
            first = first._replace(name="outside-in", policy=look.policy.ladder)
        if chosen is None:
            chosen = planned_guesses(plan, first_level)
            planned = Fixed(chosen.guesses)
            policy = policy_of(self.claim, planned, plan.expected_kept, game.sides, first_level)
            first = first._replace(name="planned", policy=policy)
        tests = [chosen]
        pilot = pilot_guesses(plan, look.policy, look.of(plan.level))
        if pilot is not None:
            tests.append(pilot)
        return replace(joined, parts=(first, look)), tests

    def _proof_without_guesses(self, game: ObservedGame, level: float) -> Proof:
        """Return that nothing is proved, as no guesses were chosen."""
        no_guesses = TestedGuesses(guesses=game.guesses_by_rank(game.values, 0))
        best_cut = Best(logit=0.0, cut=0, successes=0)
        return self.proof_of_guesses(game, best_cut, self.shift_of(game), no_guesses, level=level)

    def _proof_at_least_member(
        self, chosen: ChosenGuesses, least: LeastProved, level: float
    ) -> Proof:
        """Return what chosen guesses prove at the member where that is least."""
        game = chosen.plan.game
        correct, guesses, kept = least.counts
        shift = replace(
            self._shift_of_kept(game, kept),
            at_estimate=least.estimate,
            coefficients=least.coefficients,
        )
        tested_guesses = TestedGuesses(
            guesses=chosen.order,
            theorem=_THEOREM + AT_A_MEMBER,
            thresholds=chosen.searched,
            guessed=chosen.guessed,
            options=chosen.options,
        )
        best_cut = Best(logit=least.bound, cut=guesses, successes=correct)
        return self.proof_of_guesses(game, best_cut, shift, tested_guesses, level=level)

    def _matching_cuts(self, odds: OddsBox, game: ObservedGame, level: float) -> CutPolicy:
        """Check what is asked, and choose the cuts."""
        if odds.limited:
            message = (
                '{correction="match"} needs propensities, not limits: use "tamper" or '
                '"poisson_binomial", which use the worst one for each guess'
            )
            raise OptionError(Message(message))
        if self.adversary == "paper_aware":
            message = (
                '{adversary="paper_aware"} weighs guesses that tampering may drop, but matching '
                'drops none: use "residual" or "raw"'
            )
            raise OptionError(Message(message))
        keep_probabilities = keep_probability(odds.estimate)
        expected_kept = float(keep_probabilities.sum())
        if expected_kept < _FEWEST_EXPECTED:
            kept_of_all = f"{expected_kept:.2g} of {game.examples} examples"
            raise no_overlap(f"matching keeps {kept_of_all}, on average")
        cuts = self.cuts
        replicated = odds.draws is not None
        if cuts is None and replicated and not isinstance(self.claim, PureDP):
            # replicates, which prove nothing, are compared at one number of guesses: that for the
            # mean number kept, since the number kept depends on labels
            return Fixed(self.planned_number(game, round(expected_kept), level))
        if isinstance(cuts, KLScan | OutsideIn):
            cuts.check(game.examples)
        return cuts or DEFAULT

    def _proof_of_kept_draw(
        self, log_odds: FloatArray, game: ObservedGame, level: float, cuts: CutPolicy
    ) -> Proof:
        """Audit the examples kept under some log-odds."""
        kept_rows = match(game.member, log_odds, game.uniforms)
        kept_values = game.values[kept_rows]
        kept = kept_values.size
        shift = self._shift_of_kept(game, kept)
        if kept < _fewest_kept_examples(cuts):
            return self._proof_of_few_kept(game, shift, level, cuts)
        if self.adversary == "residual" and np.isfinite(kept_values).any():
            kept_values = residual_scores(kept_values, log_odds[kept_rows], prior=0.5)
        if isinstance(cuts, Fixed) and cuts.guesses > kept:
            cuts = Fixed(kept)
        earlier_rows_first = -np.arange(kept)
        game_of_fair_coins = ScoreGame(
            scores=distinct_ranks(kept_values, earlier_rows_first),
            member=game.member[kept_rows],
            sides=game.sides,
            seed=game.seed,
        )
        proof = proof_of_fair_coins(self.claim, cuts, game_of_fair_coins, level)
        theorem = _THEOREM + self.claim.theorem(GuessWords())
        return replace(proof, shift=replace(shift, theorem=theorem))

    def _shift_of_kept(self, game: ObservedGame, kept: int) -> Shift:
        """Return that so many examples are kept."""
        effective = float(kept)
        if game.one_sided and not isinstance(self.claim, PureDP):
            effective = kept / 2
        return replace(self.shift_of(game), kept=kept, effective=effective)

    def _proof_of_few_kept(
        self, game: ObservedGame, shift: Shift, level: float, cuts: CutPolicy
    ) -> Proof:
        """Return that nothing is proved of the few examples that are kept."""
        kept_of_all = f"{shift.kept} of {game.examples} examples"
        tested_guesses = TestedGuesses(
            guesses=game.guesses_by_rank(game.values, 0),
            theorem=_THEOREM,
            reason=f"matching keeps {kept_of_all}, too few for the tested thresholds",
            options={"cuts": encode(cuts)},
        )
        best_cut = Best(logit=0.0, cut=0, successes=0)
        return self.proof_of_guesses(game, best_cut, shift, tested_guesses, level=level)

    def _bounds_of_replicates(
        self, log_odds_of_draws: FloatArray, game: ObservedGame, level: float, number: int
    ) -> FloatArray:
        """Return the bound of a fixed number of guesses under each row of log-odds."""
        counts = _core.matched_counts(
            game.values,
            game.member,
            np.ravel(log_odds_of_draws),
            game.uniforms,
            guesses=number,
            one_sided=game.one_sided,
            residual=self.adversary == "residual",
        )
        rounding_step = 1
        if log_odds_of_draws.shape[0] > 1:
            rounding_step = max(1, game.examples // _KEPT_PARTS)
        bounds = []
        for kept, guesses, correct in zip(*counts, strict=True):
            kept_rounded_up = -(-int(kept) // rounding_step) * rounding_step
            rounded_counts = (int(correct), int(guesses), kept_rounded_up)
            bounds.append(self.bound_of_counts(game, rounded_counts, level))
        return np.array(bounds)


def _fewest_kept_examples(cuts: CutPolicy) -> int:
    """How many examples the cuts take: how many are kept depends on labels."""
    if isinstance(cuts, KLScan):
        return max(2, cuts.min_guesses or 1)
    if isinstance(cuts, OutsideIn) and cuts.levels is not None:
        return max(2, *cuts.levels)
    return 2
