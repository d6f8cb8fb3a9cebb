"""Run the commands and the example of the README, with an environment that its install line made.

Run by the Python of that environment, with the README and a folder to work in. A command may find
a leak, or not, or be inconclusive; it may not ask for what the install line does not bring.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

SAYS = {0, 1, 3}
"""Exit codes of audits that took place; 2 is bad input, or a package that is not there."""


def write_files(folder: Path) -> None:
    """Write the files that the commands name."""
    rng = np.random.default_rng(0)
    member = rng.random(2000) < 0.5
    scores = zip(rng.normal(3.0 * member), member.astype(int), strict=True)
    write(folder / "scores.csv", ["score,member", *(f"{s:.6f},{m}" for s, m in scores)])
    records = [f"{a:.6f},{b:.6f},{word}" for a, b, word in people(rng, 900)]
    header = "income,age,job"
    copied, real = records[:300], records[600:]
    write(folder / "train.csv", [header, *records[:300]])
    write(folder / "holdout.csv", [header, *records[300:600]])
    write(folder / "made.csv", [header, *copied[:150], *real[:150]])


def people(rng: np.random.Generator, count: int) -> list[tuple[float, float, str]]:
    """Return records of three columns, one of them a word."""
    jobs = rng.choice(["baker", "clerk", "smith"], count)
    return list(zip(rng.normal(size=count), rng.normal(size=count), jobs, strict=True))


def write(file: Path, lines: list[str]) -> None:
    """Write a file of lines."""
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def commands(page: str) -> list[list[str]]:
    """Return the commands of leakbound that a page shows."""
    lines = re.findall(r"^\$ leakbound (.*)$", page, re.M)
    return [shlex.split(line, comments=True) for line in lines]


def example(page: str) -> tuple[str, str]:
    """Return the first example of a page, and what the page says that it prints."""
    found = re.search(r"^```python\n(.*?)^```\s*^```text\n(.*?)^```", page, re.M | re.S)
    if found is None:
        sys.exit("the page has no example")
    return found[1], found[2]


def main() -> None:
    """Run each, and say which failed."""
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    folder = Path(sys.argv[2])
    write_files(folder)
    failed = []
    asked = commands(page)
    if len(asked) < 3:
        sys.exit("the page shows no commands")
    for words in asked:
        done = run("-m", "leakbound", *words, folder=folder)
        if done.returncode not in SAYS or "Traceback" in done.stderr:
            failed.append(f"leakbound {shlex.join(words)}: {done.returncode}\n{done.stderr}")
    code, printed = example(page)
    done = run("-c", code, folder=folder)
    if done.stdout != printed:
        failed.append(f"the example printed\n{done.stdout}{done.stderr}")
    if failed:
        sys.exit("\n".join(failed))
    sys.stdout.write(f"ran {len(asked)} commands and the example\n")


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run this Python in a folder."""
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )


if __name__ == "__main__":
    main()
