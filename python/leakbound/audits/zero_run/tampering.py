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
from leakbound._base.odds import expit
from leakbound._base.types import Adversary, BoolArray, FloatArray, PathOrder, TailBound
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits.zero_run.correction import AT_A_MEMBER, Correction, Tested, least_fixed
from leakbound.audits.zero_run.game import Guesses, ObservedGame, distinct_ranks
from leakbound.audits.zero_run.log_odds import Odds, OddsBox, OddsSet
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.claims.base import GuessWords
from leakbound.cuts import CurvePoints, Fixed, Proof
from leakbound.cuts.policy import Best
from leakbound.cuts.shift import Shift
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import (
    ComposableClaim,
    remaining_leakage,
    residual_scores,
    survival,
    surviving_guesses,
)

# Parts of the examples to which Σ 2w is rounded up between replicates: a bound falls with it.
_FINEST = 200

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

    def at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.at_known`."""
        number = self.planned(game, game.examples, level)
        guesses = self._guessed(odds, game, number)
        tampering = _Tampering(self, odds, game, guesses, level)
        effective = tampering.effective(odds.estimate)
        toward = tampering.toward()
        bound = tampering.bound(toward, effective)
        standing = tampering.standing(bound)
        tested = Tested(guesses=standing, theorem=self._theorem)
        shift = replace(self.shift(game), effective=effective, bounds=tampering.bounds)
        best = Best(bound, number, tampering.count(toward, bound))
        return self.proof(game, best, shift, tested, level=level, perfect=tampering.perfect)

    def over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.over_set`: what enough of all draws leave, at half the level."""
        draw_level = odds.of_draw(level)
        number = self.planned(game, game.examples, draw_level)
        guesses = game.guessed(odds.matched(game, number), number)
        correct = guesses.taken(np.flatnonzero(game.right(guesses)))
        tampering = _TamperingOverSet(self, odds, game, number, correct, draw_level)
        bound, epsilon = tampering.bound(tampering.least)
        at_estimate, _ = tampering.bound(tampering.at_estimate)
        standing, coefficients = tampering.lowest(epsilon)
        shift = replace(self.shift(game), coefficients=coefficients, at_estimate=at_estimate)
        tested = Tested(guesses=guesses, theorem=self._theorem + AT_A_MEMBER)
        best = Best(bound, number, min(standing, tampering.at_estimate(epsilon)))
        return self.proof(game, best, shift, tested, level=level)

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

    def toward(self, odds: OddsBox, guesses: Guesses) -> FloatArray:
        """Return Tλ of guesses at the worst log-odds, or |λ| in the published variant."""
        if self.variant == "directional":
            return odds.toward(guesses)
        return odds.largest[guesses.rows]

    def survival(self, toward: FloatArray, epsilon: float) -> FloatArray:
        """Return how likely each guess survives; f-DP is tampered with at ε = 0."""
        excess = np.maximum(toward, 0.0)
        if self.as_published:
            return np.exp(-excess)
        if self.of_family:
            epsilon = 0.0
        return survival(excess, np.array(epsilon))

    def _guessed(self, odds: OddsBox, game: ObservedGame, number: int) -> Guesses:
        """Guess where a guess is likeliest to be right and to stand, unless asked otherwise.

        Bayes' rule at ε = 0, with scores beyond features as log-likelihood ratios: a function of
        scores and propensities alone.
        """
        if self.adversary != "residual":
            return game.guessed(self.ranked_by(odds, game), number)
        told = residual_scores(game.values, odds.estimate) + odds.estimate
        rows = np.arange(game.examples)

        def worth(sign: int) -> FloatArray:
            all_alike = Guesses("ends", rows, np.full(rows.size, sign))
            stands = self.survival(self.toward(odds, all_alike), 0.0)
            return stands * expit(sign * told)

        best = worth(1)
        signs = np.ones(rows.size, dtype=np.int64)
        order: PathOrder = "member"
        if not game.one_sided:
            order = "ends"
            as_other = worth(-1)
            signs[as_other > best] = -1
            best = np.maximum(best, as_other)
        chosen = np.argsort(-best, kind="stable")[:number]
        return Guesses(order, chosen, signs[chosen])


@dataclass(frozen=True, eq=False)
class _TamperingOverSet:
    """The correct ones of a number of guesses, and how many stand in enough draws at members."""

    correction: Tamper
    odds: OddsSet
    game: ObservedGame
    number: int
    correct: Guesses
    level: float

    def standing(self, log_odds: FloatArray, epsilon: float) -> int:
        """Return how many correct guesses stand at log-odds, tampered with for an ε."""
        excess = np.maximum(log_odds[self.correct.rows] * self.correct.signs, 0.0)
        return surviving_guesses(survival(excess, np.array([epsilon])), self.odds.draws_needed)

    def lowest(self, epsilon: float) -> tuple[int, FloatArray]:
        """Return the fewest that stand at a member found, and its coefficients."""
        core = self.odds.found.core
        correct = self.correct
        _, coefficients, log_odds = core.least_surviving(
            correct.rows, correct.signs, epsilon=epsilon
        )
        return self.standing(log_odds, epsilon), coefficients

    def at_estimate(self, epsilon: float) -> int:
        """Return how many stand at the likeliest log-odds."""
        return self.standing(self.odds.likeliest, epsilon)

    def least(self, epsilon: float) -> int:
        """Return how many stand at any member."""
        return min(self.lowest(epsilon)[0], self.at_estimate(epsilon))

    def bound(self, count: Callable[[float], int]) -> tuple[float, float]:
        """Return the bound that a count proves, and the ε whose tampering it was found with."""
        correction = self.correction

        def refuted(epsilon: float) -> float:
            counts = (count(epsilon), self.number, self.game.examples)
            return correction.counted(self.game, counts, self.level)

        if correction.of_family:
            return refuted(0.0), 0.0
        epsilon = least_fixed(refuted)
        return epsilon, epsilon


@dataclass(frozen=True, eq=False)
class _Tampering:
    """A fixed number of guesses at known log-odds, and how many of them are right and stand."""

    correction: Tamper
    odds: OddsBox
    game: ObservedGame
    guesses: Guesses
    level: float
    _limits: dict[float, FloatArray] = field(default_factory=dict)

    @property
    def _signed(self) -> bool:
        """Whether guesses are tampered with by Tλ, and not by |λ|."""
        return self.correction.variant == "directional"

    @cached_property
    def _right(self) -> BoolArray:
        return self.game.right(self.guesses)

    @cached_property
    def _correct(self) -> Guesses:
        """The correct guesses."""
        guesses = self.guesses
        return Guesses(guesses.order, guesses.rows[self._right], guesses.signs[self._right])

    @cached_property
    def _uniforms(self) -> FloatArray:
        return self.game.uniforms[self._correct.rows]

    def toward(self) -> FloatArray:
        """Return Tλ (or |λ|) of the correct guesses at the worst log-odds."""
        return self.correction.toward(self.odds, self._correct)

    def count(self, toward: FloatArray, epsilon: float) -> int:
        """Return how many correct guesses survive, tampered with for an ε."""
        return int(np.count_nonzero(self._stand(toward, epsilon)))

    def _stand(self, toward: FloatArray, epsilon: float) -> BoolArray:
        """Return which correct guesses survive, tampered with for an ε."""
        return self._uniforms < self.correction.survival(toward, epsilon)

    def standing(self, bound: float) -> Guesses:
        """Return the guesses, those that are dropped turned into wrong ones."""
        guesses = self.guesses
        stand = np.zeros(guesses.rows.size, dtype=np.bool_)
        stand[self._right] = self._stand(self.toward(), bound)
        signs = np.where(stand, 1, -1) * self.game.signs[guesses.rows]
        return Guesses(guesses.order, guesses.rows, signs)

    def bound(self, toward: FloatArray, effective: float) -> float:
        """Return the bound, given Tλ (or |λ|) of the correct guesses."""
        if self.correction.of_family:
            counts = (self.count(toward, 0.0), self.guesses.rows.size, effective)
            return self.correction.counted(self.game, counts, self.level)
        if effective not in self._limits:
            self._limits[effective] = self._limits_of(effective)
        limits = self._limits[effective]
        return least_fixed(lambda epsilon: float(limits[self.count(toward, epsilon)]))

    def _limits_of(self, effective: float) -> FloatArray:
        """Return what each number of correct guesses proves: more of them refute no less."""
        form: TailBound = "exact"
        if self.correction.variant == "paper":
            form = "zero_run"
        number = self.guesses.rows.size
        proved = [
            self.correction.counted(self.game, (correct, number, effective), self.level, form)
            for correct in range(self._uniforms.size + 1)
        ]
        return np.maximum.accumulate(proved)

    def bounds(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds of all examples."""
        here = draws[:, self._correct.rows]
        toward = np.abs(here)
        if self._signed:
            toward = here * self._correct.signs
        step = self._step
        found = []
        for log_odds, each in zip(draws, toward, strict=True):
            # rounded up, so that replicates share bounds
            effective = -(-self.effective(log_odds) // step) * step
            found.append(self.bound(each, effective))
        return np.array(found)

    @property
    def _step(self) -> int:
        """To multiples of what effective numbers of examples are rounded up."""
        if self._failing:
            return max(1, self.game.examples // _FINEST)
        return 1

    @property
    def _failing(self) -> bool:
        """Whether failures are rarer where |λ| is large, which counts only if |λ| is no limit."""
        return isinstance(self.correction.claim, ApproxDP) and self._signed

    def effective(self, log_odds: FloatArray) -> float:
        """Return Σ 2 min(π, 1 - π) for (ε, δ)-DP and the paper's tampering of f-DP, else m.

        Where |λ| stands for Tλ, it is m: that is safe if |λ| is too large, and the sum is not.
        """
        if not (self.correction.as_published or self._failing):
            return float(self.game.examples)
        odds = self.odds
        least = np.abs(log_odds)
        if odds.limited:  # the limit nearest to a fair coin is the safe one here
            within = (odds.low <= 0) & (odds.high >= 0)
            nearest = np.minimum(np.abs(odds.low), np.abs(odds.high))
            least = np.where(within, 0.0, nearest)
        # rounded up to a whole number, so that replicates share bounds
        return float(math.ceil((2 / (1 + np.exp(least))).sum()))

    def perfect(self) -> float:
        """Return the bound of an attack that guesses right where tampering drops least."""
        rows = self.game.guessable
        right = Guesses(self.guesses.order, rows, self.game.signs[rows])
        toward = np.maximum(self.correction.toward(self.odds, right), 0.0)
        easiest = np.argsort(toward, kind="stable")[: self.guesses.rows.size]
        chosen = Guesses(right.order, rows[easiest], right.signs[easiest])
        perfect = _Tampering(self.correction, self.odds, self.game, chosen, self.level)
        return perfect.bound(perfect.toward(), self.effective(self.odds.estimate))


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

    def at_known(self, odds: OddsBox, game: ObservedGame, level: float) -> Proof:
        """See `Correction.at_known`."""
        self._check()
        largest = float(odds.largest.max())
        values = self.ranked_by(odds, game)
        ranks = distinct_ranks(values, odds.ties(game))
        if game.one_sided and not isinstance(self.claim, PureDP):
            return self._counted(game, ranks, level, largest)
        cuts = self.cuts
        if cuts is None and isinstance(self.claim, ApproxDP):
            cuts = Fixed(self.planned(game, game.examples, level))
        return self._scanned(self.as_coins(ranks, game, level, cuts), largest, game)

    def over_set(self, odds: OddsSet, game: ObservedGame, level: float) -> Proof:
        """See `Correction.over_set`: the largest |log-odds| of any member counts."""
        self._check()
        largest = odds.found.core.largest_shift()
        ranks = distinct_ranks(game.values, odds.ties(game))
        if isinstance(self.claim, PureDP) and self.cuts is None:
            fair = self.as_coins(ranks, game, level, None)
            total = fair.bound
            proof = self._scanned(fair, largest, game)
        else:
            proof = self._counted(game, ranks, level, largest)
            total = self._total(game, proof.best.successes, proof.best.cut, level)
        assert proof.shift is not None
        at_estimate = self._left(total, float(np.abs(odds.likeliest).max()))
        return replace(
            proof,
            options=proof.options | {"largest_log_odds": largest},
            shift=replace(
                proof.shift, at_estimate=at_estimate, coefficients=odds.found.coefficients
            ),
        )

    def _check(self) -> None:
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

    def _left(self, total: float, largest: float) -> float:
        """Return what is left of a bound once what features may leak is taken off."""
        claim = cast("ComposableClaim", self.claim)
        return remaining_leakage(total, largest, claim)

    def _lowered(self, total: float, game: ObservedGame) -> Shift:
        """Return that shift is taken off a bound as if there were none, also for replicates."""

        def bounds(draws: FloatArray) -> FloatArray:
            largest = np.abs(draws).max(axis=1)
            return np.array([self._left(total, one) for one in largest.tolist()])

        return replace(self.shift(game), bounds=bounds)

    def _scanned(self, fair: Proof, largest: float, game: ObservedGame) -> Proof:
        """Take shift off an audit of fair coins."""
        bound = self._left(fair.bound, largest)

        def points(most: int) -> CurvePoints:
            guesses, correct, bounds = fair.points(most)
            left = bounds.copy()
            for i in np.flatnonzero(bounds > 0):
                left[i] = self._left(float(bounds[i]), largest)
            return guesses, correct, left

        options = dict(fair.options)
        told = options.get("parts")
        if isinstance(told, list):
            parts = cast("list[dict[str, Any]]", told)
            options["parts"] = [
                {**part, "bound": self._left(part["bound"], largest)} for part in parts
            ]
        return replace(
            fair,
            options=options,
            best=Best(bound, fair.best.cut, fair.best.successes),
            reason=fair.reason or _explained(bound, largest),
            perfect=lambda: self._left(fair.ceiling, largest),
            points=points,
            shift=replace(
                self._lowered(fair.bound, game), theorem=_THEOREM + self.claim.theorem(GuessWords())
            ),
        )

    def _counted(
        self, game: ObservedGame, ranks: FloatArray, level: float, largest: float
    ) -> Proof:
        """Take shift off what a planned number of guesses proves."""
        number = self.planned(game, game.examples, level)
        guesses = game.guessed(ranks, number)
        correct = int(game.right(guesses).sum())
        total = self._total(game, correct, number, level)
        bound = self._left(total, largest)

        def perfect() -> float:
            most = min(number, int(game.member.sum()))
            return self._left(self._total(game, most, number, level), largest)

        tested = Tested(
            guesses=guesses, theorem=_THEOREM + _MEMBERS, reason=_explained(bound, largest)
        )
        shift = self._lowered(total, game)
        best = Best(bound, number, correct)
        return self.proof(game, best, shift, tested, level=level, perfect=perfect)

    def _total(self, game: ObservedGame, correct: int, number: int, level: float) -> float:
        """Return what correct guesses prove, all m examples counting, not m/2 of one-sided ones.

        The proof of m/2 needs coins that are fair given the features: where P(S = 1 | X) = .7 a
        guess is right with .7 although the model says nothing, above the ½ f̄ ≤ ½ that m/2 allows.
        """
        return self.claim.lower_bound(correct, number, game.examples, level)


def _explained(bound: float, largest: float) -> str:
    """Say that shift alone may leak all that is proved, if so."""
    if bound:
        return ""
    return f"the shift alone may leak as much as {largest:.3g} of ε"
