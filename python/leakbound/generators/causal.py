"""Training a causal language model on chunks, and drawing from it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from leakbound._base.streams import Purpose
from leakbound._base.types import IntArray

LONGEST_GRADIENT = 1.0
AT_ONCE = 256
"""Most samples drawn at a time, to bound memory."""


def load(model: str | os.PathLike[str] | PretrainedConfig, *, seed: int) -> PreTrainedModel:
    """Return a model from a folder, or a new one of a configuration; torch's seed is changed."""
    torch.manual_seed(Purpose.LANGUAGE_WEIGHTS.derived(seed))
    if isinstance(model, PretrainedConfig):
        return AutoModelForCausalLM.from_config(model)
    with _no_bars():
        return AutoModelForCausalLM.from_pretrained(os.fspath(model), local_files_only=True)


def train(
    network: PreTrainedModel,
    chunks: IntArray,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    device: str,
) -> None:
    """Train on every two chunks that follow each other, each predicted token counting the same."""
    pairs = torch.from_numpy(np.concatenate([chunks[:-1], chunks[1:]], axis=1))
    torch.manual_seed(Purpose.LANGUAGE_TRAINING.derived(seed))
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate)
    network.train()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(pairs)), batch_size):
            tokens = pairs[rows].to(device)
            logits: Tensor = network(input_ids=tokens, use_cache=False).logits
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten()
            )
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), LONGEST_GRADIENT)
            optimizer.step()
    network.eval()


def continue_prompts(
    network: PreTrainedModel, prompts: IntArray, *, top_k: int, temperature: float, seed: int
) -> IntArray:
    """Return what the model writes after each prompt, as many tokens as the prompt has."""
    dice = torch.Generator().manual_seed(Purpose.LANGUAGE_SAMPLES.derived(seed))
    parts = torch.split(torch.from_numpy(prompts), AT_ONCE)
    with torch.no_grad():
        found = [_continue(network, part, top_k, temperature, dice) for part in parts]
    return torch.cat(found).numpy()


def _continue(
    network: PreTrainedModel, prompts: Tensor, top_k: int, temperature: float, dice: torch.Generator
) -> Tensor:
    written: list[Tensor] = []
    tokens, memory = prompts.to(network.device), None
    for _ in range(prompts.shape[1]):
        output = network(input_ids=tokens, past_key_values=memory, use_cache=True)
        logits = output.logits[:, -1].float().cpu() / temperature
        best, which = logits.topk(min(top_k, logits.shape[1]))
        drawn = torch.multinomial(best.softmax(1), 1, generator=dice)
        written.append(which.gather(1, drawn))
        tokens, memory = written[-1].to(network.device), output.past_key_values
    return torch.cat(written, 1)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Load without the progress bars of transformers, which do not ask for a terminal."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
