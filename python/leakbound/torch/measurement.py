"""From a batch to one number for each of its examples, by the signal asked for."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from leakbound.errors import IncompatibleOptionsError
from leakbound.torch.batch import Batch
from leakbound.torch.checks import (
    check_binary,
    check_logits,
    check_signal,
    check_targets,
    check_token_labels,
    check_token_logits,
    unwrapped,
)
from leakbound.torch.signals import (
    Named,
    Signal,
    binary_cross_entropy,
    cross_entropy,
    float64,
    logit_margin,
    signal_name,
)
from leakbound.torch.tokens import IGNORED, shifted, token_cross_entropy

Measure: TypeAlias = Callable[[Batch], Tensor]

COMPARING = ("loss_drop", "gradient_dot")
"""The signals that compare a model with a reference."""


def measure(model: nn.Module, signal: Signal, reference: nn.Module) -> Measure:
    """Return the function that measures `signal` on a batch."""
    if callable(signal):
        name = signal_name(signal)
        return lambda batch: check_signal(
            signal(batch.through(model), batch.labels()), name, len(batch)
        )
    if signal == "loss_drop":
        return lambda batch: _loss(reference, batch) - _loss(model, batch)
    if signal == "gradient_dot":
        return _gradient_dot(model, reference)
    of_output = _OF_OUTPUT[signal]
    return lambda batch: of_output(batch.through(model), batch)


def token_losses_of(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the loss of each next token, and which of them count."""
    logits = check_token_logits(output, batch.targets)
    following = shifted(batch.targets)
    check_token_labels(following, logits.shape[2], batch.first, batch.ids)
    there = following.to(logits.device, non_blocking=True)
    return token_cross_entropy(logits, there), following != IGNORED


def _margin(output: object, batch: Batch) -> Tensor:
    return logit_margin(*_classes(output, batch))


def _cross_entropy(output: object, batch: Batch) -> Tensor:
    """Loss of the class, or mean loss of the tokens that count."""
    if _dimensions(output) == 3:
        losses, counted = token_losses_of(output, batch)
        total = float64(losses).sum(1)
        return total / counted.sum(1).to(total.device)
    return cross_entropy(*_classes(output, batch))


def _binary_cross_entropy(output: object, batch: Batch) -> Tensor:
    logits = check_binary(output, batch.targets, batch.first, batch.ids)
    return binary_cross_entropy(logits, batch.labels().reshape(logits.shape))


_OF_OUTPUT: dict[Named, Callable[[object, Batch], Tensor]] = {
    "logit_margin": _margin,
    "cross_entropy": lambda output, batch: -_cross_entropy(output, batch),
    "binary_cross_entropy": lambda output, batch: -_binary_cross_entropy(output, batch),
}
"""The signals that one model's output is enough for."""


def _classes(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Check logits and labels of a classifier, and return both on the device."""
    logits = check_logits(output, len(batch))
    check_targets(batch.targets, logits, batch.first, batch.ids)
    return logits, batch.labels()


def _dimensions(output: object) -> int:
    logits = unwrapped(output)
    return logits.ndim if isinstance(logits, Tensor) else 0


def _loss(model: nn.Module, batch: Batch, parameters: dict[str, Tensor] | None = None) -> Tensor:
    """Loss of each example: that of several labels where each logit has a target of its own."""
    output = batch.through(model, parameters)
    several = 0 < _dimensions(output) == batch.targets.ndim
    return float64((_binary_cross_entropy if several else _cross_entropy)(output, batch))


def _gradient_dot(model: nn.Module, reference: nn.Module) -> Measure:
    r"""Measure :math:`\langle\nabla\ell_i(\theta_0),\theta_0-\theta\rangle`.

    The product with all gradients of a batch at once, by two passes back: the gradient of
    :math:`\sum_iu_i\ell_i` times the displacement is linear in u, and its derivative in
    :math:`u_i` is what is wanted. No gradient of a single example is ever stored.
    """
    weights, moved = _weights(reference), _weights(model)
    if {name: w.shape for name, w in weights.items()} != {n: w.shape for n, w in moved.items()}:
        message = (
            "gradient_dot needs a reference whose parameters have the names and shapes of the "
            "model's; pass the same model at an earlier moment of its training"
        )
        raise IncompatibleOptionsError(message)
    steps = [weight - moved[name] for name, weight in weights.items()]

    def of_batch(batch: Batch) -> Tensor:
        leaves = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        # Fused attention has no second derivative; its plain form has.
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            losses = _loss(reference, batch, leaves)
            share = torch.ones_like(losses, requires_grad=True)
            gradients = torch.autograd.grad(
                losses, list(leaves.values()), share, create_graph=True, materialize_grads=True
            )
            product = torch.stack([(g * v).sum() for g, v in zip(gradients, steps, strict=True)])
            (products,) = torch.autograd.grad(product.sum(), share, materialize_grads=True)
        return products

    return of_batch


def _weights(model: nn.Module) -> dict[str, Tensor]:
    named = model.named_parameters()
    return {name: weight.detach() for name, weight in named if weight.is_floating_point()}
