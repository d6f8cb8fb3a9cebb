"""A game of examples that are counted: audits of any size, in the memory of their counts."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.cuts.base import Game, Shown
from leakbound.errors import OptionError

_CROWDED = 0.01
"""Share of all examples that have one key, from which a finer key may show more."""
_MOST_LABELS = 10_000_000
"""Most examples that are told from each other where a policy asks for it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TallyGame(Game):
    """Counts of examples, and of members among them, at increasing scores.

    A score here is a block of ties. Broken from the seed, they have the law of a random order, of
    which the core draws what is asked for; `shuffled` says that they are broken.
    """

    values: FloatArray
    counts: IntArray
    members: IntArray
    shuffled: bool = False

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return int(self.counts.sum())

    def without_ties(self) -> Self:
        """See `Game.without_ties`."""
        return replace(self, shuffled=True)

    def ranked(self) -> _core.Ranking:
        """See `Game.ranked`."""
        seed = None
        if self.shuffled:
            seed = Purpose.TALLY_TIES.derived(self.seed)
        return _core.Ranking.of_blocks(self.counts[::-1], self.members[::-1], seed=seed)

    def check_labels(self) -> None:
        """Raise OptionError if there are too many examples to tell from each other."""
        if self.examples > _MOST_LABELS:
            message = (
                f"a prior other than 1/2 tells all examples apart, and a tally of {self.examples:,}"
                f" is not taken apart: audit at most {_MOST_LABELS:,} examples, a random part that "
                "scores and membership have no part in"
            )
            raise OptionError(message)

    def labelled(self) -> tuple[FloatArray, BoolArray]:
        """See `Game.labelled`."""
        self.check_labels()
        path = self.without_ties().ranked().path("member")
        guesses, right = path.sample(self.examples)
        return -guesses.astype(np.float64), np.diff(right, prepend=0).astype(np.bool_)

    def shown(self) -> Shown:
        """See `Game.shown`."""
        return Shown(self.values, self.members, self.counts - self.members)

    def tied(self, _ranking: _core.Ranking) -> str:
        """See `Game.tied`: sharing a key is by design, and said where one has many examples."""
        share = int(self.counts.max()) / self.examples
        if share <= _CROWDED:
            return ""
        return f"{100 * share:.0f}% of the examples have one key of the tally; "
