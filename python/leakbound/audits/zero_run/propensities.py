"""What is known of distribution shift: propensities read in all their forms, as log-odds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import check_length, numbers, vector
from leakbound._base.odds import logit
from leakbound.audits.engine.coins import MemberCount
from leakbound.errors import (
    IncompatibleOptionsError,
    LengthMismatchError,
    NoOverlapError,
    OptionError,
    ShapeError,
)
from leakbound.propensity import PropensityFit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leakbound._base.alignment import ExampleOrder
    from leakbound._base.types import ArrayInput, BoolArray, FloatArray
    from leakbound.audits.zero_run.request import ZeroRunRequest
    from leakbound.propensity import LogisticPropensity

REPLICATES = 600
"""Refits of a propensity model."""
_LARGEST = 300.0
"""Log-odds beyond which a guess could never count; a double rounds the probability to 0 or 1."""
_MISMATCH = 5.0
"""Standard errors at which two shares of members are plainly not the same."""


@dataclass(frozen=True)
class Shift:
    """Log-odds of membership given features alone."""

    log_odds: FloatArray
    low: FloatArray
    high: FloatArray
    draws: FloatArray | None
    limited: bool
    learnt: bool = False
    warnings: tuple[str, ...] = ()

    def rows(self, rows: NDArray[np.intp]) -> Shift:
        """Return the same for some examples, in the order given."""
        draws = None if self.draws is None else np.ascontiguousarray(self.draws[:, rows])
        return replace(
            self,
            log_odds=self.log_odds[rows],
            low=self.low[rows],
            high=self.high[rows],
            draws=draws,
        )

    @property
    def uncertainty(self) -> str:
        """What is done about the error of these log-odds, for a result's options."""
        if not self.learnt:
            return "given"
        return "none" if self.draws is None else "bootstrap"

    @property
    def largest(self) -> FloatArray:
        """The largest |λ| that each example may have."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def against(self, guesses: NDArray[Any]) -> FloatArray:
        """Return Tλ at the limit where guesses T, 0 or ±1, are likeliest right by shift alone."""
        worst: FloatArray = np.where(guesses > 0, self.high, -self.low)
        return np.where(guesses == 0, 0.0, worst)


def read_shift(
    propensity: ArrayInput | PropensityFit | tuple[ArrayInput, ArrayInput],
    member: BoolArray,
    request: ZeroRunRequest,
    *,
    features: ArrayInput | None,
    ids: NDArray[Any] | None,
) -> Shift:
    """Read propensities: values, replicates, limits, or a fitted model; log-odds may be ±inf.

    `ids` are those of the examples, which a model must not have learnt from. No log-odds depend on
    membership: its share is compared with that of a model's own examples.
    """
    if isinstance(propensity, PropensityFit):
        return _modelled(propensity, member, audited_features(propensity, features, ids), request)
    if isinstance(propensity, tuple):
        return _limited(propensity, member.size)
    given: Any = propensity
    table = numbers(given, "propensity", least=0, most=1)
    if table.ndim == 2:
        if table.shape[1] != member.size:
            message = (
                f"propensity has rows of {table.shape[1]} values and there are {member.size} "
                "scores; each of the K rows must describe all examples"
            )
            raise LengthMismatchError(message)
        draws = logit(table)
        point = np.median(draws, axis=0)
        return Shift(point, point, point, draws, limited=False, learnt=True)
    values = vector(given, "propensity")
    check_length(values, member.size, "propensity")
    point = logit(values)
    return Shift(point, point, point, None, limited=False)


def in_order(propensity: Any, order: ExampleOrder) -> Any:
    """Return propensities in the order of the scores; models have their own way to features."""
    if isinstance(propensity, PropensityFit):
        return propensity
    if isinstance(propensity, tuple):
        return tuple(order.placed(one, f"propensity[{i}]") for i, one in enumerate(propensity))
    rows = getattr(propensity, "ndim", 1) == 2
    return order.placed(propensity, "propensity", across=rows)


def member_count(shift: Shift, member: BoolArray, limit: float | None) -> MemberCount:
    """Count the members among the examples that may be audited, against their propensities."""
    rows = shift.largest <= (np.inf if limit is None else limit)
    if not rows.any():
        found = f"no example has |log-odds| of at most {limit:g}"
        raise no_overlap(found)
    return MemberCount.of_propensities(member[rows], shift.low[rows], shift.high[rows])


def check_certain(shift: Shift, limit: float | None) -> None:
    """Check that no example is certain to be a member, or not, unless a limit makes it abstain."""
    certain = np.flatnonzero(shift.largest > _LARGEST)
    if certain.size == shift.log_odds.size:
        found = "every propensity is 0 or 1"
        raise no_overlap(found)
    if certain.size and limit is None:
        row = int(certain[0])
        message = (
            f"propensity must be strictly between 0 and 1, but {certain.size} of "
            f"{shift.log_odds.size} are 0 or 1 to within 1e-130, the first at index {row}: set "
            "max_log_odds, for example to 5, to abstain on such examples"
        )
        raise OptionError(message)


def no_overlap(why: str) -> NoOverlapError:
    """Return the error that says why nothing can be concluded."""
    return NoOverlapError(
        f"{why}: members and non-members do not overlap, so a score that is high on members may "
        "come from their features as well as from training, and no audit can tell the two apart "
        "(Proposition 3 of Cebere, Even, Bleistein and Bellet); find non-members that could have "
        "been members"
    )


def _modelled(
    model: PropensityFit,
    member: BoolArray,
    features: ArrayInput,
    request: ZeroRunRequest,
) -> Shift:
    if model.share_of_reference == "unknown":
        message = (
            "the share of members in the audit was declared unknown, so that log-odds are known up "
            'to a constant only: take a logistic model and uncertainty="set"'
        )
        raise IncompatibleOptionsError(message)
    point = model.log_odds(features)
    check_length(point, member.size, "features")
    draws = None
    if request.uncertainty != "none":
        draws = model.bootstrap(
            features,
            K=REPLICATES,
            seed=request.seed,
        )
    warnings = other_share(model, member)
    return Shift(point, point, point, draws, limited=False, learnt=True, warnings=warnings)


def audited_features(
    model: PropensityFit | LogisticPropensity,
    features: ArrayInput | None,
    ids: NDArray[Any] | None,
) -> ArrayInput:
    """Return the features of the audited examples, none of which may be in D'."""
    if features is None:
        message = "a propensity model needs the features of the audited examples: features="
        raise IncompatibleOptionsError(message)
    if ids is not None and isinstance(model, PropensityFit):
        model.check_disjoint(ids)
    return features


def other_share(model: PropensityFit, member: BoolArray) -> tuple[str, ...]:
    """Say that the share of members is plainly not that of D', or the one declared.

    The log-odds stay as they are: moved by a count of the audited labels, they would depend on the
    very memberships that they are to explain.
    """
    here, expected = float(member.mean()), model.member_share
    pooled = (here * member.size + expected * model.rows.member.size) / (
        member.size + model.rows.member.size
    )
    variance = pooled * (1 - pooled) * (1 / member.size + 1 / model.rows.member.size)
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


def _limited(limits: tuple[Any, ...], examples: int) -> Shift:
    if len(limits) != 2:
        message = f"propensity limits must be a pair (lower, upper), got {len(limits)} arrays"
        raise ShapeError(message)
    low, high = (
        numbers(vector(one, f"propensity[{i}]"), f"propensity[{i}]", least=0, most=1)
        for i, one in enumerate(limits)
    )
    for i, one in enumerate((low, high)):
        check_length(one, examples, f"propensity[{i}]")
    crossed = np.flatnonzero(np.less(high, low))
    if crossed.size:
        message = (
            f"the lower limit of the propensity is above the upper one at index {crossed[0]} "
            f"({crossed.size} such rows): pass (lower, upper)"
        )
        raise OptionError(message)
    lower, upper = logit(low), logit(high)
    certain = np.isinf(lower) | np.isinf(upper)
    middle = np.where(certain, np.where(np.isinf(lower), upper, lower), (lower + upper) / 2)
    return Shift(middle, lower, upper, None, limited=True)
