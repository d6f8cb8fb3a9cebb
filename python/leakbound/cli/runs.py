"""Files that are counted together: parts of one run, or several runs with coins of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leakbound._base.checks import check_ids
from leakbound._base.console import tell
from leakbound._base.messages import Message
from leakbound._base.types import AnyArray, BoolArray
from leakbound.audits.member_count import MemberCount
from leakbound.audits.premises import looks_drawn
from leakbound.cli.files import Columns, Layout, opened, together
from leakbound.errors import DesignError, FormatError, InputError

# Coins that would all have to agree by chance: once in 10⁹
_AGREEING = 30
_ONE_RUN = (
    "a coin may decide on one run only. If all these runs were trained on the same canaries, put "
    "their rows into one file and give --groups id: scores of a canary are averaged, and the bound "
    "is on all runs together. To audit runs as one, toss coins for each run"
)


@dataclass(frozen=True, eq=False)
class _File:
    """Who was a member in a file, and the ids of its rows, if it has some."""

    path: Path
    ids: AnyArray | None
    member: BoolArray

    def is_named_as(self, other: "_File") -> bool:
        """Whether both files have the same ids, in any order."""
        if self.ids is None or other.ids is None or self.ids.size != other.ids.size:
            return False
        return np.array_equal(np.sort(self.ids), np.sort(other.ids))

    @property
    def coins(self) -> BoolArray:
        """Membership in the order of the ids."""
        if self.ids is None:
            return self.member
        return self.member[np.argsort(self.ids, kind="stable")]


def check_coins(paths: Sequence[Path], layout: Layout) -> None:
    """Check that no coin is counted twice, and say if files are several runs.

    Files with the same ids are runs, which need coins of their own; otherwise no id may be there
    twice. Files whose ids are not the same, or that have none, are compared row by row.
    """
    files = [one for one in (_read(path, layout) for path in paths) if one.member.size]
    # Files of the same ids, of each run one.
    alike = list[list[_File]]()
    for one in files:
        if one.ids is None:
            continue
        known = next((group for group in alike if group[0].is_named_as(one)), None)
        if known is None:
            alike.append([one])
            continue
        for other in known:
            _check_apart(other, one)
        known.append(one)
    if files and all(one.ids is not None for one in files):
        _check_repeated([group[0] for group in alike])
    _check_unnamed(files)
    runs = max(map(len, alike), default=1)
    if runs > 1:
        tell(
            f"note: files have the same ids and different coins: they are audited as {runs} runs, "
            "each with separate coins. The bound is on one run"
        )


def _read(path: Path, layout: Layout) -> _File:
    """Read membership, and ids if there is one column of them."""
    with opened(path, layout) as (names, load):
        known = names.count("id") == 1
        wanted = [layout.member_col]
        if known:
            wanted.append("id")
        shard = Columns(path, together(load(wanted)), layout)
    if not len(shard):
        return _File(path, None, np.empty(0, dtype=np.bool_))
    ids = None
    if known:
        ids = shard.words("id").astype(np.str_)
    return _File(path, ids, shard.member() == 1)


def _check_apart(one: _File, other: _File) -> None:
    """Refuse runs whose coins are the same, the opposite, or depend on each other."""
    alike = int((one.coins == other.coins).sum())
    size = one.member.size
    count = MemberCount.of_coins(alike, size)
    if 0 < alike < size and not count.impossible:
        return
    coins = f"coins that depend on each other ({alike:,} of {size:,} agree)"
    if alike == size:
        coins = "the same coins"
    elif not alike:
        coins = "opposite coins"
    raise DesignError(f"{one.path} and {other.path} have the same ids and {coins}: {_ONE_RUN}")


def _check_unnamed(files: Sequence[_File]) -> None:
    """Compare files of which ids do not tell whether they have the same canaries.

    Refuse those of which row by row all coins agree, or differ, where these look drawn. In another
    order of rows the same coins leave only their numbers, which are told.
    """
    by_coins = dict[bytes, _File]()
    by_numbers = dict[tuple[int, int], _File]()
    unsure: tuple[Path, Path] | None = None
    for one in files:
        size = one.member.size
        # The same for coins and for their opposites.
        turned = (one.member != one.member[0]).tobytes()
        other = by_coins.setdefault(turned, one)
        drawn = size >= _AGREEING and looks_drawn(one.member)
        if drawn and other is not one and not other.is_named_as(one):
            agree = "opposite"
            if other.member[0] == one.member[0]:
                agree = "the same"
            raise DesignError(
                f"{other.path} and {one.path} have {agree} coins, row by row: {_ONE_RUN}; a column "
                "id is needed for that, with the same id for a canary in each run"
            )
        other = by_numbers.setdefault((size, int(one.member.sum())), one)
        if unsure is None and other is not one and not other.is_named_as(one):
            unsure = (other.path, one.path)
    if unsure is not None:
        tell(
            f"note: {unsure[0]} and {unsure[1]} have equally many rows and members, and not the "
            "same ids, so that their coins cannot be compared: each coin must decide on one run "
            "only"
        )


def _check_repeated(files: list[_File]) -> None:
    """Refuse an id that is there twice, in one file or in two that are no runs of each other."""
    ids = np.concatenate([one.ids for one in files if one.ids is not None])
    member = np.concatenate([one.member for one in files])
    try:
        check_ids(ids, member)
    except InputError as error:
        message = (
            "{error} (rows count from 0, through all files in order). If files are runs, each has "
            "to have the ids of all canaries"
        )
        raise FormatError(Message(message, error=error)) from error
