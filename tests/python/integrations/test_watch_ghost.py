"""Ghost clipping is watched where a probe vouches for the step, and refused elsewhere."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import leakbound as lb
from dp_step_models import NOISE, RIGHT, Case
from leakbound.errors import InputTypeError, OptionError
from leakbound.integrations import opacus_step
from leakbound.results import DPSGDAudit
from leakbound.results.dp_step import DPStepAudit

STEPS = 16
FEW: dict[str, Any] = {"canaries": 60, "step_canaries": 120, "sampling_rate": 0.2}
WAYS = ("ghost", "ghost, virtual steps")


@cache
def made(way: str) -> tuple[Case, Any, Any, Any, DPStepAudit]:
    """A case, its model, optimizer and loss, and a probe of its step."""
    case = replace(RIGHT[way], sweep=False)
    model, optimizer, loss = case.private()
    with opacus_step(model, optimizer, loss, physical_batch_size=case.physical) as step:
        probe = lb.probe_dp_step(step, case.pairs, noise_multiplier=NOISE, seed=0)
    return case, model, optimizer, loss, probe


def train(way: str, **options: Any) -> Any:
    """Train in the block of a watch, on batches of 9 examples, and one that is empty."""
    case, model, optimizer, loss, probe = made(way)
    examples = case.examples()
    with lb.watch_dp_sgd(
        optimizer, **FEW, max_steps=STEPS, seed=1, probe=probe, **options
    ) as watch:
        for step in range(STEPS):
            rows = [(step + place) % len(examples) for place in range(9)]
            case.train_on(model, optimizer, loss, [examples[row] for row in rows])
    return watch


@pytest.mark.parametrize("way", WAYS)
def test_canaries_are_in_the_clipped_sum_at_the_clipping_norm(way: str) -> None:
    seen = train(way).observed
    assert seen.steps == STEPS
    assert (seen.batch_sizes == 9).all()
    noise = seen.released - seen.design.step_coins()
    coins = seen.design.step_coins()
    # normal numbers: five standard errors either way, of those with heads and of all
    assert abs(noise.mean()) < 5 * NOISE / np.sqrt(noise.size)
    assert abs(noise[coins].mean()) < 5 * NOISE / np.sqrt(coins.sum())
    assert abs(noise.std() / NOISE - 1) < 5 / np.sqrt(2 * noise.size)


def test_an_audit_says_what_the_probe_vouches_for() -> None:
    audit = train("ghost", sampling="epochs", relation="zero_out").audit()
    assert audit.probes == (made("ghost")[-1],)
    assert audit.options["clipping"] == "probed"
    assert "steps" not in audit.refuted_by
    assert "canaries were added after" in str(audit.summary())
    assert DPSGDAudit.from_json(audit.to_json()) == audit


def test_without_a_probe_that_shows_no_fault_it_is_refused() -> None:
    _, _, optimizer, _, probe = made("ghost")
    few = FEW | {"max_steps": STEPS}
    with pytest.raises(InputTypeError, match="or probe the step first"):
        lb.watch_dp_sgd(optimizer, **few)
    wrong = replace(probe, refuted_by=("coupling",))
    with pytest.raises(OptionError, match="the probe of the step is refuted"):
        lb.watch_dp_sgd(optimizer, **few, probe=wrong)
    short = replace(probe, pairs=tuple(replace(one, length=0.0) for one in probe.pairs), bound=0.0)
    with pytest.raises(OptionError, match="the probe of the step is inconclusive"):
        lb.watch_dp_sgd(optimizer, **few, probe=short)
    with pytest.raises(InputTypeError, match="probe must be a DPStepAudit"):
        lb.watch_dp_sgd(optimizer, **few, probe=0.5)  # type: ignore[arg-type]
    stated = optimizer.noise_multiplier
    optimizer.noise_multiplier = 2 * NOISE
    with pytest.raises(OptionError, match="the probe of the step is refuted"):
        lb.watch_dp_sgd(optimizer, **few, probe=probe)
    optimizer.noise_multiplier = stated
    assert torch.is_tensor(optimizer.params[0])


def test_a_norm_that_adapts_is_refused_whatever_a_probe_says() -> None:
    _, optimizer, _ = replace(RIGHT["adaptive norm"], sweep=False).private()
    with pytest.raises(InputTypeError, match="norm that follows the data"):
        lb.watch_dp_sgd(optimizer, **FEW, max_steps=STEPS, probe=made("ghost")[-1])
