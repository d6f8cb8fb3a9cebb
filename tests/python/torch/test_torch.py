"""Scores of torch models: right numbers, in order, on a model left as it was found."""

import copy
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import leakbound as lb
from command_line import Terminal
from leakbound._base import console as _progress
from leakbound.errors import InputError, OptionError
from leakbound.torch import score
from scored import DEVICES, EXAMPLES, Pairs, Stream, examples, logits_of, network, rows

torch.set_num_threads(1)


def margins(logits: Tensor, targets: Tensor) -> np.ndarray[Any, Any]:
    """Return the definition of the margin, in NumPy's extended precision."""
    table = logits.double().numpy().astype(np.longdouble)
    found = []
    for row, target in zip(table, targets.tolist(), strict=True):
        found.append(row[target] - np.logaddexp.reduce(np.delete(row, target)))
    return np.array(found, dtype=np.float64)


def reference(model: nn.Module, inputs: Tensor, targets: Tensor) -> np.ndarray[Any, Any]:
    """Return margins from one pass of a copy of the model."""
    with torch.no_grad():
        return margins(copy.deepcopy(model).eval()(inputs), targets)


def forms() -> dict[str, Any]:
    """Return the same examples in every form that `score` reads."""
    inputs, targets = examples()
    pairs = Pairs(inputs, targets)
    whole: Any = [(inputs[:30], targets[:30]), (inputs[30:], targets[30:])]
    return {
        "tensors": (inputs, targets),
        "arrays": (inputs.numpy(), targets.numpy()),
        "float64 arrays": (inputs.double().numpy(), targets.numpy().astype(np.int16)),
        "read-only arrays": (np.broadcast_to(inputs.numpy(), (EXAMPLES, 6)), targets.tolist()),
        "list of pairs": [pairs[index] for index in range(EXAMPLES)],
        "TensorDataset": TensorDataset(inputs, targets),
        "Dataset": pairs,
        "IterableDataset": Stream(pairs),
        "DataLoader": DataLoader(pairs, batch_size=8),
        "loader with workers": DataLoader(pairs, batch_size=8, num_workers=2),
        "loader of a stream": DataLoader(Stream(pairs), batch_size=8),
        "loader of whole batches": DataLoader(whole, batch_size=None),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-3, 30.0, 1e4])
def test_margin_is_exact(device: str, dtype: torch.dtype, scale: float) -> None:
    generator = torch.Generator().manual_seed(2)
    logits = (scale * torch.randn(50, 10, generator=generator)).to(dtype)
    targets = torch.randint(10, (50,), generator=generator)
    logits[torch.arange(50), targets] += scale
    found = score(logits_of(logits.to(device)), (rows(50), targets), device=device).values
    rounding = 4e-16 * logits.double().abs().max().item()
    np.testing.assert_allclose(found, margins(logits, targets), rtol=1e-14, atol=rounding)


def test_margins_of_a_confident_model_stay_apart_where_its_losses_vanish() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(2000, 10, generator=generator)
    targets = torch.randint(10, (2000,), generator=generator)
    logits[torch.arange(2000), targets] += 25
    losses = functional.cross_entropy(logits, targets, reduction="none")
    assert (losses == 0).float().mean() > 0.9
    for dtype in (torch.float32, torch.bfloat16):
        found = score(logits_of(logits.to(dtype)), (rows(2000), targets))
        assert len(np.unique(found.values)) > 1990
    with pytest.raises(InputError, match=r"exactly 0\).*signal='logit_margin'"):
        score(logits_of(logits), (rows(2000), targets), signal="cross_entropy")


def test_infinite_logits_give_infinite_margins() -> None:
    logits = torch.tensor([[torch.inf, 0.0, 1.0], [0.0, torch.inf, 1.0], [0.0, 1.0, -torch.inf]])
    found = score(logits_of(logits), (rows(3), torch.tensor([0, 0, 1])))
    np.testing.assert_allclose(found.values, [np.inf, -np.inf, 1.0])


@pytest.mark.parametrize("device", DEVICES)
def test_cross_entropy_is_minus_the_loss_and_orders_as_the_margin(device: str) -> None:
    inputs, targets = examples()
    model = network().eval()
    with torch.no_grad():
        losses = functional.cross_entropy(model(inputs), targets, reduction="none")
    found = score(model, (inputs, targets), signal="cross_entropy", device=device)
    assert found.signal == "cross_entropy"
    np.testing.assert_allclose(found.values, -losses.numpy(), rtol=1e-5)
    by_margin = score(model, (inputs, targets), device=device).values
    np.testing.assert_array_equal(np.argsort(by_margin), np.argsort(found.values))


@pytest.mark.parametrize("device", DEVICES)
def test_a_callable_sees_outputs_and_targets_on_the_device(device: str) -> None:
    inputs, targets = examples()
    seen = []

    def squared(output: Tensor, target: Tensor) -> Tensor:
        seen.append((output.device.type, target.device.type))
        return -((output.squeeze(1) - target) ** 2)

    model = nn.Linear(6, 1)
    found = score(model, (inputs, targets.float()), signal=squared, device=device, batch_size=10)
    assert found.signal == "squared"
    assert set(seen) == {(device, device)}
    expected = -((model(inputs).squeeze(1) - targets) ** 2)
    np.testing.assert_allclose(found.values, expected.detach().numpy(), rtol=1e-5)


def test_a_callable_may_repeat_itself_if_it_says_so() -> None:
    def right(output: Tensor, target: Tensor) -> Tensor:
        return output.argmax(1) == target

    inputs, targets = examples()
    found = score(network(), (inputs, targets), signal=right)
    assert set(found.values) == {0.0, 1.0}
    with pytest.raises(InputError, match="return integers"):
        score(network(), (inputs, targets), signal=lambda *pair: right(*pair).float())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", forms())
def test_every_form_of_data_gives_the_same_scores_in_order(form: str, device: str) -> None:
    model, data = network(), forms()[form]
    before = torch.get_rng_state()
    found = score(model, data, batch_size=7, device=device)
    np.testing.assert_allclose(found.values, reference(model, *examples()), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.ids, np.arange(EXAMPLES))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("ids", [[f"image {i}" for i in range(EXAMPLES)], np.arange(EXAMPLES) * 3])
def test_ids_stay_with_their_scores(ids: Any) -> None:
    inputs, targets = examples()
    model = network()
    straight = score(model, (inputs, targets), ids=ids)
    back = score(model, (inputs.flip(0), targets.flip(0)), ids=list(reversed(ids)))
    np.testing.assert_array_equal(straight.ids, ids)
    np.testing.assert_array_equal(straight.ids, back.ids[::-1])
    np.testing.assert_allclose(straight.values, back.values[::-1], rtol=1e-6)


def state(model: nn.Module) -> list[Any]:
    """Return everything about a model that scoring could disturb."""
    tensors = [*model.parameters(), *model.buffers()]
    return [
        [module.training for module in model.modules()],
        [(tensor.device, tensor.requires_grad, tensor.tolist()) for tensor in tensors],
        [None if p.grad is None else (p.grad.device, p.grad.tolist()) for p in model.parameters()],
    ]


@pytest.mark.parametrize("home", DEVICES)
@pytest.mark.parametrize("device", ["auto", *DEVICES])
@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(home: str, device: str, training: bool) -> None:  # noqa: FBT001
    model = network().to(home).train(training)
    model[1].eval()  # type: ignore[index] # a frozen batch normalisation
    inputs, targets = examples()
    torch.autograd.backward(functional.cross_entropy(model(inputs.to(home)), targets.to(home)))
    before = state(model)
    scores = score(model, (inputs, targets), device=device)
    assert state(model) == before
    np.testing.assert_allclose(
        scores.values, reference(copy.deepcopy(model).cpu(), inputs, targets), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("device", DEVICES)
def test_the_model_is_left_as_it_was_after_an_error(device: str) -> None:
    model = network()
    before = state(model)
    with pytest.raises(ZeroDivisionError):
        score(model, examples(), signal=lambda *_: 1 / 0, device=device)  # type: ignore[arg-type] # raises
    assert state(model) == before
    assert torch.is_grad_enabled()


def test_what_a_model_caches_can_be_trained_on() -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 4)
            self.cache: Tensor | None = None

        def forward(self, inputs: Tensor) -> Any:
            if self.cache is None:
                self.cache = torch.linspace(0.5, 1.5, 6)
            return self.layer(inputs * self.cache)

    model, (inputs, targets) = Caching(), examples()
    score(model, (inputs, targets))
    torch.autograd.backward(functional.cross_entropy(model(inputs.requires_grad_()), targets))
    assert model.layer.weight.grad is not None


def test_a_spread_model_runs_where_it_is() -> None:
    model = network()
    model.register_buffer("elsewhere", torch.empty(1, device="meta"))
    found = score(model, examples())
    np.testing.assert_allclose(found.values, reference(network(), *examples()), rtol=1e-5)
    with pytest.raises(OptionError, match=r"spread over cpu, meta.*device='auto'"):
        score(model, examples(), device="cpu")


@pytest.mark.parametrize(("progress", "patience"), [(True, 0.0), (True, 1e9), (False, 0.0)])
def test_a_bar_appears_when_a_pass_lasts(
    monkeypatch: pytest.MonkeyPatch,
    progress: bool,  # noqa: FBT001
    patience: float,
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_BAR", patience)
    score(network(), examples(), batch_size=1, progress=progress)
    assert ("scoring" in screen.getvalue()) == (progress and patience == 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tensors_with_gradients_on_any_device_are_audited_as_their_values(
    device: str, dtype: torch.dtype
) -> None:
    game = lb.simulate.gaussian(400, 1.5, seed=0)
    values, member = game.scores, game.member
    scores = torch.tensor(values).to(device, dtype).requires_grad_()
    coins = torch.tensor(member, device=device)
    wide = scores.detach().cpu().double().numpy()
    found, expected = lb.audit(scores, lb.Coins(coins)), lb.audit(wide, lb.Coins(member))
    assert found.bound == expected.bound > 0
    # Joined by ids, which come in another order here.
    order = np.random.default_rng(0).permutation(400)
    moved = lb.Coins(pd.Series(member[order], index=order + 7))
    assert lb.audit(scores, moved, ids=np.arange(400) + 7).bound == expected.bound
    features = torch.zeros(400, 1, device=device).requires_grad_()
    design = lb.Panoramia(coins, baseline=scores, features=features + scores.float()[:, None])
    assert lb.audit(scores, design).epsilon_tilde == 0
