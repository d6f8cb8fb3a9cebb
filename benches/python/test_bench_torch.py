"""Per-example losses beside a plain forward pass of the same model over the same batches."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from convolutional import convolutional_network
from leakbound.torch import Signal, score
from ratios import Compare

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
    batches = tuple((batch, batch) for batch in torch.split(tokens, 64))
    return Transformer(), batches, "cross_entropy"


def images(signal: Signal) -> tuple[nn.Module, Batches, Signal]:
    model = convolutional_network(CLASSES)
    pixels = torch.randn(128 * BATCHES, 3, 32, 32)
    labels = torch.randint(CLASSES, (128 * BATCHES,))
    batches = tuple(zip(torch.split(pixels, 128), torch.split(labels, 128), strict=True))
    return model, batches, signal


TASKS: dict[str, Callable[[], tuple[nn.Module, Batches, Signal]]] = {
    "token losses of a transformer": language,
    "losses of a convolutional net": partial(images, "cross_entropy"),
    "margins of a convolutional net": partial(images, "logit_margin"),
}


def forward(model: nn.Module, batches: Batches) -> None:
    with torch.no_grad():
        for inputs, _ in batches:
            model(inputs)


def expected_losses(model: nn.Module, batches: Batches) -> Tensor:
    """Return cross-entropies, the mean over tokens of those of a language model."""
    losses_of_batches = []
    for inputs, targets in batches:
        logits = model(inputs).detach()
        if logits.ndim == 3:
            logits_of_next_tokens = logits[:, :-1].transpose(1, 2)
            losses = functional.cross_entropy(
                logits_of_next_tokens, targets[:, 1:], reduction="none"
            )
            losses_of_batches.append(losses.mean(dim=1))
        else:
            losses = functional.cross_entropy(logits, targets, reduction="none")
            losses_of_batches.append(losses)
    return torch.cat(losses_of_batches)


@pytest.mark.parametrize("name", TASKS)
def test_scores(compare: Compare, name: str) -> None:
    model, batches, signal = TASKS[name]()
    model.eval()
    batches_that_are_ready: Any = list(batches)
    loader = torch.utils.data.DataLoader(batches_that_are_ready, batch_size=None)

    ours = partial(score, model, loader, signal=signal, device="cpu", progress=False)
    # The margin orders examples as the loss does.
    scores = ours().values
    losses = expected_losses(model, batches).double()
    if signal == "cross_entropy":
        np.testing.assert_allclose(scores, -losses, rtol=1e-4)
    else:
        margins = -torch.log(torch.expm1(losses))
        np.testing.assert_allclose(scores, margins, rtol=1e-3, atol=1e-3)
    ratio = compare(
        name,
        ours,
        peer="a plain forward pass",
        run_peer=lambda: forward(model, batches),
        size=scores.size,
        rounds=ROUNDS,
    )
    assert ratio.seconds > 0.02 * BATCHES
