"""Planning an audit before it is run: no label is ever seen, games are simulated.

What could a perfect attack prove? What will an audit prove if the truth is so and so? How many
canaries does it take? How many guesses should be made?
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Self, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import MOST_EXAMPLES, choice, complement, instance, integer, real
from leakbound._base.formatting import number, percent
from leakbound._base.records import Record
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, Sides
from leakbound.audits.policies.approximate_dp import approx_policy
from leakbound.audits.policies.f_dp import GridFamily, family_policy
from leakbound.audits.policies.reference import REFERENCE, Curve, Reference, best_fixed
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.cuts import CutPolicy, PathPolicy
from leakbound.cuts.policies import default_scan
from leakbound.cuts.policy import DerivedPolicy
from leakbound.errors import OptionError
from leakbound.simulate import gaussian, randomized_response
from leakbound.stats import normal_quantile

PlannedClaim: TypeAlias = PureDP | ApproxDP | GaussianDP
_CLAIMS = (PureDP, ApproxDP, GaussianDP)
_PURE_DP = PureDP()
_CHUNK = 2**22
"""Examples of the games that are held at a time."""
_FEWEST = 8
"""The smallest number of canaries that is tried."""
_NONE = 1e-9
"""A share of the examples that stands for the first of them."""
_MOST_SIMULATIONS = 10**6
"""More tell nothing more."""
_COUNTED = 2**32 - 1
"""Guesses that the core counts under (ε, δ)-DP."""
_RATIO = 1.02
"""How closely the number of canaries is found."""


@dataclass(frozen=True)
class Gaussian:
    """The truth that scores are N(±μ/2, 1), independently: canaries in orthogonal directions.

    Parameters
    ----------
    mu : float
        μ of Gaussian DP, at least 0.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", real(self.mu, "mu", least=0, below=math.inf))

    def _curve(self, sides: Sides) -> Curve:
        # differences of a pair are N(±μ/2, 1): the reference has N(μ, 2) for single examples
        mu = self.mu / math.sqrt(2) if sides == "pairs" else self.mu
        return Reference(mu).curve(sides)

    def _parameter(self, claim: PlannedClaim) -> float:
        """Return the parameter of a claim that is true."""
        if isinstance(claim, GaussianDP):
            return self.mu
        if not claim.delta:
            return math.inf if self.mu else 0.0
        return gaussian(1, self.mu, seed=0).epsilon(claim.delta)

    def _pair(self, pairs: int, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return the confidence of guesses about pairs, and which are right."""
        apart = self.mu / 2 + rng.normal(size=pairs)
        return np.abs(apart), apart > 0

    def _play(self, examples: int, seed: int, first: int, count: int) -> list[_core.Ranking]:
        return _core.play(
            self.mu, fraction=None, examples=examples, seed=seed, first=first, count=count
        )


@dataclass(frozen=True)
class Response:
    """The truth that guesses are correct with odds e^ε: randomised response.

    Parameters
    ----------
    epsilon : float
        ε, at least 0.
    fraction : float
        Share of the examples that leak at all, in (0, 1]; the attack ranks them first.
    """

    epsilon: float
    fraction: float = 1.0

    def __post_init__(self) -> None:
        epsilon = real(self.epsilon, "epsilon", least=0, below=math.inf)
        fraction = real(self.fraction, "fraction", above=0, most=1)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "fraction", fraction)

    def _curve(self, sides: Sides) -> Curve:
        """Guess the leaking ones first; one-sided, those called members, then all others."""
        p, leaking = 1 / (1 + math.exp(-self.epsilon)), self.fraction
        tosses = (1 - leaking) / 2
        if sides != "member":
            share = np.array([_NONE, leaking, 1.0])
            return share, np.array([p * _NONE, p * leaking, p * leaking + tosses])
        top = p * leaking / 2
        share = np.array([_NONE, leaking / 2, 1 - leaking / 2, 1.0])
        return share, np.array([p * _NONE, top, top + tosses, 0.5])

    def _parameter(self, claim: PlannedClaim) -> float:
        """Return the parameter of a claim that is true."""
        if isinstance(claim, GaussianDP):  # the curve whose fixed point is that of the response
            return 2 * float(normal_quantile(1 / (1 + math.exp(-self.epsilon))))
        return randomized_response(1, self.epsilon, seed=0).epsilon(claim.delta)

    def _pair(self, pairs: int, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return the confidence of guesses about pairs, and which are right."""
        leaks = rng.random(pairs) < self.fraction
        chance = np.where(leaks, 1 / (1 + math.exp(-self.epsilon)), 0.5)
        return leaks + rng.random(pairs), rng.random(pairs) < chance

    def _play(self, examples: int, seed: int, first: int, count: int) -> list[_core.Ranking]:
        return _core.play(
            self.epsilon,
            fraction=self.fraction,
            examples=examples,
            seed=seed,
            first=first,
            count=count,
        )


Truth: TypeAlias = Gaussian | Response


@dataclass(frozen=True, kw_only=True, eq=False)
class Power(Record):
    """What an audit is going to prove if the truth is as assumed.

    Parameters
    ----------
    m : int
        Examples.
    claim : PureDP, ApproxDP or GaussianDP
        The claim that is audited.
    truth : Gaussian or Response
        The truth that was assumed.
    confidence : float
        Confidence of the bound.
    cuts : str
        The cut policy in force.
    target : float
        The bound that was asked for.
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
    simulations : int
        Number of simulated audits.
    seed : int
        Their seed.
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

    def _flaw(self) -> str:
        if not (0 < self.confidence < 1 and 0 <= self.probability <= 1):
            return f"confidence is {self.confidence:g}, probability {self.probability:g}"
        ordered = self.low <= self.median <= self.high
        return "" if ordered else "low, median and high are not in this order"


@dataclass(frozen=True, kw_only=True, eq=False)
class CanariesNeeded(Record):
    """How many canaries it takes.

    Parameters
    ----------
    m : int or None
        The number, within 2 %; None if no number up to the limit will do.
    power : Power or None
        What an audit of so many proves or, if none will do, of the most that were tried; None if
        the target was known to be out of reach, and nothing was simulated.
    reason : str
        Why no number will do; empty if one does.
    """

    m: int | None
    power: Power | None
    reason: str = ""

    def _flaw(self) -> str:
        if (self.m is None) == bool(self.reason):
            return ""
        return f"m is {self.m}, and reason says {self.reason!r}"


def ceiling(
    m: int,
    guesses: int | None = None,
    confidence: float = 0.95,
    claim: PlannedClaim = _PURE_DP,
    *,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
) -> float:
    """Return the bound of a perfect attack: every guess is right.

    Parameters
    ----------
    m : int
        Examples, at least 1; at least 8 without `guesses`.
    guesses : int, optional
        Guesses, in [1, m], their number fixed in advance. If None, as many as the policy makes.
    confidence : float
        Confidence of the bound, in (0, 1).
    claim : PureDP, ApproxDP or GaussianDP
        The claim.
    cuts : CutPolicy, optional
        Without `guesses`, which cuts are tested: if None, what `audit` takes for the claim.
    sides : {"both", "member", "pairs"}
        Guess members and non-members, members only, or which of a pair of a random split is the
        member: then examples are pairs, and the truth is that of replacing one example.

    Returns
    -------
    float
        The bound on the claim's parameter; no audit with so many guesses, or of this policy,
        proves more.

    Raises
    ------
    OptionError, InputTypeError
        If an option is outside its range or of the wrong type.
    OptionError
        If both `guesses` and `cuts` are given, or claim and cuts do not go together.

    Examples
    --------
    >>> round(ceiling(1000, 200, 0.95), 3)
    4.194
    >>> ceiling(1000) < ceiling(1000, 1000)  # the search over cuts has its price
    True
    """
    choice(sides, "sides", Sides)
    instance(claim, "claim", _CLAIMS)
    beta = complement(confidence)
    if guesses is None:
        return _Plan.of(integer(m, "m", least=_FEWEST), beta, claim, cuts, sides).ceiling
    if cuts is not None:
        message = "give the number of guesses, or cuts=, which decide on it; not both"
        raise OptionError(message)
    made = integer(guesses, "guesses", least=1, most=integer(m, "m", least=1))
    return claim.lower_bound(made, made, m, beta, one_sided=sides == "member")


def best_guesses(
    m: int,
    confidence: float = 0.95,
    claim: PlannedClaim = _PURE_DP,
    *,
    truth: float | Truth | None = None,
    sides: Sides = "both",
) -> int:
    """Return the number of guesses, fixed in advance, that proves most on average.

    It is for ``Fixed(guesses)``. What `audit` takes for δ > 0 and for families is
    `OutsideIn`, which fixes no number: `power` tells its levels, and how many guesses it makes.

    Parameters
    ----------
    m : int
        Examples, at least 1 and at most 2^32 - 1.
    confidence : float
        Confidence of the bound, in (0, 1).
    claim : PureDP, ApproxDP or GaussianDP
        The claim.
    truth : float, Gaussian or Response, optional
        What is true, as for `power`; `Gaussian(1)`, what audits plan for, if None.
    sides : {"both", "member", "pairs"}
        As for `ceiling`.

    Returns
    -------
    int
        The best of 60 numbers between 1 and m.

    Raises
    ------
    OptionError, InputTypeError
        If an option is outside its range or of the wrong type.

    Examples
    --------
    >>> best_guesses(1000, truth=Gaussian(2)) < best_guesses(1000, truth=Response(2))
    True
    """
    integer(m, "m", least=1, most=_COUNTED)
    instance(claim, "claim", _CLAIMS)
    choice(sides, "sides", Sides)
    assumed = Gaussian(REFERENCE.mu) if truth is None else _as_truth(truth, claim)
    curve = assumed._curve(sides)  # noqa: SLF001
    return best_fixed(m, complement(confidence), claim, sides, curve)[0].guesses


def power(
    m: int,
    truth: float | Truth,
    *,
    target: float = 0.0,
    claim: PlannedClaim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    simulations: int = 200,
    seed: int = 0,
) -> Power:
    """Simulate audits to see what they prove if the truth is as assumed.

    Parameters
    ----------
    m : int
        Examples, at least 8 and at most 10^8.
    truth : float, Gaussian or Response
        What is true. A number is a value of the claim's parameter: for `PureDP` that of
        `Response`, for `ApproxDP` that of the `Gaussian` with this ε at the claim's δ, for
        `GaussianDP` that of `Gaussian`.
    target : float
        A bound to reach, at least 0.
    claim : PureDP, ApproxDP or GaussianDP
        The claim.
    confidence : float
        Confidence of the bound, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts are tested; if None, what `audit` takes for the claim.
    sides : {"both", "member", "pairs"}
        As for `ceiling`.
    simulations : int
        Audits to simulate, at least 1 and at most 10^6.
    seed : int
        Their seed, at least 0. The answer is the same for any number of threads.

    Returns
    -------
    Power
        Distribution of the bound, and how often it reaches `target`.

    Raises
    ------
    OptionError, InputTypeError
        If an option is outside its range or of the wrong type.
    OptionError
        If claim and cuts do not go together.

    Examples
    --------
    >>> found = power(200, 3.0, target=2.0)
    >>> found.median < 3.0 < found.ceiling
    True
    """
    integer(m, "m", least=_FEWEST, most=MOST_EXAMPLES)
    instance(claim, "claim", _CLAIMS)
    choice(sides, "sides", Sides)
    integer(simulations, "simulations", least=1, most=_MOST_SIMULATIONS)
    seed = integer(seed, "seed", least=0)
    goal = real(target, "target", least=0, below=math.inf)
    assumed, beta = _as_truth(truth, claim), complement(confidence)
    plan = _Plan.of(m, beta, claim, cuts, sides)
    proved = [plan.prove(one) for one in _games(assumed, m, sides, simulations, seed)]
    bounds = np.array([bound for bound, _ in proved])
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
        ceiling=plan.ceiling,
        guesses=int(np.median([made for _, made in proved])),
        levels=plan.levels,
        simulations=simulations,
        seed=seed,
    )


def canaries_needed(
    target: float,
    truth: float | Truth,
    *,
    probability: float = 0.8,
    claim: PlannedClaim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    simulations: int = 200,
    most: int = 100_000,
    seed: int = 0,
) -> CanariesNeeded:
    """Return how many canaries an audit needs to reach a bound if the truth is as assumed.

    Parameters
    ----------
    target : float
        The bound to reach, positive.
    truth : float, Gaussian or Response
        What is true, as for `power`.
    probability : float
        How sure the audit should be to reach it, in (0, 1).
    claim : PureDP, ApproxDP or GaussianDP
        The claim.
    confidence : float
        Confidence of the bound, in (0, 1).
    cuts : CutPolicy, optional
        Which cuts are tested, as for `power`.
    sides : {"both", "member", "pairs"}
        As for `ceiling`.
    simulations : int
        Audits to simulate for each number tried, at least 1 and at most 10^6.
    most : int
        The largest number tried, at least 8 and at most 10^8.
    seed : int
        Seed of the simulations, at least 0.

    Returns
    -------
    CanariesNeeded
        The number, and what an audit of so many proves.

    Raises
    ------
    OptionError, InputTypeError
        If an option is outside its range or of the wrong type.
    OptionError
        As for `power`.

    Notes
    -----
    Numbers are doubled until one will do, and then bisected; the answer is as uncertain as a share
    of `simulations` audits is.

    Examples
    --------
    >>> needed = canaries_needed(2.0, 3.0, simulations=50)
    >>> needed.m is not None and 30 < needed.m < 300
    True
    """
    goal = real(target, "target", above=0, below=math.inf)
    enough = real(probability, "probability", above=0, below=1)
    limit = integer(most, "most", least=_FEWEST, most=MOST_EXAMPLES)
    instance(claim, "claim", _CLAIMS)
    assumed = _as_truth(truth, claim)
    reason = beyond_truth(goal, assumed, claim, chance=enough, confidence=confidence)
    if reason:
        return CanariesNeeded(m=None, power=None, reason=reason)

    def at(m: int) -> Power:
        return power(
            m,
            assumed,
            target=goal,
            claim=claim,
            confidence=confidence,
            cuts=cuts,
            sides=sides,
            simulations=simulations,
            seed=seed,
        )

    def reached(m: int) -> float:
        return ceiling(m, None, confidence, claim, cuts=cuts, sides=sides)

    sizes = [min(_FEWEST << i, limit) for i in range((limit // _FEWEST).bit_length() + 1)]
    start = next((i for i, m in enumerate(sizes) if reached(m) >= goal), None)
    if start is None:
        reason = why_short(limit, reached(limit), sides)
        return CanariesNeeded(m=None, power=None, reason=reason)
    low, found = sizes[max(0, start - 1)], at(sizes[start])
    for m in sizes[start + 1 :]:
        if found.probability >= enough:
            break
        low, found = found.m, at(m)
    if found.probability < enough:
        return CanariesNeeded(m=None, power=found, reason=why_short(found.m, found, sides))
    while found.m - low > max(1.0, (_RATIO - 1) * found.m) and found.m > _FEWEST:
        middle = at((low + found.m) // 2)
        low, found = (low, middle) if middle.probability >= enough else (middle.m, found)
    return CanariesNeeded(m=found.m, power=found)


def units(sides: Sides) -> str:
    """Return what is counted."""
    return "pairs" if sides == "pairs" else "canaries"


def why_short(m: int, found: Power | float, sides: Sides) -> str:
    """Say that so many examples are too few: by the ceiling, or by what audits of them prove."""
    if isinstance(found, Power) and found.ceiling >= found.target:
        chance = f"{100 * found.probability:.3g} %"
        return f"{m:,} {units(sides)} prove {number(found.target)} with chance {chance} only"
    best = found.ceiling if isinstance(found, Power) else found
    return f"even a perfect attack on {m:,} {units(sides)} would prove {number(best)} only"


def beyond_truth(
    target: float, truth: Truth, claim: PlannedClaim, *, chance: float, confidence: float
) -> str:
    """Return why no audit reaches a target with some chance; empty if the truth allows it.

    At the truth itself a valid audit refutes with probability at most 1 - confidence.
    """
    most, beta = truth._parameter(claim), complement(confidence)  # noqa: SLF001
    if target < most or chance <= beta:
        return ""
    return (
        f"the target, {target:g}, is not below the truth, {most:.4g}: whatever the number of "
        f"examples, a valid audit proves so much with a chance of at most {percent(beta)}"
    )


def _as_truth(truth: float | Truth, claim: PlannedClaim) -> Truth:
    """Return the truth that a number stands for."""
    if isinstance(truth, Gaussian | Response):
        return truth
    value = real(truth, "truth", least=0, below=math.inf)
    if isinstance(claim, PureDP):
        return Response(value)
    if isinstance(claim, ApproxDP):
        return Gaussian(_gaussian_mu(value, claim.delta))
    return Gaussian(value)


def _gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ whose mechanism is (ε, δ)-DP."""
    low, high = 0.0, 1.0
    while gaussian(1, high, seed=0).delta(epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        within = gaussian(1, middle, seed=0).delta(epsilon) <= delta
        low, high = (middle, high) if within else (low, middle)
    return low


@dataclass(frozen=True)
class _Plan:
    """What an audit of so many examples proves, as a function of a ranking."""

    m: int
    beta: float
    sides: Sides
    policy: PathPolicy

    @classmethod
    def of(
        cls, m: int, beta: float, claim: PlannedClaim, cuts: CutPolicy | None, sides: Sides
    ) -> Self:
        """Return the plan of what `audit` does."""
        if cuts is not None and not isinstance(cuts, PathPolicy):
            message = (
                f"cuts={type(cuts).__name__} is not planned for: it has no cut that the order of "
                "the scores decides; plan with Fixed or KLScan"
            )
            raise OptionError(message)
        policy: PathPolicy
        if isinstance(claim, GaussianDP):
            policy = family_policy(cuts, claim, examples=m, sides=sides)
        elif isinstance(claim, ApproxDP):
            policy = approx_policy(cuts, claim.delta, examples=m, sides=sides)
        else:
            policy = default_scan(sides, beta) if cuts is None else cuts
        policy.check(m)
        return cls(m, beta, sides, policy)

    @property
    def name(self) -> str:
        """The policy that a caller would name."""
        return repr(self.policy.base if isinstance(self.policy, DerivedPolicy) else self.policy)

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of guesses that the policy names before labels are seen, if any."""
        return self.policy.ladder(self.m, self.beta, self.sides)

    @cached_property
    def prove(self) -> Callable[[_core.Ranking], tuple[float, int]]:
        """What a ranking proves, and the guesses made."""
        policy = self.policy
        if isinstance(policy, GridFamily) and policy.fixed_guesses is not None:
            return _prover_at(policy.fixed_guesses, policy, self.beta)
        orders = policy.orders(self.sides)

        def prove(ranking: _core.Ranking) -> tuple[float, int]:
            _, _, best = policy.best(ranking, orders, self.beta / len(orders))
            return max(0.0, best.logit), best.cut

        return prove

    @property
    def ceiling(self) -> float:
        """What a perfect attack on half members proves."""
        return self.prove(_perfect(self.m, self.sides))[0]


def _prover_at(
    guesses: int, policy: GridFamily, beta: float
) -> Callable[[_core.Ranking], tuple[float, int]]:
    """Return the audit at one number of guesses, which tests each count once only."""

    @cache
    def bound(made: int, right: int) -> tuple[float, int]:
        return float(policy.limits(np.array([made]), np.array([right]), beta)[0]), made

    orders = policy.orders(policy.sides)
    return lambda ranking: bound(*policy.paths(ranking, orders)[orders[0]].count(guesses))


def _games(
    assumed: Truth, m: int, sides: Sides, simulations: int, seed: int
) -> Iterator[_core.Ranking]:
    """Yield rankings of simulated games; of pairs, by confidence, with right ones as members."""
    if sides == "pairs":
        for number in range(simulations):
            yield _core.Ranking(*assumed._pair(m, Purpose.POWER_OF_PAIRS.rng(seed, number)))  # noqa: SLF001
        return
    stream, step = Purpose.POWER.derived(seed), max(1, _CHUNK // m)
    for first in range(0, simulations, step):
        yield from assumed._play(m, stream, first, min(step, simulations - first))  # noqa: SLF001


def _perfect(m: int, sides: Sides) -> _core.Ranking:
    scores: FloatArray = np.arange(m, dtype=np.float64)
    return _core.Ranking(scores, scores >= (0 if sides == "pairs" else m // 2))
