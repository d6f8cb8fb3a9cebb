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
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import leakbound as lb
from leakbound import _core

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "engines.md").read_text(encoding="utf-8")
PLACE = "'shards/*.parquet'"
"""Where queries of the page read from."""
ROWS = 10**7
"""Most rows of a file."""
IN_MEMORY = 10**8
"""Most scores that are held in memory, and most examples that are paired."""
THREADS = 2
TOLD = """
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
    return rng.normal(size=rows) + 0.2 * member, member


def shards(folder: Path, size: int) -> list[Path]:
    """Files with this number of rows together; more rows are in more files."""
    files = []
    rows = min(size, ROWS)
    for index in range(size // rows):
        files.append(folder / f"{rows}-{index:03d}.parquet")
        if not files[-1].exists():
            scores, member = drawn(rows, index)
            ids = np.arange(index * rows, (index + 1) * rows)
            parquet.write_table(
                pa.table({"id": ids, "score": scores, "member": member.astype(np.int8)}),
                files[-1],
                use_dictionary=["member"],
                column_encoding={"id": "DELTA_BINARY_PACKED", "score": "PLAIN"},
            )
    return files


def timed(run: Work) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""

    def processors() -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + ended.ru_utime + ended.ru_stime

    start = time.perf_counter()
    used = processors()
    run()
    return time.perf_counter() - start, processors() - used


def read(files: list[Path]) -> str:
    return "read_parquet([" + ", ".join(f"'{file}'" for file in files) + "])"


def query(name: str, files: list[Path]) -> str:
    """A query of the page, on other files."""
    rows = f"(SELECT id, score, member = 1 AS member, 0 AS stratum FROM {read(files)})"
    found = re.search(f'{name} = """(.*?)"""', PAGE, re.S)
    assert found
    return found[1].replace(PLACE, rows)


def counted(size: int, folder: Path, duckdb: Any) -> Iterator[dict[str, Any]]:
    """Coins: scores in memory, in files, and their tally."""
    files = shards(folder, size)
    out = folder / "tally.parquet"
    peak = 0
    floor = f"SELECT sum(score) FROM {read(files)}"
    duckdb.execute(query("MACROS", files))
    tally = lb.Tally.from_arrow(duckdb.sql(query("COUNT", files)))

    def count() -> None:
        nonlocal peak
        words = [sys.executable, "-c", TOLD, "tally", *map(str, files), "--out", str(out)]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stderr
        peak = max(peak, 1024 * int(told.split()[-2]))

    works: dict[str, Work] = {
        "DuckDB: sum(score)": lambda: duckdb.sql(floor).fetchall(),
        "leakbound tally": count,
        "audit of the tally": lambda: lb.audit(tally, lb.Coins()),
    }
    if size <= IN_MEMORY:
        scores, member = drawn(size, 0)
        works["numpy.sort"] = lambda: np.sort(scores)
        works["Tally.of and audit"] = lambda: lb.audit(lb.Tally.of(scores, member), lb.Coins())
    if size >= IN_MEMORY:
        works["DuckDB: plain SQL"] = lambda: duckdb.sql(query("COUNT", files)).fetchall()
    for row in rounds(works, 3 if size >= IN_MEMORY else 7):
        yield {"m": size, **row} | ({"bytes": peak} if row["work"] == "leakbound tally" else {})
    assert lb.Tally.from_parquet(out) == tally


def paired(size: int, folder: Path, duckdb: Any) -> Iterator[dict[str, Any]]:
    """A random split: pairs, and the shuffle alone."""
    files = shards(folder, size)
    scale = lb.Tally.from_arrow(duckdb.sql(query("COUNT", files)))
    pairing = lb.Pairing.of(scale, seed=0, buckets=16)
    asked = query("PAIR", files).format(centre=pairing.centre, spread=pairing.spread, seed=0)
    floor = f"SELECT md5(concat('0:', id)) AS h FROM {read(files)} GROUP BY h"

    def of() -> None:
        rows = parquet.read_table(list(map(str, files)))
        ids, scores, member = (rows[name].to_numpy() for name in ("id", "score", "member"))
        lb.PairTally.of(scores, member, ids, pairing=pairing)

    works: dict[str, Work] = {
        "PairTally.of": of,
        "DuckDB: GROUP BY hash": lambda: duckdb.sql(f"SELECT count(*) FROM ({floor})").fetchall(),
        "DuckDB: pairs": lambda: lb.PairTally.from_arrow(duckdb.sql(asked), pairing=pairing),
    }
    for row in rounds(works, 1 if size >= IN_MEMORY else 3):
        yield {"m": size, **row}


def rounds(works: dict[str, Work], count: int) -> Iterator[dict[str, Any]]:
    """Median seconds of rounds in which all take turns; a round before them fills caches."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(count + 1):
        for name, run in works.items():
            took = timed(run)
            if turn:
                times[name].append(took)
    for name, each in times.items():
        seconds, cpu = (float(f"{median(column):.3g}") for column in zip(*each, strict=True))
        yield {"work": name, "seconds": seconds, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "scale.json")
    given = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(THREADS)
    _core.set_threads(THREADS)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        limits = {"threads": THREADS, "memory_limit": "8GB", "temp_directory": f"{temporary}/spill"}
        duckdb = import_module("duckdb").connect(config=limits)
        sizes = [10**power for power in range(3, 10) if 10**power <= given.most]
        for size in sizes:
            rows += counted(size, folder=Path(temporary), duckdb=duckdb)
            if ROWS <= size <= IN_MEMORY:
                rows += paired(size, folder=Path(temporary), duckdb=duckdb)
            lines = ",\n".join(map(json.dumps, rows))
            given.out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
