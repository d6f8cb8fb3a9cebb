"""Text of causal language models, a token at a time."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from leakbound._base.streams import Purpose
from leakbound._base.types import IntArray
from leakbound.torch.checks import unwrapped

__all__ = ["continued"]

_AT_ONCE = 256
"""Most texts written at a time, to bound memory."""


def continued(
    model: nn.Module,
    prompts: IntArray,
    length: int,
    temperature: float,
    *,
    seed: int,
    device: torch.device,
) -> IntArray:
    """Return prompts with what the model writes after them, drawn on the CPU."""
    dice = torch.Generator().manual_seed(Purpose.CANARY_SAMPLES.derived(seed))
    parts = []
    for tokens in torch.split(torch.from_numpy(prompts), _AT_ONCE):
        text = tokens
        while text.shape[1] < length:
            logits = cast("Tensor", unwrapped(model(text.to(device))))[:, -1]
            chances = (logits.cpu().double() / temperature).softmax(1)
            drawn = torch.multinomial(chances, 1, generator=dice)
            text = torch.cat([text, drawn], 1)
        parts.append(text.numpy())
    return np.concatenate(parts)
