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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import leakbound as lb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RNG = np.random.default_rng(18)
PLAN = lb.InclusionPlan.create(600, seed=18)
MEMBER = PLAN.member
SCORE = np.round(RNG.normal(size=600) + 2 * MEMBER, 4)
ARROW = importlib.util.find_spec("pyarrow") is not None
EXTRA = "pip install 'leakbound[io]'"
BOUND = lb.audit(SCORE, lb.Coins(MEMBER)).bound


@dataclass(frozen=True)
class Layout:
    """How a file is written, and the arguments that audit it."""

    name: str
    write: Callable[[Path], object]
    arguments: tuple[str, ...]
    arrow: bool = False
    """Whether pyarrow reads it."""
    pipe: str = ""
    """The file that is piped in, if any."""
    within: float = 0.0
    """How far a bound from counts by key may be from it, by the guide on scale."""


def table() -> str:
    """Return the scores and who was a member as text."""
    rows = zip(SCORE.tolist(), MEMBER.tolist(), strict=True)
    return "score,member\n" + "".join(f"{score},{int(member)}\n" for score, member in rows)


def objects() -> str:
    """Return the scores and who was a member as JSON lines."""
    pairs = zip(SCORE.tolist(), MEMBER.tolist(), strict=True)
    return "".join(json.dumps({"score": s, "member": m}) + "\n" for s, m in pairs)


def layouts(folder: Path) -> Iterator[Layout]:
    """Yield a layout of every reader."""
    packed = gzip.compress(table().encode())
    PLAN.save(folder / "plan.npz")
    yield Layout("csv", _text("scores.csv", table()), ("scores.csv",), arrow=True)
    yield Layout("packed", _bytes("scores.csv.gz", packed), ("scores.csv.gz",), arrow=True)
    yield Layout("JSON lines", _text("scores.jsonl", objects()), ("scores.jsonl",), arrow=True)
    yield Layout("npz", _npz("a.npz", score=SCORE, member=MEMBER), ("a.npz",))
    yield Layout("a plan", _npz("p.npz", score=SCORE), ("p.npz", "--plan", "plan.npz"))
    yield Layout("parquet", _parquet("a.parquet"), ("a.parquet",), arrow=True)
    piped = _text("h.csv", table())
    yield Layout("csv on a pipe", piped, ("-",), arrow=True, pipe="h.csv", within=0.01)


def _text(name: str, text: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding=encoding, newline="")


def _bytes(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _npz(name: str, **arrays: Any) -> Callable[[Path], object]:
    return lambda folder: np.savez(folder / name, **arrays)


def _parquet(name: str) -> Callable[[Path], object]:
    """Return what writes a parquet file or, without Arrow, how such a file begins."""

    def write(folder: Path) -> None:
        if not ARROW:
            (folder / name).write_bytes(b"PAR1")
            return
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"score": SCORE, "member": MEMBER}), folder / name)

    return write


def audit(layout: Layout, folder: Path) -> str:
    """Return what is wrong with an audit of a layout; nothing if it is as it must be."""
    layout.write(folder)
    command = [sys.executable, "-m", "leakbound", "coins", *layout.arguments, "--json"]
    piped = (folder / layout.pipe).read_bytes() if layout.pipe else b""
    done = subprocess.run(command, cwd=folder, input=piped, capture_output=True, check=False)
    said = done.stderr.decode()
    if layout.arrow and not ARROW:
        named = done.returncode == 2 and EXTRA in " ".join(said.split())
        return "" if named else said or "it was read"
    if done.returncode:
        return said
    bound = lb.AuditResult.from_json(done.stdout.decode()).bound
    right = abs(bound - BOUND) <= layout.within
    return "" if right else f"the bound is {bound}, not {BOUND}"


def main() -> None:
    """Audit each in the folder that is given, and say which were."""
    folder = Path(sys.argv[1])
    wrong = {layout.name: audit(layout, folder) for layout in layouts(folder)}
    failed = [f"{name}: {why}" for name, why in wrong.items() if why]
    if failed:
        sys.exit("\n".join(failed))
    read = "and Arrow" if ARROW else "those of Arrow named their extra"
    sys.stdout.write(f"audited {len(wrong)} layouts, {read}: {', '.join(wrong)}\n")


if __name__ == "__main__":
    main()
