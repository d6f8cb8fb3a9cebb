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
_LAST_CHARACTERS = 2000
# Variables that a worker does not inherit
_NOT_INHERITED = {"PYTHONPATH", "PYTHONHOME"}
# Sets of words have one order in all workers
_ONE_HASH_SEED = {"PYTHONHASHSEED": "0"}
# Seconds that a case may take to load, and between looks at whether a process is alive
_LOADING_SECONDS = 600.0
_POLLING_SECONDS = 0.2
# Seconds to wait for the last words of a process that ended
_ENDING_SECONDS = 1.0
# Runs that a worker is told of at a time: several, once all of them take less than these seconds
_MOST_RUNS_AHEAD = 64
_SHORT_SECONDS = 0.05


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

    def __exit__(self, *_: object) -> None:
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
        for worker_process in self._workers:
            worker_process.stop()

    def score(self, outputs: Output) -> FloatArray:
        """Return a score for each output, by the score of the case."""
        first_worker = self._workers[0]
        answer = first_worker.ask([("score", outputs)])[0]
        if isinstance(answer, Failure):
            raise InputError(
                f"the score of {first_worker.case} {answer.kind} {answer.name}: {answer.message}"
            )
        try:
            return np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the score of {first_worker.case} returned no numbers: {error}"
            ) from error

    def engine(self, inputs: tuple[object, object], seed: int) -> "_WorkerEngine":
        """Return what makes the runs of an audit of this seed."""
        if inputs != self._inputs:
            raise OptionError("the inputs of a case are its own: pass case.d0 and case.d1")
        return _WorkerEngine(self._workers, seed)


# Outputs by the numbers of their runs, or what was raised instead
_FinishedRuns: TypeAlias = "queue.Queue[dict[int, Output] | BaseException]"


class _WorkerEngine:
    """Runs of one audit, divided among workers; an output does not depend on which one takes it."""

    repeats = True

    def __init__(self, workers: list["_Worker"], seed: int) -> None:
        self._workers = workers
        self._seed = seed

    def outputs(self, requests: Iterable[tuple[int, bool]]) -> Generator[Output]:
        """Yield the output of each run, in their order."""
        waiting_requests = deque(requests)
        run_numbers = [number for number, _ in waiting_requests]
        finished_runs: _FinishedRuns = queue.Queue()
        with ThreadPoolExecutor(len(self._workers)) as threads:
            for worker_process in self._workers:
                threads.submit(
                    self._serve_requests, worker_process, waiting_requests, finished_runs
                )
            try:
                yield from _outputs_in_order(finished_runs, run_numbers)
            except BaseException:  # an interrupt, too: nothing may wait for a run that hangs
                waiting_requests.clear()
                for worker_process in self._workers:
                    worker_process.stop()
                raise

    def _serve_requests(
        self,
        worker_process: "_Worker",
        waiting_requests: deque[tuple[int, bool]],
        finished_runs: _FinishedRuns,
    ) -> None:
        """Let a worker make runs until none is waiting."""
        runs_ahead = 1
        try:
            while taken_requests := _take_run_requests(waiting_requests, runs_ahead):
                start_time = time.monotonic()
                run_numbers = [number for number, _ in taken_requests]
                messages = [
                    ("run", coin, RUN_SEEDS.derived(self._seed, run_number))
                    for run_number, coin in taken_requests
                ]
                outputs = worker_process.ask(messages)
                finished_runs.put(dict(zip(run_numbers, outputs, strict=True)))
                runs_ahead = min(2 * runs_ahead, _MOST_RUNS_AHEAD)
                if time.monotonic() - start_time > _SHORT_SECONDS:
                    runs_ahead = 1
        except BaseException as error:  # for the thread that waits
            finished_runs.put(error)


def _outputs_in_order(
    finished_runs: _FinishedRuns, run_numbers: Iterable[int]
) -> Generator[Output]:
    """Yield outputs in the order of their runs; raise what was raised instead."""
    outputs_by_run = dict[int, Output]()
    for run_number in run_numbers:
        while run_number not in outputs_by_run:
            finished = finished_runs.get()
            if isinstance(finished, BaseException):
                raise finished
            outputs_by_run |= finished
        yield outputs_by_run.pop(run_number)


def _take_run_requests(
    waiting_requests: deque[tuple[int, bool]], most_requests: int
) -> list[tuple[int, bool]]:
    """Take the next runs, of which other threads take some, too."""
    taken_requests = list[tuple[int, bool]]()
    with suppress(IndexError):
        while len(taken_requests) < most_requests:
            taken_requests.append(waiting_requests.popleft())
    return taken_requests


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
    case_file = Path(path)
    if not case_file.is_file():
        raise InputError(f"there is no file {path}")
    worker_count = integer(workers, name="workers", least=1, most=_MOST_WORKERS)
    if timeout is not None:
        timeout = real(timeout, name="timeout", above=0)
    python_program = str(python or sys.executable)
    worker_processes = [
        _Worker(python_program, case_file.resolve(), timeout) for _ in range(worker_count)
    ]
    with ThreadPoolExecutor(worker_count) as threads:
        try:
            descriptions = list(threads.map(_Worker.start, worker_processes))
            return _case_of_workers(case_file, worker_processes, descriptions)
        except BaseException:
            for worker_process in worker_processes:
                worker_process.stop()
            raise


def _case_of_workers(
    case_file: Path, worker_processes: list["_Worker"], descriptions: list[dict[str, Any]]
) -> Case:
    """Return the case that several workers loaded, if they all loaded the same."""
    description = descriptions[0]
    for worker_process, worker_description in zip(worker_processes, descriptions, strict=True):
        worker_process.identity = description["identity"]
        worker_process.check(worker_description)
    d0 = CaseInput("d0", description["identity"])
    d1 = CaseInput("d1", description["identity"])
    run = CaseRun(worker_processes, (d0, d1))
    score = None
    if description["has_score"]:
        score = run.score
    return Case(
        run=run,
        d0=d0,
        d1=d1,
        claim=_claim_of_case(description["claim"], case_file),
        parameter=description["parameter"],
        score=score,
    )


def _claim_of_case(claim_name: str, case_file: Path) -> Claim:
    """Return the claim that a case names."""
    try:
        return claim_named(claim_name)
    except OptionError as error:
        raise InputError(f"the claim of {case_file} {error}") from error


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
        self._error_output: deque[bytes] = deque(maxlen=_LAST_CHARACTERS)
        self._closed = False

    def start(self) -> dict[str, Any]:
        """Start the process, and return what the case says about itself."""
        if self._closed:
            raise OptionError(f"{self.case} was closed: load it again")
        command = [self._python, str(Path(worker.__file__)), str(self.case)]
        # Those name packages of the Python that runs this audit
        inherited_variables = {
            name: value for name, value in os.environ.items() if name not in _NOT_INHERITED
        }
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=inherited_variables | _ONE_HASH_SEED,
                start_new_session=True,  # an interrupt ends the audit, and is no output of a run
            )
        except OSError as error:
            raise OptionError(f"{self._python} cannot be run as Python: {error}") from error
        self._process = process
        self._end_if_closed()
        self._answers = queue.Queue()
        self._error_output = deque(maxlen=_LAST_CHARACTERS)
        self._listener = threading.Thread(
            target=_keep_error_output, args=(process, self._error_output), daemon=True
        )
        self._listener.start()
        threading.Thread(
            target=_pass_worker_answers, args=(process, self._answers), daemon=True
        ).start()
        try:
            answer = self._next_worker_answer(process, _LOADING_SECONDS)
        except queue.Empty:
            self._end_worker_process()
            raise InputError(
                f"{self.case} did not load in {_LOADING_SECONDS:g} s: import less, and do slow "
                "work in run"
            ) from None
        if answer is None:
            ending = _ending_of_process(process)
            self._end_worker_process()
            raise InputError(
                f"{self._python} did not load {self.case}: a Python 3.8 or later with NumPy is "
                f"needed. It ended with {ending}, and said: {self._end_of_error_output()}"
            )
        if answer[0] != "returned":
            self._end_worker_process()
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
            self._end_worker_process()
            raise InputError(f"{self.case} {about['flaw']}")
        if self.identity and about["identity"] != self.identity:
            self._end_worker_process()
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
                answers += self._answers_of_process(list(requests[len(answers) :]))
            return answers

    def _answers_of_process(self, requests: list[tuple[object, ...]]) -> list[Output]:
        """Return answers until the process has ended, or all."""
        if self._process is None:
            self.start()
        process = self._process
        if process is None or process.stdin is None:
            raise OptionError(f"{self.case} was closed: load it again")
        answers = list[Output]()
        try:
            worker.send_message(process.stdin, worker.pack(requests))
            for name, *_ in requests:
                timeout = None
                if name == "run":
                    timeout = self._timeout
                answer = self._next_worker_answer(process, timeout)
                if answer is None:
                    break
                answers.append(self._output_of_answer(answer))
        except queue.Empty:
            self._end_worker_process()
            timed_out = Failure(
                kind="timed out",
                name=f"{self._timeout:g} s",
                message=self._end_of_error_output(),
            )
            return [*answers, timed_out]
        except (BrokenPipeError, OSError):
            pass
        except BaseException:  # an interrupt: the next question must not get this answer
            self._end_worker_process()
            raise
        if len(answers) < len(requests):
            how_it_ended = _ending_of_process(process)
            self._end_worker_process()
            died = Failure(kind="died", name=how_it_ended, message=self._end_of_error_output())
            answers.append(died)
        return answers

    def _output_of_answer(self, answer: Any) -> Output:
        """Return what a run returned, or how it failed, from an answer of its process."""
        if answer[0] == "raised":
            return Failure(kind="raised", name=answer[1], message=answer[2])
        if answer[0] == "refused":
            raise InputTypeError(
                f"a run of {self.case} returned what cannot be kept ({answer[1]}): return its "
                "parts, such as numbers, text, lists, dictionaries, arrays or frames"
            )
        return answer[1]

    def _next_worker_answer(self, process: "subprocess.Popen[bytes]", timeout: float | None) -> Any:
        """Return the next answer, or None once the process has ended; raise queue.Empty in time."""
        start_time = time.monotonic()
        while True:
            has_ended = process.poll() is not None
            try:
                # A child of the process may keep its pipe open
                return self._answers.get(timeout=_POLLING_SECONDS)
            except queue.Empty:
                if has_ended:
                    return None
                if timeout is not None and time.monotonic() - start_time > timeout:
                    raise

    def stop(self) -> None:
        """End the process for good."""
        self._closed = True
        self._end_worker_process()

    def _end_if_closed(self) -> None:
        """End a process that was started while another thread closed the case."""
        if self._closed:
            self._end_worker_process()

    def _end_worker_process(self) -> None:
        """End the process and all that it started, if there is one."""
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

    def _end_of_error_output(self) -> str:
        """Return the end of what the process wrote on standard error."""
        self._listener.join(_ENDING_SECONDS)  # a process that died may have said why
        text = b"".join(self._error_output).decode(errors="replace").strip()
        return text[-_LAST_CHARACTERS:] or "nothing on standard error"


def _pass_worker_answers(process: "subprocess.Popen[bytes]", answers: "queue.Queue[Any]") -> None:
    """Pass on what a process answers, and None at its end."""
    try:
        with suppress(EOFError, ValueError, OSError):
            while process.stdout is not None:
                answers.put(worker.receive_message(process.stdout))
    finally:
        answers.put(None)


def _keep_error_output(process: "subprocess.Popen[bytes]", error_output: "deque[bytes]") -> None:
    """Keep the end of standard error."""
    with suppress(ValueError, OSError):
        while process.stderr is not None:
            new_output = os.read(process.stderr.fileno(), _LAST_CHARACTERS)
            if not new_output:
                return
            error_output.append(new_output)


def _ending_of_process(process: "subprocess.Popen[bytes]") -> str:
    """Return how a process ended that answers no more."""
    try:
        exit_code = process.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return "no answers, while it went on"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    with suppress(ValueError):
        return signal.Signals(-exit_code).name
    return f"signal {-exit_code}"
