"""Log-odds of membership given features alone that are known: values, limits, replicates, a model.

Known log-odds are a set with one member, limits a set that is a box: a bound over either counts the
worst log-odds of each guess.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leakbound._base.checks import check_length, numbers, vector
from leakbound._base.odds import logit
from leakbound._base.records import Lazy
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, IntArray, JsonValue, Kind
from leakbound.audits.member_count import MemberCount
from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest, no_overlap
from leakbound.errors import InputError, OptionError
from leakbound.propensity import ConfidenceSet, Falsification, Overlap, PropensityFit, falsify
from leakbound.propensity.fit import overlap
from leakbound.results import Assumption
from leakbound.results.zero_run import LearntLogOdds

REPLICATES = 600
"""Refits of a propensity model, as in the paper."""
# Log-odds beyond which a guess could never count; a double rounds the probability to 0 or 1.
_LARGEST = 300.0
# Standard errors at which two shares of members are plainly not the same.
_MISMATCH = 5.0


@dataclass(frozen=True, eq=False)
class OddsBox:
    """Log-odds of examples: an estimate, limits of each, and replicates of all if there are any."""

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    draws: FloatArray | None = None
    limited: bool = False

    @classmethod
    def of_member(cls, log_odds: FloatArray, draws: FloatArray | None = None) -> "OddsBox":
        """Return the box of a single member."""
        return cls(log_odds, log_odds, log_odds, draws)

    def part(self, rows: IntArray) -> "OddsBox":
        """Return the same for some examples, in the order given."""
        draws = None if self.draws is None else np.ascontiguousarray(self.draws[:, rows])
        ends = (self.estimate[rows], self.low[rows], self.high[rows])
        return OddsBox(*ends, draws, self.limited)

    @cached_property
    def largest(self) -> FloatArray:
        """The largest |λ| that each example may have."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def toward(self, rows: IntArray, signs: IntArray) -> FloatArray:
        """Return Tλ at the limit where guesses T = ±1 are likeliest right by shift alone."""
        worst: FloatArray = np.where(signs > 0, self.high[rows], -self.low[rows])
        return worst


@dataclass(frozen=True, eq=False)
class OddsSet:
    """A confidence set, and log-odds to plan with in which no audited label had a part, or 0."""

    found: ConfidenceSet
    guide: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Knowledge:
    """What is known of log-odds of membership, and the examples audited by it.

    `share` of the probability of error is left by what is not known; `scores` are those of each
    attack that guesses are ranked by.
    """

    odds: OddsBox | OddsSet
    rows: IntArray
    scores: dict[str, FloatArray]
    abstained: int
    kind: Kind
    refuted: bool
    assumptions: tuple[Assumption, Assumption]
    warnings: tuple[str, ...]
    options: dict[str, JsonValue]
    overlap: Lazy[Overlap]
    digested: dict[str, FloatArray | BoolArray]
    share: float = 1.0
    theorem: str = ""
    refusal: str = ""
    falsification: Falsification | None = None
    learnt: LearntLogOdds | None = None


def known(candidates: Candidates, propensity: Any) -> Knowledge:
    """Read propensities, choose what is audited, and try to refute them."""
    request, member, order = candidates.request, candidates.member, candidates.order
    features = candidates.features()
    # 1. Log-odds of all examples.
    notes: tuple[str, ...] = ()
    if isinstance(propensity, PropensityFit):
        table = candidates.features_for(propensity)
        box, notes = _of_model(propensity, member, table, request)
    elif isinstance(propensity, tuple):
        limits = [order.placed(one, f"propensity[{i}]") for i, one in enumerate(propensity)]
        box = _of_limits(limits, member.size)
    else:
        rows = getattr(propensity, "ndim", 1) == 2
        box = _of_values(order.placed(propensity, "propensity", across=rows), member.size)
    # 2. Those that are audited, and whether their number of members is one that log-odds allow.
    _check_certain(box.largest, request)
    audited, allowed = candidates.audited(box.largest), box.largest <= request.limit
    count = MemberCount.of_propensities(member[allowed], box.low[allowed], box.high[allowed])
    learnt = isinstance(propensity, PropensityFit) or box.draws is not None
    if not learnt:
        count.refuse()
    # 3. Whether features say more.
    tried = None
    if request.falsify and features is not None and not box.limited:
        tried = falsify(box.estimate, features, member, seed=request.seed)
    refuted = tried is not None and tried.refuted
    warnings = [*notes, *count.warnings()]
    if tried is not None and refuted:
        warnings.append(
            f"propensity model refuted (p = {tried.p_value:.2g}): features predict membership "
            "better than the model does, which may explain correct guesses"
        )
    if tried is None and learnt:
        warnings.append(
            "the propensities were learnt but not tested: pass features= to test them. Scores "
            "that depend on the errors of the propensities can show too much leakage"
        )
    unsure = "none" if box.draws is None else "bootstrap"
    return Knowledge(
        odds=box.part(audited),
        rows=audited,
        scores={name: values[audited] for name, values in candidates.attacks.scores.items()},
        abstained=member.size - audited.size,
        kind="exploratory_lower_bound" if learnt else "conditional_lower_bound",
        refuted=refuted or count.impossible,
        assumptions=_assumptions(box, count, tried, learnt=learnt),
        warnings=tuple(warnings),
        options={"uncertainty": unsure if learnt else "given"},
        overlap=Lazy(lambda: overlap(box.estimate, member)),
        digested={"log_odds": box.estimate},
        falsification=tried,
    )


def _assumptions(
    box: OddsBox, count: MemberCount, tried: Falsification | None, *, learnt: bool
) -> tuple[Assumption, Assumption]:
    """Say what is known of the propensities, and what they were learnt from."""
    how = "lie within the limits given" if box.limited else "are those given"
    if learnt:
        how = "are those of a fitted model, taken as they are"
    if box.draws is not None:
        how = f"have the uncertainty of {len(box.draws)} replicates"
    text = f"The probabilities of membership given the features {how}"
    refuted = tried is not None and tried.refuted
    if tried is None:
        text += "; not tested against features."
    else:
        bets = (
            f"{tried.sceptic} bet against them and was right {tried.correct} times of "
            f"{tried.guesses}, {tried.expected:.1f} expected (p = {tried.p_value:.2g})"
        )
        more = f"; not refuted: {bets}. Small errors cannot be detected."
        text += f": REFUTED. {bets}." if refuted else more
    source = "The propensities do not depend on any audited example or score."
    return (
        count.assumption("propensities", text, "contradicted" if refuted else "unverifiable"),
        Assumption("propensities from other examples", source, "declared"),
    )


def other_share(model: PropensityFit, member: BoolArray) -> tuple[str, ...]:
    """Say that the share of members is plainly not that of D', or the one declared.

    The log-odds stay as they are: moved by a count of the audited labels, they would depend on the
    very memberships that they are to explain.
    """
    here, expected, others = float(member.mean()), model.member_share, model.rows.member.size
    pooled = (here * member.size + expected * others) / (member.size + others)
    variance = pooled * (1 - pooled) * (1 / member.size + 1 / others)
    if abs(here - expected) <= _MISMATCH * math.sqrt(variance):
        return ()
    declared = model.share_of_reference in {"declared", "counted"}
    whose = "were declared" if declared else "of those that the propensity model was fitted to"
    note = (
        f"{100 * here:.1f}% of the audited examples are members, and {100 * expected:.1f}% "
        f"{whose}: if the design of the audit gave members another share, the log-odds are off by "
        "a constant; declare that share before labels are seen, by fit.with_member_share(share)"
    )
    return (note,)


def _of_model(
    model: PropensityFit, member: BoolArray, features: ArrayInput, request: ZeroRunRequest
) -> tuple[OddsBox, tuple[str, ...]]:
    if model.share_of_reference == "unknown":
        raise OptionError(
            "the share of members in the audit was declared unknown, so that log-odds are known up "
            'to a constant only: take a logistic model and uncertainty="set"'
        )
    estimate, draws = model.log_odds(features), None
    check_length(estimate, member.size, "features")
    if request.uncertainty != "none":
        draws = model.bootstrap(features, K=REPLICATES, seed=request.seed)
    return OddsBox.of_member(estimate, draws), other_share(model, member)


def _of_values(propensity: ArrayInput, examples: int) -> OddsBox:
    """Read one vector of propensities, or rows of replicates."""
    table = numbers(propensity, "propensity", least=0, most=1)
    if table.ndim == 2:
        check_length(table.T, examples, "each row of propensity")
        draws = logit(table)
        return OddsBox.of_member(np.median(draws, axis=0), draws)
    values = vector(propensity, "propensity")
    check_length(values, examples, "propensity")
    return OddsBox.of_member(logit(values))


def _of_limits(limits: list[Any], examples: int) -> OddsBox:
    if len(limits) != 2:
        raise InputError(
            f"propensity limits must be a pair (lower, upper), got {len(limits)} arrays"
        )
    ends = []
    for i, one in enumerate(limits):
        name = f"propensity[{i}]"
        ends.append(numbers(vector(one, name), name, least=0, most=1))
        check_length(ends[i], examples, name)
    crossed = np.flatnonzero(np.less(ends[1], ends[0]))
    if crossed.size:
        raise OptionError(
            f"the lower limit of the propensity is above the upper one at index {crossed[0]} "
            f"({crossed.size} such rows): pass (lower, upper)"
        )
    low, high = map(logit, ends)
    # the middle, where that is a number
    finite = np.where(np.isinf(low), high, low)
    middle = np.where(np.isinf(low) | np.isinf(high), finite, (low + high) / 2)
    return OddsBox(middle, low, high, limited=True)


def _check_certain(largest: FloatArray, request: ZeroRunRequest) -> None:
    """Check that no example is certain to be a member, or not, unless a limit makes it abstain."""
    certain = np.flatnonzero(largest > _LARGEST)
    if certain.size == largest.size:
        why = "every propensity is 0 or 1"
        raise no_overlap(why)
    if certain.size and request.max_log_odds is None:
        raise OptionError(
            f"propensity must be strictly between 0 and 1, but {certain.size} of {largest.size} "
            f"are 0 or 1 to within 1e-130, the first at index {certain[0]}: set max_log_odds, for "
            "example to 5, to abstain on such examples"
        )
