"""`leakbound synthetic`: files of every kind, exit codes, and what is refused."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import leakbound as lb
from command_line import leakbound

pytestmark = pytest.mark.usefixtures("few_trees")

FILES = ("members", "nonmembers", "synthetic")


def people(n: int, seed: int) -> pd.DataFrame:
    """Records with numbers, dates, words, codes and missing values."""
    rng = np.random.default_rng(seed)
    pay = rng.lognormal(10, 1, n).round(2)
    frame = pd.DataFrame(
        {
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D"),
            "pay": np.where(rng.random(n) < 0.1, np.nan, pay),
            "height": rng.normal(170, 9, n).round(2),
            "town": rng.choice(["Bonn", "Nice", "Turin"], n),
            "zip": rng.choice([f"0{i}" for i in range(100, 160)], n),
            "married": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, "town"] = None
    return frame


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    everybody = people(400, 0)
    copies = everybody[:200].sample(200, replace=True, random_state=1)
    copies = copies.assign(height=copies["height"] + 0.05)
    return dict(zip(FILES, (everybody[:200], everybody[200:], copies), strict=True))


def written(folder: Path, tables: dict[str, pd.DataFrame], suffix: str = ".csv") -> list[object]:
    """Write the tables and return the options that name them."""
    options: list[object] = []
    for name, frame in tables.items():
        path = folder / f"{name}{suffix}"
        if suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
        options += [f"--{name}", path]
    return [*options, "--attacks", "attribution,density_ratio"]


def test_three_files_one_command(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    options = written(tmp_path, tables)
    answer = leakbound("synthetic", *options, "--claim", "eps=1", "--out", tmp_path / "out")
    assert answer.code == 1, answer.err
    assert answer.out.startswith("This generator leaks")
    assert "ε = 1 for replacing one record is refuted" in answer.out
    for metric in ("Equal to a member", "Closest record is a member", "DCR", "NNDR", "marginals"):
        assert metric in answer.out
    stored = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert stored["type"] == "SyntheticResult"
    assert stored["bound"] > 2
    assert (tmp_path / "out" / "report.html").exists()


def test_csv_and_parquet_are_read_alike(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    digests = []
    for suffix in (".csv", ".parquet"):
        answer = leakbound("synthetic", *written(tmp_path, tables, suffix), "--json-full")
        digests.append(json.loads(answer.out)["provenance"]["sha256"])
    assert digests[0] == digests[1]


def test_decimal_commas_are_read_where_they_are_named(
    tables: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    expected = json.loads(leakbound("synthetic", *written(tmp_path, tables), "--json-full").out)
    options = written(tmp_path, tables)
    for name, frame in tables.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False, decimal=",", sep="\t")
    tabs = ("--sep", "tab")
    found = json.loads(leakbound("synthetic", *options, *tabs, "--decimal", ",", "--json-full").out)
    assert found["provenance"]["sha256"] == expected["provenance"]["sha256"]


def test_claims_and_exit_codes(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    options = written(tmp_path, tables | {"synthetic": people(200, 2)})
    for claim, code in (("", 0), ("eps=1", 0), ("eps=30", 3), ("eps=0.1,delta=0.5", 3)):
        answer = leakbound("synthetic", *options, *(["--claim", claim] if claim else []))
        assert answer.code == code, (claim, answer.out, answer.err)
    options = written(tmp_path, tables)
    bound = json.loads(leakbound("synthetic", *options, "--json-full").out)["bound"]
    most = [*options, "--claim", f"eps={0.9 * bound}"]
    assert leakbound("synthetic", *most).code == 1
    assert leakbound("synthetic", *most, "--relation", "add_remove").code == 3  # 2ε is out of reach


def test_what_is_refused_in_one_line(tables: dict[str, pd.DataFrame], tmp_path: Path) -> None:
    less = tables | {"synthetic": tables["synthetic"].drop(columns="pay")}
    none = tables | {"nonmembers": tables["nonmembers"][:0]}
    for broken, words in (
        (less, "the synthetic table has no column 'pay'"),
        (none, "no rows below its header"),
    ):
        assert words in leakbound("synthetic", *written(tmp_path, broken)).refusal
    options = written(tmp_path, tables)
    for more, words in (
        (["--reference", tmp_path / "nonmembers.csv"], "chosen by membership"),
        (["--attacks", "magic"], "among attribution"),
        (["--strata", "planet"], "the stratum is 'planet'"),
        (["--reference", tmp_path / "none.csv"], "none.csv"),
    ):
        assert words in leakbound("synthetic", *options, *more).refusal


def test_large_tables_of_words_are_compared(tmp_path: Path) -> None:
    """More ways to split them than a double holds."""
    rng = np.random.default_rng(3)
    town = pd.DataFrame({"town": rng.choice(["Bonn", "Nice"], 1200), "age": rng.permutation(1200)})
    options = written(tmp_path, dict(zip(FILES, (town[:600], town[600:], town[:50]), strict=True)))
    answer = leakbound("synthetic", *options, "--attacks", "attribution")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files_are_read_as_data_frames_are(suffix: str, tmp_path: Path) -> None:
    """Large integers, decimals, dates as text, words and booleans, some of them missing."""
    rng = np.random.default_rng(5)
    base = pd.Timestamp("2020-01-01")
    days = base + pd.to_timedelta(rng.integers(0, 10**7, 90), "s")
    frame = pd.DataFrame(
        {
            "id": pd.array([2**60 + i for i in rng.permutation(90)], dtype="Int64"),
            "pay": [Decimal(int(one)) / 100 for one in rng.integers(0, 10**6, 90)],
            "since": days.strftime("%Y-%m-%d %H:%M:%S"),
            "town": rng.choice(["Bonn", "Nice"], 90),
            "married": pd.array(rng.random(90) < 0.5, dtype="boolean"),
        }
    )
    frame.loc[::7, "id"] = None
    frame.loc[::11, "since"] = None
    frame.loc[::13, "married"] = None
    parts = frame[:30], frame[30:60], frame[60:]
    expected = lb.audit_synthetic(*parts, attacks="attribution", seed=0)
    for name, part in zip(FILES, parts, strict=True):
        path = tmp_path / f"{name}{suffix}"
        if suffix == ".csv":
            part.to_csv(path, index=False)
        elif suffix == ".parquet":
            part.to_parquet(path, index=False)
        else:
            plain = part.assign(pay=part["pay"].astype(float))
            plain.to_json(path, orient="records", lines=True)
    options = [part for name in FILES for part in (f"--{name}", tmp_path / f"{name}{suffix}")]
    how = ("--attacks", "attribution", "--seed", "0", "--json-full")
    answer = leakbound("synthetic", *options, *how)
    found = lb.SyntheticResult.from_json(answer.out)
    assert found.provenance.sha256 == expected.provenance.sha256
    assert (found.bound, found.correct, found.m) == (expected.bound, expected.correct, expected.m)


MARKS = ("", "NA", ".", ".a", "\\N", "NULL", "N/A", "-", "k. A.", "<0.5", "-9")


def test_one_bound_for_every_mark_of_missing_values(tmp_path: Path) -> None:
    """From files and from frames of pandas and polars."""
    rng = np.random.default_rng(7)
    numbers = pd.DataFrame(rng.lognormal(5, 1, (240, 2)).round(3), columns=["pay", "rent"])
    gone = rng.random(numbers.shape) < 0.12
    named = ["<0.5", "-9"]
    options = [part for name in FILES for part in (f"--{name}", tmp_path / f"{name}.csv")]
    how = ("--attacks", "local_likelihood", "--seed", "0", "--json-full", "--missing", "<0.5,-9")
    bounds = set[tuple[float, int, int]]()
    for mark in MARKS:
        frame = numbers.astype(str).mask(gone, mark)
        parts = dict(zip(FILES, (frame[:80], frame[80:160], frame[:80]), strict=True))
        for name, part in parts.items():
            part.to_csv(tmp_path / f"{name}.csv", index=False)
        answer = leakbound("synthetic", *options, *how)
        results = [lb.SyntheticResult.from_json(answer.out)]
        for form in (pd.DataFrame, pl.from_pandas) if mark in {"", ".", "<0.5", "-9"} else ():
            frames = [form(part) for part in parts.values()]
            results.append(
                lb.audit_synthetic(*frames, attacks="local_likelihood", missing=named, seed=0)
            )
        bounds |= {(one.bound, one.correct, one.m) for one in results}
        noted = [f"column 'pay' has {mark!r} in {gone[:160, 0].sum() + gone[:80, 0].sum()} cells"]
        for result in results:
            said = [text[: len(noted[0])] for text in result.warnings if "read as missing" in text]
            assert said == ([] if mark in {"", *named} else noted)
    assert len(bounds) == 1


def test_words_among_numbers_are_refused_with_the_option(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.lognormal(5, 1, (90, 2)).round(3), columns=["pay", "rent"])
    frame = frame.astype(str).mask(rng.random(frame.shape) < 0.05, "< 0.5")
    parts = dict(zip(FILES, (frame[:30], frame[30:60], frame[60:]), strict=True))
    options = written(tmp_path, parts)
    refusal = leakbound("synthetic", *options).refusal
    assert "members.csv holds numbers, but '< 0.5' at row" in refusal
    assert "pass --missing '< 0.5'; if numbers are codes here, --categorical pay" in refusal
    assert leakbound("synthetic", *options, "--missing", "< 0.5").code == 0
    assert leakbound("synthetic", *options, "--categorical", "pay,rent").code == 0
    plain = frame.replace("< 0.5", "1")
    with pytest.raises(lb.errors.InputError, match=r"the synthetic table holds numbers, but '< 0"):
        lb.audit_synthetic(plain[:30], plain[30:60], frame[60:])


def test_certified_hits_are_a_claim_with_its_exit_code(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    records = pd.DataFrame(rng.normal(size=(300, 4)).round(3), columns=list("abcd"))
    copies = pd.concat([records[:40] + 0.002, records[240:]])
    leaky = dict(zip(FILES, (records[:100], records[100:200], copies), strict=True))
    options: list[object] = [*written(tmp_path, leaky)[:-2], "--seed", 0, "--attacks"]
    named = [*options, "linkability,inference", "--secret", "a,b"]
    answer = leakbound("synthetic", *named, "--most-certified", 0)
    assert answer.code == 1, answer.err
    assert "The claim that at most 0 hits of each risk are certified is refuted: link" in answer.out
    assert "At least" in answer.out
    assert leakbound("synthetic", *named, "--most-certified", 60, "--lenient").code == 0
    assert leakbound("synthetic", *named, "--most-certified", 99).code == 3
    stored = json.loads(leakbound("synthetic", *named, "--json", "--most-certified", 0).out)
    assert stored["options"]["secret_columns"] == ["a", "b"]
    assert stored["risks"]["linkability"]["certified"] > 0
    assert stored["risks"]["singling_out"] is None
    refused = leakbound("synthetic", *options, "attribution", "--most-certified", 0)
    assert refused.code == 2
    assert "--most-certified is about singling_out, linkability, inference" in refused.err
    twice = leakbound("synthetic", *named, "--strata", "a")
    assert twice.code == 2
    assert "--strata a is a secret too" in twice.err
