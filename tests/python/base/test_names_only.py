"""Arguments that go by name: what is said to whoever leaves the name out."""

import inspect
import re
from collections.abc import Callable

import pytest

import leakbound as lb
from command_line import BASELINE, MEMBER, SCORE
from leakbound import errors


@pytest.mark.parametrize(
    ("call", "written"),
    [
        (lambda: lb.ApproxDP(1e-5), "ApproxDP(delta=1e-05)"),  # type: ignore[call-arg]
        (lambda: lb.audit_one_run(SCORE, MEMBER).check(2), "check(epsilon=2)"),  # type: ignore[call-arg]
        (
            lambda: lb.audit_panoramia(BASELINE, SCORE, MEMBER).check(2, 0.0, 1),  # type: ignore[call-arg]
            "check(epsilon=2, delta=0.0, c=1)",
        ),
    ],
    ids=["ApproxDP", "check", "check of PANORAMIA"],
)
def test_python_is_told_which_name_was_left_out(call: Callable[[], object], written: str) -> None:
    with pytest.raises(errors.OptionTypeError, match=re.escape(f"by name: write {written}")):
        call()


def test_signatures_stay_as_they_are_written() -> None:
    assert str(inspect.signature(lb.ApproxDP)) == "(*, delta: float) -> None"
    assert list(inspect.signature(lb.AuditResult.check).parameters)[:2] == ["self", "epsilon"]
