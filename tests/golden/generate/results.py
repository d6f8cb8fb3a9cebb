"""Digests of what a user sees of a fixed set of audits: writes `results.json`.

`--write DIR` leaves the texts themselves in a folder, one file each, as users see them; two such
folders, of before and after a change, show what a changed digest stands for.
"""

import argparse
import json
import sys
from pathlib import Path

from rows import GOLDEN

sys.path.insert(0, str(GOLDEN.parent / "support"))

from fixed_audits import CASES, TRAINED
from stored_text import digest


def store() -> None:
    """Write the digests, one line a case."""
    lines = []
    for case in CASES:
        digests = {name: digest(name, text) for name, text in case.texts().items()}
        lines.append(f"{json.dumps(case.name)}: {json.dumps(digests)}")
    (GOLDEN / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def write(folder: Path) -> None:
    """Write all texts, those of trained models too, which are not stored."""
    for case in (*CASES, *TRAINED):
        for name, text in case.texts().items():
            path = folder / case.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="DIR", help="write the texts, store nothing")
    folder: Path | None = parser.parse_args().write
    if folder is None:
        store()
    else:
        write(folder)
