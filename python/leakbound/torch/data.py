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
from leakbound.torch.columns import (
    IGNORED,
    Column,
    check_dense_tensor,
    collated_rows,
    columns_of,
    holds_whole_numbers,
    number_column,
    tensor_of_column,
)
from leakbound.torch.device import copied_to_device, precision_of_model

EMPTY = "data is empty: there is nothing to score"
_PARTS_OF_PAIR = ("inputs", "targets")
BATCH = 256  # examples at once where nothing else is said


@dataclass(frozen=True)
class Batch:
    """Inputs, further arguments by name and targets, and which rows of the data they are."""

    inputs: Tensor
    arguments: Mapping[str, Tensor]
    targets: Tensor
    device: torch.device
    first_row: int
    ids: AnyArray | None
    labelled: bool = True
    """Whether the targets came with the data, or are its tokens."""

    def __len__(self) -> int:
        return len(self.inputs)

    def output_of(self, model: nn.Module) -> object:
        """Return what `model` answers; floats are given its precision."""
        model_precision = precision_of_model(model)

        def prepared(tensor: Tensor) -> Tensor:
            if tensor.is_floating_point():
                floating_type = tensor.dtype
                if floating_type == torch.float64:
                    floating_type = torch.get_default_dtype()
                tensor = tensor.to(model_precision or floating_type)
            return copied_to_device(tensor, self.device)

        inputs = prepared(self.inputs)
        arguments = {
            argument_name: prepared(tensor) for argument_name, tensor in self.arguments.items()
        }
        return model(inputs, **arguments)

    def with_arguments(self, **arguments: Tensor) -> Self:
        """Return the batch with more arguments by name."""
        return replace(self, arguments={**self.arguments, **arguments})

    def with_inputs(self, inputs: Tensor) -> Self:
        """Return the batch with other inputs."""
        return replace(self, inputs=inputs)

    def rows(self, selected: slice) -> Self:
        """Return some of the rows."""
        arguments = {
            argument_name: tensor[selected] for argument_name, tensor in self.arguments.items()
        }
        return replace(
            self,
            inputs=self.inputs[selected],
            arguments=arguments,
            targets=self.targets[selected],
        )

    def without_first(self, columns: int) -> Self:
        """Return the batch without the first columns of whatever has one for each input token."""
        arguments = dict(self.arguments)
        for argument_name, tensor in self.arguments.items():
            is_of_decoder = argument_name.startswith(("decoder", "labels"))
            if tensor.shape == self.inputs.shape and not is_of_decoder:
                arguments[argument_name] = tensor[:, columns:]
        return replace(self, inputs=self.inputs[:, columns:], arguments=arguments)

    def labels(self) -> Tensor:
        """Return the targets, on the device."""
        return copied_to_device(self.targets, self.device)


@dataclass(frozen=True)
class Batches:
    """Whole batches in the order of the data, and what is known of their number."""

    items: Iterable[object]
    examples: int | None
    batches: int | None

    def on(self, device: torch.device, ids: AnyArray | None = None) -> Iterator[Batch]:
        """Yield the batches, each with the rows that it has."""
        first_row = 0
        for batch_item in _batches_of_data(self.items):
            inputs, arguments, targets, labelled = _parts_of_batch_item(batch_item)
            yield Batch(
                inputs=inputs,
                arguments=arguments,
                targets=targets,
                device=device,
                first_row=first_row,
                ids=ids,
                labelled=labelled,
            )
            first_row += len(inputs)


def read(data: object, *, batch_size: int = BATCH) -> Batches:
    """Prepare `data` for one pass in its own order."""
    if isinstance(data, Batches):
        return data
    columns = _columns_of_data(data)
    if columns is not None:
        batches = _batches_of_columns([columns], batch_size)
    elif isinstance(data, DataLoader):
        batches = _batches_of_loader(data)
    elif isinstance(data, Dataset) or _has_rows_by_position(data):
        dataset = cast("Dataset[object]", data)
        batches = _batches_of_loader(DataLoader(dataset, batch_size, collate_fn=collated_rows))
    else:
        raise InputTypeError(
            "data must be a Dataset of pairs (x, y), a DataLoader, a pair of arrays, or a mapping "
            f"with input_ids, got {_type_name_of_data(data)}"
        )
    if batches.examples == 0:
        raise InputError(EMPTY)
    return batches


def joined(data_parts: Sequence[object], order: IntArray) -> Batches:
    """Prepare the rows of several data, as if one was put below the other, in an order."""
    columns_of_parts = [_columns_of_data(data_part) for data_part in data_parts]
    column_tables = [columns for columns in columns_of_parts if columns is not None]
    if len(column_tables) == len(data_parts):
        column_names = column_tables[0].keys()
        if all(columns.keys() == column_names for columns in column_tables):
            return _batches_of_columns(column_tables, batch_size=BATCH, order=order)
    loader_parts = [data_part for data_part in data_parts if isinstance(data_part, DataLoader)]
    has_one_form = all(loader.collate_fn == loader_parts[0].collate_fn for loader in loader_parts)
    for data_part, columns in zip(data_parts, columns_of_parts, strict=True):
        if columns and not isinstance(data_part, Dataset):
            has_one_form = False
    if not has_one_form:
        type_names = " and ".join(map(_type_name_of_data, data_parts))
        raise InputError(
            "give both in one form: arrays with the same names, datasets, or loaders with the same "
            f"collate_fn, got {type_names}"
        )
    datasets_of_parts: list[Any] = []
    for data_part in data_parts:
        if isinstance(data_part, DataLoader):
            datasets_of_parts.append(data_part.dataset)
        else:
            datasets_of_parts.append(data_part)
    all_rows: Dataset[object] = ConcatDataset(datasets_of_parts)
    loader_settings: DataLoader[object] = DataLoader(all_rows, BATCH, collate_fn=collated_rows)
    if loader_parts:
        loader_settings = loader_parts[0]
    ordered_loader = DataLoader(
        Subset(all_rows, order.tolist()),
        batch_size=getattr(loader_settings.batch_sampler, "batch_size", BATCH),
        collate_fn=loader_settings.collate_fn,
        num_workers=loader_settings.num_workers,
        worker_init_fn=loader_settings.worker_init_fn,
    )
    return _batches_of_loader(ordered_loader)


def noting(batches: Batches, targets_seen: list[Tensor], features_seen: list[AnyArray]) -> Batches:
    """Return the same batches, of which it lists what it can as they pass.

    `targets_seen` gets their targets, but for tokens; `features_seen` gets rows of numbers, and
    numbers of tokens.
    """

    def noted_batches() -> Iterator[object]:
        for batch_item in batches.items:
            inputs, arguments, targets, _ = _parts_of_batch_item(batch_item)
            has_tensor_names = isinstance(batch_item, Mapping)
            are_floats = inputs.is_floating_point()
            if has_tensor_names:
                features_seen.append(
                    _token_counts_of_texts(inputs, arguments.get("attention_mask"))
                )
            elif inputs.ndim == 2 and are_floats:
                features = inputs.detach().to("cpu", torch.float64)
                features_seen.append(features.numpy())
            is_label_of_each = targets.shape == inputs.shape and not are_floats
            if has_tensor_names and not targets.is_floating_point():
                is_label_of_each = True
            if targets.ndim <= 1 or not is_label_of_each:
                targets_seen.append(targets)
            yield batch_item

    return replace(batches, items=noted_batches())


def _token_counts_of_texts(token_table: Tensor, attention_mask: Tensor | None) -> AnyArray:
    """Return the number of tokens of each text, padding not counted where it is marked."""
    if attention_mask is None:
        tokens_of_text = math.prod(token_table.shape[1:])
        return np.full(len(token_table), tokens_of_text)
    token_counts = attention_mask.flatten(1).sum(dim=1)
    return token_counts.to("cpu").numpy()


def _parts_of_batch_item(batch_item: object) -> tuple[Tensor, dict[str, Tensor], Tensor, bool]:
    """Take apart what the data yielded, a pair or tokens under their names; say if labels came."""
    if isinstance(batch_item, Mapping) and "input_ids" in batch_item:
        tensors_by_name = {}
        for tensor_name, tensor_or_array in batch_item.items():
            if tensor_or_array is not None:
                tensors_by_name[tensor_name] = _batch_tensor(tensor_or_array, tensor_name)
        labels = tensors_by_name.pop("labels", None)
        inputs = tensors_by_name.pop("input_ids")
        if labels is None:
            own_tokens = _labels_of_own_tokens(inputs, tensors_by_name.get("attention_mask"))
            return inputs, tensors_by_name, own_tokens, False
        return inputs, tensors_by_name, labels, True
    if not isinstance(batch_item, tuple | list):
        described_item = _type_name_of_data(batch_item)
    elif len(batch_item) != 2:
        described_item = f"{len(batch_item)} parts"
    else:
        inputs, targets = batch_item
        return _batch_tensor(inputs, "inputs"), {}, _batch_tensor(targets, "targets"), True
    raise InputTypeError(
        f"data must yield pairs (x, y), or mappings with input_ids, got {described_item}: "
        "pass inputs with their targets; for texts pass token ids, such as tokenizer(texts, "
        "return_tensors='pt')"
    )


def _labels_of_own_tokens(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Label each token with itself, but for those that are padding or follow padding."""
    own_labels = input_ids.to(torch.int64)
    if attention_mask is None:
        return own_labels
    if attention_mask.shape != own_labels.shape:
        raise InputError(
            f"attention_mask has shape {tuple(attention_mask.shape)} and input_ids "
            f"{tuple(own_labels.shape)}; pass labels with -100 at padding"
        )
    is_token = attention_mask.bool()
    # A token after padding has nothing to be predicted from.
    is_counted = is_token.clone()
    is_counted[:, 1:] &= is_token[:, :-1]
    return own_labels.masked_fill(~is_counted, IGNORED)


def _batch_tensor(tensor_or_array: object, part_name: str) -> Tensor:
    """Return a part of a batch as a tensor with one row for each example."""
    if not isinstance(tensor_or_array, Tensor | np.ndarray):
        raise InputTypeError(
            f"{part_name} of a batch must be a tensor, got {_type_name_of_data(tensor_or_array)}"
        )
    check_dense_tensor(tensor_or_array, part_name)
    tensor_of_part = tensor_of_column(tensor_or_array)
    if tensor_of_part.ndim == 0:
        raise InputError(f"{part_name} of a batch must have one row for each example, got a scalar")
    # Embeddings take integers of 32 and 64 bits alone.
    if part_name == "input_ids" and holds_whole_numbers(tensor_of_part):
        return tensor_of_part.long()
    return tensor_of_part


def _batches_of_data(items: Iterable[object]) -> Iterator[object]:
    """Yield batches, or say which one the data could not make."""
    iterator = iter(items)
    batch_number = 0
    while True:
        try:
            batch_item = next(iterator)
        except StopIteration:
            return
        except (LeakboundError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of other people's datasets and collators
            advice = "rows must be tensors or numbers of one shape"
            if "exited unexpectedly" in str(error):
                advice = "a worker of the loader was killed, and num_workers=0 needs none"
            raise InputError(
                f"batch {batch_number} of the data cannot be made: {advice}; "
                f"{type(error).__name__}: {one_line(error)}"
            ) from error
        batch_number += 1
        yield batch_item


def _has_rows_by_position(data: object) -> bool:
    """Return whether rows can be taken from `data` by their position."""
    is_frame = hasattr(data, "columns") and not hasattr(data, "features")  # not of datasets
    has_positions = hasattr(data, "__getitem__") and isinstance(data, Sized)
    return has_positions and not is_frame and not isinstance(data, Mapping | str | bytes)


def _is_token_table(data: object) -> TypeGuard[Column]:
    """Whether `data` is a table of token ids by itself."""
    if isinstance(data, Tensor):
        return data.ndim == 2 and holds_whole_numbers(data)
    return isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu"


def _batches_of_loader(loader: DataLoader[object]) -> Batches:
    """Return the batches of a loader, which must yield every example once and in order."""
    batch_sampler = loader.batch_sampler
    is_stream = isinstance(loader.dataset, IterableDataset)
    # Without a batch sampler, batches come ready-made.
    sampler: object = loader.sampler
    has_every_example = True
    if batch_sampler is not None:
        sampler = getattr(batch_sampler, "sampler", None)
        has_every_example = type(batch_sampler) is BatchSampler and not batch_sampler.drop_last
    if is_stream:
        is_in_order = loader.num_workers == 0
    else:
        is_in_order = type(sampler) is SequentialSampler and loader.in_order
    if not has_every_example or not is_in_order:
        raise InputError(
            "the loader must return every example once and in order, without a custom sampler, "
            "drop_last, in_order=False, or workers that share a stream: pass DataLoader(dataset, "
            "shuffle=False), or the dataset"
        )
    if is_stream:
        return Batches(items=loader, examples=None, batches=None)
    row_count = _row_count_of_dataset(loader.dataset)
    example_count = None
    if batch_sampler is not None:
        example_count = row_count
    return Batches(items=loader, examples=example_count, batches=len(loader))


def _row_count_of_dataset(dataset: Any) -> int:
    """Return the number of rows of what has a position for each."""
    try:
        return len(dataset)
    except Exception as error:  # of whatever class the data are
        raise InputTypeError(
            f"the rows of data cannot be counted, which is of type {_type_name_of_data(dataset)} "
            f"({one_line(error)}): pass arrays, or a Dataset with __len__"
        ) from error


def _columns_of_data(data: object) -> dict[str, Column] | None:
    """Return tensors or arrays with one row for each example; None for data of another form."""
    if type(data) is TensorDataset:
        data = data.tensors
    if isinstance(data, tuple | list) and _is_pair_of_columns(data):
        if len(data) != 2:
            raise InputError(f"data must be a pair (inputs, targets), got {len(data)} arrays")
        columns = {}
        for column_name, column_values in zip(_PARTS_OF_PAIR, data, strict=True):
            columns[column_name] = number_column(column_values, column_name)
    elif _is_token_table(data):
        columns = {"input_ids": data}
    elif isinstance(data, Mapping) and data.get("input_ids") is not None:
        columns = columns_of(data)
    else:
        return None
    lengths_of_columns = {tuple(column.shape[:1]) for column in columns.values()}
    if () in lengths_of_columns or len(lengths_of_columns) > 1:
        row_counts = [
            f"{sum(column.shape[:1])} {column_name}" for column_name, column in columns.items()
        ]
        raise InputError(
            f"data must have one row for each example in every part, got {' and '.join(row_counts)}"
        )
    return columns


def _is_pair_of_columns(data: Sequence[object]) -> bool:
    """Return whether `data` is all inputs and all targets, and not a list of pairs."""
    for column_name, column_values in zip(_PARTS_OF_PAIR, data, strict=False):
        check_dense_tensor(column_values, column_name)
    if data and hasattr(data[0], "shape"):
        return True
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    inputs, targets = data
    are_lists = isinstance(inputs, list) and isinstance(targets, list)
    return are_lists or hasattr(targets, "shape")


def _batches_of_columns(
    column_tables: list[dict[str, Column]], batch_size: int, order: IntArray | None = None
) -> Batches:
    """Cut columns into batches, in their order or in another one."""
    example_count = 0
    for columns in column_tables:
        first_column = next(iter(columns.values()))
        example_count += len(first_column)
    column_names = column_tables[0].keys()

    def batch_from(batch_start: int) -> object:
        selected_rows = slice(batch_start, batch_start + batch_size)
        tensors_by_name = {}
        for column_name in column_names:
            column_parts = [columns[column_name] for columns in column_tables]
            if order is None:
                rows_of_column = column_parts[0][selected_rows]
            else:
                rows_of_column = gathered(column_parts, order[selected_rows])
            tensors_by_name[column_name] = tensor_of_column(rows_of_column)
        if "input_ids" in tensors_by_name:
            return tensors_by_name
        return tuple(tensors_by_name.values())

    batch_starts = range(0, example_count, batch_size)
    return Batches(
        items=map(batch_from, batch_starts), examples=example_count, batches=len(batch_starts)
    )


def _type_name_of_data(value: object) -> str:
    return type(value).__name__
