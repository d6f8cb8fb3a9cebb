"""Which claim to audit and which cuts to test: ways to reach one target, side by side."""

from dataclasses import dataclass

from leakbound._base.records import Record
from leakbound._base.types import Sides
from leakbound._base.validation import integer, real
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import CutPolicy, Fixed, OutsideIn, UnionBound
from leakbound.planning.forecast import (
    PlannedClaim,
    PolicyAt,
    Power,
    Truth,
    as_truth,
    best_guesses,
    beyond_truth,
    canaries_needed,
    ceiling,
    chance_is_short,
    cuts_at,
    gaussian_mu,
    perfect_is_short,
    policy_name,
    power,
)

__all__ = ["FAMILY", "FIXED", "Choice", "Comparison", "compare"]

_PURE_DP = PureDP()
_CLOSE = 1.1
"""Numbers of canaries within this factor are as good; so are mean bounds within its root."""
_WIDER = 2
"""Other ways are looked at up to so many times the canaries of the best one."""
FAMILY = "it holds only if the mechanism obeys some Gaussian trade-off function"
FIXED = "the number of guesses is best for the assumed truth only"


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Record):
    """One way to audit: what it takes, or proves, and what it costs.

    Parameters
    ----------
    claim : PureDP, ApproxDP or GaussianDP
        The claim that is audited.
    cuts : str
        The cut policy in force; for a number of guesses that depends on that of examples, the one
        of `power`.
    target : float
        The bound to reach, in units of this claim's parameter.
    m : int or None
        Examples it takes; None if it does not reach the target.
    power : Power or None
        What an audit proves: of so many examples, or of the most that were tried; None if nothing
        had to be simulated.
    reason : str
        Why the target is not reached; empty if it is.
    costs : tuple of str
        What the choice rests on, besides what every audit of coins does.
    """

    claim: PlannedClaim
    cuts: str
    target: float
    m: int | None
    power: Power | None
    reason: str
    costs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Record):
    """Ways to reach a target, the one to use first.

    Parameters
    ----------
    claim : PureDP, ApproxDP or GaussianDP
        The claim that was asked about.
    target, probability : float
        The bound to reach, in units of that claim, and how sure the audit should be to reach it.
    impossible : str
        Why no audit reaches the target; empty unless the truth rules it out.
    asked : Choice
        What was asked about: the claim, with the cuts named or the audit's own.
    choices : tuple of Choice
        What was compared, the best first.
    """

    claim: PlannedClaim
    target: float
    probability: float
    impossible: str
    asked: Choice
    choices: tuple[Choice, ...]

    @property
    def best(self) -> Choice | None:
        """What to use; None if nothing reaches the target."""
        return next((one for one in self.choices if one.m is not None), None)

    @property
    def without_costs(self) -> Choice | None:
        """The best that rests on nothing more than every audit does; None if none is left."""
        return next((one for one in self.choices if one.m is not None and not one.costs), None)


@dataclass(frozen=True, kw_only=True)
class _Way:
    """A claim and a policy, and the target in units of the claim."""

    claim: PlannedClaim
    cuts: CutPolicy | PolicyAt | None
    target: float
    costs: tuple[str, ...] = ()


def compare(
    target: float,
    truth: float | Truth,
    *,
    m: int | None = None,
    probability: float = 0.8,
    claim: PlannedClaim = _PURE_DP,
    confidence: float = 0.95,
    cuts: CutPolicy | None = None,
    sides: Sides = "both",
    simulations: int = 200,
    most: int = 100_000,
    seed: int = 0,
) -> Comparison:
    """Compare claims and cuts by what it takes to prove a bound, if the truth is as assumed.

    Policies compared are the audit's own, `OutsideIn`, a union over few cuts, and the best fixed
    number of guesses, as far as the claim has them; the scan under δ > 0, which costs more time and
    proves less, only if it is named. A bound on ε at some δ > 0 also follows from
    one on μ of Gaussian DP, which is compared where the truth is Gaussian: it takes fewer examples,
    and holds within the family only.

    Parameters
    ----------
    target : float
        The bound to reach, positive, in units of `claim`.
    truth : float, Gaussian or Response
        What is true, as for `power`.
    m : int, optional
        Examples of the audit. If None, the number that each choice needs is looked for.
    probability : float
        How sure the audit should be to reach the target, in (0, 1).
    claim : PureDP, ApproxDP or GaussianDP
        The claim to prove a bound of.
    confidence : float
        Confidence of the bound, in (0, 1).
    cuts : CutPolicy, optional
        A policy that was thought of, compared with the others; if None, what `audit_one_run` takes.
    sides : {"both", "member", "pairs"}
        As for `power`.
    simulations : int
        Audits to simulate for each number tried, at least 1 and at most 10^6.
    most : int
        The largest number of examples tried, at least 8 and at most 10^8.
    seed : int
        Seed of the simulations, at least 0.

    Returns
    -------
    Comparison
        The choices, the best first. Of those about as good, the one that assumes least.

    Raises
    ------
    OptionError, OptionTypeError
        If an option is outside its range or of the wrong type.
    IncompatibleOptionsError
        As for `power`.

    Examples
    --------
    >>> found = compare(2.0, 3.0, simulations=30)
    >>> found.best.m <= found.asked.m
    True
    >>> compare(2.0, 1.0).impossible[:26]
    'the target, 2, is not belo'
    """
    goal = real(target, "target", above=0, below=float("inf"))
    real(probability, "probability", above=0, below=1)
    integer(most, "most", least=8)
    assumed = as_truth(truth, claim)
    task = _Task(
        truth=assumed,
        probability=probability,
        confidence=confidence,
        sides=sides,
        simulations=simulations,
        seed=seed,
    )
    first, *others = _ways(claim, goal, cuts, task)
    impossible = beyond_truth(goal, assumed, claim, chance=probability, confidence=confidence)
    if impossible:
        found = [task.refused(first, most if m is None else m, impossible)]
    elif m is not None:
        found = [task.at(one, m) for one in (first, *others)]
    else:
        found = [task.search(first, most)]
        for way in others:
            least = min((one.m for one in found if one.m is not None), default=None)
            limit = most if least is None else max(8, min(most, _WIDER * least))
            found.append(task.search(way, limit))
    return Comparison(
        claim=claim,
        target=goal,
        probability=float(probability),
        impossible=impossible,
        asked=found[0],
        choices=tuple(_ranked(found, by_bound=m is not None)),
    )


@dataclass(frozen=True, kw_only=True)
class _Task:
    """What all choices have in common."""

    truth: Truth
    probability: float
    confidence: float
    sides: Sides
    simulations: int
    seed: int

    def search(self, way: _Way, most: int) -> Choice:
        """Look for the number of examples that a choice takes."""
        needed = canaries_needed(
            way.target,
            self.truth,
            probability=self.probability,
            claim=way.claim,
            confidence=self.confidence,
            cuts=way.cuts,
            sides=self.sides,
            simulations=self.simulations,
            most=most,
            seed=self.seed,
        )
        if needed.power is None:
            return self.refused(way, most, needed.reason)
        return _choice(way, needed.m, needed.power, needed.reason)

    def at(self, way: _Way, m: int) -> Choice:
        """Simulate audits of so many examples, unless even a perfect attack would not do."""
        cuts = cuts_at(way.cuts, m)
        best = ceiling(m, None, self.confidence, way.claim, cuts=cuts, sides=self.sides)
        if best < way.target:
            return self.refused(way, m, perfect_is_short(m, best, self.sides))
        found = power(
            m,
            self.truth,
            target=way.target,
            claim=way.claim,
            confidence=self.confidence,
            cuts=cuts,
            sides=self.sides,
            simulations=self.simulations,
            seed=self.seed,
        )
        short = chance_is_short(found, self.sides) if found.probability < self.probability else ""
        return _choice(way, None if short else m, found, short)

    def refused(self, way: _Way, m: int, reason: str) -> Choice:
        """Return a choice that was not simulated, since it cannot do."""
        cuts = cuts_at(way.cuts, m)
        return Choice(
            claim=way.claim,
            cuts=policy_name(m, self.confidence, way.claim, cuts, self.sides),
            target=way.target,
            m=None,
            power=None,
            reason=reason,
            costs=way.costs,
        )


def _choice(way: _Way, m: int | None, found: Power, reason: str) -> Choice:
    return Choice(
        claim=way.claim,
        cuts=found.cuts,
        target=way.target,
        m=m,
        power=found,
        reason=reason,
        costs=way.costs,
    )


def _ways(
    claim: PlannedClaim,
    target: float,
    cuts: CutPolicy | None,
    task: _Task,
) -> list[_Way]:
    """Return what is compared, what was asked about first."""
    policies: list[CutPolicy | None] = [None]
    if isinstance(claim, PureDP):
        policies += [OutsideIn(), UnionBound(grid="geometric")]
    elif isinstance(claim, ApproxDP):
        policies += [UnionBound(grid="geometric")]
    if cuts is not None:
        policies = [cuts, *(one for one in policies if one != cuts)]
    within = (FAMILY,) if isinstance(claim, GaussianDP) else ()
    costs = [(*within, FIXED) if isinstance(one, Fixed) else within for one in policies]
    ways = [
        _Way(claim=claim, cuts=policy, target=target, costs=cost)
        for policy, cost in zip(policies, costs, strict=True)
    ]
    others = [(claim, target, within)]
    if isinstance(claim, ApproxDP) and task.truth.is_gaussian:
        family, mu = GaussianDP(), gaussian_mu(target, claim.delta)
        others.append((family, mu, (FAMILY,)))
        # next, since it sets the limit for all others
        ways.insert(1, _Way(claim=family, cuts=None, target=mu, costs=(FAMILY,)))
    for one, goal, cost in others:

        def fixed(m: int, one: PlannedClaim = one) -> CutPolicy:
            return Fixed(best_guesses(m, task.confidence, one, truth=task.truth, sides=task.sides))

        ways.append(_Way(claim=one, cuts=fixed, target=goal, costs=(*cost, FIXED)))
    return ways


def _ranked(found: list[Choice], *, by_bound: bool) -> list[Choice]:
    """Return choices, the best first: of those about as good as the best, what assumes least."""

    def value(one: Choice) -> float:
        """Return what is to be large: the bound in the units asked about, or few examples."""
        if one.power is None:
            return 0.0
        if not by_bound:
            return 1 / one.m if one.m is not None else one.power.probability * 1e-9
        return _in_units(one.power.mean, one.claim, found[0].claim)

    close = _CLOSE**0.5 if by_bound else _CLOSE
    ordered = sorted(found, key=lambda one: (one.m is None, -value(one)))
    best = ordered[0]
    near = [
        one
        for one in ordered
        if (one.m is None) == (best.m is None) and value(one) * close >= value(best)
    ]
    near.sort(key=lambda one: len(one.costs))
    return near + [one for one in ordered if one not in near]


def _in_units(bound: float, claim: PlannedClaim, asked: PlannedClaim) -> float:
    """Return a bound on one claim as one on what was asked about."""
    if isinstance(claim, GaussianDP) and isinstance(asked, ApproxDP):
        return float(TradeOff.gaussian(bound).epsilon(asked.delta))
    return bound
