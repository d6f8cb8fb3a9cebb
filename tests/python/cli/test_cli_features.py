"""`--features` of words, dates, flags, categories and gaps: as frames, from files of every kind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
from command_line import leakbound
from leakbound.evidence import verify_bundle

pytestmark = pytest.mark.usefixtures("few_trees")

SIZE = 400
RNG = np.random.default_rng(5)
NAMES = ["age", "city", "income", "since", "smokes", "site"]
COLUMNS = ("--features", ",".join(NAMES), "--seed", "3", "--json-full")


def people() -> pd.DataFrame:
    """Return scores, membership that depends on features, and features of every kind."""
    days = pd.to_timedelta(RNG.integers(0, 900, SIZE), "D")
    frame = pd.DataFrame(
        {
            "age": RNG.integers(20, 70, SIZE),
            "city": RNG.choice(["Bern", "Oslo", "Rome"], SIZE, p=[0.2, 0.3, 0.5]),
            "income": np.where(np.arange(SIZE) % 9 == 0, np.nan, RNG.normal(size=SIZE)),
            "since": pd.Timestamp("2020-01-01") + days,
            "smokes": RNG.random(SIZE) < 0.5,
            "site": pd.Categorical(RNG.integers(1, 4, SIZE)),
        }
    )
    frame.loc[7, "income"] = np.nan
    log_odds = (frame["age"] - 45) / 20 + 1.0 * (frame["city"] == "Rome")
    member = RNG.random(SIZE) < 1 / (1 + np.exp(-log_odds.to_numpy()))
    score = log_odds + 2.0 * member + RNG.normal(size=SIZE)
    baseline = np.round(log_odds, 1)
    return frame.assign(score=score, baseline_score=baseline, member=member.astype(int))


TABLE = people()
DRAWN = TABLE.assign(member=RNG.permutation(np.arange(SIZE) < SIZE // 2).astype(int))


def to_text(table: pd.DataFrame, path: Path) -> None:
    separator = ","
    if path.suffix == ".tsv":
        separator = "\t"
    table.to_csv(path, index=False, sep=separator)


def to_lines(table: pd.DataFrame, path: Path) -> None:
    written = table.assign(since=table["since"].dt.strftime("%Y-%m-%d"))
    rows = written.astype(object).where(written.notna(), None).to_dict("records")
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def to_archive(table: pd.DataFrame, path: Path) -> None:
    written = table.assign(since=table["since"].to_numpy("datetime64[D]"))
    columns: dict[str, Any] = {name: written[name].to_numpy() for name in written}
    np.savez(path, **columns | {"city": columns["city"].astype(np.str_)})


WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "rows.csv": to_text,
    "rows.tsv": to_text,
    "rows.jsonl": to_lines,
    "rows.parquet": pd.DataFrame.to_parquet,
    "rows.npz": to_archive,
}


def given(name: str) -> tuple[str, ...]:
    """Return what has to be said of categories: parquet says it by itself."""
    if name.endswith(".parquet"):
        return ()
    return ("--categorical", "site")


def expected(command: str, table: pd.DataFrame) -> Any:
    """Return what the frame gives in Python."""
    features = table[NAMES]
    member = table["member"].to_numpy()
    designs: dict[str, Callable[[], Any]] = {
        "zero-run": lambda: lb.ZeroRun(member, features=features),
        "split": lambda: lb.RandomSplit(member, features=features),
        "panoramia": lambda: lb.Panoramia(
            member, baseline=table["baseline_score"].to_numpy(), features=features
        ),
    }
    claim: Any = lb.PureDP()
    if command == "zero-run":
        claim = lb.GaussianDP()
    return lb.audit(table["score"].to_numpy(), designs[command](), claim=claim, seed=3)


def answered(command: str, *arguments: object) -> Any:
    untouched: tuple[str, ...] = ()
    if command == "split":
        untouched = ("--untouched",)
    answer = leakbound(command, *arguments, *untouched, *COLUMNS)
    assert answer.code in {0, 3}, answer.err
    kind = {"zero-run": lb.ZeroRunResult, "split": lb.AuditResult, "panoramia": lb.PanoramiaResult}
    found: Any = kind[command]
    return found.from_json(answer.out)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_audits_as_its_frame(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](TABLE, path)
    assert answered("zero-run", path, *given(name)) == expected("zero-run", TABLE)


@pytest.mark.parametrize("command", ["split", "panoramia"])
def test_every_command_takes_them(command: str, tmp_path: Path) -> None:
    table = TABLE
    if command == "split":
        table = DRAWN
    result = expected(command, table)
    for name in ("rows.csv", "rows.parquet"):
        WRITERS[name](table, tmp_path / name)
        assert answered(command, tmp_path / name, *given(name)) == result


def test_parts_and_shards_are_read_as_one_table(tmp_path: Path) -> None:
    """Whatever their kinds: a column is settled by all of its rows together."""
    inside = DRAWN["member"] == 1
    ordered = pd.concat([DRAWN[inside], DRAWN[~inside]], ignore_index=True)
    result = expected("split", ordered)
    for one, other in (("in.csv", "out.csv"), ("in.csv", "out.parquet"), ("in.npz", "out.jsonl")):
        for place, name in enumerate((one, other)):
            write = WRITERS[f"rows.{name.partition('.')[2]}"]
            write(DRAWN[inside if place == 0 else ~inside], tmp_path / name)
        parts = ("--members", tmp_path / one, "--nonmembers", tmp_path / other)
        assert answered("split", *parts, "--categorical", "site") == result
        shards = (tmp_path / one, tmp_path / other)
        assert answered("split", *shards, "--categorical", "site") == result


def test_signs_and_marks_are_read_as_they_are_named(tmp_path: Path) -> None:
    written = TABLE.assign(
        age=[f"{one:,.1f}".replace(".", ",") for one in TABLE["age"]],
        income=[str(one).replace(".", ",").replace("nan", "<0,5") for one in TABLE["income"]],
    )
    path = tmp_path / "rows.csv"
    written[["age", "income"]].assign(
        score=TABLE["score"].map(str).str.replace(".", ","), member=TABLE["member"]
    ).to_csv(path, index=False, sep=";")
    signs = ("--sep", ";", "--decimal", ",")
    asked = ("--features", "age,income", "--seed", "3", "--json-full")
    refusal = leakbound("zero-run", path, *signs, *asked[:2]).refusal
    assert "rows.csv: column 'income' of features holds numbers, but '<0,5' at row 0" in refusal
    assert "name such words ('<0,5') in --missing" in refusal
    assert "name the column in --categorical" in refusal
    answer = leakbound("zero-run", path, *signs, "--missing", '"<0,5"', *asked)
    member = TABLE["member"].to_numpy()
    design = lb.ZeroRun(member, features=TABLE[["age", "income"]])
    found = lb.audit(TABLE["score"].to_numpy(), design, claim=lb.GaussianDP(), seed=3)
    assert lb.ZeroRunResult.from_json(answer.out) == found


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([f"p{row}" for row in range(SIZE)], "has 400 different words, none of them in 20 rows or"),
        (["Bern"] * 360 + [f"t{row // 10}" for row in range(40)], "fewer than 20 rows each (4, "),
        (["1"] * 390 + ["old"] * 10, "holds numbers, but 'old' at row 390"),
        (["x"] * SIZE, "no column of features says anything: 'column' (the same in nearly all"),
    ],
)
def test_what_frames_are_refused_for_files_are(
    column: list[str], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    TABLE.assign(column=column).to_csv(path, index=False)
    refusal = leakbound("zero-run", path, "--features", "column").refusal
    assert f"{path}: " in refusal
    assert words in refusal


def test_options_without_their_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    to_text(TABLE, path)
    refusal = leakbound("zero-run", path, "--features", "age", "--categorical", "site").refusal
    assert "--categorical names 'site', which --features does not: add it there" in refusal
    alone = leakbound("split", path, "--untouched", "--missing", "x").refusal
    assert "--missing is about columns of --features" in alone
    assert "no column 'town'" in leakbound("zero-run", path, "--features", "town").refusal


@pytest.mark.parametrize("command", ["zero-run", "split", "panoramia"])
def test_bundles_of_tables_verify(command: str, tmp_path: Path) -> None:
    table = TABLE
    if command == "split":
        table = DRAWN
    path = tmp_path / "rows.csv"
    to_text(table, path)
    bundle = tmp_path / "bundle"
    answered(command, path, *given("rows.csv"), "--bundle", bundle)
    found = verify_bundle(bundle, page=False)
    assert found.valid, found.why
