"""A cut policy whose number of guesses depends on scores.

The public name is that of `leakbound.cuts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leakbound._base.types import JsonValue, Kind
from leakbound.cuts.base import Finding, Game, Policy
from leakbound.cuts.outside_in import check_levels, named_levels
from leakbound.errors import IncompatibleOptionsError

__all__ = ["ScoreAdaptive"]


@dataclass(frozen=True)
class ScoreAdaptive(Policy):
    """One of a few numbers of guesses, whichever the scores suggest: for δ > 0 and families.

    Examples stand out if their score is more than 3 robust standard deviations (1.4826 times the
    median distance from the median) away from the median, above it only with `sides="member"`. The
    number of guesses is the level nearest to how many do, in ratio; membership has no part in it.

    Parameters
    ----------
    levels : sequence of int
        Numbers of guesses, increasing, at most the number of examples each.

    Raises
    ------
    OptionError, OptionTypeError
        If they are not increasing positive integers.

    Notes
    -----
    One proof covers all levels, as for `OutsideIn`, at a cost of a few per cent. As the number
    of outlying scores depends on distances, so does the result: not on the order of scores alone.

    Examples
    --------
    >>> from leakbound.cuts import ScoreAdaptive
    >>> ScoreAdaptive([100, 200, 400])
    ScoreAdaptive(levels=(100, 200, 400))
    """

    levels: Sequence[int]
    kind: ClassVar[Kind] = "family_lower_bound"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", named_levels(self.levels))

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "One cut, at the one of a few numbers of guesses that the scores suggest; one proof "
            "covers all of them."
        )

    def audit(self, _game: Game, _level: float, /) -> Finding:
        """See `Policy.audit`: on its own it has no bound, whatever the game."""
        message = (
            "cuts=ScoreAdaptive(…) is for delta > 0 and for families of trade-off functions: take "
            "KLScan here"
        )
        raise IncompatibleOptionsError(message)

    def check(self, examples: int, units: str = "examples") -> None:
        """Raise OptionError if there are fewer examples than guesses."""
        check_levels(type(self).__name__, self.levels, examples, units)

    def choose(self, game: Game) -> tuple[int, dict[str, JsonValue]]:
        """Return the level that scores suggest, and what options say of the choice."""
        self.check(game.examples, game.units)
        count = game.outlying()
        distance = np.abs(np.log(np.array(self.levels) / max(1, count)))
        guesses = self.levels[int(np.argmin(distance))]
        return guesses, {"outlying": count, "guesses": guesses}
