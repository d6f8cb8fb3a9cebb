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
from statistics import median_high
from typing import Any

from rich.console import Console
from rich.table import Table

from leakbound import ApproxDP, AuditResult
from leakbound.mechanisms import Case, audit_mechanism, load_case
from leakbound.results.terms import scale_of
from release import audit_release

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / "target" / "field"
RELEASED = HERE / "released.json"
PAGE = HERE.parents[1] / "docs" / "audits" / "released-libraries.md"
FAULTY_SEEDS = 3
MENDED_SEEDS = 20
FAULTY_CONFIDENCE = 0.95
MENDED_CONFIDENCE = 0.999
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
        folder = BUILT / self.name
        finished_mark = folder / "built"
        if finished_mark.exists():
            return ""
        shutil.rmtree(folder, ignore_errors=True)
        obstacle = self._make(folder)
        if not obstacle:
            finished_mark.touch()
        return obstacle

    def _make(self, folder: Path) -> str:
        """Make the environment in a folder by uv, or by venv and pip where uv is not installed."""
        lock = str(HERE / "locks" / f"{self.lock}.txt")
        beside_this_python = str(Path(sys.executable).parent)
        search_path = os.pathsep.join([beside_this_python, os.environ.get("PATH", "")])
        uv = shutil.which("uv", path=search_path)
        if uv is not None:
            create = [uv, "venv", "--quiet", "--python", self.python, str(folder)]
            install = [uv, "pip", "install", "--quiet", "--python", str(self.program)]
        else:
            base_python = self._base_python()
            if base_python is None:
                return f"Python {self.python} is not on this machine, and neither is uv"
            create = [base_python, "-m", "venv", str(folder)]
            pip = [str(self.program), "-m", "pip", "install"]
            install = [*pip, "--quiet", "--disable-pip-version-check"]
        steps = (
            (f"no Python {self.python}", create),
            ("not installed", [*install, "--no-deps", "-r", lock]),
        )
        for failure, command in steps:
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            if process.returncode:
                return f"{failure}: {last_line(process.stderr) or process.returncode}"
        return self._patch()

    def _base_python(self) -> str | None:
        """Return a Python of the version of the environment, if there is one here."""
        own_version = ".".join(map(str, sys.version_info[:2]))
        if own_version == self.python:
            return sys.executable
        return shutil.which(f"python{self.python}")

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


def last_line(text: str) -> str:
    """Return the last line of a text that is not blank, or ""."""
    _, _, line = text.strip().rpartition("\n")
    return line.strip()


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
    audits = Audited()
    with load_case(case, python=program, workers=sample.workers, timeout=600) as loaded:
        audits.claimed = promise(loaded)
        for seed in range(sample.seeds):
            start = time.perf_counter()
            if is_release:
                result = audit_release(loaded, sample.confidence, seed)
                runs = 1
            else:
                result = audited_once(loaded, sample, seed)
                runs = int(result.options["runs"])
            audits.seconds.append(time.perf_counter() - start)
            audits.bounds.append(result.bound)
            audits.runs.append(runs)
            audits.refuted += result.check(parameter=loaded.parameter) == "refuted"
    return audits


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


def play(
    row: dict[str, Any], environments: dict[str, Environment], mended_seeds: int
) -> dict[str, Any]:
    """Audit both versions of a row."""
    Console(stderr=True).print(row["case"])
    played = {**row, "skipped": ""}
    case = HERE / "cases" / f"{row['case']}.py"
    workers = 1
    if row["runs"] > RUNS_OF_ONE_WORKER:
        workers = WORKERS
    samples = {
        "faulty": Sample(
            confidence=FAULTY_CONFIDENCE,
            seeds=FAULTY_SEEDS,
            most_runs=MOST_FAULTY_RUNS,
            workers=workers,
        ),
        "mended": Sample(
            confidence=MENDED_CONFIDENCE,
            seeds=min(mended_seeds, row.get("mended_seeds", MENDED_SEEDS)),
            most_runs=4 * row["runs"],
            workers=workers,
        ),
    }
    for version, sample in samples.items():
        if version not in row:
            continue
        environment = environments[row[version]]
        obstacle = environment.build()
        if obstacle:
            played["skipped"] = f"{environment.name}: {obstacle}"
            return played
        if version == "mended":
            case = right_setting(case, row)
        is_release = row.get("release", False)
        audits = audited(case, environment.program, sample, is_release=is_release)
        played[version] = vars(audits)
    return played


def surprises(row: dict[str, Any]) -> list[str]:
    """Name what a row shows that the page does not say."""
    if row["skipped"]:
        return []
    sentences = []
    case = row["case"]
    if row["faulty"]["refuted"] < row.get("least", FAULTY_SEEDS):
        released = row["released"]
        sentences.append(f"{released} was not refuted ({case})")
    if "mended" in row and row["mended"]["refuted"]:
        version_without_fault = row["without"]
        sentences.append(f"{version_without_fault} was refuted ({case})")
    return sentences


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


def refuted_of(audits: dict[str, Any]) -> str:
    """Return how many audits of a version refuted its claim, such as "3 of 3"."""
    return f"{audits['refuted']} of {len(audits['bounds'])}"


def printed_table(rows: list[dict[str, Any]]) -> Table:
    """Return the table of all rows."""
    table = Table("released", "fault", "claim", "bound", "runs", "s", "refuted", "mended", "report")
    for row in rows:
        if row["skipped"]:
            table.add_row(row["released"], row["fault"], f"skipped: {row['skipped']}")
            continue
        faulty = row["faulty"]
        bounds = faulty["bounds"]
        table.add_row(
            row["released"],
            row["fault"],
            faulty["claimed"],
            f"{min(bounds):.2f} to {max(bounds):.2f}",
            f"{median_high(faulty['runs']):,}",
            f"{median_high(faulty['seconds']):.1f}",
            refuted_of(faulty),
            refuted_without_fault(row, row) or "none",
            row["report"],
        )
    return table


def refuted_without_fault(row: dict[str, Any], measured: dict[str, Any]) -> str:
    """Return the version without the fault and how many audits refuted it, or ""."""
    if "mended" not in row:
        return ""
    return f"{row['without']}: {refuted_of(measured['mended'])}"


def page_table(stored: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    """Return the table of the page: what was measured, with the words of the rows as they are."""
    measured = {row["case"]: row for row in stored if not row["skipped"]}
    lines = [
        "| released | fault | claim | bound | runs | report | refuted without the fault |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["case"] not in measured:
            continue
        faulty = measured[row["case"]]["faulty"]
        digits = 2
        if re.search(r"\.\d{3}", faulty["claimed"]):
            digits = 3
        smallest = floored(min(faulty["bounds"]), digits)
        largest = floored(max(faulty["bounds"]), digits)
        without_fault = refuted_without_fault(row, measured[row["case"]])
        cells = [
            row["released"],
            row["fault"],
            faulty["claimed"],
            f"{smallest} to {largest}",
            f"{median_high(faulty['runs']):,}",
            row["report"],
            without_fault or "–",  # noqa: RUF001 (as in other tables of the pages)
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def floored(bound: float, digits: int = 2) -> str:
    """Return a lower bound with this many digits after the point, rounded down."""
    scale = 10**digits
    return f"{math.floor(scale * bound) / scale:.{digits}f}"


def write_page(stored: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Put the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    table = page_table(stored, rows)
    changed = re.sub(r"(?m)^\| released \|.*\n(\|.*\n)+", lambda _: table, text)
    PAGE.write_text(changed, encoding="utf-8")


def with_stored_rows(
    played: list[dict[str, Any]], file: Path, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return all rows: those that were played now, and of the others what a file has of them.

    A row that was skipped now does not replace one that is stored.
    """
    by_case = {}
    if file.exists():
        stored = json.loads(file.read_text("utf-8"))
        by_case = {row["case"]: row for row in stored["rows"]}
    replacing = [row for row in played if not row["skipped"] or row["case"] not in by_case]
    by_case |= {row["case"]: row for row in replacing}
    return [by_case[row["case"]] for row in rows if row["case"] in by_case]


def main() -> None:
    """Play the table, print it, and store it beside this file and in the page."""
    parser = argparse.ArgumentParser(description="Audit released libraries.")
    parser.add_argument("--quick", action="store_true", help="rows that take seconds")
    parser.add_argument("--rows", nargs="+", help="these alone, by the names of their cases")
    parser.add_argument("--out", type=Path, default=RELEASED)
    given = parser.parse_args()
    content = tomllib.loads((HERE / "field.toml").read_text(encoding="utf-8"))
    environments = {}
    for name, fields in content["environments"].items():
        environments[name] = Environment(name, **fields)
    rows = content["rows"]
    mended_seeds = MENDED_SEEDS
    if given.quick:
        rows = [row for row in rows if row["quick"]]
        mended_seeds = FAULTY_SEEDS
    if given.rows:
        rows = [row for row in rows if row["case"] in given.rows]
    played = [play(row, environments, mended_seeds) for row in rows]
    table = printed_table(played)
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    today = datetime.now(UTC).date().isoformat()
    table.title = f"Released libraries, {today}, {machine}"
    Console(width=200).print(table)
    all_rows = with_stored_rows(played, given.out, content["rows"])
    stored = {"date": today, "machine": machine, "rows": all_rows}
    if given.out == RELEASED:
        write_page(all_rows, content["rows"])
    given.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    sentences = [sentence for row in played for sentence in surprises(row)]
    if sentences:
        sys.exit("Not as the page says: " + "; ".join(sentences))


if __name__ == "__main__":
    main()
