"""`leakbound split` of several tables: the bits of the joined table, and what is refused."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import leakbound as lb
from command_line import leakbound
from leakbound.cli import joined
from leakbound.cli.files import Layout
from leakbound.errors import FormatError
from peak_memory import peak_over_start

pytestmark = pytest.mark.usefixtures("few_trees")

RNG = np.random.default_rng(3)
M = 1200
USER = RNG.integers(300, size=M)
MEMBER = (RNG.permutation(300) < 200)[USER]
ROWS = pa.table(
    {
        "id": np.arange(M),
        "score": RNG.normal(size=M) + 1.5 * MEMBER,
        "second": RNG.normal(size=M),
        "member": MEMBER.astype(np.int8),
        "site": np.array(["north", "south", "west"])[USER % 3],
        "user": np.char.add("u", USER.astype(np.str_)),
        "n_tokens": RNG.integers(5, 90, size=M),
    }
)
ENDS = (0, 500, 800, 800, M)
SEED = ("--untouched", "--seed", "7", "--json-full")


def write(rows: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(rows, path, row_group_size=170)
    elif path.suffix == ".csv":
        csv.write_csv(rows, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    return path


def shards(folder: Path, rows: pa.Table = ROWS) -> list[Path]:
    """Write rows in four shards of three kinds, one of which is empty."""
    folder.mkdir(exist_ok=True)
    names = ("a.parquet", "b.csv", "c.parquet", "d.jsonl")
    pieces = [rows.slice(start, end - start) for start, end in itertools.pairwise(ENDS)]
    return [write(piece, folder / name) for piece, name in zip(pieces, names, strict=True)]


def answered(files: Sequence[object], *options: str) -> Any:
    answer = leakbound("split", *files, *SEED, *options)
    assert answer.code in {0, 3}, answer.err
    return lb.AuditResult.from_json(answer.out)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--strata", "site", "--groups", "user", "--aggregate", "max"),
        ("--attacks", "score,second"),
        ("--family", "gaussian", "--features", "second"),
    ],
    ids=str,
)
def test_shards_have_the_bits_of_the_joined_table(tmp_path: Path, options: tuple[str, ...]) -> None:
    whole = answered([write(ROWS, tmp_path / "whole.parquet")], *options)
    parts = shards(tmp_path / "parts")
    for files in (parts, [tmp_path / "parts"], [f"{tmp_path}/parts/*"]):
        assert answered(files, *options) == whole


def test_features_that_some_shards_lack_or_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    plain = answered([write(ROWS.drop(["n_tokens", "id"]), tmp_path / "plain.csv")])
    first, *others = shards(tmp_path / "parts")
    write(ROWS.slice(0, ENDS[1]).drop(["n_tokens", "id"]), first)
    assert answered([first, *others]) == plain
    words = ROWS.drop(["n_tokens"]).append_column("n_tokens", pa.array(["many"] * M))
    files = [write(words.slice(0, 600), tmp_path / "w.csv"), write(words.slice(600), first)]
    answer = leakbound("split", *files, *SEED)
    assert lb.AuditResult.from_json(answer.out) == plain
    assert "no challenge reads it" in answer.err


def test_bad_shards_are_named_with_their_rows(tmp_path: Path) -> None:
    first, second, _, last = shards(tmp_path)

    def refusal(rows: pa.Table, name: str, *options: str) -> str:
        write(rows, tmp_path / name)
        return leakbound("split", first, tmp_path / name, *SEED, *options).refusal

    rest = ROWS.slice(500)
    scores = rest["score"].to_numpy().copy()
    scores[321] = np.nan
    late = rest.set_column(1, "score", pa.array(scores))
    assert "nan.parquet: column 'score' must not be NaN, but it is at row 321" in refusal(
        late, "nan.parquet"
    )
    assert "has no column 'member'; name the column with" in refusal(
        rest.drop(["member"]), "no.csv"
    )
    assert "has no column 'site'" in refusal(rest.drop(["site"]), "site.csv", "--strata", "site")
    wrong = rest.set_column(3, "member", pa.array(["perhaps"] * 700))
    assert "words.csv: column 'member' must be 0 or 1" in refusal(wrong, "words.csv")
    again = refusal(ROWS.slice(0, 500), "again.csv")
    assert "again.csv has the scores and membership of" in again
    assert "has the scores and membership" in leakbound("split", last, last, *SEED).refusal
    repeated = rest.set_column(0, "id", pa.array(np.arange(700)))
    said = refusal(repeated, "ids.csv")
    assert "ids are both members and non-members" in said
    assert "rows count from 0, through all files in order" in said
    torn = refusal(
        rest.set_column(5, "user", pa.array(["u1"] * 700)), "torn.csv", "--groups", "user"
    )
    assert "groups are not whole" in torn
    assert "only one role" in leakbound("split", first, second, *SEED, "--strata", "score").refusal
    write(ROWS.slice(0, 0), first)
    write(ROWS.slice(0, 0), second)
    assert "no rows" in leakbound("split", first, second, *SEED).refusal


def test_ids_of_text_are_compared_up_to_so_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ROWS.set_column(0, "id", pa.array(["same"] * M))
    parts = shards(tmp_path, text)
    assert "ids are both members and non-members" in leakbound("split", *parts, *SEED).refusal
    monkeypatch.setattr(joined, "_COMPARED", 1000)
    assert answered(parts) == answered([write(ROWS, tmp_path / "whole.parquet")])


def test_shards_take_some_bytes_a_row(tmp_path: Path) -> None:
    """Text of csv is not kept: a row takes the bytes of its numbers, twice while joined."""
    rows = 100_000
    rng = np.random.default_rng(0)
    for part in range(16):
        member = rng.random(rows) < 0.5
        score = rng.normal(size=rows) + member
        write(pa.table({"score": score, "member": member}), tmp_path / f"{part}.csv")
    files = sorted(tmp_path.glob("*.csv"))

    def peak(count: int) -> int:
        def scores() -> object:
            table = joined.Joined(files[:count], joined.Roles(["score"]), Layout())
            return table.numbers("score"), table.member()

        return peak_over_start(scores)

    assert peak(16) - peak(4) < 25 * 12 * rows


def test_what_does_not_fit_in_memory_is_for_an_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = joined.Joined(shards(tmp_path), joined.Roles(["score"]), Layout())

    def full(_: object) -> object:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(np, "concatenate", full)
        with pytest.raises(FormatError, match="let an engine pair and count them"):
            table.numbers("score")
