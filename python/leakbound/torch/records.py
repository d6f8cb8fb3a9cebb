"""Scoring of Arrow records: what the command and engines run on each batch."""

from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

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
from leakbound.torch.loading import Loaded, load
from leakbound.torch.placement import choose, seeded
from leakbound.torch.scoring import compared, ready, together
from leakbound.torch.signals import Signal, check_alone, check_nan, measure, signal_name

# Rows that are scored twice, and how near single precision is to their scores among others.
_LOOKS = 8
_EXACT = 1e-4


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
        for role, columns in (("inputs", self.inputs), ("keep", self.keep)):
            for column in columns:
                instance(column, name=f"columns of {role}", types=str)
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
        columns = {
            name: arrow_column(records, name=name, first=first) for name in ("id", *self.keep)
        }
        named = enumerate(columns["id"].to_pylist(), first)
        labels = np.array([f"{one} (row {row})" for row, one in named])
        pa = arrow("scoring Arrow records")
        values = np.empty(0)
        tokens = None
        if self._parts()[0].tokens:
            tokens = np.empty(0, np.int64)
        if labels.size:
            values, order, tokens = self._scored(records, labels=labels, first=first)
            if first == 0:
                self._check_rows(records, labels=labels, values=values, order=order)
        columns["score"] = pa.array(values)
        names = ["id", "score", *self.keep]
        if tokens is not None:
            columns[TOKENS] = pa.array(tokens)
            names.append(TOKENS)
        return type(records).from_arrays([columns[name] for name in names], names=names)

    def columns(self) -> dict[str, bool]:
        """Return the columns that scores are computed from, and whether each holds numbers."""
        model, _, _ = self._parts()
        column = "features"
        if model.tokens:
            column = "text"
        inputs = self.inputs or (column,)
        columns = dict.fromkeys(inputs, not model.tokens)
        if not model.causal:
            columns[self.label] = True
        return columns

    def made_of(self) -> dict[str, str]:
        """Return what scores depend on besides the records: digests of models, and options."""
        model, _, signal = self._parts()
        where = choose(self.device, [torch.device("cpu")])
        device = where.type
        if where.type == "cuda":
            device = torch.cuda.get_device_name(where)
        made = {name: str(value) for name, value in asdict(self).items()}
        made |= {"model": model.digest(), "signal": signal_name(signal), "device": device}
        if self.reference is not None:
            made["reference"] = load(self.reference, dtype=self.dtype, device=self.device).digest()
        return made | {"torch": torch.__version__}

    def _parts(self) -> tuple[Loaded, nn.Module, Signal]:
        """Return the model, the one to compare it with or itself, and the signal."""
        model = load(self.model, dtype=self.dtype, device=self.device)
        other = None
        usual: SignalName = "logit_margin"
        if model.causal:
            usual = "cross_entropy"
        signal = self.signal or usual
        if self.reference is not None:
            other = load(self.reference, dtype=self.dtype, device=self.device).module
        return model, compared(model.module, signal=signal, reference=other), signal

    def _scored(
        self, records: object, labels: NDArray[np.str_], first: int = 0
    ) -> tuple[FloatArray, IntArray, IntArray | None]:
        """Return scores, the order in which the model saw records, and tokens of texts."""
        batches, order, tokens = self._batches(records, labels=labels, first=first)
        values = np.empty(labels.size)
        values[order], name = self._measured(batches, labels[order])
        check_nan(values, ids=labels, name=name)
        return values, order, tokens

    def _check_rows(
        self, records: Any, labels: NDArray[np.str_], values: FloatArray, order: IntArray
    ) -> None:
        """Check that last rows of batches, the most padded, are scored as in pairs of copies.

        By a model that draws at random, the first one is scored again among its own copies.
        """
        ends = np.append(np.arange(0, order.size, self.batch_size)[1:], order.size) - 1
        spread = order[ends[np.unique(np.linspace(0, ends.size - 1, _LOOKS, dtype=np.int64))]]
        twice = np.repeat(spread, 2)
        alone, *_ = replace(self, batch_size=2)._scored(records.take(twice), labels[twice])  # noqa: SLF001
        if np.array_equal(alone[::2], alone[1::2]):
            weight = next(self._parts()[1].parameters(), torch.empty(0))
            if weight.element_size() >= torch.float32.itemsize:
                return check_alone(values[spread], alone=alone[::2], near=_EXACT)
            return check_alone(values[spread], alone[::2])
        copies = np.repeat(order[:1], min(values.size, self.batch_size))
        again, *_ = self._scored(records.take(copies), labels[copies])
        return check_alone(values[order[0]], again[0])

    def _measured(self, batches: Batches, labels: NDArray[np.str_]) -> tuple[FloatArray, str]:
        """Return the scores of batches, in their order, and the name of the signal."""
        model, before, signal = self._parts()
        weight = next(model.module.parameters(), torch.empty(0))
        size = self.batch_size
        try:
            with (
                ready(model.module, before, device=weight.device, batch_size=size) as device,
                seeded(Purpose.SCORING, seed=0, device=str(device)),
            ):
                of_batch = measure(model.module, signal=signal, reference=before)
                passing = track(batches.on(device, labels), "in batches", total=batches.batches)
                return together(map(of_batch, passing))[0], signal_name(signal)
        except LeakboundError:
            raise
        except Exception as error:  # of other people's models
            said = f"{type(error).__name__}: {one_line(error)}"
            raise InputError(
                f"the model cannot take {', '.join(self.columns())}: {said}"
            ) from error

    def _batches(
        self, records: object, labels: NDArray[np.str_], first: int
    ) -> tuple[Batches, IntArray, IntArray | None]:
        """Return batches, the longest texts first, rows in their order, and tokens of texts."""
        columns = {name: arrow_column(records, name=name, first=first) for name in self.columns()}
        model = self._parts()[0]
        targets = None
        if not model.causal:
            targets = _targets(columns.pop(self.label), self.label)
        if not model.tokens:
            arrays = [_array(column, name) for name, column in columns.items()]
            inputs = arrays[0]
            if len(arrays) > 1:
                inputs = np.column_stack(arrays)
            return read((inputs, targets), batch_size=self.batch_size), np.arange(len(labels)), None
        ((name, column), *more) = columns.items()
        if more:
            raise OptionError(f"the model takes one column of texts, got {', '.join(columns)}")
        tokens = _tokens(column, name=name, model=model, longest=self.max_length or model.longest)
        lengths = np.array([*map(len, tokens["input_ids"])])
        _check_tokens(lengths, least=1 + model.causal, name=name, labels=labels)
        order = np.argsort(-lengths, kind="stable")
        filling = {"input_ids": model.padding}

        def batch(start: int) -> dict[str, Tensor]:
            rows = order[start : start + self.batch_size]
            made = {
                part: _padded(lists, rows=rows, filling=filling.get(part, 0))
                for part, lists in tokens.items()
            }
            if targets is not None:
                made["labels"] = torch.tensor(targets[rows])
            return made

        starts = range(0, len(order), self.batch_size)
        batches = Batches(items=map(batch, starts), examples=len(order), batches=len(starts))
        return batches, order, lengths


def _targets(column: object, name: str) -> AnyArray:
    """Return labels: whole numbers as integers, which are classes."""
    targets = _array(column, name)
    if targets.ndim == 1 and (targets == np.floor(targets)).all():
        return targets.astype(np.int64)
    return targets


def _padded(lists: Any, rows: IntArray, filling: int) -> Tensor:
    """Return some of the lists as rows of one length."""
    some = [torch.tensor(lists[row]) for row in rows]
    return pad_sequence(some, batch_first=True, padding_value=filling)


def _check_tokens(lengths: IntArray, least: int, name: str, labels: NDArray[np.str_]) -> None:
    """Check that no text has too few tokens to be scored."""
    few = lengths < least
    if few.any():
        row = few.argmax()
        raise InputError(
            f"{name!r} of id {labels[row]} has too few tokens, {lengths[row]}: leave out "
            f"what is shorter than {least}"
        )


def _tokens(column: Any, name: str, model: Loaded, longest: int | None) -> dict[str, Any]:
    """Return the tokens of texts, or those that are given, cut to the longest."""
    types = arrow("scoring Arrow records").types
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        if model.tokenizer is None:
            raise InputError(
                f"the model has no tokenizer: column {name!r} must hold lists of tokens"
            )
        cut = {"truncation": longest is not None, "max_length": longest}
        return dict(model.tokenizer(column.to_pylist(), return_attention_mask=True, **cut))
    if not (_is_list(kind) and types.is_integer(kind.value_type)):
        raise InputTypeError(f"column {name!r} must hold texts, or lists of tokens, got {kind}")
    rows = [row[:longest] for row in column.to_pylist()]
    return {"input_ids": rows, "attention_mask": [[1] * len(row) for row in rows]}


def _array(column: Any, name: str) -> AnyArray:
    """Return numbers, or lists of numbers of one length, as an array with a row for each record."""
    pa = arrow("scoring Arrow records")
    kind = column.type
    if hasattr(column, "to_numpy_ndarray"):  # tensors of Arrow
        return np.asarray(column.to_numpy_ndarray())
    values = getattr(column, "storage", column)
    shape = [len(column)]
    while _is_list(values.type):
        sizes = pa.compute.unique(pa.compute.list_value_length(values)).to_pylist()
        if len(sizes) != 1 or sizes == [None]:
            raise InputError(f"column {name!r} must hold lists of one length, got {sizes[:3]}")
        shape = [*shape, sizes[0]]
        values = values.flatten()
    array = np.asarray(values.to_numpy(zero_copy_only=False))
    if values.null_count or array.dtype.kind not in "biuf":
        raise InputTypeError(f"column {name!r} must hold numbers, or lists of numbers, got {kind}")
    return array.reshape(shape)


def _is_list(kind: object) -> bool:
    types = arrow("scoring Arrow records").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
