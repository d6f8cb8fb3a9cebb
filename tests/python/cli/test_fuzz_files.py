"""Tables that were tampered with are refused in one line, without cost beyond their size."""

import io
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakbound as lb
from command_line import csv_text, leakbound, spawn
from leakbound.cli import tables, zero_run
from leakbound.errors import LeakboundError
from mutations import LONG, QUICK, assaulted, mutants

rng = np.random.default_rng(4)
M = 24
MEMBER = np.arange(M) % 2 == 0
SCORE = rng.normal(size=M)
IDS = np.array([f"e{i}" for i in range(M)])
WANTED = {"score": ("score",)}


def npz(save: Callable[..., None] = np.savez, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    save(stream, **({"score": SCORE, "member": MEMBER, "id": IDS} | arrays))
    return stream.getvalue()


def parquet_bytes(compression: str) -> bytes:
    stream = io.BytesIO()
    table = pa.table({"score": SCORE, "member": MEMBER, "id": IDS})
    parquet.write_table(table, stream, compression=compression)
    return stream.getvalue()


VALID = {
    "csv": [
        csv_text(score=SCORE, member=MEMBER, id=IDS).encode(),
        csv_text(id=IDS, member=MEMBER.astype(int), score=SCORE).replace("\n", "\r\n").encode(),
        csv_text(score=[f'"{x}"' for x in SCORE], member=MEMBER.astype(int)).encode("utf-8-sig"),
    ],
    "npz": [npz(), npz(np.savez_compressed)],
    "parquet": [parquet_bytes("none"), parquet_bytes("snappy")],
}
COUNTS = pytest.mark.parametrize(
    "count", [QUICK, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)


@COUNTS
@pytest.mark.parametrize("suffix", VALID)
@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header")
def test_tampered_tables(suffix: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / f"table.{suffix}"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        table = tables.read(path, WANTED)
        assert len(table.scores["score"]) == len(table.member) > 0
        lb.audit(table.scores["score"], lb.Coins(table.member), ids=table.ids)

    cases = mutants(VALID[suffix], count, seed=count)
    read_well, refused = assaulted(cases, read, (LeakboundError, OSError))
    assert read_well + refused == count
    assert refused > count // 4


def declaring(shape: str, descr: str = "<f8", packed: bytes = b"") -> bytes:
    """Return an archive whose scores declare a shape that they do not have."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (53 - len(header) % 64 % 53) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + packed
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("score.npy", array)
        archive.writestr("member.npy", array)
    return stream.getvalue()


def encrypted() -> bytes:
    content = bytearray(npz())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(mark)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(mark, place + 4)
    return bytes(content)


FILES: dict[str, tuple[str, bytes, str]] = {
    "terabytes": ("x.npz", declaring(f"({10**13},)"), "declares an array far beyond"),
    "terabytes of text": ("x.npz", declaring("(3,)", "<U1000000000000"), "not an .npz archive"),
    "no bytes each": ("x.npz", declaring(f"({10**13},)", "<U0"), "must hold real numbers"),
    "a bomb": ("x.npz", declaring(f"({2**26},)", packed=bytes(2**29)), "would unpack from"),
    "encrypted": ("x.npz", encrypted(), "encrypted"),
    "cut": ("x.npz", npz()[:-30], "not an .npz archive"),
    "objects": ("x.npz", npz(score=np.array([{}] * M)), "Object arrays cannot be loaded"),
    "UTF-16": ("x.csv", "score,member\n1,0\n".encode("utf-16"), "not UTF-8"),
    "exponent": ("x.csv", b"score,member\n-1e999,1\n0,0\n", "'-1e999', which is beyond a double"),
    "NUL": ("x.csv", b"id,score,member\na\x00,1,0\na,2,1\nb,3\x00,1\n", "NUL"),
    "columns": ("x.csv", b"score,member" + b",c" * 200_000 + b"\n1,0\n", "names 200002 columns"),
    "parquet": ("x.parquet", parquet_bytes("none")[:-9], "not a parquet file"),
}


@pytest.mark.parametrize(("name", "content", "words"), FILES.values(), ids=FILES)
def test_hostile_files_are_refused_in_one_line(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert words in leakbound("one-run", tmp_path / name).refusal


def test_pipes_and_folders_are_no_files(tmp_path: Path) -> None:
    for suffix in ("csv", "npz", "parquet", "npy"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
        (tmp_path / f"folder.{suffix}").mkdir()
        for name, what in ((f"pipe.{suffix}", "a pipe"), (f"folder.{suffix}", "a directory")):
            with pytest.raises(lb.errors.InputFileError, match=f"is {what}"):
                zero_run._propensities(tmp_path / name, None)


def test_a_name_that_is_no_text_is_reported_and_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text(csv_text(score=SCORE + 2 * MEMBER, member=MEMBER))
    answer = spawn("one-run", path, "--out", tmp_path / os.fsdecode(b"\xfe"))
    assert (answer.code, answer.err) == (0, "")
    path.write_text("score\n1\n")
    assert spawn("one-run", path).refusal.endswith("may be there too\n")


def test_an_array_of_propensities_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "p.npy"

    def contents() -> Iterator[bytes]:
        stream = io.BytesIO()
        np.save(stream, np.full((3, M), 0.4))
        yield from mutants([stream.getvalue()], QUICK, seed=0)

    def read(content: bytes) -> None:
        path.write_bytes(content)
        assert zero_run._propensities(path, None).ndim in {1, 2}

    read_well, refused = assaulted(contents(), read)
    assert read_well + refused == QUICK
