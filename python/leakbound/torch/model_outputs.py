"""How a model is asked about a batch, and which labels its outputs predict.

What a model does is tried on a few rows, not guessed from its name: by its own loss, by answers to
other tokens, and by answers without padding.
"""

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from leakbound._base.console import one_line
from leakbound.errors import InputError, LeakboundError, OptionError
from leakbound.torch.columns import IGNORED, holds_whole_numbers
from leakbound.torch.data import Batch

_TRIED_ROWS = 4  # rows that a model is tried on
# How near two answers are that differ by rounding, as a share of the largest number.
_SINGLE_PRECISION_TOLERANCE = 1e-3
_HALF_PRECISION_TOLERANCE = 2e-2
# Whether models of transformers predict next tokens, where their own loss does not tell.
_NEXT_TOKEN_BY_CLASS = {
    "ForCausalLM": True,
    "LMHeadModel": True,
    "ForMaskedLM": False,
    "ForTokenClassification": False,
}
_NEXT_TOKEN_ADVICE = (
    "next_token=True if the outputs at a token predict the label to its right, as those of "
    "language models do, or next_token=False if they predict its own label"
)


class ScoredModel:
    """A model, what it is given beside the data, and which labels its outputs predict.

    Parameters
    ----------
    model : torch.nn.Module
        The model to ask.
    next_token : bool, optional
        Whether outputs of shape (batch, length, classes) predict the label to the right of their
        own place. If None, the model and the data are asked.
    default_next_token : bool, optional
        The answer where neither tells. If None, the user is asked.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        next_token: bool | None = None,
        default_next_token: bool | None = None,
    ) -> None:
        self.model = model
        self._next_token = next_token
        self._default_next_token = default_next_token
        self._next_token_known_by_data = False
        self._needs_position_ids: bool | None = None
        # Modules that compute a loss of their own.
        self._modules_with_loss: list[nn.Module] = []
        # A model such as T5 and BART, whose decoder reads the labels before each.
        self._encoder_decoder: nn.Module | None = None
        for module in model.modules():
            if "labels" in _names_of_forward_arguments(module):
                self._modules_with_loss.append(module)
                if self._encoder_decoder is None and _is_encoder_decoder(module):
                    self._encoder_decoder = module

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the model writes one sequence after reading another: masks are of the other."""
        return self._encoder_decoder is not None

    @property
    def next_token(self) -> bool | None:
        """Whether outputs predict the label to their right, once that is known."""
        return self._next_token

    def __call__(self, batch: Batch) -> object:
        """Return what the model answers about a batch."""
        return self._answer_of_model(self._batch_with_needed_inputs(batch))

    def predicts_next(self, batch: Batch, logits: Tensor) -> bool:
        """Return whether `logits` at a place predict the label to its right, or the one there."""
        if self._next_token is None and self._encoder_decoder is not None:
            self._next_token = False
        elif self._next_token is None:
            self._next_token = self._next_token_of_model_or_data(batch, logits)
        elif self._next_token_known_by_data and self._next_token not in _possible_label_readings(
            batch
        ):
            raise self._ambiguous_labels_error(logits)
        return self._next_token

    def _answer_of_model(self, batch: Batch) -> object:
        """Return an answer, or say what the model could not take."""
        try:
            return batch.output_of(self.model)
        except (LeakboundError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of other people's models
            model_arguments = {"inputs": batch.inputs, **batch.arguments}
            described_arguments = []
            for argument_name, argument_tensor in model_arguments.items():
                argument_dtype = str(argument_tensor.dtype).removeprefix("torch.")
                argument_shape = tuple(argument_tensor.shape)
                described_arguments.append(
                    f"{argument_name} of {argument_dtype} and shape {argument_shape}"
                )
            raise InputError(
                f"the model cannot take {', '.join(described_arguments)}: {type(error).__name__}: "
                f"{one_line(error)}"
            ) from error

    def _logits_of_model(self, batch: Batch) -> Any:
        return unwrapped(self._answer_of_model(batch))

    def _batch_with_needed_inputs(self, batch: Batch) -> Batch:
        """Add what the model needs: labels to decode from, places of tokens behind padding."""
        decoder_inputs = batch.arguments.keys() & {"decoder_input_ids", "decoder_inputs_embeds"}
        if self._encoder_decoder is not None and not decoder_inputs:
            _check_decoder_labels(self._encoder_decoder, batch)
            batch = batch.with_arguments(labels=batch.targets)
        left_padding = _left_padding_of_rows(batch)
        if left_padding is None:
            return batch
        if self._needs_position_ids is None:
            self._needs_position_ids = self._position_ids_are_needed(batch, left_padding)
        if self._needs_position_ids:
            return batch.with_arguments(
                position_ids=_position_ids_behind_padding(batch, left_padding)
            )
        return batch

    # Padding on the left

    def _position_ids_are_needed(self, batch: Batch, left_padding: Tensor) -> bool:
        """Return whether a padded row needs places to be answered as without its padding."""
        most_padded_row = int(left_padding.argmax())
        padded_row = batch.rows(slice(most_padded_row, most_padded_row + 1))
        row_padding = int(left_padding[most_padded_row])
        unpadded_row = padded_row.without_first(row_padding)
        unpadded_logits = self._logits_of_model(unpadded_row)
        if not _are_logits(unpadded_logits):
            return False  # of a function of the user's, who knows what it returns

        def difference_of(batch: Batch) -> float:
            logits = self._logits_of_model(batch)
            if _are_logits(logits) and logits.shape != unpadded_logits.shape:
                logits = logits[:, row_padding:]
            return _relative_difference_of_logits(logits, unpadded_logits)

        rounding_tolerance = _rounding_tolerance_of_logits(unpadded_logits)
        without_position_ids = difference_of(padded_row)
        if without_position_ids <= rounding_tolerance / 100:
            return False
        position_ids = _position_ids_behind_padding(
            padded_row, left_padding[most_padded_row : most_padded_row + 1]
        )
        try:
            with_position_ids = difference_of(padded_row.with_arguments(position_ids=position_ids))
        except InputError:  # it takes no position_ids
            with_position_ids = math.inf
        if min(without_position_ids, with_position_ids) > rounding_tolerance:
            raise InputError(
                "padding on the left changes what the model answers, with position_ids and "
                "without: pad on the right, and check that the model uses attention_mask"
            )
        return with_position_ids < without_position_ids

    # Next labels

    def _next_token_of_model_or_data(self, batch: Batch, logits: Tensor) -> bool:
        """Return which labels are predicted, by the model or by the data."""
        next_token_by_loss = self._next_token_by_own_loss(batch)
        if next_token_by_loss or (next_token_by_loss is not None and batch.labelled):
            return next_token_by_loss
        label_readings = _possible_label_readings(batch)
        may_be_next = label_readings == {True} and not self._depends_on_later_tokens(batch)
        if may_be_next or label_readings == {False}:
            self._next_token_known_by_data = next_token_by_loss is None
            return may_be_next
        if not batch.labelled:
            raise InputError(
                "what the model answers about a token depends on the tokens after it, so it does "
                "not predict the next one: pass labels, -100 where a token does not count"
            )
        if self._default_next_token is None:
            raise self._ambiguous_labels_error(logits)
        return self._default_next_token

    def _ambiguous_labels_error(self, logits: Tensor) -> OptionError:
        return OptionError(
            f"the outputs of {type(self.model).__name__}, of shape {tuple(logits.shape)}, may be "
            "of the label in their own place or of the next one: pass to leakbound.torch.score "
            f"{_NEXT_TOKEN_ADVICE}"
        )

    def _next_token_by_own_loss(self, batch: Batch) -> bool | None:
        """Return which labels the model's own loss compares its outputs with; None if unknown."""
        if not self._modules_with_loss:
            return None
        few_rows = self._batch_with_needed_inputs(batch.rows(slice(_TRIED_ROWS)))
        logits = self._logits_of_model(few_rows)
        if not _are_logits(logits) or logits.shape[:-1] != few_rows.targets.shape:
            return None
        for module in self._modules_with_loss:
            next_token = self._next_token_by_loss_of_module(module, few_rows, logits)
            if next_token is not None:
                return next_token
        return None

    def _next_token_by_loss_of_module(
        self, module: nn.Module, few_rows: Batch, logits: Tensor
    ) -> bool | None:
        """Return which labels the loss of a module is of, if `logits` are the module's."""
        few_labels = few_rows.labels().to(torch.int64)
        next_token_by_name = _next_token_by_class_name(module)
        try:
            output_of_module = few_rows.with_arguments(labels=few_labels).output_of(module)
        except Exception:  # of a model that another one calls in its own way
            if module is self.model:
                return next_token_by_name
            return None
        rounding_tolerance = _rounding_tolerance_of_logits(logits)
        if _relative_difference_of_logits(unwrapped(output_of_module), logits) > rounding_tolerance:
            return None
        own_loss = getattr(output_of_module, "loss", None)
        if not isinstance(own_loss, Tensor) or own_loss.numel() != 1:
            return next_token_by_name
        loss_of_module = float(own_loss)
        loss_in_place = _mean_cross_entropy(logits, few_labels)
        loss_of_next = _mean_cross_entropy(logits[:, :-1], few_labels[:, 1:])
        loss_tolerance = rounding_tolerance * (1 + abs(loss_of_module))
        is_in_place = abs(loss_of_module - loss_in_place) <= loss_tolerance
        is_of_next = abs(loss_of_module - loss_of_next) <= loss_tolerance
        if is_in_place == is_of_next:
            return next_token_by_name
        return is_of_next

    def _depends_on_later_tokens(self, batch: Batch) -> bool:
        """Return whether the answer about the first token of a row changes with later tokens."""
        every_token = torch.ones_like(batch.inputs)
        is_real_token = batch.arguments.get("attention_mask", every_token).bool()
        longest_row = int(is_real_token.sum(1).argmax())
        first_token = int(is_real_token[longest_row].to(torch.int64).argmax())
        one_row = self._batch_with_needed_inputs(batch.rows(slice(longest_row, longest_row + 1)))
        lowest_token = batch.inputs.min()
        highest_token = batch.inputs.max()
        changed_tokens = one_row.inputs.clone()
        later_tokens = changed_tokens[:, first_token + 1 :]
        later_tokens[:] = torch.where(later_tokens == lowest_token, highest_token, lowest_token)
        logits_before = self._logits_of_model(one_row)
        logits_after = self._logits_of_model(one_row.with_inputs(changed_tokens))
        if _are_logits(logits_before) and _are_logits(logits_after):
            logits_before = logits_before[:, first_token]
            logits_after = logits_after[:, first_token]
        if not isinstance(logits_before, Tensor):
            return False
        relative_change = _relative_difference_of_logits(logits_after, logits_before)
        return relative_change > _rounding_tolerance_of_logits(logits_before)


def _check_decoder_labels(encoder_decoder: nn.Module, batch: Batch) -> None:
    """Check that there are labels that a decoder can read."""
    if not batch.labelled:
        raise InputError(
            f"{type(encoder_decoder).__name__} writes one sequence after reading another: pass "
            "what it should write as labels, beside input_ids"
        )
    if batch.targets.ndim == 2 and bool((batch.targets[:, 0] == IGNORED).any()):
        raise InputError(
            "labels that begin with -100 give the decoder padding to read first: pad labels on "
            "the right, or pass decoder_input_ids"
        )


def _next_token_by_class_name(module: nn.Module) -> bool | None:
    """Return which labels a model of transformers predicts by the name of its class."""
    class_name = type(module).__name__
    for ending, next_token in _NEXT_TOKEN_BY_CLASS.items():
        if class_name.endswith(ending):
            return next_token
    return None


def unwrapped(output: object) -> Any:
    """Return the logits of a model's output: its attribute of that name, or all of it."""
    return getattr(output, "logits", output)


def _names_of_forward_arguments(module: nn.Module) -> set[str]:
    """Return the names of what a module takes; those with labels compute a loss of their own."""
    try:
        return set(inspect.signature(type(module).forward).parameters)
    except (TypeError, ValueError):  # code that Python cannot read
        return set()


def _is_encoder_decoder(module: nn.Module) -> bool:
    """Return whether a module of transformers writes one sequence after reading another."""
    can_generate = getattr(module, "can_generate", None)
    if not callable(can_generate) or "decoder_input_ids" not in _names_of_forward_arguments(module):
        return False
    return bool(can_generate())


def label_losses(logits: Tensor, labels: Tensor, *, reduction: str = "none") -> Tensor:
    """Return the loss of each label that counts, in the precision of logits but at least float32.

    Cross-entropy of rows of logits of shape (labels, classes), 0 for labels of -100; with
    ``reduction="mean"`` the mean of those that count.
    """
    loss_precision = torch.promote_types(logits.dtype, torch.float32)
    return functional.cross_entropy(
        logits.to(loss_precision), labels, ignore_index=IGNORED, reduction=reduction
    )


def _mean_cross_entropy(token_logits: Tensor, token_labels: Tensor) -> float:
    """Return the mean loss of the token labels that count."""
    rows_of_logits = token_logits.flatten(0, 1)
    return float(label_losses(rows_of_logits, token_labels.flatten(), reduction="mean"))


def _possible_label_readings(batch: Batch) -> set[bool]:
    """Return what `next_token` may be, given labels and tokens: True, False, or both or neither.

    Labels that are the tokens in their places are those of models that predict the next one; labels
    that are the next tokens already are predicted in their own places.
    """
    input_tokens = batch.inputs
    label_tokens = batch.targets
    if not batch.labelled:
        return {True}
    if input_tokens.shape != label_tokens.shape or not holds_whole_numbers(input_tokens):
        return set()
    input_tokens = input_tokens.to(label_tokens.device)
    is_counted = label_tokens != IGNORED
    has_next = is_counted[:, :-1]
    possible_readings = set()
    are_own_tokens = (label_tokens == input_tokens)[is_counted].all()
    if are_own_tokens:
        possible_readings |= {True}
    are_next_tokens = (label_tokens[:, :-1] == input_tokens[:, 1:])[has_next].all()
    if has_next.any() and are_next_tokens:
        possible_readings |= {False}
    return possible_readings


def _left_padding_of_rows(batch: Batch) -> Tensor | None:
    """Return how much padding is on the left of each row.

    None where there is no padding, and where the data has position_ids.
    """
    attention_mask = batch.arguments.get("attention_mask")
    if attention_mask is None or "position_ids" in batch.arguments:
        return None
    if batch.inputs.ndim != 2 or attention_mask.shape != batch.inputs.shape:
        return None
    is_before_text = attention_mask.bool().cumsum(1) == 0
    padding_lengths = is_before_text.sum(1)
    is_empty_row = padding_lengths == attention_mask.shape[1]
    padding_lengths = padding_lengths.masked_fill(is_empty_row, 0)
    if padding_lengths.any():
        return padding_lengths
    return None


def _position_ids_behind_padding(batch: Batch, left_padding: Tensor) -> Tensor:
    """Return the positions of tokens, counted from the first one behind padding."""
    column_numbers = torch.arange(batch.inputs.shape[1], device=left_padding.device)
    behind_padding = column_numbers.unsqueeze(0) - left_padding.unsqueeze(1)
    return behind_padding.clamp(min=0)


def _are_logits(output: object) -> bool:
    return isinstance(output, Tensor) and output.is_floating_point() and output.ndim >= 2


def _rounding_tolerance_of_logits(logits: Tensor) -> float:
    """Return how far apart the same answers may be, as a share of the largest number."""
    if logits.element_size() >= torch.float32.itemsize:
        return _SINGLE_PRECISION_TOLERANCE
    return _HALF_PRECISION_TOLERANCE


def _relative_difference_of_logits(logits: object, expected_logits: Tensor) -> float:
    """Return the largest difference of two answers, as a share of the largest number."""
    if not isinstance(logits, Tensor) or logits.shape != expected_logits.shape:
        return math.inf
    expected_logits = expected_logits.float()
    absolute_differences = (logits.float() - expected_logits).abs().nan_to_num()
    magnitudes = expected_logits.abs().nan_to_num(posinf=0.0)
    largest_magnitude = float(magnitudes.max()) or 1.0
    return float(absolute_differences.max()) / largest_magnitude
