"""What is saved, copied and scheduled while a run is watched is what it is without a watch."""

import copy
import io
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import DPOptimizer
from torch import nn
from torch.utils.data import DataLoader

import leakbound as lb
from private_training import DATA, FEW, NORM, QUIET, STEPS, network, optimizer_of, train

KINDS: dict[str, Callable[..., Any]] = {
    "SGD": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "Adam": torch.optim.Adam,
    "Adagrad": torch.optim.Adagrad,  # which has a state for each parameter from the beginning
}
OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"kind": kind} for name, kind in KINDS.items()},
    "groups": {"groups": True, "kind": torch.optim.Adam},
    "per layer": {"per_layer": True, "kind": torch.optim.Adam},
}


def watch(optimizer: DPOptimizer, *, watched: bool) -> Any:
    return lb.watch_dp_sgd(optimizer, **FEW, seed=1) if watched else nullcontext()


def same(one: Any, other: Any) -> None:
    """Check that two state dictionaries agree: numbers to rounding, all else exactly."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        pairs = [(one[name], other[name]) for name in one]
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        pairs = list(zip(one, other, strict=True))
    else:
        numbers = isinstance(one, torch.Tensor)
        if numbers:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        assert numbers or one == other
        return
    for left, right in pairs:
        same(left, right)


@pytest.mark.parametrize("way", OPTIONS)
def test_a_checkpoint_is_that_of_the_run_without_a_watch(way: str) -> None:
    model, alone = network(), network()
    optimizer = optimizer_of(model, noise=QUIET, **OPTIONS[way])
    other = optimizer_of(alone, noise=QUIET, **OPTIONS[way])
    with watch(optimizer, watched=True):
        train(model, optimizer, steps=4)
        within = copy.deepcopy(optimizer.state_dict())
        wrapped = copy.deepcopy(optimizer.original_optimizer.state_dict())
    train(alone, other, steps=4)
    same(within, other.state_dict())
    same(wrapped, other.state_dict())
    same(optimizer.state_dict(), other.state_dict())
    same(model.state_dict(), alone.state_dict())


@pytest.mark.parametrize("way", OPTIONS)
@pytest.mark.parametrize("loading", [True, False])
@pytest.mark.parametrize("saving", [True, False])
def test_a_checkpoint_loads_inside_and_outside(way: str, *, saving: bool, loading: bool) -> None:
    model = network()
    optimizer = optimizer_of(model, noise=QUIET, **OPTIONS[way])
    with watch(optimizer, watched=saving):
        train(model, optimizer, steps=4)
        file = io.BytesIO()
        torch.save([model.state_dict(), optimizer.state_dict()], file)
        train(model, optimizer, steps=4)
    weights, state = torch.load(io.BytesIO(file.getvalue()))
    again = network(seed=7)
    resumed = optimizer_of(again, noise=QUIET, **OPTIONS[way])
    with watch(resumed, watched=loading) as seen:
        train(again, resumed, steps=1)
        again.load_state_dict(weights)
        resumed.load_state_dict(state)
        train(again, resumed, steps=4)
    same(again.state_dict(), model.state_dict())
    if loading:  # canaries go on where they were
        observed = seen.observed
        assert observed.steps == 5
        np.testing.assert_allclose(observed.released, observed.design.step_coins()[:5], atol=1e-5)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_the_wrapped_optimizer_have_its_own_parameters(copied: Any) -> None:
    model = network()
    optimizer = optimizer_of(model, kind=torch.optim.Adam)
    with watch(optimizer, watched=True):
        train(model, optimizer, steps=2)
        twin = copied(optimizer.original_optimizer)
    same(twin.state_dict(), optimizer.state_dict())
    shapes = [[tuple(one.shape) for one in group["params"]] for group in twin.param_groups]
    assert shapes == [[tuple(one.shape) for one in model.parameters()]]


def test_schedulers_and_new_groups_work_while_a_run_is_watched() -> None:
    model = network()
    first, second = list(model.parameters())[:2], list(model.parameters())[2:]
    optimizer = DPOptimizer(
        torch.optim.Adam(first, lr=0.1),
        noise_multiplier=QUIET,
        max_grad_norm=NORM,
        expected_batch_size=15,
    )
    with watch(optimizer, watched=True) as seen:
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        train(model, optimizer, steps=2)
        schedule.step()
        for one in second:
            one.grad_sample = one.summed_grad = None
        optimizer.original_optimizer.add_param_group({"params": second, "lr": 0.3})
        train(model, optimizer, steps=2)
        assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.3]
        assert [len(group["params"]) for group in optimizer.param_groups] == [2, 2]
        assert set(optimizer.state) == set(model.parameters())
    observed = seen.observed
    np.testing.assert_allclose(observed.released, observed.design.step_coins()[:4], atol=1e-5)


def engine() -> tuple[PrivacyEngine, Any, Any, Any]:
    torch.manual_seed(0)
    made, model = PrivacyEngine(accountant="rdp"), nn.Linear(5, 3)
    return made, *made.make_private(
        module=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
        data_loader=DataLoader(DATA, batch_size=15),
        noise_multiplier=1.1,
        max_grad_norm=NORM,
    )


@pytest.mark.parametrize("loading", [True, False])
@pytest.mark.parametrize("saving", [True, False])
def test_checkpoints_of_the_engine(*, saving: bool, loading: bool) -> None:
    private, model, optimizer, loader = engine()
    file = io.BytesIO()
    with watch(optimizer, watched=saving):
        for inputs, targets in loader:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step()
        private.save_checkpoint(path=file, module=model, optimizer=optimizer)
    again, resumed, other, _ = engine()
    file.seek(0)
    with watch(other, watched=loading):
        again.load_checkpoint(path=file, module=resumed, optimizer=other)
    same(other.state_dict(), optimizer.state_dict())
    same(resumed.state_dict(), model.state_dict())
    assert again.accountant.history == private.accountant.history


def test_an_error_within_a_step_leaves_the_groups_as_they_were() -> None:
    class Fails(DPOptimizer):  # type: ignore[misc]
        def add_noise(self) -> None:
            raise ZeroDivisionError

    model = network()
    optimizer = optimizer_of(model, private=Fails)
    with watch(optimizer, watched=True):
        with pytest.raises(ZeroDivisionError):
            train(model, optimizer, steps=STEPS)
        assert [len(group["params"]) for group in optimizer.param_groups] == [4]
