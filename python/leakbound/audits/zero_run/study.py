"""What a correction works on, and what it proves: one study and one proof for each attack."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.odds import expit
from leakbound._base.records import Lazy, encode
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    Adversary,
    BoolArray,
    Correction,
    FloatArray,
    IntArray,
    JsonValue,
    PathName,
    TailBound,
)
from leakbound.audits.figures import POINTS, histogram, roc
from leakbound.audits.policies.reference import plan_guesses
from leakbound.audits.zero_run.learning import usable
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.request import ZeroRunRequest, as_coins
from leakbound.claims import Claim
from leakbound.cuts import CutPolicy, Fixed, OutsideIn
from leakbound.cuts.games import inverted_warnings, near_ceiling
from leakbound.cuts.policy import ALL_GUESSES, SUREST_GUESSES
from leakbound.errors import OptionError
from leakbound.results import AuditResult, Curve, ScoreAudit
from leakbound.results.one_run import valued
from leakbound.results.zero_run import Bootstrap
from leakbound.stats.distribution_shift import residual_scores, survival

# The most of all draws that must agree: by Markov's inequality the level of a draw is this part of
# the whole, `shares.DRAW`.
_AGREEING = 0.5
AT_A_MEMBER = (
    "Draws are tested at half of the level, and a share of all draws must reach the bound that is "
    "uniform up to a half by the seed (Ramdas and Manole 2023, on Markov's inequality)."
)
"""What a theorem adds where log-odds are a member of a confidence set."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Study:
    """Scores of one attack, membership and log-odds of the audited examples, and the level.

    The order of examples is random given membership and scores, so ties may be broken by it.
    `percentile` is the level of the percentile over replicates, if there are some, and
    `refusal` says why there is no confidence set, if there should be one.
    """

    request: ZeroRunRequest
    correction: Correction
    scores: FloatArray
    member: BoolArray
    odds: OddsBox | OddsSet
    level: float
    percentile: float = 0.0
    refusal: str = ""

    @property
    def claim(self) -> Claim:
        """The family of guarantees."""
        return self.request.claim

    @property
    def one_sided(self) -> bool:
        """Whether members alone are guessed."""
        return self.request.sides == "member"

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.scores.size

    @property
    def signs(self) -> IntArray:
        """Membership as +1 and -1."""
        return np.where(self.member, 1, -1)

    @property
    def adversary(self) -> Adversary:
        """What guesses are ranked by."""
        raw = self.correction == "composition" and isinstance(self.odds, OddsBox)
        return self.request.adversary or ("raw" if raw else "residual")

    @property
    def draw_level(self) -> float:
        """The level of one draw: over a set, where a share of all draws must agree, half of it."""
        return self.level if isinstance(self.odds, OddsBox) else shares.DRAW.of(self.level)

    @cached_property
    def draws_needed(self) -> float:
        """The share of all draws that must reach a bound over a set: uniform up to a half.

        It is one number for all members. A share of S draws rejects the true one at half of the
        level, so that the mean of S is at most that, and S is this large with probability 2S.
        """
        return _AGREEING * float(Purpose.DRAWS_NEEDED.rng(self.request.seed).random())

    @cached_property
    def uniforms(self) -> FloatArray:
        """Coins that decide what is kept, or which guesses stand, where log-odds are known."""
        return Purpose.MATCHING.rng(self.request.seed).random(self.examples)

    @cached_property
    def ties(self) -> IntArray:
        """What comes first among equal scores; known odds leave that to the examples' order."""
        if isinstance(self.odds, OddsBox):
            return -np.arange(self.examples)
        return Purpose.SET_TIES.rng(self.request.seed).permutation(self.examples)

    def right(self, rows: IntArray, signs: IntArray) -> BoolArray:
        """Return which guesses are correct."""
        return np.asarray(self.member[rows] == (signs > 0))

    def planned(self, examples: int, level: float) -> int:
        """Return the number of guesses about so many examples, fixed before labels."""
        cuts = self.request.cuts
        if cuts is None:
            cuts, _ = plan_guesses(examples, level, self.claim, self.request.sides)
        if not isinstance(cuts, Fixed):
            raise OptionError(
                f"cuts={type(cuts).__name__} is not for this correction: take Fixed, or None"
            )
        return min(cuts.guesses, examples)

    def proved(
        self, correct: int, guesses: int, examples: float, form: TailBound = "exact"
    ) -> float:
        """Return what so many correct guesses prove at the level of a draw, if coins are fair."""
        one_sided = self.one_sided and form == "exact"
        return self.claim.lower_bound(
            correct, guesses, examples, self.draw_level, form=form, one_sided=one_sided
        )

    def as_coins(
        self, scores: FloatArray, member: BoolArray, cuts: CutPolicy | None
    ) -> AuditResult:
        """Audit some of the examples as if every membership had been a fair coin."""
        confidence = float(1 - Decimal(repr(self.level)))
        return as_coins(scores, member, self.request, confidence=confidence, cuts=cuts)

    def ranked(self, values: FloatArray) -> FloatArray:
        """Return distinct ranks of all examples."""
        return distinct_ranks(values, self.ties)

    def perfect(self) -> "Study":
        """Return the study of an attack that is always right, over a set."""
        return replace(self, scores=usable(np.where(self.member, 1.0, -1.0)))

    def guessed(self, values: FloatArray, guesses: int) -> tuple[IntArray, IntArray]:
        """Guess the top of a ranking members and the bottom not: rows, and +1 or -1."""
        order = np.argsort(-values, kind="stable")
        if self.one_sided:
            return order[:guesses], np.ones(guesses, dtype=np.int64)
        top = (guesses + 1) // 2
        rows, signs = np.empty(guesses, dtype=np.int64), np.ones(guesses, dtype=np.int64)
        rows[::2], rows[1::2] = order[:top], order[::-1][: guesses - top]
        signs[1::2] = -1
        return rows, signs

    def proof(self, bound: float, correct: int, guesses: int, **more: Any) -> "ShiftProof":
        """Return what is proved, with the reason where that is nothing."""
        reason = ""
        if not bound > 0:
            reason = f"shift and chance explain {correct} correct guesses of {guesses}"
            if guesses == 0:
                reason = (
                    "no tested threshold has more correct guesses than shift and chance explain"
                )
            elif isinstance(self.odds, OddsSet):
                reason += " under some log-odds that are compatible with the labels"
        size = self.examples
        fields: dict[str, Any] = {"reason": reason, "kept": size, "m_eff": float(size)} | more
        return ShiftProof(study=self, bound=bound, guesses=guesses, correct=correct, **fields)

    # --- known log-odds

    def ranked_by(self, box: OddsBox) -> FloatArray:
        """Return what the adversary ranks by: a function of scores and propensities alone."""
        if self.adversary == "raw":
            return self.scores
        if self.adversary == "residual":
            return residual_scores(self.scores, box.estimate)
        return self.weight(box) * (self.scores - np.median(self.scores))

    def weight(self, box: OddsBox) -> FloatArray:
        """Return the share of guesses that tampering leaves, whichever way they go."""
        excess = np.abs(box.estimate)
        paper = self.request.variant == "paper"
        return np.exp(-excess) if paper else survival(excess, np.zeros(1))

    # --- a confidence set

    def balanced(
        self,
        odds: OddsSet,
        weights: FloatArray,
        guesses: int,
        *,
        odd: FloatArray | None = None,
        counts: FloatArray | None = None,
    ) -> FloatArray:
        """Return scores less a linear function of features, such that guesses tell little of them.

        So what guesses are right hardly depends on which member of the set is the true one.
        """
        found, nothing = odds.found, np.empty(0)
        return _core.balanced_scores(
            self.scores,
            found.features,
            weights,
            nothing if odd is None else odd,
            nothing if counts is None else counts,
            guesses=float(guesses),
            labels=(found.audited + found.reference) / self.examples,
            one_sided=self.one_sided,
        )

    def matched(self, odds: OddsSet, guesses: int) -> FloatArray:
        """Return ranks balanced for guesses that matching, or tampering, leaves alone."""
        kept = 2 * expit(-np.abs(odds.guide))
        return self.ranked(self.balanced(odds, kept / 4, guesses, counts=kept))


@dataclass(frozen=True, eq=False, kw_only=True)
class ShiftProof:
    """What one attack proves with shift taken out.

    `rows` and `signs` are the guesses looked at, most confident first, of which `correct` of
    `guesses` count; `bounds` gives what is proved under rows of log-odds, `own` the audit of one
    run that a correction comes down to. Over a confidence set, `coefficients` are those of the
    least favourable member, and `at_estimate` is what the likeliest one would have shown. If
    `scanned`, all numbers of guesses were tested; `searched` says which, in a sentence.
    """

    study: Study
    bound: float
    guesses: int
    correct: int
    reason: str
    theorem: str
    path: PathName | None = None
    kept: int
    m_eff: float
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    signs: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    ceiling: Callable[[], float] | None = None
    scanned: bool = False
    searched: str = ""
    options: dict[str, JsonValue] = field(default_factory=dict)
    own: ScoreAudit | None = None
    bounds: Callable[[FloatArray], FloatArray] | None = None
    bootstrap: Bootstrap | None = None
    at_estimate: float = 0.0
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))

    def with_options(self, more: dict[str, JsonValue]) -> "ShiftProof":
        """Return the same with more options to report."""
        return replace(self, options=self.options | more)

    def audit(self, scores: FloatArray) -> ScoreAudit:
        """Return what guesses prove, in the words of every other audit; what costs time is lazy."""
        if self.own is not None:
            return self.own
        member = self.study.member
        ranking = _core.Ranking(scores, member)
        most = self.ceiling
        reached = Lazy(lambda: self.bound if most is None else max(self.bound, most()))
        cuts = OutsideIn() if "outside_in" in self.options else Fixed(max(1, self.guesses))
        right = self.study.right(self.rows, self.signs)
        near = ""
        # Where the number of guesses is free, a tenth of them proves far less than all.
        size = int(member.sum()) if self.study.one_sided else member.size
        if not self.reason and not (self.scanned and 10 * self.guesses < size):
            claim, sides = self.study.claim, self.study.request.sides
            near = near_ceiling(
                self.bound,
                self.guesses,
                self.correct,
                lambda: reached.value,
                valued=lambda value: valued(claim, value, sides),
            )
        return ScoreAudit(
            bound=self.bound,
            reason=self.reason,
            m=scores.size,
            members=ranking.members,
            guesses=self.guesses,
            correct=self.correct,
            path=self.path or ("member" if self.study.one_sided else "interleaved"),
            auc=ranking.auc,
            guessed=SUREST_GUESSES if self.guesses < self.kept else ALL_GUESSES,
            searched=self._searched(cuts),
            options={"cuts": encode(cuts)},
            warnings=inverted_warnings(ranking) + ((near,) if near else ()),
            _ceiling=reached,
            _curve=Lazy(lambda: _curve(right, self.guesses, self.bound, scores.size)),
            _roc=Lazy(lambda: roc(ranking)),
            _histogram=Lazy(lambda: histogram(scores, member)),
        )

    def _searched(self, cuts: Fixed | OutsideIn) -> str:
        """Return how many thresholds were tested; "" where none could be."""
        if not self.guesses and not self.scanned:
            return ""
        return self.searched or cuts.searched(self.kept, self.study.request.sides)


def distinct_ranks(values: FloatArray, ties: IntArray) -> FloatArray:
    """Return ranks from 0 upwards, those of equal values by what else is given."""
    ranks = np.empty(values.size)
    ranks[np.lexsort((ties, values))] = np.arange(values.size)
    return ranks


def least_fixed(refuted: Callable[[float], float]) -> float:
    """Return inf{ε : not refuted}, given what the count for an ε refutes, which rises with ε.

    From 0 upwards, ε becomes the largest that its own count refutes, until it stays.
    """
    epsilon = 0.0
    while (further := refuted(epsilon)) > epsilon:
        epsilon = further
    return epsilon


def _curve(right: BoolArray, chosen: int, bound: float, examples: int) -> Curve:
    sampled, _ = _core.Path.from_successes(right).sample(POINTS - 1)
    guesses = np.union1d(sampled, [chosen] if chosen else []).astype(np.int64)
    correct = np.cumsum(right)[guesses - 1].astype(np.int64)
    return Curve(
        guesses=guesses,
        correct=correct,
        precision=correct / guesses,
        recall=correct / max(1, examples),
        bound=np.where(guesses == chosen, bound, np.nan),
    )
