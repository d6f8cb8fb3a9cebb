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
_MANY_TIES = 0.1
# Share of all examples that have one key, from which a finer key may show more
_CROWDED_KEY = 0.01
# Standard deviations below 1/2 from which an AUC looks inverted rather than random
_INVERTED_DEVIATIONS = 3
# Share of correct guesses, and of the ceiling, from which more examples may show more
_NEAR_CEILING = 0.9
# Examples that are looked at in one go
_PART_SIZE = 1 << 15
# Of more than these, a place and a bit beside it are no integer of 32 bits
_MOST_NARROW = 1 << 31
_SIGN_BIT = np.uint32(1 << 31)


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
        known_rankings = self._rankings.get(ties)
        if known_rankings is not None:
            return known_rankings
        ranking = self.ranked(ties)
        if ranking.blocks == 1 and self.sides != "pairs":
            raise AbstentionError(all_scores_are_equal(self.examples, self.name, self.units))
        rankings: Rankings = (ranking, ranking, ())
        if ties == "broken" and ranking.tied:
            rankings = (ranking, self.untied(), order_warnings(self.tied(ranking)))
        self._rankings[ties] = rankings
        return rankings

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
            member_in_order = _members_in_order(self.scores, self.member, tie_breaker(self.seed))
            return _core.Ranking.in_order(member_in_order)
        return _core.Ranking(self.ranks(self.scores), self.member)

    def ranks(self, scores: FloatArray) -> FloatArray:
        """Return the ranks of scores, ties broken at random."""
        shuffled_rows = row_numbers(scores.size)
        tie_breaker(self.seed).shuffle(shuffled_rows)
        # Shuffled rows are not held beside those in order, as they may be many.
        rows_in_order = shuffled_rows[np.argsort(scores[shuffled_rows], kind="stable")]
        del shuffled_rows
        ranks = np.empty(scores.size)
        ranks[rows_in_order] = row_numbers(scores.size)
        return ranks

    def shown(self) -> ScoreCounts:
        """See `Game.shown`."""
        return ScoreCounts(self.scores, self.member, ~self.member)


def parts_of(examples: int, part_size: int) -> list[slice]:
    """Return slices of the examples that are looked at in one go."""
    row_slices = []
    for start in range(0, examples, part_size):
        end = min(start + part_size, examples)
        row_slices.append(slice(start, end))
    return row_slices


def _is_narrow(scores: FloatArray) -> bool:
    """Return whether float32 has all of these values."""
    with np.errstate(over="ignore"):
        for rows_of_part in parts_of(scores.size, _PART_SIZE):
            scores_of_part = scores[rows_of_part]
            scores_as_float32 = scores_of_part.astype(np.float32)
            if not np.array_equal(scores_of_part, scores_as_float32):
                return False
    return True


def _members_in_order(
    scores: FloatArray, member: BoolArray, tie_generator: np.random.Generator
) -> BoolArray:
    """Return who is a member, in the order of `ScoreGame.ranks`, the highest score first.

    A score as float32, its place among ties and membership are one integer of eight bytes each,
    which are sorted where they are: as much memory as one copy of the scores, and no ranks.
    """
    sort_keys = np.empty(scores.size, dtype=np.uint64)
    shuffled_rows = sort_keys.view(np.uint32)[::2]  # until there is a key in its place
    row_slices = parts_of(scores.size, _PART_SIZE)
    for rows_of_part in row_slices:
        shuffled_rows[rows_of_part] = np.arange(rows_of_part.start, rows_of_part.stop)
    tie_generator.shuffle(shuffled_rows)
    for rows_of_part in row_slices:
        shuffled_rows_of_part = shuffled_rows[rows_of_part].copy()
        # Zeros of both signs are tied
        scores_as_float32 = scores[shuffled_rows_of_part].astype(np.float32) + 0
        score_bits = scores_as_float32.view(np.uint32)
        is_negative = score_bits >= _SIGN_BIT
        ordered_bits = np.where(is_negative, ~score_bits, score_bits | _SIGN_BIT)
        score_keys = ordered_bits.astype(np.uint64) << np.uint64(32)
        tie_places = np.arange(rows_of_part.start, rows_of_part.stop, dtype=np.uint64)
        tie_keys = tie_places << np.uint64(1)
        sort_keys[rows_of_part] = score_keys | tie_keys | member[shuffled_rows_of_part]
    sort_keys.sort()
    member_in_order = np.empty(scores.size, dtype=np.bool_)
    for rows_of_part in row_slices:
        member_in_order[::-1][rows_of_part] = sort_keys[rows_of_part] & np.uint64(1)
    return member_in_order


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
        member_rows = self.members.astype(np.uint32, copy=False)
        other_rows = self.others.astype(np.uint32, copy=False)
        return _core.Ranking.of_rows(self.given, member_rows, other_rows)


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
        confidences = np.abs(self.scores)
        is_guess = confidences != 0
        ties_are_guesses = ties == "broken" or self.k > 2
        if ties_are_guesses or is_guess.all() or not is_guess.any():
            return _core.Ranking(confidences, self._is_correct)
        return _core.Ranking(confidences[is_guess], self._is_correct[is_guess])

    def untied(self) -> _core.Ranking:
        """See `Game.untied`, by the size of the difference; of two equal scores, the first."""
        confidences = np.abs(self.scores)
        return _core.Ranking(self.ranks(confidences), self._is_correct)

    @property
    def _is_correct(self) -> BoolArray:
        """Whether each guess is right."""
        first_is_guessed = self.scores >= 0
        is_correct: BoolArray = first_is_guessed == self.member
        return is_correct


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
        seed = Purpose.TALLY_TIES.derived(self.seed, self._checksum)
        return _core.Ranking.of_blocks(*self._blocks("broken"), seed=seed)

    @property
    def _checksum(self) -> int:
        """A number of the counts, so that at one seed ties of other counts have another order."""
        members_at = self.tally.members_at
        weights = np.arange(1, members_at.size + 1)
        return int(members_at @ weights % 2**62)

    def _blocks(self, _ties: Ties) -> tuple[IntArray, IntArray]:
        """Return examples, and members among them, from the highest score down."""
        return self.tally.examples_at[::-1], self.tally.members_at[::-1]

    def shown(self) -> ScoreCounts:
        """See `Game.shown`."""
        tally = self.tally
        others_at = tally.examples_at - tally.members_at
        return ScoreCounts(tally.values, tally.members_at, others_at)

    def tied(self, _ranking: _core.Ranking) -> str:
        """See `Game.tied`: sharing a key is by design, and said where one has many examples."""
        share_at_one_key = int(self.tally.examples_at.max()) / self.examples
        if share_at_one_key <= _CROWDED_KEY:
            return ""
        return f"{100 * share_at_one_key:.0f} % of the {self.units} have one key of the tally; "


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
        guess_counts, correct_counts = super()._blocks(ties)
        smallest_difference = self.tally.values[0]
        if smallest_difference > 0:
            return guess_counts, correct_counts
        if ties == "together" and guess_counts.size > 1:
            return guess_counts[:-1], correct_counts[:-1]
        coin_generator = Purpose.TALLY_COINS.rng(self.seed, self._checksum)
        correct_coins = coin_generator.binomial(guess_counts[-1], 0.5)
        return guess_counts, np.append(correct_counts[:-1], correct_coins)

    def shown(self) -> ScoreCounts:
        """Return scores and membership of the examples in pairs, for figures."""
        return self.rated_by.shown()

    def rated(self) -> _core.Ranking:
        """Rank the examples in pairs by their scores."""
        return self.rated_by.ranked()


def all_scores_are_equal(examples: int, name: str = "scores", units: str = "examples") -> str:
    """Say that scores order nothing."""
    return (
        f"all {examples} {name} are equal, so nothing can be guessed: use a score that differs "
        f"between {units}"
    )


NEAR_CEILING = "the bound is at or near the most"
"""How the warning begins that more examples may show more."""


def tied_share(ranking: _core.Ranking, units: str = "examples", value: str = "score") -> str:
    """Return how many examples share their score with another, in words; "" if few."""
    tied_examples_share = ranking.tied / ranking.examples
    if tied_examples_share <= _MANY_TIES:
        return ""
    return f"{100 * tied_examples_share:.0f} % of the {units} share their {value} with another; "


def tie_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that many ties were broken at random, in a ranking by scores as given."""
    return order_warnings(tied_share(ranking))


def order_warnings(share: str) -> tuple[str, ...]:
    """Say that ties were broken at random, given how many in words, "" for few."""
    if not share:
        return ()
    tie_note = "ties were ordered at random, so a more precise score may show more"
    return (share + tie_note,)


def inverted_warnings(ranking: _core.Ranking, units: str = "examples") -> tuple[str, ...]:
    """Say that scores are higher on non-members."""
    members = ranking.members
    non_members = ranking.examples - members
    # the spread of the AUC of scores that say nothing: Mann and Whitney 1947
    auc_variance = (ranking.examples + 1) / (12 * max(1, members * non_members))
    deviations_below = (0.5 - ranking.auc) / math.sqrt(auc_variance)
    if deviations_below <= _INVERTED_DEVIATIONS:
        return ()
    return (_scores_look_inverted(ranking.auc, deviations_below, units),)


def _scores_look_inverted(auc: float, deviations_below: float, units: str) -> str:
    return (
        f"AUC {auc:.3f} is {deviations_below:.1f} standard deviations below 1/2: the scores look "
        "inverted (higher must mean more likely a member); they are used as given. Flipping the "
        f"sign for these {units} would use their membership: a flipped sign needs a new "
        "draw of members"
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
    if correct <= _NEAR_CEILING * guesses or bound < _NEAR_CEILING * ceiling():
        return ""
    return (
        f"{NEAR_CEILING} that these {units} can show (a perfect attack: {valued(ceiling())}): "
        f"more {units} may show more"
    )
