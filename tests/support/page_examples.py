"""Run examples of pages; `python tests/support/page_examples.py PAGE…` renews their outputs.

Blocks of Python share the names of their page. A `text` block right below one is what it prints.
"""

import contextlib
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import trackers

__all__ = ["EXAMPLE", "renewed", "set_out"]

EXAMPLE = re.compile(r"^(```python\n(.*?)^```\n+)(?:^```text\n(.*?)^```)?", re.M | re.S)

LOGS = Path(__file__).parents[1] / "golden" / "logs"
FILES = {
    "served-models": {
        f"{one}.jsonl": LOGS / f"lm-eval-rolling-{one}.jsonl" for one in ("model", "base")
    }
}
"""Files that the examples of a page read, by its name."""


def set_out(page: Path) -> None:
    """Copy the files that a page reads to the current folder."""
    for name, stored in FILES.get(page.stem, {}).items():
        shutil.copy(stored, name)


def renewed(text: str) -> str:
    """Run a page in the current folder and return it with what its examples printed."""
    names: dict[str, Any] = {"__name__": "page"}

    def run(example: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example[2], "page", "exec"), names)
            for name in [one for one in names if one.startswith("test_")]:
                names.pop(name)()
        return example[0] if example[3] is None else f"{example[1]}```text\n{printed.getvalue()}```"

    with trackers.at_hand():
        return EXAMPLE.sub(run, text)


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            set_out(page)
            page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
