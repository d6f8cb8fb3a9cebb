"""What a model's outputs, targets and scores must satisfy, and what to do where they do not."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakbound._base.types import FloatArray
from leakbound.errors import NaNScoresError, ShapeError, TargetError, TiedScoresError
from leakbound.torch.tokens import IGNORED

_TIES_ALLOWED = 0.1
"""Largest share of examples that may share their score with another."""

_LISTED = 5
"""How many ids a message names."""

_CURES = {
    "cross_entropy": (
        "the loss of a confident model rounds to 0; use signal='logit_margin', which orders "
        "examples alike and does not underflow, or, for tokens, run the model in float64 and drop "
        "duplicate sequences"
    ),
    "loss_drop": (
        "pass as reference the model as it was before training, run both in float32 or float64, "
        "and drop duplicate examples"
    ),
    "gradient_dot": (
        "pass as reference the model as it was before training or before a step, and drop "
        "duplicate examples"
    ),
    "logit_margin": (
        "return logits and not probabilities from the model, run it in float32 (model.float(), no "
        "autocast) and drop duplicate examples"
    ),
}
_CURE = (
    "compute the signal in float32 or float64, from logits and not from probabilities; if its "
    "values are meant to repeat, return integers"
)
"""What to do about ties, by signal."""


def unwrapped(output: object) -> object:
    """Return the logits of a model's output: its attribute of that name, or all of it."""
    return getattr(output, "logits", output)


def check_logits(output: object, examples: int) -> Tensor:
    """Check that a model's output is one row of class logits for each example."""
    logits = unwrapped(output)
    if (
        isinstance(logits, Tensor)
        and logits.is_floating_point()
        and logits.ndim == 2
        and logits.shape[0] == examples
        and logits.shape[1] >= 2
    ):
        return logits
    tokens = isinstance(logits, Tensor) and logits.ndim == 3
    cure = (
        "for a language model pass signal='cross_entropy'"
        if tokens
        else "for other outputs pass signal=function(output, targets) -> tensor of shape (batch,)"
    )
    message = (
        f"the model must return logits of shape ({examples}, classes) with at least two classes "
        f"for a batch of {examples}, got {_described(logits)}; {cure}"
    )
    raise ShapeError(message)


def check_token_logits(output: object, labels: Tensor) -> Tensor:
    """Check that a model's output is one row of vocabulary logits for each token."""
    if labels.ndim != 2 or labels.is_floating_point() or labels.is_complex():
        message = (
            "labels must be one integer for each token, in a table of shape (batch, length), got "
            f"{labels.dtype} of shape {tuple(labels.shape)}"
        )
        raise TargetError(message)
    logits = unwrapped(output)
    if (
        isinstance(logits, Tensor)
        and logits.is_floating_point()
        and logits.ndim == 3
        and logits.shape[:2] == labels.shape
    ):
        return logits
    batch, length = labels.shape
    message = (
        f"the model must return logits of shape ({batch}, {length}, vocabulary) for labels of "
        f"shape ({batch}, {length}), got {_described(logits)}"
    )
    raise ShapeError(message)


def check_token_labels(
    following: Tensor, vocabulary: int, first: int, ids: NDArray[Any] | None
) -> None:
    """Check that labels are tokens of the vocabulary or -100, and that each example has one."""
    counted = following != IGNORED
    strange = counted & ((following < 0) | (following >= vocabulary))
    if strange.any():
        row, column = strange.nonzero()[0].tolist()
        message = (
            f"label {int(following[row, column])} at {_named([first + row], ids)} is outside "
            f"0 … {vocabulary - 1}, the vocabulary of the model's outputs; a token that must not "
            "count has label -100"
        )
        raise TargetError(message)
    empty = (~counted.any(1)).nonzero()[:, 0] + first
    if empty.numel():
        message = (
            f"{_named(empty.tolist(), ids)}: no token counts, so that there is no loss; the first "
            "token of a sequence is predicted from nothing, and -100 and padding are left out"
        )
        raise TargetError(message)


def check_binary(output: object, targets: Tensor, first: int, ids: NDArray[Any] | None) -> Tensor:
    """Check that a model's output is one logit for each target, and each target 0 or 1."""
    logits = unwrapped(output)
    if not (
        isinstance(logits, Tensor)
        and logits.is_floating_point()
        and logits.shape == targets.shape
        and logits.ndim in (1, 2)
        and logits.numel()
    ):
        message = (
            f"the model must return one logit for each label, of shape {tuple(targets.shape)} as "
            f"the targets, got {_described(logits)}; the shape is (batch, labels), or (batch,) for "
            "a single label"
        )
        raise ShapeError(message)
    strange = ~((targets == 0) | (targets == 1))
    if strange.any():
        row = int(strange.nonzero()[0, 0])
        message = (
            f"targets of several labels must be 0 or 1, got "
            f"{targets.flatten()[strange.flatten()][0].item()} at {_named([first + row], ids)}"
        )
        raise TargetError(message)
    return logits.reshape(len(targets), -1)


def check_targets(targets: Tensor, logits: Tensor, first: int, ids: NDArray[Any] | None) -> None:
    """Check that targets are class labels which the logits have a column for."""
    examples, classes = logits.shape
    if targets.shape != (examples,) or targets.is_floating_point() or targets.is_complex():
        message = (
            f"targets must be one integer class label for each example, got {targets.dtype} of "
            f"shape {tuple(targets.shape)} for a batch of {examples}; use argmax(1) of one-hot "
            "labels, squeeze(1) of a column, or a callable signal"
        )
        raise TargetError(message)
    labels = targets.to(torch.int64)
    if labels.amin() >= 0 and labels.amax() < classes:
        return
    row = int(((labels < 0) | (labels >= classes)).nonzero()[0, 0])
    message = (
        f"target {int(labels[row])} at {_named([first + row], ids)} is outside 0 … {classes - 1}, "
        f"the {classes} classes of the model's outputs; drop the example or relabel it"
    )
    raise TargetError(message)


def check_signal(result: object, name: str, examples: int) -> Tensor:
    """Check that a callable signal returned one real number for each example."""
    if isinstance(result, Tensor) and result.shape == (examples,) and not result.is_complex():
        return result.detach()
    got = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else type(result).__name__
    message = (
        f"signal {name} must return a tensor of real numbers of shape ({examples},) for a batch of "
        f"{examples}, got {got}; use reduction='none' in losses"
    )
    raise ShapeError(message)


def check_nan(values: FloatArray, ids: NDArray[Any], name: str) -> None:
    """Check that every score is a number."""
    rows = np.flatnonzero(np.isnan(values))
    if rows.size:
        message = (
            f"{name} is NaN for {rows.size} of {values.size} examples, {_named(rows, ids)}: the "
            "model's outputs there are NaN or infinite; look for a diverged model, an overflow in "
            "half precision (use model.float()) or bad inputs"
        )
        raise NaNScoresError(message)


def check_ties(values: FloatArray, name: str) -> None:
    """Check that rounding has not made too many scores equal.

    Tied examples cannot be told apart by an audit, which then reports less than there is.
    """
    tied = _tied(values)
    if tied <= _TIES_ALLOWED * values.size:
        return
    distinct, counts = np.unique(values, return_counts=True)
    often = int(np.argmax(counts))
    message = (
        f"{tied} of {values.size} examples share their {name} with another ({counts[often]} are "
        f"exactly {distinct[often] + 0.0:g}), so that no audit can tell them apart: "
        + _CURES.get(name, _CURE)
    )
    raise TiedScoresError(message)


def _tied(values: FloatArray) -> int:
    """Count the examples that share their score with another; needs one copy of the scores."""
    ordered = np.sort(values)
    shared = np.zeros(values.size, dtype=np.bool_)
    same = ordered[1:] == ordered[:-1]
    shared[1:] |= same
    shared[:-1] |= same
    return int(np.count_nonzero(shared))


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__


def _named(rows: Any, ids: NDArray[Any] | None) -> str:
    known = np.arange(rows[-1] + 1) if ids is None or rows[-1] >= len(ids) else ids
    listed = [str(known[row]) for row in rows[:_LISTED]]
    more = ", …" if len(rows) > _LISTED else ""
    return ("id " if len(rows) == 1 else "ids ") + ", ".join(listed) + more
