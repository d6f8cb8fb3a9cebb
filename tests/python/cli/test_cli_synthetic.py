"""`leakbound synthetic`: files of every kind, exit codes, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_line import leakbound
from leakbound import errors
from leakbound.cli.synthetic_data import typed

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


def test_large_tables_of_words_are_compared() -> None:
    """More ways to split them than a double holds."""
    words = np.array(["Bonn", "Nice"] * 600)
    assert [table["town"].dtype.kind for table in typed([{"town": words}, {"town": words}])] == [
        "U",
        "U",
    ]


def test_a_column_is_what_all_tables_together_say() -> None:
    def words(*values: str) -> np.ndarray[Any, Any]:
        return np.array(values)

    first = {"n": words("1", "NA"), "d": words("2024-01-01", ""), "z": words("007", "12")}
    second = {"n": words("2.5", ""), "d": words("2024-01-02T10:00", "null"), "z": words("1", "2")}
    one, other = typed([first, second])
    assert [column.dtype.kind for column in one.values()] == ["f", "M", "U"]
    assert other["n"].tolist()[0] == 2.5
    assert np.isnat(one["d"][1])
    one, other = typed([first, {"n": words("many"), "d": words("soon"), "z": words("1")}])
    assert {column.dtype.kind for column in (*one.values(), *other.values())} == {"U"}


def test_dates_with_and_without_a_time_zone_are_refused() -> None:
    def dates(*values: str) -> dict[str, np.ndarray[Any, Any]]:
        return {"d": np.array(values)}

    alike = dates("2024-01-01T00:00+01:00", ""), dates("2023-12-31T23:00Z", "null")
    one, other = typed(alike)
    assert one["d"][0] == other["d"][0]
    with pytest.raises(errors.InputError, match="column 'd' has dates with a time zone and"):
        typed([alike[0], dates("2024-01-01T00:00", "")])


@pytest.mark.parametrize(
    ("one", "other"), [("2024-01-{:02}", "{:02}/01/2024"), ("{}.5", "{},5"), ("{}", "{} years")]
)
def test_two_ways_of_writing_are_refused_where_they_tell_who_is_a_member(
    one: str, other: str
) -> None:
    def column(form: str, days: range) -> dict[str, np.ndarray[Any, Any]]:
        return {"d": np.array([form.format(day) for day in days] + [""])}

    for tables in ((one, other), (other, one)):
        with pytest.raises(errors.InputError, match=r"column 'd' holds (dates|numbers) in one"):
            typed([column(form, range(10, 28)) for form in tables])
    few = [column(form, range(10, 12)) for form in (one, other)]
    assert {table["d"].dtype.kind for table in typed(few)} == {"U"}  # as chance may have it
