"""Targets that never saw the members audited: a run must find nothing, as often as promised."""

from dataclasses import replace

import numpy as np
import pytest

import leakbound as lb
from census import Census, features
from leakbound import stats
from leakbound.panoramia import Helper, Options, run
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.models.target import train
from memory import mlp, people

KNOWN = 300
"""Members of the generator: the target knows them, and so what real examples look like."""
NOMINAL = 0.05
ERROR = 1e-4
"""Probability that a valid audit fails its test."""


def trial(seed: int, options: Options) -> tuple[lb.PanoramiaResult, lb.PanoramiaResult]:
    """Audit a network that saw the generator's members only; return both results.

    One is with a generator, and one without.
    """
    x, y = people(2000, seed)
    members, others = ((x[part], y[part]) for part in (slice(1000), slice(1000, None)))
    known = Examples(members[0][:KNOWN], members[1][:KNOWN])
    target = train(Helper(network=mlp, epochs=5), mlp(), known, features, seed, lambda _: None)
    found = run(
        target,
        members,
        Census(),
        nonmembers=others,
        generator_ids=np.arange(KNOWN),
        options=replace(options, seeds=(seed,)),
    )
    one, two = (found.row("target", kind).results[0] for kind in ("PANORAMIA", "RM;RN"))
    assert isinstance(one, lb.PanoramiaResult)
    assert isinstance(two, lb.PanoramiaResult)
    return one, two


def check(trials: int, options: Options) -> None:
    """Count false bounds of the attack and of the baseline, and judge them exactly.

    With the process itself as the generator c = 0, and no member was seen: ε = 0. Each bound
    exceeds the truth with probability at most half of the nominal error, and that against real
    non-members, where c is known, at most the nominal error.
    """
    results = [pair for seed in range(trials) for pair in trial(seed, options)]
    for bounds, level in (
        ([result.attack.bound for result in results[::2]], NOMINAL / 2),
        ([result.baseline.bound for result in results[::2]], NOMINAL / 2),
        ([result.attack.bound for result in results[1::2]], NOMINAL),
    ):
        false = int(np.count_nonzero(np.array(bounds) > 0))
        assert stats.binomial_tail(false, trials, level) > ERROR, f"{false} of {trials}"


ALONE = Options(inputs=features, helper=None, saturation=(), seeds=(0,))
HELPED = replace(
    ALONE, helper=[Helper(one, network=mlp, epochs=5) for one in ("generated", "members")]
)


@pytest.mark.validity
@pytest.mark.parametrize(("options", "trials"), [(ALONE, 300), (HELPED, 60)])
def test_a_target_that_never_saw_its_members(options: Options, trials: int) -> None:
    check(trials, options)
