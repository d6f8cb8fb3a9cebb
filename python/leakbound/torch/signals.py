"""What can be measured on an example from the logits of a model: its margin or its loss."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from leakbound._base.checks import choice

Named: TypeAlias = Literal[
    "logit_margin", "cross_entropy", "binary_cross_entropy", "loss_drop", "gradient_dot"
]
Signal: TypeAlias = Named | Callable[[Any, Any], Tensor]


def signal_name(signal: Signal) -> str:
    """Return the name of a signal, which says what was measured."""
    if callable(signal):
        return str(getattr(signal, "__name__", type(signal).__name__))
    choice(signal, "signal", Named)
    return signal


def logit_margin(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Log-odds of the true class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`.

    Computed in float64 from the logits as they are, without forming a probability, so that it is
    right to a few units in the last place of the largest logit and never underflows: where the
    cross-entropy of a confident model rounds to 0, margins stay apart.
    """
    exact = float64(logits)
    own = targets.to(exact.device, torch.int64).unsqueeze(1)
    others = exact.scatter(1, own, -torch.inf)
    return exact.gather(1, own).squeeze(1) - others.logsumexp(1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Cross-entropy loss of the class: :math:`\log\sum_je^{z_j}-z_y`, at least 0.

    The loss as torch computes it, in the precision of the logits but at least float32: the number
    that training reports. It orders examples as the logit margin does until it rounds to 0, in
    float32 from margins of about 17 on.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    targets = targets.to(logits.device, torch.int64)
    return functional.cross_entropy(logits.to(precision), targets, reduction="none")


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Mean loss of independent labels: :math:`\frac1L\sum_l\log(1+e^{-s_lz_l})`, at least 0.

    Here :math:`s_l` is 1 where the label holds and -1 where it does not. Computed in float64 from
    the logits, so that it is right to a few units in the last place and does not round to 0.
    """
    exact = float64(logits)
    signs = 2 * targets.to(exact.device, exact.dtype) - 1
    return -functional.logsigmoid(signs * exact).mean(1)


def float64(logits: Tensor) -> Tensor:
    """Return logits or losses in float64, on the CPU where their device (Apple's) has none."""
    return (logits.cpu() if logits.device.type == "mps" else logits).to(torch.float64)
