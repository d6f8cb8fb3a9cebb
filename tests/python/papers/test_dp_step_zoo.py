"""The zoo of steps on opacus: right ones are not refuted, and each fault is."""

from dataclasses import replace

import pytest

from dp_step_faults import STEP_FAULTS
from dp_step_models import NOISE, RIGHT, Case, probed
from validity.suite import most_errors

QUICK_FAULTS = {
    "a layer without noise": False,
    "a layer not clipped": False,
    "clipping of the sum": False,
    "a divisor that follows the batch": False,
    "sum of losses stated as a mean": True,
}
"""Some faults, and whether it takes a sweep of losses to find them."""
QUICK_RIGHT = ("functorch", "ghost, virtual steps", "dropout", "embedding")
SEEDS = range(10)


@pytest.mark.parametrize("name", QUICK_FAULTS)
def test_faults_of_a_step_are_refuted(name: str) -> None:
    audit = probed(replace(STEP_FAULTS[name], sweep=QUICK_FAULTS[name]), 0)
    assert audit.check() == "refuted"
    assert audit.refuted_by


@pytest.mark.parametrize("name", QUICK_RIGHT)
def test_right_steps_attain_their_claim_and_are_not_refuted(name: str) -> None:
    audit = probed(replace(RIGHT[name], sweep=False), 0)
    assert audit.refuted_by == ()
    assert audit.warnings == ()
    assert 0.7 / NOISE < audit.bound < 1 / NOISE


@pytest.mark.validity
@pytest.mark.parametrize("name", STEP_FAULTS)
def test_every_fault_is_refuted_with_every_seed(name: str) -> None:
    assert [seed for seed in SEEDS if probed(STEP_FAULTS[name], seed).refuted_by == ()] == []


@pytest.mark.validity
def test_right_steps_are_refuted_no_more_often_than_stated() -> None:
    """At 99.9 %: of so many audits more than `most_errors` are refuted once in 10,000 suites."""
    refuted = [
        (name, seed) for name, case in RIGHT.items() for seed in SEEDS if _refuted(case, seed)
    ]
    assert len(refuted) <= most_errors(len(RIGHT) * len(SEEDS), 0.001, 1)


def _refuted(case: Case, seed: int) -> bool:
    return probed(case, seed).refuted_by != ()
