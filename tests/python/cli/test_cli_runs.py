"""Several files of scores: parts of one run, or several runs with coins of their own."""

from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import csv_text, leakbound

SIZE = 400
RNG = np.random.default_rng(0)
COINS = RNG.random((3, SIZE)) < 0.5
SCORES = RNG.normal(size=(3, SIZE)) + COINS
IDS = np.arange(SIZE)
ORDER = RNG.permutation(SIZE)


def written(place: Path, run: int, coins: np.ndarray, *, ids: bool = True) -> Path:
    """Write a run with some coins; its rows are in an order of its own if there are ids."""
    columns = {"score": SCORES[run], "member": coins.astype(int)}
    if ids:
        columns = {name: values[ORDER] for name, values in columns.items()} | {"id": IDS[ORDER]}
    path = place / f"run{run}.csv"
    path.write_text(csv_text(**columns), encoding="utf-8")
    return path


@pytest.mark.parametrize("ids", [True, False])
def test_runs_with_coins_of_their_own_are_one_audit(tmp_path: Path, ids: bool) -> None:  # noqa: FBT001
    files = [written(tmp_path, run, COINS[run], ids=ids) for run in range(3)]
    answer = leakbound("coins", *files, "--seed", "0", "--json")
    total = lb.Tally.of(SCORES.ravel(), COINS.ravel())
    assert f'"bound": {lb.audit(total, lb.Coins(), seed=0).bound}' in answer.out
    assert ("they are audited as 3 runs, each with separate coins" in answer.err) == ids


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_the_same_coins_are_no_second_run(tmp_path: Path, ids: bool, turned: bool) -> None:  # noqa: FBT001
    """Nor are their opposites, as of models on the two halves of the canaries."""
    files = [
        written(tmp_path, 0, COINS[0], ids=ids),
        written(tmp_path, 1, COINS[0] != turned, ids=ids),
    ]
    refusal = leakbound("coins", *files).refusal
    assert "a coin may decide on one run only" in refusal
    assert "--groups id: scores of a canary are averaged" in refusal
    assert leakbound("tally", *files, "--out", tmp_path / "tally.parquet").code == 2


UNCOMPARED = "their coins cannot be compared: each coin must decide on one run only"
ANONYMOUS = "coins of different files are not compared"


def named(place: Path, run: int, coins: np.ndarray, ids: list[str] | None) -> Path:
    """Write a run whose canaries have these names, in order."""
    columns = {"score": SCORES[run], "member": coins.astype(int)}
    path = place / f"named{run}.csv"
    if ids is not None:
        columns["id"] = np.array(ids)
    path.write_text(csv_text(**columns), encoding="utf-8")
    return path


@pytest.mark.parametrize("second", ["run1/{}", "{:04d}", None])
@pytest.mark.parametrize("turned", [True, False])
def test_other_names_do_not_hide_the_same_coins(
    tmp_path: Path,
    second: str | None,
    turned: bool,  # noqa: FBT001
) -> None:
    """Ids with the name of a run, with zeros before them, or in one file only."""
    ids = None
    if second is not None:
        ids = [second.format(place) for place in IDS]
    files = [
        named(tmp_path, 0, COINS[0], [str(place) for place in IDS]),
        named(tmp_path, 1, COINS[0] != turned, ids),
    ]
    assert "coins, row by row: a coin may decide on" in leakbound("coins", *files).refusal
    files[1] = named(tmp_path, 1, COINS[1], ids)
    assert leakbound("coins", *files).code == 0


@pytest.mark.parametrize("named_alike", [True, False])
def test_coins_in_another_order_are_told_where_ids_do_not_tell(
    tmp_path: Path,
    named_alike: bool,  # noqa: FBT001
) -> None:
    ids: list[list[str] | None] = [None, None]
    if named_alike:
        ids = [[f"{run}-{place}" for place in IDS] for run in range(2)]
    for order in (np.argsort(COINS[0]), ORDER):  # members last, or at random
        files = [
            named(tmp_path, 0, COINS[0], ids[0]),
            named(tmp_path, 1, COINS[0][order], ids[1]),
        ]
        answer = leakbound("coins", *files)
        assert answer.code == 0
        assert UNCOMPARED in answer.err


def test_coins_of_tallies_are_not_compared_and_that_is_told(tmp_path: Path) -> None:
    files = []
    for run in range(2):
        path = tmp_path / f"run{run}.parquet"
        lb.Tally.of(SCORES[run], COINS[0]).to_parquet(path)
        files.append(path)
    assert ANONYMOUS in leakbound("coins", *files).err
    assert ANONYMOUS not in leakbound("coins", files[0]).err
    # Tables among them are compared.
    tables = [named(tmp_path, run, COINS[0], None) for run in range(1, 3)]
    assert "row by row" in leakbound("coins", files[0], *tables).refusal


def test_coins_that_mostly_agree_are_no_second_run(tmp_path: Path) -> None:
    mostly = COINS[0] ^ (RNG.random(SIZE) < 0.3)
    files = [written(tmp_path, 0, COINS[0]), written(tmp_path, 1, mostly)]
    agree = int((mostly == COINS[0]).sum())
    refusal = leakbound("coins", *files).refusal
    assert f"coins that depend on each other ({agree} of 400 agree)" in refusal


def test_the_way_out_for_the_same_coins_averages_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    columns = {
        "score": SCORES[:2].ravel(),
        "member": np.tile(COINS[0], 2).astype(int),
        "id": np.tile(IDS, 2),
    }
    path.write_text(csv_text(**columns), encoding="utf-8")
    answer = leakbound("coins", path, "--groups", "id", "--unit", "canary", "--seed", "0", "--json")
    found = lb.audit(SCORES[:2].mean(axis=0), lb.Coins(COINS[0], unit="canary"), seed=0)
    assert f'"bound": {found.bound}' in answer.out


def test_parts_of_runs_are_told_from_parts_that_overlap(tmp_path: Path) -> None:
    half = SIZE // 2
    files = []
    for run in range(2):
        for part in (slice(0, half), slice(half, SIZE)):
            columns = {"score": SCORES[run, part], "member": COINS[run, part].astype(int)}
            path = tmp_path / f"{run}-{part.start}.csv"
            path.write_text(csv_text(**columns, id=IDS[part]), encoding="utf-8")
            files.append(path)
    answer = leakbound("coins", *files)
    assert "they are audited as 2 runs" in answer.err
    whole = written(tmp_path, 2, COINS[2])
    refusal = leakbound("coins", *files[:2], whole).refusal
    assert "If files are runs, each has to have the ids of all canaries" in refusal
