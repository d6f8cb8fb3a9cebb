"""Formats of tables: text in pieces and blocks, read by the main thread."""

import csv
import io
import json
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leakbound as lb
from command_line import leakbound
from leakbound._base.files import Unpacked
from leakbound.cli import files, formats
from leakbound.cli.files import Layout, read
from leakbound.errors import LeakboundError

SCORE = np.round(np.random.default_rng(5).normal(size=120), 4)
CSV = "loss,label\n" + "".join(f"{one},{row % 2}\n" for row, one in enumerate(SCORE))
JSON = "".join(f'{{"loss": {one}, "label": {row % 2}}}\n' for row, one in enumerate(SCORE))
HEAD = "score,member\n"


def list_of(column: Any) -> list[Any]:
    """Return the values of a column of Arrow."""
    return list(column.to_pylist())


@given(st.text(st.sampled_from('a1,\n\r"\u00e9\U0001f600'), max_size=60), st.integers(4, 9))
def test_text_in_utf_16_is_the_same_in_pieces_of_any_size(text: str, size: int) -> None:
    class Slow(io.BytesIO):
        def read(self, _: int | None = -1, /) -> bytes:
            return super().read(size)

    text = "a" + text
    for encoding, named in (("utf-16", ""), ("utf-8", ""), ("utf-32-le", "utf-32-le")):
        found = formats.as_utf8(Slow(text.encode(encoding)), named).read().decode()
        assert found.replace("\r", "\n") == text.replace("\r", "\n")


class Watched(io.BytesIO):
    """A file that knows the threads that read from it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.threads = set[int]()

    def read(self, size: int | None = -1, /) -> bytes:
        self.threads.add(threading.get_ident())
        return super().read(size)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("odd", [False, True])
def test_no_thread_reads_that_may_outlive_python(
    suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, odd: bool
) -> None:
    """Arrow's readers ahead wait for Python, and abort the program where it has ended."""
    text = CSV if suffix == ".csv" else JSON
    text = text * 2 if odd else text  # a second header is no number
    file = Watched((text + (",," if odd else "")).encode())
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 256)
    monkeypatch.setattr(files, "_stream", lambda *_: nullcontext(file))
    (tmp_path / f"a{suffix}").touch()
    with suppress(LeakboundError):
        table = read(tmp_path / f"a{suffix}", ["loss", "label"], Layout(member_col="label"))
        assert not odd or suffix == ".jsonl"
        assert table.numbers("loss")[:120].tolist() == SCORE.tolist()
    assert file.threads == {threading.get_ident()}


FIELDS = st.text(st.sampled_from('a",\n é'), max_size=6)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=30), st.integers(1, 40))
def test_blocks_end_where_rows_end(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]], size: int
) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC).writerows([("x", "y"), *table])
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "_BYTES_OF_BLOCK", size)
        stored = read(path, ["x", "y"], Layout()).stored
    assert [*zip(*map(list_of, (stored["x"], stored["y"])), strict=True)] == table


DEEP = 100_000
NESTED = {
    "in a line": '{"score": 1, "x": ' + DEEP * "[" + DEEP * "]" + "}\n",
    "across lines": '{"score": 1, "x":\n' + DEEP * "[\n" + DEEP * "]\n" + "}\n",
    "beside words": '{"score": 1, "x": ' + DEEP * '["]", ' + "1" + DEEP * "]" + "}\n",
    "with as many ends": DEEP * '{"a": {"b": 1}, "c":\n' + "1" + DEEP * "}\n",
    "in a list": '[{"score": 1, "x": ' + DEEP * "[" + DEEP * "]" + "}]",
    "after others": 100 * '{"score": 1, "x": "]]]]]]"}\n' + DEEP * '{"c":\n' + "1" + DEEP * "}\n",
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_json_that_is_nested_deep_is_refused_and_ends_no_process(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    assert "it is nested more than 1,000 deep" in leakbound("coins", path).refusal


def test_words_of_json_may_hold_any_signs(tmp_path: Path) -> None:
    rows = [{"score": row / 7, "member": row % 2, "text": 700 * '[[{"\\'} for row in range(60)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert list_of(read(path, ["score"], Layout()).stored["score"]) == [
        row["score"] for row in rows
    ]


def test_a_line_of_json_has_a_limit_and_a_list_in_one_line_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 16)
    monkeypatch.setattr(formats, "_MOST_BYTES_OF_ROW", 200)
    path = tmp_path / "a.jsonl"
    rows = [{"score": row / 7, "member": row % 2} for row in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    expected = leakbound("coins", path, "--seed", 0).out
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert leakbound("coins", path, "--seed", 0).out == expected
    path.write_text('{"score": 1, "member": 1, "x": "' + 500 * "0", encoding="utf-8")
    assert "a line has more than 200 bytes" in leakbound("coins", path).refusal


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_that_grows_as_fast_as_it_is_read_has_an_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    rows = {"a.csv": "0.5,1\n", "a.jsonl": '{"score": 0.5, "member": 1}\n'}[name]
    path.write_text(HEAD * name.endswith(".csv") + 20_000 * rows, encoding="utf-8")
    add = Unpacked.add

    def grow(unpacked: Unpacked, size: int, count: int = 0) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(20_000 * rows)
        add(unpacked, size, count)

    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 1 << 14)
    monkeypatch.setattr(Unpacked, "add", grow)
    assert "it grows while it is read: wait" in leakbound("coins", path).refusal


def test_rows_are_counted_through_all_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BYTES_OF_BLOCK", 16)
    monkeypatch.setattr(formats, "_MOST_BYTES_OF_ROW", 200)
    path = tmp_path / "a.csv"
    path.write_text(HEAD + 50 * "1.5,0\n" + "1,2,3\n")
    assert "row 50: Expected 2 columns, got 3" in leakbound("coins", path).refusal
    path.write_text(HEAD + '1,"' + 500 * "0\n")
    assert "is a quotation mark not closed?" in leakbound("coins", path).refusal


def _typeset(numbers: list[str], sign: str) -> str:
    rows = [f'"{one.replace(",", sign)}",{row % 2}' for row, one in enumerate(numbers)]
    return HEAD + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("sign", "named"),
    [(" ", "space"), ("\u00a0", "space"), ("\u202f", "space"), ("'", "'"), ("\u2019", "'")],
)
def test_typeset_signs_of_thousands_are_named_and_read(
    sign: str, named: str, tmp_path: Path
) -> None:
    numbers = [f"{x:,.2f}" for x in 1e4 * SCORE]
    path, plain = tmp_path / "a.csv", tmp_path / "plain.csv"
    path.write_text(_typeset(numbers, sign), encoding="utf-8")
    plain.write_text(_typeset(numbers, ""), encoding="utf-8")
    quoted = '"\'"' if named == "'" else named
    refusal = leakbound("coins", path).refusal
    assert f"remove the thousands separators, or give --thousands {quoted}" in refusal
    read_, expected = (
        leakbound("coins", one, *options, "--json-full", "--seed", 0).out
        for one, options in ((path, ("--thousands", named)), (plain, ()))
    )
    found, right = (lb.AuditResult.from_json(one) for one in (read_, expected))
    assert (found.bound, found.auc) == (right.bound, right.auc)


REFUSED = {
    "a mark": ("1,0\nNA,1\n", "no mark of a missing value: drop these examples, or repair"),
    "a point": ("1,0\n.,1\n", "no mark of a missing value"),
    "empty": ("1,0\n,1\n", "no mark of a missing value"),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED)
def test_marks_of_missing_scores_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEAD + text)
    assert words in leakbound("coins", path).refusal


def test_groups_that_are_no_thousands_never_get_the_advice_of_a_decimal_comma(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEAD + '"12,34,567",0\n950,1\n')
    refusal = leakbound("coins", path).refusal
    assert "it is '12,34,567' at row 0" in refusal
    assert "--decimal" not in refusal


@pytest.mark.parametrize("command", ["coins", "split"])
def test_two_columns_of_scores_get_the_options_for_two_files(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, loss_train=SCORE[:50], loss_test=SCORE[50:])
    options = ("--untouched",) if command == "split" else ()
    refusal = leakbound(command, path, *options).refusal
    assert "--members A --nonmembers B" in refusal
    assert "'loss_train', 'loss_test'" in refusal


def test_utf_32_is_read_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((HEAD + "1,0\n2,1\n").encode("utf-32"))
    assert read(path, ["score"], Layout()).numbers("score").tolist() == [1.0, 2.0]
