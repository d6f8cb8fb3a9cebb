"""Audit the same scores from a file of every kind that is read.

Run by the Python of an environment that has leakbound, with the folder to write to. Every layout
must give the bound that the arrays give; where a package is missing, the command line must name the
extra to install.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import leakbound as lb

PLAN = lb.InclusionPlan.create(600, seed=18)
SCORE = np.round(np.random.default_rng(18).normal(size=600) + 2 * PLAN.member, 4)
ROWS = list(zip(SCORE.tolist(), PLAN.member.tolist(), strict=True))
BOUND = lb.audit(SCORE, lb.Coins(PLAN.member)).bound
ARROW = importlib.util.find_spec("pyarrow") is not None
EXTRA = "pip install 'leakbound[io]'"
LAYOUTS = (
    ("scores.csv",),
    ("scores.csv.gz",),
    ("scores.jsonl",),
    ("scores.parquet",),
    ("-",),
    ("scores.npz",),
    ("planned.npz", "--plan", "plan.npz"),
)
"""What the command is given: all but files of NumPy are read by Arrow, and - is a pipe."""


def write(folder: Path) -> None:
    """Write every file: scores and who was a member, as text or as arrays."""
    table = "score,member\n" + "".join(f"{score},{int(member)}\n" for score, member in ROWS)
    (folder / "scores.csv").write_text(table, encoding="utf-8", newline="")
    (folder / "scores.csv.gz").write_bytes(gzip.compress(table.encode()))
    objects = "".join(json.dumps({"score": s, "member": m}) + "\n" for s, m in ROWS)
    (folder / "scores.jsonl").write_text(objects, encoding="utf-8", newline="")
    np.savez(folder / "scores.npz", score=SCORE, member=PLAN.member)
    np.savez(folder / "planned.npz", score=SCORE)
    PLAN.save(folder / "plan.npz")
    if ARROW:
        import pyarrow as pa
        from pyarrow import parquet

        columns = {"score": SCORE, "member": PLAN.member}
        parquet.write_table(pa.table(columns), folder / "scores.parquet")
    else:
        (folder / "scores.parquet").write_bytes(b"PAR1")  # as a parquet file begins


def audit(arguments: tuple[str, ...], folder: Path) -> str:
    """Return what is wrong with an audit of a layout; nothing if it is as it must be."""
    command = [sys.executable, "-m", "leakbound", "coins", *arguments, "--json-full"]
    piped = (folder / "scores.csv").read_bytes() if "-" in arguments else b""
    done = subprocess.run(command, cwd=folder, input=piped, capture_output=True, check=False)
    said = done.stderr.decode()
    if not ARROW and ".npz" not in arguments[0]:
        named = done.returncode == 2 and EXTRA in " ".join(said.split())
        return "" if named else said or "it was read"
    if done.returncode:
        return said
    bound = lb.AuditResult.from_json(done.stdout.decode()).bound
    # A pipe is counted by keys, whose bound may be that far from it by the guide on scale.
    within = 0.01 if piped else 0.0
    return "" if abs(bound - BOUND) <= within else f"the bound is {bound}, not {BOUND}"


def main() -> None:
    """Audit each in the folder that is given, and say which were."""
    folder = Path(sys.argv[1])
    write(folder)
    wrong = {arguments[0]: audit(arguments, folder) for arguments in LAYOUTS}
    failed = [f"{name}: {why}" for name, why in wrong.items() if why]
    if failed:
        sys.exit("\n".join(failed))
    read = "and Arrow" if ARROW else "those of Arrow named their extra"
    sys.stdout.write(f"audited {len(wrong)} layouts, {read}: {', '.join(wrong)}\n")


if __name__ == "__main__":
    main()
