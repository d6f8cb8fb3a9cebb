"""How often audits of correct runs with DP-SGD say too much: at most as often as they state.

Every game is at the boundary: the mechanism is the one that is stated, exactly. Counts are judged
by an exact binomial test: more failures than `most_errors` allows have a probability below 1e-4
under a guarantee that holds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from noisy_steps import EXAMPLES, play
from validity.suite import most_errors

KNOWN = (EXAMPLES, EXAMPLES)
LEVEL = 0.05


def loud(values: NDArray[np.float64], step: int) -> bool:
    """End after a step that released something large: nine runs in ten end early so."""
    return step > 4 and float(np.max(values)) > 4.0


STOPS: dict[str, Callable[[NDArray[np.float64], int], bool]] = {
    "to the end": lambda _values, _step: False,
    "stopped by what was released": loud,
}


def steps_fail(seed: int, **run: Any) -> bool:
    """Whether the bound on the noise of the steps is below the truth, 1."""
    audit = audit_dp_sgd(play(seed, **run), claim=lb.GaussianDP(), examples=KNOWN)
    return audit.steps.bound < 1.0


def membership_fails(seed: int, **run: Any) -> bool:
    """Whether the audit of membership rejects the truth itself."""
    seen = play(seed, **run)
    claim = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=seen.design.max_steps)
    counted = audit_dp_sgd(seen, claim=lb.GaussianDP(), examples=KNOWN).membership
    return lb.stats.fdp_rejects(
        counted.correct,
        counted.guesses,
        float(counted.m),
        tradeoff=claim.curve(1.0, "both"),
        tau=LEVEL,
    )


def any_fails(seed: int, **run: Any) -> bool:
    """Whether a correct run is refuted by any of the three."""
    return bool(
        audit_dp_sgd(
            play(seed, **run), accounted=(4.7, 1e-5), claim=lb.GaussianDP(), examples=KNOWN
        ).refuted_by
    )


@pytest.mark.validity
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("fails", [steps_fail, membership_fails, any_fails])
def test_correct_runs_are_seldom_refuted(fails: Callable[..., bool], stop: str) -> None:
    """600 games of each of ten such tests: at 5 % no more than 53 failures."""
    most = most_errors(600, LEVEL, 10)
    assert most <= 53
    assert sum(fails(seed, steps=30, stop=STOPS[stop]) for seed in range(600)) <= most
