"""The border of Python and Rust: arrays of any kind, Ctrl-C, fork, threads, same bits."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
import leakbound._core as _core


def audit_input(size: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    member = rng.random(size) < 0.5
    return rng.normal(size=size) + member, member


def scanned(path: _core.Path, *, beta: float = 0.05) -> tuple[float, int, int]:
    bound = _core.kl_scan(path, beta=beta, kappa=None, min_guesses=1, grid="auto")
    return bound.logit, bound.cut, bound.successes


def test_the_core_names_what_is_wrong() -> None:
    with pytest.raises(lb.errors.InputError, match="index 1"):
        _core.Ranking(np.array([0.0, np.nan]), np.array([True, False]))
    with pytest.raises(lb.errors.InputError, match="2 scores but 1"):
        _core.Ranking(np.zeros(2), np.array([True]))
    path = _core.Path.from_successes(np.array([True, False]))
    with pytest.raises(lb.errors.OptionError, match="3 guesses"):
        path.count(3)
    with pytest.raises(lb.errors.OptionError, match="beta"):
        scanned(path, beta=0.0)


INTERRUPTED = """
import os, signal, threading
import numpy as np
import leakbound as lb
from leakbound._core import Path

path = Path.from_successes(np.random.default_rng(0).random(4_000_000) < 0.51)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    lb.KLScan(grid="all").bound(path, "member", 0.05)
except KeyboardInterrupt:
    # The pool is still usable.
    assert lb.KLScan().bound(path.prefix(100), "member", 0.05).cut > 0
    print("interrupted")
"""


FORKED = """
import os
import numpy as np
import leakbound as lb
from leakbound._core import Path

path = Path.from_successes(np.random.default_rng(0).random(300_000) < 0.51)
before = lb.KLScan().bound(path, "member", 0.05).logit
child = os.fork()
after = lb.KLScan().bound(path, "member", 0.05).logit
if child == 0:
    os._exit(0 if after == before else 1)
assert after == before
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("the same")
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (INTERRUPTED, "interrupted\n"),
        (FORKED, "the same\n"),
    ],
)
def test_ctrl_c_ends_a_long_scan_and_a_forked_child_audits_too(program: str, said: str) -> None:
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.stdout == said, run.stderr


SEARCHES_INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import leakbound as lb
from leakbound import planning, propensity, stats
from leakbound._core import Path

rng = np.random.default_rng(0)
offsets, counts = rng.normal(size=300_000), np.arange(100_000, 200_000)
successes = rng.random(3_000_000) < 0.6
path = Path.from_successes(successes)
table, member = rng.normal(size=(4000, 20)), rng.random(4000) < 0.5
fit = propensity.LogisticPropensity().fit(table, member)
calls = {
    "epsilon": lambda: stats.poisson_binomial_epsilon(counts, offsets, beta=0.05),
    "tails": lambda: stats.poisson_binomial_tail_offsets(counts, offsets, 0.3),
    "scan": lambda: lb.KLScan(grid="all").bound(path, "member", 0.05),
    "offsets": lambda: stats.kl_scan_offsets(
        successes, rng.normal(size=successes.size), beta=0.05, min_guesses=1
    ),
    "refits": lambda: fit.bootstrap(table, K=100_000),
    "power": lambda: planning.power(10**7, planning.Gaussian(1.0), simulations=100),
}
for name, call in calls.items():
    sent = []

    def interrupt():
        sent.append((time.process_time(), time.monotonic()))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.3, interrupt).start()
    try:
        call()
        print(name, "ended by itself")
    except KeyboardInterrupt:
        busy, wall = time.process_time() - sent[0][0], time.monotonic() - sent[0][1]
        soon = busy < 2 and wall < 30
        print(name, "interrupted" if soon else f"after {busy:.1f} and {wall:.1f} s")
    assert stats.poisson_binomial_epsilon(2, [0.1, 0.2, 0.3], beta=0.5) < 9  # the pool is usable
"""
"""Searches of half a minute and more, each with a Ctrl-C.

It is heeded within 2 s of the processors, whatever else they do meanwhile.
"""


def test_ctrl_c_ends_every_search_within_two_seconds() -> None:
    command = [sys.executable, "-c", SEARCHES_INTERRUPTED]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    names = ["epsilon", "tails", "scan", "offsets", "refits", "power"]
    assert run.stdout.splitlines() == [f"{name} interrupted" for name in names], run.stderr


def test_threads_of_python_run_side_by_side_and_agree() -> None:
    paths = [_core.Ranking(*audit_input(30_000, seed)).path("interleaved") for seed in range(8)]
    alone = [scanned(path) for path in paths]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(scanned, paths))
    assert together == alone


def test_the_number_of_threads_changes_no_bit() -> None:
    path, rng = _core.Ranking(*audit_input(400_000)).path("interleaved"), np.random.default_rng(4)
    offsets, v = rng.normal(size=3000), rng.integers(1400, 1800, 100)
    threads, found = _core.threads(), set()
    try:
        for count in (1, 2, 3, 5):
            _core.set_threads(count)
            assert _core.threads() == count
            epsilon = lb.stats.poisson_binomial_epsilon(v, offsets, beta=0.01)
            tails = lb.stats.poisson_binomial_tail_offsets(v, offsets, 0.25)
            found.add((scanned(path), epsilon.tobytes(), tails.tobytes()))
    finally:
        _core.set_threads(threads)
    assert len(found) == 1
