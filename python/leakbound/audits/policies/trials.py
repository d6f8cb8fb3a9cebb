"""Independent trials: one statistic of the whole ranking, or guesses with an allowance.

The worst mechanism of a trade-off function f scores by the likelihood ratio of two laws that have
it: `docs/theory/trials.md` has theorem and proof. Of both laws together, the share u with the
largest ratios holds members of mass A(u). Ranked trials have uniform order statistics as their u,
whatever f, and given those at fixed ranks the members between them are binomial.

Under (ε, δ)-DP guesses may be chosen in any way: each trial is randomised response at ε, or fails
and tells its coin, with probability δ and whatever the coin. So the number of trials that fail is
binomial, and it is all that a choice of guesses can exploit.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.streams import Purpose
from leakbound._base.types import JsonObject, JsonValue, Sides, Strings
from leakbound.audits.policies.ladder import Kind, MonteCarloLadder
from leakbound.claims import ApproxDP, Claim
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import OutsideIn, SecondLook
from leakbound.cuts.games import Game, inverted_warnings
from leakbound.cuts.look import Look, Part, Parts
from leakbound.cuts.outside_in import Allowed, LadderPolicy, planned_rule
from leakbound.cuts.policy import (
    PATH_NAMES,
    Best,
    BestCut,
    DerivedPolicy,
    Policy,
    Proof,
    chance_explains,
    untested,
)


def allowance(claim: ApproxDP, trials: int) -> Parts:
    """Return the tests of independent trials: outside-in, and a second look."""
    cuts = SecondLook()
    ladder = TrialsOutsideIn(base=OutsideIn(), delta=claim.delta, trials=trials)
    parts = Part("outside-in", ladder, 1 - cuts.look), Part("look", Look(ladder=ladder), cuts.look)
    return Parts(base=cuts, parts=parts)


@dataclass(frozen=True, kw_only=True)
class TrialsOutsideIn(LadderPolicy, DerivedPolicy[OutsideIn]):
    """The number of guesses chosen by labels from the outside in, of which some may be failures."""

    free = True
    method = (
        f"{OutsideIn.design} Where scores have few values, it lies between two of them, and labels "
        "of a part of each value choose it. Labels that are tested do not influence the choice. Of "
        "m trials, a binomial number F fails with probability δ each. For each number k of "
        "failures, k is taken off the guesses and off the right ones, and Clopper and Pearson's "
        "limit is taken at a probability of error fixed in advance, whose mean over F is the error "
        "probability; the smallest of these limits counts."
    )
    delta: float
    trials: int

    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`: planned for these limits."""
        return planned_rule(self.base, examples, level, sides, "trials", self.delta)

    def allowed(self, level: float, /) -> Allowed:
        """See `LadderPolicy.allowed`: scores may choose, as the choice is free."""
        return tuple(self._levels_of_failures(level).kappas)

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """See `LadderPolicy.limit`."""
        return self._levels_of_failures(level).limit(guesses, correct)

    def told(self, best: BestCut, level: float, /) -> JsonObject:
        """See `PathPolicy.told`: numbers of failures too, and the level of each."""
        said: Any = super().told(best, level)["outside_in"]
        failures: list[JsonValue] = [[most, part] for most, part in self.allowed(level)]
        return {"outside_in": said | {"failures": failures}}

    def _levels_of_failures(self, level: float) -> _core.Allowance:
        """Return the levels for each number of failures, which no score and no label chose."""
        return _allowance_for_failures(
            self.trials, delta=self.delta, level=shares.ALLOWANCE.of(level)
        )


@lru_cache(maxsize=256)
def _allowance_for_failures(trials: int, delta: float, level: float) -> _core.Allowance:
    """Return the levels for each number of failures among so many trials."""
    return _core.Allowance(trials, delta, level)


LEAST_LEVEL = 1e-4
"""The least level of a test: smaller ones would need too many simulations."""
# ln of the ratio at which a reference is refuted, about
_LN_REFUTED = math.log(3.5)
# Parts of the lattices of references: of the first, and of those in one of its parts
_COARSE_PARTS = 26
_FINE_PARTS = 16
# The largest parameter where a family has none: no number of trials proves as much
_LARGEST_PARAMETER = 32.0
# The least reference where a family has none, relative to 1/√m, and how much less is tested
_LEAST_REFERENCE = 0.5
_LEAST_TESTED_SHARE = 0.05
# The change of a parameter that moves a chance by about a probit, relative to 1/√m
_PROBIT_SCALE = 2.2
# Where guesses may stand out: at the top of the ranking, at its bottom, or at both
_EndOfRanking: TypeAlias = Literal["member_half", "nonmember_half", "interleaved"]
_ENDS_OF_RANKING: tuple[_EndOfRanking, ...] = ("member_half", "nonmember_half", "interleaved")
Counts: TypeAlias = NDArray[np.uint64]


class Statistic(NamedTuple):
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

    ties = "broken"
    method = (
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
        return pooled(self.claim.curve(theta, "member"))

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
        low, high = self.claim.search
        if math.isinf(high):
            high = _LARGEST_PARAMETER
        if not low:
            low = min(_LEAST_REFERENCE / math.sqrt(self.trials), 1e-4 * high)
        return low, high

    def audit(self, game: Game, level: float, /) -> Proof:
        """See `Policy.audit`."""
        scored, ranking, notes = game.ranking(self.ties)
        path = ranking.path("member")

        def bound(statistic: Statistic) -> float:
            return self.ladder(statistic, level, game.seed).bound(statistic.theta)

        members_above = [path.count(cell_edge)[1] for cell_edge in self.cells.edges[1:]]
        members_in_cells = np.diff(members_above, prepend=0).astype(np.uint64)
        statistic = self.statistic(members_in_cells)
        largest_refuted = bound(statistic)
        end, guesses, correct = self._guesses_standing_out(statistic)
        reason = ""
        if not largest_refuted:
            reason = chance_explains(guesses, correct)
        return Proof(
            policy=self,
            game=game,
            ranking=ranking,
            scored=scored,
            order=end,
            best=Best(largest_refuted, guesses, correct),
            level=level,
            reason=reason,
            options={
                "cuts": {"type": "Ranks", "reference": statistic.theta},
                "paths": [PATH_NAMES[end_of_ranking] for end_of_ranking in _ENDS_OF_RANKING],
                "level": level,
            },
            notes=notes,
            perfect=lambda: bound(self.statistic(self._members_of_perfect_attack())),
            points=lambda most: untested(ranking.path(end), most),
        )

    def _guesses_standing_out(self, statistic: "Statistic") -> tuple[_EndOfRanking, int, int]:
        """Return the guesses that stand out most from the last reference, and how many are right.

        They are at one end of the ranking, or as many at both.
        """
        members_in_cells = statistic.members
        last_reference, _ = statistic.references[-1]
        ln_likelihood_ratios = last_reference.ratios(members_in_cells)[1:]
        largest_ratio = int(ln_likelihood_ratios.argmax())
        end_index, last_cell = divmod(largest_ratio, len(self.cells.ends))
        cut = self.cells.ends[last_cell]
        correct_at_top = int(members_in_cells[: last_cell + 1].sum())
        correct_at_bottom = cut - int(members_in_cells[-last_cell - 1 :].sum())
        end = _ENDS_OF_RANKING[end_index]
        if end == "member_half":
            return end, cut, correct_at_top
        if end == "nonmember_half":
            return end, cut, correct_at_bottom
        return end, 2 * cut, correct_at_top + correct_at_bottom

    def remarks(self, proof: Proof) -> Strings:
        """See `Policy.remarks`: scores look inverted."""
        return inverted_warnings(proof.examples)

    def statistic(self, members: Counts) -> Statistic:
        """Compare a ranking with references, whose parameters grow until its statistic is small.

        They are on a lattice, and then on finer ones. So any ranking that reaches as far has a
        large statistic where one of the lattices was left, or no smaller one at the end.
        """
        least_theta, largest_theta = self.search
        last_refuted = least_theta
        lattice = np.geomspace(least_theta, largest_theta, _COARSE_PARTS + 1)
        passed_references = list[tuple[_core.Reference, float]]()
        while True:
            for theta in lattice.tolist():
                reference = _reference_at(self, theta)
                ln_statistic = float(np.logaddexp.reduce(reference.ratios(members)))
                if ln_statistic < _LN_REFUTED:
                    break
                last_refuted = theta
            is_near = math.log(theta / last_refuted) * math.sqrt(self.trials) <= 2
            if is_near or ln_statistic >= _LN_REFUTED or theta == least_theta:
                references = [*passed_references, (reference, ln_statistic)]
                return Statistic(members, theta, references)
            passed_references.append((reference, _LN_REFUTED))
            lattice = np.geomspace(last_refuted, theta, _FINE_PARTS + 1)[1:]

    def ladder(self, statistic: Statistic, level: float, seed: int) -> MonteCarloLadder:
        """Return the search for the least private parameter that a ranking refutes."""
        references = statistic.references
        # No ranking reaches further than that of a perfect attack, which simulations count anyway.
        if self.cells.perfect(statistic.members):
            references = []

        def reaching(theta: float, kind: Kind, index: int, draws: int, most: int) -> int:
            is_rung = int(kind == "rung")
            seed_of_draws = Purpose.TRIALS.derived(seed, is_rung, index)
            return self.cells.reaching(
                self.worst(theta), references, number=draws, most=most, seed=seed_of_draws
            )

        least_theta, largest_theta = self.search
        smallest_of_family, _ = self.claim.search
        if smallest_of_family == 0:
            least_theta *= _LEAST_TESTED_SHARE
        return MonteCarloLadder(
            reaching=reaching,
            level=level,
            search=(least_theta, largest_theta),
            scale=_PROBIT_SCALE / math.sqrt(self.trials),
        )

    def _members_of_perfect_attack(self) -> Counts:
        """Return the members in each cell of a perfect attack on as many members as others."""
        members_above = np.minimum(self.cells.edges, self.trials // 2)
        return np.diff(members_above).astype(np.uint64)


@lru_cache(maxsize=256)
def _reference_at(policy: TrialsPolicy, theta: float) -> _core.Reference:
    """Return the statistic that has a parameter as its reference."""
    return policy.cells.reference(policy.worst(theta))
