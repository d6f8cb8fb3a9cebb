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
_DRAWS = 2_000
_PILOT_DRAWS = 500
_BEYOND = 20
# In probits: how far below the level the first rung is, at least and about, and how far the next
# place of the pilot is, at most
_SURE = 0.5
_ABOUT = 0.9
_NEAR = 2.0
# In probits: the least step between rungs, and how far below the crossing expected a step ends
_STEP = 0.1
_CARE = 2.5
# Part of what lies between two places, from whose ends the next one stays away
_APART = 0.25
# The width, in probits, at which a chance jumps
_JUMP = 0.1
# How much the usual slope counts, as the inverse of its squared relative error
_PRIOR = 4.0
_NORMAL = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Ladder:
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
        return max(_DRAWS, math.ceil(_BEYOND / self.level))

    def bound(self, start: float) -> float:
        """Return the last parameter refuted, 0 for none; the pilot begins at `start`."""
        theta, line = self._pilot(start)
        _, last = self.search
        proved = 0.0
        for index in count():
            reaching = self.refuted(theta, index)
            if reaching is None:
                break
            proved = theta
            if theta == last:
                break
            line.add(theta, reaching, self.draws)
            next_rung = max(theta + _STEP / line.slope, line.below(_CARE))
            theta = min(next_rung, last)
        return proved

    def refuted(self, theta: float, index: int) -> int | None:
        """Return how many draws of a rung reach as far; None if they do not refute θ.

        The exact test: (1 + count)/(draws + 1) is at most the level.
        """
        most = math.floor(self.level * (self.draws + 1)) - 1
        if most < 0:
            return None
        reaching = self.reaching(theta, "rung", index, self.draws, most)
        if reaching > most:
            return None
        return reaching

    def _pilot(self, start: float) -> tuple[float, "Line"]:
        """Return the first rung, and a line through the probits of the pilot's draws.

        These draws are read here alone. The rung is refuted nearly surely, if any is. Each round
        either doubles the step, or takes at least a quarter off what is between two places.
        """
        least, last = self.search
        draws = max(_PILOT_DRAWS, math.ceil(_BEYOND / self.level))
        stride = _NEAR
        # The nearest places below the level and above it, with the probits of their chances.
        below: _Place | None = None
        above: _Place | None = None
        theta = min(max(start, least), last)
        line = Line(self.level)
        for index in count():
            line.usual = 1 / (self.scale * max(1.0, theta))
            reaching = self.reaching(theta, "pilot", index, draws, draws)
            probit = line.add(theta, reaching, draws)
            if probit <= -_SURE:
                below = _Place(theta, probit)
            else:
                above = _Place(theta, probit)
            if below and above:
                width = above.theta - below.theta
                if above.probit - below.probit <= _NEAR or width * line.usual <= _JUMP:
                    return below.theta, line
                edge = _APART * width
                crossing = line.place(-_ABOUT)
                theta = min(max(crossing, below.theta + edge), above.theta - edge)
                continue
            step = min(max(abs(probit + _ABOUT), _SURE), stride) / line.slope
            stride *= 2
            if above:
                if theta == least:
                    break
                theta = max(theta - step, least)
            else:
                if theta == last:
                    break
                theta = min(theta + step, last)
        return theta, line


class _Place(NamedTuple):
    """A parameter, by how many probits its chance is above the level, and what that weighs."""

    theta: float
    probit: float
    weight: float = 1.0


class _Fit(NamedTuple):
    """A line through places: means of parameter and probit, the slope, and weights of both."""

    theta: float
    probit: float
    slope: float
    weight: float
    weight_of_slope: float


@dataclass
class Line:
    """A straight line through the probits of chances near a level, as draws have them.

    Weighted least squares, with a slope that is `usual` up to a factor of two or so.
    """

    level: float
    usual: float = 1.0
    _places: list[_Place] = field(default_factory=list)

    def add(self, theta: float, reaching: int, draws: int) -> float:
        """Take in what some draws say, and return by how many probits it is above the level."""
        chance = (reaching + 0.5) / (draws + 1)
        probit = _NORMAL.inv_cdf(chance)
        weight = draws * _NORMAL.pdf(probit) ** 2 / (chance * (1 - chance))
        above = probit - _NORMAL.inv_cdf(self.level)
        self._places.append(_Place(theta, above, weight))
        return above

    @property
    def slope(self) -> float:
        """Probits for a unit of the parameter, positive."""
        return self._fit().slope

    def place(self, above: float) -> float:
        """Return the parameter whose chance is so many probits above the level."""
        fit = self._fit()
        return fit.theta + (above - fit.probit) / fit.slope

    def below(self, deviations: float) -> float:
        """Return a parameter whose chance is below the level, surer the more deviations."""
        fit = self._fit()
        crossing = fit.theta - fit.probit / fit.slope
        # The variance of a prediction by weighted least squares.
        variance = 1 / fit.weight + (crossing - fit.theta) ** 2 / fit.weight_of_slope
        return crossing - deviations * math.sqrt(variance) / fit.slope

    def _fit(self) -> _Fit:
        """Fit the line: weighted least squares, with a prior on the slope."""
        near = [one for one in self._places if abs(one.probit) <= _NEAR] or self._places[-1:]
        whole = sum(one.weight for one in near)
        theta = sum(one.weight * one.theta for one in near) / whole
        probit = sum(one.weight * one.probit for one in near) / whole
        square = 0.0
        product = 0.0
        for one in near:
            apart = one.theta - theta
            square += one.weight * apart**2
            product += one.weight * apart * (one.probit - probit)
        prior = _PRIOR / self.usual**2
        slope = (product + prior * self.usual) / (square + prior)
        return _Fit(theta, probit, max(slope, self.usual / 5), whole, square + prior)
