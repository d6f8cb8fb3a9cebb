"""The step of an opacus optimizer stays the user's own: probing changes nothing, bit for bit."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import Tensor, nn

import leakbound as lb
from dp_step_models import NOISE, RIGHT, Case, mlp, probed, vectors
from leakbound.dp_sgd import Batch
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.integrations import opacus_step

WAYS = (
    *("hooks", "functorch", "ghost", "virtual steps", "per layer", "dropout", "convolution"),
    *("adaptive norm", "LSTM"),
)


def trained(case: Case, *, probe: bool) -> list[Any]:
    """Train for two epochs, with or without probes, and return all that training leaves."""
    examples = case.examples()
    torch.manual_seed(3)
    np.random.seed(4)  # noqa: NPY002 (what users draw from)
    model, optimizer, loss = case.private()
    counted = list[int]()
    optimizer.attach_step_hook(lambda _: counted.append(1))
    inner = optimizer.original_optimizer
    schedule = torch.optim.lr_scheduler.ExponentialLR(inner, 0.9)
    order = torch.Generator().manual_seed(5)
    for step in range(6):
        rows = torch.randperm(len(examples), generator=order)[:8].tolist()
        case.train_on(model, optimizer, loss, [examples[row] for row in rows])
        if probe and step in {1, 4}:
            with opacus_step(model, optimizer, loss, physical_batch_size=case.physical) as run:
                found = lb.probe_dp_step(
                    run, case.pairs[:4], noise_multiplier=NOISE, runs=8, steps=3, seed=step
                )
            assert found.refuted_by == ()
        schedule.step()
    tensors = [*model.state_dict().values(), torch.get_rng_state()]
    tensors += [p.grad for p in model.parameters() if p.grad is not None]
    left: list[Any] = [one.clone() for one in tensors]
    left.append(str(np.random.get_state()))  # noqa: NPY002 (what users draw from)
    names = [sorted(vars(one)) for one in (optimizer, inner, *model.modules())]
    queues = [sorted(vars(p)) for p in model.parameters()]
    plain = [str(getattr(optimizer, "max_grad_norm", None)), optimizer._step_skip_queue]
    return [*left, names, queues, plain, len(counted), optimizer._is_last_step_skipped]


@pytest.mark.parametrize("way", WAYS)
def test_training_with_probes_inside_is_training_without(way: str) -> None:
    expected, found = (trained(RIGHT[way], probe=probe) for probe in (False, True))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other) if torch.is_tensor(one) else one == other


def loss_of(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def optimizer_for(model: nn.Module, kind: Callable[..., Any] = DPOptimizer, **options: Any) -> Any:
    return kind(
        torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        expected_batch_size=8,
        **options,
    )


def test_an_error_in_the_block_puts_everything_back() -> None:
    model = GradSampleModule(mlp())
    optimizer = optimizer_for(model)
    before = sorted(vars(optimizer)), torch.get_rng_state()

    def wrong(_model: nn.Module, _batch: Any) -> Tensor:
        torch.rand(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), opacus_step(model, optimizer, wrong) as step:
        step(vectors()[:3], 1)
    assert sorted(vars(optimizer)) == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert "step" not in vars(optimizer.original_optimizer)
    assert all(p.grad is None for p in model.parameters())


def test_what_is_recorded_is_what_the_optimizer_would_be_given() -> None:
    """Clipped, summed, with noise, divided: the update of SGD is the learning rate times it."""
    model = GradSampleModule(mlp())
    optimizer = optimizer_for(model, generator=torch.Generator().manual_seed(7))
    examples = vectors()[:5]
    with opacus_step(model, optimizer, loss_of) as step:
        recorded = step(examples, None)
    before = [p.detach().clone() for p in model.parameters()]
    batch = torch.utils.data.default_collate(examples)
    loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    moved = zip(before, model.parameters(), strict=True)
    for (old, new), gradient in zip(moved, recorded.values(), strict=True):
        torch.testing.assert_close(old - 0.1 * torch.as_tensor(gradient), new.detach())


def _numbers(shape: Any) -> Any:
    return np.random.normal(size=shape)  # noqa: NPY002 (what users draw from)


class GlobalNoise(DPOptimizer):  # type: ignore[misc]
    """Takes its noise from PyTorch's global generator, and from NumPy's."""

    def add_noise(self) -> None:
        for p in self.params:
            torch_noise = torch.randn_like(p.summed_grad) / 2**0.5
            noise = torch.as_tensor(_numbers(p.shape), dtype=p.dtype) / 2**0.5
            p.grad = p.summed_grad + NOISE * (torch_noise + noise)


class Sampled(nn.Module):
    """Adds normal numbers in the forward pass, as a variational autoencoder does."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + 0.3 * torch.randn_like(inputs)


def test_noise_of_global_generators_is_seeded_and_that_of_layers_is_fixed() -> None:
    def network() -> nn.Module:
        first, bend, last = mlp().children()
        return nn.Sequential(first, Sampled(), bend, last)

    for case in (Case(optimizer=GlobalNoise), Case(optimizer=GlobalNoise, network=network)):
        with case.step() as step:
            audit = lb.probe_dp_step(step, case.pairs[20:30], noise_multiplier=NOISE, seed=0)
        assert audit.refuted_by == ()
        assert audit.bound > 0.8 / NOISE


class Turned(nn.Module):
    """Dropout on a tensor whose first dimension is not that of examples."""

    def forward(self, inputs: Tensor) -> Tensor:
        return nn.functional.dropout(inputs.T, 0.3, self.training).T


def test_dropout_that_cannot_be_fixed_is_refused() -> None:
    def network() -> nn.Module:
        first, bend, last = mlp().children()
        return nn.Sequential(first, Turned(), bend, last)

    with pytest.raises(OptionError, match=r"cannot be fixed for each example.*p = 0"):
        probed(Case(network=network, sweep=False), 0)


class Empty(nn.Module):
    """A layer that takes no empty batches."""

    def forward(self, inputs: Tensor) -> Tensor:
        if not len(inputs):
            raise RuntimeError("cannot reshape tensor of 0 elements")
        return inputs


def test_an_engine_that_takes_no_empty_batch_is_named() -> None:
    def network() -> nn.Module:
        return nn.Sequential(Empty(), mlp())

    with pytest.raises(InputError, match=r"fails on an empty batch.*empty=False"):
        probed(Case(network=network, sweep=False), 0)
    assert probed(Case(network=network, sweep=False, empty=False), 0).refuted_by == ()


class Adapting(nn.Module):
    """A loss whose clipping norm adapts in its backward pass."""

    clipbound_learning_rate = 0.2


def test_adaptive_clipping_inside_the_backward_pass_is_refused() -> None:
    with pytest.raises(OptionError, match="clipbound_learning_rate=0"):
        probed(Case(loss=lambda _m, _b: Adapting(), sweep=False), 0)


def test_what_is_no_step_of_opacus_is_refused() -> None:
    model = GradSampleModule(mlp())
    optimizer = optimizer_for(model)
    with pytest.raises(InputTypeError, match="must be an opacus DPOptimizer"):
        opacus_step(model, torch.optim.SGD(model.parameters(), lr=0.1), loss_of).__enter__()
    with pytest.raises(InputTypeError, match=r"must be a torch\.nn\.Module"):
        opacus_step(3, optimizer, loss_of).__enter__()  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match=r"must be a function of \(model, batch\)"):
        opacus_step(model, optimizer, 3).__enter__()  # type: ignore[arg-type]
    with (
        opacus_step(model, optimizer, loss_of) as step,
        pytest.raises(OptionError, match="the first batch is empty"),
    ):
        step([], 1)
    with pytest.raises(OptionError, match="has been left"):
        step(vectors()[:2], 1)


def test_a_probe_within_a_logical_batch_is_refused() -> None:
    model = GradSampleModule(mlp())
    optimizer = optimizer_for(model)
    optimizer.signal_skip_step(do_skip=True)
    loss_of(model, torch.utils.data.default_collate(vectors()[:3])).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    with pytest.raises(OptionError, match="within a logical batch"):
        opacus_step(model, optimizer, loss_of).__enter__()


def test_a_loss_factor_multiplies_the_loss_of_every_engine() -> None:
    """Small losses, whose gradients are not clipped, give gradients that grow with the factor."""
    for way in ("hooks", "ghost"):
        case = replace(RIGHT[way], norm=1e6)
        model, optimizer, loss = case.private()
        optimizer.noise_multiplier = 0.0
        with opacus_step(model, optimizer, loss) as step:
            one, two = (step(Batch(vectors()[:4], loss_factor=f), 1) for f in (1.0, 2.0))
        for name in one:
            torch.testing.assert_close(2 * torch.as_tensor(one[name]), torch.as_tensor(two[name]))


def test_a_layer_that_is_frozen_is_left_out() -> None:
    model = GradSampleModule(mlp())
    frozen = next(model.parameters())
    frozen.requires_grad_(requires_grad=False)
    with opacus_step(model, optimizer_for(model), loss_of) as step:
        assert len(step(vectors()[:3], 1)) == 3
    assert frozen.requires_grad is False


def test_virtual_steps_are_those_of_the_manager() -> None:
    """A step of the user's loop with BatchMemoryManager gives what the recorder gives."""
    examples = vectors()[:8]
    loader: Any = torch.utils.data.DataLoader(examples, batch_sampler=[list(range(8))])  # type: ignore[arg-type]
    model = GradSampleModule(mlp())
    optimizer = optimizer_for(model)
    optimizer.noise_multiplier = 0.0
    with opacus_step(model, optimizer, loss_of, physical_batch_size=3) as step:
        recorded = step(examples, 1)
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=3, optimizer=optimizer
    ) as parts:
        for batch in parts:
            optimizer.zero_grad()
            loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    for p, gradient in zip(model.parameters(), recorded.values(), strict=True):
        torch.testing.assert_close(p.grad, torch.as_tensor(gradient))


def test_a_watch_keeps_probes_and_does_not_count_their_steps() -> None:
    """Coins and canaries are those of a watch without probes, and so is what is released."""
    audits = []
    for probe in (True, False):
        model = GradSampleModule(mlp())
        optimizer = optimizer_for(model, generator=torch.Generator().manual_seed(7))
        examples = vectors()
        watch = lb.watch_dp_sgd(
            optimizer, canaries=20, step_canaries=20, sampling_rate=0.2, max_steps=3, seed=0
        )
        pairs = [(examples[:8], examples[:9])]
        with watch:
            for part in range(3):
                if probe and part != 1:
                    with opacus_step(model, optimizer, loss_of) as step:
                        watch.probe(step, pairs, runs=8, steps=2, seed=part)
                optimizer.zero_grad()
                batch = torch.utils.data.default_collate(examples[8 * part : 8 * part + 8])
                loss_of(model, batch).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        audits.append(watch.audit())
    assert [one.stated_noise_multiplier for one in audits[0].probes] == [NOISE, NOISE]
    assert audits[1].probes == ()
    assert replace(audits[0], probes=()) == audits[1]
    assert lb.DPSGDAudit.from_json(audits[0].to_json()) == audits[0]
    assert "Probe of the step: " in str(audits[0])
    with pytest.raises(OptionError, match="within the block"):
        watch.probe(lambda *_: {}, [])
