"""What a causal language model pays for each token, and which tokens count."""

import torch
from torch import Tensor
from torch.nn import functional

from leakbound.errors import ShapeError

IGNORED = -100
"""The label of a token that does not count, as in torch and in transformers."""

_CACHED, _BOUNDED = 1 << 19, 1 << 26
"""Logits whose losses are computed together: few enough to stay in a processor's cache on the CPU,
and to need little memory on a GPU, which is slow at small pieces."""


def next_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Label each token with itself, but for those that are padding or follow padding."""
    labels = input_ids.to(torch.int64)
    if attention_mask is None:
        return labels
    if attention_mask.shape != labels.shape:
        message = (
            f"attention_mask has shape {tuple(attention_mask.shape)} and input_ids "
            f"{tuple(labels.shape)}, so that it does not say which tokens are padding; pass labels "
            "with -100 there"
        )
        raise ShapeError(message)
    real = attention_mask.bool()
    counted = real.clone()
    counted[:, 1:] &= real[:, :-1]
    return labels.masked_fill(~counted, IGNORED)


def shifted(labels: Tensor) -> Tensor:
    """Move labels to the positions whose logits predict them: one to the left."""
    moved = torch.full_like(labels, IGNORED, dtype=torch.int64)
    moved[:, :-1] = labels[:, 1:]
    return moved


def token_cross_entropy(logits: Tensor, following: Tensor) -> Tensor:
    r"""Loss of each next token: :math:`\log\sum_je^{z_{tj}}-z_{t,y_{t+1}}`, at least 0.

    The loss as torch computes it, in the precision of the logits but at least float32. Logits are
    never copied as a whole: they are taken a block at a time, which is also faster.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    rows = max(1, (_CACHED if logits.device.type == "cpu" else _BOUNDED) // logits.shape[-1])
    tables = logits.flatten(0, 1), following.flatten()
    blocks = zip(*(torch.split(table, rows) for table in tables), strict=True)
    losses = [
        functional.cross_entropy(
            block.to(precision), labels, ignore_index=IGNORED, reduction="none"
        )
        for block, labels in blocks
    ]
    return torch.cat(losses).view(following.shape)
