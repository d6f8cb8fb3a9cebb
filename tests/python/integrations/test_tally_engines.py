"""Recipes of docs/guides/engines.md, each on its engine: all give the same tally to the bit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import leakbound as lb
from page_examples import EXAMPLE

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "engines.md").read_text(encoding="utf-8")
SETUP, *_ = [example[2] for example in EXAMPLE.finditer(PAGE)]
SECTIONS = {part.split("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
RECIPES = {
    title: [block[2] for block in EXAMPLE.finditer(part)] for title, part in SECTIONS.items()
}
ENGINES = {
    "Polars": "polars",
    "Dask": "dask",
    "Spark": "pyspark",
    "Ray Data": "ray",
    "Hugging Face datasets": "datasets",
    "DuckDB": "duckdb",
    "Plain SQL": "duckdb",
}
# Engines that take long to start count doubles alone.
SLOW = {"Spark", "Ray Data"}
# A process is killed after this many seconds; the slowest takes 60 on two busy cores.
PATIENCE = 300
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    # Compiled code need not be fast: it runs once.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "PYSPARK_PYTHON": sys.executable,
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray ends workers that had no task for a second, and each new one imports everything again.
    "RAY_kill_idle_workers_interval_ms": "0",
    "RAY_prestart_worker_first_driver": "0",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
# By default 200 partitions, and a page about jobs.
SPARK = "spark.sql.shuffle.partitions 2\nspark.ui.enabled false\n"
KINDS = (np.float64, np.float32)


def hard_scores() -> NDArray[np.float64]:
    """Ordinary scores, and all that a key must round, order or hold at its limits."""
    rng = np.random.default_rng(0)
    powers = 2.0 ** np.arange(-151, 129)
    halves = np.outer([1 - 2**-25, 1 + 2**-24, 1 + 3 * 2**-24], powers).ravel()
    near = [np.nextafter(powers, side) for side in (0, np.inf)]
    most = 2.0**128 - 2**103
    limits = [0, 5e-324, 2**-150, np.nextafter(most, 0), most, 1e300, np.inf]
    hard = np.concatenate([limits, powers, halves, *near, 10.0 ** rng.uniform(-45, 38, 3000)])
    return np.concatenate([hard, -hard, rng.standard_t(3, 12_000)])


def write(folder: Path, scores: NDArray[Any], member: NDArray[Any]) -> None:
    """Write three shards of several row groups."""
    folder.mkdir(parents=True)
    table = pa.table({"id": np.arange(scores.size), "score": scores, "member": member})
    table = table.append_column("stratum", pa.array(np.arange(scores.size) % 3))
    for index, (start, stop) in enumerate([(0, 5_000), (5_000, 12_345), (12_345, scores.size)]):
        part = table.slice(start, stop - start)
        parquet.write_table(part, folder / f"part-{index}.parquet", row_group_size=3_000)


@pytest.fixture(scope="module")
def java() -> None:
    """Spark needs Java: that of the distribution, installed where that is possible."""
    if shutil.which("java") or "JAVA_HOME" in os.environ:
        return
    if not shutil.which("apt-get") or os.geteuid():
        pytest.skip("Spark needs Java, and there is no apt-get that may install it")
    install = ["install", "--yes", "--no-install-recommends", "default-jre-headless"]
    for words in (["update"], install):
        done = subprocess.run(["apt-get", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Spark needs Java: apt-get {words[0]} said {done.stderr[-300:]}")


@pytest.mark.parametrize("title", ENGINES)
def test_every_engine_counts_the_same_to_the_bit(
    title: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Recipes run in their own process: engines start servers, and have warnings of their own."""
    pytest.importorskip(ENGINES[title])
    if title == "Spark":
        request.getfixturevalue("java")
    scores = hard_scores()
    member = np.random.default_rng(1).random(scores.size) < 0.5
    script = [SETUP, "import shutil"]
    with np.errstate(over="ignore"):
        kinds = KINDS[:1] if title in SLOW else KINDS
        columns = {kind.__name__: scores.astype(kind) for kind in kinds}
    for name, column in columns.items():
        write(tmp_path / name, column, member)
        script += [f"shutil.copytree({name!r}, 'shards', dirs_exist_ok=True)", *RECIPES[title]]
        script += [f"tally.to_parquet('{name}.parquet')", f"pairs.to_parquet('{name}-2.parquet')"]
    (tmp_path / "recipe.py").write_text("\n".join(script), encoding="utf-8")
    (tmp_path / "spark-defaults.conf").write_text(SPARK, encoding="utf-8")
    folders = {"HF_HOME": str(tmp_path / "cache"), "SPARK_CONF_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=tmp_path,
        env=os.environ | ENVIRONMENT | folders,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, column in columns.items():
        tally = lb.Tally.from_parquet(tmp_path / f"{name}.parquet")
        whole = lb.Tally.of(column, member)
        assert tally == whole
        for one in ("keys", "examples_at", "members_at"):
            np.testing.assert_array_equal(getattr(tally, one), getattr(whole, one))
        pairs = lb.PairTally.from_parquet(tmp_path / f"{name}-2.parquet")
        assert pairs.pairing.stratum == "stratum"
        assert pairs.pairing.buckets == pairs.counted_buckets == 16
        rows = np.arange(scores.size)
        whole_pairs = lb.PairTally.of(column, member, rows, strata=rows % 3, pairing=pairs.pairing)
        assert pairs == whole_pairs
        for one in ("keys", "pairs_at", "wins_at"):
            np.testing.assert_array_equal(getattr(pairs, one), getattr(whole_pairs, one))


def test_the_page_has_the_versions_that_tests_run_on() -> None:
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    shown = dict(re.findall(r"\| (\w+) \| ([\d.]+) (?=\|)", PAGE))
    assert set(shown) == set(ENGINES.values())
    assert {f"{name}=={version}" for name, version in shown.items()} <= set(pinned)


@pytest.fixture
def sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the page's plain SQL, in a folder without shards."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(SETUP + RECIPES["Plain SQL"][0], names)
    shutil.rmtree("shards")
    return names


@pytest.mark.parametrize(
    ("score", "member"), [(np.nan, True), (None, True), (0.5, None), (0.5, 2), (0.5, -1)]
)
def test_plain_sql_refuses_what_it_cannot_count(
    sql: dict[str, Any], score: float | None, member: int | None
) -> None:
    Path("shards").mkdir()
    good = 1 if type(member) is int else True
    rows = pa.table({"score": [0.5, 0.0, score], "member": [good, good, member]})
    for part in ("0", "1"):  # DuckDB 2.0.1 uses other statistics where there are several files
        parquet.write_table(rows, f"shards/part-{part}.parquet")
        with pytest.raises(lb.errors.InputTypeError, match="'key' is null"):
            lb.Tally.from_arrow(sql["duckdb"].sql(sql["COUNT"]))


def test_labels_that_live_apart_are_joined_by_the_engine(
    sql: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    scores, member = rng.normal(size=20_000), rng.random(20_000) < 0.5
    write(tmp_path / "shards", scores, member)
    reader = (
        sql["duckdb"]
        .sql(
            """SELECT s.score, l.member FROM 'shards/*.parquet' s
        JOIN (SELECT id, member FROM 'shards/*.parquet') l USING (id)"""
        )
        .to_arrow_reader(7_000)
    )
    counted = pa.Table.from_batches(map(sql["count"], reader))
    assert lb.Tally.from_arrow(counted) == lb.Tally.of(scores, member)


def test_the_engine_finds_repeated_ids_and_missing_scores(
    sql: dict[str, Any], tmp_path: Path
) -> None:
    (check,) = RECIPES["Before you count"]
    write(tmp_path / "shards", np.zeros(20_000), np.arange(20_000) < 9_000)
    exec(check, sql)
    more = {"id": [7, 19_999, 20_000], "score": [0.0, np.nan, 0.0], "member": [True] * 3}
    parquet.write_table(pa.table(more), "shards/part-3.parquet")
    with pytest.raises(AssertionError, match="both sides"):
        exec(check, sql)
    assert sorted(sql["found"]["repeated"]) == [(7, 2), (19_999, 2)]
    assert sql["found"]["both sides"] == [(19_999,)]
    assert sql["found"]["no score"] == [("shards/part-3.parquet", 1)]
