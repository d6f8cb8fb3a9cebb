"""Targets that never saw their "members": the whole run must find nothing, as often as promised."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import leakbound as lb
from leakbound import stats
from leakbound.demos._census_data import Census, features
from leakbound.generators import GaussianCopula
from leakbound.panoramia import Panoramia

NOMINAL = 0.05
ERROR = 1e-4
"""Probability that a valid audit fails its test."""


def trial(seed: int, audit: Panoramia) -> tuple[lb.PanoramiaResult, lb.PanoramiaResult]:
    """Audit a network of random weights; return the results with and without a generator."""
    drawn = Census().sample(2000, seed=seed)
    members, others = (
        (part.values, part.labels)
        for part in (drawn.take(slice(1000)), drawn.take(slice(1000, None)))
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        target = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
    found = replace(audit, seeds=(seed,)).run(target=target, members=members, nonmembers=others)
    one, two = (found.row("target", kind).results[0] for kind in ("PANORAMIA", "RM;RN"))
    assert isinstance(one, lb.PanoramiaResult)
    assert isinstance(two, lb.PanoramiaResult)
    return one, two


def check(trials: int, audit: Panoramia) -> None:
    """Count false bounds of the attack and of the baseline, and judge them exactly.

    With the process itself as the generator c = 0, and no member was seen: ε = 0. Each bound
    exceeds the truth with probability at most half of the nominal error.
    """
    results = [pair for seed in range(trials) for pair in trial(seed, audit)]
    for bounds in (
        [result.attack.bound for result in results[::2]],
        [result.baseline.bound for result in results[::2]],
        [result.attack.bound for result in results[1::2]],
    ):
        false = int(np.count_nonzero(np.array(bounds) > 0))
        assert stats.binomial_tail(false, trials, NOMINAL / 2) > ERROR, f"{false} of {trials}"


AUDIT = Panoramia(Census(), inputs=features, helper=None, saturation=())


def test_a_target_that_never_saw_its_members_quick() -> None:
    check(6, AUDIT)


@pytest.mark.validity
def test_a_target_that_never_saw_its_members() -> None:
    check(300, AUDIT)


@pytest.mark.validity
def test_a_generator_that_is_told_from_real_data_is_not_the_targets_doing() -> None:
    """The attack sees more than the baseline, but there is nothing more to see."""
    differences = []
    for seed in range(100):
        result, _ = trial(seed, replace(AUDIT, generator=GaussianCopula()))
        differences.append(result.c_plus_epsilon_lb - result.c_lb)
    standard_error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert np.mean(differences) < 4 * standard_error
