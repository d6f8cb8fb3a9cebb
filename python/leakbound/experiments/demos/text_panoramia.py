"""PANORAMIA on text: what a language model leaks, without retraining it.

A small GPT reads bytes of the documentation that comes with Python (`pydoc_data.topics`), cut into
chunks of 64 bytes: ever longer, and with DP-SGD. Another learns from 40 % of the chunks to write
more, and audits compare the others with what it writes.

Members are a random part of all different chunks, and non-members are others: given the text, each
chunk was as likely to be trained on as any other, so that the two are exchangeable, and audits
against real non-members (RM;RN, O(1)) certify. Topics drawn as a whole would not be: a model that
has read half of a topic knows the words of the other half, and the 79 topics differ so much that a
baseline could tell those it has seen from those it has not. For the same reason the members that
train the generator are a random part of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pydoc_data import topics
from typing import TypeAlias

import numpy as np

from leakbound._base.streams import Purpose
from leakbound._base.validation import integer
from leakbound.errors import MissingExtraError
from leakbound.generators import LanguageModel, chunk_texts

try:
    import torch
    from torch.utils.data import TensorDataset
    from transformers import GPT2Config

    from leakbound.experiments.demos.gpt import LENGTH, recipe
    from leakbound.experiments.demos.panoramia import Material, Target, TargetsReport, audit_targets
except ImportError as error:
    message = (
        f"the text demo needs {error.name}, which is not installed: pip install 'leakbound[demo]'"
    )
    raise MissingExtraError(message) from error

from leakbound.experiments.demos.training import Progress, TrainedModel
from leakbound.panoramia import Helper, Panoramia, StackedAttack
from leakbound.torch import token_losses

__all__ = ["LanguageReport", "LanguageTarget", "run"]

WIDTH = 64
BYTES = 256


RECIPE = recipe(WIDTH, private_batch_size=128)


@dataclass(frozen=True)
class LanguageTarget(Target):
    """A language model that was audited."""

    train_loss: float
    test_loss: float


LanguageReport: TypeAlias = TargetsReport[LanguageTarget]


def run(
    *,
    seed: int = 0,
    epochs: Sequence[int] = (3, 6, 12, 20),
    epsilons: Sequence[float] = (8.0,),
    private_epochs: int = 5,
    members: int = 3000,
    seeds: int = 3,
    progress: Progress | None = None,
) -> LanguageReport:
    """Train the models and audit all of them, in about seven minutes on one core.

    References
    ----------
    M. Kazmi et al., "PANORAMIA: Privacy Auditing of Machine Learning Models without Retraining",
    2024, arXiv:2402.09477.
    """
    audit = Panoramia(
        _generator(),
        attack=StackedAttack("text"),
        helper=(
            Helper(network=RECIPE.network, epochs=8, batch_size=32, learning_rate=3e-3),
            Helper(
                trained_on="members",
                network=RECIPE.network,
                epochs=15,
                batch_size=32,
                learning_rate=3e-3,
            ),
        ),
        generator_share=0.4,
        helper_examples=integer(members, "members", least=500, most=5000) * 4 // 5,
        seeds=tuple(range(integer(seeds, "seeds", least=1))),
        union=True,
    )
    return audit_targets(
        audit,
        _draw,
        RECIPE,
        generator="language model",
        seed=seed,
        members=members,
        epochs=epochs,
        epsilons=epsilons,
        private_epochs=private_epochs,
        progress=progress,
    )


def _generator() -> LanguageModel:
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


def _draw(members: int, seed: int) -> Material[LanguageTarget]:
    """Divide the different chunks of Python's documentation at random, members in its order."""
    chunks = chunk_texts(list(topics.topics.values()), length=LENGTH, most=10_000)
    _, first = np.unique(chunks.values, axis=0, return_index=True)
    order = Purpose.TEXT_MEMBERS.rng(seed).permutation(first)
    inside, outside = (
        chunks.values[np.sort(rows)] for rows in (order[:members], order[members : 2 * members])
    )

    def judge(model: TrainedModel) -> LanguageTarget:
        train_loss, test_loss = (
            float(token_losses(model.network, texts, progress=False).mean())
            for texts in (inside, outside)
        )
        return LanguageTarget(
            model.name, model.epochs, model.epsilon, model.seconds, train_loss, test_loss
        )

    return Material(inside, outside, TensorDataset(torch.tensor(inside)), judge)
