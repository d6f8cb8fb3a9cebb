"""Zero-Run by tampering: guesses are dropped so that shift alone makes none too likely right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from leakbound.audits.zero_run.study import Corrected, Study, summary, two_sided
from leakbound.claims import ApproxDP, PureDP
from leakbound.stats.distribution_shift import survival

if TYPE_CHECKING:
    from leakbound._base.types import BoolArray, FloatArray, IntArray, TailBound

_FINEST = 200
"""Parts of the examples to which Σ 2w is rounded up between replicates: a bound falls with it."""

_PURE = (
    "Given the trained model and the coins of the guesses before, a guess is right with "
    "log-odds of at most ε + Tλ under ε-DP, and survives tampering so rarely that it is right and "
    "stands with log-odds of at most ε (Cebere, Even, Bleistein and Bellet, Theorem C.1, "
    "with the sign kept). The bound is the least ε that the guesses tampered for it do not refute. "
)
_APPROX = (
    "Guesses that survive tampering obey the inequality of an audit of (ε, δ)-DP in one run, "
    "given the features, with δ Σ 2 min(π, 1 - π) for what failures add up to: the largest "
    "probability of so many correct guesses that it allows, in closed form. The bound is the least "
    "ε that the guesses tampered for it do not refute. "
)
_PUBLISHED = (
    "Tampered guesses under (ε, δ)-DP: Theorem 5.1 (1) of Cebere, Even, Bleistein and Bellet, "
    "which takes rare failures to be independent of the coins. The bound is the least ε that the "
    "guesses tampered for it do not refute. "
)
_FAMILY = (
    "Guesses that survive tampering obey the inequality of an audit of f-DP in one run, given the "
    "features (Cebere, Even, Bleistein and Bellet, Theorem 5.1 (2); the directional "
    "probabilities by the same proof with a sharper first lemma). "
)


def correct_by_tampering(study: Study) -> Corrected:
    """Audit guesses of which some are dropped at random, those likely right by shift above all."""
    number = study.planned(study.examples)
    tampering = _Tampering(study, number, *_chosen(study, number))
    shift = study.shift
    bound = float(tampering.bounds(tampering.toward(), tampering.m_eff(shift.log_odds))[0])
    successes, correct = tampering.outcome(bound)
    return Corrected(
        audit=summary(
            study.scores,
            study.member,
            bound=bound,
            cut=(number, correct),
            path="member" if study.sides == "member" else "interleaved",
            successes=successes,
            ceiling=tampering.ceiling,
            options={"cuts": {"type": "Fixed", "guesses": number}},
        ),
        kept=study.examples,
        m_eff=tampering.m_eff(shift.log_odds),
        theorem=_theorem(study),
        replicates=tampering.replicates,
    )


def _theorem(study: Study) -> str:
    if isinstance(study.claim, PureDP):
        return _PURE
    if not isinstance(study.claim, ApproxDP):
        return _FAMILY
    return _PUBLISHED if study.variant == "paper" else _APPROX


class _Tampering:
    """A fixed number of guesses, and how many of them survive and are right."""

    def __init__(self, study: Study, number: int, rows: IntArray, guesses: IntArray) -> None:
        self._study = study
        self._number = number
        self._right: BoolArray = guesses == study.signs[rows]
        self._rows, self._guesses = rows[self._right], guesses[self._right]
        self._uniforms = study.uniforms[self._rows]
        self._signed = study.variant == "directional"
        self._family = not isinstance(study.claim, PureDP | ApproxDP)
        self._paper = self._family and study.variant == "paper"
        # where |λ| stands for Tλ, m stays: that is safe if |λ| is too large, Σ 2w would not be
        self._failing = isinstance(study.claim, ApproxDP) and self._signed

    def toward(self) -> FloatArray:
        """Return Tλ (or |λ|) of the correct guesses at the point estimate, as one row."""
        shift = self._study.shift
        if not self._signed:
            return shift.largest[None, self._rows]
        signs = np.zeros(self._study.examples)
        signs[self._rows] = self._guesses
        return shift.against(signs)[None, self._rows]

    def bounds(self, toward: FloatArray, m_eff: float) -> FloatArray:
        """Return the bound for each row of Tλ (or |λ|) of the correct guesses."""
        if not self._family:
            return self._least_fixed(toward, m_eff)
        counts = self._counts(self._survival(toward))
        return np.array([self._study.bound(int(c), self._number, m_eff) for c in counts])

    def replicates(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds of all examples."""
        here = draws[:, self._rows]
        toward = here * self._guesses if self._signed else np.abs(here)
        if not (self._paper or self._failing):
            return self.bounds(toward, self._study.examples)
        # rounded up, so that replicates share bounds
        step = max(1, self._study.examples // _FINEST) if self._failing else 1
        sizes = [-(-self.m_eff(odds) // step) * step for odds in draws]
        rows = zip(toward, sizes, strict=True)
        return np.array([self.bounds(one[None, :], m_eff)[0] for one, m_eff in rows])

    def outcome(self, bound: float) -> tuple[BoolArray, int]:
        """Return which guesses survive and are right where the bound was found, and how many."""
        survived = self._survival(self.toward(), np.array([0.0 if self._family else bound]))
        successes = np.zeros(self._number, dtype=np.bool_)
        successes[np.flatnonzero(self._right)] = self._uniforms < survived[0]
        return successes, int(self._counts(survived)[0])

    def m_eff(self, log_odds: FloatArray) -> float:
        """Return Σ 2 min(π, 1 - π) for (ε, δ)-DP and the paper's tampering of f-DP, else m."""
        if not (self._paper or self._failing):
            return float(self._study.examples)
        shift, least = self._study.shift, np.abs(log_odds)
        if shift.limited:  # the limit nearest to a fair coin is the safe one here
            within = (shift.low <= 0) & (shift.high >= 0)
            least = np.where(within, 0.0, np.minimum(np.abs(shift.low), np.abs(shift.high)))
        # rounded up to a whole number, so that replicates share bounds
        return float(math.ceil((2 / (1 + np.exp(least))).sum()))

    def ceiling(self) -> float:
        """Return the bound of an attack that guesses right where tampering drops least."""
        study = self._study
        signs = study.signs if study.sides == "both" else study.member.astype(np.int64)
        toward = study.shift.against(signs) if self._signed else study.shift.largest
        easiest = np.argsort(np.maximum(toward, 0.0), kind="stable")
        rows = easiest[signs[easiest] != 0][: self._number]
        perfect = _Tampering(study, self._number, rows, signs[rows])
        return float(perfect.bounds(perfect.toward(), self.m_eff(study.shift.log_odds))[0])

    def _survival(self, toward: FloatArray, epsilon: FloatArray | None = None) -> FloatArray:
        """Return how likely each correct guess survives, each row with an ε of its own."""
        excess = np.maximum(toward, 0.0)
        if self._paper:
            return np.exp(-excess)
        claimed = np.zeros(toward.shape[0]) if epsilon is None else epsilon
        return survival(excess, claimed[:, None])

    def _least_fixed(self, toward: FloatArray, m_eff: float) -> FloatArray:
        """Return inf{ε : not refuted}: the count for ε rises with ε, and refutes ε below a limit.

        From 0 upwards, ε becomes the largest that its own count refutes, until it stays.
        """
        limits = self._limits(m_eff)
        epsilon = np.zeros(toward.shape[0])
        active = np.arange(toward.shape[0])
        while active.size:
            levels = epsilon[active]
            further = limits[self._counts(self._survival(toward[active], levels))]
            active, further = active[further > levels], further[further > levels]
            epsilon[active] = further
        return epsilon

    def _limits(self, m_eff: float) -> FloatArray:
        """Return the largest ε that each number of surviving correct guesses refutes."""
        study = self._study
        form: TailBound = "zero_run" if study.variant == "paper" else "exact"
        right = range(self._rows.size + 1)
        bounds = [study.bound(c, self._number, m_eff, form=form) for c in right]
        # more correct guesses refute no less
        limits: FloatArray = np.maximum.accumulate(bounds)
        return limits

    def _counts(self, survival: FloatArray) -> IntArray:
        """Return how many correct guesses survive in each row."""
        return np.asarray(np.count_nonzero(self._uniforms < survival, axis=1))


def _chosen(study: Study, number: int) -> tuple[IntArray, IntArray]:
    """Return the rows guessed, most confident first, and the guesses."""
    values = study.ranked_by()
    if study.adversary == "residual":
        values = study.weight() * values
    return two_sided(values, number, study.sides)
