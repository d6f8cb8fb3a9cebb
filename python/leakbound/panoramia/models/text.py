"""Texts: a small transformer whose hidden vector is combined with the losses of every token."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, FloatArray
from leakbound.errors import InputError
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.attack import FittedAttack
from leakbound.panoramia.models.networks import (
    HIDDEN,
    SignalNetwork,
    adamw_optimizer,
    mean_logistic_loss,
    membership_targets,
    network_log_odds,
    train_one_epoch,
    train_to_best,
)
from leakbound.torch.device import seeded

WIDTH = 64
HEADS = 4
NEIGHBOURS = 5  # tokens that are read together before attention: what a word looks like
DROPOUT = 0.1
SPREAD = 0.3  # standard deviation of the vectors of tokens before training
BATCH = 64
LEARNING_RATE = 2e-3
EPOCHS = 10  # most passes of the transformer alone
MOST_JOINT_EPOCHS = 2  # passes of transformer and losses together, any of which may be the last
JOINT_LEARNING_RATE = 5e-4


@dataclass(frozen=True, eq=False)
class Reader:
    """A transformer on tokens."""

    network: "_Transformer"
    vocabulary: NDArray[np.int64]
    length: int

    @classmethod
    def train(cls, train: Sample, validation: Sample, seed: int, device: str = "cpu") -> Self:
        """Train it, as far as it gets better on the validation data."""
        tokens = _tokens(train.examples)
        vocabulary = np.unique(tokens).astype(np.int64)
        with seeded(Purpose.READER, seed=seed, device=device):
            network = _Transformer(tokens=vocabulary.size + 1, length=tokens.shape[1]).to(device)
            reader = cls(network=network, vocabulary=vocabulary, length=tokens.shape[1])
            inputs = [reader.inputs(train.examples)]
            targets = membership_targets(train)
            held_out = [reader.inputs(validation.examples)]
            truth = membership_targets(validation)
            optimizer = adamw_optimizer(network, LEARNING_RATE)
            train_to_best(
                network,
                rounds=EPOCHS,
                train=lambda _: train_one_epoch(
                    network, optimizer=optimizer, inputs=inputs, targets=targets, batch=BATCH
                ),
                loss=lambda: mean_logistic_loss(network, inputs=held_out, targets=truth),
            )
        return reader

    def inputs(self, examples: Examples) -> Tensor:
        """Return what the network takes."""
        tokens = _tokens(examples)
        if tokens.shape[1] != self.length:
            raise InputError(
                f"texts must have {self.length} tokens, as in training, got {tokens.shape[1]}"
            )
        # Tokens that training did not hold are one more, the last.
        unknown_token = self.vocabulary.size
        codes = np.searchsorted(self.vocabulary, tokens)
        nearest_tokens = self.vocabulary[np.minimum(codes, unknown_token - 1)]
        was_in_training = nearest_tokens == tokens
        return torch.from_numpy(np.where(was_in_training, codes, unknown_token))


prepare = Reader.train  # it sees no signal


def candidates(
    train: Sample, validation: Sample, seed: int, prepared: Reader, device: str = "cpu"
) -> Iterator[FittedAttack]:
    """Train a network on losses, then that and the transformer together, ever longer."""
    signals = SignalNetwork.train(train, seed, validation, device)
    with seeded(Purpose.READER_AND_SIGNALS, seed=seed, device=device):
        network = _Both(reader=prepared.network, signals=signals).to(device)
        inputs = [prepared.inputs(train.examples), signals.inputs(train.signals)]
        optimizer = adamw_optimizer(network, JOINT_LEARNING_RATE)
        for epoch in range(MOST_JOINT_EPOCHS + 1):
            if epoch:
                train_one_epoch(
                    network,
                    optimizer=optimizer,
                    inputs=inputs,
                    targets=membership_targets(train),
                    batch=BATCH,
                )
            network_copy = deepcopy(network)
            parts = partial(_stacked_outputs, prepared, signals, network_copy)
            yield FittedAttack.stack({"epochs": epoch}, parts=parts, validation=validation)


def _stacked_outputs(
    reader: Reader,
    signals: SignalNetwork,
    combined_network: "_Both",
    examples: Examples,
    losses: FloatArray,
) -> FloatArray:
    """Return the transformer alone, both networks as one, and each model's mean loss."""
    tokens = reader.inputs(examples)
    transformer_logits = network_log_odds(reader.network, [tokens])
    combined_logits = network_log_odds(combined_network, [tokens, signals.inputs(losses)])
    mean_losses = [model_losses.mean(axis=1) for model_losses in np.moveaxis(losses, 1, 0)]
    return np.column_stack([transformer_logits, combined_logits, *mean_losses])


class _Transformer(nn.Module):
    """Tokens with their neighbours, one layer of attention, the mean over all places."""

    def __init__(self, tokens: int, length: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, WIDTH)
        self.places = nn.Parameter(torch.zeros(length, WIDTH))
        self.neighbours = nn.Sequential(
            nn.Conv1d(WIDTH, WIDTH, NEIGHBOURS, padding="same"), nn.GELU()
        )
        self.project = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH))
        self.merge = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(DROPOUT))
        self.network = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 2 * WIDTH),
            nn.GELU(),
            nn.Linear(2 * WIDTH, WIDTH),
            nn.Dropout(DROPOUT),
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 1)
        nn.init.normal_(self.tokens.weight, std=SPREAD)

    def hidden(self, text: Tensor) -> Tensor:
        """Return one vector for each text."""
        embedded = self.tokens(text)
        convolved = self.neighbours(embedded.transpose(1, 2)).transpose(1, 2)
        embedded = embedded + convolved + self.places
        # Queries, keys and values, each of shape (texts, heads, places, width of a head)
        projected = self.project(embedded).unflatten(-1, (3, HEADS, -1))
        queries, keys, values = projected.permute(2, 0, 3, 1, 4).unbind()
        attended = functional.scaled_dot_product_attention(queries, keys, values)
        embedded = embedded + self.merge(attended.transpose(1, 2).flatten(2))
        transformed = embedded + self.network(embedded)
        text_vectors: Tensor = self.norm(transformed).mean(dim=1)
        return text_vectors

    def forward(self, text: Tensor) -> Tensor:
        logits: Tensor = self.head(self.hidden(text)).squeeze(1)
        return logits


class _Both(nn.Module):
    """The transformer's vector and what the losses give side by side, and one layer on both."""

    def __init__(self, reader: _Transformer, signals: SignalNetwork) -> None:
        super().__init__()
        self.reader = deepcopy(reader)
        heads = [self.reader.head]
        self.losses: nn.Module | None = None
        if signals.network is not None:
            first, bend, last, _ = deepcopy(signals.network)
            self.losses = nn.Sequential(first, bend)
            assert isinstance(last, nn.Linear)
            heads.append(last)
        self.head = nn.Linear(WIDTH + HIDDEN * (len(heads) - 1), 1)
        with torch.no_grad():
            # The sum of both heads, so that training starts from what each part knows.
            self.head.weight.copy_(torch.cat([head.weight for head in heads], dim=1))
            self.head.bias.copy_(torch.stack([head.bias for head in heads]).sum(dim=0))
        self.reader.head.requires_grad_(requires_grad=False)

    def forward(self, text: Tensor, signals: Tensor) -> Tensor:
        vectors = [self.reader.hidden(text)]
        if self.losses is not None:
            vectors.append(self.losses(signals))
        logits: Tensor = self.head(torch.cat(vectors, dim=1)).squeeze(1)
        return logits


def _tokens(examples: Examples) -> AnyArray:
    x = examples.x
    if x.ndim != 2 or x.dtype.kind not in "iu":
        shown = f"{x.dtype} of shape {x.shape}"
        raise InputError(f"texts must be whole numbers of shape (n, length), got {shown}")
    return x
