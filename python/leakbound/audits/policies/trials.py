"""Independent trials: one statistic of the whole ranking, whose worst law is simulated.

The worst mechanism of a trade-off function f scores by the likelihood ratio of two laws that have
it: `docs/theory/trials.md` has theorem and proof. Of both laws together, the share u with the
largest ratios holds members of mass A(u). Ranked trials have uniform order statistics as their u,
whatever f, and given those at fixed ranks the members between them are binomial.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray, Sides
from leakbound.audits.policies.allowance import allowance
from leakbound.claims import ApproxDP, Claim
from leakbound.claims.families import curve_at, search_of
from leakbound.claims.tradeoff import TradeOff, convex_hull
from leakbound.cuts.games import Game, Ties, inverted_warnings
from leakbound.cuts.policy import PATH_NAMES, Best, Policy, Proof, chance_explains, untested

# Rankings that a test simulates: so many, or more for so many beyond the level; and at once
_SIMULATED, _BEYOND, _CHUNK = 10_000, 20, 2_000
LEAST_LEVEL = 1e-4
"""The least level of a test: smaller ones would need too many simulations."""
# Standard errors by which the level is lowered: enough for 30 tests of one search; and more where
# fewer rankings show that a test rejects
_LOWERED, _CLEARLY = 2.5, 5.0
# Deviations by which a shift, and an excess of guesses at an end, differ from the reference; and
# the largest change of log-odds, where cells are small
_SHIFT, _EXCESS, _STEEPEST = 2.5, 5.0, 4.0
# ln of the ratio at which a reference is refuted, about; parts of the lattices of references
_CROSSED, _COARSE, _FINE = math.log(3.5), 26, 16
# The largest parameter where a family has none: no number of trials proves as much
_MOST = 32.0
# Width at which the search for a bound ends, relative to 1/√m; roundings of equal statistics
_NARROW, _CLOSE = 0.05, 1e-9
# Where guesses may stand out: at the top of the ranking, at its bottom, or at both
_End: TypeAlias = Literal["member_half", "nonmember_half", "interleaved"]
_ENDS: tuple[_End, ...] = ("member_half", "nonmember_half", "interleaved")
# Corners of A: shares of both laws together, and the mass of members in them
Law: TypeAlias = tuple[FloatArray, FloatArray]


class Statistic(NamedTuple):
    """A mixture of likelihood ratios of leaks to a reference: ln Σ exp(slopes · members - offsets).

    The first is of a larger shift. Slopes never increase down the ranking.
    """

    slopes: FloatArray
    offsets: FloatArray
    threshold: float = _CROSSED

    def ratios(self, members: IntArray) -> FloatArray:
        """Return the logarithms of the ratios, for the members in each cell."""
        found: FloatArray = members @ self.slopes.T - self.offsets
        return found

    def reached(self, members: IntArray) -> BoolArray:
        """Return which rankings have at least the threshold."""
        with np.errstate(over="ignore"):
            total = np.exp(self.ratios(members) - self.threshold).sum(axis=1)
        enough: BoolArray = total >= 1 - _CLOSE
        return enough


class Reached(NamedTuple):
    """How far a ranking reaches: its members in cells, and the references on the way to θ."""

    members: IntArray
    theta: float
    references: list[Statistic]


@dataclass(frozen=True)
class Cells:
    """A ranking of trials between fixed ranks: 1, 2, 3, 4, 6, 8, 11, … from either end."""

    trials: int

    @cached_property
    def ends(self) -> IntArray:
        """The numbers of trials at an end."""
        half = self.trials // 2
        steps = np.rint(2 ** np.arange(0, math.log2(self.trials), 0.5)).astype(np.int64)
        return np.unique(np.append(steps[steps < half], half))

    @cached_property
    def edges(self) -> IntArray:
        """The ranks after which cells end, and 0."""
        return np.unique(np.concatenate([[0], self.ends, self.trials - self.ends, [self.trials]]))

    @cached_property
    def sizes(self) -> IntArray:
        """How many trials each cell has."""
        return np.diff(self.edges)

    @cached_property
    def excess(self) -> FloatArray:
        """For each number at the top, at the bottom and at both: 1 and -1 where guesses are."""
        top = (self.edges[1:] <= self.ends[:, None]).astype(np.float64)
        return np.concatenate([top, -top[:, ::-1], top - top[:, ::-1]])

    def above(self, members: IntArray | int) -> IntArray:
        """Return the members in each cell if they were all above the others."""
        held: IntArray = np.clip(members - self.edges[:-1], 0, self.sizes)
        return held

    def statistic(self, worst: Law) -> Statistic:
        """Return the statistic of a reference: half of it for a shift, half for all else alike."""
        part = self.edges / self.trials
        chance = np.diff(np.interp(part, *worst)) / np.diff(part)
        chance = np.minimum.accumulate(np.clip(chance, 1e-9, 1 - 1e-9))
        shapes = np.vstack([np.log(chance / (1 - chance)), self.excess])
        first = np.arange(len(shapes)) == 0
        deviation = np.sqrt(shapes**2 @ (self.sizes * chance * (1 - chance)))
        apart = np.where(first, _SHIFT, _EXCESS) / deviation
        slopes = shapes * np.minimum(apart, _STEEPEST / np.abs(shapes).max(axis=1))[:, None]
        weights = np.where(first, 0.5, 0.5 / len(self.excess))
        return Statistic(slopes, np.log1p(chance * np.expm1(slopes)) @ self.sizes - np.log(weights))

    def simulate(self, worst: Law, rng: np.random.Generator, number: int) -> IntArray:
        """Draw the members in each cell where scores are the likelihood ratios of two laws."""
        share, mass = worst
        slope = np.diff(mass) / np.diff(share)
        # 1. Of both laws together, the shares above the last trials of cells; after the last is 1.
        last = np.append(np.zeros(self.sizes.size - 1, dtype=np.int64), 1)
        gaps = rng.standard_gamma(self.sizes + last, (number, last.size)).cumsum(axis=1)
        above = np.concatenate([np.zeros((number, 1)), gaps / gaps[:, -1:]], axis=1)
        # 2. Those trials are members by the slope of A there, the others by its mean in the cell.
        place = np.clip(np.searchsorted(share, above) - 1, 0, slope.size - 1)
        held, wide = mass[place] + slope[place] * (above - share[place]), np.diff(above)
        there = slope[place[:, 1:]]
        within = np.divide(np.diff(held), wide, out=there.copy(), where=wide > 0)
        members = rng.binomial(self.sizes - 1 + last, np.clip(within, 0, 1))
        members[:, :-1] += rng.random((number, last.size - 1)) < there[:, :-1]
        return members


def pooled(curve: TradeOff) -> Law:
    """Return A of two laws whose trade-off function is a curve, or one that allows more."""
    level, missed = convex_hull(*curve.corners())
    share = np.append(0.0, (level + 1 - missed) / 2)
    rises = np.append(True, share[1:] > np.maximum.accumulate(share)[:-1])
    return share[rises], np.append(0.0, (1 - missed) / 2)[rises]


def of_trials(claim: Claim, trials: int) -> Policy:
    """Return the policy that a claim has for independent trials."""
    if isinstance(claim, ApproxDP):
        return allowance(claim, trials)
    return TrialsPolicy(claim=claim, trials=trials)


@dataclass(frozen=True, kw_only=True)
class TrialsPolicy(Policy):
    """All ranks at once, against the worst law of independent trials under a claim."""

    ties: ClassVar[Ties] = "broken"
    method: ClassVar[str] = (
        "One statistic of the whole ranking, a mixture of likelihood ratios of several shapes of "
        "leaks, is compared with simulations of its largest distribution under each curve. The "
        "level is lowered for the error of simulation."
    )
    claim: Claim
    trials: int

    @cached_property
    def cells(self) -> Cells:
        """The cells of the ranking."""
        return Cells(self.trials)

    def worst(self, theta: float) -> Law:
        """Return the worst law that a parameter allows: power is on runs with the example."""
        return pooled(curve_at(self.claim, theta, "member"))

    def searched(
        self, _examples: int, _sides: Sides, /, *, units: str = "", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        del units, recall  # a statistic of all ranks, and no threshold
        return (
            f"The bound is not from these guesses alone: the whole ranking of {self.trials:,} "
            "trials was tested, all ranks at once."
        )

    @property
    def search(self) -> tuple[float, float]:
        """The values of the parameter between which bounds are."""
        low, high = search_of(self.claim)
        high = _MOST if math.isinf(high) else high
        return low or min(0.5 / math.sqrt(self.trials), 1e-4 * high), high

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`."""
        scored, ranking, notes = game.ranking(self.ties)
        path, cells = ranking.path("member"), self.cells

        def bound(reached: Reached) -> float:
            return self._bound(reached, level, Purpose.TRIALS.rng(game.seed))

        found = np.diff([path.count(edge)[1] for edge in cells.edges[1:].tolist()], prepend=0)
        reached = self.reached(found)
        proved = bound(reached)
        # The guesses that stand out most from the last reference
        place = int(reached.references[-1].ratios(found)[1:].argmax())
        end, shape = _ENDS[place // cells.ends.size], cells.excess[place].astype(np.int64)
        guesses = int(cells.sizes @ np.abs(shape))
        right = int(np.where(shape > 0, found, cells.sizes - found) @ np.abs(shape))
        return Proof(
            policy=self,
            game=game,
            ranking=ranking,
            scored=scored,
            order=end,
            best=Best(proved, guesses, right),
            level=level,
            reason="" if proved else chance_explains(guesses, right),
            options={
                "cuts": {"type": "Ranks", "reference": reached.theta},
                "paths": [PATH_NAMES[one] for one in _ENDS],
                "level": level,
            },
            notes=notes,
            perfect=lambda: bound(self.reached(cells.above(self.trials // 2))),
            points=lambda most: untested(ranking.path(end), most),
        )

    def remarks(self, proof: Proof) -> tuple[str, ...]:
        """See `Policy.remarks`: scores look inverted."""
        return inverted_warnings(proof.examples)

    def reached(self, members: IntArray) -> Reached:
        """Compare a ranking with references, whose parameters grow until its statistic is small.

        They are on a lattice, and then on finer ones. So any ranking that reaches as far has a
        large statistic where one of the lattices was left, or no smaller one at the end.
        """
        (low, high), parts, passed = self.search, _COARSE, list[Statistic]()
        while True:
            for theta in np.geomspace(low, high, parts + 1)[bool(passed) :].tolist():
                statistic = _statistic(self, theta)
                value = float(np.logaddexp.reduce(statistic.ratios(members)))
                if value < _CROSSED:
                    break
                low = theta
            near = math.log(theta / low) * math.sqrt(self.trials) <= 2
            if near or value >= _CROSSED or theta == self.search[0]:
                return Reached(members, theta, [*passed, statistic._replace(threshold=value)])
            passed, high, parts = [*passed, statistic], theta, _FINE

    def _bound(self, reached: Reached, level: float, rng: np.random.Generator) -> float:
        """Return the least private parameter that a ranking refutes, 0 for none.

        The chance to reach as far grows with the parameter, so that any search will do.
        """
        # 1. Away from the reference in steps that double, until the answer is another.
        (least, largest), theta, step = self.search, reached.theta, 1 / math.sqrt(self.trials)
        up = self.refuted(theta, reached, level, rng)
        while True:
            further = min(max(theta * math.exp(step if up else -step), least), largest)
            if further == theta:
                return theta if up else 0.0
            if self.refuted(further, reached, level, rng) != up:
                break
            theta, step = further, 2 * step
        # 2. Halves.
        low, high = sorted((theta, further))
        while math.log(high / low) > _NARROW / math.sqrt(self.trials):
            middle = math.sqrt(low * high)
            refuted = self.refuted(middle, reached, level, rng)
            low, high = (middle, high) if refuted else (low, middle)
        return low

    def refuted(
        self, theta: float, reached: Reached, level: float, rng: np.random.Generator
    ) -> bool:
        """Return whether rankings under a parameter rarely reach as far: by new simulations."""
        worst, cells, many = self.worst(theta), self.cells, 0
        perfect = bool((reached.members == cells.above(reached.members.sum())).all())
        total = _CHUNK * math.ceil(max(_SIMULATED, _BEYOND / level) / _CHUNK)
        most = math.floor(total * level - _LOWERED * math.sqrt(total * level))
        for seen in range(_CHUNK, total + _CHUNK, _CHUNK):
            drawn = cells.simulate(worst, rng, _CHUNK)
            # no ranking reaches further than that of a perfect attack
            far = (drawn == cells.above(drawn.sum(axis=1, keepdims=True))).all(axis=1)
            for statistic in [] if perfect else reversed(reached.references):
                far[~far] = statistic.reached(drawn[~far])
            many += int(far.sum())
            if many > most or many <= seen * level - _CLEARLY * math.sqrt(seen * level):
                break
        return many <= most


@lru_cache(maxsize=256)
def _statistic(policy: TrialsPolicy, theta: float) -> Statistic:
    """Return the statistic that has a parameter as its reference."""
    return policy.cells.statistic(policy.worst(theta))
