"""The command line on terminals and pipes: interrupts, readers that leave, signs of life."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import PROGRAM, Terminal
from leakbound._base import console

WAITING = """
import sys, time
from leakbound.cli import audits, main
audits.audit = lambda *_, **__: (print("busy", flush=True), time.sleep(600))
main()
"""


def test_an_interrupt_says_so_and_ends_with_130(scores: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, "coins", str(scores)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"busy\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"leakbound: interrupted\n")


SLEEPY = """
import os, time
from pathlib import Path

def slow(member, seed):
    Path(f"worker-{os.getpid()}").touch()
    time.sleep(600)
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(done: Callable[[], bool]) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    raise AssertionError("a minute has passed")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_program_that_is_killed(end: signal.Signals, tmp_path: Path) -> None:
    """They waited for work for ever, and held their memory."""
    (tmp_path / "my_attack.py").write_text(SLEEPY)
    words = ["benchmark", "-m", "20", "--attack", "my_attack:slow", "--workers", "2"]
    process = subprocess.Popen([*PROGRAM, *words], cwd=tmp_path, stderr=subprocess.PIPE)
    until(lambda: len([*tmp_path.glob("worker-*")]) == 2)
    workers = [int(file.name.partition("-")[2]) for file in tmp_path.glob("worker-*")]
    process.send_signal(end)
    process.communicate()
    until(lambda: not any(map(is_running, workers)))


@pytest.mark.parametrize("option", ["--json", "--help"])
def test_a_reader_that_leaves_ends_it_quietly(scores: Path, option: str) -> None:
    gone, pipe = os.pipe()
    os.close(gone)
    process = subprocess.run(
        [*PROGRAM, "coins", str(scores), option], stdout=pipe, stderr=subprocess.PIPE, check=False
    )
    os.close(pipe)
    assert (process.returncode, process.stderr) == (141, b"")


def on_a_terminal(command: list[str], columns: int) -> str:
    """Run a command whose output is a terminal, and return what it shows."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(command, stdout=child, stderr=child, env=environment)
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # how Linux says that the other end is closed
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(parent)
    process.wait()
    return shown.decode()


def test_a_terminal_gets_a_coloured_verdict_within_its_width(
    scores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = on_a_terminal([*PROGRAM, "coins", str(scores)], columns=60)
    assert "\x1b[1;31mThis model leaks" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert max(map(len, plain.splitlines())) <= 60
    assert "…" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1mThis model" in on_a_terminal([*PROGRAM, "coins", str(scores)], columns=60)


def test_waiting_shows_itself_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_SECONDS_BEFORE_BAR", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with console.bar("Thinking", total=1) as move:
        move(description="Training", completed=0.5)
        assert terminal.written.wait(60)
    assert "Training" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", file)
    with console.bar("Thinking") as move:
        move(completed=0.5)
    assert file.getvalue() == ""
