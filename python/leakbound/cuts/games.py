"""Games: scores and membership of examples, as they are ranked and shown whatever the policy."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import row_numbers
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, IntArray, Sides
from leakbound._tally.tally import Tally
from leakbound.errors import AbstentionError

Ties: TypeAlias = Literal["together", "broken"]
"""Whether cuts fall between blocks of ties only, or ties are broken at random, from the seed."""
Rankings: TypeAlias = tuple[_core.Ranking, _core.Ranking, tuple[str, ...]]
"""A ranking as scored, the same with ties broken, and warnings of those that were."""
# Share of tied examples from which fewer ties may show more
_TIED = 0.1
# Share of all examples that have one key, from which a finer key may show more
_CROWDED = 0.01
# Standard deviations below 1/2 from which an AUC looks inverted rather than random
_INVERTED = 3
# Share of correct guesses, and of the ceiling, from which more examples may show more
_NEAR = 0.9
# Examples that are looked at in one go
_PART = 1 << 15
# Of more than these, a place and a bit beside it are no integer of 32 bits
_MOST_NARROW = 1 << 31
_SIGN = np.uint32(1 << 31)


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Scores as figures show them: how many members, and how many others, have each value.

    Values increase and are distinct if the counts are integers; if these are booleans, each value
    is that of one example.
    """

    values: FloatArray
    members: BoolArray | IntArray
    others: BoolArray | IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Game(ABC):
    """Scores and membership of examples, checked, and how they are audited whatever the policy.

    `recall` is the largest share of the examples that a tested cut guesses, in (0, 1], and `k` the
    number of values that a guess names one of. `symbol` is what bounds are on, in warnings.
    """

    sides: Sides
    seed: int
    name: str = "scores"
    named: str = ""
    """What it is about where that is not `units` of its class, such as "users"."""
    recall: float = 1.0
    k: int = 2
    symbol: str = "ε"
    _rankings: dict[Ties, Rankings] = field(default_factory=dict, init=False, repr=False)
    units: ClassVar[str] = "examples"
    """What is guessed about, in words: a class derived for another design has its own."""

    def __post_init__(self) -> None:
        if self.named:
            object.__setattr__(self, "units", self.named)

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many examples are audited."""

    @abstractmethod
    def ranked(self, ties: Ties = "together") -> _core.Ranking:
        """Rank the examples, or the guesses about them: all of them, if ties are to be broken."""

    @abstractmethod
    def untied(self) -> _core.Ranking:
        """Rank them with ties broken from the seed."""

    def ranking(self, ties: Ties = "together") -> Rankings:
        """Rank as scored, and with ties broken if they are to be; warn of those that were.

        Raise AbstentionError if the scores order nothing. Policies that share a game share it.
        """
        known = self._rankings.get(ties)
        if known is not None:
            return known
        ranking = self.ranked(ties)
        if ranking.blocks == 1 and self.sides != "pairs":
            raise AbstentionError(self._of_equal())
        found: Rankings = (ranking, ranking, ())
        if ties == "broken" and ranking.tied:
            found = (ranking, self.untied(), order_warnings(self.tied(ranking)))
        self._rankings[ties] = found
        return found

    def _of_equal(self) -> str:
        return (
            f"all {self.examples} {self.name} are equal, so nothing can be guessed: use a score "
            f"that differs between {self.units}"
        )

    @abstractmethod
    def shown(self) -> ScoreCounts:
        """Return scores and membership of the examples, for figures."""

    def rated(self) -> _core.Ranking:
        """Rank the examples by score, whatever the guesses are about."""
        return self.ranked()

    def tied(self, ranking: _core.Ranking) -> str:
        """Return how many examples share their score with another, in words; "" if few."""
        return tied_share(ranking, self.units)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreGame(Game):
    """A game whose examples each have a score."""

    scores: FloatArray
    member: BoolArray

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.scores.size

    @cached_property
    def _by_score(self) -> _core.Ranking:
        """The examples by score: several policies share it."""
        return _core.Ranking(self.scores, self.member)

    def ranked(self, ties: Ties = "together") -> _core.Ranking:  # noqa: ARG002 (of pairs)
        """See `Game.ranked`."""
        return self._by_score

    def untied(self) -> _core.Ranking:
        """See `Game.untied`."""
        if self.examples <= _MOST_NARROW and _is_narrow(self.scores):
            in_order = _members_in_order(self.scores, self.member, tie_breaker(self.seed))
            return _core.Ranking.in_order(in_order)
        return _core.Ranking(self.ranks(self.scores), self.member)

    def ranks(self, scores: FloatArray) -> FloatArray:
        """Return the ranks of scores, ties broken at random."""
        order = row_numbers(scores.size)
        tie_breaker(self.seed).shuffle(order)
        order = order[np.argsort(scores[order], kind="stable")]
        ranks = np.empty(scores.size)
        ranks[order] = row_numbers(scores.size)
        return ranks

    def shown(self) -> ScoreCounts:
        """See `Game.shown`."""
        return ScoreCounts(self.scores, self.member, ~self.member)


def _is_narrow(scores: FloatArray) -> bool:
    """Return whether float32 has all of these values."""
    parts = (scores[start : start + _PART] for start in range(0, scores.size, _PART))
    with np.errstate(over="ignore"):
        return all(np.array_equal(part, part.astype(np.float32)) for part in parts)


def _members_in_order(
    scores: FloatArray, member: BoolArray, ties: np.random.Generator
) -> BoolArray:
    """Return who is a member, in the order of `ScoreGame.ranks`, the highest score first.

    A score as float32, its place among ties and membership are one integer of eight bytes each,
    which are sorted where they are: as much memory as one copy of the scores, and no ranks.
    """
    entries = np.empty(scores.size, dtype=np.uint64)
    order = entries.view(np.uint32)[::2]  # until there is an entry in its place
    parts = [slice(start, start + _PART) for start in range(0, scores.size, _PART)]
    for part in parts:
        order[part] = np.arange(part.start, min(part.stop, scores.size))
    ties.shuffle(order)
    for part in parts:
        rows = order[part].copy()
        bits = (scores[rows].astype(np.float32) + 0).view(np.uint32)  # zeros of both signs are tied
        negative = bits >= _SIGN
        key = np.where(negative, ~bits, bits | _SIGN).astype(np.uint64)
        place = np.arange(part.start, part.start + rows.size, dtype=np.uint64)
        entries[part] = key << np.uint64(32) | place << np.uint64(1) | member[rows]
    entries.sort()
    downwards = np.empty(scores.size, dtype=np.bool_)
    for part in parts:
        downwards[::-1][part] = entries[part] & np.uint64(1)
    return downwards


def tie_breaker(seed: int) -> np.random.Generator:
    """Return what breaks ties, alike in all ways to order the examples."""
    return Purpose.TIES.rng(seed)


class TrialGame(ScoreGame):
    """A game whose scores are from independent runs, one for each coin."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairsGame(Game):
    """A game whose guesses are about pairs, or more candidates, of the examples.

    `members` and `others` are the rows of the scores as they were `given`, which figures show.
    """

    value: ClassVar[str] = "difference"
    """What guesses are ranked by the size of, in words."""
    given: FloatArray
    members: IntArray
    others: IntArray

    def tied(self, ranking: _core.Ranking) -> str:
        """See `Game.tied`: of the pairs that are guessed about, by the size of the difference."""
        return tied_share(ranking, self.units, self.value)

    def shown(self) -> ScoreCounts:
        """Return scores and membership of the examples in pairs, for figures."""
        scores = np.concatenate([self.given[self.members], self.given[self.others]])
        member = np.zeros(scores.size, dtype=np.bool_)
        member[: self.members.size] = True
        return ScoreCounts(scores, member, ~member)

    def rated(self) -> _core.Ranking:
        """Rank the examples in pairs by their scores."""
        members, others = (
            rows.astype(np.uint32, copy=False) for rows in (self.members, self.others)
        )
        return _core.Ranking.of_rows(self.given, members, others)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairGame(PairsGame, ScoreGame):
    """Differences of the two scores of each pair, and whether the first of the two is the member.

    The sign of a difference is the guess, its size the confidence. There is one path, whose guesses
    are of both roles at once. A difference of 0 is no guess where ties stay together, and the last
    of all guesses, by the coin that put one of the two first, where the number of guesses must not
    depend on scores; so too where no pair differs, and of k > 2 candidates, of which a tie may rule
    out some.
    """

    units: ClassVar[str] = "pairs"
    sides: Sides = "pairs"

    def ranked(self, ties: Ties = "together") -> _core.Ranking:
        """Rank the guesses by confidence, right ones as members."""
        sizes = np.abs(self.scores)
        right = (self.scores >= 0) == self.member
        guessed = sizes != 0
        if ties == "broken" or self.k > 2 or guessed.all() or not guessed.any():
            return _core.Ranking(sizes, right)
        return _core.Ranking(sizes[guessed], right[guessed])

    def untied(self) -> _core.Ranking:
        """See `Game.untied`, by the size of the difference; of two equal scores, the first."""
        return _core.Ranking(self.ranks(np.abs(self.scores)), (self.scores >= 0) == self.member)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceGame(PairGame):
    """Margins of the best candidates of secrets over the second, and which are the chosen ones."""

    units: ClassVar[str] = "secrets"
    value: ClassVar[str] = "margin"


@dataclass(frozen=True, kw_only=True, eq=False)
class TallyGame(Game):
    """Counts of examples, and of members among them, by score.

    A score here is a block of ties. Broken from the seed, they have the law of a random order, of
    which the core draws what is asked for.
    """

    tally: Tally

    @property
    def examples(self) -> int:
        """How many examples are audited."""
        return self.tally.m

    def ranked(self, ties: Ties = "together") -> _core.Ranking:
        """See `Game.ranked`."""
        return _core.Ranking.of_blocks(*self._blocks(ties), seed=None)

    def untied(self) -> _core.Ranking:
        """See `Game.untied`."""
        seed = Purpose.TALLY_TIES.derived(self.seed, self._counted)
        return _core.Ranking.of_blocks(*self._blocks("broken"), seed=seed)

    @property
    def _counted(self) -> int:
        """A number of the counts, so that at one seed ties of other counts have another order."""
        members = self.tally.members_at
        return int(members @ np.arange(1, members.size + 1) % 2**62)

    def _blocks(self, _ties: Ties) -> tuple[IntArray, IntArray]:
        """Return examples, and members among them, from the highest score down."""
        return self.tally.examples_at[::-1], self.tally.members_at[::-1]

    def shown(self) -> ScoreCounts:
        """See `Game.shown`."""
        tally = self.tally
        return ScoreCounts(tally.values, tally.members_at, tally.examples_at - tally.members_at)

    def tied(self, _ranking: _core.Ranking) -> str:
        """See `Game.tied`: sharing a key is by design, and said where one has many examples."""
        share = int(self.tally.examples_at.max()) / self.examples
        if share <= _CROWDED:
            return ""
        return f"{100 * share:.0f} % of the {self.units} have one key of the tally; "


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTallyGame(TallyGame):
    """Counts of pairs by the size of their difference; "members" are those whose member won.

    As in `PairGame`, a difference of 0 is no guess where ties stay together, and the last of all
    guesses elsewhere: fair coins, of which it is drawn how many are right. `rated_by` has the
    examples in pairs, by score.
    """

    units: ClassVar[str] = "pairs"
    sides: Sides = "pairs"
    rated_by: TallyGame

    def _blocks(self, ties: Ties) -> tuple[IntArray, IntArray]:
        counts, right = super()._blocks(ties)
        if self.tally.values[0] > 0:
            return counts, right
        if ties == "together" and counts.size > 1:
            return counts[:-1], right[:-1]
        tossed = Purpose.TALLY_COINS.rng(self.seed, self._counted).binomial(counts[-1], 0.5)
        return counts, np.append(right[:-1], tossed)

    def shown(self) -> ScoreCounts:
        """Return scores and membership of the examples in pairs, for figures."""
        return self.rated_by.shown()

    def rated(self) -> _core.Ranking:
        """Rank the examples in pairs by their scores."""
        return self.rated_by.ranked()


NEAR_CEILING = "the bound is at or near the most"
"""How the warning begins that more examples may show more."""


def tied_share(ranking: _core.Ranking, units: str = "examples", value: str = "score") -> str:
    """Return how many examples share their score with another, in words; "" if few."""
    share = ranking.tied / ranking.examples
    if share <= _TIED:
        return ""
    return f"{100 * share:.0f} % of the {units} share their {value} with another; "


def tie_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that many ties were broken at random, in a ranking by scores as given."""
    return order_warnings(tied_share(ranking))


def order_warnings(share: str) -> tuple[str, ...]:
    """Say that ties were broken at random, given how many in words, "" for few."""
    if not share:
        return ()
    note = "ties were ordered at random, so a more precise score may show more"
    return (share + note,)


def inverted_warnings(ranking: _core.Ranking, units: str = "examples") -> tuple[str, ...]:
    """Say that scores are higher on non-members."""
    members, others = ranking.members, ranking.examples - ranking.members
    # the spread of the AUC of scores that say nothing: Mann and Whitney 1947
    spread = math.sqrt((ranking.examples + 1) / (12 * max(1, members * others)))
    below = (0.5 - ranking.auc) / spread
    if below <= _INVERTED:
        return ()
    return (_inverted(ranking.auc, below, units),)


def _inverted(auc: float, below: float, units: str) -> str:
    return (
        f"AUC {auc:.3f} is {below:.1f} standard deviations below 1/2: the scores look "
        "inverted (higher must mean more likely a member); they are used as given. Flipping the "
        f"sign for these {units} would use their membership: a flipped sign needs new coins, or a "
        "new split"
    )


def near_ceiling(
    bound: float,
    guesses: int,
    correct: int,
    ceiling: Callable[[], float],
    valued: Callable[[float], str],
    units: str = "examples",
) -> str:
    """Say that a bound is all that so many examples allow, or nearly; else "".

    `valued` writes a bound with its symbol.
    """
    if correct <= _NEAR * guesses or bound < _NEAR * ceiling():
        return ""
    return (
        f"{NEAR_CEILING} that these {units} can show (a perfect attack: {valued(ceiling())}): "
        f"more {units} may show more"
    )
