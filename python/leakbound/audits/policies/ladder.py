"""A ladder of exact Monte Carlo tests: which parameters are refuted, where chances are simulated.

Parameters are tested from below, each once, up to the first that is not refuted.
`docs/theory/trials.md` has theorem and proof: a bound above the truth needs a refutation of the
first rung at or above it, whatever chose the rungs. So draws that chose a rung are never counted
for it, and each rung has a stream of draws that nothing else reads.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["pilot", "rung"]
Reaching: TypeAlias = Callable[[float, Kind, int, int, int], int]
# Draws of a rung, and of the pilot at each place, or as many as give so many beyond the level
_RUNG_DRAWS = 2_000
_PILOT_DRAWS = 500
_DRAWS_BEYOND_LEVEL = 20
# In probits: how far below the level the first rung is, at least and about, and how far the next
# place of the pilot is, at most
_LEAST_BELOW_LEVEL = 0.5
_USUAL_BELOW_LEVEL = 0.9
_NEAR_PROBITS = 2.0
# In probits: the least step between rungs, and how far below the crossing expected a step ends
_LEAST_STEP = 0.1
_DEVIATIONS_BELOW_CROSSING = 2.5
# Part of what lies between two places, from whose ends the next one stays away
_MARGIN_OF_BRACKET = 0.25
# The width, in probits, at which a chance jumps
_JUMP_WIDTH = 0.1
# How much the usual slope counts, as the inverse of its squared relative error
_PRIOR_WEIGHT = 4.0
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class MonteCarloLadder:
    """The search for the largest parameter that is refuted at a level.

    ``reaching(theta, kind, index, draws, most)`` returns how many of some draws at θ reach as far
    as what was observed, ``most + 1`` if more than `most` do. The draws of a kind and index are a
    stream of their own. The chance to reach as far never falls as θ grows. `scale` is the change
    of a θ up to 1 that moves this chance by about a probit.
    """

    reaching: Reaching
    level: float
    search: tuple[float, float]
    scale: float

    @property
    def draws(self) -> int:
        """How many draws the test of a rung has."""
        return max(_RUNG_DRAWS, math.ceil(_DRAWS_BEYOND_LEVEL / self.level))

    def bound(self, start: float) -> float:
        """Return the last parameter refuted, 0 for none; the pilot begins at `start`."""
        theta, probit_line = self._first_rung(start)
        _, largest_theta = self.search
        refuted_theta = 0.0
        for index in count():
            draws_reaching = self.refuted(theta, index)
            if draws_reaching is None:
                break
            refuted_theta = theta
            if theta == largest_theta:
                break
            probit_line.add(theta, draws_reaching, self.draws)
            least_next = theta + _LEAST_STEP / probit_line.slope
            expected_next = probit_line.below(_DEVIATIONS_BELOW_CROSSING)
            theta = min(max(least_next, expected_next), largest_theta)
        return refuted_theta

    def refuted(self, theta: float, index: int) -> int | None:
        """Return how many draws of a rung reach as far; None if they do not refute θ.

        The exact test: (1 + count)/(draws + 1) is at most the level.
        """
        most_draws_reaching = math.floor(self.level * (self.draws + 1)) - 1
        if most_draws_reaching < 0:
            return None
        draws_reaching = self.reaching(theta, "rung", index, self.draws, most_draws_reaching)
        if draws_reaching > most_draws_reaching:
            return None
        return draws_reaching

    def _first_rung(self, start: float) -> tuple[float, "ProbitLine"]:
        """Return the first rung, and a line through the probits of the pilot's draws.

        These draws are read here alone. The rung is refuted nearly surely, if any is. Each round
        either doubles the step, or takes at least a quarter off what is between two places.
        """
        least_theta, largest_theta = self.search
        draws = max(_PILOT_DRAWS, math.ceil(_DRAWS_BEYOND_LEVEL / self.level))
        largest_step = _NEAR_PROBITS
        # The nearest places below the level and above it, with the probits of their chances.
        place_below_level: _PilotPlace | None = None
        place_above_level: _PilotPlace | None = None
        theta = min(max(start, least_theta), largest_theta)
        probit_line = ProbitLine(self.level)
        for index in count():
            probit_line.usual_slope = 1 / (self.scale * max(1.0, theta))
            draws_reaching = self.reaching(theta, "pilot", index, draws, draws)
            probit = probit_line.add(theta, draws_reaching, draws)
            if probit <= -_LEAST_BELOW_LEVEL:
                place_below_level = _PilotPlace(theta, probit)
            else:
                place_above_level = _PilotPlace(theta, probit)
            if place_below_level and place_above_level:
                bracket_width = place_above_level.theta - place_below_level.theta
                is_near = place_above_level.probit - place_below_level.probit <= _NEAR_PROBITS
                if is_near or bracket_width * probit_line.usual_slope <= _JUMP_WIDTH:
                    return place_below_level.theta, probit_line
                margin = _MARGIN_OF_BRACKET * bracket_width
                crossing = probit_line.place(-_USUAL_BELOW_LEVEL)
                theta = max(crossing, place_below_level.theta + margin)
                theta = min(theta, place_above_level.theta - margin)
                continue
            distance_in_probits = abs(probit + _USUAL_BELOW_LEVEL)
            step_in_probits = min(max(distance_in_probits, _LEAST_BELOW_LEVEL), largest_step)
            step = step_in_probits / probit_line.slope
            largest_step *= 2
            if place_above_level:
                if theta == least_theta:
                    break
                theta = max(theta - step, least_theta)
            else:
                if theta == largest_theta:
                    break
                theta = min(theta + step, largest_theta)
        return theta, probit_line


class _PilotPlace(NamedTuple):
    """A parameter, by how many probits its chance is above the level, and what that weighs."""

    theta: float
    probit: float
    weight: float = 1.0


class _ProbitFit(NamedTuple):
    """A line through places: means of parameter and probit, the slope, and weights of both."""

    mean_theta: float
    mean_probit: float
    slope: float
    weight: float
    weight_of_slope: float


@dataclass
class ProbitLine:
    """A straight line through the probits of chances near a level, as draws have them.

    Weighted least squares, with a slope that is `usual_slope` up to a factor of two or so.
    """

    level: float
    usual_slope: float = 1.0
    _places: list[_PilotPlace] = field(default_factory=list)

    def add(self, theta: float, reaching: int, draws: int) -> float:
        """Take in what some draws say, and return by how many probits it is above the level."""
        chance = (reaching + 0.5) / (draws + 1)
        probit = _NORMAL.inv_cdf(chance)
        # The inverse of the variance of the probit, by the delta method.
        weight = draws * _NORMAL.pdf(probit) ** 2 / (chance * (1 - chance))
        probits_above_level = probit - _NORMAL.inv_cdf(self.level)
        place = _PilotPlace(theta, probits_above_level, weight)
        self._places.append(place)
        return probits_above_level

    @property
    def slope(self) -> float:
        """Probits for a unit of the parameter, positive."""
        return self._weighted_least_squares().slope

    def place(self, probits_above_level: float) -> float:
        """Return the parameter whose chance is so many probits above the level."""
        probit_fit = self._weighted_least_squares()
        return (
            probit_fit.mean_theta
            + (probits_above_level - probit_fit.mean_probit) / probit_fit.slope
        )

    def below(self, deviations: float) -> float:
        """Return a parameter whose chance is below the level, surer the more deviations."""
        probit_fit = self._weighted_least_squares()
        crossing = probit_fit.mean_theta - probit_fit.mean_probit / probit_fit.slope
        # The variance of a prediction by weighted least squares.
        variance_of_slope = (crossing - probit_fit.mean_theta) ** 2 / probit_fit.weight_of_slope
        variance = 1 / probit_fit.weight + variance_of_slope
        return crossing - deviations * math.sqrt(variance) / probit_fit.slope

    def _weighted_least_squares(self) -> _ProbitFit:
        """Fit the line: weighted least squares, with a prior on the slope."""
        places_near_level = [place for place in self._places if abs(place.probit) <= _NEAR_PROBITS]
        places_near_level = places_near_level or self._places[-1:]
        weight = sum(place.weight for place in places_near_level)
        mean_theta = sum(place.weight * place.theta for place in places_near_level) / weight
        mean_probit = sum(place.weight * place.probit for place in places_near_level) / weight
        sum_of_squares = 0.0
        sum_of_products = 0.0
        for place in places_near_level:
            deviation = place.theta - mean_theta
            sum_of_squares += place.weight * deviation**2
            sum_of_products += place.weight * deviation * (place.probit - mean_probit)
        prior_sum_of_squares = _PRIOR_WEIGHT / self.usual_slope**2
        sum_of_squares += prior_sum_of_squares
        sum_of_products += prior_sum_of_squares * self.usual_slope
        slope = max(sum_of_products / sum_of_squares, self.usual_slope / 5)
        return _ProbitFit(mean_theta, mean_probit, slope, weight, weight_of_slope=sum_of_squares)
