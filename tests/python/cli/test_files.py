"""Files of every kind are read as what they are, or refused by file, column, row and option."""

import gzip
import io
import json
import os
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import leakbound as lb
from command_line import csv_text, leakbound, spawn
from leakbound.cli.files import Layout, read
from leakbound.errors import LeakboundError
from mutations import LONG, QUICK, assaulted, mutants

RNG = np.random.default_rng(5)
MEMBER = RNG.random(120) < 0.5
SCORE = np.round(RNG.normal(size=120) + 2 * MEMBER, 4)
IDS = np.array([f"e{i}" for i in range(120)])
BOUND = lb.audit(SCORE, lb.Coins(MEMBER)).bound


def rows(separator: str = ",", decimal: str = ".", words: tuple[str, str] = ("1", "0")) -> str:
    lines = [separator.join(("loss", "label", "note"))]
    for score, member in zip(SCORE, MEMBER, strict=True):
        number = str(score).replace(".", decimal)
        lines.append(separator.join((number, words[0] if member else words[1], '"x\ny"')))
    return "\n".join(lines) + "\n"


def objects() -> str:
    pairs = zip(SCORE.tolist(), MEMBER.tolist(), strict=True)
    return "".join(json.dumps({"loss": s, "label": m}) + "\n" for s, m in pairs)


FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "plain": ("a.csv", "\ufeff" + rows(",").replace("\n", "\r\n"), ()),
    "signs": ("a.csv", rows(" , ", words=("+1.0e+00", "-1")).replace('"x\ny"', "x"), ()),
    "true": ("a.csv", rows(",", words=("True", "FALSE")), ()),
    "words": ("a.csv", rows(",", words=("in", "out")), ("--member-values", "in,out")),
    "tsv": ("a.tsv", rows("\t"), ()),
    "tabs in a csv": ("a.csv", rows("\t"), ("--sep", "tab")),
    "semicolons": ("a.csv", rows(";"), ("--sep", ";", "--decimal", ".")),
    "decimal commas": ("a.csv", rows(";", ","), ("--sep", ";", "--decimal", ",")),
    "tabs and decimal commas": ("a.tsv", rows("\t", ","), ("--decimal", ",")),
    "JSON lines": ("a.jsonl", objects(), ()),
}
COLUMNS = ("--score-col", "loss", "--member-col", "label")


ENCODED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "UTF-16 with a mark": ("utf-16", "\n", ()),
    "UTF-16 without": ("utf-16-le", "\r\n", ()),
    "UTF-16 of the other order": ("utf-16-be", "\n", ()),
    "UTF-8 with a mark": ("utf-8-sig", "\r\n", ()),
    "old Macs": ("utf-8", "\r", ()),
    "Macs in UTF-16": ("utf-16", "\r", ()),
    "Latin-1": ("latin-1", "\n", ("--encoding", "latin-1")),
    "Windows": ("cp1252", "\r\n", ("--encoding", "CP1252")),
    "Latin-1 of old Macs": ("latin-1", "\r", ("--encoding", "iso-8859-1")),
    "named UTF-8": ("utf-8-sig", "\n", ("--encoding", "utf8")),
}


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("case", ENCODED)
def test_encodings_and_ends_of_lines(case: str, kind: str, tmp_path: Path) -> None:
    encoding, end, options = ENCODED[case]
    ids = [f"\u00e9{i}" for i in range(120)]
    columns = {"score": SCORE, "member": MEMBER.astype(int), "id": ids}
    if kind == "csv":
        text = csv_text(**columns)
    else:
        rows = zip(SCORE.tolist(), MEMBER.tolist(), ids, strict=True)
        lines = [dict(zip(columns, row, strict=True)) for row in rows]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    for path in (tmp_path / f"a.{kind}", tmp_path / f"a.{kind}.gz"):
        content = text.replace("\n", end).encode(encoding)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        answer = leakbound("coins", path, *options, "--json-full")
        assert lb.AuditResult.from_json(answer.out).bound == BOUND
        layout = Layout(encoding="".join(options[1:]))
        assert read(path, ["score"], layout).words("id").tolist() == ids


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n', "\ufeffsep=;\n"])
def test_a_first_line_may_name_the_separator(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(line + rows(";"), encoding="utf-8", newline="")
    answer = leakbound("coins", path, *COLUMNS, "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND


ODD_JSON: dict[str, Any] = {
    "a column that changes its type": {"label2": lambda row: 1 if row < 60 else "neutral"},
    "nested differently": {"doc": lambda row: [1, [True]] if row % 2 else {"a": "x"}},
    "half a pair of surrogates": {"text": lambda _: "\ud83d"},
    "membership of two types": {
        "label": lambda row: bool(MEMBER[row]) if row % 2 else int(MEMBER[row])
    },
    "scores as text and numbers": {"loss": lambda row: str(SCORE[row]) if row % 2 else SCORE[row]},
}


@pytest.mark.parametrize("case", ODD_JSON)
@pytest.mark.parametrize("listed", [False, True])
def test_a_column_that_nobody_asked_for_does_not_stop_json(
    case: str, tmp_path: Path, *, listed: bool
) -> None:
    records = [
        {"loss": float(SCORE[row]), "label": bool(MEMBER[row])}
        | {name: value(row) for name, value in ODD_JSON[case].items()}
        for row in range(120)
    ]
    text = json.dumps(records, indent=1) if listed else "\n".join(map(json.dumps, records))
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    answer = leakbound("coins", path, *COLUMNS, "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND


@pytest.mark.parametrize("case", FILES)
def test_text_in_every_layout_packed_and_counted(case: str, tmp_path: Path) -> None:
    name, text, options = FILES[case]
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path / name, packed):
        answer = leakbound("coins", path, *COLUMNS, *options, "--json-full")
        assert lb.AuditResult.from_json(answer.out).bound == BOUND
    counted = leakbound("tally", packed, *COLUMNS, *options, "--out", tmp_path / "t.parquet")
    assert f"120 examples, {MEMBER.sum()} members" in counted.out
    packed.write_bytes(gzip.compress(text.encode())[:-20])
    assert "cannot be read" in leakbound("coins", packed, *COLUMNS, *options).refusal


def test_binary_files_of_every_kind(tmp_path: Path) -> None:
    words = np.where(MEMBER, "in", "out")
    table = pa.table({"loss": SCORE, "label": MEMBER, "text": ["x"] * 120})
    worded = table.set_column(1, "label", pa.array(words).dictionary_encode())
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=50)
    parquet.write_table(worded, tmp_path / "b.parquet")
    np.savez(tmp_path / "d.npz", loss=SCORE[:, None], label=words[:, None], more=np.zeros((2, 2)))
    for path in sorted(tmp_path.iterdir()):
        named = ("--member-values", "in,out") if path.stem in "bd" else ()
        found = read(
            path, ["loss", "label"], Layout(member_col="label", member_values="".join(named[1:]))
        )
        assert found.numbers("loss").tolist() == SCORE.tolist()
        assert (found.member() > 0).tolist() == MEMBER.tolist()
        answer = leakbound("coins", path, *COLUMNS, *named)
        assert answer.code == 0, answer.err
    wrong = leakbound("coins", tmp_path / "d.npz", *COLUMNS, "--member-values", "yes,out")
    assert "must be yes,out" in wrong.refusal
    assert "it is 'in' at row" in wrong.refusal


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_text_becomes_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("table") / "scores.csv"
    path.write_text(csv_text(score=values, member=[0] * len(values)))
    numbers = read(path, ["score", "member"], Layout()).numbers("score")
    assert numbers.view(np.int64).tolist() == np.array(values).view(np.int64).tolist()


def test_what_needs_arrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "a.npz", score=SCORE, member=MEMBER)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert leakbound("coins", tmp_path / "a.npz").code == 0
    (tmp_path / "a.csv").touch()
    assert "pip install 'leakbound[io]'" in leakbound("coins", tmp_path / "a.csv").refusal


SEMICOLONS = ("--sep", ";", "--decimal")
HEAD = "score,member\n"
REFUSED: dict[str, tuple[str, str | bytes, tuple[str, ...], str]] = {
    "nothing": ("a.csv", "", (), "no column 'score'"),
    "no rows": ("a.csv", HEAD, (), "no rows below its header"),
    "no score": (
        "a.csv",
        "loss,member\n1,0\n",
        (),
        "name the column with --score-col; its columns are",
    ),
    "neither": ("a.csv", "x,y\n1,0\n", (), "no columns 'score' and 'member'; name them with"),
    "no member": ("a.csv", "score,x\n1,1\n", (), "name the column with --member-col"),
    "twice": ("a.csv", "score,score,member\n1,1,0\n", (), "2 columns 'score'"),
    "one column twice": ("a.csv", HEAD + "1,1\n", ("--member-col", "score"), "only one role"),
    "many": ("a.csv", "score" + ",c" * 200_000 + "\n1\n", (), "and 199,981 more"),
    "two separators": ("a.csv", "score;x,member\n1;2,1\n", (), "use --sep if columns are not"),
    "semicolons": ("a.csv", "score;member\n1;1\n", (), "use --sep if columns are not"),
    "thousands": ("a.csv", "score;member\n1,234;1\n", SEMICOLONS[:2], "needs --decimal"),
    "no number": ("a.csv", HEAD + "1,0\nx,1\n", (), "'score' must be a number, such as -0.5 or"),
    "where": ("a.csv", HEAD + "1,0\nx,1\n", (), "it is 'x' at row 1 (rows count from 0"),
    "grouped": ("a.csv", HEAD + "1_0,0\n2,1\n", (), "it is '1_0' at row 0"),
    "comma": (
        "a.tsv",
        "score\tmember\n1,5\t1\n",
        (),
        "(use --decimal , if that is the decimal sign)",
    ),
    "grouped by commas": (
        "a.csv",
        HEAD + '"1,234",0\n950,1\n',
        (),
        "remove the thousands separators, or give --thousands ,; it is '1,234' at row 0",
    ),
    "all grouped": (
        "a.csv",
        HEAD + '"1,234.5",0\n"2,950",1\n',
        (),
        "remove the thousands separators, or give --thousands ,",
    ),
    "grouped, as decimals": (
        "a.csv",
        HEAD + '950,1\n"1,234",0\n',
        ("--decimal", ","),
        "remove them, or give --decimal . --thousands ,; it is '1,234' at row 1",
    ),
    "grouped twice, as decimals": (
        "a.csv",
        HEAD + '"1,234,567",1\n"1,234",0\n',
        ("--decimal", ","),
        "has thousands separators, as three digits follow every ','",
    ),
    "grouped by points": (
        "a.csv",
        "score;member\n950;0\n12;0\n7;1\n80;0\n"
        + "".join(f"{i}.{i}0{i};1\n" for i in range(1, 10))
        + "11.100;1\n",
        (*SEMICOLONS, "."),
        "remove them, or give --decimal , --thousands .; it is '1.101' at row 4",
    ),
    "not grouped by three": (
        "a.csv",
        HEAD + '"12,34",0\n950,1\n',
        ("--thousands", ","),
        "must have --thousands , before groups of three digits; it is '12,34' at row 0",
    ),
    "one sign for both": ("a.csv", HEAD, ("--thousands", "."), "needs another --decimal sign"),
    "both": ("a.csv", "score;member\n1.2,5;1\n", (*SEMICOLONS, ","), "(use --decimal . if that is"),
    "beyond": ("a.csv", HEAD + "inf,1\n-1e999,1\n", (), "is too large for a double; write inf"),
    "words": ("a.csv", HEAD + "1,in\n2,a\n", (), "name other labels with --member-values IN,OUT"),
    "few values": ("a.csv", HEAD + "1,0\n\n2\n", (), "row 1: Expected 2 columns, got 1"),
    "endless": ("a.csv", HEAD + '1,"' + "0\n" * 200_000, (), "it is '0\\n0\\n0"),
    "NaN": ("a.csv", HEAD + "1,0\nnan,1\n", (), "must not be NaN, but 1 of 2 are, at row 1"),
    "equal": ("a.csv", HEAD + "1,0\n1,1\n", (), "all 2 scores are equal"),
    "signs": ("a.csv", HEAD + "1,-1\n2,0\n3,1\n", (), "member must be"),
    "no id": (
        "a.csv",
        "id,score,member\na,1,0\n,2,1\n",
        (),
        "value for every example; it is empty",
    ),
    "ids": ("a.csv", "id,score,member\na,1,0\na,2,1\n", (), "a at rows 0, 1"),
    "Latin": ("a.csv", HEAD.encode() + b"\xff,1\n", (), "invalid UTF8"),
    "Latin below": (
        "a.csv",
        (HEAD + "1,schw\u00e4che\n").encode("latin-1"),
        (),
        "its text is not UTF-8; name its encoding, such as --encoding latin-1",
    ),
    "Latin JSON": ("a.jsonl", '{"score": "\u00e4"}\n'.encode("latin-1"), (), "--encoding latin-1"),
    "no encoding": ("a.csv", HEAD + "1,0\n", ("--encoding", "klingon"), "is unknown; use latin-1"),
    "no text": ("a.csv", HEAD + "1,0\n", ("--encoding", "base64"), "is unknown; use latin-1"),
    "half of UTF-16": ("a.csv", (HEAD + "1,0\n").encode("utf-16")[:-1], (), "cannot be read"),
    "a nested score": (
        "a.jsonl",
        '{"score": [1, [true]], "member": 1}\n',
        (),
        "holds a list at row 0",
    ),
    "a list of scores": (
        "a.jsonl",
        '{"score": [1, 2], "member": 1}\n',
        (),
        "one in each row, got list",
    ),
    "a list": ("a.jsonl", "[1, 2]\n", (), "JSON parse error"),
    "a sheet": ("a.xlsx", "", (), "save it as one of .csv"),
    "an empty object": ("a.jsonl", "\n", (), "its columns are none"),
    "no JSON": ("a.jsonl", "{score: 1}\n", (), "JSON parse error"),
    "a missing name": ("a.jsonl", '{"score":1,"member":1}\n{"score":2}\n', (), "empty at row 1"),
    "null": ("a.jsonl", '{"score": null, "member": 1}\n', (), "it is empty at row 0"),
    "no gzip": ("a.csv.gz", HEAD + "1,1\n", (), "Not a gzipped file"),
    "no parquet": ("a.parquet", HEAD, (), "cannot be read"),
}


@pytest.mark.parametrize(("name", "text", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(
    name: str, text: str | bytes, options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / name).write_bytes(content)
    refusal = leakbound("coins", tmp_path / name, *options).refusal
    assert words in refusal
    of_options = words.startswith(("needs", "only one role", "is unknown"))
    assert (str(tmp_path / name) in refusal) == (not of_options)


GROUPED = {
    ",": ((), "{:,.2f}"),
    "'": ((), "{:,.2f}"),
    "space": ((), "{:,.2f}"),
    ".": (("--decimal", ","), "{:,.0f}"),
}


@pytest.mark.parametrize("sign", GROUPED)
def test_named_signs_of_thousands_are_read(sign: str, tmp_path: Path) -> None:
    options, form = GROUPED[sign]
    written = {"space": " "}.get(sign, sign)
    numbers = [float(form.format(x).replace(",", "")) for x in 1e4 * SCORE]
    words = [f'"{form.format(x).replace(",", written)}"' for x in 1e4 * SCORE]
    path = tmp_path / "a.csv"
    path.write_text(csv_text(score=words, member=MEMBER.astype(int)))
    answer = leakbound("coins", path, "--thousands", sign, *options, "--json-full")
    bound = lb.audit(np.array(numbers), lb.Coins(MEMBER)).bound
    assert lb.AuditResult.from_json(answer.out).bound == bound


@pytest.mark.parametrize("decimal", [".", ","])
def test_three_decimals_in_every_number_are_decimals(decimal: str, tmp_path: Path) -> None:
    words = [f'"{x:.3f}"'.replace(".", decimal) for x in 2 + np.abs(SCORE)]
    path = tmp_path / "a.csv"
    path.write_text(csv_text(score=words, member=MEMBER.astype(int)))
    assert leakbound("coins", path, "--decimal", decimal).code == 0
    path.write_text(path.read_text() + f'"inf",1\n"0{decimal}123",0\n12,1\n')
    assert leakbound("coins", path, "--decimal", decimal).code == 0


@pytest.mark.parametrize("command", [("coins",), ("split", "--untouched")])
def test_two_files_are_two_parts(command: tuple[str, ...], tmp_path: Path) -> None:
    order = np.argsort(~MEMBER, kind="stable")
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, rows in zip(both, (MEMBER, ~MEMBER), strict=True):
        path.write_text(csv_text(score=SCORE[rows], id=IDS[rows]))
    one = tmp_path / "one.csv"
    one.write_text(csv_text(score=SCORE[order], id=IDS[order], member=MEMBER[order].astype(int)))
    parts = ("--members", both[0], "--nonmembers", both[1])
    how = ("--seed", "0", "--json-full")
    results = [
        lb.AuditResult.from_json(leakbound(*command, *given, *how).out) for given in (parts, (one,))
    ]
    assert results[0].bound == results[1].bound > 0
    assert results[0].provenance.sha256 == results[1].provenance.sha256
    for wrong in ((one, *parts), parts[:2], ()):
        assert "give FILE, or both --members" in leakbound(*command, *wrong).refusal
    both[1].write_text("score\nx\n")
    assert f"{both[1]}: column 'score' must be a number" in leakbound(*command, *parts).refusal
    assert "--members A --nonmembers B" in leakbound(*command, both[0]).refusal


LARGE = 2**60 + np.arange(120)


def stored(folder: Path, kind: str, columns: dict[str, Any]) -> Path:
    """Write a table as a file of one kind."""
    path = folder / f"a.{kind}"
    if kind == "csv":
        path.write_text(csv_text(**columns))
    elif kind == "jsonl":
        names = [*columns]
        records = zip(*(np.asarray(one).tolist() for one in columns.values()), strict=True)
        path.write_text(
            "".join(json.dumps(dict(zip(names, one, strict=True))) + "\n" for one in records)
        )
    elif kind == "npz":
        np.savez(path, **columns)
    else:
        parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz", "parquet"])
def test_numbers_that_a_double_merges_are_refused_as_scores(kind: str, tmp_path: Path) -> None:
    scores = LARGE if kind != "jsonl" else (LARGE.astype(np.uint64) + np.uint64(2**63))
    path = stored(tmp_path, kind, {"score": scores, "member": MEMBER.astype(int)})
    refusal = leakbound("coins", path).refusal
    assert "column 'score' loses precision in float64: " in refusal
    assert f"{scores[0]} at row 0 and {scores[1]} at row 1 become equal" in refusal
    path = stored(tmp_path, kind, {"score": 1e17 * SCORE, "member": MEMBER.astype(int)})
    assert leakbound("coins", path).code == 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz", "parquet"])
@pytest.mark.parametrize("base", [2**60, 2**63 + 5])
def test_large_ids_groups_and_strata_are_read_exactly(kind: str, base: int, tmp_path: Path) -> None:
    ids = [base + i for i in range(120)]
    dtype = np.int64 if base < 2**63 else np.uint64
    plan = lb.InclusionPlan(MEMBER, ids=np.array(ids, dtype=dtype))
    plan.save(tmp_path / "plan.npz")
    order = RNG.permutation(120)
    columns = {"score": SCORE[order], "id": plan.ids[order], "member": MEMBER[order].astype(int)}
    columns |= {"person": plan.ids[order // 2], "site": plan.ids[order % 2]}
    path = stored(tmp_path, kind, columns)
    answer = leakbound("coins", path, "--plan", tmp_path / "plan.npz", "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND
    table = read(path, ["person", "site"], Layout())
    for name in ("person", "site", "id"):
        assert table.words(name).astype(str).tolist() == columns[name].astype(str).tolist()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npz", "parquet"])
def test_strata_may_be_dates(kind: str, tmp_path: Path) -> None:
    days = (np.datetime64("2024-01-01") + np.arange(120) % 2).astype(str)
    stamped = days.astype("M8[D]") if kind in {"npz", "parquet"} else days
    columns = {"score": SCORE, "member": MEMBER.astype(int), "day": stamped}
    path = stored(tmp_path, kind, columns)
    how = ("--strata", "day", "--untouched", "--seed", "1", "--json-full")
    found = lb.AuditResult.from_json(leakbound("split", path, *how).out)
    expected = lb.audit(SCORE, lb.RandomSplit(MEMBER, strata=days), seed=1)
    assert (found.bound, found.options["strata"]) == (expected.bound, 2)


def test_decimals_of_parquet_are_numbers_and_exact_ids(tmp_path: Path) -> None:
    exact = pa.array([Decimal(f"{one:.4f}") for one in SCORE], pa.decimal128(20, 4))
    ids = pa.array([Decimal(10**30 + i) for i in range(120)], pa.decimal128(38, 0))
    columns = {"score": exact, "member": pa.array(MEMBER), "id": ids}
    path = stored(tmp_path, "parquet", columns)
    answer = leakbound("coins", path, "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND
    assert "column 'id' loses precision" in leakbound("coins", path, "--score-col", "id").refusal


def test_a_plan_is_joined_by_id(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(300, seed=3)
    scores = RNG.normal(size=300) + 2 * plan.member
    expected = lb.audit(scores, lb.Coins(plan))
    plan.save(tmp_path / "plan.npz")
    order = RNG.permutation(300)
    lines = [f"{plan.ids[i]},{float(scores[i])!r}" for i in order]
    path = tmp_path / "scores.csv"
    path.write_text("id,score\n" + "\n".join(lines) + "\n")
    answer = leakbound("coins", path, "--plan", tmp_path / "plan.npz", "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == expected.bound
    everybody = "id,score,member\n" + "\n".join(f"{line},1" for line in lines) + "\n"
    for text, words in (
        ("id,score\nx,0.5\n", "x of the column id"),
        ("id,score\n0,0.5\n", "299 of member are not in the column id (1, 2, 3, …)"),
        ("score\n0.5\n", "300"),
        (everybody, "column member differs from the plan, first at row"),
    ):
        path.write_text(text)
        refusal = leakbound("coins", path, "--plan", tmp_path / "plan.npz").refusal
        assert refusal.startswith(f"leakbound: {path}: ")
        assert words in refusal


# --- what other tools keep ------------------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs/guides/from-a-file.md"
KEPT = re.findall(r"^\|[^|\n]*\| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.M)
"""What the guide says to run on what other tools keep."""


@pytest.mark.parametrize("line", KEPT)
def test_what_other_tools_keep_is_a_line_away(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pandas = pytest.importorskip("pandas")
    inside, outside = SCORE[MEMBER], SCORE[~MEMBER]
    np.save("score.npy", SCORE)
    np.save("member.npy", MEMBER)
    names = {
        "np": np,
        "pd": pandas,
        "inside": inside,
        "outside": outside,
        "train": pandas.DataFrame({"separable_id": range(inside.size), "score": inside}),
        "test": pandas.DataFrame({"separable_id": range(outside.size), "score": outside}),
        "scores": SCORE,
        "keep": MEMBER,
    }
    exec(line, names)
    (written,) = tmp_path.glob("scores.*")
    answer = leakbound("coins", written, "--json-full")
    assert lb.AuditResult.from_json(answer.out).bound == BOUND


# --- files that were tampered with ----------------------------------------------------------------


def npz(save: Callable[..., None] = np.savez, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    save(stream, **({"score": SCORE, "member": MEMBER, "id": IDS} | arrays))
    return stream.getvalue()


def parquet_bytes(compression: str) -> bytes:
    stream = io.BytesIO()
    table = pa.table({"score": SCORE[:24], "member": MEMBER[:24], "id": IDS[:24]})
    parquet.write_table(table, stream, compression=compression)
    return stream.getvalue()


TABLE = csv_text(score=SCORE[:24], member=MEMBER[:24], id=IDS[:24])
VALID = {
    "csv": [TABLE.encode(), TABLE.replace("\n", "\r\n").encode("utf-8-sig")],
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

    def load(content: bytes) -> None:
        path.write_bytes(content)
        table = read(path, ["score", "member"], Layout())
        ids = table.words("id") if "id" in table else None
        lb.audit(table.numbers("score"), lb.Coins(table.member()), ids=ids)

    cases = mutants(VALID[suffix], count, seed=count)
    read_well, refused = assaulted(cases, load, (LeakboundError, OSError))
    assert read_well + refused == count
    assert refused > count // 4


def declaring(shape: str, descr: str = "<f8", packed: bytes = b"") -> bytes:
    """Return an archive whose scores declare a shape that they do not have."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (53 - len(header) % 64 % 53) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + packed
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("score.npy", array)
        archive.writestr("member.npy", array)
    return stream.getvalue()


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "terabytes": (lambda: declaring(f"({10**13},)"), "declares an array that is much larger"),
    "terabytes of text": (lambda: declaring("(3,)", "<U1000000000000"), "cannot be read"),
    "no bytes each": (lambda: declaring(f"({10**13},)", "<U0"), "must hold real numbers"),
    # Two such arrays and their headers are just above the size from which ratios are limited.
    "a bomb": (lambda: declaring(f"({2**24},)", packed=bytes(2**27)), "would unpack from"),
    "cut": (lambda: npz()[:-30], "cannot be read"),
    "objects": (lambda: npz(score=np.array([{}] * 120)), "Object arrays cannot be loaded"),
    "words": (lambda: npz(score=SCORE.astype(str)), "must hold real numbers"),
    "lengths": (lambda: npz(member=MEMBER[:5]), "different lengths"),
    "no rows": (lambda: npz(score=SCORE[:0], member=MEMBER[:0], id=IDS[:0]), "no rows"),
    "two axes": (lambda: npz(score=np.zeros((120, 2))), "score"),
}


@pytest.mark.parametrize(("archive", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_archives_are_refused_in_one_line(
    archive: Callable[[], bytes], words: str, tmp_path: Path
) -> None:
    (tmp_path / "x.npz").write_bytes(archive())
    assert words in leakbound("coins", tmp_path / "x.npz").refusal


def test_pipes_and_folders_are_no_files(tmp_path: Path) -> None:
    for suffix in ("csv", "npz", "parquet"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
        (tmp_path / f"folder.{suffix}").mkdir()
        for name, what in ((f"pipe.{suffix}", "is a pipe"), (f"folder.{suffix}", "is a directory")):
            assert what in leakbound("zero-run", tmp_path / name).refusal


def test_files_that_cannot_be_opened_or_written(tmp_path: Path) -> None:
    missing, scores = tmp_path / "missing.csv", tmp_path / "a.csv"
    scores.write_text(TABLE)
    assert leakbound("coins", missing).refusal.endswith(f"{missing}: No such file or directory\n")
    assert "Not a directory" in leakbound("coins", scores, "--out", scores / "below").refusal
    assert "File exists" in leakbound("coins", scores, "--out", scores).refusal


def test_a_name_that_is_no_text_is_reported_and_refused(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text(csv_text(score=SCORE, member=MEMBER))
    answer = spawn("coins", path, "--out", tmp_path / os.fsdecode(b"\xfe"))
    assert (answer.code, answer.err) == (0, "")
    path.write_text("score\n1\n")
    assert spawn("coins", path).refusal.endswith("its columns are 'score'\n")
