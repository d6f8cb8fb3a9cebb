"""Canaries ride on the user's own code, change nothing of it, and leave without a trace."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.utils.data import DataLoader

import leakbound as lb
from leakbound.integrations import accounted_by
from leakbound.integrations.opacus import PARAMETERS
from private_training import (
    DATA,
    FEW,
    NORM,
    QUIET,
    STEPS,
    N,
    batches,
    loop,
    network,
    optimizer_of,
    train,
    watched,
)  # fmt: skip

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flat": ({}, {}),
    "sum, not mean": ({"reduction": "sum"}, {}),
    "per layer": ({"per_layer": True}, {}),
    "Adam": ({"kind": torch.optim.Adam}, {}),
    "groups": ({"groups": True}, {}),
    "virtual batches, per layer, Adam": (
        {"per_layer": True, "kind": torch.optim.Adam},
        {"virtual": 4},
    ),
    "accumulated": ({}, {"accumulate": 2}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_canary_is_seen_once_in_each_logical_step_that_it_is_in(way: str) -> None:
    """Without noise the released value is the coin: clipped at C, summed once, rightly scaled.

    Neither norms, nor divisor, nor the order of steps change: weights agree to rounding.
    """
    options, how = WAYS[way]
    model, alone = network(), network()
    optimizer = optimizer_of(model, noise=QUIET, **options)
    seen = watched(model, optimizer, **how).observed
    train(alone, optimizer_of(alone, noise=QUIET, **options), **how)
    # Adam divides by roots of second moments near 0, where the noise itself is felt.
    for weights, expected in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(weights, expected, rtol=1e-3, atol=1e-4)
    assert seen.steps == STEPS
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-5)
    members = seen.design.member()
    assert (seen.log_odds[members] > 1).all()
    assert (seen.log_odds[~members] < 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_the_noise_is_that_of_the_optimizer(way: str) -> None:
    options, how = WAYS[way]
    model = network()
    seen = watched(model, optimizer_of(model, **options), **how).observed
    noise = seen.released - seen.design.step_coins()
    # 1,440 normal numbers: five standard errors either way
    assert abs(noise.mean()) < 5 * 0.9 / np.sqrt(noise.size)
    assert abs(noise.std() / 0.9 - 1) < 5 / np.sqrt(2 * noise.size)
    squares = seen.squares.sum() / (STEPS * seen.design.size)
    assert abs(squares / 0.81 - 1) < 5 * np.sqrt(2 / (STEPS * seen.design.size))
    assert (seen.noise_multipliers == 0.9).all()


@pytest.mark.parametrize("virtual", [None, 4])
def test_sizes_of_batches_are_those_of_the_users_own_examples(virtual: int | None) -> None:
    model = network()
    seen = watched(model, optimizer_of(model), virtual=virtual).observed
    assert seen.batch_sizes.tolist() == [len(batch) for batch in batches()]


def test_an_empty_batch_is_a_step_like_any_other() -> None:
    model = network()
    optimizer = optimizer_of(model, noise=QUIET)
    rows: list[list[int]] = [[0, 1], [], [2]]
    with lb.watch_dp_sgd(optimizer, **FEW | {"max_steps": 3}, seed=1) as watch:
        list(loop(model, optimizer, [DATA[some] for some in rows]))
    seen = watch.observed
    assert seen.batch_sizes.tolist() == [2, 0, 1]
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-5)


def private(batch: int, accountant: str = "prv") -> tuple[PrivacyEngine, Any, Any, Any]:
    """An engine, and a model, its optimizer and its loader as the engine makes them private."""
    torch.manual_seed(0)
    engine, model = PrivacyEngine(accountant=accountant), nn.Linear(5, 3)
    return engine, *engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(DATA, batch_size=batch),
        noise_multiplier=1.1,
        max_grad_norm=NORM,
    )


def test_the_accountant_counts_as_without_canaries() -> None:
    engine, model, optimizer, loader = private(15, "rdp")
    with lb.watch_dp_sgd(optimizer, **FEW | {"max_steps": 4}, seed=1) as watch:
        list(loop(model, optimizer, loader))
    assert watch.observed.steps == 4
    accounted = accounted_by(engine, delta=1e-5)
    assert (accounted.sampling_rate, accounted.steps, accounted.noise_multiplier) == (0.25, 4, 1.1)
    assert accounted.epsilon == engine.get_epsilon(1e-5)
    assert accounted.source == "opacus rdp"


@pytest.mark.parametrize("examples", ["known", "inferred"])
def test_a_run_on_all_examples_is_not_refuted(examples: str) -> None:
    """At q = 1 batches never vary, whether N is passed, here as a loader, or inferred."""
    _, model, optimizer, loader = private(N)
    options = FEW | {"sampling_rate": loader.sample_rate, "max_steps": 20}
    passed = loader if examples == "known" else None
    with lb.watch_dp_sgd(optimizer, **options, examples=passed, seed=1) as watch:
        for _ in range(20):
            list(loop(model, optimizer, loader))
    audit = watch.audit(claim=lb.GaussianDP())
    assert watch.observed.batch_sizes.tolist() == [N] * 20
    assert audit.refuted_by == ()
    assert audit.sampling.p_value == 1.0
    assert bool(audit.sampling.limits) == (examples == "known")


def test_every_layer_clipped_at_the_whole_norm_shows() -> None:
    """A canary is spread over several parameters, so that it grows by the root of their number."""

    class EachAtC(DPOptimizer):  # type: ignore[misc]
        def clip_and_accumulate(self) -> None:
            for p in self.params:
                rows = p.grad_sample
                factor = (self.max_grad_norm / (rows.flatten(1).norm(dim=1) + 1e-6)).clamp(max=1.0)
                p.summed_grad = torch.einsum("i,i...", factor, rows)

    model = network()
    seen = watched(model, optimizer_of(model, noise=QUIET, private=EachAtC)).observed
    expected = np.sqrt(PARAMETERS) * seen.design.step_coins()
    np.testing.assert_allclose(seen.released, expected, atol=1e-5)


def test_noise_that_repeats_from_parameter_to_parameter_cancels() -> None:
    class Same(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            state = self.generator.get_state()
            for p in self.params:
                self.generator.set_state(state)
                p.grad = p.summed_grad + torch.normal(
                    0.0, 2.0 * NORM, p.shape, generator=self.generator
                )

    model = network()
    seen = watched(model, optimizer_of(model, noise=2.0, private=Same)).observed
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-4)


@pytest.mark.parametrize("way", ["Adam", "per layer", "groups"])
def test_the_optimizer_is_left_as_it_was(way: str) -> None:
    options, _ = WAYS[way]
    model = network()
    optimizer = optimizer_of(model, **options)
    before = [list(map(id, group["params"])) for group in optimizer.param_groups]
    names = set(vars(optimizer)) - {"_hook_for_profile"}
    norms = getattr(optimizer, "max_grad_norms", None)
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1):
        train(model, optimizer)
        assert len(optimizer.params) == 4  # those of the watcher are there during a step only
    assert [list(map(id, group["params"])) for group in optimizer.param_groups] == before
    assert set(vars(optimizer)) == names
    assert getattr(optimizer, "max_grad_norms", None) == norms
    assert set(optimizer.state) <= set(model.parameters())
    train(model, optimizer, steps=2)
    assert watched(model, optimizer, seed=2).observed.steps == STEPS


def test_an_error_in_the_block_takes_the_canaries_out_and_leaves_an_audit() -> None:
    model = network()
    optimizer = optimizer_of(model)
    watch = lb.watch_dp_sgd(optimizer, **FEW, seed=1)

    def interrupted() -> None:
        train(model, optimizer, steps=3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watch:
        interrupted()
    assert len(optimizer.params) == 4
    audit = watch.audit(claim=lb.GaussianDP())
    assert audit.steps.steps == 3
    assert "ended after 3 of the 24 steps" in audit.warnings[0]


def test_steps_beyond_those_declared_are_trained_and_not_watched() -> None:
    model = network()
    watch = watched(model, optimizer_of(model), changes={"max_steps": 5}, steps=8)
    assert (watch.observed.steps, watch.observed.steps_beyond) == (5, 3)
    assert watch.observed.batch_sizes.size == 5
    assert "only the first 5 steps" in " ".join(watch.audit(claim=lb.GaussianDP()).warnings)


def test_layers_may_be_frozen_and_thawed_while_a_run_is_watched() -> None:
    model = network()
    optimizer = optimizer_of(model, noise=QUIET)
    first = next(iter(model.parameters()))
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        for trained in (True, False, True):
            first.requires_grad_(trained)
            before = first.detach().clone()
            train(model, optimizer, steps=4)
            assert trained != torch.equal(first, before)
    seen = watch.observed
    np.testing.assert_allclose(seen.released, seen.design.step_coins()[:12], atol=1e-5)


@pytest.mark.parametrize("dtypes", [(torch.bfloat16, torch.float32), (torch.float64,) * 2])
def test_the_parameters_of_a_model_may_be_of_any_precision(
    dtypes: tuple[torch.dtype, torch.dtype],
) -> None:
    """Canaries are read from parameters of the watcher, which are never of half precision."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(5, 4, dtype=dtypes[0])
            self.last = nn.Linear(4, 3, dtype=dtypes[1])

        def forward(self, inputs: Tensor) -> Tensor:
            hidden = self.first(inputs.to(dtypes[0])).to(dtypes[1])
            return self.last(hidden).float()  # type: ignore[no-any-return]

    model = GradSampleModule(Mixed())
    seen = watched(model, optimizer_of(model, noise=QUIET), steps=4).observed
    np.testing.assert_allclose(seen.released, seen.design.step_coins()[:4], atol=1e-5)


def test_coins_come_from_streams_of_their_own() -> None:
    """Neither do they depend on the generators that training draws from, nor these on them."""
    found = []
    for torch_seed in (0, 1):
        model = network(torch_seed)
        optimizer = optimizer_of(model, noise=QUIET)
        torch.manual_seed(torch_seed)
        state = torch.get_rng_state()
        with lb.watch_dp_sgd(optimizer, **FEW, seed=7) as watch:
            assert torch.equal(torch.get_rng_state(), state)
            train(model, optimizer)
        found.append(watch.observed)
    assert np.array_equal(found[0].design.step_coins(), found[1].design.step_coins())
    np.testing.assert_allclose(found[0].log_odds, found[1].log_odds, rtol=1e-4)
    other = lb.watch_dp_sgd(optimizer_of(network()), **FEW, seed=8)._design
    assert not np.array_equal(found[0].design.member(), other.member())
    plan = lb.InclusionPlan.create(80, seed=7)
    assert not np.array_equal(found[0].design.member(), plan.member)


DISTRIBUTED = """
import sys, torch, numpy as np, leakbound as lb
from opacus import GradSampleModule
from opacus.optimizers import DistributedDPOptimizer
from torch import nn
rank = int(sys.argv[1])
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2
)
torch.manual_seed(0)
model = GradSampleModule(nn.Linear(5, 3))
optimizer = DistributedDPOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1),
    noise_multiplier=1e-9, max_grad_norm=1.7, expected_batch_size=4,
)
with lb.watch_dp_sgd(
    optimizer, canaries=40, step_canaries=30, sampling_rate=0.25, max_steps=5, seed=1
) as watch:
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(4, 5)).square().sum().backward()
        optimizer.step()
seen = watch.observed
if rank == 0:
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-5)
print(seen.steps)
"""


@pytest.mark.validity  # two processes that each load PyTorch
def test_in_distributed_training_canaries_ride_on_the_first_process(tmp_path: Any) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DISTRIBUTED, str(rank), str(tmp_path / "meet")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for rank in (0, 1)
    ]
    for process, steps in zip(processes, ("5", "0"), strict=True):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.strip() == steps
