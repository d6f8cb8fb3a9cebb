"""Audit the same scores from a file in every layout that the documentation names.

Run by the Python of an environment that has leakbound, with the folder to write to. Every layout
must give the bound that the arrays give; where a package is missing, the command line must name the
extra to install.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
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
OTHER = np.round(RNG.normal(size=600), 4)
ARROW = importlib.util.find_spec("pyarrow") is not None
EXTRA = "pip install 'leakbound[io]'"
NAMED = ("--score-col", "loss", "--member-col", "label")
MEANT = (*NAMED, "--member-values", "in,out")


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
    bound: float = lb.audit_one_run(SCORE, MEMBER).bound
    within: float = 0.0
    """How far a bound from counts by key may be from it, by the guide on scale."""


def table(
    separator: str = ",",
    decimal: str = ".",
    words: tuple[str, str] = ("1", "0"),
    columns: tuple[str, str] = ("score", "member"),
) -> str:
    """Return the scores and who was a member as text."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow([*columns, "note"])
    for score, member in zip(SCORE.tolist(), MEMBER.tolist(), strict=True):
        writer.writerow([str(score).replace(".", decimal), words[0 if member else 1], "x, y"])
    return text.getvalue()


def objects() -> str:
    """Return the scores and who was a member as JSON lines."""
    pairs = zip(SCORE.tolist(), MEMBER.tolist(), strict=True)
    return "".join(json.dumps({"score": s, "member": m}) + "\n" for s, m in pairs)


def layouts(folder: Path) -> Iterator[Layout]:
    """Yield every layout."""
    texts = {
        "scores.csv": table(),
        "scores.tsv": table("\t"),
        "scores.jsonl": objects(),
        "scores.ndjson": objects(),
    }
    for name, text in texts.items():
        yield Layout(name, _text(name, text), (name,))
        packed = f"{name}.gz"
        yield Layout(packed, _bytes(packed, gzip.compress(text.encode())), (packed,))
    yield Layout("as Excel writes", _text("a.csv", table(), "utf-8-sig"), ("a.csv",))
    points = ("b.csv", "--sep", ";", "--decimal", ".")
    yield Layout("semicolons", _text("b.csv", table(";")), points)
    commas = ("c.csv", "--sep", ";", "--decimal", ",")
    yield Layout("decimal commas", _text("c.csv", table(";", ",")), commas)
    said = ("d.csv", "--sep", "tab", "--decimal", ",")
    yield Layout("signs that are said", _text("d.csv", table("\t", ",")), said)
    named = table(words=("in", "out"), columns=("loss", "label"))
    yield Layout("named columns", _text("e.csv", named), ("e.csv", *MEANT))
    yield from _arrays()
    yield from _plans(folder)
    yield from _several()
    yield from _of_arrow()


def _arrays() -> Iterator[Layout]:
    """Yield archives of NumPy, and what other tools keep."""
    words = np.where(MEMBER, "in", "out")
    yield Layout("npz", _npz("a.npz", score=SCORE, member=MEMBER), ("a.npz",))
    column = _npz("b.npz", score=SCORE[:, None], member=MEMBER[:, None])
    yield Layout("npz of (m, 1) arrays", column, ("b.npz",))
    yield Layout("npz of words", _npz("c.npz", loss=SCORE, label=words), ("c.npz", *MEANT))
    lira = ("d.npz", "--score-col", "scores", "--member-col", "keep")
    yield Layout("LiRA's scores and keep", _npz("d.npz", scores=SCORE, keep=MEMBER), lira)
    inside, outside = SCORE[MEMBER], SCORE[~MEMBER]
    joined = np.concatenate([inside, outside])
    member = np.repeat([1, 0], [len(inside), len(outside)])
    yield Layout("arrays of in and out", _npz("f.npz", score=joined, member=member), ("f.npz",))


def _plans(folder: Path) -> Iterator[Layout]:
    """Yield scores whose members a plan knows."""
    PLAN.save(folder / "plan.npz")
    order = RNG.permutation(len(SCORE))
    rows = "".join(f"{PLAN.ids[at]},{SCORE[at]}\n" for at in order.tolist())
    by_id = _text("p.csv", "id,score\n" + rows)
    yield Layout("a plan, by id", by_id, ("p.csv", "--plan", "plan.npz"))
    in_order = _npz("p.npz", score=SCORE)
    yield Layout("a plan, by order", in_order, ("p.npz", "--plan", "plan.npz"))


def _several() -> Iterator[Layout]:
    """Yield several columns of scores in one file."""
    both = lb.audit_one_run({"score": SCORE, "other": OTHER}, MEMBER).bound
    arrays = _npz("g.npz", score=SCORE, other=OTHER, member=MEMBER)
    yield Layout("several attacks", arrays, ("g.npz", "--attacks", "score,other"), bound=both)


def _of_arrow() -> Iterator[Layout]:
    """Yield what pyarrow reads: parquet, shards and pipes."""
    yield Layout("parquet", _parquet("a.parquet"), ("a.parquet",), arrow=True)
    yield Layout("parquet of words", _parquet("b.parquet"), ("b.parquet", *MEANT), arrow=True)
    for name, write, arguments, pipe in (
        ("csv on a pipe", _text("h.csv", table()), ("-",), "h.csv"),
        ("Arrow on a pipe", _stream("h.arrows"), ("-",), "h.arrows"),
        ("a folder of shards", _shards("shards"), ("shards",), ""),
        ("several files", _shards("more"), ("more/0.csv", "more/1.csv"), ""),
    ):
        yield Layout(name, write, arguments, arrow=True, pipe=pipe, within=0.01)


def _text(name: str, text: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text, encoding=encoding, newline="")


def _bytes(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def _npz(name: str, **arrays: Any) -> Callable[[Path], object]:
    return lambda folder: np.savez(folder / name, **arrays)


def _shards(name: str) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        (folder / name).mkdir()
        header, *rows = table().splitlines()
        for shard, part in enumerate((rows[:200], rows[200:])):
            path = folder / name / f"{shard}.csv"
            path.write_text("\n".join([header, *part]) + "\n", encoding="utf-8")

    return write


def _parquet(name: str) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        from pyarrow import parquet

        parquet.write_table(_arrow_table(), path)

    return _arrow(name, write, without=b"PAR1")


def _stream(name: str) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        import pyarrow as pa

        with pa.ipc.new_stream(path, _arrow_table().schema) as writer:
            writer.write_table(_arrow_table())

    return _arrow(name, write, without=b"\xff\xff\xff\xff")


def _arrow(
    name: str, write: Callable[[Path], object], *, without: bytes
) -> Callable[[Path], object]:
    """Return what writes a file of Arrow's or, without Arrow, how such a file begins."""
    return lambda folder: write(folder / name) if ARROW else (folder / name).write_bytes(without)


def _arrow_table() -> Any:
    import pyarrow as pa

    words = np.where(MEMBER, "in", "out").tolist()
    return pa.table({"score": SCORE, "member": MEMBER, "loss": SCORE, "label": words})


def audit(layout: Layout, folder: Path) -> str:
    """Return what is wrong with an audit of a layout; nothing if it is as it must be."""
    layout.write(folder)
    command = [sys.executable, "-m", "leakbound", "one-run", *layout.arguments, "--json"]
    piped = (folder / layout.pipe).read_bytes() if layout.pipe else b""
    done = subprocess.run(command, cwd=folder, input=piped, capture_output=True, check=False)
    said = done.stderr.decode()
    if layout.arrow and not ARROW:
        named = done.returncode == 2 and EXTRA in " ".join(said.split())
        return "" if named else said or "it was read"
    if done.returncode:
        return said
    bound = lb.AuditResult.from_json(done.stdout.decode()).bound
    right = abs(bound - layout.bound) <= layout.within
    return "" if right else f"the bound is {bound}, not {layout.bound}"


def frames() -> Iterator[tuple[str, Any]]:
    """Yield tables in memory whose columns are attacks, and arrays of one column."""
    columns: dict[str, Any] = {"score": SCORE, "other": OTHER}
    yield "a dictionary of columns", {name: values[:, None] for name, values in columns.items()}
    for name, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        if importlib.util.find_spec(name) is not None:
            yield name, getattr(importlib.import_module(name), make)(columns)


def main() -> None:
    """Audit each in the folder that is given, and say which were."""
    folder = Path(sys.argv[1])
    wrong = {layout.name: audit(layout, folder) for layout in layouts(folder)}
    both = lb.audit_one_run({"score": SCORE, "other": OTHER}, MEMBER).bound
    for name, frame in frames():
        bound = lb.audit_one_run(frame, MEMBER).bound
        wrong[name] = "" if bound == both else f"the bound is {bound}, not {both}"
    failed = [f"{name}: {why}" for name, why in wrong.items() if why]
    if failed:
        sys.exit("\n".join(failed))
    read = "and Arrow" if ARROW else "those of Arrow named their extra"
    sys.stdout.write(f"audited {len(wrong)} layouts, {read}: {', '.join(wrong)}\n")


if __name__ == "__main__":
    main()
