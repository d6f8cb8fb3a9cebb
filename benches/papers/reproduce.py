"""Tables and figures of the papers, and of this documentation, reproduced.

Usage: python benches/papers/reproduce.py [NAME ...] [--full] [--out leakbound-out/papers]

Without NAME, all of them, one after the other; `--list` names them. Our values are next to the
printed ones, with the reasons for differences. With `--out`, the rows are written as NAME.parquet,
and NAME.svg if there is a figure. Real data is where `make data` puts it.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

from dp_sgd_zoo import ZOO
from dp_step_released import RELEASED
from drawing import svg
from fdp import FDP
from fdp_models import FDP_MODELS
from leakbound.errors import MissingExtraError
from outcomes import Cell, Outcome, Reproduction, store
from panoramia_tables import PANORAMIA
from shipped_model import SHIPPED_MODEL
from synthetic_tables import SYNTHETIC
from zero_run import ZERO_RUN
from zero_run_shifts import ZERO_RUN_SHIFTS

__all__ = ["REPRODUCTIONS", "main"]

REPRODUCTIONS: dict[str, Reproduction] = {
    **FDP,
    **FDP_MODELS,
    **PANORAMIA,
    **ZERO_RUN,
    **ZERO_RUN_SHIFTS,
    **ZOO,
    **RELEASED,
    **SYNTHETIC,
    **SHIPPED_MODEL,
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
    parser.add_argument("--m", type=int, help="audited examples, where it can be told")
    parser.add_argument("--seed", type=int, help="first seed; 0 if none")
    parser.add_argument("--seeds", type=int, help="number of seeds")
    parser.add_argument("--out", type=Path, help="folder for NAME.parquet and NAME.svg")
    parser.add_argument("--workers", type=int, default=1, help="processes, each a paper at a time")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in REPRODUCTIONS]
    if unknown:
        parser.error(f"NAME must be among {', '.join(REPRODUCTIONS)}, got {', '.join(unknown)}")
    names = given.names or [*REPRODUCTIONS]
    sizes = {"full": given.full}
    for option in ("m", "seed", "seeds"):
        size = getattr(given, option)
        if size is not None:
            sizes[option] = size
    for name in names:
        for option in sizes.keys() - REPRODUCTIONS[name].sizes:
            parser.error(f"{name} takes no --{option}")
    if given.list:
        print(*map(heading, names), sep="\n")
    elif given.workers == 1:
        compute(names, sizes=sizes, out=given.out)
    else:
        compute_in_processes(names, sizes=sizes, out=given.out, workers=given.workers)


def compute_in_processes(
    names: list[str], sizes: dict[str, int], out: Path | None, workers: int
) -> None:
    """Compute some, each paper in one process: what is shown of one run shares it there."""
    by_paper = groupby(sorted(names, key=paper), paper)
    with ProcessPoolExecutor(workers) as pool:
        futures = []
        for _, names_of_paper in by_paper:
            futures.append(pool.submit(compute, list(names_of_paper), sizes, out))
        for future in futures:
            future.result()


def paper(name: str) -> str:
    """Return the first word of a name."""
    return name.split("-", maxsplit=1)[0]


def heading(name: str) -> str:
    """Return a name and what it stands for."""
    reproduction = REPRODUCTIONS[name]
    return f"{name}: {reproduction.title} ({reproduction.source})"


def compute(names: list[str], sizes: dict[str, int], out: Path | None) -> None:
    """Compute some, one after the other; those whose data is absent say how to get it."""
    for name in names:
        try:
            outcome = REPRODUCTIONS[name].compute(**sizes)
        except MissingExtraError as error:
            print(f"{heading(name)}\nskipped: {error}\n", flush=True)
            continue
        print(f"{heading(name)}\n{table(outcome)}", flush=True)
        if out is not None:
            store(outcome, out / f"{name}.parquet")
            if outcome.lines:
                (out / f"{name}.svg").write_text(svg(outcome), encoding="utf-8")


def table(outcome: Outcome) -> str:
    """Return the table as aligned text, and the notes below it."""
    rows = [list(outcome.columns)]
    rows += [[words(cell) for cell in row] for row in outcome.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        aligned_cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(aligned_cells).rstrip())
    notes = [f"- {note}" for note in outcome.notes]
    return "\n".join([*lines, *notes, ""])


def words(cell: Cell) -> str:
    """Return an entry as it is printed."""
    if isinstance(cell, float):
        needs_more_digits = 0 < abs(cell) < 0.01 or 0.995 <= cell < 1
        if needs_more_digits:
            return f"{cell:.4g}"
        return f"{cell:.2f}"
    if cell is None:
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell


if __name__ == "__main__":
    main()
