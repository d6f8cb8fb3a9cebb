"""What a probe of a step of DP-SGD spends of a level: parts are written out, and laws textbook."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from leakbound.audits.dp_sgd.batches import audit_batches
from leakbound.audits.dp_sgd.step.assumptions import refuting_tests
from leakbound.audits.dp_sgd.step.contrasts import (
    direction_deviation_limit,
    joint_chernoff_threshold,
    tensor_deviation_limits,
)

if TYPE_CHECKING:
    from leakbound.results.dp_step import Tested

__all__ = ["CHECKS"]

LEVEL = 0.01
COUNTS = np.array([1_500, 40, 7])


def limits_of_tensors_have_a_quarter_together() -> None:
    """By the χ² law of squares whose limit would be exactly 1."""
    squares = np.array([1_400.0, 50.0, 3.0])
    limits = tensor_deviation_limits(squares, COUNTS, LEVEL)
    missed = stats.chi2.cdf(squares / limits**2, COUNTS)
    assert abs(missed.sum() / (0.25 * LEVEL) - 1) < 1e-6


def the_joint_region_has_a_quarter() -> None:
    """Chernoff's bound at the best of 97 rates, by numerical integration of the moments."""
    threshold = joint_chernoff_threshold(COUNTS, LEVEL)
    points = [stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, n) for n in COUNTS]

    def log_moment(rate: float) -> float:
        total = 0.0
        for n, x in zip(COUNTS, points, strict=True):
            h = np.where(x < n, (x - n - n * np.log(x / n)) / 2, 0.0)
            total += float(np.log(np.exp(rate * h).mean()))
        return total

    rates = np.linspace(0.02, 0.98, 97)[40:60]
    least = min((log_moment(rate) - np.log(0.25 * LEVEL)) / rate for rate in rates)
    assert threshold < 1.02 * least
    assert threshold > 0.99 * min(
        (log_moment(rate) - np.log(0.25 * LEVEL)) / rate for rate in np.linspace(0.5, 0.98, 25)
    )


def the_longest_difference_has_a_tenth() -> None:
    along = np.random.default_rng(0).normal(size=31)
    missed = stats.chi2.cdf(float(along @ along) / direction_deviation_limit(along, LEVEL) ** 2, 31)
    assert abs(missed / (0.1 * LEVEL) - 1) < 1e-6


def tests_of_the_noise_have_their_parts() -> None:
    """A p-value just above a part refutes nothing, and one just below does."""
    parts: dict[Tested, float] = {"normal": 0.1, "independent": 0.1, "steps": 0.2}
    for name, part in parts.items():
        known: dict[Tested, float] = dict.fromkeys(parts, 1.0)
        assert refuting_tests(known | {name: 1.01 * part * LEVEL}, LEVEL) == ()
        assert refuting_tests(known | {name: 0.99 * part * LEVEL}, LEVEL) == (name,)


def three_tests_of_batches_have_a_third_each() -> None:
    """The p-value of one test, between a third and two thirds of the level, refutes nothing."""
    rng = np.random.default_rng(0)
    drawn = [np.flatnonzero(rng.random(200) < 0.05) for _ in range(60)]
    found = audit_batches(drawn, examples=200, confidence=0.9, seed=0)
    for name in ("few in common", "many in common", "counts"):
        near = replace(found, p_values=dict.fromkeys(found.p_values, 1.0) | {name: 0.1 / 3 * 1.01})
        assert near.refuted_by == ()
        less = replace(found, p_values=dict.fromkeys(found.p_values, 1.0) | {name: 0.1 / 3 * 0.99})
        assert less.refuted_by == (name,)


def both_sides_of_counts_have_half_each() -> None:
    """Every example comes once in an epoch: of 400 sets, no other has counts as even."""
    drawn = np.random.default_rng(0).permutation(200).reshape(20, 10)
    found = audit_batches(drawn, examples=200, seed=0)
    assert found.p_values["counts"] == 2 / 401


CHECKS: dict[str, Callable[[], None]] = {
    "BATCHES": three_tests_of_batches_have_a_third_each,
    "COUNT_SIDES": both_sides_of_counts_have_half_each,
    "STEP_TENSORS": limits_of_tensors_have_a_quarter_together,
    "STEP_JOINT": the_joint_region_has_a_quarter,
    "STEP_DIRECTION": the_longest_difference_has_a_tenth,
    "STEP_NORMAL": tests_of_the_noise_have_their_parts,
    "STEP_INDEPENDENT": tests_of_the_noise_have_their_parts,
    "STEP_FRESH": tests_of_the_noise_have_their_parts,
}
"""The exact check of each row of the table that is about probes."""
