"""Log-odds of membership given features alone: known ones, or a confidence set.

They are known as values, limits, replicates or a fitted model; `learning` finds the set.

Known log-odds are a set with one member, limits a set that is a box: a bound over either counts the
worst log-odds of each guess.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.checks import check_length, numbers, vector
from leakbound._base.features import FeatureTable, placed_features
from leakbound._base.messages import Message
from leakbound._base.numerics import expit, logit
from leakbound._base.reading import array_of
from leakbound._base.streams import Purpose
from leakbound._base.types import (
    AnyArray,
    ArrayInput,
    BoolArray,
    FloatArray,
    IntArray,
    JsonObject,
    Kind,
    Status,
    Strings,
)
from leakbound.audits.member_count import MemberCount
from leakbound.audits.road import AlignedScores, Grounds, Request
from leakbound.audits.zero_run.game import Guesses, ObservedGame, blind_guesses
from leakbound.audits.zero_run.options import (
    ZeroRunOptions,
    audited_rows_of,
    features_for_fit,
    no_overlap,
)
from leakbound.errors import InputError, OptionError
from leakbound.propensity import (
    ConfidenceSet,
    Falsification,
    FormTest,
    Overlap,
    PropensityFit,
    falsify,
)
from leakbound.propensity.fit import overlap
from leakbound.results import Assumption

REPLICATES = 600
"""Refits of a propensity model, as in the paper."""
# Log-odds beyond which a guess could never count; a double rounds the probability to 0 or 1.
_LARGEST_LOG_ODDS = 300.0
# The most of all draws that must agree: by Markov's inequality the level of a draw is this part of
# the whole, `shares.DRAW`.
_LARGEST_SHARE_NEEDED = 0.5
# Standard errors at which two shares of members are plainly not the same.
_MISMATCH_ERRORS = 5.0
_NONE = np.empty(0)


def keep_probability(log_odds: FloatArray) -> FloatArray:
    """Return how likely matching keeps examples, min(1, (1 - π)/π) averaged over membership."""
    return 2 * expit(-np.abs(log_odds))


@dataclass(frozen=True, kw_only=True, eq=False)
class Odds(Grounds, ABC):
    """What is known of the log-odds of membership given features, and the examples audited by it.

    `rows` are these examples, and `scores` are those of each attack that guesses about them are
    ranked by. `share` of the probability of error is left by what is not known of the log-odds.
    `limited` says whether they are known as limits, and `refusal` why there is no confidence set,
    if there should be one.
    """

    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    scores: dict[str, FloatArray] = field(default_factory=dict)
    abstained: int = 0
    share: float = 1.0
    limited: bool = False
    refuted: bool = False
    refusal: str = ""
    falsification: Falsification | None = None

    @property
    @abstractmethod
    def likeliest_log_odds(self) -> FloatArray:
        """The log-odds that are thought likeliest."""

    def level_of_test(self, level: float) -> float:
        """Return the part of a level that a test has at any one of the log-odds."""
        return level

    def level_of_draw(self, level: float) -> float:
        """Return the part of a test's level that one draw has of what is kept, or stands."""
        return level

    @abstractmethod
    def tie_order(self, game: ObservedGame) -> IntArray:
        """Return what comes first among equal scores."""

    @abstractmethod
    def overlap(self, member: BoolArray) -> Overlap:
        """Return how far members and non-members can be compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OddsBox(Odds):
    """Log-odds of examples: an estimate, limits of each, and replicates of all if there are any.

    `everywhere` is the estimate of all examples, those that are not audited among them. `table` has
    the features of all examples, where log-odds are those of a model: of rows in which it lacks
    something nothing is known.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    draws: FloatArray | None = None
    everywhere: FloatArray = field(default_factory=lambda: np.empty(0))
    table: FeatureTable | None = None

    @classmethod
    def of_log_odds(cls, log_odds: FloatArray, draws: FloatArray | None = None) -> "OddsBox":
        """Return the box of a single member."""
        return cls(estimate=log_odds, low=log_odds, high=log_odds, draws=draws)

    def of_rows(self, rows: IntArray) -> "OddsBox":
        """Return the box of the examples that are audited."""
        draws = None
        if self.draws is not None:
            draws = np.ascontiguousarray(self.draws[:, rows])
        return replace(
            self,
            estimate=self.estimate[rows],
            low=self.low[rows],
            high=self.high[rows],
            draws=draws,
            everywhere=self.estimate,
            rows=rows,
        )

    @property
    def left_out(self) -> BoolArray | None:
        """Examples of which the features of a model do not tell all."""
        if self.table is None:
            return None
        return self.table.unmarked

    @property
    def likeliest_log_odds(self) -> FloatArray:
        """See `Odds.likeliest_log_odds`."""
        return self.estimate

    @cached_property
    def largest_log_odds(self) -> FloatArray:
        """The largest |λ| that each example may have."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def toward_guesses(self, guesses: Guesses) -> FloatArray:
        """Return Tλ at the limit where guesses T = ±1 are likeliest right by shift alone."""
        toward_member = self.high[guesses.rows]
        toward_nonmember = -self.low[guesses.rows]
        guesses_member = guesses.signs > 0
        worst: FloatArray = np.where(guesses_member, toward_member, toward_nonmember)
        return worst

    def level_of_test(self, level: float) -> float:
        """See `Odds.level_of_test`: a percentile over replicates has the rest of the level."""
        if self.draws is None:
            return level
        return shares.AT_REPLICATE.of(level)

    def tie_order(self, game: ObservedGame) -> IntArray:
        """See `Odds.tie_order`: the order of the examples is random."""
        return -np.arange(game.examples)

    def overlap(self, member: BoolArray) -> Overlap:
        """See `Odds.overlap`: of all examples, if there are log-odds of all."""
        if self.refusal:
            return overlap(self.estimate, member[self.rows])
        if self.table is None:
            return overlap(self.everywhere, member)
        has_log_odds = self.table.told
        return overlap(self.everywhere[has_log_odds], member[has_log_odds])


@dataclass(frozen=True, kw_only=True, eq=False)
class OddsSet(Odds):
    """A confidence set, and log-odds to plan with in which no audited label had a part, or 0.

    A share of all draws must reach a bound at each of its members: it is uniform up to a half by
    the seed. A share of S draws rejects the true member at half of the level, so that the mean of S
    is at most that, and S is as large as the share needed with probability 2S (Markov's inequality;
    Ramdas and Manole 2023).
    """

    found: ConfidenceSet
    guide: FloatArray
    draws_needed: float
    columns: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    tests: tuple[FormTest, ...] = ()

    @staticmethod
    def draws_needed_at(seed: int) -> float:
        """Return the share of all draws that must reach a bound."""
        return _LARGEST_SHARE_NEEDED * float(Purpose.DRAWS_NEEDED.rng(seed).random())

    @property
    def likeliest_log_odds(self) -> FloatArray:
        """See `Odds.likeliest_log_odds`."""
        return self.found.log_odds()

    @property
    def keep_probabilities(self) -> FloatArray:
        """How likely matching keeps each example, or tampering a guess about it, by the guide."""
        return keep_probability(self.guide)

    def level_of_draw(self, level: float) -> float:
        """See `Odds.level_of_draw`: half of it, as a share of all draws must agree."""
        return shares.DRAW.of(level)

    def tie_order(self, game: ObservedGame) -> IntArray:
        """See `Odds.tie_order`: a random order."""
        return Purpose.SET_TIES.rng(game.seed).permutation(game.examples)

    def overlap(self, member: BoolArray) -> Overlap:
        """See `Odds.overlap`: of the audited examples."""
        return overlap(self.likeliest_log_odds, member[self.rows])

    def balanced_scores(
        self,
        game: ObservedGame,
        weights: FloatArray,
        number: int,
        *,
        odd: FloatArray = _NONE,
        counts: FloatArray = _NONE,
    ) -> FloatArray:
        """Return scores less a linear function of features, such that guesses tell little of them.

        So what guesses are right hardly depends on which member of the set is the true one.
        """
        found = self.found
        labels = found.audited + found.reference
        return _core.balanced_scores(
            game.values,
            found.features,
            weights,
            odd,
            counts,
            guesses=float(number),
            labels=labels / game.examples,
            one_sided=game.one_sided,
        )

    def balanced_rows(self, game: ObservedGame, number: int) -> IntArray:
        """Return rows by falling score, balanced for what matching or tampering leaves alone."""
        keep_probabilities = self.keep_probabilities
        # A fair coin among the kept has variance 1/4
        balanced_scores = self.balanced_scores(
            game, keep_probabilities / 4, number, counts=keep_probabilities
        )
        return np.lexsort((self.tie_order(game), balanced_scores))[::-1]


def known_log_odds(
    examples: AlignedScores,
    propensity: Any,
    options: ZeroRunOptions,
    request: Request,
    table: FeatureTable | None = None,
) -> OddsBox:
    """Read propensities, choose what is audited, and try to refute them.

    `table` has the features that a fitted model needs, if they were read already.
    """
    member = examples.member
    # 1. Log-odds of all examples.
    box = _log_odds_of_examples(examples, propensity, options, request.seed, table)
    fitted = isinstance(propensity, PropensityFit)
    # 2. Those that are audited, and whether their number of members is one that log-odds allow.
    _refuse_certain_membership(box.largest_log_odds, options)
    rows = audited_rows_of(examples, box.largest_log_odds, options, request, box.left_out)
    has_log_odds = np.ones(member.size, dtype=np.bool_)
    notes: Strings = ()
    if box.table is not None:
        has_log_odds = box.table.told
        notes = box.table.warnings
    if fitted:
        notes += member_share_warnings(propensity, member[has_log_odds])
    allowed = has_log_odds & (box.largest_log_odds <= options.limit)
    count = MemberCount.of_propensities(member[allowed], box.low[allowed], box.high[allowed])
    learnt = fitted or box.draws is not None
    if not learnt:
        count.refuse()
    # 3. Whether features say more.
    falsification = None
    blind: JsonObject = {}
    if options.falsify and options.features is not None and not box.limited:
        features = placed_features(examples.order, options.features).rows
        falsification = _bets_against_propensities(
            box, features, member, has_log_odds, request.seed
        )
        blind = blind_guesses(features, member, request.seed)
    uncertainty = "given"
    kind: Kind = "conditional_lower_bound"
    if learnt:
        kind = "exploratory_lower_bound"
        uncertainty = "none"
        if box.draws is not None:
            uncertainty = "bootstrap"
    refuted = falsification is not None and falsification.refuted
    return replace(
        box.of_rows(rows),
        scores={name: scores[rows] for name, scores in examples.attacks.scores.items()},
        abstained=member.size - rows.size,
        kind=kind,
        refuted=count.impossible or refuted,
        falsification=falsification,
        assumptions=_propensity_assumptions(box, count, falsification, learnt=learnt),
        warnings=(*notes, *count.warnings(), *_propensity_warnings(falsification, learnt=learnt)),
        options={"uncertainty": uncertainty} | blind,
        inputs={"log_odds": box.estimate},
    )


def _bets_against_propensities(
    box: OddsBox,
    features: FloatArray,
    member: BoolArray,
    has_log_odds: BoolArray,
    seed: int,
) -> Falsification:
    """Let sceptics that see features bet against the estimate of the log-odds."""
    claimed_log_odds = box.estimate[has_log_odds]
    known_features = features[has_log_odds]
    return falsify(claimed_log_odds, known_features, member[has_log_odds], seed=seed)


def _log_odds_of_examples(
    examples: AlignedScores,
    propensity: object,
    options: ZeroRunOptions,
    seed: int,
    table: FeatureTable | None,
) -> OddsBox:
    """Read the log-odds of all examples, as values, limits, replicates or a fitted model."""
    order = examples.order
    size = examples.member.size
    if options.features is not None:
        order.rows_of(options.features, "features")  # whose ids, if any, come first
    if isinstance(propensity, PropensityFit):
        given = table
        if given is None:
            given = features_for_fit(examples, options, propensity)
        return _box_of_model(propensity, given, size, options, seed)
    if isinstance(propensity, tuple):
        limits = [order.placed(one, f"propensity[{i}]") for i, one in enumerate(propensity)]
        return _box_of_limits(limits, size)
    rows = getattr(propensity, "ndim", 1) == 2
    return _box_of_values(order.placed(propensity, "propensity", across=rows), size)


def _propensity_warnings(falsification: Falsification | None, *, learnt: bool) -> tuple[str, ...]:
    """Say that propensities were refuted, or not tested; often nothing."""
    if falsification is not None and falsification.refuted:
        note = (
            f"the data contradict the propensity model (p = {falsification.p_value:.2g}): features "
            "predict membership better than the model does, which may explain correct guesses"
        )
        return (note,)
    if falsification is None and learnt:
        note = Message(
            "the propensities were learnt but not tested: pass {features=} to test them. Scores "
            "that depend on the errors of the propensities can show too much leakage"
        )
        return (note,)
    return ()


def _propensity_assumptions(
    box: OddsBox, count: MemberCount, falsification: Falsification | None, *, learnt: bool
) -> tuple[Assumption, Assumption]:
    """Say what is known of the propensities, and what they were learnt from."""
    how = "are those given"
    if box.limited:
        how = "lie within the limits given"
    if learnt:
        how = "are those of a fitted model, taken as they are"
    if box.draws is not None:
        how = f"have the uncertainty of {len(box.draws)} replicates"
    text = f"The probabilities of membership given the features {how}"
    status: Status = "unverifiable"
    if falsification is None:
        text += "; not tested against features."
    else:
        bets = (
            f"{falsification.sceptic} bet against them and was right {falsification.correct} times "
            f"of {falsification.guesses}, {falsification.expected:.1f} expected "
            f"(p = {falsification.p_value:.2g})"
        )
        if falsification.refuted:
            status = "contradicted"
            text += f"; contradicted by the data: {bets}."
        else:
            text += f"; not contradicted: {bets}. Small errors cannot be detected."
    if box.table is not None:
        text += box.table.form
    source = "The propensities do not depend on any audited example or score."
    return (
        count.assumption("propensities", text, status),
        Assumption("propensities from other examples", source, "declared"),
    )


def member_share_warnings(model: PropensityFit, member: BoolArray) -> tuple[str, ...]:
    """Say that the share of members is plainly not that of D', or the one declared.

    The log-odds stay as they are: moved by a count of the audited labels, they would depend on the
    very memberships that they are to explain.
    """
    audited_share = float(member.mean())
    expected_share = model.member_share
    reference_size = model.rows.member.size
    # The difference of two shares, in standard errors of a pooled share
    members = audited_share * member.size + expected_share * reference_size
    pooled_share = members / (member.size + reference_size)
    variance_of_label = pooled_share * (1 - pooled_share)
    variance = variance_of_label * (1 / member.size + 1 / reference_size)
    if abs(audited_share - expected_share) <= _MISMATCH_ERRORS * math.sqrt(variance):
        return ()
    whose = "of those that the propensity model was fitted to"
    if model.share_of_reference in {"declared", "counted"}:
        whose = "were declared"
    note = (
        f"{100 * audited_share:.1f}% of the audited examples are members, and "
        f"{100 * expected_share:.1f}% {whose}: if the design of the audit gave members "
        "another share, the log-odds are off by a constant; declare that share before "
        "labels are seen, by fit.with_member_share(share)"
    )
    return (note,)


def _box_of_model(
    model: PropensityFit,
    table: FeatureTable,
    size: int,
    options: ZeroRunOptions,
    seed: int,
) -> OddsBox:
    if model.share_of_reference == "unknown":
        raise OptionError(
            "the share of members in the audit was declared unknown, so that log-odds are known up "
            'to a constant only: take a logistic model and uncertainty="set"'
        )
    estimate = model.log_odds(table.rows)
    check_length(estimate, size, "features")
    draws = None
    if options.uncertainty != "none":
        draws = model.bootstrap(table.rows, K=REPLICATES, seed=seed)
    return replace(OddsBox.of_log_odds(estimate, draws), table=table)


def _box_of_values(propensity: ArrayInput, examples: int) -> OddsBox:
    """Read one vector of propensities, or rows of replicates."""
    given_array = array_of(propensity, "propensity")
    _refuse_missing_propensities(given_array)
    try:
        table = numbers(propensity, "propensity", least=0, most=1)
    except OptionError as error:
        if given_array.ndim != 2:
            raise
        raise OptionError(
            f"{error}; features go by name, lb.ZeroRun(member, features=X)"
        ) from error
    if table.ndim == 2:
        check_length(table.T, examples, "each row of propensity")
        draws = logit(table)
        return OddsBox.of_log_odds(np.median(draws, axis=0), draws)
    values = vector(propensity, "propensity")
    check_length(values, examples, "propensity")
    return OddsBox.of_log_odds(logit(values))


def _refuse_missing_propensities(propensity: AnyArray) -> None:
    """Refuse what a model predicts of rows of which nothing is known."""
    if propensity.dtype.kind != "f" or not propensity.ndim:
        return
    lacking = np.flatnonzero(np.isnan(np.atleast_2d(propensity)).any(axis=0))
    if lacking.size:
        raise OptionError(
            f"propensity is NaN in {lacking.size} examples, the first at index {lacking[0]}: leave "
            "these out, or pass the fitted model and features, of which it leaves out rows with a "
            "rare word or gap"
        )


def _box_of_limits(limits: list[Any], examples: int) -> OddsBox:
    if len(limits) != 2:
        raise InputError(
            f"propensity limits must be a pair (lower, upper), got {len(limits)} arrays"
        )
    probabilities = []
    for index, given in enumerate(limits):
        name = f"propensity[{index}]"
        limit = numbers(vector(given, name), name, least=0, most=1)
        check_length(limit, examples, name)
        probabilities.append(limit)
    lower, upper = probabilities
    crossed = np.flatnonzero(np.less(upper, lower))
    if crossed.size:
        raise OptionError(
            f"the lower limit of the propensity is above the upper one at index {crossed[0]} "
            f"({crossed.size} such rows): pass (lower, upper)"
        )
    low = logit(lower)
    high = logit(upper)
    # the middle, where that is a number
    finite_limit = np.where(np.isinf(low), high, low)
    is_half_open = np.isinf(low) | np.isinf(high)
    middle = np.where(is_half_open, finite_limit, (low + high) / 2)
    return OddsBox(estimate=middle, low=low, high=high, limited=True)


def _refuse_certain_membership(largest: FloatArray, options: ZeroRunOptions) -> None:
    """Check that no example is certain to be a member, or not, unless a limit makes it abstain."""
    certain = np.flatnonzero(largest > _LARGEST_LOG_ODDS)
    if certain.size == largest.size:
        why = "every propensity is 0 or 1"
        raise no_overlap(why)
    if certain.size and options.max_log_odds is None:
        message = (
            "propensity must be strictly between 0 and 1, but {certain} of {examples} are 0 or 1 "
            "to within 1e-130, the first at index {first}: set {max_log_odds}, for example to 5, "
            "to abstain on such examples"
        )
        where = {"certain": certain.size, "examples": largest.size, "first": certain[0]}
        raise OptionError(Message(message, **where))
