"""Canaries ride on the user's own code, change nothing of it, and leave without a trace."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.optimizers import (
    AdaClipDPOptimizer,
    DPOptimizer,
    DPOptimizerFastGradientClipping,
    DPPerLayerOptimizer,
)
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import leakbound as lb
from leakbound import errors
from leakbound.integrations import accounted_by
from leakbound.integrations import opacus as room
from leakbound.integrations.opacus import PARAMETERS

N, RATE, STEPS, NORM = 60, 0.25, 24, 1.7
FEW: dict[str, Any] = {
    "canaries": 80,
    "step_canaries": 60,
    "sampling_rate": RATE,
    "max_steps": STEPS,
}
QUIET = 1e-9
"""A noise multiplier so small that what is released is the sum of clipped gradients."""


def network(seed: int = 0) -> GradSampleModule:
    torch.manual_seed(seed)
    return GradSampleModule(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))


def optimizer_of(
    model: nn.Module,
    *,
    noise: float = 0.9,
    kind: Callable[..., Any] = torch.optim.SGD,
    per_layer: bool = False,
    groups: bool = False,
    reduction: str = "mean",
    **options: Any,
) -> DPOptimizer:
    parameters = list(model.parameters())
    given: Any = (
        [{"params": parameters[:2], "lr": 0.2}, {"params": parameters[2:]}]
        if groups
        else parameters
    )
    generator = torch.Generator().manual_seed(3)
    kept = {
        "noise_multiplier": noise,
        "expected_batch_size": int(N * RATE),
        "generator": generator,
        "loss_reduction": reduction,
    }
    inner = kind(given, lr=0.1, **options)
    if per_layer:
        norms = [NORM * share for share in (0.1, 0.5, 0.5, 0.7)]
        return DPPerLayerOptimizer(inner, max_grad_norm=norms, **kept)
    return DPOptimizer(inner, max_grad_norm=NORM, **kept)


DATA = TensorDataset(
    torch.randn(N, 5, generator=torch.Generator().manual_seed(5)),
    torch.randint(3, (N,), generator=torch.Generator().manual_seed(6)),
)


class Batches:
    """Poisson batches that differ from run to run only by their seed."""

    def __init__(self, steps: int = STEPS, seed: int = 0) -> None:
        self.steps, self.seed = steps, seed

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng(self.seed)
        for _ in range(self.steps):
            yield np.flatnonzero(rng.random(N) < RATE).tolist()

    def __len__(self) -> int:
        return self.steps


def loss_of(model: nn.Module, batch: Any) -> Tensor:
    inputs, targets = batch
    return nn.functional.cross_entropy(model(inputs), targets)


def train(
    model: nn.Module,
    optimizer: DPOptimizer,
    *,
    steps: int = STEPS,
    virtual: int | None = None,
    accumulate: int = 1,
    each: Callable[[], object] = lambda: None,
) -> None:
    loader = DataLoader(DATA, batch_sampler=Batches(steps * accumulate))

    def loop(batches: Any) -> None:
        optimizer.zero_grad()
        for count, batch in enumerate(batches, start=1):
            torch.autograd.backward(loss_of(model, batch))
            if count % accumulate == 0:
                optimizer.step()
                each()
                optimizer.zero_grad()

    if virtual is None:
        loop(loader)
    else:
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=virtual, optimizer=optimizer
        ) as parts:
            loop(parts)


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
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        train(model, optimizer, **how)
    train(alone, optimizer_of(alone, noise=QUIET, **options), **how)
    # Adam divides by roots of second moments near 0, where the noise itself is felt.
    for weights, expected in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(weights, expected, rtol=1e-3, atol=1e-4)
    seen = watch.observed
    assert seen.steps == STEPS
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-5)
    members = seen.design.member()
    assert (seen.log_odds[members] > 1).all()
    assert (seen.log_odds[~members] < 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_the_noise_is_that_of_the_optimizer(way: str) -> None:
    options, how = WAYS[way]
    model = network()
    optimizer = optimizer_of(model, **options)
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        train(model, optimizer, **how)
    seen = watch.observed
    noise = seen.released - seen.design.step_coins()
    # 1,440 normal numbers: five standard errors either way
    assert abs(noise.mean()) < 5 * 0.9 / np.sqrt(noise.size)
    assert abs(noise.std() / 0.9 - 1) < 5 / np.sqrt(2 * noise.size)
    assert (seen.noise_multipliers == 0.9).all()


def test_sizes_of_batches_are_those_of_the_users_own_examples() -> None:
    expected = [len(batch) for batch in Batches()]
    for virtual in (None, 4):
        model = network()
        optimizer = optimizer_of(model)
        with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
            train(model, optimizer, virtual=virtual)
        assert watch.observed.batch_sizes.tolist() == expected


def test_an_empty_batch_is_a_step_like_any_other() -> None:
    class Empty(Batches):
        def __iter__(self) -> Iterator[list[int]]:
            yield from ([0, 1], [], [2])

    class Loader:
        def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
            yield from (DATA[rows] for rows in Empty())

    model = network()
    optimizer = optimizer_of(model, noise=QUIET)
    with lb.watch_dp_sgd(optimizer, **FEW | {"max_steps": 3}, seed=1) as watch:
        for batch in Loader():
            optimizer.zero_grad()
            torch.autograd.backward(loss_of(model, batch))
            optimizer.step()
    seen = watch.observed
    assert seen.batch_sizes.tolist() == [2, 0, 1]
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-5)


def test_the_accountant_counts_as_without_canaries() -> None:
    engine = PrivacyEngine(accountant="rdp")
    torch.manual_seed(0)
    model: Any = nn.Linear(5, 3)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(DATA, batch_size=15),
        noise_multiplier=1.1,
        max_grad_norm=NORM,
    )
    with lb.watch_dp_sgd(optimizer, **FEW | {"max_steps": 4}, seed=1) as watch:
        for batch in loader:
            optimizer.zero_grad()
            torch.autograd.backward(loss_of(model, batch))
            optimizer.step()
    assert watch.observed.steps == 4
    accounted = accounted_by(engine, delta=1e-5)
    assert (accounted.sampling_rate, accounted.steps, accounted.noise_multiplier) == (0.25, 4, 1.1)
    assert accounted.epsilon == engine.get_epsilon(1e-5)
    assert accounted.source == "opacus rdp"


@pytest.mark.parametrize("examples", ["known", "inferred"])
def test_a_run_on_all_examples_is_not_refuted(examples: str) -> None:
    """At q = 1 batches never vary, whether N is passed, here as a loader, or inferred."""
    torch.manual_seed(0)
    model: Any = nn.Linear(5, 3)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(DATA, batch_size=N),
        noise_multiplier=1.1,
        max_grad_norm=NORM,
    )
    options = FEW | {"sampling_rate": loader.sample_rate, "max_steps": 20}
    given = loader if examples == "known" else None
    with lb.watch_dp_sgd(optimizer, **options, examples=given, seed=1) as watch:
        for _ in range(20):
            for batch in loader:
                optimizer.zero_grad()
                torch.autograd.backward(loss_of(model, batch))
                optimizer.step()
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
    optimizer = EachAtC(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=QUIET,
        max_grad_norm=NORM,
        expected_batch_size=15,
    )
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        train(model, optimizer)
    seen = watch.observed
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
    optimizer = Same(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=2.0,
        max_grad_norm=NORM,
        expected_batch_size=15,
        generator=torch.Generator().manual_seed(0),
    )
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        train(model, optimizer)
    seen = watch.observed
    np.testing.assert_allclose(seen.released, seen.design.step_coins(), atol=1e-4)


# --- what is left behind --------------------------------------------------------------------------


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
        assert len(optimizer.params) == 4 + PARAMETERS
    assert [list(map(id, group["params"])) for group in optimizer.param_groups] == before
    assert set(vars(optimizer)) == names
    assert getattr(optimizer, "max_grad_norms", None) == norms
    assert set(optimizer.state) <= set(model.parameters())
    train(model, optimizer, steps=2)
    with lb.watch_dp_sgd(optimizer, **FEW, seed=2) as again:
        train(model, optimizer)
    assert again.observed.steps == STEPS


def test_an_error_in_the_block_takes_the_canaries_out_and_leaves_an_audit() -> None:
    model = network()
    optimizer = optimizer_of(model)
    watch = lb.watch_dp_sgd(optimizer, **FEW, seed=1)

    def fail() -> None:
        message = "stop"
        if watch._watched is not None and watch._watched.recorder.steps == 3:
            raise KeyboardInterrupt(message)

    with pytest.raises(KeyboardInterrupt), watch:
        train(model, optimizer, each=fail)
    assert len(optimizer.params) == 4
    audit = watch.audit(claim=lb.GaussianDP())
    assert audit.steps.steps == 3
    assert "ended after 3 of the 24 steps" in audit.warnings[0]


def test_steps_beyond_those_declared_are_trained_and_not_watched() -> None:
    model = network()
    optimizer = optimizer_of(model)
    with lb.watch_dp_sgd(optimizer, **FEW | {"max_steps": 5}, seed=1) as watch:
        train(model, optimizer, steps=8)
    assert (watch.observed.steps, watch.observed.steps_beyond) == (5, 3)
    assert watch.observed.batch_sizes.size == 5
    assert "3 steps after the 5 declared" in " ".join(watch.audit(claim=lb.GaussianDP()).warnings)


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
    optimizer = optimizer_of(model, noise=QUIET)
    with lb.watch_dp_sgd(optimizer, **FEW, seed=1) as watch:
        train(model, optimizer, steps=4)
    seen = watch.observed
    np.testing.assert_allclose(seen.released, seen.design.step_coins()[:4], atol=1e-5)


# --- coins ----------------------------------------------------------------------------------------


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


# --- refusals -------------------------------------------------------------------------------------


def adaptive(model: nn.Module) -> DPOptimizer:
    return AdaClipDPOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.0,
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.1,
        max_clipbound=10.0,
        min_clipbound=0.1,
        unclipped_num_std=1.0,
        max_grad_norm=1.0,
        expected_batch_size=4,
    )


REFUSED: dict[str, tuple[Callable[[nn.Module], Any], type[Exception], str]] = {
    "torch's own": (
        lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
        errors.InputTypeError,
        "must be an opacus DPOptimizer",
    ),
    "ghost clipping": (
        lambda m: DPOptimizerFastGradientClipping(
            torch.optim.SGD(m.parameters(), lr=0.1),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            expected_batch_size=4,
        ),
        errors.InputTypeError,
        "inside the backward pass",
    ),
    "adaptive clipping": (adaptive, errors.InputTypeError, "clipping norm follows the data"),
    "no noise": (
        lambda m: optimizer_of(m, noise=0.0),
        errors.OptionError,
        "claims no privacy",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_optimizers_that_cannot_be_watched(case: str) -> None:
    make, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        lb.watch_dp_sgd(make(network()), **FEW)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"canaries": 1}, "canaries must be at least 2"),
        (
            {"sampling_rate": 60},
            "above 0 and at most 1, got 60: .* divide the mean size of a batch by the number of",
        ),
        ({"max_steps": 10**7}, "max_steps must be at least 1 and at most 1000000"),
        ({"examples": 14}, r"examples is 14, and the optimizer expects batches of 15: pass the"),
        (
            {"max_steps": 10**6, "step_canaries": 101},
            "101,000,000 coins, more than the 100,000,000 .* at most 100 step canaries",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.OptionError, match=words):
        lb.watch_dp_sgd(optimizer_of(network()), **FEW | options)


def test_more_canaries_than_memory_allows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_free", lambda _: 100_000)
    optimizer = optimizer_of(network())
    with pytest.raises(errors.DeviceMemoryError, match=r"rows of canaries .*take fewer canaries"):
        lb.watch_dp_sgd(optimizer, **FEW | {"canaries": 8_000, "step_canaries": 600}).__enter__()
    assert len(optimizer.params) == 4
    with lb.watch_dp_sgd(optimizer, **FEW | {"canaries": 2, "step_canaries": 2}):
        pass


def test_a_watch_is_for_one_run() -> None:
    model = network()
    optimizer = optimizer_of(model)
    watch = lb.watch_dp_sgd(optimizer, **FEW, seed=1)
    with pytest.raises(errors.OptionError, match="has not been entered"):
        watch.audit()
    with watch:
        with pytest.raises(errors.OptionError, match="has not been left"):
            watch.audit()
        with pytest.raises(errors.OptionError, match="being watched already"):
            lb.watch_dp_sgd(optimizer, **FEW)
        with pytest.raises(errors.OptionError, match="has been used"):
            watch.__enter__()
    with pytest.raises(errors.AbstentionError, match="no step was watched"):
        watch.audit()
    with pytest.raises(errors.OptionError, match="has been used"), watch:
        pass


def test_within_a_logical_batch_no_watch_begins() -> None:
    model = network()
    optimizer = optimizer_of(model)
    optimizer.signal_skip_step(do_skip=True)
    torch.autograd.backward(loss_of(model, DATA[[0, 1]]))
    optimizer.step()
    with pytest.raises(errors.OptionError, match="within a logical batch"):
        lb.watch_dp_sgd(optimizer, **FEW)


def test_an_optimizer_that_goes_round_pre_step_is_refused_at_its_first_step() -> None:
    class Round(DPOptimizer):  # type: ignore[misc]
        def step(self, _closure: Any = None) -> Any:
            return self.original_optimizer.step()

    model = network()
    optimizer = Round(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=4,
    )
    with (
        pytest.raises(errors.OptionError, match="without pre_step"),
        lb.watch_dp_sgd(optimizer, **FEW),
    ):
        train(model, optimizer)


def test_a_gradient_that_is_not_finite_is_named() -> None:
    model = network()
    optimizer = optimizer_of(model)
    inputs, targets = DATA[[0, 1, 2]]
    inputs[1, 0] = torch.nan
    with lb.watch_dp_sgd(optimizer, **FEW):
        torch.autograd.backward(loss_of(model, (inputs, targets)))
        with pytest.raises(errors.InputError, match="released at step 1 is not finite"):
            optimizer.step()


def test_accounted_by_takes_engines_only_that_counted_something() -> None:
    with pytest.raises(errors.InputTypeError, match="must be an opacus PrivacyEngine"):
        accounted_by(nn.Linear(1, 1), delta=1e-5)
    with pytest.raises(errors.AbstentionError, match="has counted no step"):
        accounted_by(PrivacyEngine(), delta=1e-5)


# --- several processes ----------------------------------------------------------------------------

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
