"""What every family of trade-off functions offers, ordered by one parameter."""

import math
from collections.abc import Callable
from typing import ClassVar

import leakbound._core as _core
from leakbound._base.checks import instance
from leakbound._base.numerics import halved, mean
from leakbound._base.types import CountOptions, FdpTest, Kind, Sides, TailBound
from leakbound.claims.base import Guarantee, GuessWords, unexplained
from leakbound.claims.tradeoff import TradeOff, least_delta

# The walk through a bracket begins with steps of its length halved so often
_DOUBLINGS = 10
# Parameters found by values, and not by answers alone, are rounded down to so many steps of a power
# of two
_ROUNDING_STEPS = 2.0**32
# A parameter that promises nothing, of families that have no largest one
_LARGEST_PARAMETER = 1e12


class FamilyClaim(Guarantee):
    """A family of trade-off functions, ordered by one parameter: the mechanism obeys one of them.

    Curves with a larger parameter allow more. An audit rejects members of the family that are too
    private. Its (ε, δ) is the conversion of the rejected curve, and holds within the
    family.
    """

    kind: ClassVar[Kind] = "family_lower_bound"
    subject = "The trade-off function"
    most_guesses = 10**8
    """The recursion takes steps as the square root of the guesses: seconds at so many."""
    width = 1e-9
    _follows: ClassVar[str] = "ε is a conversion of the rejected curve and holds within the family."
    """How the theorem ends: what follows from a rejected member of the family."""
    tradeoff: Callable[[float], TradeOff]
    """The curve at a value of the parameter."""

    def theorem(self, words: GuessWords) -> str:
        """See `Guarantee.theorem`."""
        change = words.replacing and f" of{words.replacing}"
        return (
            f"{words.before}Given {words.others}, each correct guess{words.among} obeys the "
            f"trade-off function{change}, and so do the probabilities of all counts of correct "
            "guesses together (Mahloujifar, Melis and Chaudhuri 2025, Theorem "
            f"3.1{words.adapted}). {self._follows} "
        )

    def curve(self, theta: float, sides: Sides) -> TradeOff:
        """Return the curve at a parameter that bounds guesses; where it is rounded, it allows more.

        For "member" the power is on training with the example. For "both" the curve is its own
        mirror image: guesses may do what f or f⁻¹ allows.
        """
        curve = self.tradeoff(theta)
        instance(curve, name=f"tradeoff({theta:g})", types=TradeOff)
        if sides == "member":
            return curve
        return curve.symmetrized()

    def attained(self, theta: float, sides: Sides) -> TradeOff:
        """Return the curve that ε is converted from, once a value of the parameter is rejected.

        It is that of `curve`, unless that is rounded: then this one allows less.
        """
        return self.curve(theta, sides)

    def rejected(self, bound: float, sides: Sides) -> TradeOff | None:
        """See `Guarantee.rejected`."""
        if bound:
            return self.attained(bound, sides)
        return None

    def least_delta(self, sides: Sides) -> float:
        """Return the least δ at which the family has an ε.

        At a smaller δ no curve beyond the most private one has a finite ε. Whatever was rejected,
        every ε would then be refuted, which says nothing about the mechanism.
        """
        # As close to the end of the family as searches come: failures may grow with the parameter.
        most_private, _ = self.search
        less_private = most_private + self.width * self._first_step
        return least_delta(self.curve(less_private, sides))

    def critical(self, counts: CountOptions, level: float, test: FdpTest) -> float | None:
        """Return the least private value of the parameter that is rejected at a level.

        None if none is rejected, or if no mechanism at all explains the count.
        """
        if unexplained(counts, level):
            return None
        return self._critical(counts, level=level, test=test)

    def _critical(self, counts: CountOptions, level: float, test: FdpTest) -> float | None:
        sides: Sides = "both"
        if counts["one_sided"]:
            sides = "member"

        def is_rejected(theta: float) -> bool:
            curve = self.curve(theta, sides)
            return _core.fdp_rejects(counts, curve.core, level, test)

        return self.least_private(is_rejected)

    def least_private(self, rejected: Callable[[float], bool]) -> float | None:
        """Walk from the most private end in doubling steps, then halve.

        Returns the last value rejected, None if the most private one is not. Which values are asked
        depends on the answers only.
        """
        last_rejected, largest = self.search
        if not math.isfinite(largest):
            largest = _LARGEST_PARAMETER
        if not rejected(last_rejected):
            return None
        # 1. Steps that double, until a value is not rejected.
        step = self._first_step
        while True:
            not_rejected = min(last_rejected + step, largest)
            if not rejected(not_rejected):
                break
            if not_rejected == largest:
                return largest
            last_rejected = not_rejected
            step = 2 * step
        # 2. Halves between the last rejected and the first that was not.
        bracket = halved(
            last_rejected, not_rejected, rejected, width=self.width, middle=self._middle
        )
        return bracket[0]

    def least_private_near(
        self, value: Callable[[float], float], most: float, ends: tuple[float, float]
    ) -> float | None:
        """Return the same of an increasing positive function that is rejected where at most `most`.

        Between two ends a line through logarithms of its values finds it (regula falsi, Illinois),
        in fewer steps than halving. Beyond them, it is a walk.
        """
        smallest, largest = self.search
        lowest_theta = max(ends[0], smallest)
        highest_theta = min(ends[1], largest)

        def log_excess(theta: float) -> float:
            return math.log(value(theta)) - math.log(most)

        log_excess_at_lowest = log_excess(lowest_theta)
        log_excess_at_highest = log_excess(highest_theta)
        if not log_excess_at_lowest <= 0 < log_excess_at_highest:
            return self.least_private(lambda theta: value(theta) <= most)
        narrow_width = self.width / 16
        moved_end = ""
        while highest_theta - lowest_theta > narrow_width * highest_theta:
            step = (
                (highest_theta - lowest_theta)
                * log_excess_at_lowest
                / (log_excess_at_lowest - log_excess_at_highest)
            )
            # At least a little from either end, so that the bracket closes on both sides.
            least_distance = 0.25 * narrow_width * highest_theta
            middle_theta = min(
                max(lowest_theta + step, lowest_theta + least_distance),
                highest_theta - least_distance,
            )
            log_excess_at_middle = log_excess(middle_theta)
            # The end that stays twice counts for half.
            if log_excess_at_middle <= 0:
                if moved_end == "low":
                    log_excess_at_highest *= 0.5
                lowest_theta = middle_theta
                log_excess_at_lowest = log_excess_at_middle
                moved_end = "low"
            else:
                if moved_end == "high":
                    log_excess_at_lowest *= 0.5
                highest_theta = middle_theta
                log_excess_at_highest = log_excess_at_middle
                moved_end = "high"
        # Values that differ in last bits lead to one answer: it is rounded, to the rejected side.
        mantissa, exponent = math.frexp(lowest_theta)
        rounded_mantissa = math.floor(mantissa * _ROUNDING_STEPS) / _ROUNDING_STEPS
        return math.ldexp(rounded_mantissa, exponent)

    @property
    def _first_step(self) -> float:
        low, high = self.search
        length = 1.0
        if math.isfinite(high):
            length = high - low
        return length / 2.0**_DOUBLINGS

    def _middle(self, low: float, high: float) -> float:
        return mean(low, high)

    def _least_refuted(
        self, counts: CountOptions, level: float, _form: TailBound, test: FdpTest
    ) -> float:
        return self.critical(counts, level=level, test=test) or 0.0
