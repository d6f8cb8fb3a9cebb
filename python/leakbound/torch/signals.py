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
from leakbound.torch.asking import ScoredModel, unwrapped
from leakbound.torch.columns import IGNORED
from leakbound.torch.data import Batch

Signal: TypeAlias = SignalName | Callable[[Any, Tensor], Tensor]
Measure: TypeAlias = Callable[[Batch], Tensor]

# Logits whose losses are computed together: few enough to stay in a processor's cache on the CPU,
# and to need little memory on a GPU, which is slow at small pieces.
_LOGITS_IN_CPU_CACHE = 1 << 19
_LOGITS_ON_ACCELERATOR = 1 << 26
_MOST_TIED_SHARE = 0.1  # share of examples that may share their score: more cost an audit its power
_HALF_PRECISION_TOLERANCE = 0.02  # what half precision may round
_MOST_LISTED_IDS = 5  # ids that a message names


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
    exact_logits = float64(logits)
    classes = targets.to(exact_logits.device, torch.int64).unsqueeze(1)
    other_logits = exact_logits.scatter(1, classes, -torch.inf)
    return exact_logits.gather(1, classes).squeeze(1) - other_logits.logsumexp(1)


def float64(logits: Tensor) -> Tensor:
    """Return logits or losses in float64, on the CPU where their device (Apple's) has none."""
    if logits.device.type == "mps":
        logits = logits.cpu()
    return logits.to(torch.float64)


def measure(
    model: nn.Module, signal: Signal, reference: nn.Module, *, next_token: bool | None = None
) -> Measure:
    """Return the function that measures `signal` on a batch."""
    scored_model = ScoredModel(model, next_token=next_token)
    scored_reference = ScoredModel(reference, next_token=next_token)
    if callable(signal):
        function = signal

        def own_signal(batch: Batch) -> Tensor:
            values = function(scored_model(batch), batch.labels())
            return _checked_signal_values(values, name=signal_name(signal), examples=len(batch))

        return own_signal

    def loss_drop(batch: Batch) -> Tensor:
        reference_loss = _loss_of_examples(scored_reference, batch)
        return reference_loss - _loss_of_examples(scored_model, batch)

    def cross_entropy(batch: Batch) -> Tensor:
        output = scored_model(batch)
        return -_cross_entropy_of_examples(scored_model, output=output, batch=batch)

    def binary_cross_entropy(batch: Batch) -> Tensor:
        return -_binary_cross_entropy_of_examples(scored_model(batch), batch)

    def margin(batch: Batch) -> Tensor:
        logits, targets = _checked_class_logits(scored_model(batch), batch)
        return logit_margin(logits, targets)

    measures: dict[SignalName, Measure] = {
        "loss_drop": loss_drop,
        "cross_entropy": cross_entropy,
        "binary_cross_entropy": binary_cross_entropy,
        "logit_margin": margin,
    }
    return measures[signal]


def token_losses_of(
    scored_model: ScoredModel, output: object, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Return the loss of each label, where the output that predicts it is, and which count."""
    logits = _checked_token_logits(output, batch.targets)
    _check_token_labels(logits.shape[2], batch)
    predicts_next = scored_model.predicts_next(batch, logits)
    labels = batch.targets.to(torch.int64)
    attention_mask = None
    if not scored_model.is_encoder_decoder:
        attention_mask = batch.arguments.get("attention_mask")
    if attention_mask is not None and attention_mask.shape == labels.shape:
        is_padding = attention_mask.to(labels.device) == 0
        labels = labels.masked_fill(is_padding, IGNORED)
        if predicts_next:  # nor does what is predicted from padding
            follows_padding = is_padding[:, :-1]
            labels[:, 1:].masked_fill_(follows_padding, IGNORED)
    if predicts_next:  # labels where the outputs that predict them are: one to the left
        labels = functional.pad(labels[:, 1:], (0, 1), value=IGNORED)
    is_counted = labels != IGNORED
    is_empty_row = ~is_counted.any(1)
    if is_empty_row.any():
        empty_rows = is_empty_row.nonzero()[:, 0].tolist()
        ignored = "those with label -100"
        if predicts_next:
            ignored = "padding, -100 and the first"
        raise InputError(f"{_rows_in_words(empty_rows, batch)}: no token counts but {ignored}")
    labels_on_device = labels.to(logits.device, non_blocking=True)
    return _token_cross_entropy(logits, labels_on_device), is_counted


def _cross_entropy_of_examples(scored_model: ScoredModel, output: object, batch: Batch) -> Tensor:
    """Loss of the class, or mean loss of the tokens that count."""
    if _dimensions(output) == 3:
        losses, is_counted = token_losses_of(scored_model, output=output, batch=batch)
        total_losses = float64(losses).sum(1)
        counted_tokens = is_counted.sum(1).to(total_losses.device)
        return total_losses / counted_tokens
    # In the precision of the logits but at least float32, where it is 0 from margins of 17 on.
    logits, targets = _checked_class_logits(output, batch)
    precision = torch.promote_types(logits.dtype, torch.float32)
    labels = targets.to(logits.device, torch.int64)
    return functional.cross_entropy(logits.to(precision), labels, reduction="none")


def _binary_cross_entropy_of_examples(output: object, batch: Batch) -> Tensor:
    r"""Mean loss of independent labels: :math:`\frac1L\sum_l\log(1+e^{-s_lz_l})`, in float64.

    Here :math:`s_l` is 1 where the label holds and -1 where it does not.
    """
    exact_logits = float64(_checked_binary_logits(output, batch))
    labels = batch.labels().reshape(exact_logits.shape)
    signs = 2 * labels.to(exact_logits.device, exact_logits.dtype) - 1
    log_probabilities = functional.logsigmoid(signs * exact_logits)
    return -log_probabilities.mean(1)


def _checked_class_logits(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Check logits and labels of a classifier, and return both on the device."""
    logits = unwrapped(output)
    targets = batch.targets
    examples = len(batch)
    has_row_of_classes = _is_floating(logits, 2) and logits.shape[1] >= 2
    if not has_row_of_classes or len(logits) != examples:
        message = (
            "the model must return logits of shape ({examples}, classes), got {got}; for a "
            "language model pass {signal='cross_entropy'}, for other outputs "
            "signal=function(output, targets) -> tensor of shape (batch,)"
        )
        raise InputError(Message(message, examples=examples, got=_tensor_in_words(logits)))
    if targets.shape != (examples,) or targets.is_floating_point() or targets.is_complex():
        raise InputError(
            "targets must be one integer class label for each example, got "
            f"{_tensor_in_words(targets)} for a batch of {examples}"
        )
    labels = targets.to(torch.int64)
    classes = logits.shape[1]
    is_outside = (labels < 0) | (labels >= classes)
    if is_outside.any():
        row = int(is_outside.nonzero()[0, 0])
        raise InputError(
            f"target {int(labels[row])} at {_rows_in_words([row], batch)} is outside 0 … "
            f"{classes - 1}, the classes of the model's outputs"
        )
    return logits, batch.labels()


def _dimensions(output: object) -> int:
    logits = unwrapped(output)
    if isinstance(logits, Tensor):
        return logits.ndim
    return 0


def _loss_of_examples(scored_model: ScoredModel, batch: Batch) -> Tensor:
    """Loss of each example: that of several labels where each logit has a target of its own."""
    output = scored_model(batch)
    # A row of labels has as many dimensions as its logits.
    if 0 < _dimensions(output) == batch.targets.ndim:
        return float64(_binary_cross_entropy_of_examples(output, batch))
    return float64(_cross_entropy_of_examples(scored_model, output=output, batch=batch))


def _token_cross_entropy(logits: Tensor, predicted: Tensor) -> Tensor:
    r"""Loss of each predicted label: :math:`\log\sum_je^{z_{tj}}-z_{t,y_t}`, at least 0.

    In the precision of the logits but at least float32; a block of logits at a time.
    """
    precision = torch.promote_types(logits.dtype, torch.float32)
    most_logits = _LOGITS_ON_ACCELERATOR
    if logits.device.type == "cpu":
        most_logits = _LOGITS_IN_CPU_CACHE
    rows_of_block = max(1, most_logits // logits.shape[-1])
    logit_blocks = torch.split(logits.flatten(0, 1), rows_of_block)
    label_blocks = torch.split(predicted.flatten(), rows_of_block)
    losses = []
    for block, labels in zip(logit_blocks, label_blocks, strict=True):
        block_losses = functional.cross_entropy(
            block.to(precision), labels, ignore_index=IGNORED, reduction="none"
        )
        losses.append(block_losses)
    return torch.cat(losses).view(predicted.shape)


def _checked_token_logits(output: object, labels: Tensor) -> Tensor:
    """Check that a model's output is one row of vocabulary logits for each token."""
    if labels.ndim != 2 or labels.is_floating_point() or labels.is_complex():
        raise InputError(
            "labels must be one integer for each token, in a table of shape (batch, length), got "
            f"{_tensor_in_words(labels)}"
        )
    logits = unwrapped(output)
    if _is_floating(logits, 3) and logits.shape[:2] == labels.shape:
        return logits
    batch, length = labels.shape
    raise InputError(
        f"the model must return logits of shape ({batch}, {length}, vocabulary) for labels of "
        f"shape ({batch}, {length}), got {_tensor_in_words(logits)}"
    )


def _check_token_labels(classes: int, batch: Batch) -> None:
    """Check that labels are -100 or classes of the outputs: tokens of the vocabulary."""
    labels = batch.targets.to(torch.int64)
    is_class = (labels >= 0) & (labels < classes)
    is_strange = ~is_class & (labels != IGNORED)
    if is_strange.any():
        row, column = is_strange.nonzero()[0].tolist()
        label = int(labels[row, column])
        raise InputError(
            f"label {label} at {_rows_in_words([row], batch)} is outside 0 … {classes - 1}, the "
            "vocabulary; a token that must not count has label -100"
        )


def _checked_binary_logits(output: object, batch: Batch) -> Tensor:
    """Check that a model's output is one logit for each target, and each target 0 or 1."""
    logits = unwrapped(output)
    targets = batch.targets
    if not _is_floating(logits, 1, 2) or logits.shape != targets.shape or not logits.numel():
        raise InputError(
            f"the model must return one logit for each label, of shape {tuple(targets.shape)} as "
            f"the targets, got {_tensor_in_words(logits)}"
        )
    is_binary = (targets == 0) | (targets == 1)
    if not is_binary.all():
        first_strange = targets[~is_binary][0].item()
        row = int((~is_binary).nonzero()[0, 0])
        raise InputError(
            f"targets of several labels must be 0 or 1, got {first_strange} at "
            f"{_rows_in_words([row], batch)}"
        )
    return logits.reshape(len(targets), -1)


def _checked_signal_values(values: object, name: str, examples: int) -> Tensor:
    """Check that a callable signal returned one real number for each example."""
    if isinstance(values, Tensor) and values.shape == (examples,) and not values.is_complex():
        return values.detach()
    raise InputError(
        f"signal {name} must return a tensor of real numbers of shape ({examples},) for a batch of "
        f"{examples}, got {_tensor_in_words(values)}; use reduction='none' in losses"
    )


def check_nan(values: FloatArray, ids: AnyArray, name: str) -> None:
    """Check that every score is a number."""
    nan_rows = np.flatnonzero(np.isnan(values))
    if nan_rows.size:
        raise InputError(
            f"{name} is NaN for {nan_rows.size} of {values.size} examples, "
            f"{_ids_in_words(ids[nan_rows])}: look for a diverged model, an overflow in half "
            "precision (model.float()) or bad inputs"
        )


def check_alone(
    scores_among_others: FloatArray,
    scores_alone: FloatArray,
    tolerance: float = _HALF_PRECISION_TOLERANCE,
) -> None:
    """Check that examples are scored alone, or among their own copies, as they were among others.

    Where members and others are in different batches, another score would tell them apart. Copies
    leave the shape of the batch, and so what a model draws at random for it.
    """
    are_close = np.allclose(
        scores_among_others, scores_alone, rtol=tolerance, atol=tolerance, equal_nan=True
    )
    if not are_close:
        raise InputError(
            "the model's answer about an example depends on the other examples of its batch, as "
            "with BatchNorm without running statistics: score by a model that answers row by row"
        )


def check_ties(values: FloatArray, name: str) -> None:
    """Check that rounding has not made too many scores equal: an audit cannot tell these apart."""
    distinct_values, counts = np.unique(values, return_counts=True)
    tied_examples = int(counts[counts > 1].sum())
    if tied_examples <= _MOST_TIED_SHARE * values.size:
        return
    position = int(np.argmax(counts))
    most_frequent = distinct_values[position] + 0.0
    raise InputError(
        f"{tied_examples} of {values.size} examples share their {name} with another "
        f"({counts[position]} are exactly {most_frequent:g}), so that no audit can tell them "
        "apart: compute it from logits in float32 or float64 (model.float(), no autocast), drop "
        "duplicates, and for classes use signal='logit_margin', which does not round to 0 as "
        "losses do; pass as reference the model as it was before training; return integers if "
        "values are meant to repeat"
    )


def _is_floating(value: object, *dimensions: int) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in dimensions


def _tensor_in_words(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__


def _rows_in_words(rows: list[int], batch: Batch) -> str:
    positions = batch.first_row + np.array(rows)
    if batch.ids is None or positions[-1] >= len(batch.ids):
        return _ids_in_words(positions)
    return _ids_in_words(batch.ids[positions])


def _ids_in_words(ids: AnyArray) -> str:
    listed = ", ".join(map(str, ids[:_MOST_LISTED_IDS]))
    if len(ids) == 1:
        return f"id {listed}"
    if len(ids) > _MOST_LISTED_IDS:
        return f"ids {listed}, …"
    return f"ids {listed}"
