"""The command line as tests run it: in this process or another, and what it leaves behind."""

import io
import os
import subprocess
import sys
from threading import Event

import numpy as np
from typer.testing import CliRunner

from leakbound._base.console import CRASH
from leakbound.cli import run

__all__ = [
    "BASELINE",
    "MEMBER",
    "PROGRAM",
    "SCORE",
    "Answer",
    "Terminal",
    "called",
    "csv_text",
    "leakbound",
    "printed_by_each",
    "spawn",
]

rng = np.random.default_rng(8)
MEMBER = rng.random(300) < 0.5
SCORE = rng.normal(size=300) + 2.0 * MEMBER
BASELINE = rng.normal(size=300) + 0.2 * MEMBER
"""What the file of the fixture `scores` holds."""

PROGRAM = [sys.executable, "-c", "from leakbound.cli import main; main()"]


class Answer:
    """What a command left behind: exit code, standard output, standard error."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def refusal(self) -> str:
        """The one line that bad input is answered with."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("leakbound: ")
        assert self.err.count("\n") == 1
        return self.err


def called(*arguments: object) -> Answer:
    """Run the program in this process, whatever it ends with."""
    with CliRunner().isolation() as (out, err, _):
        code = run([str(argument) for argument in arguments])
        return Answer(code, out.getvalue().decode(), err.getvalue().decode())


def leakbound(*arguments: object) -> Answer:
    """Run the program in this process; a crash fails the test."""
    answer = called(*arguments)
    assert answer.code != CRASH, answer.err
    return answer


def spawn(*arguments: object) -> Answer:
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def printed_by_each(program: str) -> set[str]:
    """Return what processes print that have sets of words in other orders."""
    printed = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        printed.add(done.stdout)
    return printed


def csv_text(**columns: object) -> str:
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    return "\n".join([",".join(columns), *lines, ""])


class Terminal(io.StringIO):
    """A text stream that says it is a terminal, and tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)
