"""One audit over a confidence set of log-odds: scores, guesses, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.odds import expit
from leakbound.audits.policies.reference import plan_guesses
from leakbound.propensity.confidence import ConfidenceSet, balanced

if TYPE_CHECKING:
    from leakbound._base.types import (
        BoolArray,
        Correction,
        FloatArray,
        IntArray,
        JsonValue,
        SidesChoice,
    )
    from leakbound.claims import Claim

_TAIL = 4.0
"""Robust standard deviations beyond which a score counts by its logarithm in fits."""
_HUGE = 1e150
"""Scores beyond this in absolute value are scaled down first."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastFavourable:
    """What is proved whichever log-odds in a confidence set are the true ones.

    Attributes
    ----------
    bound : float
        On the claim's parameter.
    reason : str
        Why nothing is proved, if nothing is.
    at_estimate : float
        The same at the log-odds of largest likelihood: what a test at them alone would prove.
    correction : {"match", "poisson_binomial", "tamper", "composition"}
        How shift was taken out.
    level : float
        Probability of error of the test, the confidence set's not included.
    guesses, correct : int
        Guesses made, and right ones, that proved it: of matching and tampering, in the middle draw.
    kept : int
        Examples that matching keeps, the most that were reckoned with; else all.
    coefficients : ndarray of float64, shape (k,)
        The least favourable member of the set that was found; empty where there is no set.
    log_odds : ndarray of float64, shape (m,)
        Of the audited examples, there.
    rows, signs : ndarray of int64, shape (n,)
        All guesses that were looked at, most confident first: rows, and +1 for "member" or -1.
    options : dict
        What else was decided, for a result's options.
    one_sided : bool
        Whether members alone were guessed.
    """

    bound: float
    reason: str
    at_estimate: float
    correction: Correction
    level: float
    guesses: int
    correct: int
    kept: int
    coefficients: FloatArray
    log_odds: FloatArray
    rows: IntArray
    signs: IntArray
    options: dict[str, JsonValue] = field(default_factory=dict)
    one_sided: bool = False

    @classmethod
    def none(
        cls,
        claim: Claim,
        reason: str,
        correction: Correction,
        level: float,
        examples: int,
        sides: SidesChoice,
    ) -> LeastFavourable:
        """Return what is proved where there is no confidence set: nothing, for a reason."""
        empty = np.empty(0)
        return cls(
            bound=claim.nothing,
            reason=reason,
            at_estimate=claim.nothing,
            correction=correction,
            level=level,
            guesses=0,
            correct=0,
            kept=examples,
            coefficients=empty,
            log_odds=empty,
            rows=empty.astype(np.int64),
            signs=empty.astype(np.int64),
            one_sided=sides == "member",
        )


@dataclass(frozen=True, kw_only=True)
class SetStudy:
    """Scores, the set, and how guesses are made and tested."""

    scores: FloatArray
    found: ConfidenceSet
    claim: Claim
    level: float
    sides: SidesChoice
    guesses: int | None
    planned: FloatArray
    ties: IntArray
    uniforms: FloatArray
    seed: int

    @property
    def one_sided(self) -> bool:
        """Whether members alone are guessed."""
        return self.sides == "member"

    @property
    def labels(self) -> int:
        """How many labels the set rests on."""
        return self.found.audited + self.found.reference

    def plan(self, examples: int, level: float) -> int:
        """Return how many guesses to make about so many examples, before any label is seen."""
        if self.guesses is not None:
            return min(self.guesses, examples)
        planned, _ = plan_guesses(examples, level, self.claim, self.sides)
        return min(planned.guesses, examples)

    def ranked(self, values: FloatArray) -> FloatArray:
        """Return distinct ranks, ties broken at random."""
        ranks = np.empty(values.size)
        ranks[np.lexsort((self.ties, values))] = np.arange(values.size)
        return ranks

    def matched(self, guesses: int) -> FloatArray:
        """Return ranks balanced for guesses that matching, or tampering, leaves alone."""
        kept = 2 * expit(-np.abs(self.planned))
        return self.ranked(
            balanced(
                self.scores,
                self.found.features,
                kept / 4,
                counts=kept,
                guesses=guesses,
                labels=self.labels,
                one_sided=self.one_sided,
            )
        )

    def right(self, rows: IntArray, signs: IntArray) -> BoolArray:
        """Return which guesses are correct."""
        return np.asarray(self.found.member[rows] == (signs > 0))

    def fair(self, correct: int, guesses: int, examples: int) -> float:
        """Return what so many correct guesses among fair examples prove, at half of the level."""
        return self.claim.lower_bound(
            correct, guesses, examples, self.level / 2, one_sided=self.one_sided
        )


def usable(scores: FloatArray) -> FloatArray:
    """Return finite scores in robust units, in the same order, with tails that grow slowly."""
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return np.sign(scores)
    largest = float(np.abs(finite).max())
    if largest > _HUGE:  # differences of such scores are no numbers
        return usable(scores / largest)
    centre = float(np.median(finite))
    spread = 1.4826 * float(np.median(np.abs(finite - centre))) or float(finite.std()) or 1.0
    low, high = finite.min() - spread, finite.max() + spread
    values = (np.clip(scores, low, high) - centre) / spread
    beyond = np.maximum(np.abs(values) - _TAIL, 0.0)
    grown: FloatArray = np.sign(values) * (np.minimum(np.abs(values), _TAIL) + np.log1p(beyond))
    return grown


def explained(correct: int, guesses: int) -> str:
    """Return why so many correct guesses prove nothing."""
    return (
        f"shift and chance explain {correct} correct guesses of {guesses} under some log-odds that "
        "the labels do not rule out"
    )
