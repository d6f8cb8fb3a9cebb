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
    files_of_coins = list[_FileOfCoins]()
    for path in paths:
        file_of_coins = _read_coins(path, layout)
        if file_of_coins.member.size:
            files_of_coins.append(file_of_coins)
    runs_by_ids = _runs_by_ids(files_of_coins)
    if files_of_coins and all(file_of_coins.ids is not None for file_of_coins in files_of_coins):
        first_runs = [runs[0] for runs in runs_by_ids]
        _check_distinct_ids(first_runs)
    _check_without_ids(files_of_coins)
    largest_number_of_runs = max(map(len, runs_by_ids), default=1)
    if largest_number_of_runs > 1:
        tell(
            "note: files have the same ids and different coins: they are audited as "
            f"{largest_number_of_runs} runs, each with separate coins. The bound is on one run"
        )


def _runs_by_ids(files_of_coins: Sequence[_FileOfCoins]) -> list[list[_FileOfCoins]]:
    """Return lists of files with the same ids, each of another run; check their coins."""
    runs_by_ids = list[list[_FileOfCoins]]()
    for file_of_coins in files_of_coins:
        if file_of_coins.ids is None:
            continue
        earlier_runs = next(
            (runs for runs in runs_by_ids if runs[0].has_ids_of(file_of_coins)), None
        )
        if earlier_runs is None:
            runs_by_ids.append([file_of_coins])
            continue
        for earlier_run in earlier_runs:
            _check_independent_coins(earlier_run, file_of_coins)
        earlier_runs.append(file_of_coins)
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
    coin_count = one.member.size
    agreement = MemberCount.of_coins(agreeing_coins, coin_count)
    if 0 < agreeing_coins < coin_count and not agreement.impossible:
        return
    flaw_of_coins = f"coins that depend on each other ({agreeing_coins:,} of {coin_count:,} agree)"
    if agreeing_coins == coin_count:
        flaw_of_coins = "the same coins"
    elif not agreeing_coins:
        flaw_of_coins = "opposite coins"
    raise DesignError(
        f"{one.path} and {other.path} have the same ids and {flaw_of_coins}: {_ONE_RUN}"
    )


def _check_without_ids(files_of_coins: Sequence[_FileOfCoins]) -> None:
    """Compare files of which ids do not tell whether they have the same canaries.

    Refuse those of which row by row all coins agree, or differ, where these look drawn. In another
    order of rows the same coins leave only their numbers, which are told.
    """
    first_with_coins = dict[bytes, _FileOfCoins]()
    first_with_counts = dict[tuple[int, int], _FileOfCoins]()
    incomparable: tuple[Path, Path] | None = None
    for file_of_coins in files_of_coins:
        row_count = file_of_coins.member.size
        # The same for coins and for their opposites.
        coins_relative_to_first = (file_of_coins.member != file_of_coins.member[0]).tobytes()
        earlier_file = first_with_coins.setdefault(coins_relative_to_first, file_of_coins)
        is_drawn = row_count >= _FEWEST_COMPARED_COINS and looks_drawn(file_of_coins.member)
        if (
            is_drawn
            and earlier_file is not file_of_coins
            and not earlier_file.has_ids_of(file_of_coins)
        ):
            relation = "opposite"
            if earlier_file.member[0] == file_of_coins.member[0]:
                relation = "the same"
            raise DesignError(
                f"{earlier_file.path} and {file_of_coins.path} have {relation} coins, row by row: "
                f"{_ONE_RUN}; a column id is needed for that, with the same id for a canary in "
                "each run"
            )
        rows_and_members = (row_count, int(file_of_coins.member.sum()))
        earlier_file = first_with_counts.setdefault(rows_and_members, file_of_coins)
        is_incomparable = earlier_file is not file_of_coins and not earlier_file.has_ids_of(
            file_of_coins
        )
        if incomparable is None and is_incomparable:
            incomparable = (earlier_file.path, file_of_coins.path)
    if incomparable is not None:
        first_path, second_path = incomparable
        tell(
            f"note: {first_path} and {second_path} have equally many rows and members, and not the "
            "same ids, so that their coins cannot be compared: each coin must decide on one run "
            "only"
        )


def _check_distinct_ids(files_of_coins: list[_FileOfCoins]) -> None:
    """Refuse an id that is there twice, in one file or in two that are no runs of each other."""
    ids_of_all_files = np.concatenate(
        [file_of_coins.ids for file_of_coins in files_of_coins if file_of_coins.ids is not None]
    )
    membership_of_all_files = np.concatenate(
        [file_of_coins.member for file_of_coins in files_of_coins]
    )
    try:
        check_ids(ids_of_all_files, membership_of_all_files)
    except InputError as error:
        message = (
            "{error} (rows count from 0, through all files in order). If files are runs, each has "
            "to have the ids of all canaries"
        )
        raise FormatError(Message(message, error=error)) from error
