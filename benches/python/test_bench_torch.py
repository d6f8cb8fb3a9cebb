"""Per-example losses beside a plain forward pass of the same model over the same batches."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakbound.torch import Signal, score
from ratios import Ratio, measure

Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]
Batches: TypeAlias = tuple[tuple[Tensor, Tensor], ...]

ROUNDS = 41
BATCHES = 2
VOCABULARY = 256
LENGTH = 64
WIDTH = 128
CLASSES = 10


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


class Transformer(nn.Module):
    """A causal language model of 0.46 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.blocks(self.tokens(tokens), mask=self.mask, is_causal=True)
        logits: Tensor = self.head(hidden)
        return logits


def language() -> tuple[nn.Module, Batches, Signal]:
    tokens = torch.randint(VOCABULARY, (64 * BATCHES, LENGTH))
    return Transformer(), tuple((x, x) for x in torch.split(tokens, 64)), "cross_entropy"


def images(signal: Signal) -> tuple[nn.Module, Batches, Signal]:
    model = nn.Sequential(
        *(
            layer
            for ins, outs in pairwise((3, 32, 64, 64))
            for layer in (nn.Conv2d(ins, outs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        ),
        nn.Flatten(),
        nn.Linear(1024, CLASSES),
    )
    pixels = torch.randn(128 * BATCHES, 3, 32, 32)
    labels = torch.randint(CLASSES, (128 * BATCHES,))
    return (
        model,
        tuple(zip(torch.split(pixels, 128), torch.split(labels, 128), strict=True)),
        signal,
    )


TASKS: dict[str, Callable[[], tuple[nn.Module, Batches, Signal]]] = {
    "token losses of a transformer": language,
    "losses of a convolutional net": partial(images, "cross_entropy"),
    "margins of a convolutional net": partial(images, "logit_margin"),
}


class Listed(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Batches that are ready."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.batches[index]


def forward(model: nn.Module, batches: Batches) -> None:
    with torch.no_grad():
        for inputs, _ in batches:
            model(inputs)


def expected(model: nn.Module, batches: Batches) -> Tensor:
    """Return cross-entropies, the mean over tokens of those of a language model."""
    found = []
    for inputs, targets in batches:
        logits = model(inputs).detach()
        if logits.ndim == 3:
            found.append(
                functional.cross_entropy(
                    logits[:, :-1].transpose(1, 2), targets[:, 1:], reduction="none"
                ).mean(1)
            )
        else:
            found.append(functional.cross_entropy(logits, targets, reduction="none"))
    return torch.cat(found)


@pytest.mark.parametrize("name", TASKS)
def test_scores(record: Record, name: str) -> None:
    model, batches, signal = TASKS[name]()
    model.eval()
    loader = torch.utils.data.DataLoader(Listed(batches), batch_size=None)

    def ours() -> object:
        return score(model, loader, signal=signal, device="cpu", progress=False)

    # The margin orders examples as the loss does.
    found = score(model, loader, signal=signal, device="cpu").values
    losses = expected(model, batches).double()
    if signal == "cross_entropy":
        np.testing.assert_allclose(found, -losses, rtol=1e-4)
    else:
        np.testing.assert_allclose(found, -torch.log(torch.expm1(losses)), rtol=1e-3, atol=1e-3)
    ratio = measure(
        name,
        ours,
        peer="a plain forward pass",
        run_peer=lambda: forward(model, batches),
        size=found.size,
        rounds=ROUNDS,
    )
    assert ratio.seconds > 0.02 * BATCHES
    record(ratio, ours)
