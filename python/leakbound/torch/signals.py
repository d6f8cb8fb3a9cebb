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
from leakbound.torch.columns import IGNORED, holds_whole_numbers
from leakbound.torch.data import Batch
from leakbound.torch.model_outputs import ScoredModel, label_losses, unwrapped

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
    class_logits = in_float64(logits)
    true_classes = targets.to(class_logits.device, torch.int64).unsqueeze(1)
    other_logits = class_logits.scatter(1, true_classes, -torch.inf)
    return class_logits.gather(1, true_classes).squeeze(1) - other_logits.logsumexp(1)


def in_float64(logits: Tensor) -> Tensor:
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

    def measure_batch(batch: Batch) -> Tensor:
        if signal == "loss_drop":
            losses_of_reference = _losses_of_examples(scored_reference, batch)
            return losses_of_reference - _losses_of_examples(scored_model, batch)
        model_output = scored_model(batch)
        if callable(signal):
            signal_values = signal(model_output, batch.labels())
            return _checked_signal_values(
                signal_values, name_of_signal=signal_name(signal), batch_size=len(batch)
            )
        if signal == "cross_entropy":
            return -_cross_entropies_of_examples(scored_model, output=model_output, batch=batch)
        if signal == "binary_cross_entropy":
            return -_binary_cross_entropies_of_examples(model_output, batch)
        class_logits, class_targets = _checked_class_logits(model_output, batch)
        return logit_margin(class_logits, class_targets)

    return measure_batch


def token_losses_of(
    scored_model: ScoredModel, output: object, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Return the loss of each label, where the output that predicts it is, and which count."""
    token_logits = _checked_token_logits(output, batch.targets)
    _check_token_labels(token_logits.shape[2], batch)
    predicts_next = scored_model.predicts_next(batch, token_logits)
    token_labels = batch.targets.to(torch.int64)
    attention_mask = None
    if not scored_model.is_encoder_decoder:
        attention_mask = batch.arguments.get("attention_mask")
    if attention_mask is not None and attention_mask.shape == token_labels.shape:
        is_padding = attention_mask.to(token_labels.device) == 0
        token_labels = token_labels.masked_fill(is_padding, IGNORED)
        if predicts_next:  # nor does what is predicted from padding
            labels_of_next_tokens = token_labels[:, 1:]
            labels_of_next_tokens.masked_fill_(is_padding[:, :-1], IGNORED)
    if predicts_next:  # labels where the outputs that predict them are: one to the left
        token_labels = functional.pad(token_labels[:, 1:], (0, 1), value=IGNORED)
    is_counted_label = token_labels != IGNORED
    is_row_without_labels = ~is_counted_label.any(1)
    if is_row_without_labels.any():
        rows_without_labels = is_row_without_labels.nonzero()[:, 0].tolist()
        ignored_in_words = "those with label -100"
        if predicts_next:
            ignored_in_words = "padding, -100 and the first"
        raise InputError(
            f"{_rows_described(rows_without_labels, batch)}: no token counts but {ignored_in_words}"
        )
    labels_on_device = token_labels.to(token_logits.device, non_blocking=True)
    return _cross_entropies_of_tokens(token_logits, labels_on_device), is_counted_label


def _cross_entropies_of_examples(scored_model: ScoredModel, output: object, batch: Batch) -> Tensor:
    """Loss of the class, or mean loss of the tokens that count."""
    if _dimensions_of_logits(output) == 3:
        losses_of_tokens, is_counted_label = token_losses_of(
            scored_model, output=output, batch=batch
        )
        total_losses = in_float64(losses_of_tokens).sum(1)
        counted_tokens = is_counted_label.sum(1).to(total_losses.device)
        return total_losses / counted_tokens
    # In the precision of the logits but at least float32, where it is 0 from margins of 17 on.
    class_logits, class_targets = _checked_class_logits(output, batch)
    class_labels = class_targets.to(class_logits.device, torch.int64)
    return label_losses(class_logits, class_labels)


def _binary_cross_entropies_of_examples(output: object, batch: Batch) -> Tensor:
    r"""Mean loss of independent labels: :math:`\frac1L\sum_l\log(1+e^{-s_lz_l})`, in float64.

    Here :math:`s_l` is 1 where the label holds and -1 where it does not.
    """
    binary_logits = in_float64(_checked_logits_of_labels(output, batch))
    binary_labels = batch.labels().reshape(binary_logits.shape)
    label_signs = 2 * binary_labels.to(binary_logits.device, binary_logits.dtype) - 1
    log_probabilities = functional.logsigmoid(label_signs * binary_logits)
    return -log_probabilities.mean(1)


def _checked_class_logits(output: object, batch: Batch) -> tuple[Tensor, Tensor]:
    """Check logits and labels of a classifier, and return both on the device."""
    class_logits = unwrapped(output)
    class_targets = batch.targets
    batch_size = len(batch)
    has_row_of_classes = _is_floating_tensor(class_logits, 2) and class_logits.shape[1] >= 2
    if not has_row_of_classes or len(class_logits) != batch_size:
        message = (
            "the model must return logits of shape ({examples}, classes), got {got}; for a "
            "language model pass {signal='cross_entropy'}, for other outputs "
            "signal=function(output, targets) -> tensor of shape (batch,)"
        )
        raise InputError(Message(message, examples=batch_size, got=_tensor_described(class_logits)))
    if class_targets.shape != (batch_size,) or not holds_whole_numbers(class_targets):
        raise InputError(
            "targets must be one integer class label for each example, got "
            f"{_tensor_described(class_targets)} for a batch of {batch_size}"
        )
    class_labels = class_targets.to(torch.int64)
    logit_columns = class_logits.shape[1]
    is_outside = (class_labels < 0) | (class_labels >= logit_columns)
    if is_outside.any():
        first_outside = _first_target_described(class_labels, is_outside, batch)
        raise InputError(
            f"target {first_outside} is outside 0 … {logit_columns - 1}, the classes of the "
            "model's outputs"
        )
    return class_logits, batch.labels()


def _dimensions_of_logits(output: object) -> int:
    logits = unwrapped(output)
    if isinstance(logits, Tensor):
        return logits.ndim
    return 0


def _losses_of_examples(scored_model: ScoredModel, batch: Batch) -> Tensor:
    """Loss of each example: that of several labels where each logit has a target of its own."""
    output = scored_model(batch)
    # A row of labels has as many dimensions as its logits.
    if 0 < _dimensions_of_logits(output) == batch.targets.ndim:
        return in_float64(_binary_cross_entropies_of_examples(output, batch))
    return in_float64(_cross_entropies_of_examples(scored_model, output=output, batch=batch))


def _cross_entropies_of_tokens(token_logits: Tensor, predicted_labels: Tensor) -> Tensor:
    r"""Loss of each predicted label: :math:`\log\sum_je^{z_{tj}}-z_{t,y_t}`, at least 0.

    In the precision of the logits but at least float32; a block of logits at a time.
    """
    most_logits_at_once = _LOGITS_ON_ACCELERATOR
    if token_logits.device.type == "cpu":
        most_logits_at_once = _LOGITS_IN_CPU_CACHE
    rows_at_once = max(1, most_logits_at_once // token_logits.shape[-1])
    logit_blocks = torch.split(token_logits.flatten(0, 1), rows_at_once)
    label_blocks = torch.split(predicted_labels.flatten(), rows_at_once)
    losses_of_blocks = list(map(label_losses, logit_blocks, label_blocks))
    return torch.cat(losses_of_blocks).view(predicted_labels.shape)


def _checked_token_logits(output: object, token_labels: Tensor) -> Tensor:
    """Check that a model's output is one row of vocabulary logits for each token."""
    if token_labels.ndim != 2 or not holds_whole_numbers(token_labels):
        raise InputError(
            "labels must be one integer for each token, in a table of shape (batch, length), got "
            f"{_tensor_described(token_labels)}"
        )
    token_logits = unwrapped(output)
    if _is_floating_tensor(token_logits, 3) and token_logits.shape[:2] == token_labels.shape:
        return token_logits
    batch_size, length = token_labels.shape
    raise InputError(
        f"the model must return logits of shape ({batch_size}, {length}, vocabulary) for labels of "
        f"shape ({batch_size}, {length}), got {_tensor_described(token_logits)}"
    )


def _check_token_labels(vocabulary_size: int, batch: Batch) -> None:
    """Check that labels are -100 or classes of the outputs: tokens of the vocabulary."""
    token_labels = batch.targets.to(torch.int64)
    is_class = (token_labels >= 0) & (token_labels < vocabulary_size)
    is_outside = ~is_class & (token_labels != IGNORED)
    if is_outside.any():
        first_outside = _first_target_described(token_labels, is_outside, batch)
        raise InputError(
            f"label {first_outside} is outside 0 … {vocabulary_size - 1}, the vocabulary; a token "
            "that must not count has label -100"
        )


def _checked_logits_of_labels(output: object, batch: Batch) -> Tensor:
    """Check that a model's output is one logit for each target, and each target 0 or 1."""
    binary_logits = unwrapped(output)
    binary_targets = batch.targets
    if (
        not _is_floating_tensor(binary_logits, 1, 2)
        or binary_logits.shape != binary_targets.shape
        or not binary_logits.numel()
    ):
        raise InputError(
            "the model must return one logit for each label, of shape "
            f"{tuple(binary_targets.shape)} as the targets, got {_tensor_described(binary_logits)}"
        )
    is_binary = (binary_targets == 0) | (binary_targets == 1)
    if not is_binary.all():
        first_outside = _first_target_described(binary_targets, ~is_binary, batch)
        raise InputError(f"targets of several labels must be 0 or 1, got {first_outside}")
    return binary_logits.reshape(len(binary_targets), -1)


def _checked_signal_values(signal_values: object, name_of_signal: str, batch_size: int) -> Tensor:
    """Check that a callable signal returned one real number for each example."""
    if (
        isinstance(signal_values, Tensor)
        and signal_values.shape == (batch_size,)
        and not signal_values.is_complex()
    ):
        return signal_values.detach()
    raise InputError(
        f"signal {name_of_signal} must return a tensor of real numbers of shape ({batch_size},) "
        f"for a batch of {batch_size}, got {_tensor_described(signal_values)}; use "
        "reduction='none' in losses"
    )


def check_nan_scores(scores: FloatArray, example_ids: AnyArray, signal: str) -> None:
    """Check that every score is a number."""
    rows_of_nan = np.flatnonzero(np.isnan(scores))
    if rows_of_nan.size:
        raise InputError(
            f"{signal} is NaN for {rows_of_nan.size} of {scores.size} examples, "
            f"{_ids_described(example_ids[rows_of_nan])}: look for a diverged model, an overflow "
            "in half precision (model.float()) or bad inputs"
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


def check_tied_scores(scores: FloatArray, signal: str) -> None:
    """Check that rounding has not made too many scores equal: an audit cannot tell these apart."""
    distinct_values, examples_by_value = np.unique(scores, return_counts=True)
    tied_examples = int(examples_by_value[examples_by_value > 1].sum())
    if tied_examples <= _MOST_TIED_SHARE * scores.size:
        return
    most_frequent_place = int(np.argmax(examples_by_value))
    most_frequent = distinct_values[most_frequent_place] + 0.0
    raise InputError(
        f"{tied_examples} of {scores.size} examples share their {signal} with another "
        f"({examples_by_value[most_frequent_place]} are exactly {most_frequent:g}), so that no "
        "audit can tell them apart: compute it from logits in float32 or float64 (model.float(), "
        "no autocast), drop duplicates, and for classes use signal='logit_margin', which does not "
        "round to 0 as losses do; pass as reference the model as it was before training; return "
        "integers if values are meant to repeat"
    )


def _is_floating_tensor(value: object, *dimensions: int) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in dimensions


def _tensor_described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__


def _first_target_described(targets: Tensor, is_refused: Tensor, batch: Batch) -> str:
    """Return the first target that is refused, and the example that it is of."""
    first_refused_target = targets[is_refused][0].item()
    row_of_target, *_ = is_refused.nonzero()[0].tolist()
    return f"{first_refused_target} at {_rows_described([row_of_target], batch)}"


def _rows_described(batch_rows: list[int], batch: Batch) -> str:
    rows_in_data = batch.first_row + np.array(batch_rows)
    if batch.ids is None or rows_in_data[-1] >= len(batch.ids):
        return _ids_described(rows_in_data)
    return _ids_described(batch.ids[rows_in_data])


def _ids_described(example_ids: AnyArray) -> str:
    listed_ids = ", ".join(map(str, example_ids[:_MOST_LISTED_IDS]))
    if len(example_ids) == 1:
        return f"id {listed_ids}"
    if len(example_ids) > _MOST_LISTED_IDS:
        return f"ids {listed_ids}, …"
    return f"ids {listed_ids}"
