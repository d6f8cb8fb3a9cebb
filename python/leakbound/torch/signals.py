"""What is measured on a batch, and what outputs, targets and scores must satisfy."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakbound._base.checks import choice
from leakbound._base.messages import Message
from leakbound._base.types import AnyArray, FloatArray, SignalName
from leakbound.errors import InputError
from leakbound.torch.asking import Asked, unwrapped
from leakbound.torch.columns import IGNORED
from leakbound.torch.data import Batch

Signal: TypeAlias = SignalName | Callable[[Any, Tensor], Tensor]
Measure: TypeAlias = Callable[[Batch], Tensor]

# Logits whose losses are computed together: few enough to stay in a processor's cache on the CPU,
# and to need little memory on a GPU, which is slow at small pieces.
_CACHED = 1 << 19
_BOUNDED = 1 << 26
_TIES_ALLOWED = 0.1  # share of examples that may share their score: more cost an audit its power
_ALIKE = 0.02  # what half precision may round
_LISTED = 5  # ids that a message names


def signal_name(signal: Signal) -> str:
    """Return the name of a signal, which says what was measured."""
    if callable(signal):
        return str(getattr(signal, "__name__", type(signal).__name__))
    choice(signal, name="signal", allowed=SignalName)
    return signal


def logit_margin(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Log-odds of the true class: :math:`z_y-\log\sum_{j\ne y}e^{z_j}`, in float64.

    Right to a few units in the last place of the largest logit; it never underflows.
    """
    # The own class is taken out of the sum before it is taken, not after.
    exact = float64(logits)
    own = targets.to(exact.device, torch.int64).unsqueeze(1)
    others = exact.scatter(1, own, -torch.inf)
    return exact.gather(1, own).squeeze(1) - others.logsumexp(1)


def float64(logits: Tensor) -> Tensor:
    """Return logits or losses in float64, on the CPU where their device (Apple's) has none."""
    if logits.device.type == "mps":
        logits = logits.cpu()
    return logits.to(torch.float64)


def measure(
    model: nn.Module, signal: Signal, reference: nn.Module, *, next_token: bool | None = None
) -> Measure:
    """Return the function that measures `signal` on a batch."""
    asked = Asked(model, next_token=next_token)
    if callable(signal):
        name = signal_name(signal)
        return lambda batch: _one_each(
            signal(asked(batch), batch.labels()), name=name, examples=len(batch)
        )
    if signal == "loss_drop":
        before = Asked(reference, next_token=next_token)
        return lambda batch: _loss(before, batch) - _loss(asked, batch)
    if signal == "cross_entropy":
        return lambda batch: -_cross_entropy(asked, output=asked(batch), batch=batch)
    if signal == "binary_cross_entropy":
        return lambda batch: -_binary_cross_entropy(asked(batch), batch)
    return lambda batch: logit_margin(*_classes(asked(batch), batch))


def token_losses_of(asked: Asked, output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the loss of each label, where the output that predicts it is, and which count."""
    logits = _token_logits(output, batch.targets)
    _check_token_labels(logits.shape[2], batch)
    following = asked.predicts_next(batch, logits)
    labels = batch.targets.to(torch.int64)
    real = None
    if not asked.decodes:
        real = batch.others.get("attention_mask")
    if real is not None and real.shape == labels.shape:
        real = real.to(labels.device)
        labels = labels.masked_fill(real == 0, IGNORED)
        if following:  # nor does what is predicted from padding
            labels[:, 1:].masked_fill_(real[:, :-1] == 0, IGNORED)
    if following:  # labels where the outputs that predict them are: one to the left
        labels = functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
    counted = labels != IGNORED
    empty = (~counted.any(1)).nonzero()[:, 0].tolist()
    if empty:
        ignored = "those with label -100"
        if following:
            ignored = "padding, -100 and the first"
        raise InputError(f"{_named(empty, batch)}: no token counts but {ignored}")
    there = labels.to(logits.device, non_blocking=True)
    return _token_cross_entropy(logits, there), counted


def _cross_entropy(asked: Asked, output: object, batch: Batch) -> Tensor:
    """Loss of the class, or mean loss of the tokens that count."""
    if _dimensions(output) == 3:
        losses, counted = token_losses_of(asked, output=output, batch=batch)
        total = float64(losses).sum(1)
        return total / counted.sum(1).to(total.device)
    # In the precision of the logits but at least float32, where it is 0 from margins of 17 on.
    logits, targets = _classes(output, batch)
    precision = torch.promote_types(logits.dtype, torch.float32)
    labels = targets.to(logits.device, torch.int64)
    return functional.cross_entropy(logits.to(precision), labels, reduction="none")


def _binary_cross_entropy(output: object, batch: Batch) -> Tensor:
    r"""Mean loss of independent labels: :math:`\frac1L\sum_l\log(1+e^{-s_lz_l})`, in float64.

    Here :math:`s_l` is 1 where the label holds and -1 where it does not.
    """
    exact = float64(_binary_logits(output, batch))
    signs = 2 * batch.labels().reshape(exact.shape).to(exact.device, exact.dtype) - 1
    return -functional.logsigmoid(signs * exact).mean(1)


def _classes(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Check logits and labels of a classifier, and return both on the device."""
    logits = unwrapped(output)
    targets = batch.targets
    examples = len(batch)
    if not (_is_floating(logits, 2) and len(logits) == examples and logits.shape[1] >= 2):
        message = (
            "the model must return logits of shape ({examples}, classes), got {got}; for a "
            "language model pass {signal='cross_entropy'}, for other outputs "
            "signal=function(output, targets) -> tensor of shape (batch,)"
        )
        raise InputError(Message(message, examples=examples, got=_described(logits)))
    if targets.shape != (examples,) or targets.is_floating_point() or targets.is_complex():
        raise InputError(
            f"targets must be one integer class label for each example, got {_described(targets)} "
            f"for a batch of {examples}"
        )
    labels = targets.to(torch.int64)
    classes = logits.shape[1]
    strange = (labels < 0) | (labels >= classes)
    if strange.any():
        row = int(strange.nonzero()[0, 0])
        raise InputError(
            f"target {int(labels[row])} at {_named([row], batch)} is outside 0 … {classes - 1}, "
            "the classes of the model's outputs"
        )
    return logits, batch.labels()


def _dimensions(output: object) -> int:
    logits = unwrapped(output)
    if isinstance(logits, Tensor):
        return logits.ndim
    return 0


def _loss(asked: Asked, batch: Batch) -> Tensor:
    """Loss of each example: that of several labels where each logit has a target of its own."""
    output = asked(batch)
    # A row of labels has as many dimensions as its logits.
    if 0 < _dimensions(output) == batch.targets.ndim:
        return float64(_binary_cross_entropy(output, batch))
    return float64(_cross_entropy(asked, output=output, batch=batch))


def _token_cross_entropy(logits: Tensor, predicted: Tensor) -> Tensor:
    r"""Loss of each predicted label: :math:`\log\sum_je^{z_{tj}}-z_{t,y_t}`, at least 0.

    In the precision of the logits but at least float32; a block of logits at a time.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    most = _BOUNDED
    if logits.device.type == "cpu":
        most = _CACHED
    rows = max(1, most // logits.shape[-1])
    tables = logits.flatten(0, 1), predicted.flatten()
    blocks = zip(*(torch.split(table, rows) for table in tables), strict=True)
    losses = [
        functional.cross_entropy(
            block.to(precision), labels, ignore_index=IGNORED, reduction="none"
        )
        for block, labels in blocks
    ]
    return torch.cat(losses).view(predicted.shape)


def _token_logits(output: object, labels: Tensor) -> Tensor:
    """Check that a model's output is one row of vocabulary logits for each token."""
    if labels.ndim != 2 or labels.is_floating_point() or labels.is_complex():
        shape = "in a table of shape (batch, length)"
        raise InputError(
            f"labels must be one integer for each token, {shape}, got {_described(labels)}"
        )
    logits = unwrapped(output)
    if _is_floating(logits, 3) and logits.shape[:2] == labels.shape:
        return logits
    batch, length = labels.shape
    raise InputError(
        f"the model must return logits of shape ({batch}, {length}, vocabulary) for labels of "
        f"shape ({batch}, {length}), got {_described(logits)}"
    )


def _check_token_labels(classes: int, batch: Batch) -> None:
    """Check that labels are -100 or classes of the outputs: tokens of the vocabulary."""
    labels = batch.targets.to(torch.int64)
    strange = (labels != IGNORED) & ((labels < 0) | (labels >= classes))
    if strange.any():
        row, column = strange.nonzero()[0].tolist()
        raise InputError(
            f"label {int(labels[row, column])} at {_named([row], batch)} is outside 0 … "
            f"{classes - 1}, the vocabulary; a token that must not count has label -100"
        )


def _binary_logits(output: object, batch: Batch) -> Tensor:
    """Check that a model's output is one logit for each target, and each target 0 or 1."""
    logits = unwrapped(output)
    targets = batch.targets
    if not _is_floating(logits, 1, 2) or logits.shape != targets.shape or not logits.numel():
        raise InputError(
            f"the model must return one logit for each label, of shape {tuple(targets.shape)} as "
            f"the targets, got {_described(logits)}"
        )
    strange = ~((targets == 0) | (targets == 1))
    if strange.any():
        raise InputError(
            f"targets of several labels must be 0 or 1, got {targets[strange][0].item()} at "
            f"{_named([int(strange.nonzero()[0, 0])], batch)}"
        )
    return logits.reshape(len(targets), -1)


def _one_each(values: object, name: str, examples: int) -> Tensor:
    """Check that a callable signal returned one real number for each example."""
    if isinstance(values, Tensor) and values.shape == (examples,) and not values.is_complex():
        return values.detach()
    raise InputError(
        f"signal {name} must return a tensor of real numbers of shape ({examples},) for a batch of "
        f"{examples}, got {_described(values)}; use reduction='none' in losses"
    )


def check_nan(values: FloatArray, ids: AnyArray, name: str) -> None:
    """Check that every score is a number."""
    rows = np.flatnonzero(np.isnan(values))
    if rows.size:
        raise InputError(
            f"{name} is NaN for {rows.size} of {values.size} examples, {_listed(ids[rows])}: look "
            "for a diverged model, an overflow in half precision (model.float()) or bad inputs"
        )


def check_alone(among: FloatArray, alone: FloatArray, near: float = _ALIKE) -> None:
    """Check that examples are scored alone, or among their own copies, as they were among others.

    Where members and others are in different batches, another score would tell them apart. Copies
    leave the shape of the batch, and so what a model draws at random for it.
    """
    if not np.allclose(among, alone, rtol=near, atol=near, equal_nan=True):
        raise InputError(
            "the model's answer about an example depends on the other examples of its batch, as "
            "with BatchNorm without running statistics: score by a model that answers row by row"
        )


def check_ties(values: FloatArray, name: str) -> None:
    """Check that rounding has not made too many scores equal: an audit cannot tell these apart."""
    distinct, counts = np.unique(values, return_counts=True)
    tied = int(counts[counts > 1].sum())
    often = int(np.argmax(counts))
    if tied <= _TIES_ALLOWED * values.size:
        return
    raise InputError(
        f"{tied} of {values.size} examples share their {name} with another ({counts[often]} are "
        f"exactly {distinct[often] + 0.0:g}), so that no audit can tell them apart: compute it "
        "from logits in float32 or float64 (model.float(), no autocast), drop duplicates, and for "
        "classes use signal='logit_margin', which does not round to 0 as losses do; pass as "
        "reference the model as it was before training; return integers if values are meant to "
        "repeat"
    )


def _is_floating(value: object, *dimensions: int) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in dimensions


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__


def _named(rows: list[int], batch: Batch) -> str:
    places = batch.first + np.array(rows)
    if batch.ids is None or places[-1] >= len(batch.ids):
        return _listed(places)
    return _listed(batch.ids[places])


def _listed(ids: AnyArray) -> str:
    listed = ", ".join(map(str, ids[:_LISTED]))
    if len(ids) == 1:
        return f"id {listed}"
    if len(ids) > _LISTED:
        return f"ids {listed}, …"
    return f"ids {listed}"
