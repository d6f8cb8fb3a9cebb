"""Signals beyond the class margin: tokens, several labels, comparisons with an earlier model."""

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.torch import score, token_losses
from scored import DEVICES

torch.set_num_threads(1)

VOCABULARY, LENGTH, EXAMPLES = 11, 9, 25


class Language(nn.Module):
    """A causal language model with dropout and attention, which answers as transformers' do."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(VOCABULARY, 12)
        self.mix = nn.Linear(12, 36)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(12, VOCABULARY)
        self.seen: list[dict[str, Tensor]] = []

    def forward(self, input_ids: Tensor, **others: Tensor) -> SimpleNamespace:
        self.seen.append(others)
        x = self.tokens(input_ids)
        query, key, value = self.mix(x).unsqueeze(1).chunk(3, -1)
        real = others.get("attention_mask", torch.ones_like(input_ids)).bool()
        own = torch.eye(input_ids.shape[1], dtype=torch.bool, device=real.device)
        allowed = (torch.ones_like(own).tril() & real.unsqueeze(1) | own).unsqueeze(1)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        return SimpleNamespace(logits=self.head(self.drop(x + mixed.squeeze(1))))


class Named(Dataset[dict[str, Tensor]]):
    """A dataset of mappings, as tokenizers make them."""

    def __init__(self, columns: dict[str, Tensor]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return EXAMPLES

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {name: column[index] for name, column in self.columns.items()}


def tokens() -> Tensor:
    return torch.randint(VOCABULARY, (EXAMPLES, LENGTH), generator=torch.Generator().manual_seed(1))


def mask() -> Tensor:
    """Return a mask of padding: on the right in even rows, on the left in odd ones."""
    kept = torch.ones(EXAMPLES, LENGTH, dtype=torch.int64)
    for row in range(EXAMPLES):
        padding = row % 5
        if padding:
            kept[row, -padding:] = 0
    kept[1::2] = kept[1::2].flip(1)
    return kept


def expected_losses(
    model: nn.Module, labels: Tensor, kept: Tensor | None = None
) -> np.ndarray[Any, Any]:
    """Return losses token by token, in float64, NaN where none counts."""
    masked = {} if kept is None else {"attention_mask": kept}
    with torch.no_grad():
        logits = copy.deepcopy(model).eval()(tokens(), **masked).logits.double().numpy()
    found = np.full((EXAMPLES, LENGTH - 1), np.nan)
    for row in range(EXAMPLES):
        for position in range(LENGTH - 1):
            label = int(labels[row, position + 1])
            if label != -100:
                z = logits[row, position]
                found[row, position] = np.logaddexp.reduce(z) - z[label]
    return found


def forms() -> dict[str, tuple[Any, Tensor, Tensor | None]]:
    """Return tokens in every form that is read, with the labels and the mask that each means."""
    x = tokens()
    some = x.masked_fill(
        torch.rand(x.shape, generator=torch.Generator().manual_seed(2)) < 0.3, -100
    )
    some[:, 4] = x[:, 4]
    kept = mask()
    real = x.masked_fill(kept == 0, -100)
    real[:, 1:][kept[:, :-1] == 0] = -100
    both = some.masked_fill(real == -100, -100)
    return {
        "pair": ((x, some), some, None),
        "TensorDataset": (TensorDataset(x, some), some, None),
        "array of tokens": (x.numpy().astype(np.int64), x, None),
        "mapping": ({"input_ids": x, "attention_mask": kept}, real, kept),
        "mapping with labels": (
            {"input_ids": x, "attention_mask": kept, "labels": some},
            both,
            kept,
        ),
        "dataset of mappings": (Named({"input_ids": x, "attention_mask": kept}), real, kept),
        "loader of mappings": (
            DataLoader(Named({"input_ids": x, "labels": some}), batch_size=4),
            some,
            None,
        ),
        "list of mappings": ([{"input_ids": row} for row in x], x, None),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", forms())
def test_the_score_of_a_sequence_is_minus_its_mean_loss(form: str, device: str) -> None:
    data, labels, kept = forms()[form]
    model = Language()
    losses = token_losses(model, data, batch_size=7, device=device)
    assert losses.dtype == np.float32
    np.testing.assert_allclose(losses, expected_losses(model, labels, kept), rtol=2e-5, atol=1e-6)
    ids = [f"text {i}" for i in range(EXAMPLES)]
    found = score(model, data, signal="cross_entropy", batch_size=7, device=device, ids=ids)
    expected = -np.nanmean(expected_losses(model, labels, kept), axis=1)
    np.testing.assert_allclose(found.values, expected, rtol=2e-5)
    assert found.ids.tolist() == ids
    assert found.signal == "cross_entropy"


def test_the_model_gets_what_stands_beside_the_tokens_but_no_labels() -> None:
    model = Language()
    score(model, {"input_ids": tokens(), "attention_mask": mask()}, signal="cross_entropy")
    score(model, {"input_ids": tokens(), "labels": tokens()}, signal="cross_entropy")
    assert {tuple(others) for others in model.seen} == {("attention_mask",), ()}
    whole = [one["attention_mask"].cpu() for one in model.seen if one]
    assert any(torch.equal(one, mask()) for one in whole)


def test_shorter_batches_end_in_nan() -> None:
    batches = [(tokens()[:3, :4], tokens()[:3, :4]), (tokens()[3:], tokens()[3:])]
    found = token_losses(Language(), DataLoader(batches, batch_size=None))  # type: ignore[arg-type] # a list
    whole = token_losses(Language(), tokens())
    assert found.shape == whole.shape
    np.testing.assert_allclose(found[:3, :3], whole[:3, :3], rtol=1e-5)
    np.testing.assert_allclose(found[3:], whole[3:], rtol=1e-5)
    assert np.isnan(found[:3, 3:]).all()


def test_vocabularies_beyond_a_block_of_logits() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(3, 4, 50_000, generator=generator)
    labels = torch.randint(50_000, (3, 4), generator=generator)

    class Fixed(nn.Module):
        def forward(self, _: Tensor) -> Tensor:
            return logits

    expected = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="none"
    )
    found = token_losses(Fixed(), labels)
    np.testing.assert_allclose(found, expected.view(3, 3), rtol=1e-6)


def several() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(4)
    return nn.Linear(6, 5), torch.randn(30, 6), torch.randint(2, (30, 5))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.int64, torch.float32, torch.bool])
def test_binary_cross_entropy_is_minus_the_mean_loss(kind: torch.dtype, device: str) -> None:
    model, inputs, targets = several()
    expected = -functional.binary_cross_entropy_with_logits(
        model(inputs), targets.float(), reduction="none"
    ).mean(1)
    data = inputs, targets.to(kind)
    found = score(model, data, signal="binary_cross_entropy", device=device, batch_size=8)
    np.testing.assert_allclose(found.values, expected.detach(), rtol=1e-5)


def test_one_label_needs_no_column() -> None:
    model, inputs, targets = several()
    single = nn.Sequential(model, nn.Flatten(0), nn.Unflatten(0, (-1, 5)), First())
    found = score(single, (inputs, targets[:, 0]), signal="binary_cross_entropy")
    z = model(inputs)[:, 0].detach()
    expected = functional.logsigmoid(torch.where(targets[:, 0] == 1, z, -z))
    np.testing.assert_allclose(found.values, expected, rtol=1e-5)


class First(nn.Module):
    """The first column."""

    def forward(self, table: Tensor) -> Tensor:
        return table[:, 0]


def test_confident_labels_stay_apart() -> None:
    logits = 20 + torch.arange(50.0).unsqueeze(1)
    for sign, rows in ((1, logits), (0, -logits)):
        data = rows, torch.full((50, 1), sign)
        found = score(nn.Identity(), data, signal="binary_cross_entropy")
        np.testing.assert_allclose(found.values, -np.exp(-logits[:, 0].double().numpy()), rtol=1e-8)


def trained(model: nn.Module, loss: Any, steps: int = 3) -> nn.Module:
    """Return a copy after some steps of gradient descent."""
    model = copy.deepcopy(model).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.autograd.backward(loss(model))
        optimizer.step()
    return model


def classifier() -> tuple[nn.Module, Any, Any]:
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 4))
    x, y = torch.randn(20, 6), torch.randint(4, (20,))
    return model, (x, y), lambda net: functional.cross_entropy(net(x), y, reduction="none")


def language() -> tuple[nn.Module, Any, Any]:
    def losses(net: nn.Module) -> Tensor:
        logits = net(tokens()).logits[:, :-1].transpose(1, 2)
        return functional.cross_entropy(logits, tokens()[:, 1:], reduction="none").mean(1)

    return Language(), tokens(), losses


def labelled() -> tuple[nn.Module, Any, Any]:
    model, x, y = several()

    def losses(net: nn.Module) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            net(x), y.float(), reduction="none"
        ).mean(1)

    return model, (x, y), losses


TASKS = {"classes": classifier, "tokens": language, "several labels": labelled}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("task", TASKS)
def test_loss_drop_is_the_loss_before_less_the_loss_after(task: str, device: str) -> None:
    start, data, losses = TASKS[task]()
    end = trained(start, lambda net: losses(net).mean())
    found = score(end, data, signal="loss_drop", reference=start, device=device, batch_size=7)
    before, after = (losses(copy.deepcopy(net).eval()).detach() for net in (start, end))
    np.testing.assert_allclose(found.values, before - after, rtol=1e-3, atol=1e-5)
    assert found.signal == "loss_drop"


def test_both_models_are_left_as_they_were() -> None:
    start, data, losses = classifier()
    end = trained(start, lambda net: losses(net).mean()).train()
    start[1].eval()  # type: ignore[index] # a frozen batch normalisation
    next(start.parameters()).requires_grad_(False)  # noqa: FBT003

    def state() -> list[Any]:
        return [
            [
                [module.training for module in net.modules()],
                {name: value.tolist() for name, value in net.state_dict().items()},
                [(p.requires_grad, p.grad is None, p.is_leaf) for p in net.parameters()],
            ]
            for net in (start, end)
        ]

    before = state()
    score(end, data, signal="loss_drop", reference=start)
    assert state() == before


def with_label(row: int, column: int | slice, label: int) -> tuple[Tensor, Tensor]:
    labels = tokens()
    labels[row, column] = label
    return tokens(), labels


NONE_COUNTS = with_label(9, slice(1, None), -100)
REFUSED: dict[str, list[tuple[Any, type[Exception], str]]] = {
    "tokens": [
        ((tokens(), tokens()[:, :-1]), InputError, r"logits of shape \(7, 8, vocabulary\)"),
        ((tokens(), tokens()[:, 0]), InputError, r"\(batch, length\), got .* shape \(7,\)"),
        ((tokens(), tokens().double()), InputError, "one integer for each token.*float64"),
        ({"input_ids": tokens(), "labels": tokens()[1:]}, InputError, "24 labels"),
        ({"input_ids": tokens(), "attention_mask": mask()[:, 1:]}, InputError, "pass labels"),
        ({"tokens": tokens()}, InputTypeError, "a mapping with input_ids, got dict"),
        (with_label(8, 3, 11), InputError, "label 11 at id 108 is outside 0 … 10"),
        (with_label(20, 1, -1), InputError, "label -1 at id 120"),
        (NONE_COUNTS, InputError, "id 109: no token counts"),
    ],
    "several labels": [
        (torch.full((30, 5), 2), InputError, "must be 0 or 1, got 2 at id 0"),
        (torch.zeros(30, 4), InputError, r"of shape \(30, 4\) as the targets, got"),
    ],
}


@pytest.mark.parametrize(("data", "error", "message"), REFUSED["tokens"])
def test_bad_tokens(data: Any, error: type[Exception], message: str) -> None:
    ids = range(100, 100 + EXAMPLES)
    with pytest.raises(error, match=message):
        score(Language(), data, signal="cross_entropy", batch_size=7, ids=ids)


@pytest.mark.parametrize(("targets", "error", "message"), REFUSED["several labels"])
def test_bad_labels(targets: Tensor, error: type[Exception], message: str) -> None:
    model, inputs, _ = several()
    with pytest.raises(error, match=message):
        score(model, (inputs, targets), signal="binary_cross_entropy")


OTHER = nn.Linear(6, 5, bias=False)
COMPARED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"signal": "loss_drop"}, OptionError, "loss_drop compares.*reference="),
    ({"signal": "loss_drop", "reference": "start"}, InputTypeError, "one of Module"),
    ({"reference": OTHER}, OptionError, "compares with no reference; leave it out"),
]


@pytest.mark.parametrize(("options", "error", "message"), COMPARED)
def test_bad_options(options: dict[str, Any], error: type[Exception], message: str) -> None:
    model, x, y = several()
    with pytest.raises(error, match=message):
        score(model, (x, y[:, 0]), **options)


def test_a_model_is_not_compared_with_itself() -> None:
    model, data, _ = classifier()
    with pytest.raises(InputError, match="pass as reference the model as it was before"):
        score(model, data, signal="loss_drop", reference=model)
