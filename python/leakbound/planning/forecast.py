"""Planning an audit before it is run: games are simulated, and no label is needed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.checks import (
    MOST_EXAMPLES,
    WHOLE,
    choice,
    complement,
    instance,
    integer,
    real,
)
from leakbound._base.console import track
from leakbound._base.formatting import number, percent
from leakbound._base.messages import OF_CLAIMS, Message, Option, hinted
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import ArrayInput, FloatArray, Sides
from leakbound.audits.grouping import bound_of_one_record, check_group_claim
from leakbound.audits.road import policy_of
from leakbound.audits.subgroups import labels_of_subgroups
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.cuts import CutPolicy, PathPolicy, SecondLook
from leakbound.cuts.look import Parts
from leakbound.cuts.policy import DerivedPolicy
from leakbound.errors import OptionError
from leakbound.planning.truths import PlannedClaim, Truth, games_of, of_copies, truth_of

_CLAIMS = (PureDP, ApproxDP, GaussianDP)
# Hints of functions that take an assumed truth.
_OF_TRUTHS = {
    **OF_CLAIMS,
    "epsilon": "write truth=ε, what you assume the model leaks",
    "truth": "the ε that you assume the model leaks, such as truth=3",
    "target": "the ε that the audit should prove, such as target=2",
}
_PURE_DP = PureDP()
# The fewest canaries that are tried: fewer hardly prove anything.
_FEWEST_CANARIES = 8
# More simulations do not change the printed digits.
_MOST_SIMULATIONS = 10**6
# How closely the number of canaries is searched: 2 %, less than simulations tell.
_SEARCH_RATIO = 1.02


@dataclass(frozen=True, kw_only=True, eq=False)
class Power(Record):
    """The bounds that an audit will reach if the assumed truth is correct.

    Parameters
    ----------
    m : int
        Examples.
    claim, truth, confidence, target : claim, Gaussian or Response, and float
        What `power` was asked.
    cuts : str
        The cut policy in force.
    probability : float
        Share of the simulated audits whose bound is above 0 and at least `target`.
    mean, median, low, high : float
        The bound: its mean, its median, and the quantiles at 5 % and 95 %.
    ceiling : float
        The bound of a perfect attack on half members.
    guesses : int
        Guesses that the audits made: their median.
    levels : tuple of int
        The numbers of guesses that the policy chooses among, if it names them before labels are
        seen; empty for a scan of all cuts.
    simulations, seed : int
        Number of simulated audits, and their seed.
    copies : int
        How often each canary is inserted; all bounds are for one record.
    """

    m: int
    claim: PlannedClaim
    truth: Truth
    confidence: float
    cuts: str
    target: float
    probability: float
    mean: float
    median: float
    low: float
    high: float
    ceiling: float
    guesses: int
    levels: tuple[int, ...]
    simulations: int
    seed: int
    copies: int = field(default=1, metadata=IF_ANY)

    def _flaw(self) -> str:
        if not (0 < self.confidence < 1 and 0 <= self.probability <= 1):
            return f"confidence is {self.confidence:g}, probability {self.probability:g}"
        if self.low <= self.median <= self.high:
            return ""
        return "low, median and high are not in this order"


@dataclass(frozen=True, kw_only=True, eq=False)
class CanariesNeeded(Record):
    """The number of canaries that an audit needs.

    Parameters
    ----------
    m : int or None
        The number, within 2 %; None if no number up to the limit will do.
    power : Power or None
        What an audit of so many proves or, if none will do, of the most that were tried; None if
        the target is out of reach without a simulation.
    reason : str
        Why no number will do; empty if one does.
    """

    m: int | None
    power: Power | None
    reason: str = ""

    def _flaw(self) -> str:
        has_reason = bool(self.reason)
        if (self.m is None) == has_reason:
            return ""
        return f"m is {self.m}, and reason says {self.reason!r}"


@hinted(**OF_CLAIMS)
def ceiling(
    m: int,
    guesses: int | None = None,
    confidence: float = 0.95,
    claim: PlannedClaim = _PURE_DP,
    *,
    cuts: CutPolicy | None = None,
    sides: Sides = "auto",
    copies: int = 1,
) -> float:
    """Return the bound of a perfect attack: no audit with as many guesses can prove more.

    Parameters
    ----------
    m : int
        Examples, from 1 to 2^53; without `guesses` from 8 to 10^8.
    guesses : int, optional
        Guesses, in [1, m], their number fixed in advance. If None, as many as the policy makes.
    confidence, claim, sides, copies : float, claim, str and int
        As for `power`.
    cuts : CutPolicy, optional
        Without `guesses`, which cuts are tested; if None, those of the first test of the claim's
        default, at its share of the error probability.

    Examples
    --------
    >>> round(ceiling(1000, 200, 0.95), 3)
    4.194
    >>> ceiling(1000) < ceiling(1000, 1000)  # the search over cuts has its price
    True
    """
    choice(sides, name="sides", allowed=Sides)
    instance(claim, name="claim", types=_CLAIMS)
    if guesses is None:  # a ranking of all examples is made
        integer(m, name="m", least=_FEWEST_CANARIES, most=MOST_EXAMPLES)
    else:
        integer(m, name="m", least=1, most=int(WHOLE))
    level = complement(confidence)
    copies = _checked_copies(copies, claim=claim, m=m, sides=sides)
    if guesses is None:
        plan = _PlannedAudit.of(m, level, claim, cuts, sides)
        return bound_of_one_record(plan.ceiling, copies)
    if cuts is not None:
        raise OptionError("give either guesses, or cuts, which determine the number of guesses")
    correct = integer(guesses, name="guesses", least=1, most=m)
    group_bound = claim.lower_bound(correct, correct, m, level, one_sided=sides == "member")
    return bound_of_one_record(group_bound, copies)


@hinted(**OF_CLAIMS)
def ceilings(
    by: ArrayInput,
    confidence: float = 0.95,
    claim: PlannedClaim = _PURE_DP,
    *,
    groups: ArrayInput | None = None,
    cuts: CutPolicy | None = None,
    sides: Sides = "auto",
) -> dict[object, float]:
    """Return the bound of a perfect attack on each subgroup that labels tell apart.

    A subgroup whose ceiling is 0, or below your claim, cannot be audited: give it more examples, or
    join it with another one, before you train.

    Parameters
    ----------
    by : array-like, shape (m,)
        The label of each example, as for `leakbound.audit`; for ``sides="pairs"`` of each example
        of the smaller part.
    groups : array-like, shape (m,), optional
        The group of each row, such as its user: subgroups are then as large as they have groups.
    confidence, claim, cuts, sides : float, claim, CutPolicy and str
        As for `power`; each of k subgroups has 1/k of the probability of error.

    Examples
    --------
    >>> {name: round(most, 2) for name, most in ceilings(["north"] * 200 + ["south"] * 5).items()}
    {'north': 3.9, 'south': 0.0}
    """
    choice(sides, name="sides", allowed=Sides)
    instance(claim, name="claim", types=_CLAIMS)
    labels_of_units = labels_of_subgroups(by, groups)
    distinct_labels, subgroup_sizes = np.unique(labels_of_units, return_counts=True)
    level = shares.SUBGROUPS.of(complement(confidence), distinct_labels.size)
    ceiling_of_label: dict[object, float] = {}
    for label, subgroup_size in zip(distinct_labels.tolist(), subgroup_sizes.tolist(), strict=True):
        ceiling_of_label[label] = 0.0
        if 2.0**-subgroup_size < level:  # what even a perfect attack needs where nothing leaks
            ceiling_of_label[label] = _PlannedAudit.of(
                subgroup_size, level, claim, cuts, sides
            ).ceiling
    return ceiling_of_label


@hinted(**_OF_TRUTHS)
def power(
    m: int,
    truth: float | Truth,
    *,
    target: float = 0.0,
    claim: PlannedClaim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "auto",
    copies: int = 1,
    simulations: int = 200,
    seed: int = 0,
) -> Power:
    """Simulate audits to see what they prove under an assumed truth.

    Parameters
    ----------
    m : int
        Examples, at least 8 and at most 10^8.
    truth : float, Gaussian or Response
        The assumed truth. A number is a value of the claim's parameter: for `PureDP` that of
        `Response`, for `ApproxDP` that of the `Gaussian` with this ε at the claim's δ, for
        `GaussianDP` that of `Gaussian`.
    target : float
        A bound to reach, at least 0.
    claim : PureDP, ApproxDP or GaussianDP
        The claim.
    confidence : float
        Confidence of the bound, in (0, 1).
    cuts : CutPolicy, optional
        Policy for thresholds; if None, the first test of the claim's default, at its share of the
        error probability: scores are tidy here, and a second look proves less.
    sides : {"auto", "both", "member", "pairs"}
        Guess members and non-members, members only, or which of a pair of a random split is the
        member: then m counts pairs, and the truth is for replacing one example.
    copies : int
        How often each canary is inserted, from 1 to m: truth, target and bounds are for one record,
        and R copies of it are taken to leak R times as much. The δ of `ApproxDP` is that of all
        copies at once: see `leakbound.claims.grouped`.
    simulations : int
        Audits to simulate, at least 1 and at most 10^6.
    seed : int
        Their seed, at least 0. The answer is the same for any number of threads.

    Examples
    --------
    >>> forecast = power(200, 3.0, target=2.0)
    >>> forecast.median < 3.0 < forecast.ceiling
    True
    """
    integer(m, name="m", least=_FEWEST_CANARIES, most=MOST_EXAMPLES)
    instance(claim, name="claim", types=_CLAIMS)
    choice(sides, name="sides", allowed=Sides)
    integer(simulations, name="simulations", least=1, most=_MOST_SIMULATIONS)
    seed = integer(seed, name="seed", least=0)
    target = real(target, name="target", least=0, below=math.inf)
    assumed_truth = truth_of(truth, claim)
    level = complement(confidence)
    copies = _checked_copies(copies, claim=claim, m=m, sides=sides)
    plan = _PlannedAudit.of(m, level, claim, cuts, sides)
    simulated_games = games_of(
        of_copies(assumed_truth, copies),
        m=m,
        sides=sides,
        simulations=simulations,
        seed=seed,
    )
    games = track(simulated_games, f"{m:,} {units(sides)}", total=simulations)
    group_bounds, guesses = np.array([plan.prove(ranking) for ranking in games]).T
    bounds = np.array([bound_of_one_record(bound, copies) for bound in group_bounds.tolist()])
    # A bound of 0 proves nothing, and reaches no target, not even 0.
    reaches_target = (bounds > 0) & (bounds >= target)
    low, median, high = np.quantile(bounds, [0.05, 0.5, 0.95])
    return Power(
        m=m,
        claim=claim,
        truth=assumed_truth,
        confidence=float(confidence),
        cuts=plan.name,
        target=target,
        probability=float(np.mean(reaches_target)),
        mean=float(bounds.mean()),
        median=float(median),
        low=float(low),
        high=float(high),
        ceiling=bound_of_one_record(plan.ceiling, copies),
        guesses=int(np.median(guesses)),
        levels=plan.levels,
        simulations=simulations,
        seed=seed,
        copies=copies,
    )


@hinted(**_OF_TRUTHS)
def canaries_needed(
    target: float,
    truth: float | Truth,
    *,
    probability: float = 0.8,
    claim: PlannedClaim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "auto",
    copies: int = 1,
    simulations: int = 200,
    most: int = 100_000,
    seed: int = 0,
) -> CanariesNeeded:
    """Return how many canaries an audit needs to reach a bound under an assumed truth.

    The answer has the sampling error of a share of `simulations` audits.

    Parameters
    ----------
    target : float
        The bound to reach, positive.
    probability : float
        The chance with which the audit should reach it, in (0, 1).
    most : int
        The largest number tried, at least 8 and at most 10^8.
    truth, claim, confidence, cuts, sides, copies, simulations, seed : as named
        As for `power`, which simulates the audits of each number.

    Examples
    --------
    >>> needed = canaries_needed(2.0, 3.0, simulations=50)
    >>> needed.m is not None and 30 < needed.m < 300
    True
    """
    target = real(target, name="target", above=0, below=math.inf)
    probability = real(probability, name="probability", above=0, below=1)
    most = integer(most, name="most", least=_FEWEST_CANARIES, most=MOST_EXAMPLES)
    instance(claim, name="claim", types=_CLAIMS)
    assumed_truth = truth_of(truth, claim)
    copies = _checked_copies(copies, claim=claim, m=most, sides=sides)
    reason = beyond_truth(
        target,
        truth=assumed_truth,
        claim=claim,
        chance=probability,
        confidence=confidence,
        copies=copies,
    )
    if reason:
        return CanariesNeeded(m=None, power=None, reason=reason)

    options: Any = {
        "claim": claim,
        "confidence": confidence,
        "cuts": cuts,
        "sides": sides,
        "copies": copies,
    }
    fewest = max(_FEWEST_CANARIES, copies)  # copies of a canary are at most as many as canaries

    def power_of(m: int) -> Power:
        return power(
            m,
            assumed_truth,
            target=target,
            simulations=simulations,
            seed=seed,
            **options,
        )

    # 1. The ceiling rules out small numbers without a simulation.
    doublings = (most // fewest).bit_length() + 1
    numbers_tried = [min(fewest << doubling, most) for doubling in range(doublings)]
    possible_positions = (
        position for position, m in enumerate(numbers_tried) if ceiling(m, **options) >= target
    )
    first_possible = next(possible_positions, None)
    if first_possible is None:
        reason = why_short(most, forecast=ceiling(most, **options), sides=sides)
        return CanariesNeeded(m=None, power=None, reason=reason)
    # 2. Double the number until it is enough.
    too_few = numbers_tried[max(0, first_possible - 1)]
    forecast = power_of(numbers_tried[first_possible])
    for m in numbers_tried[first_possible + 1 :]:
        if forecast.probability >= probability:
            break
        too_few = forecast.m
        forecast = power_of(m)
    if forecast.probability < probability:
        reason = why_short(forecast.m, forecast=forecast, sides=sides)
        return CanariesNeeded(m=None, power=forecast, reason=reason)
    # 3. Bisect between the last number that is too small and the first that is enough.
    least_power = _least_power(
        power_of,
        too_few=too_few,
        forecast=forecast,
        probability=probability,
    )
    return CanariesNeeded(m=least_power.m, power=least_power)


def _least_power(
    power_of: Callable[[int], Power], too_few: int, forecast: Power, probability: float
) -> Power:
    """Return the power of the least number that is enough: above `too_few`, at most the forecast's.

    The search ends where both are within 2 %.
    """
    while forecast.m - too_few > max(1.0, (_SEARCH_RATIO - 1) * forecast.m):
        middle = power_of((too_few + forecast.m) // 2)
        if middle.probability >= probability:
            forecast = middle
        else:
            too_few = middle.m
    return forecast


def units(sides: Sides) -> str:
    """Return the unit that m counts."""
    if sides == "pairs":
        return "pairs"
    return "canaries"


def why_short(m: int, forecast: Power | float, sides: Sides) -> str:
    """Return why m examples are too few: the ceiling, or what simulated audits prove."""
    if isinstance(forecast, Power) and forecast.ceiling >= forecast.target:
        percentage = f"{100 * forecast.probability:.3g} %"
        return (
            f"{m:,} {units(sides)} prove {number(forecast.target)} with probability only "
            f"{percentage}"
        )
    largest_bound = forecast
    if isinstance(largest_bound, Power):
        largest_bound = largest_bound.ceiling
    return f"even a perfect attack on {m:,} {units(sides)} would prove {number(largest_bound)} only"


def _checked_copies(copies: int, claim: PlannedClaim, m: int, sides: Sides) -> int:
    """Check copies of each canary, which pairs of a random split do not have."""
    copies = integer(copies, name="copies", least=1)
    if copies > 1 and sides == "pairs":
        message = '{copies} are for canaries, and {sides="pairs"} is for a random split'
        raise OptionError(Message(message))
    check_group_claim(copies, claim=claim, examples=m)
    return copies


def beyond_truth(
    target: float,
    truth: Truth,
    claim: PlannedClaim,
    *,
    chance: float,
    confidence: float,
    copies: int = 1,
) -> str:
    """Return why no audit reaches a target with some probability; empty if the truth allows it.

    At the truth itself a valid audit refutes with probability at most 1 - confidence.
    """
    true_parameter = bound_of_one_record(of_copies(truth, copies).parameter(claim), copies)
    level = complement(confidence)
    if target < true_parameter or chance <= level:
        return ""
    return (
        f"the target, {target:g}, is not below the assumed truth, {true_parameter:.4g}, so a valid "
        f"audit of any size reaches it with a probability of at most {percent(level)}"
    )


@dataclass(frozen=True)
class _PlannedAudit:
    """The bound of an audit of m examples, as a function of a ranking."""

    m: int
    level: float
    sides: Sides
    policy: PathPolicy

    @classmethod
    def of(
        cls, m: int, level: float, claim: PlannedClaim, cuts: CutPolicy | None, sides: Sides
    ) -> Self:
        """Return the plan of an audit."""
        if not isinstance(cuts, PathPolicy | SecondLook | None):
            message = "{cuts} cannot be planned: use {Fixed} or {KLScan}"
            raise OptionError(Message(message, cuts=Option("cuts", type(cuts))))
        policy: Any = policy_of(claim, cuts, m, sides, level)
        if isinstance(policy, Parts):
            # Scores are tidy here, so that the first of its tests gives the bound.
            first_test = policy.parts[0]
            policy = first_test.policy
            level *= first_test.share
        policy.check(m)
        return cls(m=m, level=level, sides=sides, policy=policy)

    @property
    def name(self) -> str:
        """The policy that a caller would name."""
        policy = self.policy
        if isinstance(self.policy, DerivedPolicy):
            policy = self.policy.base
        return repr(policy)

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of guesses that the policy names before labels are seen, if any."""
        return self.policy.ladder(self.m, self.level, self.sides)

    def prove(self, ranking: _core.Ranking) -> tuple[float, int]:
        """Return the bound of a ranking and the number of guesses."""
        orders = self.policy.orders(self.sides)
        level_of_path = shares.PATHS.of(self.level, len(orders))
        _, _, best = self.policy.best(ranking, orders, level_of_path)
        return max(0.0, best.logit), best.cut

    @property
    def ceiling(self) -> float:
        """The bound of a perfect attack if half of the examples are members."""
        scores: FloatArray = np.arange(self.m, dtype=np.float64)
        non_members = self.m // 2
        if self.sides == "pairs":
            non_members = 0
        bound, _ = self.prove(_core.Ranking(scores, scores >= non_members))
        return bound
