"""Formats of tables: text in pieces and blocks, read by the main thread."""

import csv
import io
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import leakbound
from leakbound.cli import files, formats
from leakbound.cli.files import Layout, read
from leakbound.errors import LeakboundError

SCORE = np.round(np.random.default_rng(5).normal(size=120), 4)
CSV = "loss,label\n" + "".join(f"{one},{row % 2}\n" for row, one in enumerate(SCORE))
JSON = "".join(f'{{"loss": {one}, "label": {row % 2}}}\n' for row, one in enumerate(SCORE))
HEAD = "score,member\n"


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
    monkeypatch.setattr(formats, "_BLOCK", 256)
    monkeypatch.setattr(files, "_stream", lambda _: nullcontext(file))
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
        patch.setattr(formats, "_BLOCK", size)
        stored = read(path, ["x", "y"], Layout()).stored
    assert [*zip(stored["x"].to_pylist(), stored["y"].to_pylist(), strict=True)] == table


def test_rows_are_counted_through_all_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_BLOCK", 16)
    monkeypatch.setattr(formats, "_LONGEST", 200)
    path = tmp_path / "a.csv"
    path.write_text(HEAD + 50 * "1.5,0\n" + "1,2,3\n")
    assert "row 50: Expected 2 columns, got 3" in leakbound("coins", path).refusal
    path.write_text(HEAD + '1,"' + 500 * "0\n")
    assert "is a quotation mark not closed?" in leakbound("coins", path).refusal
