"""Batches of inputs and targets in a known order, from whatever there is."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Self, TypeGuard, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    TensorDataset,
)

from leakbound._base.alignment import gathered
from leakbound._base.console import one_line
from leakbound._base.types import AnyArray, IntArray
from leakbound.errors import InputError, InputTypeError, LeakboundError
from leakbound.torch.columns import IGNORED, Column, column, columns_of, dense, tensor_of, together
from leakbound.torch.placement import precision, to_device

EMPTY = "data is empty: there is nothing to score"
_PAIR = ("inputs", "targets")
BATCH = 256  # examples at once where nothing else is said


@dataclass(frozen=True)
class Batch:
    """Inputs, further arguments by name and targets, and which rows of the data they are."""

    inputs: Tensor
    others: Mapping[str, Tensor]
    targets: Tensor
    device: torch.device
    first: int
    ids: AnyArray | None
    labelled: bool = True
    """Whether the targets came with the data, or are its tokens."""

    def __len__(self) -> int:
        return len(self.inputs)

    def through(self, model: nn.Module) -> object:
        """Return what `model` answers; floats are given its precision."""
        wanted = precision(model)

        def ready(tensor: Tensor) -> Tensor:
            if tensor.is_floating_point():
                plain = tensor.dtype
                if plain == torch.float64:
                    plain = torch.get_default_dtype()
                tensor = tensor.to(wanted or plain)
            return to_device(tensor, self.device)

        inputs = ready(self.inputs)
        others = {name: ready(tensor) for name, tensor in self.others.items()}
        return model(inputs, **others)

    def given(self, **others: Tensor) -> Self:
        """Return the batch with more arguments by name."""
        return replace(self, others={**self.others, **others})

    def of(self, inputs: Tensor) -> Self:
        """Return the batch with other inputs."""
        return replace(self, inputs=inputs)

    def rows(self, some: slice) -> Self:
        """Return some of the rows."""
        others = {name: tensor[some] for name, tensor in self.others.items()}
        return replace(self, inputs=self.inputs[some], others=others, targets=self.targets[some])

    def without_first(self, columns: int) -> Self:
        """Return the batch without the first columns of whatever has one for each input token."""
        others = dict(self.others)
        for name, tensor in self.others.items():
            if tensor.shape == self.inputs.shape and not name.startswith(("decoder", "labels")):
                others[name] = tensor[:, columns:]
        return replace(self, inputs=self.inputs[:, columns:], others=others)

    def labels(self) -> Tensor:
        """Return the targets, on the device."""
        return to_device(self.targets, self.device)


@dataclass(frozen=True)
class Batches:
    """Whole batches in the order of the data, and what is known of their number."""

    items: Iterable[object]
    examples: int | None
    batches: int | None

    def on(self, device: torch.device, ids: AnyArray | None = None) -> Iterator[Batch]:
        """Yield the batches, each with the rows that it has."""
        first = 0
        for item in _drawn(self.items):
            inputs, others, targets, labelled = _parts(item)
            yield Batch(
                inputs=inputs,
                others=others,
                targets=targets,
                device=device,
                first=first,
                ids=ids,
                labelled=labelled,
            )
            first += len(inputs)


def read(data: object, *, batch_size: int = BATCH) -> Batches:
    """Prepare `data` for one pass in its own order."""
    if isinstance(data, Batches):
        return data
    columns = _columns(data)
    if columns is not None:
        batches = _cut([columns], batch_size)
    elif isinstance(data, DataLoader):
        batches = _from_loader(data)
    elif isinstance(data, Dataset) or _is_indexed(data):
        rows = cast("Dataset[object]", data)
        batches = _from_loader(DataLoader(rows, batch_size, collate_fn=together))
    else:
        raise InputTypeError(
            "data must be a Dataset of pairs (x, y), a DataLoader, a pair of arrays, or a mapping "
            f"with input_ids, got {_name(data)}"
        )
    if batches.examples == 0:
        raise InputError(EMPTY)
    return batches


def joined(parts: Sequence[object], order: IntArray) -> Batches:
    """Prepare the rows of several data, as if one was put below the other, in an order."""
    tables = [columns for columns in map(_columns, parts) if columns is not None]
    if len(tables) == len(parts) and all(one.keys() == tables[0].keys() for one in tables):
        return _cut(tables, batch_size=BATCH, order=order)
    loaders = [part for part in parts if isinstance(part, DataLoader)]
    alike = all(one.collate_fn == loaders[0].collate_fn for one in loaders)
    if not alike or any(_columns(one) and not isinstance(one, Dataset) for one in parts):
        listed = " and ".join(map(_name, parts))
        raise InputError(
            "give both in one form: arrays with the same names, datasets, or loaders with the same "
            f"collate_fn, got {listed}"
        )
    rows: Dataset[object] = ConcatDataset([_dataset(part) for part in parts])
    like: DataLoader[object] = DataLoader(rows, BATCH, collate_fn=together)
    if loaders:
        like = loaders[0]
    batch_size = getattr(like.batch_sampler, "batch_size", BATCH)
    kept = {name: getattr(like, name) for name in ("collate_fn", "num_workers", "worker_init_fn")}
    return _from_loader(DataLoader(Subset(rows, order.tolist()), batch_size, **kept))


def _dataset(part: object) -> Any:
    """Return the data set of a loader, or what is one."""
    if isinstance(part, DataLoader):
        return part.dataset
    return part


def noting(batches: Batches, seen: list[Tensor], shown: list[AnyArray]) -> Batches:
    """Return the same batches, of which it lists what it can as they pass.

    `seen` gets their targets, but for tokens; `shown` gets rows of numbers, and numbers of tokens.
    """

    def passing() -> Iterator[object]:
        for item in batches.items:
            inputs, others, targets, _ = _parts(item)
            if isinstance(item, Mapping):
                shown.append(_lengths(inputs, others.get("attention_mask")))
            elif inputs.ndim == 2 and inputs.is_floating_point():
                shown.append(inputs.detach().to("cpu", torch.float64).numpy())
            named = isinstance(item, Mapping) and not targets.is_floating_point()
            tokens = targets.ndim > 1 and (
                named or (targets.shape == inputs.shape and not inputs.is_floating_point())
            )
            if not tokens:
                seen.append(targets)
            yield item

    return replace(batches, items=passing())


def _lengths(tokens: Tensor, attention_mask: Tensor | None) -> AnyArray:
    """Return the number of tokens of each text, padding not counted where it is marked."""
    if attention_mask is None:
        return np.full(len(tokens), math.prod(tokens.shape[1:]))
    return attention_mask.flatten(1).sum(dim=1).to("cpu").numpy()


def _parts(item: object) -> tuple[Tensor, dict[str, Tensor], Tensor, bool]:
    """Take apart what the data yielded, a pair or tokens under their names; say if labels came."""
    if isinstance(item, Mapping) and "input_ids" in item:
        named = {name: _as_tensor(part, name) for name, part in item.items() if part is not None}
        labels = named.pop("labels", None)
        inputs = named.pop("input_ids")
        if labels is None:
            return inputs, named, _next_tokens(inputs, named.get("attention_mask")), False
        return inputs, named, labels, True
    if not isinstance(item, tuple | list) or len(item) != 2:
        parts = _name(item)
        if isinstance(item, tuple | list):
            parts = f"{len(item)} parts"
        raise InputTypeError(
            f"data must yield pairs (x, y), or mappings with input_ids, got {parts}: pass inputs "
            "with their targets; for texts pass token ids, such as tokenizer(texts, "
            "return_tensors='pt')"
        )
    return _as_tensor(item[0], "inputs"), {}, _as_tensor(item[1], "targets"), True


def _next_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Label each token with itself, but for those that are padding or follow padding."""
    labels = input_ids.to(torch.int64)
    if attention_mask is None:
        return labels
    if attention_mask.shape != labels.shape:
        raise InputError(
            f"attention_mask has shape {tuple(attention_mask.shape)} and input_ids "
            f"{tuple(labels.shape)}; pass labels with -100 at padding"
        )
    real = attention_mask.bool()
    # A token after padding has nothing to be predicted from.
    counted = real.clone()
    counted[:, 1:] &= real[:, :-1]
    return labels.masked_fill(~counted, IGNORED)


def _as_tensor(part: object, name: str) -> Tensor:
    """Return a part of a batch as a tensor with one row for each example."""
    if not isinstance(part, Tensor | np.ndarray):
        raise InputTypeError(f"{name} of a batch must be a tensor, got {_name(part)}")
    dense(part, name)
    tensor = tensor_of(part)
    if tensor.ndim == 0:
        raise InputError(f"{name} of a batch must have one row for each example, got a scalar")
    narrow = not tensor.is_floating_point() and not tensor.is_complex()
    # Embeddings take integers of 32 and 64 bits alone.
    if name == "input_ids" and narrow:
        return tensor.long()
    return tensor


def _drawn(items: Iterable[object]) -> Iterator[object]:
    """Yield batches, or say which one the data could not make."""
    iterator = iter(items)
    number = 0
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except (LeakboundError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of other people's datasets and collators
            advice = "rows must be tensors or numbers of one shape"
            if "exited unexpectedly" in str(error):
                advice = "a worker of the loader was killed, and num_workers=0 needs none"
            raise InputError(
                f"batch {number} of the data cannot be made: {advice}; {type(error).__name__}: "
                f"{one_line(error)}"
            ) from error
        number += 1
        yield item


def _is_indexed(data: object) -> bool:
    """Return whether rows can be taken from `data` by their position."""
    frame = hasattr(data, "columns") and not hasattr(data, "features")  # not of datasets
    indexed = hasattr(data, "__getitem__") and isinstance(data, Sized)
    return indexed and not frame and not isinstance(data, Mapping | str | bytes)


def _is_tokens(data: object) -> TypeGuard[Column]:
    """Whether `data` is a table of token ids by itself."""
    if isinstance(data, Tensor):
        return data.ndim == 2 and not (data.is_floating_point() or data.is_complex())
    return isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu"


def _from_loader(loader: DataLoader[object]) -> Batches:
    batch_sampler = loader.batch_sampler
    streamed = isinstance(loader.dataset, IterableDataset)
    # Without a batch sampler, batches come ready-made.
    sampler: object = loader.sampler
    whole = True
    if batch_sampler is not None:
        sampler = getattr(batch_sampler, "sampler", None)
        whole = type(batch_sampler) is BatchSampler and not batch_sampler.drop_last
    ordered = whole and type(sampler) is SequentialSampler
    if streamed:
        ordered = whole and loader.num_workers == 0
    if not (ordered and (streamed or loader.in_order)):
        raise InputError(
            "the loader must return every example once and in order, without a custom sampler, "
            "drop_last, in_order=False, or workers that share a stream: pass DataLoader(dataset, "
            "shuffle=False), or the dataset"
        )
    if streamed:
        return Batches(items=loader, examples=None, batches=None)
    rows = _length(loader.dataset)
    examples = None
    if batch_sampler is not None:
        examples = rows
    return Batches(items=loader, examples=examples, batches=len(loader))


def _length(rows: Any) -> int:
    """Return the number of rows of what has a position for each."""
    try:
        return len(rows)
    except Exception as error:  # of whatever class the data are
        raise InputTypeError(
            f"the rows of data cannot be counted, which is of type {_name(rows)} "
            f"({one_line(error)}): pass arrays, or a Dataset with __len__"
        ) from error


def _columns(data: object) -> dict[str, Column] | None:
    """Return tensors or arrays with one row for each example; None for data of another form."""
    if type(data) is TensorDataset:
        data = data.tensors
    if isinstance(data, tuple | list) and _has_columns(data):
        if len(data) != 2:
            raise InputError(f"data must be a pair (inputs, targets), got {len(data)} arrays")
        arrays = {name: column(one, name) for name, one in zip(_PAIR, data, strict=True)}
    elif _is_tokens(data):
        arrays = {"input_ids": data}
    elif isinstance(data, Mapping) and data.get("input_ids") is not None:
        arrays = columns_of(data)
    else:
        return None
    sizes = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(sizes.values())) > 1 or not all(array.ndim for array in arrays.values()):
        rows = " and ".join(f"{size} {name}" for name, size in sizes.items())
        raise InputError(f"data must have one row for each example in every part, got {rows}")
    return arrays


def _has_columns(data: Sequence[object]) -> bool:
    """Return whether `data` is all inputs and all targets, and not a list of pairs."""
    for name, one in zip(_PAIR, data, strict=False):
        dense(one, name)
    if data and hasattr(data[0], "shape"):
        return True
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    return hasattr(data[1], "shape") or all(isinstance(one, list) for one in data)


def _cut(
    tables: list[dict[str, Column]], batch_size: int, order: IntArray | None = None
) -> Batches:
    """Cut columns into batches, in their order or in another one."""
    examples = sum(len(next(iter(one.values()))) for one in tables)
    starts = range(0, examples, batch_size)

    def batch(first: int) -> object:
        rows = slice(first, first + batch_size)
        if order is None:
            columns = {name: whole[rows] for name, whole in tables[0].items()}
        else:
            columns = {
                name: gathered([one[name] for one in tables], order[rows]) for name in tables[0]
            }
        tensors = {name: tensor_of(one) for name, one in columns.items()}
        if "input_ids" in tensors:
            return tensors
        return tuple(tensors.values())

    return Batches(items=map(batch, starts), examples=examples, batches=len(starts))


def _name(value: object) -> str:
    return type(value).__name__
