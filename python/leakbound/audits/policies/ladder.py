"""A ladder of exact Monte Carlo tests: which parameters are refuted, where chances are simulated.

Parameters are tested from below, each once, up to the first that is not refuted.
`docs/theory/trials.md` has theorem and proof: a bound above the truth needs a refutation of the
first rung at or above it, whatever chose the rungs. So draws that chose a rung are never counted
for it, and each rung has a stream of draws that nothing else reads.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["pilot", "rung"]
Reaching: TypeAlias = Callable[[float, Kind, int, int, int], int]
# Draws of a rung, or as many as give so many beyond the level; and of the pilot at each place
_DRAWS, _BEYOND, _PILOT_DRAWS = 2_000, 20, 500
# In probits: how far below the level the first rung is, at least and about, and how far the next
# place of the pilot is, at most
_SURE, _ABOUT, _NEAR = 0.5, 0.9, 2.0
# In probits: the least step between rungs, and how far below the crossing expected a step ends
_STEP, _CARE = 0.1, 2.5
# Parts of what lies between two places, from whose ends the next one stays away; the width, in
# probits, at which a chance jumps
_APART, _JUMP = 0.25, 0.1
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
        proved, index, last = 0.0, 0, self.search[1]
        while (reaching := self.refuted(theta, index)) is not None:
            proved, index = theta, index + 1
            if theta == last:
                break
            line.add(theta, reaching, self.draws)
            theta = min(max(theta + _STEP / line.slope, line.below(_CARE)), last)
        return proved

    def refuted(self, theta: float, index: int) -> int | None:
        """Return how many draws of a rung reach as far; None if they do not refute θ.

        The exact test: (1 + count)/(draws + 1) is at most the level.
        """
        most = math.floor(self.level * (self.draws + 1)) - 1
        if most < 0:
            return None
        reaching = self.reaching(theta, "rung", index, self.draws, most)
        return reaching if reaching <= most else None

    def _pilot(self, start: float) -> tuple[float, "Line"]:
        """Return the first rung, and a line through the probits of the pilot's draws.

        These draws are read here alone. The rung is refuted nearly surely, if any is. Each round
        either doubles the step, or takes at least a quarter off what is between two places.
        """
        least, last = self.search
        draws, stride = max(_PILOT_DRAWS, math.ceil(_BEYOND / self.level)), _NEAR
        low, high, index = None, None, 0
        theta = min(max(start, least), last)
        line = Line(self.level)
        while True:
            line.usual = 1 / (self.scale * max(1.0, theta))
            reaching = self.reaching(theta, "pilot", index, draws, draws)
            index += 1
            probit = line.add(theta, reaching, draws)
            if probit <= -_SURE:
                low = (theta, probit)
            else:
                high = (theta, probit)
            if low and high:
                width = high[0] - low[0]
                if high[1] - low[1] <= _NEAR or width * line.usual <= _JUMP:
                    return low[0], line
                edge = _APART * width
                theta = min(max(line.place(-_ABOUT), low[0] + edge), high[0] - edge)
                continue
            if theta == (least if high else last):
                return theta, line
            step = min(max(abs(probit + _ABOUT), _SURE), stride) / line.slope
            theta = max(theta - step, least) if high else min(theta + step, last)
            stride *= 2


@dataclass
class Line:
    """A straight line through the probits of chances near a level, as draws have them.

    Weighted least squares, with a slope that is `usual` up to a factor of two or so.
    """

    level: float
    usual: float = 1.0
    _places: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, theta: float, reaching: int, draws: int) -> float:
        """Take in what some draws say, and return by how many probits it is above the level."""
        chance = (reaching + 0.5) / (draws + 1)
        probit = _NORMAL.inv_cdf(chance)
        weight = draws * _NORMAL.pdf(probit) ** 2 / (chance * (1 - chance))
        above = probit - _NORMAL.inv_cdf(self.level)
        self._places.append((theta, above, weight))
        return above

    @property
    def slope(self) -> float:
        """Probits for a unit of the parameter, positive."""
        return self._fit()[2]

    def place(self, above: float) -> float:
        """Return the parameter whose chance is so many probits above the level."""
        theta, mean, slope, *_ = self._fit()
        return theta + (above - mean) / slope

    def below(self, deviations: float) -> float:
        """Return a parameter whose chance is below the level, surer the more deviations."""
        theta, mean, slope, whole, square = self._fit()
        at = theta - mean / slope
        error = math.sqrt(1 / whole + (at - theta) ** 2 / square)
        return at - deviations * error / slope

    def _fit(self) -> tuple[float, float, float, float, float]:
        """Return mean parameter, mean probit, slope, and the weights of mean and slope."""
        near = [one for one in self._places if abs(one[1]) <= _NEAR] or self._places[-1:]
        whole = sum(weight for *_, weight in near)
        theta = sum(weight * x for x, _, weight in near) / whole
        mean = sum(weight * y for _, y, weight in near) / whole
        square = sum(weight * (x - theta) ** 2 for x, _, weight in near)
        cross = sum(weight * (x - theta) * (y - mean) for x, y, weight in near)
        prior = _PRIOR / self.usual**2
        slope = (cross + prior * self.usual) / (square + prior)
        return theta, mean, max(slope, self.usual / 5), whole, square + prior
