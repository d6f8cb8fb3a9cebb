"""Public functions with arguments of any kind: a result, or a refusal with a name."""

import sys
import warnings
from typing import Any

import pytest

from fuzz import fuzz
from fuzzed import AUDITS, CALLS, DESIGNS, LEARNERS, Calls
from fuzzed_models import MODELS

# Calls of each group of functions: in all, 100,000 in the long form.
SHORT = {"functions": 2000, "audits": 400, "designs": 350, "learners": 300, "models": 36}
LONG = {
    "functions": 40_000,
    "audits": 15_000,
    "designs": 30_000,
    "learners": 15_000,
    "models": 4_000,
}
# One call in so many answers, and one refuses, at least: the more arguments, the fewer answers.
ONE_IN = {"models": 12}
GROUPS: dict[str, Calls] = {
    "functions": CALLS,
    "audits": AUDITS,
    "designs": DESIGNS,
    "learners": LEARNERS,
    "models": MODELS,
}
PARTS = 10
"""Parts of the long form, each with a seed of its own."""


def check(group: str, number: int, seed: int) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = fuzz(GROUPS[group], number, seed)
    assert not outcomes.wrong, "\n".join(outcomes.wrong)
    ended = outcomes.counts["results"] + outcomes.counts["named refusals"]
    assert ended == outcomes.counts["calls"] == number
    assert min(
        outcomes.counts["results"], outcomes.counts["named refusals"]
    ) > number // ONE_IN.get(group, 6)
    return f"{group}, seed {seed}: {outcomes.said}\n"


@pytest.mark.parametrize("group", GROUPS)
def test_public_functions_answer_or_refuse_by_name(group: str) -> None:
    check(group, SHORT[group], seed=0)


@pytest.mark.validity
@pytest.mark.parametrize("seed", range(1, 1 + PARTS))
@pytest.mark.parametrize("group", GROUPS)
def test_public_functions_answer_or_refuse_in_100_000_calls(
    group: str, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = check(group, LONG[group] // PARTS, seed)
    with capsys.disabled():
        sys.stdout.write(said)


FAULTS: dict[str, Any] = {
    "raw errors": lambda: int("x"),
    "NaN": lambda: float("nan"),
    "memory": lambda: len(bytearray(200_000_000)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fuzzer_counts_what_should_not_be(fault: str) -> None:
    blocks = [bytearray(100_000) for _ in range(3000)]
    above = bytearray(100_000)
    del blocks  # the allocator keeps what lies below the last block, to be given again unseen
    calls: Calls = {"fault": (lambda x: FAULTS[fault]() if x == "faulty" else x, {"x": ["faulty"]})}
    outcomes = fuzz(calls, 20, seed=0, warm=False)
    assert outcomes.counts[fault] > 5
    assert "fault(x='faulty')" in next(iter(outcomes.wrong))
    assert len(above) == 100_000
