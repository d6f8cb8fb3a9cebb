"""PANORAMIA on text: a small GPT and what another one writes, on Python's own documentation.

A GPT reads bytes of the documentation that comes with Python (`pydoc_data.topics`), cut into chunks
of 64 bytes: ever longer, and with DP-SGD. Another learns from 40 % of the chunks to write more, and
audits compare the others with what it writes.

Members are a random part of all different chunks, and non-members are others: given the text, each
chunk was as likely to be trained on as any other, so that the two are exchangeable, and audits
against real non-members (RM;RN, O(1)) certify. Topics drawn as a whole would not be: a model that
has read half of a topic knows the words of the other half, and the 79 topics differ enough for a
baseline to tell those it has seen from those it has not. For the same reason the members that
train the generator are a random part of them.
"""

from pydoc_data import topics
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset
from transformers import GPT2Config

from gpt import BYTES, GPT, LENGTH
from leakbound.generators import LanguageModel, chunk_texts
from leakbound.panoramia import Helper, Options, StackedAttack
from leakbound.torch import token_losses
from streams import generator
from targets import Audited, Material, Training, audit_targets
from training import Recipe

__all__ = ["RECIPE", "audit_text", "divided"]

WIDTH = 64


def loss_of_next_bytes(network: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return a language model's mean cross-entropy."""
    (text,) = batch
    logits = network(text)[:, :-1]
    return nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


RECIPE = Recipe(
    lambda: GPT(length=LENGTH, width=WIDTH),
    batch_size=32,
    learning_rate=3e-3,
    private_batch_size=128,
    private_learning_rate=3e-3,
    loss=loss_of_next_bytes,
    optimizer=torch.optim.AdamW,
    private_optimizer=torch.optim.AdamW,
)


def audit_text(
    *,
    epochs: tuple[int, ...] = (3, 6, 12, 20),
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0),
    private_epochs: int = 5,
    members: int = 3000,
    seed: int = 0,
    seeds: int = 3,
) -> Audited:
    """Train the models and audit all of them, in about seven minutes on one core."""
    how: dict[str, Any] = {
        "network": RECIPE.network,
        "batch_size": RECIPE.batch_size,
        "learning_rate": RECIPE.learning_rate,
    }
    options = Options(
        attack=StackedAttack("text"),
        helper=(Helper(epochs=8, **how), Helper("members", epochs=15, **how)),
        shares=(0.4, 0.2, 0.08),
        helper_examples=members * 4 // 5,
        seeds=tuple(range(seed, seed + seeds)),
        union=True,
    )
    training = Training(
        recipe=RECIPE,
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
        prefix="GPT, ",
    )
    return audit_targets(
        _writer(), options=options, material=divided(members, seed), trainings=[training], seed=seed
    )


def _writer() -> LanguageModel:
    config = GPT2Config(
        vocab_size=BYTES,
        n_positions=2 * LENGTH,
        n_embd=WIDTH,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return LanguageModel(config, epochs=20, learning_rate=3e-3, prompts=0.2, samples_per_prompt=24)


def divided(members: int, seed: int = 0) -> Material:
    """Divide the different chunks of Python's documentation at random, members in its order."""
    chunks = chunk_texts(list(topics.topics.values()), length=LENGTH, most=10_000, seed=0)
    _, first = np.unique(chunks.values, axis=0, return_index=True)
    order = generator("demos/text-members", seed).permutation(first)
    inside, outside = (
        chunks.values[np.sort(rows)] for rows in (order[:members], order[members : 2 * members])
    )

    def judge(network: nn.Module) -> tuple[float, float]:
        train, test = (
            float(token_losses(network, texts, progress=False).mean())
            for texts in (inside, outside)
        )
        return train, test

    return Material(
        members=inside,
        nonmembers=outside,
        training=TensorDataset(torch.tensor(inside)),
        judge=judge,
    )
