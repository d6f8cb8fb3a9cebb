"""A search over a confidence set that shares nothing with the package's own: for what that missed.

Places are in the metric of the set: θ = θ̂ + L⁻ᵀw, H = LLᵀ minus the Hessian of the likelihood.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import FloatArray, SidesChoice
from leakbound.audits.road import Request
from leakbound.audits.zero_run.audit import correction_of
from leakbound.audits.zero_run.correction import Correction
from leakbound.audits.zero_run.game import ObservedGame, robust_scores
from leakbound.audits.zero_run.levels import MatchingPlan, planned_guesses
from leakbound.audits.zero_run.log_odds import OddsSet
from leakbound.audits.zero_run.matching import Match
from leakbound.audits.zero_run.options import CorrectionChoice, ZeroRunOptions
from leakbound.audits.zero_run.search import MatchingSearch
from leakbound.claims import Claim
from leakbound.cuts import Fixed, Proof
from leakbound.cuts.policy import Shift
from leakbound.propensity.confidence import ConfidenceSet
from leakbound.stats import poisson_binomial_epsilon


@dataclass(frozen=True)
class OverSet:
    """A correction, the confidence set that it works over, scores with membership, and a level."""

    correction: Correction
    odds: OddsSet
    game: ObservedGame
    level: float

    def proof(self) -> Proof:
        """Return the least that is proved over the set."""
        return self.correction.proof_at_level(self.odds, self.game, self.level)

    def matchings(self) -> list[MatchingSearch]:
        """Return the search of each test for which guesses were chosen."""
        assert isinstance(self.correction, Match)
        if isinstance(self.correction.cuts, Fixed):
            level = self.odds.level_of_draw(self.level)
            plan = MatchingPlan.of(self.correction, self.odds, self.game, level)
            return [MatchingSearch(planned_guesses(plan, level))]
        _, tests = self.correction.tests(self.odds, self.game, self.level)
        return [MatchingSearch(chosen) for chosen in tests]

    def reported(self, proof: Proof) -> MatchingSearch:
        """Return the search of the test that proves most."""
        parts: Any = proof.options.get("parts", [{"bound": 0.0}])
        best = max(range(len(parts)), key=lambda place: float(parts[place]["bound"]))
        return self.matchings()[best]


def over_set(
    scores: FloatArray,
    found: ConfidenceSet,
    *,
    claim: Claim,
    level: float = 0.04,
    sides: SidesChoice = "both",
    correction: CorrectionChoice = "conditional",
    guide: FloatArray | None = None,
    seed: int = 0,
) -> OverSet:
    """Return what is tested with scores as they are: nothing is taken off that features predict."""
    odds = OddsSet(
        found=found,
        guide=np.zeros(scores.size) if guide is None else guide,
        draws_needed=OddsSet.draws_needed_at(seed),
    )
    request = Request(claim=claim, sides=sides, seed=seed)
    game = ObservedGame(
        scores=scores, values=robust_scores(scores), member=found.member, sides=sides, seed=seed
    )
    how = correction_of(ZeroRunOptions(correction=correction), request, odds)
    return OverSet(how, odds, game, level)


def shift_of(proof: Proof) -> Shift:
    assert proof.shift is not None
    return proof.shift


Value = Callable[[FloatArray], FloatArray]
"""What is to be least: a number for each row of log-odds."""
Slope = Callable[[FloatArray], FloatArray]
"""A direction, in log-odds of audited rows, in which it is thought to fall."""

_RANDOM, _NEAR = 120, 60
"""Random members, half of them inside, and members near the one reported."""
_SCALES = (0.01, 0.05, 0.2, 0.5)
"""How near, in radii of the set."""
_BLENDS = (1.0, 0.5, 0.2, 0.05, 0.01)
"""How far a descent turns towards the slope."""
_DESCENTS, _STEPS, _TOGETHER = 2, 25, 6
"""Descents, their steps, and random places that a step tries."""
_LOWEST = 6
"""Members that are returned."""


@dataclass(frozen=True, eq=False)
class Places:
    """Members of a set by places in its own metric."""

    found: ConfidenceSet
    factor: FloatArray
    radius: float

    @classmethod
    def of(cls, found: ConfidenceSet) -> "Places":
        """Factor the Hessian at the estimate, of all labels."""
        _, design, log_odds = found.residuals()
        weights = expit(log_odds) * expit(-log_odds)
        hessian = (design * weights[:, None]).T @ design
        factor = np.asarray(np.linalg.cholesky(hessian), dtype=np.float64)
        return cls(found, factor, math.sqrt(found.squared_radius))

    def member(self, place: FloatArray) -> FloatArray:
        """Return coefficients at a place, taken back to the boundary if it is outside."""
        step = np.asarray(np.linalg.solve(self.factor.T, place), dtype=np.float64)
        coefficients: FloatArray = self.found.coefficients + step
        if self.found.contains(coefficients):
            return coefficients
        return self.found.core.leaves(step)

    def edge(self, place: FloatArray) -> FloatArray:
        """Return the place where the ray through another one leaves the set."""
        step = np.asarray(np.linalg.solve(self.factor.T, place), dtype=np.float64)
        return self.place(self.found.core.leaves(step))

    def place(self, coefficients: FloatArray) -> FloatArray:
        """Return the place of coefficients."""
        turned: FloatArray = self.factor.T @ (coefficients - self.found.coefficients)
        return turned

    def log_odds(self, places: FloatArray) -> FloatArray:
        """Return log-odds of the audited rows at places in the set, a row for each."""
        return np.array([self.found.log_odds(self.member(one)) for one in places])

    def uphill(self, slopes: FloatArray) -> FloatArray:
        """Return the direction of places in which Σ slopesᵢλᵢ grows fastest."""
        rows = np.column_stack([np.ones(self.found.audited), self.found.features])
        wide = np.zeros(self.factor.shape[0])
        wide[: rows.shape[1]] = slopes @ rows
        return np.asarray(np.linalg.solve(self.factor, wide), dtype=np.float64)


def least_found(
    found: ConfidenceSet, reported: FloatArray, value: Value, slope: Slope, rng: np.random.Generator
) -> list[FloatArray]:
    """Return log-odds at the lowest of random members, members near one, and ends of descents."""
    places = Places.of(found)
    width = places.factor.shape[0]

    def directions(count: int) -> FloatArray:
        drawn = rng.normal(size=(count, width))
        unit: FloatArray = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return unit

    def seen(several: list[FloatArray]) -> FloatArray:
        return value(places.log_odds(np.array(several)))

    edge = [places.edge(one) for one in directions(_RANDOM // 2)]
    inner = [one * rng.random() for one in map(places.edge, directions(_RANDOM // 2))]
    here = places.place(reported)
    scales = places.radius * np.resize(_SCALES, _NEAR)[:, None]
    near = [*(here + scales * directions(_NEAR))]
    near[1::2] = map(places.edge, near[1::2])
    # Along the slope at the estimate, and from it towards and beyond the member reported.
    ahead = places.uphill(slope(found.log_odds()))
    aimed = [places.edge(one) for one in (ahead, -ahead, -here) if np.linalg.norm(one) > 0]
    aimed += [share * here for share in (0.25, 0.5, 0.75, 0.9, 0.97)]
    looked_at = edge + inner + near + aimed
    values = seen(looked_at)
    order = np.argsort(values, kind="stable")
    chosen = [*order[: _DESCENTS // 2], *rng.choice(len(looked_at), _DESCENTS // 2, replace=False)]
    starts = [(float(values[k]), looked_at[k]) for k in map(int, chosen)]
    starts.append((float(seen([here])[0]), here))
    ends = [_descend(places, *start, seen, slope, directions) for start in starts]
    ends += [(float(values[k]), looked_at[k]) for k in map(int, order[:_LOWEST])]
    ends.sort(key=lambda one: one[0])
    return list(places.log_odds(np.array([place for _, place in ends[:_LOWEST]])))


def _descend(
    places: Places,
    least: float,
    place: FloatArray,
    seen: Callable[[list[FloatArray]], FloatArray],
    slope: Slope,
    directions: Callable[[int], FloatArray],
) -> tuple[float, FloatArray]:
    """Turn a place towards where the slope points to, or at random, as long as either helps."""
    reach = 0.1
    for _ in range(_STEPS):
        goal = places.uphill(slope(places.log_odds(place[None])[0]))
        tried = [place + reach * places.radius * step for step in directions(_TOGETHER)]
        if np.linalg.norm(goal) > 0:
            tried += [place + blend * (places.edge(goal) - place) for blend in _BLENDS]
        tried += [places.edge(one) for one in tried if np.linalg.norm(one) > 0]
        values = seen(tried)
        best = int(np.argmin(values))
        if values[best] < least:
            place, least = places.place(places.member(tried[best])), float(values[best])
            reach *= 1.5
        else:
            reach *= 0.5
            if reach < 0.01:
                break
    return least, place


def missed_by_offsets(
    found: ConfidenceSet, result: Proof, level: float, rng: np.random.Generator
) -> float:
    """Return by how much the exact ε of pure DP is lower at a member found here than reported."""
    shift = shift_of(result)
    rows, signs, correct = shift.rows, shift.signs, result.best.successes

    def value(log_odds: FloatArray) -> FloatArray:
        offsets = log_odds[:, rows] * signs
        counts = np.full(len(offsets), correct)
        proved: FloatArray = np.maximum(0.0, poisson_binomial_epsilon(counts, offsets, beta=level))
        return proved

    def slope(log_odds: FloatArray) -> FloatArray:
        offsets = log_odds[rows] * signs
        epsilon = poisson_binomial_epsilon(np.array([correct]), offsets[None], beta=level)[0]
        tilted = _tilt(offsets, correct)
        slopes = np.zeros(log_odds.size)
        slopes[rows] = signs * (expit(tilted + offsets) - expit(epsilon + offsets))
        return slopes

    lowest = least_found(found, shift.coefficients, value, slope, rng)
    return result.bound - float(value(np.array(lowest)).min())


def _tilt(offsets: FloatArray, correct: int) -> float:
    """Return the x with Σ σ(x + offset) = correct, by bisection."""
    low, high = -50.0, 50.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if expit(middle + offsets).sum() > correct else (middle, high)
    return low


def missed_by_matching(matching: MatchingSearch, result: Proof, rng: np.random.Generator) -> float:
    """Return by how much less matching proves at a member found here."""
    chosen, shift = matching.chosen, shift_of(result)
    found, game = chosen.plan.odds.found, chosen.plan.game
    claim = chosen.plan.correction.claim
    right = np.zeros(found.audited, dtype=np.bool_)
    right[shift.rows] = found.member[shift.rows] == (shift.signs > 0)
    made = np.zeros(found.audited)
    first = slice(2 * chosen.guesses)
    made[shift.rows[first]] = shift.signs[first]

    def value(log_odds: FloatArray) -> FloatArray:
        # what the recursion makes of the counts; parts of a correct guess tell equal ones apart
        table = matching.reached(log_odds)
        proved = (roughly(*matching.whole_counts(one)) for one in table)
        nearly: FloatArray = table[:, 2] - 0.1 * table[:, 0]
        return np.array(list(proved)) + 1e-6 * nearly

    @cache
    def roughly(correct: int, guesses: int, kept: int) -> float:
        if chosen.levels:
            return chosen.proved((correct, guesses, kept), roughly=True)
        return claim.lower_bound(
            correct, guesses, kept, chosen.level, test="recursion", one_sided=game.one_sided
        )

    def slope(log_odds: FloatArray) -> FloatArray:
        # log-odds for correct guesses drop them; against wrong ones, those are kept
        z = log_odds * made
        kept = np.exp(-np.maximum(np.where(right, z, -z), 0.0))
        slopes: FloatArray = made * np.where(right, z > 0, z < 0) * kept
        return slopes

    lowest = np.array(least_found(found, shift.coefficients, value, slope, rng))
    proved = [
        matching.chosen.proved(matching.whole_counts(one)) for one in matching.reached(lowest)
    ]
    return result.bound - min(proved)
