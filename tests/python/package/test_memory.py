"""Memory of what takes an array for each example: at most four times what was passed."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.planning import ChoicePlan
from peak_memory import peak_over_start

M = 200_000
LARGE = 10**7
MOST = 4
"""Times the bytes of the input."""
CORE = 8
"""Bytes that the core takes for each score while it sorts, which are not traced."""
SOME = 2**20
"""Bytes whatever the number of examples."""
Case = tuple[int, Callable[[], object]]
"""Bytes that are passed, and the call."""


def drawn(m: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    member = rng.random(m) < 0.5
    return rng.normal(size=m) + member, member


def halves(m: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=m), rng.permutation(m) < m // 2


def names(m: int) -> Any:
    return np.random.default_rng(2).permutation(m)


def coins(m: int) -> Case:
    scores, member = drawn(m)
    return 9 * m, lambda: lb.audit(scores, lb.Coins(member), seed=0)


def tied(m: int) -> Case:
    scores, member = drawn(m)
    rounded = scores.round(2)
    return 9 * m, lambda: lb.audit(rounded, lb.Coins(member), seed=0)


def narrow(m: int) -> Case:
    """Scores as networks give them, of which many are equal."""
    scores, member = drawn(m)
    single = scores.astype(np.float32)
    return 5 * m, lambda: lb.audit(single, lb.Coins(member), seed=0)


def narrow_split(m: int) -> Case:
    scores, member = halves(m)
    single = scores.astype(np.float32)
    return 5 * m, lambda: lb.audit(single, lb.RandomSplit(member), seed=0)


def narrow_and_tied_split(m: int) -> Case:
    scores, member = halves(m)
    rounded = scores.round(2).astype(np.float32)
    return 5 * m, lambda: lb.audit(rounded, lb.RandomSplit(member), seed=0)


def with_ids(m: int) -> Case:
    scores, member = drawn(m)
    ids = names(m)
    return 17 * m, lambda: lb.audit(scores, lb.Coins(member), seed=0, ids=ids)


def with_words(m: int) -> Case:
    scores, member = drawn(m)
    ids = np.arange(m).astype("U8")
    return 41 * m, lambda: lb.audit(scores, lb.Coins(member), seed=0, ids=ids)


def planned(m: int) -> Case:
    plan = lb.InclusionPlan.create(m, seed=1)
    ids = names(m)
    scores = drawn(m)[0]
    return 25 * m, lambda: lb.audit(scores, lb.Coins(plan), seed=0, ids=ids)


def split(m: int) -> Case:
    scores, member = halves(m)
    return 9 * m, lambda: lb.audit(scores, lb.RandomSplit(member), seed=0)


def split_with_ids(m: int) -> Case:
    scores, member = halves(m)
    ids = names(m)
    return 17 * m, lambda: lb.audit(scores, lb.RandomSplit(member), seed=0, ids=ids)


def trials(m: int) -> Case:
    scores, member = drawn(m)
    claim = lb.ApproxDP(delta=1e-9)
    return 9 * m, lambda: lb.audit(scores, lb.Trials(member), claim=claim, seed=0)


def choices(m: int) -> Case:
    scores = drawn(m)[0].reshape(-1, 4)
    chosen = np.random.default_rng(3).integers(0, 4, len(scores))
    return 10 * m, lambda: lb.audit(scores, lb.Choices(chosen, 4), seed=0)


def plan(m: int) -> Case:
    return 9 * m, lambda: lb.InclusionPlan.create(m, seed=1)


def plan_with_ids(m: int) -> Case:
    member, ids = drawn(m)[1], names(m)
    return 9 * m, lambda: lb.InclusionPlan(member, ids=ids)


def plan_of_choices(m: int) -> Case:
    return 16 * m, lambda: ChoicePlan.create(m, 4, seed=1)


CASES = [
    *(coins, tied, with_ids, with_words, planned, split, split_with_ids, trials, choices),
    *(plan, plan_with_ids, plan_of_choices),
]
NARROW = [narrow, narrow_split, narrow_and_tied_split]


def traced(case: Callable[[int], Case]) -> tuple[int, int]:
    """Return the most bytes that a call holds, those of the core left out, and those passed."""
    case(100)[1]()  # what a first call imports and stores
    passed, call = case(M)
    tracemalloc.start()
    try:
        call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, passed


@pytest.mark.parametrize("case", CASES)
def test_at_most_four_times_the_input_is_held(case: Callable[[int], Case]) -> None:
    peak, passed = traced(case)
    assert peak + CORE * M < MOST * passed + SOME


@pytest.mark.parametrize("case", NARROW)
def test_float32_scores_are_copied_once_as_float64(case: Callable[[int], Case]) -> None:
    """Beside that copy there is one integer for each where ties are broken, and no ranks.

    Differences of pairs are not stored beside that integer.
    """
    peak, passed = traced(case)
    assert peak < MOST * passed + SOME


@pytest.mark.validity
@pytest.mark.parametrize("case", [*CASES, *NARROW])
def test_at_most_four_times_the_input_is_resident_at_ten_million(
    case: Callable[[int], Case],
) -> None:
    case(100)[1]()
    passed, call = case(LARGE)
    assert peak_over_start(call) < MOST * passed


def test_a_batch_takes_the_memory_of_its_examples_whatever_came_before() -> None:
    rng = np.random.default_rng(0)
    stream = lb.Stream()
    member = rng.random(M) < 0.5
    stream.update(np.where(member, 1.0, 0.0), member, ids=np.arange(M))
    tracemalloc.start()
    try:
        stream.update(rng.normal(size=20), rng.random(20) < 0.5, ids=np.arange(M, M + 20))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < M // 4


LITTLE = """
import os, resource, sys
import numpy as np
import leakbound as lb
from leakbound import _core, propensity
rng = np.random.default_rng(0)
scores, member = rng.normal(size=1_000_000), rng.random(1_000_000) < 0.5
ranking = _core.Ranking(scores, member)
table = scores.reshape(-1, 4)
one = dict(reference=0, own_intercept=False, level=0.05, seed=0)
of_rows = _core.LogOddsSet(table[:1000], member[:1000], np.zeros(1000), **one)
guessing = dict(guesses=100, one_sided=False, residual=True)
calls = [
    lambda: lb.Tally.of(scores, member, bits=32),
    lambda: ranking.path("interleaved").sample(2**31),
    lambda: _core.Ranking(scores, member),
    lambda: propensity.LogisticPropensity().fit(table, member[:250_000]),
    lambda: _core.matched_counts(scores, member, scores, np.abs(scores), **guessing),
    lambda: _core.LogOddsSet(table, member[:250_000], np.zeros(250_000), **one),
    lambda: _core.Ranking.in_order(member),
]
for call in calls:
    for more in (1, 4, 12, 24):
        child = os.fork()
        if not child:
            _core.Ranking(scores[:9000], member[:9000])  # the threads of this process
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + more * 2**20,) * 2)
            code = 3  # an import that finds no memory, say
            try:
                call()
                code = 0
            except MemoryError:
                code = 1
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
"""
"""Calls with little memory left, each in a process of its own, and the codes they end with."""


def test_a_lack_of_memory_is_an_error_and_ends_no_process() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LITTLE],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
    )
    ended = run.stdout.split()
    assert len(ended) == 28
    assert min(map(int, ended)) >= 0, run.stdout + run.stderr  # none was ended by a signal
    assert ended.count("1") >= 10
