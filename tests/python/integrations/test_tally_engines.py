"""Recipes of docs/theory/scale.md, each on its engine: all give the same tally to the bit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import leakbound as lb

COLUMNS = ["score", "member"]
COUNTS = pa.schema([(name, pa.int64()) for name in ("key", "examples", "members")])
count = partial(lb.Tally.batch, score="score", member="member")
M = 20_000


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, lb.Tally]:
    """Three files of several row groups, and the tally of all."""
    rng = np.random.default_rng(0)
    member = rng.random(M) < 0.5
    scores = np.where(rng.random(M) < 1e-3, -np.inf, rng.standard_t(3, M) + member)
    folder = tmp_path_factory.mktemp("shards")
    table = pa.table({"id": np.arange(M), "score": scores, "member": member})
    for index, start in enumerate((0, 5_000, 12_345)):
        part = table.slice(start, (5_000, 7_345, M)[index])
        parquet.write_table(part, folder / f"part-{index}.parquet", row_group_size=3_000)
    return folder, lb.Tally.of(scores, member)


def with_polars(folder: Path) -> lb.Tally:
    pl = pytest.importorskip("polars")
    schema = dict.fromkeys(COUNTS.names, pl.Int64)
    counted = (
        pl.scan_parquet(folder / "*.parquet")
        .select(COLUMNS)
        .map_batches(
            lambda rows: pl.from_arrow(count(rows.to_arrow())), schema=schema, streamable=True
        )
    )
    return lb.Tally.from_arrow(counted.group_by("key").sum().collect(engine="streaming"))


def with_duckdb(folder: Path) -> lb.Tally:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(f"SELECT score, member FROM '{folder}/*.parquet'").to_arrow_reader(100_000)
    return lb.Tally.from_arrow(pa.RecordBatchReader.from_batches(COUNTS, map(count, rows)))


def with_dask(folder: Path) -> lb.Tally:
    dask = pytest.importorskip("dask")
    read = dask.delayed(partial(parquet.read_table, columns=COLUMNS))
    parts = [dask.delayed(count)(read(path)) for path in sorted(folder.glob("*.parquet"))]
    return lb.Tally.from_arrow(pa.Table.from_batches(dask.compute(*parts, scheduler="threads")))


ENGINES: list[Callable[[Path], lb.Tally]] = [with_polars, with_duckdb, with_dask]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_the_same_to_the_bit(
    engine: Callable[[Path], lb.Tally], shards: tuple[Path, lb.Tally]
) -> None:
    folder, whole = shards
    tally = engine(folder)
    assert tally == whole
    for name in ("keys", "examples_at", "members_at"):
        np.testing.assert_array_equal(getattr(tally, name), getattr(whole, name))


def test_labels_that_live_apart_are_joined_by_the_engine(shards: tuple[Path, lb.Tally]) -> None:
    duckdb = pytest.importorskip("duckdb")
    folder, whole = shards
    rows: Any = duckdb.sql(
        f"""SELECT s.score, l.member FROM '{folder}/*.parquet' s
        JOIN (SELECT id, member FROM '{folder}/*.parquet') l USING (id)"""
    )
    reader = rows.to_arrow_reader(100_000)
    assert (
        lb.Tally.from_arrow(pa.RecordBatchReader.from_batches(COUNTS, map(count, reader))) == whole
    )
