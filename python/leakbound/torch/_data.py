"""Batches of inputs and targets in a known order, from whatever the user has."""

from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    TensorDataset,
)

from leakbound.errors import (
    ArrayTypeError,
    LengthMismatchError,
    OptionTypeError,
    ShapeError,
    VisitOrderError,
)

__all__ = ["EMPTY", "Batches", "as_tensor", "read"]


EMPTY = "data is empty: there is nothing to score"


@dataclass(frozen=True)
class Batches:
    """Pairs (inputs, targets) of whole batches, and what is known of their number."""

    pairs: Iterable[Any]
    examples: int | None
    batches: int | None

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for pair in self.pairs:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                message = (
                    "data must yield pairs (inputs, targets), got "
                    + (f"{len(pair)} parts" if isinstance(pair, tuple | list) else _name(pair))
                    + "; wrap the dataset so that each item is (x, y)"
                )
                raise OptionTypeError(message)
            yield pair[0], pair[1]


def read(data: Any, *, batch_size: int) -> Batches:
    """Prepare `data` for one pass in its own order.

    Parameters
    ----------
    data : Dataset, DataLoader or pair of tensors or arrays
        As in `score`.
    batch_size : int
        Examples in a batch, unless `data` is a loader.

    Returns
    -------
    Batches
        The batches.

    Raises
    ------
    OptionTypeError
        If `data` is nothing of the kind.
    ShapeError
        If it is empty, or not all parts have a first dimension.
    LengthMismatchError
        If there is not one target for each input.
    VisitOrderError
        If a loader visits the examples in another order than that of its dataset, or not all.
    """
    if isinstance(data, DataLoader):
        batches = _from_loader(data)
    elif type(data) is TensorDataset:
        batches = _from_arrays(data.tensors, batch_size)
    elif isinstance(data, tuple | list) and data and hasattr(data[0], "shape"):
        batches = _from_arrays(data, batch_size)
    elif isinstance(data, Dataset) or (hasattr(data, "__getitem__") and isinstance(data, Sized)):
        loader: DataLoader[Any] = DataLoader(data, batch_size)  # type: ignore[arg-type] # duck-typed
        batches = _from_loader(loader)
    else:
        message = (
            "data must be a Dataset of pairs (x, y), a DataLoader or a pair of tensors or arrays, "
            f"got {_name(data)}"
        )
        raise OptionTypeError(message)
    if batches.examples == 0:
        raise ShapeError(EMPTY)
    return batches


def as_tensor(part: object, name: str) -> Tensor:
    """Return inputs or targets of a batch as a tensor with one row for each example.

    Parameters
    ----------
    part : object
        What the data yielded.
    name : str
        "inputs" or "targets".

    Returns
    -------
    Tensor
        The same, if it is a tensor; a copy, if it is an array.

    Raises
    ------
    OptionTypeError
        If it is neither.
    ShapeError
        If it has no rows.
    """
    if not isinstance(part, Tensor | np.ndarray):
        message = (
            f"{name} of a batch must be a tensor, got {_name(part)}; let the dataset return "
            "tensors, arrays or numbers, and wrap models that take several inputs"
        )
        raise OptionTypeError(message)
    tensor = part if isinstance(part, Tensor) else torch.tensor(part)
    if tensor.ndim == 0:
        message = f"{name} of a batch must have one row for each example, got a scalar"
        raise ShapeError(message)
    return tensor


def _from_loader(loader: DataLoader[Any]) -> Batches:
    disorder = _disorder(loader)
    if disorder:
        message = (
            f"the loader {disorder}, so its scores would not belong to the ids in order; pass "
            "DataLoader(dataset, shuffle=False) or the dataset itself"
        )
        raise VisitOrderError(message)
    if isinstance(loader.dataset, IterableDataset):
        return Batches(loader, None, None)
    whole = loader.batch_sampler is not None  # else each item may be a batch of any size
    examples = len(loader.dataset) if whole and isinstance(loader.dataset, Sized) else None
    return Batches(loader, examples, len(loader))


def _disorder(loader: DataLoader[Any]) -> str:
    """Say how a loader departs from visiting each example once, in order ("" if it does not)."""
    sampler, batch_sampler = loader.sampler, loader.batch_sampler
    if batch_sampler is not None:
        if type(batch_sampler) is not BatchSampler:
            return f"takes its batches from {_name(batch_sampler)}"
        if batch_sampler.drop_last:
            return "drops the last batch when it is not full (drop_last=True)"
        sampler = batch_sampler.sampler
    if isinstance(loader.dataset, IterableDataset):
        workers = loader.num_workers
        return f"leaves the order of an IterableDataset to {workers} workers" if workers else ""
    if type(sampler) is not SequentialSampler:
        return f"takes its order from {_name(sampler)}"
    return "" if loader.in_order else "passes on batches as workers finish them (in_order=False)"


def _from_arrays(arrays: Any, batch_size: int) -> Batches:
    if len(arrays) != 2:
        message = f"data must be a pair (inputs, targets), got {len(arrays)} arrays"
        raise ShapeError(message)
    inputs, targets = (x if isinstance(x, Tensor) else np.asarray(x) for x in arrays)
    if inputs.ndim == 0 or targets.ndim == 0:
        message = "inputs and targets must have one row for each example, got a scalar"
        raise ShapeError(message)
    if len(inputs) != len(targets):
        message = (
            f"data has {len(inputs)} inputs and {len(targets)} targets; there must be one target "
            "for each input"
        )
        raise LengthMismatchError(message)
    cut: list[Callable[[int], Tensor]] = [_cutter(array, batch_size) for array in (inputs, targets)]
    starts = range(0, len(inputs), batch_size)
    pairs = ((cut[0](start), cut[1](start)) for start in starts)
    return Batches(pairs, len(inputs), len(starts))


def _cutter(array: Any, batch_size: int) -> Callable[[int], Tensor]:
    """Return a function from the first row of a batch to the batch, as a tensor."""
    if isinstance(array, Tensor):
        return lambda start: array[start : start + batch_size]
    if array.dtype.kind not in "biuf":
        message = f"arrays of data must hold numbers, got dtype {array.dtype}"
        raise ArrayTypeError(message)
    return lambda start: torch.tensor(array[start : start + batch_size])


def _name(value: object) -> str:
    return type(value).__name__
