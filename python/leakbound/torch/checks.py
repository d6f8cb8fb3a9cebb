"""What a model's outputs, targets and scores must satisfy, and what to do where they do not."""

from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakbound._base.types import FloatArray
from leakbound.errors import InputError
from leakbound.torch.data import IGNORED, Batch

_TIES_ALLOWED = 0.1  # share of examples that may share their score: more cost an audit its power
_LISTED = 5  # ids that a message names

# What to do about ties, by signal.
_CURES = {
    "cross_entropy": "the loss of a confident model rounds to 0: use signal='logit_margin', or for "
    "tokens run the model in float64 and drop duplicate sequences",
    "loss_drop": "pass as reference the model as it was before training, run both in float32 or "
    "float64, and drop duplicates",
    "gradient_dot": "pass as reference the model as it was before training or before a step, and "
    "drop duplicates",
    "logit_margin": "return logits and not probabilities from the model, run it in float32 "
    "(model.float(), no autocast) and drop duplicates",
}
_CURE = (
    "compute the signal in float32 or float64, from logits; if its values are meant to repeat, "
    "return integers"
)


def unwrapped(output: object) -> object:
    """Return the logits of a model's output: its attribute of that name, or all of it."""
    return getattr(output, "logits", output)


def check_logits(output: object, batch: Batch) -> Tensor:
    """Check that a model's output is one row of class logits for each example."""
    logits, examples = unwrapped(output), len(batch)
    if _is_floating(logits, 2) and logits.shape[0] == examples and logits.shape[1] >= 2:
        return logits
    message = (
        f"the model must return logits of shape ({examples}, classes) for a batch of {examples}, "
        f"got {_described(logits)}; for a language model pass signal='cross_entropy', for other "
        "outputs signal=function(output, targets) -> tensor of shape (batch,)"
    )
    raise InputError(message)


def check_token_logits(output: object, labels: Tensor) -> Tensor:
    """Check that a model's output is one row of vocabulary logits for each token."""
    if labels.ndim != 2 or labels.is_floating_point() or labels.is_complex():
        shape = "in a table of shape (batch, length)"
        message = f"labels must be one integer for each token, {shape}, got {_described(labels)}"
        raise InputError(message)
    logits = unwrapped(output)
    if _is_floating(logits, 3) and logits.shape[:2] == labels.shape:
        return logits
    batch, length = labels.shape
    message = (
        f"the model must return logits of shape ({batch}, {length}, vocabulary) for labels of "
        f"shape ({batch}, {length}), got {_described(logits)}"
    )
    raise InputError(message)


def check_token_labels(following: Tensor, vocabulary: int, batch: Batch) -> None:
    """Check that labels are tokens of the vocabulary or -100, and that each example has one."""
    counted = following != IGNORED
    strange = counted & ((following < 0) | (following >= vocabulary))
    if strange.any():
        row, column = strange.nonzero()[0].tolist()
        message = (
            f"label {int(following[row, column])} at {_named([row], batch)} is outside 0 … "
            f"{vocabulary - 1}, the vocabulary; a token that must not count has label -100"
        )
        raise InputError(message)
    empty = (~counted.any(1)).nonzero()[:, 0].tolist()
    if empty:
        message = f"{_named(empty, batch)}: no token counts but padding, -100 and the first"
        raise InputError(message)


def check_binary(output: object, batch: Batch) -> Tensor:
    """Check that a model's output is one logit for each target, and each target 0 or 1."""
    logits, targets = unwrapped(output), batch.targets
    if not _is_floating(logits, 1, 2) or logits.shape != targets.shape or not logits.numel():
        message = (
            f"the model must return one logit for each label, of shape {tuple(targets.shape)} as "
            f"the targets, got {_described(logits)}"
        )
        raise InputError(message)
    strange = ~((targets == 0) | (targets == 1))
    if strange.any():
        message = (
            f"targets of several labels must be 0 or 1, got {targets[strange][0].item()} at "
            f"{_named([int(strange.nonzero()[0, 0])], batch)}"
        )
        raise InputError(message)
    return logits.reshape(len(targets), -1)


def check_targets(logits: Tensor, batch: Batch) -> None:
    """Check that targets are class labels which the logits have a column for."""
    (examples, classes), targets = logits.shape, batch.targets
    if targets.shape != (examples,) or targets.is_floating_point() or targets.is_complex():
        message = (
            f"targets must be one integer class label for each example, got {_described(targets)} "
            f"for a batch of {examples}"
        )
        raise InputError(message)
    labels = targets.to(torch.int64)
    strange = (labels < 0) | (labels >= classes)
    if strange.any():
        row = int(strange.nonzero()[0, 0])
        message = (
            f"target {int(labels[row])} at {_named([row], batch)} is outside 0 … {classes - 1}, "
            "the classes of the model's outputs"
        )
        raise InputError(message)


def check_signal(values: object, name: str, examples: int) -> Tensor:
    """Check that a callable signal returned one real number for each example."""
    if isinstance(values, Tensor) and values.shape == (examples,) and not values.is_complex():
        return values.detach()
    message = (
        f"signal {name} must return a tensor of real numbers of shape ({examples},) for a batch of "
        f"{examples}, got {_described(values)}; use reduction='none' in losses"
    )
    raise InputError(message)


def check_nan(values: FloatArray, ids: NDArray[Any], name: str) -> None:
    """Check that every score is a number."""
    rows = np.flatnonzero(np.isnan(values))
    if rows.size:
        message = (
            f"{name} is NaN for {rows.size} of {values.size} examples, {_listed(ids[rows])}: look "
            "for a diverged model, an overflow in half precision (model.float()) or bad inputs"
        )
        raise InputError(message)


def check_ties(values: FloatArray, name: str) -> None:
    """Check that rounding has not made too many scores equal.

    Tied examples cannot be told apart by an audit, which then reports less than there is.
    """
    # One copy of the scores, sorted; who equals a neighbour is tied.
    ordered = np.sort(values)
    same = ordered[1:] == ordered[:-1]
    tied = int(np.count_nonzero(np.append(same, False) | np.append(False, same)))
    if tied <= _TIES_ALLOWED * values.size:
        return
    distinct, counts = np.unique(values, return_counts=True)
    often = int(np.argmax(counts))
    message = (
        f"{tied} of {values.size} examples share their {name} with another ({counts[often]} are "
        f"exactly {distinct[often] + 0.0:g}), so that no audit can tell them apart: "
        + _CURES.get(name, _CURE)
    )
    raise InputError(message)


def _is_floating(value: object, *dimensions: int) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in dimensions


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__


def _named(rows: list[int], batch: Batch) -> str:
    places = batch.first + np.array(rows)
    known = batch.ids is not None and places[-1] < len(batch.ids)
    return _listed(batch.ids[places] if batch.ids is not None and known else places)


def _listed(ids: NDArray[Any]) -> str:
    more = ", …" if len(ids) > _LISTED else ""
    return ("id " if len(ids) == 1 else "ids ") + ", ".join(map(str, ids[:_LISTED])) + more
