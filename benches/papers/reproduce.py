"""Tables and figures of the papers, and of this documentation, computed anew.

Usage: python benches/papers/reproduce.py [NAME ...] [--full] [--out leakbound-out/papers]

Without NAME, all of them, one after the other; `--list` says what there is. Ours stand beside the
printed, with the reasons for differences. With `--out`, each is written as NAME.json, and NAME.svg
if there is a figure.
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from dp_sgd_zoo import ZOO
from drawing import svg
from fdp import FDP
from outcomes import Cell, Outcome, Reproduction
from panoramia_tables import PANORAMIA
from synthetic_tables import SYNTHETIC
from zero_run import ZERO_RUN
from zero_run_images import ZERO_RUN_IMAGES

__all__ = ["REPRODUCTIONS", "main"]

REPRODUCTIONS: dict[str, Reproduction] = {
    **FDP,
    **PANORAMIA,
    **ZERO_RUN,
    **ZERO_RUN_IMAGES,
    **ZOO,
    **SYNTHETIC,
}
"""All that can be reproduced, by name."""


def main(arguments: list[str] | None = None) -> None:
    """Compute what is named, print it and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="tables and figures; all if none")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--full", action="store_true", help="the sizes of the papers and pages")
    parser.add_argument("--out", type=Path, help="folder for NAME.json and NAME.svg")
    parser.add_argument("--workers", type=int, default=1, help="processes, each a paper at a time")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in REPRODUCTIONS]
    if unknown:
        parser.error(f"NAME must be among {', '.join(REPRODUCTIONS)}, got {', '.join(unknown)}")
    names = given.names or [*REPRODUCTIONS]
    if given.list:
        write("\n".join(map(heading, names)))
    elif given.workers == 1:
        compute(names, full=given.full, out=given.out)
    else:
        # What is shown of one run shares it within a process.
        papers = groupby(sorted(names, key=paper), paper)
        with ProcessPoolExecutor(given.workers) as pool:
            futures = [
                pool.submit(compute, [*some], full=given.full, out=given.out) for _, some in papers
            ]
            for future in futures:
                future.result()


def paper(name: str) -> str:
    """Return the first word of a name."""
    return name.split("-", maxsplit=1)[0]


def heading(name: str) -> str:
    """Return a name and what it stands for."""
    return f"{name}: {REPRODUCTIONS[name].title} ({REPRODUCTIONS[name].source})"


def compute(names: list[str], *, full: bool, out: Path | None) -> None:
    """Compute some, one after the other."""
    for name in names:
        outcome = REPRODUCTIONS[name].compute(full=full)
        write(f"{heading(name)}\n{table(outcome)}")
        if out is not None:
            store(outcome, out / name)


def write(text: str) -> None:
    """Write lines at once: the next may take minutes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(outcome: Outcome) -> str:
    """Return the table as aligned text, and the notes below it."""
    rows = [outcome.columns, *([words(cell) for cell in row] for row in outcome.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *(f"- {note}" for note in outcome.notes), ""])


def words(cell: Cell) -> str:
    """Return an entry as it is printed."""
    if isinstance(cell, float):
        return f"{cell:.4g}" if 0 < abs(cell) < 0.01 else f"{cell:.2f}"
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def store(outcome: Outcome, stem: Path) -> None:
    """Write an outcome, and its figure."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(outcome), allow_nan=False, ensure_ascii=False)
    stem.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    if outcome.lines:
        stem.with_suffix(".svg").write_text(svg(outcome), encoding="utf-8")


if __name__ == "__main__":
    main()
