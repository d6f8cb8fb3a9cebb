"""What a Zero-Run audit works on: scores, membership, shift and options, checked and in order."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.formatting import down
from leakbound._base.records import Lazy
from leakbound.audits.coins import as_if_fair
from leakbound.audits.evidence import POINTS, histogram, roc
from leakbound.audits.policies.reference import plan_guesses
from leakbound.audits.request import Request
from leakbound.claims import PureDP
from leakbound.cuts import CutPolicy, Fixed
from leakbound.cuts.base import inverted_warnings, tie_warnings
from leakbound.errors import IncompatibleOptionsError
from leakbound.results import Curve, ScoreAudit
from leakbound.stats.distribution_shift import residual_scores, survival

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound._base.types import (
        Adversary,
        BoolArray,
        FloatArray,
        IntArray,
        JsonValue,
        PathName,
        SidesChoice,
        TailBound,
        ZeroRunVariant,
    )
    from leakbound.audits.zero_run.propensities import Shift
    from leakbound.claims import Claim
    from leakbound.results import AuditResult

_NEAR = 0.9
"""Share of correct guesses, and of the ceiling, from which more examples may show more."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """The examples of a Zero-Run audit, and how they are audited.

    Their order is random given membership and scores, so ties may be broken by it.
    """

    scores: FloatArray
    member: BoolArray
    shift: Shift
    uniforms: FloatArray
    claim: Claim
    cuts: CutPolicy | None
    sides: SidesChoice
    adversary: Adversary
    variant: ZeroRunVariant
    level: float
    seed: int

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.scores.size

    @property
    def direction(self) -> int:
        """1 where larger values of the claim's parameter are the less private, else -1."""
        return -1 if self.claim.order == "decreasing" else 1

    @property
    def nothing(self) -> float:
        """The bound that proves nothing."""
        return self.claim.nothing

    @property
    def signs(self) -> IntArray:
        """Membership as +1 and -1."""
        return np.where(self.member, 1, -1)

    def warnings(self) -> tuple[str, ...]:
        """Say what looks wrong with scores, whatever the correction."""
        return tie_warnings(_core.Ranking(self.scores, self.member))

    def without_shift(
        self, scores: FloatArray, member: BoolArray, cuts: CutPolicy | None
    ) -> AuditResult:
        """Audit some of the examples as if every membership had been a fair coin."""
        return as_if_fair(
            scores,
            member,
            Request(
                claim=self.claim,
                confidence=confidence_of(self.level),
                cuts=cuts,
                sides=self.sides,
                seed=self.seed,
            ),
        )

    @property
    def chooses_inside(self) -> bool:
        """Whether matching chooses the number of guesses by labels: one audit, tightly proved.

        Replicates, which prove nothing, are compared at one number.
        """
        chosen = self.cuts is None and not isinstance(self.claim, PureDP)
        return chosen and self.shift.draws is None

    def planned(self, examples: int) -> int:
        """Return the number of guesses of an audit of so many examples, fixed before labels."""
        if self.cuts is None:
            return plan_guesses(examples, self.level, self.claim, self.sides)[0].guesses
        if not isinstance(self.cuts, Fixed):
            message = (
                f"cuts={type(self.cuts).__name__} is not for this correction: take Fixed, or None "
                "for the planned number"
            )
            raise IncompatibleOptionsError(message)
        self.cuts.check(examples)
        return self.cuts.guesses

    def ranked_by(self) -> FloatArray:
        """Return what the adversary ranks by: a function of scores and propensities alone."""
        if self.adversary == "raw":
            return self.scores
        if self.adversary == "residual":
            return residual_scores(self.scores, self.shift.log_odds)
        return self.weight() * (self.scores - np.median(self.scores))

    def weight(self) -> FloatArray:
        """Return the share of guesses that tampering leaves, whichever way they go."""
        excess = np.abs(self.shift.log_odds)
        return np.exp(-excess) if self.variant == "paper" else survival(excess, np.zeros(1))

    def bound(
        self,
        correct: int,
        guesses: int,
        examples: float,
        *,
        form: TailBound = "exact",
        halved: bool = True,
    ) -> float:
        """Return the bound that so many correct guesses prove where membership is fair.

        `form` is the bound on them for (ε, δ)-DP; `halved`, whether half of the examples will do
        where all guesses are of "member".
        """
        return self.claim.lower_bound(
            correct,
            guesses,
            examples,
            self.level,
            form=form,
            one_sided=self.sides == "member" and form == "exact" and halved,
        )


@dataclass(frozen=True, kw_only=True)
class Corrected:
    """What a correction makes of a study."""

    audit: ScoreAudit
    kept: int
    m_eff: float
    theorem: str
    replicates: Callable[[FloatArray], FloatArray]


def confidence_of(level: float) -> float:
    """Return one minus a level, exact in decimals."""
    return float(1 - Decimal(repr(level)))


def two_sided(values: FloatArray, guesses: int, sides: SidesChoice) -> tuple[IntArray, IntArray]:
    """Guess the top of a ranking members and the bottom not."""
    order = np.argsort(-values, kind="stable")
    top = guesses if sides == "member" else (guesses + 1) // 2
    rows = np.empty(guesses, dtype=np.int64)
    signs = np.ones(guesses, dtype=np.int64)
    if sides == "member":
        return order[:guesses], signs
    rows[::2], rows[1::2] = order[:top], order[::-1][: guesses - top]
    signs[1::2] = -1
    return rows, signs


def summary(
    scores: FloatArray,
    member: BoolArray,
    *,
    bound: float,
    cut: tuple[int, int],
    path: PathName,
    successes: BoolArray,
    ceiling: Callable[[], float],
    options: dict[str, JsonValue],
) -> ScoreAudit:
    """Return what guesses prove, in the words of every other audit; what costs time is lazy."""
    ranking = _core.Ranking(scores, member)
    guesses, correct = cut
    reached = Lazy(lambda: max(bound, ceiling()))
    return ScoreAudit(
        bound=bound,
        reason="" if bound else _reason(guesses, correct),
        m=scores.size,
        members=ranking.members,
        guesses=guesses,
        correct=correct,
        path=path,
        auc=ranking.auc,
        options=options,
        warnings=inverted_warnings(ranking) + _near_ceiling(bound, cut, reached),
        _ceiling=reached,
        _curve=Lazy(lambda: _curve(successes, guesses, bound, scores.size)),
        _roc=Lazy(lambda: roc(ranking)),
        _histogram=Lazy(lambda: histogram(scores, member)),
    )


def _reason(guesses: int, correct: int) -> str:
    if guesses == 0:
        return "no tested cut has enough correct guesses to count against shift and chance"
    return f"shift and chance explain {correct} correct guesses of {guesses}"


def _near_ceiling(bound: float, cut: tuple[int, int], ceiling: Lazy[float]) -> tuple[str, ...]:
    guesses, correct = cut
    if correct <= _NEAR * guesses or bound < _NEAR * ceiling.value:
        return ()
    return (
        (
            f"the bound is close to {down(ceiling.value)}, all that a perfect attack would have "
            "reached: more examples may show more"
        ),
    )


def _curve(successes: BoolArray, chosen: int, bound: float, examples: int) -> Curve:
    sampled, _ = _core.Path.from_successes(successes).sample(POINTS - 1)
    guesses = np.union1d(sampled, [chosen] if chosen else [])
    guesses = guesses.astype(np.int64)
    correct = np.cumsum(successes)[guesses - 1].astype(np.int64)
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, examples),
        bound=np.where(guesses == chosen, bound, np.nan),
    )
