"""A game of pairs: which of two examples is the member, where a fair coin of its own decided."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

import leakbound._core as _core
from leakbound._base.types import BoolArray, FloatArray, Sides
from leakbound.cuts.base import ScoreGame, Shown, tied_share


@dataclass(frozen=True, kw_only=True, eq=False)
class PairGame(ScoreGame):
    """Differences of the two scores of each pair, and whether the first of the two is the member.

    The sign of a difference is the guess, its size the confidence. There is one path, whose guesses
    are of both roles at once. A difference of 0 is no guess where ties stay together, and the last
    of all guesses, by the coin that put one of the two first, where the number of guesses must not
    depend on scores; so too where no pair differs. `member_scores` and `other_scores` are the
    scores as given, which figures show.
    """

    units: ClassVar[str] = "pairs"
    sides: Sides = "pairs"
    member_scores: FloatArray
    other_scores: FloatArray

    def part(self, rows: BoolArray, name: str) -> Self:
        """Return the game of some of the pairs."""
        return replace(
            self,
            scores=self.scores[rows],
            member=self.member[rows],
            member_scores=self.member_scores[rows],
            other_scores=self.other_scores[rows],
            name=name,
        )

    def without_ties(self) -> Self:
        """Return the game with ties of size broken from the seed; of two equal ones, the first."""
        ranks = self._untied(np.abs(self.scores)) + 1
        return replace(self, scores=np.where(self.scores < 0, -ranks, ranks))

    def ranking(self) -> _core.Ranking:
        """Rank the guesses: pairs that all abstain are ranked too, as one block."""
        return self.ranked()

    def ranked(self) -> _core.Ranking:
        """Rank the guesses by confidence, right ones as members."""
        guessed = self.scores != 0
        if self.break_ties or not guessed.any():
            guessed = np.ones(self.examples, dtype=np.bool_)
        first = self.scores[guessed] >= 0
        return _core.Ranking(np.abs(self.scores[guessed]), first == self.member[guessed])

    def tied(self, ranking: _core.Ranking) -> str:
        """See `Game.tied`: of the pairs that are guessed about, by the size of the difference."""
        return tied_share(ranking, "pairs", "difference")

    def shown(self) -> Shown:
        """Return scores and membership of the examples in pairs, for figures."""
        scores = np.concatenate([self.member_scores, self.other_scores])
        member = np.arange(scores.size) < self.member_scores.size
        return Shown(scores, member, ~member)

    def rated(self, _ranking: _core.Ranking) -> _core.Ranking:
        """Return the ranking of the examples in pairs by their scores."""
        shown = self.shown()
        return _core.Ranking(shown.values, shown.members.astype(np.bool_))
