"""Seconds against the number of examples, from 10³ to 10⁹, beside floors of the same run.

    make scale
    python benches/python/scale.py --most 1000000 --out rows.json

Files of parquet have up to 10⁷ rows: ids, scores in double precision, labels 0 and 1 in a byte.
Everything has two threads; files are in the page cache; ours and its floor take turns. `leakbound
tally` is a process, whose start is counted; all else is timed within Python. Needs DuckDB, and
10 GB of disk for 10⁹ rows.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import leakbound as lb
from leakbound import _core

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "engines.md").read_text(encoding="utf-8")
FILES_OF_PAGE = "'shards/*.parquet'"
"""Where queries of the page read from."""
ROWS_OF_FILE = 10**7
"""Most rows of a file."""
IN_MEMORY = 10**8
"""Most scores that are held in memory, and most examples that are paired."""
THREADS = 2
MEASURED_COMMAND_LINE = """
import atexit, sys
from pathlib import Path
from leakbound.cli import main
status = Path("/proc/self/status")
peak = lambda: [one for one in status.read_text().splitlines() if one.startswith("VmHWM")]
atexit.register(lambda: print(*peak(), file=sys.stderr))
main()
"""
"""The command line, which tells its peak memory at the end."""

Work: TypeAlias = Callable[[], object]


def drawn(rows: int, seed: int) -> tuple[Any, Any]:
    """Fair coins, and scores that tell a little about them."""
    rng = np.random.default_rng(seed)
    member = rng.random(rows) < 0.5
    scores = rng.normal(size=rows) + 0.2 * member
    return scores, member


def shards(folder: Path, size: int) -> list[Path]:
    """Files with this number of rows together; more rows are in more files."""
    paths = []
    rows = min(size, ROWS_OF_FILE)
    for shard in range(size // rows):
        path = folder / f"{rows}-{shard:03d}.parquet"
        paths.append(path)
        if path.exists():
            continue
        scores, member = drawn(rows, shard)
        ids = np.arange(shard * rows, (shard + 1) * rows)
        parquet.write_table(
            pa.table({"id": ids, "score": scores, "member": member.astype(np.int8)}),
            path,
            use_dictionary=["member"],
            column_encoding={"id": "DELTA_BINARY_PACKED", "score": "PLAIN"},
        )
    return paths


def timed(run: Work) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""

    def processor_seconds() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    clock_start = time.perf_counter()
    processor_start = processor_seconds()
    run()
    clock_time = time.perf_counter() - clock_start
    processor_time = processor_seconds() - processor_start
    return clock_time, processor_time


def read_parquet(paths: list[Path]) -> str:
    """The rows of some files, in SQL."""
    quoted_paths = ", ".join(f"'{path}'" for path in paths)
    return f"read_parquet([{quoted_paths}])"


def query(name: str, paths: list[Path]) -> str:
    """A query of the page, on other files."""
    rows = f"(SELECT id, score, member = 1 AS member, 0 AS stratum FROM {read_parquet(paths)})"
    found = re.search(f'{name} = """(.*?)"""', PAGE, re.S)
    assert found
    return found[1].replace(FILES_OF_PAGE, rows)


def counted(size: int, folder: Path, duckdb: Any) -> Iterator[dict[str, Any]]:
    """Coins: scores in memory, in files, and their tally."""
    paths = shards(folder, size)
    tally_path = folder / "tally.parquet"
    peak_bytes = 0
    sum_of_scores = f"SELECT sum(score) FROM {read_parquet(paths)}"
    count_query = query("COUNT", paths)
    duckdb.execute(query("MACROS", paths))
    tally = lb.Tally.from_arrow(duckdb.sql(count_query))

    def run_tally() -> None:
        nonlocal peak_bytes
        command = [sys.executable, "-c", MEASURED_COMMAND_LINE]
        words = ["tally", *map(str, paths), "--out", str(tally_path)]
        process = subprocess.run([*command, *words], check=True, capture_output=True, text=True)
        _, kibibytes, _ = process.stderr.rsplit(maxsplit=2)
        peak_bytes = max(peak_bytes, 1024 * int(kibibytes))

    works: dict[str, Work] = {
        "DuckDB: sum(score)": lambda: duckdb.sql(sum_of_scores).fetchall(),
        "leakbound tally": run_tally,
        "audit of the tally": lambda: lb.audit(tally, lb.Coins()),
    }
    if size <= IN_MEMORY:
        scores, member = drawn(size, 0)
        works["numpy.sort"] = lambda: np.sort(scores)
        works["Tally.of and audit"] = lambda: lb.audit(lb.Tally.of(scores, member), lb.Coins())
    repetitions = 7
    if size >= IN_MEMORY:
        works["DuckDB: plain SQL"] = lambda: duckdb.sql(count_query).fetchall()
        repetitions = 3
    for row in median_times(works, repetitions):
        measured = {"m": size, **row}
        if row["work"] == "leakbound tally":
            measured["bytes"] = peak_bytes
        yield measured
    assert lb.Tally.from_parquet(tally_path) == tally


def paired(size: int, folder: Path, duckdb: Any) -> Iterator[dict[str, Any]]:
    """A random split: pairs, and the shuffle alone."""
    paths = shards(folder, size)
    counts = duckdb.sql(query("COUNT", paths))
    tally = lb.Tally.from_arrow(counts)
    pairing = lb.Pairing.of(tally, seed=0, buckets=16)
    pair_query = query("PAIR", paths).format(centre=pairing.centre, spread=pairing.spread, seed=0)
    hashes = f"SELECT md5(concat('0:', id)) AS h FROM {read_parquet(paths)} GROUP BY h"
    hash_query = f"SELECT count(*) FROM ({hashes})"

    def pair_in_memory() -> None:
        rows = parquet.read_table(list(map(str, paths)))
        lb.PairTally.of(
            rows["score"].to_numpy(),
            rows["member"].to_numpy(),
            rows["id"].to_numpy(),
            pairing=pairing,
        )

    works: dict[str, Work] = {
        "PairTally.of": pair_in_memory,
        "DuckDB: GROUP BY hash": lambda: duckdb.sql(hash_query).fetchall(),
        "DuckDB: pairs": lambda: lb.PairTally.from_arrow(duckdb.sql(pair_query), pairing=pairing),
    }
    repetitions = 3
    if size >= IN_MEMORY:
        repetitions = 1
    for row in median_times(works, repetitions):
        yield {"m": size, **row}


def median_times(works: dict[str, Work], repetitions: int) -> Iterator[dict[str, Any]]:
    """Median seconds of rounds in which all take turns; a round before them fills caches."""

    def round_of_all(_: int) -> list[tuple[float, float]]:
        return [timed(run) for run in works.values()]

    _, *rounds = map(round_of_all, range(repetitions + 1))
    medians = np.median(rounds, axis=0)
    for name, (clock_seconds, processor_seconds) in zip(works, medians, strict=True):
        yield {
            "work": name,
            "seconds": three_digits(clock_seconds),
            "cpu": three_digits(processor_seconds),
        }


def three_digits(number: float) -> float:
    return float(f"{number:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "scale.json")
    given = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)
    _core.set_threads(THREADS)
    powers_of_10 = [10**power for power in range(3, 10)]
    sizes = [size for size in powers_of_10 if size <= given.most]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        limits = {
            "threads": THREADS,
            "memory_limit": "8GB",
            "temp_directory": f"{temporary}/spill",
        }
        duckdb = import_module("duckdb").connect(config=limits)
        for size in sizes:
            rows += counted(size, folder=folder, duckdb=duckdb)
            if ROWS_OF_FILE <= size <= IN_MEMORY:
                rows += paired(size, folder=folder, duckdb=duckdb)
            lines = ",\n".join(map(json.dumps, rows))
            given.out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
