"""One cut, chosen on some of the examples and tested on the others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import leakbound._core as _core
from leakbound._base.records import encode
from leakbound._base.types import Kind, PathOrder, Sides
from leakbound._base.validation import real
from leakbound.cuts.base import Finding, Game, Policy
from leakbound.cuts.paths import LimitPolicy, Trial
from leakbound.cuts.policies import Fixed
from leakbound.errors import OptionError

__all__ = ["Split", "SplitTest"]


@dataclass(frozen=True)
class Split(Policy):
    """One cut, chosen on some of the examples and tested on the others.

    Parameters
    ----------
    fraction : float
        Share of the examples, drawn at random from the audit's seed, that choose the path and the
        number of guesses, in (0, 1).

    Raises
    ------
    OptionError, OptionTypeError
        If it is not a number between 0 and 1.

    Examples
    --------
    >>> Split()
    Split(fraction=0.25)
    """

    fraction: float = 0.25
    kind: ClassVar[Kind] = "lower_bound"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", real(self.fraction, "fraction", above=0, below=1))

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "One cut, chosen on a random part of the examples and tested on the rest: the "
            "Clopper-Pearson limit (Clopper and Pearson 1934)."
        )

    def audit(self, game: Game, level: float, /) -> Finding:
        """See `Policy.audit`: the cut is tested by its Clopper-Pearson limit."""
        return SplitTest(self, Fixed(1)).audit(game, level)


@dataclass(frozen=True)
class SplitTest(Policy):
    """A split whose cut, whatever its number of guesses, is tested by another policy."""

    split: Split
    test: LimitPolicy

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return self.test.method

    def audit(self, game: Game, level: float, /) -> Finding:
        """See `Policy.audit`: choose path and guesses on one part, test them on the other."""
        if game.break_ties:
            game = game.without_ties()
        chosen, tested = game.parts(_size(game.examples, self.split.fraction, game.units))
        part, ranking = chosen.ranking(), tested.ranking()
        order, guesses = self._choice(part, tested.examples, game.sides, level)
        guesses = min(guesses, self.test.path(ranking, order).guesses)
        routes = {order: self.test.with_size(guesses, tested.examples)}
        return Trial.of(ranking, routes, level).finding(
            tested,
            cuts=encode(self.split),
            chosen_guesses=guesses,
            choosing_examples=part.examples,
        )

    def _choice(
        self, part: _core.Ranking, examples: int, sides: Sides, level: float
    ) -> tuple[PathOrder, int]:
        """Return path and guesses with the best limit, if the other part were like this one."""
        scale = examples / part.examples
        test = self.test.with_size(1, examples)
        found: list[tuple[float, PathOrder, int]] = []
        for order in test.split_orders(sides):
            expected, right = test.compared(test.path(part, order), scale)
            limit = test.rough(expected, right, level)
            top = int(np.argmax(limit))
            found.append((float(limit[top]), order, int(expected[top])))
        _, order, chosen = max(found, key=lambda one: one[0])
        return order, chosen


def _size(examples: int, fraction: float, units: str) -> int:
    """Return how many examples choose; at least two are left on either side."""
    if examples < 4:
        message = f"Split needs at least 2 {units} in each part, got {examples} in all"
        raise OptionError(message)
    return min(max(2, round(fraction * examples)), examples - 2)
