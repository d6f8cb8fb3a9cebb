"""A small GPT: a causal language model over bytes, made of layers that opacus knows.

Its shape is GPT-2's: learned positions, layer norms before attention and before a network of four
times the width, residual sums. Where GPT-2 would get in the way of gradients of single examples it
differs: projections are `nn.Linear`, the output has weights of its own (not those of the
embedding), and positions are spread over the batch before they are embedded.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BYTES", "GPT", "LENGTH"]

LENGTH = 64
"""Bytes of a chunk."""
BYTES = 256
HEADS = 4
LAYERS = 2
INITIAL_DEVIATION = 0.02
"""Standard deviation of initial weights, as in GPT-2."""


class GPT(nn.Module):
    """A causal language model over bytes."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.bytes = nn.Embedding(BYTES, width)
        self.positions = nn.Embedding(length, width)
        blocks = [_Block(width) for _ in range(LAYERS)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, BYTES, bias=False)
        self.apply(_initialise)

    def forward(self, text: Tensor) -> Tensor:
        """Predict each next byte."""
        _, length = text.shape
        positions = torch.arange(length, device=text.device)
        embedded_positions = self.positions(positions.expand(text.shape))
        embedded_text = self.bytes(text) + embedded_positions
        hidden_states = self.blocks(embedded_text)
        normalised_states = self.norm(hidden_states)
        logits: Tensor = self.head(normalised_states)
        return logits


class _Block(nn.Module):
    """Attention and a network, each added to what it reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner_width = 4 * width
        self.attention = nn.Sequential(nn.LayerNorm(width), _Attention(width))
        self.network = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(in_features=width, out_features=inner_width),
            nn.GELU(approximate="tanh"),
            nn.Linear(in_features=inner_width, out_features=width),
        )

    def forward(self, hidden_states: Tensor) -> Tensor:
        attended = hidden_states + self.attention(hidden_states)
        output: Tensor = attended + self.network(attended)
        return output


class _Attention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)

    def forward(self, hidden_states: Tensor) -> Tensor:
        # From (rows, length, kinds * heads * width) to (kinds, rows, heads, length, width); the
        # kinds are queries, keys and values.
        projections = self.project(hidden_states)
        by_kind_and_head = projections.unflatten(dim=-1, sizes=(3, HEADS, -1))
        queries, keys, values = by_kind_and_head.permute(2, 0, 3, 1, 4)
        outputs_of_heads = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=True
        )
        side_by_side = outputs_of_heads.transpose(1, 2).flatten(start_dim=2)
        merged_output: Tensor = self.merge(side_by_side)
        return merged_output


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
