"""Work that is killed, or interrupted, at every event of the files in a folder, and begun again."""

import json
import os
import re
import signal
import stat
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["interrupted_at_every_event", "killed_at_every_event"]

_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "os.listdir", "os.scandir"}
# The random end of the name of a file that takes the place of another.
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\b")


class _Events:
    """Calls `end` at the first event of a folder that is not among those that it ended at."""

    def __init__(self, folder: Path, ended_at: list[str], end: Callable[[str], None]) -> None:
        self._folder = str(folder)
        self._ended_at = ended_at
        self._end = end
        sync = os.fsync

        def fsync(fd: Any) -> None:
            self._synced(fd)
            sync(fd)

        os.fsync = fsync
        sys.addaudithook(self._seen)

    def _seen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS:
            names = [os.fsdecode(one) for one in arguments if isinstance(one, str | bytes | Path)]
            self._at(event, names)

    def _synced(self, descriptor: int) -> None:
        """Halve a file that is written: an end in the midst of it leaves as much."""
        file = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and self._is_new("fsync", [file]):
            os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
        self._at("fsync", [file])

    def _is_new(self, event: str, names: list[str]) -> bool:
        return self._name(event, names) not in {"", *self._ended_at}

    def _at(self, event: str, names: list[str]) -> None:
        if self._is_new(event, names):
            name = self._name(event, names)
            self._ended_at.append(name)
            self._end(name)

    def _name(self, event: str, names: list[str]) -> str:
        """Return what happens to which file, "" for one that is elsewhere."""
        inside = [name for name in names if name.startswith(self._folder)]
        if not inside:
            return ""
        return f"{event} {_TEMPORARY.sub('', os.path.relpath(inside[0], self._folder))}"


def killed_at_every_event(work: Callable[[], str], folder: Path) -> tuple[list[str], str]:
    """Do the work in processes, each killed at an event at which none was killed before.

    Return these events, and the answer of the process that met no other.
    """
    ended_at: list[str] = []
    while True:
        code, said = _child(partial(_work_or_die, work, folder, ended_at))
        if code == 0:
            return ended_at, said[-1]
        assert code == -signal.SIGKILL, (code, ended_at)
        ended_at += said


def _work_or_die(
    work: Callable[[], str], folder: Path, ended_at: list[str], tell: Callable[[str], None]
) -> None:
    def die(event: str) -> NoReturn:
        tell(event)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    _Events(folder, ended_at, die)
    tell(work())


def interrupted_at_every_event(work: Callable[[], str], folder: Path) -> tuple[list[str], str]:
    """Do the work in one process, with a Ctrl-C at each event, after which it begins again."""
    code, said = _child(partial(_work_again, work, folder))
    assert code == 0
    return said[:-1], said[-1]


def _work_again(work: Callable[[], str], folder: Path, tell: Callable[[str], None]) -> None:
    def interrupt(event: str) -> None:
        tell(event)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    _Events(folder, [], interrupt)
    while True:
        try:
            answer = work()
        except KeyboardInterrupt:
            continue
        tell(answer)
        return


def _child(work: Callable[[Callable[[str], None]], None]) -> tuple[int, list[str]]:
    """Return how a child of this process ended, and what it told."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(lambda words: _tell(write, words))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as told:
        said = [json.loads(line) for line in told]
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


def _tell(write: int, words: str) -> None:
    os.write(write, json.dumps(words).encode() + b"\n")
