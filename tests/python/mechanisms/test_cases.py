"""Cases: mechanisms in files, whose processes may print, raise, hang, die, and lack packages."""

import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from command_line import leakbound
from leakbound import errors
from leakbound.mechanisms import audit_mechanism, load_case

HEAD = """
import os, signal, sys, time
import numpy as np
claim, parameter, d0, d1 = "pure", 1.0, 0, 1
"""
NOISY = HEAD + "def run(data, rng):\n    return data + rng.laplace(scale=0.5)\n"


def written(folder: Path, text: str, name: str = "case.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def audited(file: Path, /, *, workers: int = 1, timeout: float | None = None, **how: Any) -> Any:
    options = {"most_runs": 60, "seed": 0, **how}
    with load_case(file, workers=workers, timeout=timeout) as case:
        options.setdefault("parameter", case.parameter)
        options.setdefault("score", case.score)
        return audit_mechanism(case.run, case.d0, case.d1, case.claim, **options)


def body(run: str, more: str = "") -> str:
    """Return a case whose run has these lines."""
    lines = "\n".join(f"    {line}" for line in run.splitlines())
    return f"{HEAD}{more}\ndef run(data, rng):\n{lines}\n"


def test_a_case_is_refuted_as_its_function_would_be(tmp_path: Path) -> None:
    path = written(tmp_path, NOISY)
    with load_case(path) as case:
        assert (case.claim, case.parameter, case.score) == (lb.PureDP(), 1.0, None)
        found = audit_mechanism(
            case.run, case.d0, case.d1, case.claim, parameter=1.0, most_runs=1000, seed=0
        )
    assert found.checked is not None
    assert found.checked.verdict == "refuted"
    assert "repeatable" not in found.options


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    noise = "return [data + rng.laplace(), random.random(), np.random.normal()]"
    path = written(tmp_path, body(noise, "import random"))
    results = [audited(path, workers=count, most_runs=100) for count in (1, 3)]
    assert len({one.to_json() for one in results}) == 1


def test_what_a_case_prints_and_reads_is_no_output(tmp_path: Path) -> None:
    run = """print("chatter " * 10_000)
os.write(1, b"more")
assert sys.stdin.read() == ""
return data + rng.laplace()"""
    found = audited(written(tmp_path, body(run, 'print("loading")')))
    assert found.options["runs"] == 60
    assert not found.warnings


def test_a_run_that_dies_or_hangs_is_an_output_and_loses_no_other(tmp_path: Path) -> None:
    run = """if rng.random() < 0.1:
    print("out of luck", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
if rng.random() < 0.1:
    os._exit(3)
if rng.random() < 0.1:
    time.sleep(60)
return data + rng.laplace()"""
    path = written(tmp_path, body(run))
    kept = tmp_path / "runs.npz"
    how: Any = {"timeout": 0.5, "score": number_of_failures, "most_runs": 40}
    one = audited(path, path=kept, **how)
    two = audited(path, workers=2, **how)
    assert one.to_json() == two.to_json()
    assert "runs returned nothing" in one.warnings[0]
    failed = [output for output in FAILED if not isinstance(output, np.ndarray)]
    assert {failure.kind for failure in failed} == {"died", "timed out"}
    assert {failure.name for failure in failed} == {"SIGKILL", "exit code 3", "0.5 s"}
    assert all("luck" in failure.message for failure in failed if failure.name == "SIGKILL")
    again = audited(path, path=kept, **how)
    assert again.to_json() == one.to_json()


FAILED: list[Any] = []


def number_of_failures(outputs: Any) -> Any:
    FAILED.extend(outputs)
    return np.array([not isinstance(one, np.ndarray) for one in outputs], dtype=np.float64)


def test_the_score_of_a_case_runs_beside_it(tmp_path: Path) -> None:
    text = NOISY + (
        "def score(outputs):\n"
        "    assert isinstance(outputs, np.ndarray) and 'leakbound' not in sys.modules\n"
        "    return np.clip(outputs, 0, 1)\n"
    )
    found = audited(written(tmp_path, text), most_runs=1000)
    assert found.verdict == "refuted"
    raising = NOISY + "def score(outputs):\n    raise ValueError('no table of ratios')\n"
    with pytest.raises(errors.InputError, match=r"score of .* raised ValueError: no table"):
        audited(written(tmp_path, raising))


BAD: dict[str, tuple[str, str]] = {
    "no run": ("claim, parameter, d0, d1 = 'pure', 1.0, 0, 1", r"case.py has no run: it needs"),
    "import error": (
        "import nothing_of_that_name\n" + NOISY,
        r"which needs the packages .*:\nTraceback [^\n]*\n  File [^\n]*case.py.*'nothing_of_that",
    ),
    "syntax error": ("def run(:", "invalid syntax"),
    "equal inputs": (NOISY.replace("0, 1", "1, 1"), "has equal inputs d0 and d1"),
    "no function": (HEAD + "run = 3", "must have a function of data and rng as run"),
    "no score": (NOISY + "score = 3", "must have a function of outputs as score, or none"),
    "parameter": (NOISY.replace("1.0", "'one'"), "must have a number as parameter, got 'one'"),
    "large array": (body("return rng.normal(size=10**6)"), "more than 20,000 numbers or words"),
    "large list": (body("return ['a'] * 20_001"), "more than 20,000 numbers or words"),
    "claim": (NOISY.replace("pure", "normal"), "claim of .* must be one of pure, approx:D"),
    "exit": (NOISY + "\nsys.exit('no licence')", "exit code 1, and said: .*no licence"),
    "object": (body("return object()"), r"cannot be kept \(builtins.object\): return its parts"),
    "always raises": (
        body("return data.missing"),
        "none of the first 10 .* no attribute 'missing'",
    ),
    "always dies": (body("os._exit(9)"), "none of the first 10 .* died exit code 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_case_that_cannot_run_says_why(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    with pytest.raises(errors.LeakboundError, match=f"(?s){message}"):
        audited(written(tmp_path, text), most_runs=20)


def test_a_python_that_is_none_or_lacks_numpy_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, NOISY)
    with pytest.raises(errors.OptionError, match="cannot be run as Python"):
        load_case(path, python=tmp_path / "python")
    with pytest.raises(errors.InputError, match="exit code 0, and said: nothing"):
        load_case(path, python="/bin/true")
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    with pytest.raises(errors.InputError, match=r"(?s)NumPy is needed.*No module named 'numpy'"):
        load_case(path, python=bare / "bin" / "python")
    with pytest.raises(errors.InputError, match="there is no file"):
        load_case(tmp_path / "none.py")
    for options in ({"workers": 0}, {"timeout": 0.0}):
        with pytest.raises(errors.OptionError, match="must be"):
            load_case(path, **options)


def test_a_case_runs_where_leakbound_is_not_installed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    venv.create(other, with_pip=False)
    (packages,) = other.glob("lib/python*/site-packages")
    found = Path(np.__file__).parent
    for part in found.parent.glob("numpy*"):
        packages.joinpath(part.name).symlink_to(part)
    text = NOISY + "import importlib.util\nassert importlib.util.find_spec('leakbound') is None\n"
    with load_case(written(tmp_path, text), python=other / "bin" / "python") as case:
        inputs = case.d0, case.d1
        audit_mechanism(case.run, *inputs, case.claim, parameter=1.0, most_runs=20, seed=0)


def test_noise_of_its_own_is_said_and_its_file_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path, body("return data + np.random.default_rng().laplace()"))
    found = audited(path, path=tmp_path / "runs.npz")
    assert found.options["repeatable"] is False
    assert "The mechanism draws noise of its own" in found.assumptions[0].statement
    again = audited(path, path=tmp_path / "runs.npz")
    assert again.bound == found.bound
    assert again.options["repeatable"] is False
    path.write_text(path.read_text() + "\n")
    with pytest.raises(errors.OptionError, match="another pair of inputs"):
        audited(path, path=tmp_path / "runs.npz")


def test_other_inputs_than_its_own_are_refused(tmp_path: Path) -> None:
    with load_case(written(tmp_path, NOISY)) as case:
        with pytest.raises(errors.OptionError, match=r"pass case\.d0 and case\.d1"):
            audit_mechanism(case.run, 0, 1, case.claim, parameter=1.0)
        assert isinstance(case.run(case.d1, np.random.default_rng(0)), float)
    with pytest.raises(errors.OptionError, match="was closed: load it again"):
        audit_mechanism(case.run, case.d0, case.d1, case.claim, parameter=1.0)


LEAKS = {
    "raises": "raise ValueError('too large')",
    "a key": "return {'rare': 1, 'n': 3}",
    "a length": "return [1.0] * 4",
    "NaN": "return float('nan')",
    "a word": "return 'rare'",
    "None": "return None",
    "an element of a set": "return {'a', 'rare'}",
    "a column": "return np.ones((2, 2))",
}
USUAL = {
    "a key": "return {'n': 3}",
    "a length": "return [1.0] * 3",
    "a word": "return 'usual'",
    "an element of a set": "return {'a', 'b'}",
    "a column": "return np.ones((2, 1))",
}


def leaking(name: str, rare: str) -> str:
    usual = USUAL.get(name, "return 1.0")
    return body(f"if rng.random() < {rare}:\n    {LEAKS[name]}\n{usual}").replace(
        "1.0, 0, 1", "0.5, 0, 1"
    )


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_in_what_comes_out_is_refuted(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, leaking(name, "0.05 + 0.55 * data"))
    assert audited(path, most_runs=400).verdict == "refuted"


@pytest.mark.parametrize("name", ["raises", "a key"])
def test_what_comes_out_on_both_inputs_alike_refutes_nothing(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, leaking(name, "0.3"))
    assert audited(path, most_runs=400).verdict == "not refuted"


def processes() -> str:
    """Return the command lines of all processes."""
    return subprocess.run(["ps", "-efww"], capture_output=True, text=True, check=True).stdout


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < 60
        time.sleep(0.1)


def test_an_interrupt_ends_the_workers_and_is_no_output(tmp_path: Path) -> None:
    path = written(tmp_path, body("time.sleep(0.05)\nreturn data + rng.laplace()"))
    runs = tmp_path / "runs.npz"
    command = [sys.executable, "-m", "leakbound", "mechanism", str(path), "--store", str(runs)]
    process = subprocess.Popen(
        [*command, "--seed", "0", "--workers", "2", "--most-runs", "400"],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(runs.exists)
    time.sleep(1.5)
    os.killpg(process.pid, 2)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130, said
    assert f"worker.py {path}" not in processes()
    kept = np.load(runs)["outputs"]
    assert 0 < kept.size < 400


def test_the_command_ends_with_the_codes_of_others(tmp_path: Path) -> None:
    path = written(tmp_path, NOISY + "score = np.asarray\n")
    out = tmp_path / "out"
    for options, code in (
        ([], 1),
        (["--claim", "eps=9"], 3),
        (["--claim", "eps=2.5"], 0),
        (["--claim", "mu=0.5"], 1),
        (["--claim", "eps=1,delta=0.01", "--workers", 2, "--out", out], 1),
        (["--claim", "noise=1"], 2),
        (["--timeout", "-1"], 2),
    ):
        answer = leakbound("mechanism", path, "--seed", 0, "--most-runs", 600, *options)
        assert answer.code == code, answer
    assert (out / "report.html").exists()


GROUPS = """
claim, parameter = "pure", 0.5
d0 = ["a", "b", "ill", "omen"] * 3
d1 = d0 + ["an"]

def run(data, rng):
    return {word: data.count(word) + rng.laplace() for word in set(data)}
"""


def test_the_order_of_sets_is_the_same_in_all_workers(tmp_path: Path) -> None:
    path = written(tmp_path, GROUPS)
    results = [audited(path, workers=count) for count in (1, 2, 1)]
    assert len({one.to_json() for one in results}) == 1
    assert "repeatable" not in results[0].options


def test_an_interrupted_score_answers_no_later_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = NOISY + "def score(outputs):\n    time.sleep(0.3)\n    return np.asarray(outputs)\n"
    with load_case(written(tmp_path, slow)) as case:
        one = case.run._workers[0]
        answer = one._next_worker_answer

        def interrupted(*_: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(one, "_next_worker_answer", interrupted)
        assert case.score is not None
        with pytest.raises(KeyboardInterrupt):
            case.score(np.zeros(3))
        monkeypatch.setattr(one, "_next_worker_answer", answer)
        assert isinstance(case.run(case.d1, np.random.default_rng(0)), float)


def test_two_audits_of_one_case_at_a_time_have_their_own_results(tmp_path: Path) -> None:
    path = written(tmp_path, NOISY + "score = np.asarray\n")
    alone = audited(path, most_runs=100)
    with load_case(path) as case, ThreadPoolExecutor(2) as threads:

        def audit(seed: int) -> Any:
            how: dict[str, Any] = {"parameter": 1.0, "score": case.score, "most_runs": 100}
            return audit_mechanism(case.run, case.d0, case.d1, case.claim, **how, seed=seed)

        first, _ = threads.map(audit, (0, 1))
    assert first.to_json() == alone.to_json()


@pytest.mark.parametrize("beside", [False, True])
def test_a_case_that_changes_while_it_is_audited_is_refused(
    tmp_path: Path, *, beside: bool
) -> None:
    run = "if rng.random() < 0.2:\n    os._exit(1)\nreturn data + helper.EXTRA + rng.laplace()"
    path = written(tmp_path, body(run, "import helper"))
    helper = written(tmp_path, "EXTRA = 0\n", "helper.py")
    with load_case(path) as case:
        changed = helper if beside else path
        changed.write_text(changed.read_text() + "\n# changed\n")
        with pytest.raises(errors.InputError, match="changed while it was audited"):
            audit_mechanism(case.run, case.d0, case.d1, case.claim, parameter=1.0, seed=0)


def test_a_child_that_lives_on_keeps_nobody_waiting(tmp_path: Path) -> None:
    run = """if rng.random() < 0.1:
    if os.fork() == 0:
        time.sleep(60)
    os._exit(3)
return data + rng.laplace()"""
    found = audited(written(tmp_path, body(run)), score=number_of_failures)
    assert "died (exit code 3" in found.warnings[0]


def test_a_python_that_says_something_first_is_refused(tmp_path: Path) -> None:
    banner = written(tmp_path, f'#!/bin/sh\necho "Activating it"\nexec {sys.executable} "$@"\n')
    banner.chmod(0o755)
    case = written(tmp_path, NOISY, "other.py")
    for python in (banner, "/bin/cat"):
        with pytest.raises(errors.InputError, match="did not load"):
            load_case(case, python=python)


def test_workers_end_with_their_audit(tmp_path: Path) -> None:
    path = written(tmp_path, body("time.sleep(60)"))
    command = [sys.executable, "-m", "leakbound", "mechanism", str(path), "--seed", "0"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until(lambda: f"worker.py {path}" in processes())
        process.kill()
    until(lambda: f"worker.py {path}" not in processes())


def test_a_case_in_another_encoding_that_writes_to_its_input(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    text = "# coding: latin-1\nname = 'é'\nclaim, parameter, d0, d1 = 'pure', 1.0, [0], [1]\n"
    run = "def run(data, rng):\n    data[0] += rng.laplace()\n    return data[0]\n"
    path.write_bytes((text + run).encode("latin-1"))
    one, two = (audited(path, workers=count, most_runs=100) for count in (1, 2))
    assert one.to_json() == two.to_json()
    assert "repeatable" not in one.options


def test_the_command_does_not_say_that_a_seed_repeats_noise_of_its_own(tmp_path: Path) -> None:
    text = body("return data + np.random.default_rng().laplace()") + "score = np.asarray\n"
    said = leakbound("mechanism", written(tmp_path, text), "--seed", 0, "--most-runs", 20).out
    assert "seed: 0" in said
    assert "repeats this audit" not in said
    text = NOISY + "score = np.asarray\n"
    said = leakbound("mechanism", written(tmp_path, text), "--seed", 7, "--most-runs", 20).out
    assert "seed: 7; --seed 7 repeats this audit" in said


def test_scores_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    text = NOISY + "def score(outputs):\n    return ['a'] * len(outputs)\n"
    with pytest.raises(errors.InputError, match="returned no numbers"):
        audited(written(tmp_path, text))
