"""No end of the program says "refuted" but a refuted claim: crashes exit 70, bad input 2."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import leakbound as lb
from command_line import Answer
from leakbound._base.console import ended

CRASHES = {
    "a bug in an audit": "from leakbound.cli import audits\naudits.audit = fail(TypeError('x'))",
    "a panic": "class Panic(BaseException): pass\n"
    "from leakbound.cli import audits\naudits.audit = fail(Panic('index out of bounds'))",
    "endless recursion": "from leakbound.cli import audits\n"
    "def dive(*_, **__): return dive()\naudits.audit = dive",
    "a library that exits with 1": "from leakbound.cli import audits\n"
    "audits.audit = fail(SystemExit(1))",
    "the end of input": "from leakbound.cli import audits\naudits.read = fail(EOFError())",
    "commands that cannot be imported": "sys.modules['leakbound.cli.commands'] = None",
    "an exception that has no words": "class Mute(Exception):\n"
    "    def __str__(self): raise ValueError\n"
    "from leakbound.cli import audits\naudits.audit = fail(Mute())",
}
"""What is broken on purpose, by what it stands for."""

WRAPPER = """
import sys
def fail(error):
    def failing(*_, **__):
        raise error
    return failing
{sabotage}
from leakbound.cli import main
main()
"""


def run(sabotage: str, *arguments: object, **environment: str) -> Answer:
    done = subprocess.run(
        [sys.executable, "-c", WRAPPER.format(sabotage=sabotage), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("sabotage", CRASHES.values(), ids=CRASHES)
def test_a_crash_ends_with_70_and_one_line(sabotage: str, scores: Path, tmp_path: Path) -> None:
    answer = run(sabotage, "coins", scores, "--out", tmp_path / "out")
    assert answer.code == 70, answer.err
    assert answer.err.startswith("leakbound: internal error: ")
    assert "please report it (LEAKBOUND_TRACEBACK=1" in answer.err
    assert answer.err.count("\n") == 1


def test_the_traceback_is_there_for_the_asking(scores: Path) -> None:
    answer = run(CRASHES["a bug in an audit"], "coins", scores, LEAKBOUND_TRACEBACK="1")
    assert answer.code == 70
    assert answer.err.startswith("Traceback (most recent call last):")
    assert answer.err.splitlines()[-1].startswith("leakbound: internal error: TypeError: x")


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
    called = {
        "script": [str(script), "plan", "--truth", "3"],
        "module": ["-m", "leakbound", "plan", "--truth", "3"],
        "import": ["-c", "import leakbound; leakbound.audit"],
    }
    package = Path(lb.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, *called[program]],
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
        ('"$0" -m leakbound coins "$1" >&- 2>&-', 0),
        ('"$0" -m leakbound coins "$1" --claim eps=0.1 >&-', 1),
        ('PYTHONIOENCODING=ascii "$0" -m leakbound coins "$1"', 0),
        ('"$0" -m leakbound coins "$1" <&-', 0),
        ('"$0" -m leakbound coins - <&-', 2),
        ('"$0" -m leakbound tally - --out "$1".parquet <&-', 2),
        ('"$0" -m leakbound split - --untouched <&-', 2),
        ('"$0" -m leakbound zero-run - <&- >&- 2>&-', 2),
        ('"$0" -m leakbound synthetic --members - --nonmembers - --synthetic - <&-', 2),
    ],
)
def test_streams_that_are_closed_change_no_verdict(line: str, code: int, scores: Path) -> None:
    assert shell(line, scores).returncode == code


@pytest.mark.parametrize("errors", ["2>/dev/full", ">&- 2>&-"])
def test_a_crash_ends_with_70_where_nobody_can_be_told(
    errors: str, scores: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(WRAPPER.format(sabotage=CRASHES["a bug in an audit"]))
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
