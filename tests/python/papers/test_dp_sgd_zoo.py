"""The zoo of DP-SGD: correct runs are not refuted, and each fault by the audit that can see it."""

import pytest

from dp_sgd_faults import FAULTS, Fault
from dp_sgd_zoo import SHORT, Recipe, probe, train
from validity.suite import most_errors

QUICK = (
    "no noise",
    "same noise in every step",
    "no clipping",
    "half the rate in accountant and watch",
    "batches of fixed size",
)
QUICK_UNSEEN = (
    "examples in a fixed order, sizes as of Poisson sampling",
    "a layer of the model not clipped",
)
NAMED = {fault.name: fault for fault in FAULTS}


@pytest.mark.parametrize("name", QUICK)
def test_faults_are_refuted(name: str) -> None:
    assert NAMED[name].by in train(NAMED[name], SHORT, 0).refuted_by


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS if fault.correct])
def test_correct_runs_are_not_refuted(name: str) -> None:
    audit = train(NAMED[name], SHORT, 0)
    assert audit.refuted_by == ()
    assert audit.steps.bound > 1.5
    assert audit.epsilon() < SHORT.epsilon


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(fault.name, marks=[] if fault.name in QUICK_UNSEEN else [pytest.mark.validity])
        for fault in FAULTS
        if fault.unseen
    ],
)
def test_faults_that_watching_does_not_see_are_listed_and_refuted_by_a_probe(name: str) -> None:
    """If one is refuted by the watch after all, it belongs among the others."""
    assert NAMED[name].unseen
    assert train(NAMED[name], SHORT, 0).refuted_by == ()
    assert probe(NAMED[name], SHORT, 0)


@pytest.mark.validity
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.by], ids=lambda one: one.name)
def test_every_fault_is_refuted_at_the_size_of_the_page(fault: Fault) -> None:
    """By the audit that is to see it: any other may refute a correct run, too."""
    found = {seed: train(fault, Recipe(), seed).refuted_by for seed in range(20)}
    assert {seed: by for seed, by in found.items() if fault.by not in by} == {}


@pytest.mark.validity
def test_a_correct_run_is_refuted_no_more_often_than_stated() -> None:
    """200 seeds at 5 %: more than `most_errors` have a probability below 1e-4, of ten tests."""
    refuted = [seed for seed in range(200) if train(FAULTS[0], SHORT, seed).refuted_by]
    assert len(refuted) <= most_errors(200, 0.05, 10)


@pytest.mark.validity
def test_a_correct_run_at_the_size_of_the_page_proves_as_much_as_is_stated() -> None:
    """20 seeds; of so many no more than `most_errors` are refuted under a guarantee that holds."""
    audits = [train(FAULTS[0], Recipe(), seed) for seed in range(20)]
    assert sum(bool(audit.refuted_by) for audit in audits) <= most_errors(20, 0.05, 10)
    assert all(audit.epsilon() < Recipe().epsilon for audit in audits)
    assert sum(audit.epsilon() for audit in audits) / 20 > 4.5
    assert sum(audit.steps.epsilon(1e-5) for audit in audits) / 20 > 10.5
