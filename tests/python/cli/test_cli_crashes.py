"""No end of the program says "refuted" but a refuted claim: crashes exit 70, bad input 2."""

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

import leakbound as lb
from command_line import Answer, called
from leakbound._base.console import ended
from leakbound.cli import run


class Panic(BaseException):
    """What the core raises where it panics, and no `except Exception` catches."""


class MuteError(Exception):
    """An exception whose text cannot be asked for."""

    def __str__(self) -> str:
        raise ValueError


def fail(error: BaseException) -> Callable[..., NoReturn]:
    def failing(*_: object, **__: object) -> NoReturn:
        raise error

    return failing


def dive(*_: object, **__: object) -> object:
    return dive()


AUDIT, READ = "leakbound.cli.audits.audit", "leakbound.cli.audits.read"
CRASHES: dict[str, tuple[str, Callable[..., object]]] = {
    "a bug in an audit": (AUDIT, fail(TypeError("x"))),
    "a panic": (AUDIT, fail(Panic("index out of bounds"))),
    "endless recursion": (AUDIT, dive),
    "a library that exits with 1": (AUDIT, fail(SystemExit(1))),
    "the end of input": (READ, fail(EOFError())),
    "an exception that has no words": (AUDIT, fail(MuteError())),
}
"""What is broken on purpose, and by what, by what it stands for."""

BROKEN = """
from leakbound.cli import audits, main
def failing(*_, **__):
    raise TypeError("x")
audits.audit = failing
main()
"""
"""A program of its own, for the code that its process ends with."""


def assert_crashed(answer: Answer) -> None:
    assert answer.code == 70, answer.err
    assert answer.err.startswith("leakbound: internal error: ")
    assert "please report it (LEAKBOUND_TRACEBACK=1" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("broken", CRASHES)
def test_a_crash_ends_with_70_and_one_line(
    broken: str, scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, failing = CRASHES[broken]
    monkeypatch.setattr(place, failing)
    assert_crashed(called("coins", scores, "--out", tmp_path / "out"))


def test_commands_that_cannot_be_imported_are_a_crash(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "leakbound.cli.commands", None)
    assert_crashed(called("coins", scores))


def test_the_traceback_is_there_for_the_asking(scores: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, "coins", str(scores)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LEAKBOUND_TRACEBACK": "1"},
    )
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.splitlines()[-1].startswith("leakbound: internal error: TypeError: x")


@pytest.mark.parametrize(
    ("program", "raised"),
    [
        ("script", "raise ModuleNotFoundError(\"No module named 'numpy'\")"),
        ("module", "raise ImportError('libopenblas.so.0:\\nnot found')"),
        ("import", "raise RuntimeError('module compiled against ABI version 0x1000009')"),
    ],
)
def test_without_numpy_the_program_ends_with_70_and_one_line(
    program: str, raised: str, tmp_path: Path
) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text(raised + "\n")
    script = tmp_path / "leakbound"
    script.write_text("import sys\nfrom leakbound.cli import main\nsys.exit(main())\n")
    ways = {
        "script": [str(script), "plan", "--truth", "3"],
        "module": ["-m", "leakbound", "plan", "--truth", "3"],
        "import": ["-c", "import leakbound; leakbound.audit"],
    }
    package = Path(lb.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, *ways[program]],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, package)))},
    )
    if program == "import":  # an exception of Python, for whoever uses the package
        assert done.returncode == 1
        assert done.stderr.startswith("Traceback")
    else:
        assert done.returncode == 70
        assert done.stderr.startswith("leakbound: internal error: ")
        assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def shell(line: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the program by a shell, for the streams that it closes."""
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('"$0" -m leakbound coins "$1".missing.csv 2>&-', 2),
        ('"$0" -m leakbound coins --no-such-option 2>/dev/full', 2),
        ('"$0" -m leakbound coins "$1" >/dev/full', 2),
        ('"$0" -m leakbound coins "$1" --claim eps=0.1 >&- 2>&-', 1),
        ('PYTHONIOENCODING=ascii "$0" -m leakbound coins "$1" <&-', 0),
        ('"$0" -m leakbound zero-run - <&- >&- 2>&-', 2),
    ],
)
def test_streams_that_are_closed_change_no_verdict(line: str, code: int, scores: Path) -> None:
    assert shell(line, scores).returncode == code


@pytest.mark.parametrize(
    "line",
    [
        "coins -",
        "tally - --out tally.parquet",
        "split - --untouched",
        "zero-run -",
        "synthetic --members - --nonmembers - --synthetic -",
    ],
)
def test_every_command_refuses_a_standard_input_that_is_closed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with CliRunner().isolation() as (out, err, _):
        monkeypatch.setattr(sys, "stdin", None)  # as Python begins without one
        assert run(line.split()) == 2
        assert out.getvalue() == b""
        assert err.getvalue().count(b"\n") == 1


@pytest.mark.parametrize("errors", ["2>/dev/full", ">&- 2>&-"])
def test_a_crash_ends_with_70_where_nobody_can_be_told(
    errors: str, scores: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(BROKEN)
    assert shell(f'"$0" "$1" coins "$2" {errors}', broken, scores).returncode == 70


@pytest.mark.parametrize("code", [0, 1, 2, 3, 70])
def test_what_is_left_in_standard_error_changes_no_code(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "no space left on the device")

    monkeypatch.setattr(sys, "stderr", Full())
    assert ended(lambda: code) == code
