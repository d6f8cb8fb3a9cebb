"""Cases: mechanisms in files, which run in the environment of their own package."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from leakbound._base.checks import integer, real
from leakbound._base.types import FloatArray, PathInput
from leakbound.claims import Claim
from leakbound.claims.names import claim_named
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.mechanisms import worker
from leakbound.mechanisms.runs import RUN_SEEDS
from leakbound.mechanisms.worker import Failure, Output

# Workers at most: each is a process with its packages
_MOST_WORKERS = 256
# Characters of standard error that a message shows
_LAST_WORDS = 2000
# Variables that a worker does not inherit
_OF_THIS_PYTHON = {"PYTHONPATH", "PYTHONHOME"}
# Sets of words have one order in all workers
_SAME_ORDER = {"PYTHONHASHSEED": "0"}
# Seconds that a case may take to load, and between looks at whether a process is alive
_LOADING = 600.0
_TICK = 0.2
# Seconds to wait for the last words of a process that ended
_PATIENCE = 1.0
# Runs that a worker is told of at a time: several, once all of them take less than these seconds
_MOST_AHEAD = 64
_SHORT = 0.05


@dataclass(frozen=True)
class CaseInput:
    """One of the two inputs of a case, which stays in the environment of the case.

    Parameters
    ----------
    name : {"d0", "d1"}
        Which it is.
    digest : str
        SHA-256 of the case file, of files beside it that it imports, and of names and versions of
        the packages it runs with.
    """

    name: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mechanism in a file: see `load_case`. Close it, or use it in a ``with`` block.

    Attributes
    ----------
    run : CaseRun
        What `audit_mechanism` takes as `run`.
    d0, d1 : CaseInput
        Its inputs.
    claim : Claim
        What the mechanism is said to satisfy.
    parameter : float
        The claimed value of the claim's parameter.
    score : callable or None
        The score of the case, which runs in its environment, too.
    """

    run: "CaseRun"
    d0: CaseInput
    d1: CaseInput
    claim: Claim
    parameter: float
    score: Callable[[Any], FloatArray] | None

    def close(self) -> None:
        """End the processes of the case."""
        self.run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


class CaseRun:
    """The mechanism of a case: its runs are made by the workers of the case."""

    def __init__(self, workers: list["_Worker"], inputs: tuple[CaseInput, CaseInput]) -> None:
        self._workers = workers
        self._inputs = inputs

    def __call__(self, data: CaseInput, rng: np.random.Generator) -> Output:
        """Run once, with a seed drawn from a generator."""
        seed = int(rng.integers(2**63))
        return self._workers[0].ask([("run", data.name == "d1", seed)])[0]

    def close(self) -> None:
        """End the workers."""
        for one in self._workers:
            one.stop()

    def score(self, outputs: Output) -> FloatArray:
        """Return a score for each output, by the score of the case."""
        first = self._workers[0]
        answer = first.ask([("score", outputs)])[0]
        if isinstance(answer, Failure):
            raise InputError(
                f"the score of {first.case} {answer.kind} {answer.name}: {answer.message}"
            )
        try:
            return np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"the score of {first.case} returned no numbers: {error}") from error

    def engine(self, inputs: tuple[object, object], seed: int) -> "_Engine":
        """Return what makes the runs of an audit of this seed."""
        if inputs != self._inputs:
            raise OptionError("the inputs of a case are its own: pass case.d0 and case.d1")
        return _Engine(self._workers, seed)


# Outputs by the numbers of their runs, or what was raised instead
_Done: TypeAlias = "queue.Queue[dict[int, Output] | BaseException]"


class _Engine:
    """Runs of one audit, divided among workers; an output does not depend on which one takes it."""

    repeats = True

    def __init__(self, workers: list["_Worker"], seed: int) -> None:
        self._workers = workers
        self._seed = seed

    def outputs(self, requests: Iterable[tuple[int, bool]]) -> Generator[Output]:
        """Yield the output of each run, in their order."""
        waiting = deque(requests)
        numbers = [number for number, _ in waiting]
        done: _Done = queue.Queue()
        with ThreadPoolExecutor(len(self._workers)) as threads:
            for one in self._workers:
                threads.submit(self._serve, one, waiting, done)
            try:
                yield from _in_order(done, numbers)
            except BaseException:  # an interrupt, too: nothing may wait for a run that hangs
                waiting.clear()
                for one in self._workers:
                    one.stop()
                raise

    def _serve(self, one: "_Worker", waiting: deque[tuple[int, bool]], done: "_Done") -> None:
        """Let a worker make runs until none is waiting."""
        ahead = 1
        try:
            while part := _taken(waiting, ahead):
                start = time.monotonic()
                numbers = [number for number, _ in part]
                outputs = one.ask(
                    [("run", coin, RUN_SEEDS.derived(self._seed, number)) for number, coin in part]
                )
                done.put(dict(zip(numbers, outputs, strict=True)))
                ahead = min(2 * ahead, _MOST_AHEAD)
                if time.monotonic() - start > _SHORT:
                    ahead = 1
        except BaseException as error:  # for the thread that waits
            done.put(error)


def _in_order(done: _Done, numbers: Iterable[int]) -> Generator[Output]:
    """Yield outputs in the order of their runs; raise what was raised instead."""
    ready = dict[int, Output]()
    for number in numbers:
        while number not in ready:
            made = done.get()
            if isinstance(made, BaseException):
                raise made
            ready |= made
        yield ready.pop(number)


def _taken(waiting: deque[tuple[int, bool]], most: int) -> list[tuple[int, bool]]:
    """Take the next runs, of which other threads take some, too."""
    taken = list[tuple[int, bool]]()
    with suppress(IndexError):
        while len(taken) < most:
            taken.append(waiting.popleft())
    return taken


def load_case(
    path: PathInput,
    *,
    python: PathInput | None = None,
    workers: int = 1,
    timeout: float | None = None,
) -> Case:
    """Load a mechanism from a file, to be run by another Python with its own packages.

    A case is a file of Python code with ``run(data, rng)``, the inputs ``d0`` and ``d1``, ``claim``
    as the command line names it (such as ``"pure"``, ``"approx:1e-5"`` or ``"gaussian"``) and the
    number ``parameter``; ``score(outputs)`` is optional. Before each run, the seed of the audit and
    the number of the run seed `random`, `numpy.random` and `rng`.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    python : str or os.PathLike, optional
        The Python that runs it: 3.8 or later, with NumPy. By default the present one. The variables
        ``PYTHONPATH`` and ``PYTHONHOME`` are not passed on.
    workers : int
        Processes that share the runs, at least 1. Results do not depend on it.
    timeout : float, optional
        Seconds that a run may take; one that takes longer is ended, and that is its output. By
        default, runs may take any time.

    Returns
    -------
    Case
        The mechanism, its inputs and its claim, as `audit_mechanism` takes them.

    Raises
    ------
    OptionError
        If `python` cannot be run.
    InputError
        If the case cannot be loaded, with what it raised; or if its inputs are equal.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from leakbound.mechanisms import audit_mechanism, load_case
    >>> text = '''
    ... claim, parameter, d0, d1 = "pure", 1.0, 0, 1
    ... def run(data, rng):
    ...     return data + rng.laplace(scale=0.5)
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "count.py")
    ...     _ = file.write_text(text)
    ...     with load_case(file) as case:
    ...         result = audit_mechanism(
    ...             case.run, case.d0, case.d1, case.claim, parameter=case.parameter, seed=0
    ...         )
    >>> result.checked.verdict
    'refuted'
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {path}")
    count = integer(workers, name="workers", least=1, most=_MOST_WORKERS)
    if timeout is not None:
        timeout = real(timeout, name="timeout", above=0)
    program = str(python or sys.executable)
    made = [_Worker(program, file.resolve(), timeout) for _ in range(count)]
    with ThreadPoolExecutor(count) as threads:
        try:
            abouts = list(threads.map(_Worker.start, made))
            return _case_of(file, made, abouts)
        except BaseException:
            for one in made:
                one.stop()
            raise


def _case_of(path: Path, workers: list["_Worker"], abouts: list[dict[str, Any]]) -> Case:
    about = abouts[0]
    for one, said in zip(workers, abouts, strict=True):
        one.identity = about["identity"]
        one.check(said)
    d0 = CaseInput("d0", about["identity"])
    d1 = CaseInput("d1", about["identity"])
    run = CaseRun(workers, (d0, d1))
    score = None
    if about["has_score"]:
        score = run.score
    return Case(
        run=run,
        d0=d0,
        d1=d1,
        claim=_claim_of(about["claim"], path),
        parameter=about["parameter"],
        score=score,
    )


def _claim_of(name: str, path: Path) -> Claim:
    try:
        return claim_named(name)
    except OptionError as error:
        raise InputError(f"the claim of {path} {error}") from error


class _Worker:
    """A process that runs a mechanism, and is started again after it died or hung."""

    def __init__(self, python: str, case: Path, timeout: float | None) -> None:
        self.case = case
        self._python = python
        self._timeout = timeout
        self.identity = ""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[object] = queue.Queue()
        self._words: deque[bytes] = deque(maxlen=_LAST_WORDS)
        self._closed = False

    def start(self) -> dict[str, Any]:
        """Start the process, and return what the case says about itself."""
        if self._closed:
            raise OptionError(f"{self.case} was closed: load it again")
        program = [self._python, str(Path(worker.__file__)), str(self.case)]
        # Those name packages of the Python that runs this audit
        own = {name: value for name, value in os.environ.items() if name not in _OF_THIS_PYTHON}
        try:
            process = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=own | _SAME_ORDER,
                start_new_session=True,  # an interrupt ends the audit, and is no output of a run
            )
        except OSError as error:
            raise OptionError(f"{self._python} cannot be run as Python: {error}") from error
        self._process = process
        self._end_if_closed()
        self._answers = queue.Queue()
        self._words = deque(maxlen=_LAST_WORDS)
        self._listener = threading.Thread(
            target=_keep_words, args=(process, self._words), daemon=True
        )
        self._listener.start()
        threading.Thread(target=_pass_answers, args=(process, self._answers), daemon=True).start()
        try:
            answer = self._answer(process, _LOADING)
        except queue.Empty:
            self._end()
            raise InputError(
                f"{self.case} did not load in {_LOADING:g} s: import less, and do slow work in run"
            ) from None
        if answer is None:
            ending = _ending(process)
            self._end()
            raise InputError(
                f"{self._python} did not load {self.case}: a Python 3.8 or later with NumPy is "
                f"needed. It ended with {ending}, and said: {self._last_words()}"
            )
        if answer[0] != "returned":
            self._end()
            raise InputError(
                f"{self.case} cannot be loaded by {self._python}, which needs the packages that "
                f"it imports:\n{answer[-1]}"
            )
        about: dict[str, Any] = answer[1]
        self.check(about)
        return about

    def check(self, about: dict[str, Any]) -> None:
        """Refuse a case that lacks something, or has changed."""
        if about["flaw"]:
            self._end()
            raise InputError(f"{self.case} {about['flaw']}")
        if self.identity and about["identity"] != self.identity:
            self._end()
            raise InputError(
                f"{self.case}, or what it imports, changed while it was audited: load it again"
            )

    def ask(self, requests: Sequence[tuple[object, ...]]) -> list[Output]:
        """Return what the process answers to each request.

        Its end, or no answer in time, is an answer, too; another process goes on.
        """
        with self._lock:  # one question at a time
            answers = list[Output]()
            while len(answers) < len(requests):
                answers += self._asked(list(requests[len(answers) :]))
            return answers

    def _asked(self, requests: list[tuple[object, ...]]) -> list[Output]:
        """Return answers until the process has ended, or all."""
        if self._process is None:
            self.start()
        process = self._process
        if process is None or process.stdin is None:
            raise OptionError(f"{self.case} was closed: load it again")
        answers = list[Output]()
        try:
            worker.send(process.stdin, worker.pack(requests))
            for name, *_ in requests:
                timeout = None
                if name == "run":
                    timeout = self._timeout
                answer = self._answer(process, timeout)
                if answer is None:
                    break
                answers.append(self._understood(answer))
        except queue.Empty:
            self._end()
            answers.append(Failure("timed out", f"{self._timeout:g} s", self._last_words()))
            return answers
        except (BrokenPipeError, OSError):
            pass
        except BaseException:  # an interrupt: the next question must not get this answer
            self._end()
            raise
        if len(answers) < len(requests):
            ending = _ending(process)
            self._end()
            answers.append(Failure("died", ending, self._last_words()))
        return answers

    def _understood(self, answer: Any) -> Output:
        if answer[0] == "raised":
            return Failure("raised", answer[1], answer[2])
        if answer[0] == "refused":
            raise InputTypeError(
                f"a run of {self.case} returned what cannot be kept ({answer[1]}): return its "
                "parts, such as numbers, text, lists, dictionaries, arrays or frames"
            )
        return answer[1]

    def _answer(self, process: "subprocess.Popen[bytes]", timeout: float | None) -> Any:
        """Return the next answer, or None once the process has ended; raise queue.Empty in time."""
        start = time.monotonic()
        while True:
            ended = process.poll() is not None
            try:
                # A child of the process may keep its pipe open
                return self._answers.get(timeout=_TICK)
            except queue.Empty:
                if ended:
                    return None
                if timeout is not None and time.monotonic() - start > timeout:
                    raise

    def stop(self) -> None:
        """End the process for good."""
        self._closed = True
        self._end()

    def _end_if_closed(self) -> None:
        """End a process that was started while another thread closed the case."""
        if self._closed:
            self._end()

    def _end(self) -> None:
        process = self._process
        self._process = None
        if process is None:
            return
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # and all that it started
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _last_words(self) -> str:
        self._listener.join(_PATIENCE)  # a process that died may have said why
        text = b"".join(self._words).decode(errors="replace").strip()
        return text[-_LAST_WORDS:] or "nothing on standard error"


def _pass_answers(process: "subprocess.Popen[bytes]", answers: "queue.Queue[Any]") -> None:
    """Pass on what a process answers, and None at its end."""
    try:
        with suppress(EOFError, ValueError, OSError):
            while process.stdout is not None:
                answers.put(worker.receive(process.stdout))
    finally:
        answers.put(None)


def _keep_words(process: "subprocess.Popen[bytes]", words: "deque[bytes]") -> None:
    """Keep the end of standard error."""
    with suppress(ValueError, OSError):
        while process.stderr is not None:
            part = os.read(process.stderr.fileno(), _LAST_WORDS)
            if not part:
                return
            words.append(part)


def _ending(process: "subprocess.Popen[bytes]") -> str:
    """Return how a process ended that answers no more."""
    try:
        code = process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return "no answers, while it went on"
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
