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
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import Sides
from leakbound.audits.policies.allowance import allowance
from leakbound.audits.policies.ladder import Kind, Ladder
from leakbound.claims import ApproxDP, Claim
from leakbound.claims.families import curve_at, search_of
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts.games import Game, Ties, inverted_warnings
from leakbound.cuts.policy import PATH_NAMES, Best, Policy, Proof, chance_explains, untested

LEAST_LEVEL = 1e-4
"""The least level of a test: smaller ones would need too many simulations."""
# ln of the ratio at which a reference is refuted, about; parts of the lattices of references
_CROSSED, _COARSE, _FINE = math.log(3.5), 26, 16
# The largest parameter where a family has none: no number of trials proves as much
_MOST = 32.0
# The least reference where a family has none, relative to 1/√m, and how much less is tested
_LEAST, _LESS = 0.5, 0.05
# The change of a parameter that moves a chance by about a probit, relative to 1/√m
_SCALE = 2.2
# Where guesses may stand out: at the top of the ranking, at its bottom, or at both
_End: TypeAlias = Literal["member_half", "nonmember_half", "interleaved"]
_ENDS: tuple[_End, ...] = ("member_half", "nonmember_half", "interleaved")
Counts: TypeAlias = NDArray[np.uint64]


class Reached(NamedTuple):
    """How far a ranking reaches: its members in cells, and the references on the way to θ.

    Each reference has a threshold: rankings whose statistic has this logarithm reach as far.
    """

    members: Counts
    theta: float
    references: list[tuple[_core.Reference, float]]


def pooled(curve: TradeOff) -> _core.PooledLaw:
    """Return A of two laws whose trade-off function is a curve, or one that allows more."""
    return _core.PooledLaw(*curve.corners())


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
        "leaks, is compared with simulations of its largest distribution under each curve. "
        "Parameters are tested from below, each by new simulations that count the ranking itself, "
        "up to the first that is not refuted."
    )
    claim: Claim
    trials: int

    @cached_property
    def cells(self) -> _core.Cells:
        """The cells of the ranking: between the ranks 1, 2, 3, 4, 6, 8, 11, … from either end."""
        return _core.Cells(self.trials)

    def worst(self, theta: float) -> _core.PooledLaw:
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
        """The values of the parameter between which references are."""
        low, high = search_of(self.claim)
        high = _MOST if math.isinf(high) else high
        return low or min(_LEAST / math.sqrt(self.trials), 1e-4 * high), high

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`."""
        scored, ranking, notes = game.ranking(self.ties)
        path, edges = ranking.path("member"), self.cells.edges[1:]

        def bound(reached: Reached) -> float:
            return self.ladder(reached, level, game.seed).bound(reached.theta)

        found = np.diff([path.count(edge)[1] for edge in edges], prepend=0).astype(np.uint64)
        reached = self.reached(found)
        proved = bound(reached)
        # The guesses that stand out most from the last reference
        excesses = reached.references[-1][0].ratios(found)[1:]
        kind, size = divmod(int(excesses.argmax()), len(self.cells.ends))
        end, cut = _ENDS[kind], self.cells.ends[size]
        top, bottom = found[: size + 1].sum(), cut - found[-size - 1 :].sum()
        guesses = 2 * cut if end == "interleaved" else cut
        right = int({"member_half": top, "nonmember_half": bottom}.get(end, top + bottom))
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
            perfect=lambda: bound(self.reached(self._above())),
            points=lambda most: untested(ranking.path(end), most),
        )

    def remarks(self, proof: Proof) -> tuple[str, ...]:
        """See `Policy.remarks`: scores look inverted."""
        return inverted_warnings(proof.examples)

    def reached(self, members: Counts) -> Reached:
        """Compare a ranking with references, whose parameters grow until its statistic is small.

        They are on a lattice, and then on finer ones. So any ranking that reaches as far has a
        large statistic where one of the lattices was left, or no smaller one at the end.
        """
        (low, high), parts = self.search, _COARSE
        passed = list[tuple[_core.Reference, float]]()
        while True:
            for theta in np.geomspace(low, high, parts + 1)[bool(passed) :].tolist():
                reference = _reference(self, theta)
                value = float(np.logaddexp.reduce(reference.ratios(members)))
                if value < _CROSSED:
                    break
                low = theta
            near = math.log(theta / low) * math.sqrt(self.trials) <= 2
            if near or value >= _CROSSED or theta == self.search[0]:
                return Reached(members, theta, [*passed, (reference, value)])
            passed, high, parts = [*passed, (reference, _CROSSED)], theta, _FINE

    def ladder(self, reached: Reached, level: float, seed: int) -> Ladder:
        """Return the search for the least private parameter that a ranking refutes."""
        # No ranking reaches further than that of a perfect attack, which simulations count anyway.
        perfect = self.cells.perfect(reached.members)
        references = [] if perfect else reached.references

        def reaching(theta: float, kind: Kind, index: int, draws: int, most: int) -> int:
            name = Purpose.TRIALS.derived(seed, int(kind == "rung"), index)
            return self.cells.reaching(
                self.worst(theta), references, number=draws, most=most, seed=name
            )

        least, last = self.search
        open_below = search_of(self.claim)[0] == 0
        return Ladder(
            reaching=reaching,
            level=level,
            search=(_LESS * least if open_below else least, last),
            scale=_SCALE / math.sqrt(self.trials),
        )

    def _above(self) -> Counts:
        """Return the members in each cell of a perfect attack on as many members as others."""
        edges = np.array(self.cells.edges)
        above: Counts = np.diff(np.minimum(edges, self.trials // 2)).astype(np.uint64)
        return above


@lru_cache(maxsize=256)
def _reference(policy: TrialsPolicy, theta: float) -> _core.Reference:
    """Return the statistic that has a parameter as its reference."""
    return policy.cells.reference(policy.worst(theta))
