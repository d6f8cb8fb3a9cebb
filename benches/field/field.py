"""Audit released libraries, each in an environment of its own, and print what was refuted.

    python benches/field/field.py [--quick] [--rows CASE …] [--out FILE]

Builds each environment once, in target/field, from the lock file that names all its packages. A
row whose environment cannot be made here, for want of its Python or a wheel, is skipped by name.
Faulty versions are audited at confidence .95 with three seeds; mended ones at .999, as a right
mechanism attains its claim, with four times the runs: as many seeds as the row says, or three with
--quick. Rows that are not played keep what the file has of them. Ends with 1 where a faulty
version is not refuted or a mended one is.
"""

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from leakbound import ApproxDP, AuditResult
from leakbound.mechanisms import Case, audit_mechanism, load_case
from leakbound.results.words import scale_of
from release import audit_release

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / "target" / "field"
RELEASED = HERE / "released.json"
PAGE = HERE.parents[1] / "docs" / "audits" / "released-libraries.md"
FAULTY_SEEDS = 3
MENDED_SEEDS = 20
FAULTY_CONFIDENCE, MENDED_CONFIDENCE = 0.95, 0.999
MOST_FAULTY_RUNS = 20_000
WORKERS = min(2, os.cpu_count() or 1)  # results do not depend on it
RUNS_OF_ONE_WORKER = 1000  # made before another worker has imported its packages


@dataclass(frozen=True)
class Environment:
    """One version of a package, and all that it needs."""

    name: str
    lock: str
    python: str
    file: str = ""
    old: str = ""
    new: str = ""

    @property
    def program(self) -> Path:
        """The Python of the environment."""
        return BUILT / self.name / "bin" / "python"

    def build(self) -> str:
        """Make the environment unless it is there; return why that was not possible, or ""."""
        ready = BUILT / self.name / "built"
        if ready.exists():
            return ""
        shutil.rmtree(BUILT / self.name, ignore_errors=True)
        wrong = self._make()
        if not wrong:
            ready.touch()
        return wrong

    def _make(self) -> str:
        lock = HERE / "locks" / f"{self.lock}.txt"
        beside = str(Path(sys.executable).parent)
        uv = shutil.which("uv", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
        own = ".".join(map(str, sys.version_info[:2]))
        if uv is not None:
            made = [uv, "venv", "--quiet", "--python", self.python, str(BUILT / self.name)]
            quiet = ["--quiet", "--python", str(self.program)]
            filled = [uv, "pip", "install", *quiet, "--no-deps", "-r", str(lock)]
        else:
            base = sys.executable if own == self.python else shutil.which(f"python{self.python}")
            if base is None:
                return f"Python {self.python} is not on this machine, and neither is uv"
            made = [base, "-m", "venv", str(BUILT / self.name)]
            quiet = ["--quiet", "--disable-pip-version-check"]
            pip = [str(self.program), "-m", "pip"]
            filled = [*pip, "install", *quiet, "--no-deps", "-r", str(lock)]
        for step, command in (("no Python " + self.python, made), ("not installed", filled)):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
                return f"{step}: {said[-1] if said else done.returncode}"
        return self._patch()

    def _patch(self) -> str:
        """Write what a proposed change says into the installed package."""
        if not self.file:
            return ""
        (target,) = (BUILT / self.name).glob(f"lib/python*/site-packages/{self.file}")
        text = target.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            return f"{self.file} is not the file that {self.name} changes"
        target.unlink()  # uv links files of its cache, which other environments share
        target.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return ""


@dataclass
class Audited:
    """What the audits of one version found, seed by seed."""

    claimed: str = ""
    bounds: list[float] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refuted: int = 0


@dataclass(frozen=True)
class Sample:
    """How many audits of a version, how sure, and of how many runs, by how many workers."""

    confidence: float
    seeds: int
    most_runs: int
    workers: int


def audited(case: Path, program: Path, sample: Sample, *, is_release: bool) -> Audited:
    """Audit a case with several seeds."""
    found = Audited()
    with load_case(case, python=program, workers=sample.workers, timeout=600) as loaded:
        found.claimed = promise(loaded)
        for seed in range(sample.seeds):
            start = time.perf_counter()
            if is_release:
                result, runs = audit_release(loaded, sample.confidence, seed), 1
            else:
                result = audited_once(loaded, sample, seed)
                runs = int(result.options["runs"])
            found.seconds.append(time.perf_counter() - start)
            found.bounds.append(result.bound)
            found.runs.append(runs)
            found.refuted += result.check(parameter=loaded.parameter) == "refuted"
    return found


def promise(case: Case) -> str:
    """Return what a case claims."""
    named = f"{scale_of(case.claim).name} = {case.parameter:.3g}"
    if isinstance(case.claim, ApproxDP):
        return f"{named}, δ = {case.claim.delta:g}"
    return named


def audited_once(case: Case, sample: Sample, seed: int) -> AuditResult:
    """Run a case until its claim is refuted."""
    return audit_mechanism(
        case.run,
        case.d0,
        case.d1,
        case.claim,
        parameter=case.parameter,
        score=case.score,
        confidence=sample.confidence,
        most_runs=sample.most_runs,
        seed=seed,
    )


def play(row: dict[str, Any], places: dict[str, Environment], mended_seeds: int) -> dict[str, Any]:
    """Audit both versions of a row."""
    Console(stderr=True).print(row["case"])
    played = {**row, "skipped": ""}
    case = HERE / "cases" / f"{row['case']}.py"
    seeds = min(mended_seeds, row.get("mended_seeds", MENDED_SEEDS))
    workers = 1
    if row["runs"] > RUNS_OF_ONE_WORKER:
        workers = WORKERS
    samples = {
        "faulty": Sample(FAULTY_CONFIDENCE, FAULTY_SEEDS, MOST_FAULTY_RUNS, workers),
        "mended": Sample(MENDED_CONFIDENCE, seeds, 4 * row["runs"], workers),
    }
    for version, sample in samples.items():
        if version not in row:
            continue
        place = places[row[version]]
        wrong = place.build()
        if wrong:
            played["skipped"] = f"{place.name}: {wrong}"
            return played
        if version == "mended":
            case = right_setting(case, row)
        is_release = row.get("release", False)
        played[version] = vars(audited(case, place.program, sample, is_release=is_release))
    return played


def surprises(row: dict[str, Any]) -> list[str]:
    """Name what a row shows that the page does not say."""
    if row["skipped"]:
        return []
    found = []
    if row["faulty"]["refuted"] < row.get("least", FAULTY_SEEDS):
        found.append(f"{row['released']} was not refuted ({row['case']})")
    if "mended" in row and row["mended"]["refuted"]:
        found.append(f"{row['without']} was refuted ({row['case']})")
    return found


def right_setting(case: Path, row: dict[str, Any]) -> Path:
    """Return the case, or a copy with the setting without the fault where a row has one."""
    if "old" not in row:
        return case
    text = case.read_text(encoding="utf-8")
    if text.count(row["old"]) != 1:
        raise ValueError(f"{case.name} does not have the line {row['old']!r} once")
    right = BUILT / f"{case.stem}_right.py"
    right.write_text(text.replace(row["old"], row["new"]), encoding="utf-8")
    return right


def shown(rows: list[dict[str, Any]]) -> Table:
    """Return the table of all rows."""
    table = Table("released", "fault", "claim", "bound", "runs", "s", "refuted", "mended", "report")
    for row in rows:
        if row["skipped"]:
            table.add_row(row["released"], row["fault"], f"skipped: {row['skipped']}")
            continue
        faulty = row["faulty"]
        mended = "none"
        if "mended" in row:
            found = row["mended"]
            mended = f"{row['without']}: {found['refuted']} of {len(found['bounds'])}"
        table.add_row(
            row["released"],
            row["fault"],
            faulty["claimed"],
            f"{min(faulty['bounds']):.2f} to {max(faulty['bounds']):.2f}",
            f"{sorted(faulty['runs'])[len(faulty['runs']) // 2]:,}",
            f"{sorted(faulty['seconds'])[len(faulty['seconds']) // 2]:.1f}",
            f"{faulty['refuted']} of {len(faulty['bounds'])}",
            mended,
            row["report"],
        )
    return table


def page_table(stored: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    """Return the table of the page: what was measured, with the words of the rows as they are."""
    found = {one["case"]: one for one in stored if not one["skipped"]}
    lines = [
        "| released | fault | claim | bound | runs | report | refuted without the fault |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["case"] not in found:
            continue
        faulty = found[row["case"]]["faulty"]
        bounds = f"{floored(min(faulty['bounds']))} to {floored(max(faulty['bounds']))}"
        runs = f"{sorted(faulty['runs'])[len(faulty['runs']) // 2]:,}"
        without = "–"  # noqa: RUF001 (as in other tables of the pages)
        if "mended" in row:
            mended = found[row["case"]]["mended"]
            without = f"{row['without']}: {mended['refuted']} of {len(mended['bounds'])}"
        cells = [row["released"], row["fault"], faulty["claimed"], bounds, runs, row["report"]]
        lines.append(f"| {' | '.join([*cells, without])} |")
    return "\n".join(lines) + "\n"


def floored(bound: float) -> str:
    """Return a lower bound in two digits, rounded down."""
    return f"{math.floor(100 * bound) / 100:.2f}"


def write_page(stored: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    changed = re.sub(r"(?m)^\| released \|.*\n(\|.*\n)+", lambda _: page_table(stored, rows), text)
    PAGE.write_text(changed, encoding="utf-8")


def main() -> None:
    """Play the table, print it, and store it beside this file and in the page."""
    parser = argparse.ArgumentParser(description="Audit released libraries.")
    parser.add_argument("--quick", action="store_true", help="rows that take seconds")
    parser.add_argument("--rows", nargs="+", help="these alone, by the names of their cases")
    parser.add_argument("--out", type=Path, default=RELEASED)
    given = parser.parse_args()
    content = tomllib.loads((HERE / "field.toml").read_text(encoding="utf-8"))
    places = {name: Environment(name, **one) for name, one in content["environments"].items()}
    rows = [row for row in content["rows"] if row["quick"] or not given.quick]
    if given.rows:
        rows = [row for row in rows if row["case"] in given.rows]
    seeds = MENDED_SEEDS
    if given.quick:
        seeds = FAULTY_SEEDS
    played = [play(row, places, seeds) for row in rows]
    table = shown(played)
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    table.title = f"Released libraries, {datetime.now(UTC):%Y-%m-%d}, {machine}"
    Console(width=200).print(table)
    kept = {}
    if given.out.exists():
        kept = {row["case"]: row for row in json.loads(given.out.read_text("utf-8"))["rows"]}
    kept |= {row["case"]: row for row in played if not row["skipped"] or row["case"] not in kept}
    every = [kept[row["case"]] for row in content["rows"] if row["case"] in kept]
    stored = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine, "rows": every}
    if given.out == RELEASED:
        write_page(every, content["rows"])
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    surprising = [one for row in played for one in surprises(row)]
    if surprising:
        sys.exit("Not as the page says: " + "; ".join(surprising))


if __name__ == "__main__":
    main()
