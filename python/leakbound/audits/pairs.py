"""A random split as a game of fair coins: members matched with non-members at random.

Given which examples are paired, and which is left over, all ways to say which of each pair is the
member belong to equally likely splits. So fair coins of their own decide, one for each pair, and
to turn one of them replaces one training example by another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from leakbound._base.alignment import row_numbers
from leakbound._base.codes import by_first_row
from leakbound._base.robust import robust_scale
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, GenericArray, IntArray
from leakbound.audits.split_game import SplitGame
from leakbound.errors import AbstentionError, DesignError, InputError

Aggregate: TypeAlias = Literal["mean", "max", "log_mean_exp", "sum"]

STRETCH = 0.25
"""How much more a score counts for each standard deviation that it is away from the median."""
# Standard scores beyond are as good: their squares stay finite.
_FARTHEST = 1e100


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """What a split moved as one: examples, or groups of them, within strata.

    `unit` has the unit of each example, `stratum` the stratum of each unit and `strata_of_rows`
    that of each example.
    """

    member: BoolArray
    stratum: IntArray
    strata_of_rows: IntArray
    unit: IntArray | None = None
    aggregate: Aggregate = "mean"

    @classmethod
    def of(
        cls,
        member: BoolArray,
        strata: GenericArray | None,
        groups: GenericArray | None,
        aggregate: Aggregate,
    ) -> "Units":
        """Gather examples into groups; raise InputError where a group straddles the split."""
        if strata is None:  # of which no row takes memory
            stratum: IntArray = np.broadcast_to(np.int64(0), member.shape)
        else:
            stratum = by_first_row(strata)[2]
        if groups is None:
            return cls(member=member, stratum=stratum, strata_of_rows=stratum)
        _, first, unit = by_first_row(groups)
        for values, how in (
            (member, "is in both parts of the split"),
            (stratum, "is in more than one stratum"),
        ):
            _check_whole(groups, values=values, how=how)
        return cls(
            member=member[first],
            stratum=stratum[first],
            strata_of_rows=stratum,
            unit=unit,
            aggregate=aggregate,
        )

    @property
    def count(self) -> int:
        """How many units there are."""
        return self.member.size

    def features(self, table: FloatArray) -> FloatArray:
        """Return the features of each unit: the means of its examples."""
        if self.unit is None:
            return table
        size = np.bincount(self.unit)
        means = []
        for column in table.T:
            values, unit = self._by_size(column)
            means.append(_means(values, unit=unit, size=size))
        return np.column_stack(means)

    def scores(self, values: FloatArray) -> FloatArray:
        """Return one score for each unit, a function of its rows in whatever order they are."""
        if self.unit is None:
            return values
        size = np.bincount(self.unit)
        largest = np.full(self.count, -np.inf)
        np.maximum.at(largest, self.unit, values)
        if self.aggregate == "max":
            return largest
        values, unit = self._by_size(values)
        if self.aggregate == "mean":
            return _means(values, unit=unit, size=size)
        if self.aggregate == "sum":
            return _means(values, unit=unit, size=np.ones_like(size))
        # Log-mean-exp, with exponents relative to the largest score of each unit.
        beyond = ~np.isfinite(largest)
        base = np.where(beyond, 0.0, largest)
        exponents = np.minimum(values - base[unit], 0.0)
        total = np.bincount(unit, np.exp(exponents))
        with np.errstate(divide="ignore"):
            log_mean = base + np.log(total / size)
        return np.where(beyond, largest, log_mean)

    def _by_size(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the values of each unit's rows in increasing order, and the units they are of.

        Sums round as their terms are ordered: in the order of storage, which may differ between the
        files of members and of others, rounding would tell equal units apart by their side.
        """
        assert self.unit is not None
        order = np.lexsort((values, self.unit))
        return values[order], self.unit[order]


def _means(values: FloatArray, unit: IntArray, size: IntArray) -> FloatArray:
    """Return means, or sums where sizes are 1; infinities of both signs cancel in pairs."""
    units = size.size
    finite = np.isfinite(values)
    known = unit[finite]
    mean = np.bincount(known, values[finite] / size[known], minlength=units)
    signs = np.sign(values[~finite])
    far = np.bincount(unit[~finite], signs, minlength=units)
    result: FloatArray = np.where(far == 0, mean, np.copysign(np.inf, far))
    return result


class TornGroup(NamedTuple):
    """A group whose rows have two values, how many groups have, and how many there are."""

    name: object
    first: int
    other: int
    torn: int
    of: int


def torn_group(groups: GenericArray, values: GenericArray) -> TornGroup | None:
    """Return the first group whose rows differ in a value; None if all groups are whole."""
    names, first, group = by_first_row(groups)
    torn = np.flatnonzero(values != values[first[group]])
    if not torn.size:
        return None
    row = int(torn[0])
    place = group[row]
    return TornGroup(
        name=names[place],
        first=int(first[place]),
        other=row,
        torn=np.unique(group[torn]).size,
        of=names.size,
    )


def _check_whole(groups: GenericArray, values: GenericArray, how: str) -> None:
    """Check that all examples of a group have one value."""
    torn = torn_group(groups, values)
    if torn is None:
        return
    raise InputError(
        f"{torn.torn} of {torn.of} groups are not whole: {torn.name!s} {how} "
        f"(rows {torn.first} and {torn.other}). Groups are rows that the split kept "
        "together: leave groups out if it moved single rows, or correct them"
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Units matched one to one: rows of the members and of the non-members, and their order.

    `first` says for which pairs the member stands first, by a fair coin: nothing else about a pair
    shows which of the two it is.
    """

    members: IntArray
    others: IntArray
    first: BoolArray

    @classmethod
    def drawn(cls, units: Units, seed: int) -> "Pairs":
        """Match members with non-members at random, within strata.

        Within a stratum every matching of as many as can be is equally likely, whatever order the
        examples are stored in, and whatever their scores.
        """
        rng = Purpose.PAIRS.rng(seed)
        # 1. Within each stratum the smaller side is matched with a random part of the other.
        of_members: list[IntArray] = []
        of_others: list[IntArray] = []
        for rows in _by_stratum(units.stratum):
            inside = units.member[rows]
            members = rows[inside]
            rng.shuffle(members)
            others = rows[np.logical_not(inside, out=inside)]
            rng.shuffle(others)
            size = min(members.size, others.size)
            of_members.append(members[:size])
            of_others.append(others[:size])
            del rows, inside  # which may be large, before coins are tossed
        paired = _joined(of_members)
        if not paired.size:
            raise DesignError(_without_pairs(units))
        # 2. A coin puts one of the two first.
        member_is_first = rng.random(paired.size) < 0.5
        return cls(members=paired, others=_joined(of_others), first=member_is_first)

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return self.first.size

    def game(
        self, scores: FloatArray, seed: int, named: str = "", stretch: "Stretch | None" = None
    ) -> SplitGame:
        """Return the game of some scores of the units; AbstentionError if they order nothing.

        `named` is for sentences that would speak of examples, and `stretch` the scale of the
        scores, if it is known.
        """
        if scores.min() == scores.max():
            raise AbstentionError(
                f"all {scores.size} scores are equal, so nothing can be guessed: use a score that "
                "differs between examples"
            )
        return SplitGame(
            given=scores,
            members=self.members,
            others=self.others,
            first=self.first,
            stretch=stretch or Stretch.of(scores),
            named=named,
            seed=seed,
        )


def _by_stratum(stratum: IntArray) -> Iterator[IntArray]:
    """Yield the rows of each stratum."""
    rows = row_numbers(stratum.size)
    if stratum.min() == stratum.max():
        yield rows
        return
    order = rows[np.argsort(stratum, kind="stable")]
    edges = np.flatnonzero(np.diff(stratum[order])) + 1
    yield from np.split(order, edges)


def _joined(parts: list[IntArray]) -> IntArray:
    """Return rows of all strata, those of a single one as they are."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts)


def _without_pairs(units: Units) -> str:
    """Say why a split has no pair."""
    alone = {0: "non-members", units.count: "members"}.get(int(units.member.sum()))
    if alone is None:
        return "no stratum has both members and non-members, so there is no pair to compare"
    return (
        f"all {units.count} units of the split are {alone}: an audit of a random "
        "split compares both parts, so pass scores of the training set and of the "
        "held-out part"
    )


def stretched(values: FloatArray) -> FloatArray:
    """Return values on the scale of their differences, see `Stretch`."""
    return Stretch.of(values)(values)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The scale z (1 + |z| / 4) of differences, z being robust standard scores.

    Membership has no part in it. Near the median differences count as they are, and in the tails
    for more, where a score that stands out says more than one that is merely larger. Infinite
    scores come just beyond all others, and what is beyond 10^100 deviations counts as there. The
    order of storage has no part in it either, not even by rounding: means are of sorted values.

    A score as a share of the `largest` has the standard score (share - `centre`) / `spread`, and
    an infinite one the standard score ± `infinite`.
    """

    largest: float = 1.0
    centre: float = 0.0
    spread: float = 1.0
    infinite: float = 0.0

    @classmethod
    def of(cls, values: FloatArray) -> "Stretch":
        """Take the scale from scores; one copy of them is held, as they may be many."""
        finite = values[np.isfinite(values)]
        if not finite.size:
            return cls()
        # Robust scaling: the median, and the median distance from it unless that is 0.
        lowest = float(finite.min())
        highest = float(finite.max())
        largest = max(highest, -lowest) or 1.0
        finite /= largest
        centre, spread = robust_scale(finite, in_place=True)
        if not spread:
            finite.sort()  # distances, by now
            spread = float(finite.mean()) or 1.0
        scale = cls(largest=largest, centre=centre, spread=spread)
        # Standard scores increase with scores, so that the farthest is at one of the ends.
        below, above = scale._standard(np.array([lowest, highest])).tolist()
        return replace(scale, infinite=1.0 + max(above, -below))

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return scores on this scale."""
        if not self.infinite:  # none was finite
            return np.sign(values)
        standard = self._standard(values)
        beyond = np.isinf(values)
        if beyond.any():
            standard[beyond] = np.copysign(self.infinite, values[beyond])
        # z (1 + |z| / 4)
        stretch = np.abs(standard)
        stretch *= STRETCH
        stretch += 1.0
        standard *= stretch
        return standard

    def _standard(self, values: FloatArray) -> FloatArray:
        standard = values / self.largest
        standard -= self.centre
        with np.errstate(over="ignore"):
            standard /= self.spread
        return np.clip(standard, -_FARTHEST, _FARTHEST, out=standard)


class UnitScores(NamedTuple):
    """One score for each unit, and the scale of their differences."""

    scores: FloatArray
    stretch: Stretch

    @classmethod
    def of(cls, scores: FloatArray) -> "UnitScores":
        """Take the scale from the scores."""
        return cls(scores, Stretch.of(scores))
