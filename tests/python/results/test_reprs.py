"""Representations of results print what a call returns."""

import math
import re
from typing import Any

import pytest

import leakbound as lb
from leakbound._base.formatting import down
from leakbound.errors import OptionError
from oracle_calls import coins, panoramia, scored, split, trials, zero_run

RESULTS = {
    "pure": lambda: coins("leaks"),
    "approx": lambda: coins("leaks", "approx"),
    "gaussian": lambda: coins("leaks", "gaussian"),
    "laplace": lambda: coins("leaks", "laplace"),
    "split": lambda: split("leaks"),
    "trials": lambda: trials("leaks", "pure"),
    "zero-run": lambda: zero_run("pure"),
    "panoramia": lambda: panoramia(leak=3.0),
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_number_is_that_of_the_call_before_it(name: str) -> None:
    result: Any = RESULTS[name]()
    shown = re.search(r"\((epsilon\([^)]*\)) (?:>=|~) ([\d.]+)", repr(result))
    assert shown is not None, repr(result)
    assert down(eval(f"result.{shown[1]}")) == shown[2]


def test_of_copies_the_call_would_be_at_another_delta() -> None:
    scores, member = scored("leaks")
    result = lb.audit(scores, lb.Coins(member, copies=3), claim=lb.ApproxDP(delta=1e-3), seed=0)
    assert result.bound > 0
    assert "epsilon()" not in repr(result)


def test_a_family_without_a_finite_epsilon_is_refused_in_place_of_infinity() -> None:
    result = coins("leaks", "gaussian")
    with pytest.raises(OptionError, match="has no ε without a δ"):
        result.epsilon()
    assert math.isfinite(result.epsilon(1e-12))
    assert "call it" in (lb.AuditResult.epsilon.__doc__ or "")
