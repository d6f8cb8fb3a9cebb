"""The command line refuses bad input in one line, with exit code 2."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command_line import MEMBER, SCORE, leakbound, spawn


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty", "score,member"]),
        ("score,member\n", ["header and no rows"]),
        ("loss,member\n1,0\n", ["no column 'score'", "'loss', 'member'", "'id' may be there"]),
        ("score,score,member\n1,1,0\n", ["2 columns named 'score'"]),
        ("score,member\n1,0\nx,1\n", ["line 3", "score must be a number", "'x'"]),
        ("score,member\n1_0,0\n2,1\n", ["line 2", "'1_0'"]),
        ("score,member\n1,0\n2,yes\n", ["line 3", "member must be", "'yes'"]),
        ("score,member\n1,0\n\n2\n", ["line 4", "1 values where the header names 2"]),
        (b"score,member\n\xff,1\n", ["not UTF-8", "0xff"]),
        ("score,member\n1,0\nnan,1\n", ["scores.csv: ", "NaN", "row 1", "rows count from 0"]),
        ("score,member\n1,0\n1,1\n", ["scores.csv: ", "all 2 scores are equal"]),
        ("score,member\n1,-1\n2,0\n3,1\n", ["scores.csv: ", "member must be", "row 1"]),
        ("id,score,member\na,1,0\na,2,1\n", ["both members and non-members", "a at rows 0, 1"]),
    ],
)
def test_bad_csv_is_refused_in_one_line(
    content: str | bytes, words: list[str], table: Callable[[str | bytes], Path]
) -> None:
    refusal = leakbound("one-run", table(content)).refusal
    assert all(word in refusal for word in words)


def test_an_endless_quote_is_refused(table: Callable[[str], Path]) -> None:
    content = 'score,member\n1,"' + "0\n" * 200_000
    assert "not a csv file: field larger than" in leakbound("one-run", table(content)).refusal


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"score": SCORE}, "no column 'member'; its columns are 'score'"),
        ({"score": SCORE, "member": MEMBER[:5]}, "different lengths"),
        ({"score": SCORE.astype(str), "member": MEMBER}, "must hold real numbers"),
        ({"score": SCORE[:0], "member": MEMBER[:0]}, "no rows"),
    ],
)
def test_bad_npz_is_refused(arrays: dict[str, np.ndarray], words: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    assert words in leakbound("one-run", tmp_path / "x.npz").refusal


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"score": [1.0, None], "member": [0, 1]},
            "'score' has 1 empty values, the first at row 1",
        ),
        ({"score": ["a", "b"], "member": [0, 1]}, "must hold real numbers"),
    ],
)
def test_bad_parquet_is_refused(columns: dict[str, object], words: str, tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert words in leakbound("one-run", tmp_path / "x.parquet").refusal


def test_files_that_cannot_be_opened_or_written(scores: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.csv"
    assert (
        leakbound("one-run", missing).refusal
        == f"leakbound: {missing}: No such file or directory\n"
    )
    assert "Not a directory" in leakbound("one-run", scores, "--out", scores / "below").refusal
    assert "File exists" in leakbound("one-run", scores, "--out", scores).refusal
    (tmp_path / "folder.csv").mkdir()
    assert "without shards" in leakbound("one-run", tmp_path / "folder.csv").refusal


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cuts", "best"), "--cuts must be one of auto, kl, union"),
        (("--attacks", "score,score"), "must name different columns"),
        (("--prior", "1.5"), "prior must be"),
        (("--cuts", "fixed:0"), "guesses"),
        (("--claim", "eps=nan"), "needs a number of at least 0"),
        (("--claim", "rho=1"), "'rho' which is not known here; give --claim eps=…"),
        (("--claim", "c=1,eps=1"), "'c' which is not known here"),
        (("--claim", "eps=1,eps=2"), "twice"),
        (("--claim", "delta=0"), "lacks eps"),
        (("--claim", "eps=1,delta=1"), "delta"),
        (("--claim", "eps=1,delta=1e-5", "--cuts", "weighted"), "delta > 0"),
        (("--confidence", "1"), "confidence must be"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, ...], words: str, scores: Path) -> None:
    refusal = leakbound("one-run", scores, *options).refusal
    assert words in refusal
    assert str(scores) not in refusal


def test_unknown_words_exit_with_2(scores: Path) -> None:
    for arguments in (("one-run", scores, "--bogus"), ("bogus",), ("one-run",)):
        answer = spawn(*arguments)
        assert answer.code == 2
        assert answer.out == ""
        assert "Traceback" not in answer.err


def test_a_report_without_matplotlib_is_refused_before_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refusal = leakbound("one-run", tmp_path / "missing.csv", "--out", tmp_path / "out").refusal
    assert "pip install 'leakbound[plot]'" in refusal
