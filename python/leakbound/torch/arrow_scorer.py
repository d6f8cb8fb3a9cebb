"""Scoring of Arrow records: what the command and engines run on each batch."""

from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from leakbound._base.checks import MOST_BATCH, choice, instance, integer
from leakbound._base.console import one_line, track
from leakbound._base.scores import TOKENS
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, FloatArray, IntArray, Precision, SignalName
from leakbound._tally.counting import arrow, arrow_column
from leakbound.errors import InputError, InputTypeError, LeakboundError, OptionError
from leakbound.torch.data import Batches, read
from leakbound.torch.device import choose, seeded
from leakbound.torch.loading import Loaded, load
from leakbound.torch.scoring import (
    evaluating_with_reference,
    joined_scores_of_batches,
    model_to_compare,
)
from leakbound.torch.signals import Signal, check_alone, check_nan_scores, measure, signal_name

# Rows that are scored twice, and how near single precision is to their scores among others.
_CHECKED_ROWS = 8
_SINGLE_PRECISION_TOLERANCE = 1e-4


class _ModelsAndSignal(NamedTuple):
    """A model, the one to compare it with or itself, and what is measured."""

    model: Loaded
    compared_model: nn.Module
    signal: Signal


@dataclass(frozen=True)
class Scorer:
    """Scores Arrow records by a model: what engines run on every batch.

    It can be pickled: it holds the name of the model, which each process loads once. Called with a
    pyarrow.RecordBatch or pyarrow.Table, it returns one of the same type with the columns id, score
    and those to keep, in the order of the records, and for models of texts n_tokens: how many
    tokens of each text the model saw, which challenges a random split (`leakbound split`). A score
    does not depend on the other records, but for the rounding of floats.

    Parameters
    ----------
    model : str
        The folder or cached name of a causal language model or a classifier of texts or images of
        Hugging Face; nothing is downloaded. Or the import path of a torch module, or of a function
        that returns one: ``"package.module:name"``.
    signal : str or callable, optional
        As for `score`. If None, "cross_entropy" for language models and "logit_margin" for others.
    reference : str, optional
        The model to compare with, for "loss_drop".
    inputs : tuple of str
        A column of texts or of lists of tokens; for other models a column of arrays (lists, or
        lists of lists), or several of numbers. If empty, "text" or "features".
    label : str
        Column of labels: classes, or lists of 0 and 1. Language models need none.
    keep : tuple of str
        Columns to pass through, such as membership.
    max_length : int, optional
        Tokens after which texts are cut. If None, the most that the model takes.
    dtype : str, optional
        Precision of the weights. If None, float32 for models of Hugging Face, and for a torch
        module its own.
    batch_size : int
        Records that the model is given at once.
    device : str
        Where to run; "auto" is the accelerator, if there is one.

    Examples
    --------
    >>> import pyarrow as pa
    >>> scorer = Scorer("torch.nn:Identity", inputs=("cat", "dog"))
    >>> records = {"id": [7, 8], "cat": [0.5, -1.0], "dog": [0.0, 2.0], "label": [0, 1]}
    >>> scorer(pa.table(records))["score"].to_pylist()
    [0.5, 3.0]
    """

    model: str
    _: KW_ONLY
    signal: Signal | None = None
    reference: str | None = None
    inputs: tuple[str, ...] = ()
    label: str = "label"
    keep: tuple[str, ...] = ()
    max_length: int | None = None
    dtype: Precision | None = None
    batch_size: int = 32
    device: str = "auto"

    def __post_init__(self) -> None:
        instance(self.model, name="model", types=str)
        instance(self.inputs, name="inputs", types=tuple)
        instance(self.keep, name="keep", types=tuple)
        instance(self.label, name="label", types=str)
        instance(self.device, name="device", types=str)
        for option_name, column_names in (("inputs", self.inputs), ("keep", self.keep)):
            for column_name in column_names:
                instance(column_name, name=f"columns of {option_name}", types=str)
        if self.signal is not None:
            signal_name(self.signal)
        if self.dtype is not None:
            choice(self.dtype, name="dtype", allowed=Precision)
        if self.max_length is not None:
            integer(self.max_length, name="max_length", least=2)
        integer(self.batch_size, name="batch_size", least=1, most=MOST_BATCH)
        if {"id", "score", TOKENS} & {*self.keep} or self.label in self.inputs:
            raise OptionError(
                f"a column can have only one role: id, score, {TOKENS}, one of inputs, label or "
                "keep"
            )

    def __call__(self, records: Any, *, first: int = 0) -> Any:
        """Score records; messages number their rows from `first` on."""
        scored_columns = {}
        for column_name in ("id", *self.keep):
            scored_columns[column_name] = arrow_column(records, name=column_name, first=first)
        numbered_ids = enumerate(scored_columns["id"].to_pylist(), start=first)
        row_names = np.array(
            [f"{record_id} (row {row_number})" for row_number, record_id in numbered_ids]
        )
        pyarrow = arrow("scoring Arrow records")
        model = self._models_and_signal().model
        scores = np.empty(0)
        token_counts = None
        if model.tokens:
            token_counts = np.empty(0, np.int64)
        if row_names.size:
            scores, order, token_counts = self._scores_of_records(
                records, row_names, first_row=first
            )
            if first == 0:
                self._check_batch_independence(records, row_names, scores, order)
        scored_columns["score"] = pyarrow.array(scores)
        column_names = ["id", "score", *self.keep]
        if token_counts is not None:
            scored_columns[TOKENS] = pyarrow.array(token_counts)
            column_names.append(TOKENS)
        return type(records).from_arrays(
            [scored_columns[column_name] for column_name in column_names], names=column_names
        )

    def columns(self) -> dict[str, bool]:
        """Return the columns that scores are computed from, and whether each holds numbers."""
        model = self._models_and_signal().model
        default_column = "features"
        if model.tokens:
            default_column = "text"
        input_columns = self.inputs or (default_column,)
        columns_read = dict.fromkeys(input_columns, not model.tokens)
        if not model.causal:
            columns_read[self.label] = True
        return columns_read

    def made_of(self) -> dict[str, str]:
        """Return what scores depend on besides the records: digests of models, and options."""
        model, _, signal = self._models_and_signal()
        device_of_scorer = choose(self.device, [torch.device("cpu")])
        device_name = device_of_scorer.type
        if device_of_scorer.type == "cuda":
            device_name = torch.cuda.get_device_name(device_of_scorer)
        score_dependencies = {
            option_name: str(option_value) for option_name, option_value in asdict(self).items()
        }
        score_dependencies["model"] = model.digest()
        score_dependencies["signal"] = signal_name(signal)
        score_dependencies["device"] = device_name
        if self.reference is not None:
            reference_model = load(self.reference, dtype=self.dtype, device=self.device)
            score_dependencies["reference"] = reference_model.digest()
        score_dependencies["torch"] = torch.__version__
        return score_dependencies

    def _models_and_signal(self) -> _ModelsAndSignal:
        """Return the models, which are loaded once, and the signal."""
        model = load(self.model, dtype=self.dtype, device=self.device)
        reference = None
        default_signal: SignalName = "logit_margin"
        if model.causal:
            default_signal = "cross_entropy"
        signal = self.signal or default_signal
        if self.reference is not None:
            reference = load(self.reference, dtype=self.dtype, device=self.device).module
        compared_model = model_to_compare(model.module, signal=signal, reference=reference)
        return _ModelsAndSignal(model=model, compared_model=compared_model, signal=signal)

    def _scores_of_records(
        self, records: object, row_names: NDArray[np.str_], first_row: int = 0
    ) -> tuple[FloatArray, IntArray, IntArray | None]:
        """Return scores, the order in which the model saw records, and tokens of texts."""
        batches, batch_order, token_counts = self._batches_of_records(records, row_names, first_row)
        scores = np.empty(row_names.size)
        scores[batch_order] = self._scores_of_batches(batches, row_names[batch_order])
        signal = self._models_and_signal().signal
        check_nan_scores(scores, example_ids=row_names, signal=signal_name(signal))
        return scores, batch_order, token_counts

    def _check_batch_independence(
        self, records: Any, row_names: NDArray[np.str_], scores: FloatArray, batch_order: IntArray
    ) -> None:
        """Check that last rows of batches, the most padded, are scored as in pairs of copies.

        By a model that draws at random, the first one is scored again among its own copies.
        """
        starts_of_later_batches = np.arange(0, batch_order.size, self.batch_size)[1:]
        last_places_of_batches = np.append(starts_of_later_batches, batch_order.size) - 1
        spread_places = np.linspace(
            0, last_places_of_batches.size - 1, _CHECKED_ROWS, dtype=np.int64
        )
        checked_rows = batch_order[last_places_of_batches[np.unique(spread_places)]]
        repeated_rows = np.repeat(checked_rows, 2)
        in_pairs = replace(self, batch_size=2)
        pair_scores, _, _ = in_pairs._scores_of_records(  # noqa: SLF001
            records.take(repeated_rows), row_names[repeated_rows]
        )
        first_scores = pair_scores[::2]
        second_scores = pair_scores[1::2]
        if not np.array_equal(first_scores, second_scores):
            rows_of_copies = np.repeat(batch_order[:1], min(scores.size, self.batch_size))
            copy_scores, _, _ = self._scores_of_records(
                records.take(rows_of_copies), row_names[rows_of_copies]
            )
            check_alone(scores[batch_order[0]], copy_scores[0])
            return
        parameter_of_model = _first_parameter_of_model(self._models_and_signal().compared_model)
        scores_among_others = scores[checked_rows]
        if parameter_of_model.element_size() < torch.float32.itemsize:
            check_alone(scores_among_others, first_scores)
        else:
            check_alone(scores_among_others, first_scores, tolerance=_SINGLE_PRECISION_TOLERANCE)

    def _scores_of_batches(self, batches: Batches, row_names: NDArray[np.str_]) -> FloatArray:
        """Return the scores of batches, in their order."""
        model, compared_model, signal = self._models_and_signal()
        device_of_model = _first_parameter_of_model(model.module).device
        batch_size = self.batch_size
        try:
            with (
                evaluating_with_reference(
                    model.module, compared_model, device=device_of_model, batch_size=batch_size
                ) as chosen_device,
                seeded(Purpose.SCORING, seed=0, device=str(chosen_device)),
            ):
                measure_batch = measure(model.module, signal=signal, reference=compared_model)
                on_device = batches.on(chosen_device, row_names)
                tracked_batches = track(on_device, "in batches", total=batches.batches)
                scores, _ = joined_scores_of_batches(map(measure_batch, tracked_batches))
                return scores
        except LeakboundError:
            raise
        except Exception as error:  # of other people's models
            error_in_words = f"{type(error).__name__}: {one_line(error)}"
            raise InputError(
                f"the model cannot take {', '.join(self.columns())}: {error_in_words}"
            ) from error

    def _batches_of_records(
        self, records: object, row_names: NDArray[np.str_], first_row: int
    ) -> tuple[Batches, IntArray, IntArray | None]:
        """Return batches, the longest texts first, rows in their order, and tokens of texts."""
        arrow_columns = {}
        for column_name in self.columns():
            arrow_columns[column_name] = arrow_column(records, name=column_name, first=first_row)
        model = self._models_and_signal().model
        targets = None
        if not model.causal:
            targets = _array_of_labels(arrow_columns.pop(self.label), self.label)
        if not model.tokens:
            inputs = _array_of_inputs(arrow_columns)
            batches = read((inputs, targets), batch_size=self.batch_size)
            return batches, np.arange(len(row_names)), None
        ((column_name, text_column), *other_columns) = arrow_columns.items()
        if other_columns:
            raise OptionError(
                f"the model takes one column of texts, got {', '.join(arrow_columns)}"
            )
        most_tokens = self.max_length or model.longest
        token_lists = _token_lists_of_texts(
            text_column, column_name=column_name, model=model, most_tokens=most_tokens
        )
        token_counts = np.array(list(map(len, token_lists["input_ids"])))
        fewest_tokens = 1
        if model.causal:
            fewest_tokens = 2
        _check_token_counts(
            token_counts,
            fewest_tokens=fewest_tokens,
            column_name=column_name,
            row_names=row_names,
        )
        longest_first = np.argsort(-token_counts, kind="stable")
        padding_values = {"input_ids": model.padding}

        def batch_from(start: int) -> dict[str, Tensor]:
            row_positions = longest_first[start : start + self.batch_size]
            batch_tensors = {}
            for tensor_name, lists_of_part in token_lists.items():
                batch_tensors[tensor_name] = _padded_token_tensor(
                    lists_of_part,
                    row_positions=row_positions,
                    padding_value=padding_values.get(tensor_name, 0),
                )
            if targets is not None:
                batch_tensors["labels"] = torch.tensor(targets[row_positions])
            return batch_tensors

        starts = range(0, len(longest_first), self.batch_size)
        batches = Batches(
            items=map(batch_from, starts), examples=len(longest_first), batches=len(starts)
        )
        return batches, longest_first, token_counts


def _first_parameter_of_model(model: nn.Module) -> Tensor:
    """Return the first parameter of a model; an empty tensor for one without parameters."""
    return next(model.parameters(), torch.empty(0))


def _array_of_inputs(arrow_columns: dict[str, Any]) -> AnyArray:
    """Return one column of numbers or lists, or several of numbers side by side."""
    arrays = [
        _array_of_arrow_numbers(arrow_column_values, column_name)
        for column_name, arrow_column_values in arrow_columns.items()
    ]
    if len(arrays) == 1:
        return arrays[0]
    return np.column_stack(arrays)


def _array_of_labels(arrow_values: object, column_name: str) -> AnyArray:
    """Return labels: whole numbers as integers, which are classes."""
    label_array = _array_of_arrow_numbers(arrow_values, column_name)
    if label_array.ndim == 1 and (label_array == np.floor(label_array)).all():
        return label_array.astype(np.int64)
    return label_array


def _padded_token_tensor(token_lists: Any, row_positions: IntArray, padding_value: int) -> Tensor:
    """Return some of the lists as rows of one length."""
    tensors_of_rows = [torch.tensor(token_lists[row_position]) for row_position in row_positions]
    return pad_sequence(tensors_of_rows, batch_first=True, padding_value=padding_value)


def _check_token_counts(
    token_counts: IntArray, fewest_tokens: int, column_name: str, row_names: NDArray[np.str_]
) -> None:
    """Check that no text has too few tokens to be scored."""
    is_short_text = token_counts < fewest_tokens
    if is_short_text.any():
        row_of_short_text = is_short_text.argmax()
        raise InputError(
            f"{column_name!r} of id {row_names[row_of_short_text]} has too few tokens, "
            f"{token_counts[row_of_short_text]}: leave out what is shorter than {fewest_tokens}"
        )


def _token_lists_of_texts(
    text_column: Any, column_name: str, model: Loaded, most_tokens: int | None
) -> dict[str, Any]:
    """Return the tokens of texts, or those that are given, cut to the longest."""
    arrow_types = arrow("scoring Arrow records").types
    arrow_type = text_column.type
    if arrow_types.is_string(arrow_type) or arrow_types.is_large_string(arrow_type):
        if model.tokenizer is None:
            raise InputError(
                f"the model has no tokenizer: column {column_name!r} must hold lists of tokens"
            )
        token_lists = model.tokenizer(
            text_column.to_pylist(),
            return_attention_mask=True,
            truncation=most_tokens is not None,
            max_length=most_tokens,
        )
        return dict(token_lists)
    has_lists = _is_arrow_list_type(arrow_type)
    if not has_lists or not arrow_types.is_integer(arrow_type.value_type):
        raise InputTypeError(
            f"column {column_name!r} must hold texts, or lists of tokens, got {arrow_type}"
        )
    input_ids = [tokens_of_text[:most_tokens] for tokens_of_text in text_column.to_pylist()]
    attention_mask = [[1] * len(tokens_of_text) for tokens_of_text in input_ids]
    return {"input_ids": input_ids, "attention_mask": attention_mask}


def _array_of_arrow_numbers(arrow_values: Any, column_name: str) -> AnyArray:
    """Return numbers, or lists of numbers of one length, as an array with a row for each record."""
    pyarrow = arrow("scoring Arrow records")
    arrow_type = arrow_values.type
    if hasattr(arrow_values, "to_numpy_ndarray"):  # tensors of Arrow
        return np.asarray(arrow_values.to_numpy_ndarray())
    flat_values = getattr(arrow_values, "storage", arrow_values)
    array_shape = [len(arrow_values)]
    while _is_arrow_list_type(flat_values.type):
        length_of_each_list = pyarrow.compute.list_value_length(flat_values)
        list_lengths = pyarrow.compute.unique(length_of_each_list).to_pylist()
        if len(list_lengths) != 1 or list_lengths == [None]:
            raise InputError(
                f"column {column_name!r} must hold lists of one length, got {list_lengths[:3]}"
            )
        array_shape.append(list_lengths[0])
        flat_values = flat_values.flatten()
    flat_array = np.asarray(flat_values.to_numpy(zero_copy_only=False))
    if flat_values.null_count or flat_array.dtype.kind not in "biuf":
        raise InputTypeError(
            f"column {column_name!r} must hold numbers, or lists of numbers, got {arrow_type}"
        )
    return flat_array.reshape(array_shape)


def _is_arrow_list_type(arrow_type: object) -> bool:
    arrow_types = arrow("scoring Arrow records").types
    list_tests = (arrow_types.is_list, arrow_types.is_large_list, arrow_types.is_fixed_size_list)
    return any(is_of_type(arrow_type) for is_of_type in list_tests)
