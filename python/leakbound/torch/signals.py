"""What is measured on a batch: one number for each of its examples."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from leakbound._base.checks import choice
from leakbound.errors import OptionError
from leakbound.torch.checks import (
    check_binary,
    check_logits,
    check_signal,
    check_targets,
    check_token_labels,
    check_token_logits,
    unwrapped,
)
from leakbound.torch.data import IGNORED, Batch

Named: TypeAlias = Literal[
    "logit_margin", "cross_entropy", "binary_cross_entropy", "loss_drop", "gradient_dot"
]
Signal: TypeAlias = Named | Callable[[Any, Any], Tensor]
Measure: TypeAlias = Callable[[Batch], Tensor]

COMPARING = ("loss_drop", "gradient_dot")  # the signals that compare a model with a reference

# Logits whose losses are computed together: few enough to stay in a processor's cache on the CPU,
# and to need little memory on a GPU, which is slow at small pieces.
_CACHED, _BOUNDED = 1 << 19, 1 << 26


def signal_name(signal: Signal) -> str:
    """Return the name of a signal, which says what was measured."""
    if callable(signal):
        return str(getattr(signal, "__name__", type(signal).__name__))
    choice(signal, "signal", Named)
    return signal


def logit_margin(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Log-odds of the true class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`, in float64.

    Right to a few units in the last place of the largest logit; it never underflows.
    """
    exact = float64(logits)
    own = targets.to(exact.device, torch.int64).unsqueeze(1)
    others = exact.scatter(1, own, -torch.inf)
    return exact.gather(1, own).squeeze(1) - others.logsumexp(1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Cross-entropy loss of the class: :math:`\log\sum_je^{z_j}-z_y`, as training reports it.

    In the precision of the logits but at least float32, where it is 0 from margins of 17 on.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    targets = targets.to(logits.device, torch.int64)
    return functional.cross_entropy(logits.to(precision), targets, reduction="none")


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Mean loss of independent labels: :math:`\frac1L\sum_l\log(1+e^{-s_lz_l})`, at least 0.

    Here :math:`s_l` is 1 where the label holds and -1 where it does not; in float64.
    """
    exact = float64(logits)
    signs = 2 * targets.to(exact.device, exact.dtype) - 1
    return -functional.logsigmoid(signs * exact).mean(1)


def float64(logits: Tensor) -> Tensor:
    """Return logits or losses in float64, on the CPU where their device (Apple's) has none."""
    return (logits.cpu() if logits.device.type == "mps" else logits).to(torch.float64)


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
    return lambda batch: _OF_OUTPUT[signal](batch.through(model), batch)


def token_losses_of(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the loss of each next token, and which of them count."""
    logits = check_token_logits(output, batch.targets)
    # Labels at the positions whose logits predict them: one to the left.
    following = torch.full_like(batch.targets, IGNORED, dtype=torch.int64)
    following[:, :-1] = batch.targets[:, 1:]
    check_token_labels(following, logits.shape[2], batch)
    there = following.to(logits.device, non_blocking=True)
    return _token_cross_entropy(logits, there), following != IGNORED


def _cross_entropy(output: object, batch: Batch) -> Tensor:
    """Loss of the class, or mean loss of the tokens that count."""
    if _dimensions(output) == 3:
        losses, counted = token_losses_of(output, batch)
        total = float64(losses).sum(1)
        return total / counted.sum(1).to(total.device)
    return cross_entropy(*_classes(output, batch))


def _binary_cross_entropy(output: object, batch: Batch) -> Tensor:
    logits = check_binary(output, batch)
    return binary_cross_entropy(logits, batch.labels().reshape(logits.shape))


# The signals that one model's output is enough for.
_OF_OUTPUT: dict[Named, Callable[[object, Batch], Tensor]] = {
    "logit_margin": lambda output, batch: logit_margin(*_classes(output, batch)),
    "cross_entropy": lambda output, batch: -_cross_entropy(output, batch),
    "binary_cross_entropy": lambda output, batch: -_binary_cross_entropy(output, batch),
}


def _classes(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Check logits and labels of a classifier, and return both on the device."""
    logits = check_logits(output, batch)
    check_targets(logits, batch)
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
        message = "gradient_dot needs a reference with the names and shapes of the model's weights"
        raise OptionError(message)
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


def _token_cross_entropy(logits: Tensor, following: Tensor) -> Tensor:
    r"""Loss of each next token: :math:`\log\sum_je^{z_{tj}}-z_{t,y_{t+1}}`, at least 0.

    In the precision of the logits but at least float32; a block of logits at a time.
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
