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
from leakbound._base.hints import OF_CLAIMS, hinted
from leakbound._base.messages import Message, Option
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
_PURE_DP = PureDP()
# The fewest canaries that are tried: fewer hardly prove anything.
_FEWEST = 8
# More simulations do not change the printed digits.
_MOST_SIMULATIONS = 10**6
# How closely the number of canaries is searched: 2 %, less than simulations tell.
_RATIO = 1.02


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
        ordered = self.low <= self.median <= self.high
        if ordered:
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
        agree = (self.m is None) == bool(self.reason)
        if agree:
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
        integer(m, name="m", least=_FEWEST, most=MOST_EXAMPLES)
    else:
        integer(m, name="m", least=1, most=int(WHOLE))
    beta = complement(confidence)
    several = _checked_copies(copies, claim=claim, m=m, sides=sides)
    if guesses is None:
        plan = _Plan.of(m, beta, claim, cuts, sides)
        return bound_of_one_record(plan.ceiling, several)
    if cuts is not None:
        raise OptionError("give either guesses, or cuts, which determine the number of guesses")
    right = integer(guesses, name="guesses", least=1, most=m)
    proved = claim.lower_bound(right, right, m, beta, one_sided=sides == "member")
    return bound_of_one_record(proved, several)


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
    labels = labels_of_subgroups(by, groups)
    names, sizes = np.unique(labels, return_counts=True)
    level = shares.SUBGROUPS.of(complement(confidence), names.size)
    found: dict[object, float] = {}
    for name, size in zip(names.tolist(), sizes.tolist(), strict=True):
        found[name] = 0.0
        if 2.0**-size < level:  # what even a perfect attack needs where nothing leaks
            found[name] = _Plan.of(size, level, claim, cuts, sides).ceiling
    return found


@hinted(
    **OF_CLAIMS | {"epsilon": "write truth=ε, what you assume the model leaks"},
    truth="the ε that you assume the model leaks, such as truth=3",
    target="the ε that the audit should prove, such as target=2",
)
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
    integer(m, name="m", least=_FEWEST, most=MOST_EXAMPLES)
    instance(claim, name="claim", types=_CLAIMS)
    choice(sides, name="sides", allowed=Sides)
    integer(simulations, name="simulations", least=1, most=_MOST_SIMULATIONS)
    seed = integer(seed, name="seed", least=0)
    goal = real(target, name="target", least=0, below=math.inf)
    assumed = truth_of(truth, claim)
    beta = complement(confidence)
    several = _checked_copies(copies, claim=claim, m=m, sides=sides)
    plan = _Plan.of(m, beta, claim, cuts, sides)
    played = games_of(
        of_copies(assumed, several), m=m, sides=sides, simulations=simulations, seed=seed
    )
    games = track(played, f"{m:,} {units(sides)}", total=simulations)
    proved, guesses = np.array([plan.prove(ranking) for ranking in games]).T
    bounds = np.array([bound_of_one_record(bound, several) for bound in proved.tolist()])
    # A bound of 0 proves nothing, and reaches no target, not even 0.
    low, median, high = np.quantile(bounds, [0.05, 0.5, 0.95])
    return Power(
        m=m,
        claim=claim,
        truth=assumed,
        confidence=float(confidence),
        cuts=plan.name,
        target=goal,
        probability=float(np.mean((bounds > 0) & (bounds >= goal))),
        mean=float(bounds.mean()),
        median=float(median),
        low=float(low),
        high=float(high),
        ceiling=bound_of_one_record(plan.ceiling, several),
        guesses=int(np.median(guesses)),
        levels=plan.levels,
        simulations=simulations,
        seed=seed,
        copies=several,
    )


@hinted(
    **OF_CLAIMS | {"epsilon": "write truth=ε, what you assume the model leaks"},
    truth="the ε that you assume the model leaks, such as truth=3",
    target="the ε that the audit should prove, such as target=2",
)
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
    goal = real(target, name="target", above=0, below=math.inf)
    enough = real(probability, name="probability", above=0, below=1)
    limit = integer(most, name="most", least=_FEWEST, most=MOST_EXAMPLES)
    instance(claim, name="claim", types=_CLAIMS)
    assumed = truth_of(truth, claim)
    several = _checked_copies(copies, claim=claim, m=limit, sides=sides)
    reason = beyond_truth(
        goal, truth=assumed, claim=claim, chance=enough, confidence=confidence, copies=several
    )
    if reason:
        return CanariesNeeded(m=None, power=None, reason=reason)

    same: Any = {
        "claim": claim,
        "confidence": confidence,
        "cuts": cuts,
        "sides": sides,
        "copies": several,
    }
    fewest = max(_FEWEST, several)  # copies of a canary are at most as many as canaries

    def at(m: int) -> Power:
        return power(m, assumed, target=goal, simulations=simulations, seed=seed, **same)

    # 1. The ceiling rules out small numbers without a simulation.
    sizes = [min(fewest << i, limit) for i in range((limit // fewest).bit_length() + 1)]
    start = next((i for i, m in enumerate(sizes) if ceiling(m, **same) >= goal), None)
    if start is None:
        reason = why_short(limit, forecast=ceiling(limit, **same), sides=sides)
        return CanariesNeeded(m=None, power=None, reason=reason)
    # 2. Double the number until it is enough.
    low = sizes[max(0, start - 1)]
    high = at(sizes[start])
    for m in sizes[start + 1 :]:
        if high.probability >= enough:
            break
        low = high.m
        high = at(m)
    if high.probability < enough:
        return CanariesNeeded(
            m=None, power=high, reason=why_short(high.m, forecast=high, sides=sides)
        )
    # 3. Bisect between the last number that is too small and the first that is enough.
    least = _least(at, low=low, high=high, enough=enough)
    return CanariesNeeded(m=least.m, power=least)


def _least(at: Callable[[int], Power], low: int, high: Power, enough: float) -> Power:
    """Return the power of the least number that is enough: above `low`, at most that of `high`."""
    while high.m - low > max(1.0, (_RATIO - 1) * high.m):
        middle = at((low + high.m) // 2)
        if middle.probability >= enough:
            high = middle
        else:
            low = middle.m
    return high


def units(sides: Sides) -> str:
    """Return the unit that m counts."""
    if sides == "pairs":
        return "pairs"
    return "canaries"


def why_short(m: int, forecast: Power | float, sides: Sides) -> str:
    """Return why m examples are too few: the ceiling, or what simulated audits prove."""
    if isinstance(forecast, Power) and forecast.ceiling >= forecast.target:
        chance = f"{100 * forecast.probability:.3g} %"
        return (
            f"{m:,} {units(sides)} prove {number(forecast.target)} with probability only {chance}"
        )
    best = forecast
    if isinstance(best, Power):
        best = best.ceiling
    return f"even a perfect attack on {m:,} {units(sides)} would prove {number(best)} only"


def _checked_copies(copies: int, claim: PlannedClaim, m: int, sides: Sides) -> int:
    """Check copies of each canary, which pairs of a random split do not have."""
    several = integer(copies, name="copies", least=1)
    if several > 1 and sides == "pairs":
        message = '{copies} are for canaries, and {sides="pairs"} is for a random split'
        raise OptionError(Message(message))
    check_group_claim(several, claim=claim, examples=m)
    return several


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
    most = bound_of_one_record(of_copies(truth, copies).parameter(claim), copies)
    beta = complement(confidence)
    if target < most or chance <= beta:
        return ""
    return (
        f"the target, {target:g}, is not below the assumed truth, {most:.4g}, so a valid audit "
        f"of any size reaches it with a probability of at most {percent(beta)}"
    )


@dataclass(frozen=True)
class _Plan:
    """The bound of an audit of m examples, as a function of a ranking."""

    m: int
    beta: float
    sides: Sides
    policy: PathPolicy

    @classmethod
    def of(
        cls, m: int, beta: float, claim: PlannedClaim, cuts: CutPolicy | None, sides: Sides
    ) -> Self:
        """Return the plan of an audit."""
        if not isinstance(cuts, PathPolicy | SecondLook | None):
            message = "{cuts} cannot be planned: use {Fixed} or {KLScan}"
            raise OptionError(Message(message, cuts=Option("cuts", type(cuts))))
        policy: Any = policy_of(claim, cuts, m, sides, beta)
        if isinstance(policy, Parts):
            # Scores are tidy here, so that the first of its tests gives the bound.
            first = policy.parts[0]
            policy = first.policy
            beta *= first.share
        policy.check(m)
        return cls(m=m, beta=beta, sides=sides, policy=policy)

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
        return self.policy.ladder(self.m, self.beta, self.sides)

    def prove(self, ranking: _core.Ranking) -> tuple[float, int]:
        """Return the bound of a ranking and the number of guesses."""
        orders = self.policy.orders(self.sides)
        level = shares.PATHS.of(self.beta, len(orders))
        _, _, best = self.policy.best(ranking, orders, level)
        return max(0.0, best.logit), best.cut

    @property
    def ceiling(self) -> float:
        """The bound of a perfect attack if half of the examples are members."""
        scores: FloatArray = np.arange(self.m, dtype=np.float64)
        wrong = self.m // 2
        if self.sides == "pairs":
            wrong = 0
        right = scores >= wrong
        return self.prove(_core.Ranking(scores, right))[0]
