"""Zero-Run without leaving examples out: by tampering with guesses, or by composition.

Tampering drops guesses so that shift alone makes none too likely right. Composition takes the worst
shift of all examples off what an audit proves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from leakbound._base.messages import Message
from leakbound._base.numerics import expit
from leakbound._base.types import (
    Adversary,
    BoolArray,
    FloatArray,
    JsonValue,
    PathOrder,
    TailBound,
)
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.zero_run.correction import (
    AT_A_MEMBER,
    Correction,
    TestedGuesses,
    smallest_epsilon_left,
)
from leakbound.audits.zero_run.game import Guesses, ObservedGame, distinct_ranks
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.claims.base import GuessWords
from leakbound.cuts import CurvePoints, Fixed, Proof
from leakbound.cuts.policy import Best, Shift
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import (
    ComposableClaim,
    remaining_leakage,
    residual_scores,
    survival,
    surviving_guesses,
)

# Parts of the examples to which Σ 2w is rounded up between replicates: a bound falls with it.
_EFFECTIVE_PARTS = 200

_LEAST = "The bound is the smallest ε that the guesses, tampered for this ε, do not refute. "
_PURE = (
    "Given the trained model and the coins of earlier guesses, a guess is right with log-odds of "
    "at most ε + Tλ under ε-DP, and tampering keeps it so rarely that it is both kept and right "
    "with log-odds of at most ε (Cebere, Even, Bleistein and Bellet, Theorem C.1, with the sign "
    "kept). "
) + _LEAST
_APPROX = (
    "Guesses that tampering keeps obey the inequality of a one-run audit of (ε, δ)-DP, given the "
    "features, with failures of total δ Σ 2 min(π, 1 - π): the test uses the largest probability "
    "of this many correct guesses that it allows, in closed form. "
) + _LEAST
_PUBLISHED = (
    "Tampered guesses under (ε, δ)-DP: Theorem 5.1 (1) of Cebere, Even, Bleistein and Bellet, "
    "which takes rare failures to be independent of the coins. "
) + _LEAST
_FAMILY = (
    "Guesses that tampering keeps obey the inequality of a one-run audit of f-DP, given the "
    "features (Cebere, Even, Bleistein and Bellet, Theorem 5.1 (2); the directional probabilities "
    "by the same proof with a sharper first lemma). "
)


class Tamper(Correction):
    """Guesses of which some are dropped at random, those likely right by shift above all."""

    name: ClassVar[CorrectionName] = "tamper"

    def proof_at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_at_known`."""
        number_of_guesses = self.planned_number(game, game.examples, level)
        guesses = self._likeliest_guesses(odds, game, number_of_guesses)
        tampering = _Tampering(correction=self, odds=odds, game=game, guesses=guesses, level=level)
        effective_examples = tampering.effective_examples(odds.estimate)
        toward_guesses = tampering.toward_guesses()
        bound = tampering.tampered_bound(toward_guesses, effective_examples)
        standing_guesses = tampering.tampered_guesses(bound)
        tested_guesses = TestedGuesses(guesses=standing_guesses, theorem=self._theorem)
        shift = replace(
            self.shift_of(game), effective=effective_examples, bounds=tampering.bounds_of_replicates
        )
        correct_standing = tampering.standing_count(toward_guesses, bound)
        best_cut = Best(logit=bound, cut=number_of_guesses, successes=correct_standing)
        return self.proof_of_guesses(
            game, best_cut, shift, tested_guesses, level=level, perfect=tampering.perfect_bound
        )

    def proof_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_over_set`: what enough of all draws leave, at half the level."""
        draw_level = odds.level_of_draw(level)
        number_of_guesses = self.planned_number(game, game.examples, draw_level)
        guesses = game.guesses_in_order(
            odds.balanced_rows(game, number_of_guesses), number_of_guesses
        )
        correct_places = np.flatnonzero(game.right(guesses))
        correct_guesses = guesses.taken(correct_places)
        tampering = _TamperingOverSet(
            correction=self,
            odds=odds,
            game=game,
            number_of_guesses=number_of_guesses,
            correct_guesses=correct_guesses,
            level=draw_level,
        )
        bound, epsilon = tampering.bound_of_standing(tampering.fewest_standing)
        at_estimate, _ = tampering.bound_of_standing(tampering.standing_at_estimate)
        fewest_standing, coefficients = tampering.fewest_standing_found(epsilon)
        shift = replace(self.shift_of(game), coefficients=coefficients, at_estimate=at_estimate)
        tested_guesses = TestedGuesses(guesses=guesses, theorem=self._theorem + AT_A_MEMBER)
        standing = min(fewest_standing, tampering.standing_at_estimate(epsilon))
        best_cut = Best(logit=bound, cut=number_of_guesses, successes=standing)
        return self.proof_of_guesses(game, best_cut, shift, tested_guesses, level=level)

    @property
    def _theorem(self) -> str:
        if isinstance(self.claim, PureDP):
            return _PURE
        if self.of_family:
            return _FAMILY
        if self.variant == "paper":
            return _PUBLISHED
        return _APPROX

    @property
    def of_family(self) -> bool:
        """Whether the claim is f-DP, so that tampering must not depend on its parameter."""
        return not isinstance(self.claim, PureDP | ApproxDP)

    @property
    def as_published(self) -> bool:
        """Whether f-DP is tampered with by e^-|λ|."""
        return self.of_family and self.variant == "paper"

    def toward_guesses(self, odds: OddsBox, guesses: Guesses) -> FloatArray:
        """Return Tλ of guesses at the worst log-odds, or |λ| in the published variant."""
        if self.variant == "directional":
            return odds.toward_guesses(guesses)
        return odds.largest_log_odds[guesses.rows]

    def survival(self, toward_guesses: FloatArray, epsilon: float) -> FloatArray:
        """Return how likely each guess survives; f-DP is tampered with at ε = 0."""
        excess_log_odds = np.maximum(toward_guesses, 0.0)
        if self.as_published:
            return np.exp(-excess_log_odds)
        if self.of_family:
            epsilon = 0.0
        return survival(excess_log_odds, np.array(epsilon))

    def _likeliest_guesses(
        self, odds: OddsBox, game: ObservedGame, number_of_guesses: int
    ) -> Guesses:
        """Guess where a guess is likeliest to be right and to stand, unless asked otherwise.

        Bayes' rule at ε = 0, with scores beyond features as log-likelihood ratios: a function of
        scores and propensities alone.
        """
        if self.adversary != "residual":
            return game.guesses_by_rank(self.adversary_ranks(odds, game), number_of_guesses)
        log_likelihood_ratios = residual_scores(game.values, odds.estimate)
        posterior_log_odds = log_likelihood_ratios + odds.estimate
        rows = np.arange(game.examples)

        def correct_and_standing(sign: int) -> FloatArray:
            """Return the probability that a guess of this sign is right and stands."""
            same_guesses = Guesses("ends", rows, np.full(rows.size, sign))
            survival_probabilities = self.survival(
                self.toward_guesses(odds, same_guesses), epsilon=0.0
            )
            return survival_probabilities * expit(sign * posterior_log_odds)

        largest_probability = correct_and_standing(1)
        guessed_signs = np.ones(rows.size, dtype=np.int64)
        guess_order: PathOrder = "member"
        if not game.one_sided:
            guess_order = "ends"
            as_nonmember_guess = correct_and_standing(-1)
            guessed_signs[as_nonmember_guess > largest_probability] = -1
            largest_probability = np.maximum(largest_probability, as_nonmember_guess)
        likeliest_rows = np.argsort(-largest_probability, kind="stable")[:number_of_guesses]
        return Guesses(order=guess_order, rows=likeliest_rows, signs=guessed_signs[likeliest_rows])


@dataclass(frozen=True, eq=False)
class _TamperingOverSet:
    """The correct ones of a number of guesses, and how many stand in enough draws at members."""

    correction: Tamper
    odds: OddsSet
    game: ObservedGame
    number_of_guesses: int
    correct_guesses: Guesses
    level: float

    def standing_count(self, log_odds: FloatArray, epsilon: float) -> int:
        """Return how many correct guesses stand at log-odds, tampered with for an ε."""
        correct_guesses = self.correct_guesses
        toward_guesses = log_odds[correct_guesses.rows] * correct_guesses.signs
        excess_log_odds = np.maximum(toward_guesses, 0.0)
        survival_probabilities = survival(excess_log_odds, np.array([epsilon]))
        return surviving_guesses(survival_probabilities, self.odds.draws_needed)

    def fewest_standing_found(self, epsilon: float) -> tuple[int, FloatArray]:
        """Return the fewest that stand at a member found, and its coefficients."""
        core = self.odds.found.core
        correct_guesses = self.correct_guesses
        _, coefficients, log_odds = core.least_surviving(
            correct_guesses.rows, correct_guesses.signs, epsilon=epsilon
        )
        return self.standing_count(log_odds, epsilon), coefficients

    def standing_at_estimate(self, epsilon: float) -> int:
        """Return how many stand at the likeliest log-odds."""
        return self.standing_count(self.odds.likeliest_log_odds, epsilon)

    def fewest_standing(self, epsilon: float) -> int:
        """Return how many stand at any member."""
        fewest_found, _ = self.fewest_standing_found(epsilon)
        return min(fewest_found, self.standing_at_estimate(epsilon))

    def bound_of_standing(self, count: Callable[[float], int]) -> tuple[float, float]:
        """Return the bound that a count proves, and the ε whose tampering it was found with."""
        correction = self.correction

        def refuted(epsilon: float) -> float:
            counts = (count(epsilon), self.number_of_guesses, self.game.examples)
            return correction.bound_of_counts(self.game, counts, self.level)

        if correction.of_family:
            return refuted(0.0), 0.0
        epsilon = smallest_epsilon_left(refuted)
        return epsilon, epsilon


@dataclass(frozen=True, eq=False)
class _Tampering:
    """A fixed number of guesses at known log-odds, and how many of them are right and stand."""

    correction: Tamper
    odds: OddsBox
    game: ObservedGame
    guesses: Guesses
    level: float
    _proved: dict[float, FloatArray] = field(default_factory=dict)

    @property
    def _is_directional(self) -> bool:
        """Whether guesses are tampered with by Tλ, and not by |λ|."""
        return self.correction.variant == "directional"

    @cached_property
    def _is_correct(self) -> BoolArray:
        return self.game.right(self.guesses)

    @cached_property
    def _correct_guesses(self) -> Guesses:
        """The correct guesses."""
        return self.guesses.taken(np.flatnonzero(self._is_correct))

    @cached_property
    def _uniforms(self) -> FloatArray:
        return self.game.uniforms[self._correct_guesses.rows]

    def toward_guesses(self) -> FloatArray:
        """Return Tλ (or |λ|) of the correct guesses at the worst log-odds."""
        return self.correction.toward_guesses(self.odds, self._correct_guesses)

    def standing_count(self, toward_guesses: FloatArray, epsilon: float) -> int:
        """Return how many correct guesses survive, tampered with for an ε."""
        return int(np.count_nonzero(self._survives(toward_guesses, epsilon)))

    def _survives(self, toward_guesses: FloatArray, epsilon: float) -> BoolArray:
        """Return which correct guesses survive, tampered with for an ε."""
        survival_probabilities = self.correction.survival(toward_guesses, epsilon)
        return self._uniforms < survival_probabilities

    def tampered_guesses(self, bound: float) -> Guesses:
        """Return the guesses, those that are dropped turned into wrong ones."""
        guesses = self.guesses
        is_standing = np.zeros(guesses.rows.size, dtype=np.bool_)
        is_standing[self._is_correct] = self._survives(self.toward_guesses(), bound)
        correct_signs = self.game.signs[guesses.rows]
        guessed_signs = np.where(is_standing, correct_signs, -correct_signs)
        return replace(guesses, signs=guessed_signs)

    def tampered_bound(self, toward_guesses: FloatArray, effective_examples: float) -> float:
        """Return the bound, given Tλ (or |λ|) of the correct guesses."""
        if self.correction.of_family:
            standing = self.standing_count(toward_guesses, epsilon=0.0)
            counts = (standing, self.guesses.rows.size, effective_examples)
            return self.correction.bound_of_counts(self.game, counts, self.level)
        if effective_examples not in self._proved:
            self._proved[effective_examples] = self._bound_by_standing_count(effective_examples)
        bound_by_count = self._proved[effective_examples]

        def refuted(epsilon: float) -> float:
            standing = self.standing_count(toward_guesses, epsilon)
            return float(bound_by_count[standing])

        return smallest_epsilon_left(refuted)

    def _bound_by_standing_count(self, effective_examples: float) -> FloatArray:
        """Return what each number of correct guesses proves: more of them refute no less."""
        form: TailBound = "exact"
        if self.correction.variant == "paper":
            form = "zero_run"
        guesses = self.guesses.rows.size
        proved_by_count = []
        for correct_count in range(self._uniforms.size + 1):
            counts = (correct_count, guesses, effective_examples)
            proved_by_count.append(
                self.correction.bound_of_counts(self.game, counts, self.level, form)
            )
        return np.maximum.accumulate(proved_by_count)

    def bounds_of_replicates(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds of all examples."""
        correct_guesses = self._correct_guesses
        log_odds_of_correct = draws[:, correct_guesses.rows]
        toward_guesses = np.abs(log_odds_of_correct)
        if self._is_directional:
            toward_guesses = log_odds_of_correct * correct_guesses.signs
        rounding_step = self._rounding_step
        bounds = []
        for log_odds, toward_of_draw in zip(draws, toward_guesses, strict=True):
            # rounded up, so that replicates share bounds
            rounded_up = -(-self.effective_examples(log_odds) // rounding_step) * rounding_step
            bounds.append(self.tampered_bound(toward_of_draw, rounded_up))
        return np.array(bounds)

    @property
    def _rounding_step(self) -> int:
        """To multiples of what effective numbers of examples are rounded up."""
        if self._failures_depend_on_odds:
            return max(1, self.game.examples // _EFFECTIVE_PARTS)
        return 1

    @property
    def _failures_depend_on_odds(self) -> bool:
        """Whether failures are rarer where |λ| is large, which counts only if |λ| is no limit."""
        return isinstance(self.correction.claim, ApproxDP) and self._is_directional

    def effective_examples(self, log_odds: FloatArray) -> float:
        """Return Σ 2 min(π, 1 - π) for (ε, δ)-DP and the paper's tampering of f-DP, else m.

        Where |λ| stands for Tλ, it is m: that is safe if |λ| is too large, and the sum is not.
        """
        if not (self.correction.as_published or self._failures_depend_on_odds):
            return float(self.game.examples)
        odds = self.odds
        smallest_sizes = np.abs(log_odds)
        if odds.limited:  # the limit nearest to a fair coin is the safe one here
            may_be_fair = (odds.low <= 0) & (odds.high >= 0)
            nearest_limits = np.minimum(np.abs(odds.low), np.abs(odds.high))
            smallest_sizes = np.where(may_be_fair, 0.0, nearest_limits)
        # 2 min(π, 1 - π) = 2/(1 + e^|λ|)
        effective_shares = 2 / (1 + np.exp(smallest_sizes))
        # rounded up to a whole number, so that replicates share bounds
        return float(math.ceil(effective_shares.sum()))

    def perfect_bound(self) -> float:
        """Return the bound of an attack that guesses right where tampering drops least."""
        rows = self.game.guessable
        correct_guesses = Guesses(self.guesses.order, rows, self.game.signs[rows])
        toward_guesses = self.correction.toward_guesses(self.odds, correct_guesses)
        excess_log_odds = np.maximum(toward_guesses, 0.0)
        easiest_places = np.argsort(excess_log_odds, kind="stable")[: self.guesses.rows.size]
        easiest_guesses = correct_guesses.taken(easiest_places)
        perfect_tampering = replace(self, guesses=easiest_guesses, _proved={})
        return perfect_tampering.tampered_bound(
            perfect_tampering.toward_guesses(), self.effective_examples(self.odds.estimate)
        )


_THEOREM = (
    "Features and model together leak at most the composition of what each leaks (Cebere, Even, "
    "Bleistein and Bellet, Theorem 4.1 and Corollary 1); what the worst shift of any audited "
    "example may leak is subtracted. "
)
_MEMBERS = "One threshold, fixed in advance, tested as if guesses at both ends had been made."


class Composition(Correction):
    """As if all coins were fair, less the largest |log-odds| of any example."""

    name: ClassVar[CorrectionName] = "composition"

    @classmethod
    def usual_adversary(cls, odds: Odds) -> Adversary:
        """See `Correction.usual_adversary`: the scores themselves, where log-odds are known."""
        if isinstance(odds, OddsBox):
            return "raw"
        return "residual"

    def proof_at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_at_known`."""
        self._refuse_unsupported()
        largest_shift = float(odds.largest_log_odds.max())
        values = self.adversary_ranks(odds, game)
        ranks = distinct_ranks(values, odds.tie_order(game))
        if game.one_sided and not isinstance(self.claim, PureDP):
            return self._planned_guesses_less_shift(game, ranks, level, largest_shift)
        cuts = self.cuts
        if cuts is None and isinstance(self.claim, ApproxDP):
            cuts = Fixed(self.planned_number(game, game.examples, level))
        fair = self.proof_as_fair_coins(ranks, game, level, cuts)
        return self._fair_audit_less_shift(fair, largest_shift, game)

    def proof_over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.proof_over_set`: the largest |log-odds| of any member counts."""
        self._refuse_unsupported()
        largest_shift = odds.found.core.largest_shift()
        ranks = distinct_ranks(game.values, odds.tie_order(game))
        if isinstance(self.claim, PureDP) and self.cuts is None:
            fair = self.proof_as_fair_coins(ranks, game, level, cuts=None)
            total = fair.bound
            proof = self._fair_audit_less_shift(fair, largest_shift, game)
        else:
            proof = self._planned_guesses_less_shift(game, ranks, level, largest_shift)
            best = proof.best
            total = self._without_shift(game, best.successes, best.cut, level)
        assert proof.shift is not None
        largest_estimated_shift = float(np.abs(odds.likeliest_log_odds).max())
        shift = replace(
            proof.shift,
            at_estimate=self._less_shift(total, largest_estimated_shift),
            coefficients=odds.found.coefficients,
        )
        options = proof.options | {"largest_log_odds": largest_shift}
        return replace(proof, options=options, shift=shift)

    def _refuse_unsupported(self) -> None:
        """Refuse claims and attacks without a form."""
        if not isinstance(self.claim, PureDP | ApproxDP | GaussianDP):
            message = (
                '{correction="composition"} is for pure, approximate and Gaussian DP, got '
                '{claim}: take "match"'
            )
            raise OptionError(Message(message, claim=self.claim.name))
        if self.adversary == "paper_aware":
            message = (
                '{correction="composition"} does not tamper: take {adversary="raw"} or "residual"'
            )
            raise OptionError(Message(message))

    def _less_shift(self, total: float, largest_shift: float) -> float:
        """Return what is left of a bound once what features may leak is taken off."""
        claim = cast("ComposableClaim", self.claim)
        return remaining_leakage(total, largest_shift, claim)

    def _shift_taken_off(self, total: float, game: ObservedGame) -> Shift:
        """Return that shift is taken off a bound as if there were none, also for replicates."""

        def bounds(draws: FloatArray) -> FloatArray:
            largest_shifts = np.abs(draws).max(axis=1).tolist()
            return np.array([self._less_shift(total, largest) for largest in largest_shifts])

        return replace(self.shift_of(game), bounds=bounds)

    def _fair_audit_less_shift(
        self, fair: Proof, largest_shift: float, game: ObservedGame
    ) -> Proof:
        """Take shift off an audit of fair coins."""
        bound = self._less_shift(fair.bound, largest_shift)

        def points(most: int) -> CurvePoints:
            guesses, correct, fair_bounds = fair.points(most)
            bounds = fair_bounds.copy()
            for place in np.flatnonzero(fair_bounds > 0):
                fair_bound = float(fair_bounds[place])
                bounds[place] = self._less_shift(fair_bound, largest_shift)
            return guesses, correct, bounds

        options = dict(fair.options)
        stated_parts = options.get("parts")
        if isinstance(stated_parts, list):
            fair_parts = cast("list[dict[str, Any]]", stated_parts)
            parts = list[JsonValue]()
            for part in fair_parts:
                part_bound = self._less_shift(part["bound"], largest_shift)
                parts.append({**part, "bound": part_bound})
            options["parts"] = parts
        theorem = _THEOREM + self.claim.theorem(GuessWords())
        return replace(
            fair,
            options=options,
            best=Best(logit=bound, cut=fair.best.cut, successes=fair.best.successes),
            reason=fair.reason or _reason_of_zero(bound, largest_shift),
            perfect=lambda: self._less_shift(fair.ceiling, largest_shift),
            points=points,
            shift=replace(self._shift_taken_off(fair.bound, game), theorem=theorem),
        )

    def _planned_guesses_less_shift(
        self, game: ObservedGame, ranks: FloatArray, level: float, largest_shift: float
    ) -> Proof:
        """Take shift off what a planned number of guesses proves."""
        number = self.planned_number(game, game.examples, level)
        guesses = game.guesses_by_rank(ranks, number)
        correct = int(game.right(guesses).sum())
        total = self._without_shift(game, correct, number, level)
        bound = self._less_shift(total, largest_shift)

        def perfect() -> float:
            most_correct = min(number, int(game.member.sum()))
            perfect_total = self._without_shift(game, most_correct, number, level)
            return self._less_shift(perfect_total, largest_shift)

        tested = TestedGuesses(
            guesses=guesses,
            theorem=_THEOREM + _MEMBERS,
            reason=_reason_of_zero(bound, largest_shift),
        )
        shift = self._shift_taken_off(total, game)
        best = Best(logit=bound, cut=number, successes=correct)
        return self.proof_of_guesses(game, best, shift, tested, level=level, perfect=perfect)

    def _without_shift(self, game: ObservedGame, correct: int, number: int, level: float) -> float:
        """Return what correct guesses prove, all m examples counting, not m/2 of one-sided ones.

        The proof of m/2 needs coins that are fair given the features: where P(S = 1 | X) = .7 a
        guess is right with .7 although the model says nothing, above the ½ f̄ ≤ ½ that m/2 allows.
        """
        return self.claim.lower_bound(correct, number, game.examples, level)


def _reason_of_zero(bound: float, largest_shift: float) -> str:
    """Say that shift alone may leak all that is proved, if so."""
    if bound:
        return ""
    return f"the shift alone may leak as much as {largest_shift:.3g} of ε"
