"""Shards on the command line: folders, globs, several files, tallies and a pipe."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import leakbound as lb
from command_line import PROGRAM, leakbound

M = 6000
RNG = np.random.default_rng(1)
MEMBER = RNG.random(M) < 0.5
SCORES = RNG.normal(size=M) + MEMBER
TALLY = lb.Tally.of(SCORES, MEMBER)


def table(start: int = 0, stop: int = M, **columns: Any) -> pa.Table:
    whole = {"score": SCORES, "member": MEMBER} | columns
    return pa.table(whole).slice(start, stop - start)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shards of every kind, and files that engines leave beside them."""
    place = tmp_path / "shards"
    (place / "more").mkdir(parents=True)
    parquet.write_table(table(0, 2500), place / "a.parquet", row_group_size=700)
    csv.write_csv(table(2500, 4000), place / "b.csv")
    lines = [json.dumps(row) + "\n" for row in table(4000, 5000).to_pylist()]
    (place / "c.jsonl").write_text("".join(lines))
    csv.write_csv(table(5000, M), place / "more" / "d.csv")
    parquet.write_table(table(0, 0), place / "more" / "none.parquet")
    (place / "_SUCCESS").touch()
    (place / "_temporary.csv").write_text("nothing\n1\n")
    return place


def test_shards_of_every_kind_are_one_tally(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    answer = leakbound("tally", folder, "--out", out)
    assert answer.code == 0
    assert answer.out.endswith(
        f": 6,000 examples, {MEMBER.sum():,} members, {len(TALLY):,} keys of 20 bits, 4 shards\n"
    )
    assert lb.Tally.from_parquet(out) == TALLY


def test_one_run_takes_folders_globs_files_and_tallies(folder: Path, tmp_path: Path) -> None:
    bound = lb.audit(TALLY, lb.Coins()).bound
    leakbound("tally", folder / "a.parquet", folder / "b.csv", "--out", tmp_path / "one.parquet")
    leakbound("tally", folder / "c.jsonl", folder / "more", "--out", tmp_path / "two.parquet")
    given: list[list[Path]] = [
        [folder],
        [Path(f"{folder}/**/[a-d].*")],
        [folder / "a.parquet", folder / "b.csv", folder / "c.jsonl", folder / "more" / "d.csv"],
        [tmp_path / "one.parquet", tmp_path / "two.parquet"],
        [tmp_path / "one.parquet", folder / "c.jsonl", folder / "more"],
    ]
    for files in given:
        answer = leakbound("coins", *files, "--json-full")
        assert answer.code == 0, answer.err
        assert json.loads(answer.out)["bound"] == bound
    single = leakbound("coins", tmp_path / "one.parquet", "--claim", "eps=0.1")
    assert single.code == 1


def test_a_pipe_is_counted() -> None:
    piped = io.BytesIO()
    csv.write_csv(table(), piped)
    done = subprocess.run(
        [*PROGRAM, "coins", "-", "--json-full"],
        input=piped.getvalue(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bound"] == lb.audit(TALLY, lb.Coins()).bound


def test_bad_shards_are_refused_with_their_names_and_rows(tmp_path: Path) -> None:
    good = tmp_path / "good.parquet"
    parquet.write_table(table(0, 3000), good)
    out = tmp_path / "out.parquet"

    def refusal(name: str, content: pa.Table, *more: object) -> str:
        parquet.write_table(content, tmp_path / name, row_group_size=1000)
        return leakbound("tally", good, tmp_path / name, "--out", out, *more).refusal

    late = np.where(np.arange(M) == 5432, np.nan, SCORES)
    assert "nan.parquet: scores must not be NaN, but that at row 2432" in refusal(
        "nan.parquet", table(3000, score=late)
    )
    assert "has no column 'member'" in refusal("columns.parquet", table(3000).drop(["member"]))
    assert "added before" in refusal("again.parquet", table(0, 3000))
    lb.Tally.of(SCORES[3000:], MEMBER[3000:], bits=12).to_parquet(tmp_path / "coarse.parquet")
    lb.Tally.of(SCORES[:3000], MEMBER[:3000]).to_parquet(out)
    coarse = leakbound("tally", out, tmp_path / "coarse.parquet", "--out", out)
    assert "coarse.parquet: keys of 20 and 12 bits cannot be added" in coarse.refusal
    other = lb.Tally.of(SCORES, MEMBER).to_arrow()
    later = other.replace_schema_metadata({b"leakbound.tally": b'{"version": 2, "bits": 20}'})
    assert "later.parquet: the metadata of the tally cannot be read: schema version 2" in refusal(
        "later.parquet", pa.Table.from_batches([later])
    )
    worse = other.set_column(2, "members", pa.array(TALLY.examples_at + 1))
    assert "worse.parquet: key 260439 at row 0 has more members than examples" in refusal(
        "worse.parquet", pa.Table.from_batches([worse])
    )
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (["a", "b"], ["c", "a"], "both members and non-members, the first being a at rows 0, 3"),
        (["1", "2"], ["2", "1"], "1.parquet have the same ids and opposite coins"),
        (["1", "2"], ["1", "3"], "1 ids occur more than once, the first being 1 at rows 0, 2"),
        (["1", "1"], ["2", "3"], "both members and non-members, the first being 1 at rows 0, 1"),
        ([1, 2], [3, 4], None),
        ([1, 1], [[], []], None),  # a shard without ids
    ],
)
def test_ids_of_few_examples_are_compared_across_shards(
    first: list[Any],
    second: list[Any],
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, ids, scores in (("0.csv", first, (1.0, 2.0)), ("1.parquet", second, (1.5, 3.0))):
        rows = pa.table({"id": ids, "score": scores, "member": [1, 0]})
        write = csv.write_csv if name.endswith("csv") else parquet.write_table
        write(rows.drop(["id"]) if [] in ids else rows, name)
    answer = leakbound("tally", "0.csv", "1.parquet", "--out", "t.parquet")
    assert answer.code == (0 if message is None else 2)
    assert message is None or message in answer.err


def test_what_cannot_be_counted_is_answered_with_the_option_that_would_do(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    out = tmp_path / "t.parquet"
    for name, content, said in (
        ("empty", None, "no such files"),
        ("none-*.csv", None, "no such files"),
        ("notes.txt", "nothing", "save it as one of .csv"),
        ("text.parquet", "score,member", "cannot be read"),
        ("empty.csv", "", "has no column 'score'"),
        (
            "words.csv",
            "score,member\n1,inside\n2,outside\n",
            "name other labels with --member-values IN,OUT",
        ),
        ("others.csv", "loss,label\n1,1\n2,0\n", "name them with --score-col and --member-col"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        assert said in leakbound("tally", tmp_path / name, "--out", out).refusal
    others = tmp_path / "others.csv"
    named = ("--score-col", "loss", "--member-col", "label", "--out")
    assert leakbound("tally", others, *named, out).code == 0
    assert f"use --out {out}" in leakbound("tally", others, *named, out.with_suffix(".x")).refusal
    for options in (["--attacks", "score,other"], ["--prior", "chance"], ["--bundle", out]):
        assert "are only counted" in leakbound("coins", folder, *options).refusal


@pytest.mark.parametrize("column", ["score", "member"])
@pytest.mark.parametrize("option", ["tally --out tally.parquet", "split --untouched"])
def test_shards_of_no_text_are_refused_by_name(tmp_path: Path, option: str, column: str) -> None:
    ends = pa.py_buffer(np.array([0, 1, 3, 4], dtype=np.int32).tobytes())
    no_text = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"1\xff\xfe0")])
    columns = {"id": pa.array([1, 2, 3]), "score": pa.array([0.5, 1.5, 2.5])}
    columns["member"] = pa.array([1, 0, 1])
    columns[column] = no_text
    place = tmp_path / "shards"
    place.mkdir()
    parquet.write_table(pa.table(columns), place / "bad.parquet")
    command, *options = option.split()
    outcome = leakbound(command, place, *options)
    assert "bad.parquet cannot be read" in outcome.refusal
