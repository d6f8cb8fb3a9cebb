"""Zero-Run without leaving examples out: by tampering with guesses, or by composition.

Tampering drops guesses so that shift alone makes none too likely right. Composition takes the worst
shift of all examples off what an audit proves.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leakbound._base.records import Lazy
from leakbound._base.types import FloatArray, IntArray, TailBound
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.study import AT_A_MEMBER, ShiftProof, Study, least_fixed
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.errors import OptionError
from leakbound.stats.distribution_shift import remaining_leakage, survival, surviving_guesses

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


def by_tampering(study: Study) -> ShiftProof:
    """Audit guesses of which some are dropped at random, those likely right by shift above all."""
    if isinstance(study.odds, OddsSet):
        return _over_set(study, study.odds)
    box, number = study.odds, study.planned(study.examples, study.level)
    values = study.ranked_by(box)
    if study.adversary == "residual":
        values = study.weight(box) * values
    tampering = _Tampering(study, box, number, *study.guessed(values, number))
    m_eff = tampering.m_eff(box.estimate)
    bound = tampering.bound(tampering.toward(), m_eff)
    correct = tampering.count(tampering.toward(), bound)
    return study.proof(
        bound,
        correct,
        number,
        rows=tampering.rows,
        signs=tampering.signs_standing(bound),
        theorem=_theorem(study),
        ceiling=tampering.ceiling,
        m_eff=m_eff,
        bounds=tampering.bounds,
    )


def _theorem(study: Study) -> str:
    if isinstance(study.claim, PureDP):
        return _PURE
    if not isinstance(study.claim, ApproxDP):
        return _FAMILY
    return _PUBLISHED if study.request.variant == "paper" else _APPROX


class _Tampering:
    """A fixed number of guesses at known log-odds, and how many of them are right and stand."""

    def __init__(
        self, study: Study, box: OddsBox, number: int, rows: IntArray, signs: IntArray
    ) -> None:
        self._study, self._box, self._number = study, box, number
        self.rows, self.signs = rows, signs
        self._right = study.right(rows, signs)
        self._uniforms = study.uniforms[rows[self._right]]
        claim, variant = study.claim, study.request.variant
        self._signed = variant == "directional"
        self._family = not isinstance(claim, PureDP | ApproxDP)
        self._paper = self._family and variant == "paper"
        # where |λ| stands for Tλ, m stays: that is safe if |λ| is too large, Σ 2w would not be
        self._failing = isinstance(claim, ApproxDP) and self._signed
        self._limits: dict[float, FloatArray] = {}

    def toward(self) -> FloatArray:
        """Return Tλ (or |λ|) of the correct guesses at the worst log-odds."""
        rows, signs = self.rows[self._right], self.signs[self._right]
        return self._box.toward(rows, signs) if self._signed else self._box.largest[rows]

    def count(self, toward: FloatArray, epsilon: float) -> int:
        """Return how many correct guesses survive, tampered with for an ε."""
        return int(np.count_nonzero(self._uniforms < self._survival(toward, epsilon)))

    def signs_standing(self, bound: float) -> IntArray:
        """Return the guesses, those that are dropped turned into wrong ones."""
        stand = np.zeros(self._number, dtype=np.bool_)
        stand[self._right] = self._uniforms < self._survival(self.toward(), bound)
        return np.where(stand, 1, -1) * self._study.signs[self.rows]

    def _survival(self, toward: FloatArray, epsilon: float) -> FloatArray:
        """Return how likely each correct guess survives; f-DP is tampered with at ε = 0."""
        excess = np.maximum(toward, 0.0)
        if self._paper:
            return np.exp(-excess)
        return survival(excess, np.array(0.0 if self._family else epsilon))

    def bound(self, toward: FloatArray, m_eff: float) -> float:
        """Return the bound, given Tλ (or |λ|) of the correct guesses."""
        if self._family:
            return self._study.proved(self.count(toward, 0.0), self._number, m_eff)
        if m_eff not in self._limits:
            form: TailBound = "zero_run" if self._study.request.variant == "paper" else "exact"
            right = range(self._uniforms.size + 1)
            proved = [self._study.proved(c, self._number, m_eff, form) for c in right]
            # more correct guesses refute no less
            self._limits[m_eff] = np.maximum.accumulate(proved)
        limits = self._limits[m_eff]
        return least_fixed(lambda epsilon: float(limits[self.count(toward, epsilon)]))

    def bounds(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds of all examples."""
        here, signs = draws[:, self.rows[self._right]], self.signs[self._right]
        toward = here * signs if self._signed else np.abs(here)
        sizes = [float(self._study.examples)] * len(draws)
        if self._paper or self._failing:
            # rounded up, so that replicates share bounds
            step = max(1, self._study.examples // _FINEST) if self._failing else 1
            sizes = [-(-self.m_eff(odds) // step) * step for odds in draws]
        return np.array([self.bound(*each) for each in zip(toward, sizes, strict=True)])

    def m_eff(self, log_odds: FloatArray) -> float:
        """Return Σ 2 min(π, 1 - π) for (ε, δ)-DP and the paper's tampering of f-DP, else m."""
        if not (self._paper or self._failing):
            return float(self._study.examples)
        box, least = self._box, np.abs(log_odds)
        if box.limited:  # the limit nearest to a fair coin is the safe one here
            within = (box.low <= 0) & (box.high >= 0)
            least = np.where(within, 0.0, np.minimum(np.abs(box.low), np.abs(box.high)))
        # rounded up to a whole number, so that replicates share bounds
        return float(math.ceil((2 / (1 + np.exp(least))).sum()))

    def ceiling(self) -> float:
        """Return the bound of an attack that guesses right where tampering drops least."""
        study = self._study
        rows = np.flatnonzero(study.member) if study.one_sided else np.arange(study.examples)
        signs = study.signs[rows]
        toward = self._box.toward(rows, signs) if self._signed else self._box.largest[rows]
        easiest = np.argsort(np.maximum(toward, 0.0), kind="stable")[: self._number]
        perfect = _Tampering(study, self._box, self._number, rows[easiest], signs[easiest])
        return perfect.bound(perfect.toward(), self.m_eff(self._box.estimate))


def _over_set(study: Study, odds: OddsSet) -> ShiftProof:
    """Count the correct guesses that stand in enough of all draws, at half the level."""
    found, claim, guesses = odds.found, study.claim, study.planned(study.examples, study.draw_level)
    rows, signs = study.guessed(study.matched(odds, guesses), guesses)
    right = study.right(rows, signs)
    right_rows, right_signs = rows[right], signs[right]
    estimate, least = found.log_odds(), {}

    def standing(log_odds: FloatArray, epsilon: float) -> int:
        excess = np.maximum(log_odds[right_rows] * right_signs, 0.0)
        return surviving_guesses(survival(excess, np.array([epsilon])), study.draws_needed)

    def anywhere(epsilon: float) -> int:
        _, *least[epsilon] = found.core.least_surviving(right_rows, right_signs, epsilon=epsilon)
        return min(standing(least[epsilon][1], epsilon), standing(estimate, epsilon))

    def bound(count: Callable[[float], int]) -> tuple[float, float]:
        """Return the bound, and the ε whose tampering it was found with."""

        def refuted(epsilon: float) -> float:
            return study.proved(count(epsilon), guesses, study.examples)

        if isinstance(claim, PureDP | ApproxDP):
            epsilon = least_fixed(refuted)
            return epsilon, epsilon
        return refuted(0.0), 0.0

    proved, epsilon = bound(anywhere)
    correct = anywhere(epsilon)
    coefficients, _ = least[epsilon]
    return study.proof(
        proved,
        correct,
        guesses,
        rows=rows,
        signs=signs,
        theorem=_theorem(study) + AT_A_MEMBER,
        ceiling=lambda: by_tampering(study.perfect()).bound,
        at_estimate=bound(lambda epsilon: standing(estimate, epsilon))[0],
        coefficients=coefficients,
    )


_THEOREM = (
    "Features and model together leak at most the composition of what each leaks (Cebere, Even, "
    "Bleistein and Bellet, Theorem 4.1 and Corollary 1); what the worst shift of any audited "
    "example may leak is subtracted. "
)
_MEMBERS = "One threshold, fixed in advance, tested as if guesses at both ends had been made."


def by_composition(study: Study) -> ShiftProof:
    """Audit as if all coins were fair, and take off the largest |log-odds| of any example."""
    claim, odds = study.claim, study.odds
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP):
        raise OptionError(
            f'correction="composition" is for pure, approximate and Gaussian DP, got {claim!r}: '
            'take "match"'
        )
    if study.adversary == "paper_aware":
        raise OptionError(
            'correction="composition" does not tamper: take adversary="raw" or "residual"'
        )
    # 1. What is proved as if there were no shift.
    known, cuts = isinstance(odds, OddsBox), study.request.cuts
    ranks = study.ranked(study.ranked_by(odds) if isinstance(odds, OddsBox) else study.scores)
    pure = isinstance(claim, PureDP)
    counted = (not known and cuts is not None) if pure else (not known or study.one_sided)
    number, own = study.examples, None
    if counted or (cuts is None and isinstance(claim, ApproxDP)):
        number = study.planned(study.examples, study.level)
        cuts = Fixed(number)
    rows, signs = study.guessed(ranks, number)

    def proved(correct: int) -> float:
        """Return what correct guesses prove, all m examples counting, not m/2 of one-sided ones.

        The proof of m/2 needs coins that are fair given the features: where P(S = 1 | X) = .7 a
        guess is right with .7 although the model says nothing, above the ½ f̄ ≤ ½ that m/2 allows.
        """
        return claim.lower_bound(correct, number, study.examples, study.level)

    if counted:
        guesses, correct = number, int(study.right(rows, signs).sum())
        total, theorem = proved(correct), _MEMBERS
    else:
        own = study.as_coins(ranks, study.member, cuts)
        guesses, correct, total, theorem = own.guesses, own.correct, own.bound, own.theorem
    # 2. Less what features alone may leak.
    shift = (
        float(odds.largest.max()) if isinstance(odds, OddsBox) else odds.found.core.largest_shift()
    )

    def left(total: float, shift: float = shift) -> float:
        return remaining_leakage(total, shift, claim)

    bound = left(total)
    reason = "" if bound else f"the shift alone may leak as much as {shift:.3g} of ε"
    proof = study.proof(
        bound,
        correct,
        guesses,
        rows=rows,
        signs=signs,
        theorem=_THEOREM + theorem,
        ceiling=lambda: left(proved(min(number, int(study.member.sum())))),
        reason=reason,
        bounds=lambda draws: np.array([left(total, float(np.abs(one).max())) for one in draws]),
    )
    if isinstance(odds, OddsBox):
        if own is None:
            return proof
        ceiling = Lazy(lambda: left(own.ceiling))
        return replace(
            proof, reason=own.reason or reason, own=replace(own, bound=bound, _ceiling=ceiling)
        )
    log_odds = odds.found.log_odds()
    return replace(
        proof,
        ceiling=lambda: by_composition(study.perfect()).bound,
        options={"largest_log_odds": shift},
        at_estimate=left(total, float(np.abs(log_odds).max())),
        coefficients=odds.found.coefficients,
    )
