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
_FEWEST_COMPARED_COINS = 30
_ONE_RUN = (
    "a coin may decide on one run only. If all these runs were trained on the same canaries, put "
    "their rows into one file and give --groups id: scores of a canary are averaged, and the bound "
    "is on all runs together. To audit runs as one, toss coins for each run"
)


@dataclass(frozen=True, eq=False)
class _FileOfCoins:
    """Who was a member in a file, and the ids of its rows, if it has some."""

    path: Path
    ids: AnyArray | None
    member: BoolArray

    def has_ids_of(self, other: "_FileOfCoins") -> bool:
        """Whether both files have the same ids, in any order."""
        if self.ids is None or other.ids is None or self.ids.size != other.ids.size:
            return False
        return np.array_equal(np.sort(self.ids), np.sort(other.ids))

    @property
    def coins_by_id(self) -> BoolArray:
        """Membership in the order of the ids."""
        if self.ids is None:
            return self.member
        by_id = np.argsort(self.ids, kind="stable")
        return self.member[by_id]


def check_coins(paths: Sequence[Path], layout: Layout) -> None:
    """Check that no coin is counted twice, and say if files are several runs.

    Files with the same ids are runs, which need coins of their own; otherwise no id may be there
    twice. Files whose ids are not the same, or that have none, are compared row by row.
    """
    files = list[_FileOfCoins]()
    for path in paths:
        file = _read_coins(path, layout)
        if file.member.size:
            files.append(file)
    runs_by_ids = _runs_by_ids(files)
    if files and all(file.ids is not None for file in files):
        first_runs = [runs[0] for runs in runs_by_ids]
        _check_distinct_ids(first_runs)
    _check_without_ids(files)
    most_runs = max(map(len, runs_by_ids), default=1)
    if most_runs > 1:
        tell(
            f"note: files have the same ids and different coins: they are audited as {most_runs} "
            "runs, each with separate coins. The bound is on one run"
        )


def _runs_by_ids(files: Sequence[_FileOfCoins]) -> list[list[_FileOfCoins]]:
    """Return lists of files with the same ids, each of another run; check their coins."""
    runs_by_ids = list[list[_FileOfCoins]]()
    for file in files:
        if file.ids is None:
            continue
        earlier_runs = next((runs for runs in runs_by_ids if runs[0].has_ids_of(file)), None)
        if earlier_runs is None:
            runs_by_ids.append([file])
            continue
        for earlier in earlier_runs:
            _check_independent_coins(earlier, file)
        earlier_runs.append(file)
    return runs_by_ids


def _read_coins(path: Path, layout: Layout) -> _FileOfCoins:
    """Read membership, and ids if there is one column of them."""
    with opened(path, layout) as (names, load):
        has_ids = names.count("id") == 1
        wanted_columns = [layout.member_col]
        if has_ids:
            wanted_columns.append("id")
        columns = Columns(path, together(load(wanted_columns)), layout)
    if not len(columns):
        return _FileOfCoins(path, ids=None, member=np.empty(0, dtype=np.bool_))
    ids = None
    if has_ids:
        ids = columns.words("id").astype(np.str_)
    return _FileOfCoins(path, ids=ids, member=columns.member() == 1)


def _check_independent_coins(one: _FileOfCoins, other: _FileOfCoins) -> None:
    """Refuse runs whose coins are the same, the opposite, or depend on each other."""
    agreeing_coins = int((one.coins_by_id == other.coins_by_id).sum())
    coins = one.member.size
    agreement = MemberCount.of_coins(agreeing_coins, coins)
    if 0 < agreeing_coins < coins and not agreement.impossible:
        return
    flaw = f"coins that depend on each other ({agreeing_coins:,} of {coins:,} agree)"
    if agreeing_coins == coins:
        flaw = "the same coins"
    elif not agreeing_coins:
        flaw = "opposite coins"
    raise DesignError(f"{one.path} and {other.path} have the same ids and {flaw}: {_ONE_RUN}")


def _check_without_ids(files: Sequence[_FileOfCoins]) -> None:
    """Compare files of which ids do not tell whether they have the same canaries.

    Refuse those of which row by row all coins agree, or differ, where these look drawn. In another
    order of rows the same coins leave only their numbers, which are told.
    """
    first_with_coins = dict[bytes, _FileOfCoins]()
    first_with_counts = dict[tuple[int, int], _FileOfCoins]()
    incomparable: tuple[Path, Path] | None = None
    for file in files:
        rows = file.member.size
        # The same for coins and for their opposites.
        coins_relative_to_first = (file.member != file.member[0]).tobytes()
        earlier = first_with_coins.setdefault(coins_relative_to_first, file)
        is_drawn = rows >= _FEWEST_COMPARED_COINS and looks_drawn(file.member)
        if is_drawn and earlier is not file and not earlier.has_ids_of(file):
            relation = "opposite"
            if earlier.member[0] == file.member[0]:
                relation = "the same"
            raise DesignError(
                f"{earlier.path} and {file.path} have {relation} coins, row by row: {_ONE_RUN}; a "
                "column id is needed for that, with the same id for a canary in each run"
            )
        counts = (rows, int(file.member.sum()))
        earlier = first_with_counts.setdefault(counts, file)
        is_incomparable = earlier is not file and not earlier.has_ids_of(file)
        if incomparable is None and is_incomparable:
            incomparable = (earlier.path, file.path)
    if incomparable is not None:
        first_path, second_path = incomparable
        tell(
            f"note: {first_path} and {second_path} have equally many rows and members, and not the "
            "same ids, so that their coins cannot be compared: each coin must decide on one run "
            "only"
        )


def _check_distinct_ids(files: list[_FileOfCoins]) -> None:
    """Refuse an id that is there twice, in one file or in two that are no runs of each other."""
    ids = np.concatenate([file.ids for file in files if file.ids is not None])
    member = np.concatenate([file.member for file in files])
    try:
        check_ids(ids, member)
    except InputError as error:
        message = (
            "{error} (rows count from 0, through all files in order). If files are runs, each has "
            "to have the ids of all canaries"
        )
        raise FormatError(Message(message, error=error)) from error
