"""Scoring: one forward pass over the data, one number for each example."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from leakbound._progress import track
from leakbound._typing import ArrayInput
from leakbound._validate import check_ids, check_length, instance, integer, vector
from leakbound.errors import DeviceMemoryError, ShapeError
from leakbound.torch._checks import (
    check_logits,
    check_nan,
    check_signal,
    check_targets,
    check_ties,
)
from leakbound.torch._data import EMPTY, as_tensor, read
from leakbound.torch._placement import evaluating, precision, to_device
from leakbound.torch._scores import Scores
from leakbound.torch._signals import NAMED, Signal, signal_name

__all__ = ["score"]


def score(
    model: nn.Module,
    data: Dataset[Any] | DataLoader[Any] | tuple[Any, Any] | list[Any],
    *,
    signal: Signal = "logit_margin",
    batch_size: int = 256,
    device: str | torch.device = "auto",
    ids: ArrayInput | None = None,
    progress: bool = True,
) -> Scores:
    r"""Score examples by how much `model` acts as if it was trained on them.

    One forward pass in evaluation mode, without gradients. Afterwards the model is as it was: the
    mode of every submodule, the device, gradients and torch's random state on the CPU.

    Parameters
    ----------
    model : torch.nn.Module
        Maps a batch of inputs to logits of shape (batch, classes), or to an object with such
        ``logits``; for a callable `signal`, to anything.
    data : Dataset, DataLoader, or pair of tensors or arrays
        Pairs (x, y) of an input and its class label; or all inputs and all labels, of the same
        length. A loader must keep the order of its dataset and not drop any example. Inputs in
        float64, NumPy's default, are given the precision of the model.
    signal : {"logit_margin", "cross_entropy"} or callable
        What to measure; higher must mean more likely a member.

        - "logit_margin": :math:`z_y-\log\sum_{j\ne y}e^{z_j}`, the log-odds of the label, in
          float64. Orders examples as the loss does and keeps confident ones apart.
        - "cross_entropy": minus the loss, as torch computes it in float32 (float64 for logits in
          float64). Confident examples round to 0 and are then refused as ties.
        - a function of the model's output and the targets of a batch, both on the model's device,
          that returns a tensor of shape (batch,).
    batch_size : int
        Examples in a batch, at least 1; a DataLoader keeps its own.
    device : str or torch.device
        Where to run. "auto" stays where the model is; from the CPU it goes to the accelerator if
        there is one. The model's parameters are moved there and back.
    ids : array-like of shape (m,), optional
        A different number or string for each example, in the order of `data`; by default
        0, 1, …, m - 1. Pass the plan's: ``ids=plan.ids``.
    progress : bool
        Show a bar on standard error, if that is a terminal and the pass lasts over a second.

    Returns
    -------
    Scores
        Values in float64, ids and the name of the signal, in the order of `data`.

    Raises
    ------
    OptionTypeError, OptionError
        If an option has the wrong type or value, the device does not exist, or `data` does not
        yield pairs.
    IncompatibleOptionsError
        If a model spread over several devices is asked to one of them.
    VisitOrderError
        If a loader shuffles, repeats or drops examples.
    ShapeError
        If `data` is empty, the model's outputs are not (batch, classes), or a callable does not
        return (batch,).
    TargetError
        If a target is not an integer from 0 to classes - 1, with its id.
    LengthMismatchError
        If there is not one id for each example, or one target for each input.
    DuplicateIdsError
        If an id occurs twice.
    NaNScoresError
        If a score is NaN, with the ids.
    TiedScoresError
        If more than 10 % of the examples share their score with another, unless a callable
        returned integers or booleans and so meant it.
    DeviceMemoryError
        If a batch does not fit in the device's memory.

    Notes
    -----
    The log-odds are the score of N. Carlini et al., "Membership Inference Attacks From First
    Principles", 2022, arXiv:2112.03570, equation 3, computed from logits.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Linear(4, 3)
    >>> data = torch.utils.data.TensorDataset(torch.randn(5, 4), torch.tensor([0, 1, 2, 1, 0]))
    >>> scores = score(model, data, ids=["a", "b", "c", "d", "e"])
    >>> len(scores), scores.values.dtype
    (5, dtype('float64'))
    """
    instance(model, "model", nn.Module)
    name = signal_name(signal)
    size = integer(batch_size, "batch_size", least=1)
    batches = read(data, batch_size=size)
    labels = None if ids is None else vector(ids, "ids", kinds="biufSUOT")
    if labels is not None and batches.examples is not None:
        check_length(labels, batches.examples, "ids")
    try:
        with evaluating(model, device) as where:
            shown = track(batches, "scoring", total=batches.batches, shown=progress)
            result = _measure(model, shown, signal, where, labels)
    except torch.OutOfMemoryError as error:
        message = (
            f"scoring does not fit in the memory of the device: pass batch_size={-(-size // 4)} or "
            "less (to the loader, if data is one), or device='cpu'"
        )
        raise DeviceMemoryError(message) from error
    values = result.to(torch.float64).numpy()
    labels = np.arange(values.size) if labels is None else labels
    check_ids(labels, np.zeros(values.size, dtype=np.bool_))
    check_nan(values, labels, name)
    if result.is_floating_point():
        check_ties(values, name)
    return Scores(values, np.array(labels), name)


def _measure(
    model: nn.Module,
    batches: Iterable[tuple[Any, Any]],
    signal: Signal,
    device: torch.device,
    ids: NDArray[Any] | None,
) -> Tensor:
    """Return the signal of every example; one wait for the device, at the end."""
    parts: list[Tensor] = []
    first = 0
    wanted = precision(model)
    for inputs, targets in batches:
        x, y = as_tensor(inputs, "inputs"), as_tensor(targets, "targets")
        x = x.to(wanted) if x.dtype == torch.float64 else x
        output = model(to_device(x, device))
        if callable(signal):
            part = signal(output, to_device(y, device))
            parts.append(check_signal(part, signal_name(signal), len(x)))
        else:
            logits = check_logits(output, len(x))
            check_targets(y, logits, first, ids)
            parts.append(NAMED[signal](logits, to_device(y, device)))
        first += len(x)
    if not parts:
        raise ShapeError(EMPTY)
    return torch.cat(parts).cpu()
