"""Small files that unpack to large ones are refused in every format, before they fill memory."""

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakbound as lb
from command_line import leakbound
from leakbound import benchmark
from leakbound._base import files
from leakbound._base.console import failure
from leakbound.cli import formats
from leakbound.cli.files import Layout, opened, read
from leakbound.errors import FormatError

ROWS = 300_000
SCORES = np.zeros(ROWS)
ONE_ROW = {".csv": "0.0,1\n", ".tsv": "0.0\t1\n", ".jsonl": '{"score": 0.0, "member": 1}\n'}
HEADERS = {".csv": "score,member\n", ".tsv": "score\tmember\n", ".jsonl": ""}
FORMATS = [".csv.gz", ".tsv.gz", ".jsonl.gz", ".ndjson.gz", ".parquet"]


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte stands for the gigabyte that any file may unpack to."""
    monkeypatch.setattr(files, "_SMALL", 1 << 20)


def write(path: Path, rows: int = ROWS) -> Path:
    kind = path.name[path.name.index(".") :]
    if kind == ".parquet":
        table = pa.table({"score": SCORES[:rows], "member": np.ones(rows, bool)})
        parquet.write_table(table, path, compression="zstd", data_page_size=1 << 30)
        return path
    kind = kind.removesuffix(".gz").replace("ndjson", "jsonl")
    text = HEADERS[kind] + ONE_ROW[kind] * rows
    path.write_bytes(gzip.compress(text.encode(), 9))
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_a_small_file_that_unpacks_to_a_large_one(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"bomb{kind}")
    most = max(1 << 20, 100 * path.stat().st_size)
    for words in (["coins", path], ["tally", path, "--out", tmp_path / "t.parquet"]):
        said = leakbound(*words).refusal
        assert f"it unpacks from {path.stat().st_size:,} to more than {most:,} bytes" in said
        assert str(path) in said
        assert "--most-rows N" in said


@pytest.mark.parametrize("kind", FORMATS)
def test_most_rows_lets_an_honest_one_pass(kind: str, tmp_path: Path) -> None:
    path, out = write(tmp_path / f"honest{kind}"), tmp_path / "t.parquet"
    passed = leakbound("tally", path, "--out", out, "--most-rows", ROWS)
    assert passed.code == 0, passed.err
    assert f"{ROWS:,} examples" in passed.out
    said = leakbound("tally", path, "--out", out, "--most-rows", ROWS - 1).refusal
    assert f"it has more than {ROWS - 1:,} rows" in said


@pytest.mark.parametrize("kind", FORMATS)
def test_small_files_have_no_limit(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"small{kind}", 4000)
    tallied = leakbound("tally", path, "--out", tmp_path / "t.parquet")
    assert tallied.code == 0, tallied.err


def test_a_tally_that_unpacks_to_a_large_one(tmp_path: Path) -> None:
    zeros = np.zeros(ROWS, np.int64)
    metadata = lb.Tally.of([1.0, 2.0], [True, False]).to_arrow().schema.metadata
    table = pa.table({"key": zeros, "examples": zeros, "members": zeros})
    path = tmp_path / "tally.parquet"
    parquet.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
    with pytest.raises(FormatError, match="unpacks from"):
        lb.Tally.from_parquet(path)
    assert "unpacks from" in leakbound("coins", path).refusal


def test_a_store_of_scores_that_unpacks_to_a_large_one(tmp_path: Path) -> None:
    path = write(tmp_path / "scores.parquet")
    with pytest.raises(FormatError, match=r"scores\.parquet cannot be read: it unpacks from"):
        benchmark.Scores(path)(10, seed=0)


def test_a_tally_is_read_in_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    member = rng.random(2000) < 0.5
    whole = lb.Tally.of(rng.normal(size=2000), member)
    whole.to_parquet(tmp_path / "t.parquet")
    assert lb.Tally.from_parquet(tmp_path / "t.parquet") == whole


def test_too_little_memory_is_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    path = write(tmp_path / "small.csv.gz", 4000)
    monkeypatch.setattr("leakbound.cli.files.together", fails)
    assert "does not fit in memory, at 0 rows" in leakbound("coins", path).refusal
    assert failure(MemoryError()) == 2
    assert "not enough memory for this many rows" in capsys.readouterr().err


def objects(rows: int, score: str) -> str:
    return "".join(
        f'{{"score": {score}, "member": {row % 2}, "more": "x"}}\n' for row in range(rows)
    )


def test_json_lines_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tally of ten times the rows takes no more memory."""
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 1 << 16)
    peaks = []
    for rows in (4000, 40_000):
        path = tmp_path / f"{rows}.jsonl"
        path.write_text(objects(rows, "0.25"), encoding="utf-8")
        tracemalloc.start()
        with opened(path, Layout()) as (names, load):
            assert names == ["score", "member", "more"]
            assert sum(len(batch["score"]) for batch in load(["score", "member"])) == rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(
    ("first", "then", "kind"),
    [("1", "2", "i"), ("1", "0.5", "f"), ("0.5", '"0.25"', "f"), ("0.5", "9007199254740993", "f")],
)
def test_blocks_of_json_may_have_other_types(
    first: str, then: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(objects(20, first) + objects(20, then), encoding="utf-8")
    whole = read(path, ["score", "member"], Layout())
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 500)
    parts = read(path, ["score", "member"], Layout())
    for name in ("score", "member"):
        np.testing.assert_array_equal(parts.numbers(name), whole.numbers(name))
    assert parts.numbers("score").dtype.kind == kind


def test_a_wrong_row_in_a_later_block_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 500)
    path = tmp_path / "a.jsonl"
    for line, said in (
        ('{"score": x}', "in row 100"),
        ('{"member": 1}', "it is empty at row 100"),
        ('{"score": [1], "member": 1}', "at row 100"),
    ):
        path.write_text(f"{objects(100, '0.5')}{line}\n{objects(9, '0.5')}", encoding="utf-8")
        assert said in leakbound("coins", path).refusal
