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
from leakbound.torch.columns import IGNORED
from leakbound.torch.data import Batch

_ROWS = 4  # rows that a model is tried on
# How near two answers are that differ by rounding, as a share of the largest number.
_EXACT = 1e-3
_HALF = 2e-2
# Whether models of transformers predict next tokens, where their own loss does not tell.
_KINDS = {
    "ForCausalLM": True,
    "LMHeadModel": True,
    "ForMaskedLM": False,
    "ForTokenClassification": False,
}
_CHOICE = (
    "next_token=True if the outputs at a token predict the label to its right, as those of "
    "language models do, or next_token=False if they predict its own label"
)


class Asked:
    """A model, what it is given beside the data, and which labels its outputs predict.

    Parameters
    ----------
    model : torch.nn.Module
        The model to ask.
    next_token : bool, optional
        Whether outputs of shape (batch, length, classes) predict the label to the right of their
        own place. If None, the model and the data are asked.
    otherwise : bool, optional
        The answer where neither tells. If None, the user is asked.
    """

    def __init__(
        self, model: nn.Module, *, next_token: bool | None = None, otherwise: bool | None = None
    ) -> None:
        self.model = model
        self._next_token = next_token
        self._otherwise = otherwise
        self._by_data = False
        self._needs_places: bool | None = None
        self._own = [one for one in model.modules() if "labels" in _arguments(one)]
        # Models such as T5 and BART, whose decoder reads the labels before each.
        self._decoder = next((one for one in self._own if _decodes(one)), None)

    @property
    def decodes(self) -> bool:
        """Whether the model writes one sequence after reading another: masks are of the other."""
        return self._decoder is not None

    @property
    def next_token(self) -> bool | None:
        """Whether outputs predict the label to their right, once that is known."""
        return self._next_token

    def __call__(self, batch: Batch) -> object:
        """Return what the model answers about a batch."""
        return self._answer(self._ready(batch))

    def predicts_next(self, batch: Batch, logits: Tensor) -> bool:
        """Return whether `logits` at a place predict the label to its right, or the one there."""
        if self._next_token is None and self._decoder is not None:
            self._next_token = False
        elif self._next_token is None:
            self._next_token = self._settled(batch, logits)
        elif self._by_data and self._next_token not in _read_off(batch):
            raise self._ambiguous(logits)
        return self._next_token

    def _answer(self, batch: Batch) -> object:
        """Return an answer, or say what the model could not take."""
        try:
            return batch.through(self.model)
        except (LeakboundError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of other people's models
            named = {"inputs": batch.inputs, **batch.others}
            given = ", ".join(
                f"{name} of {str(part.dtype).removeprefix('torch.')} and shape {tuple(part.shape)}"
                for name, part in named.items()
            )
            raise InputError(
                f"the model cannot take {given}: {type(error).__name__}: {one_line(error)}"
            ) from error

    def _ready(self, batch: Batch) -> Batch:
        """Add what the model needs: labels to decode from, places of tokens behind padding."""
        reads = batch.others.keys() & {"decoder_input_ids", "decoder_inputs_embeds"}
        if self._decoder is not None and not reads:
            if not batch.labelled:
                raise InputError(
                    f"{type(self._decoder).__name__} writes one sequence after reading another: "
                    "pass what it should write as labels, beside input_ids"
                )
            if batch.targets.ndim == 2 and bool((batch.targets[:, 0] == IGNORED).any()):
                raise InputError(
                    "labels that begin with -100 give the decoder padding to read first: pad "
                    "labels on the right, or pass decoder_input_ids"
                )
            batch = batch.given(labels=batch.targets)
        padding = _left_padding(batch)
        if padding is None:
            return batch
        if self._needs_places is None:
            self._needs_places = self._tries_places(batch, padding)
        if self._needs_places:
            return batch.given(position_ids=_places(batch, padding))
        return batch

    # Padding on the left

    def _tries_places(self, batch: Batch, padding: Tensor) -> bool:
        """Return whether a padded row needs places to be answered as without its padding."""
        row = int(padding.argmax())
        one = batch.rows(slice(row, row + 1))
        columns = int(padding[row])
        alone = unwrapped(self._answer(one.without_first(columns)))
        if not _is_logits(alone):
            return False  # of a function of the user's, who knows what it returns

        def distance(padded: Batch) -> float:
            found = unwrapped(self._answer(padded))
            if _is_logits(found) and found.shape != alone.shape:
                found = found[:, columns:]
            return _distance(found, alone)

        without = distance(one)
        if without <= _near(alone) / 100:
            return False
        try:
            given = distance(one.given(position_ids=_places(one, padding[row : row + 1])))
        except InputError:  # it takes no places
            given = math.inf
        if min(without, given) > _near(alone):
            raise InputError(
                "padding on the left changes what the model answers, with position_ids and "
                "without: pad on the right, and check that the model uses attention_mask"
            )
        return given < without

    # Next labels

    def _settled(self, batch: Batch, logits: Tensor) -> bool:
        """Return which labels are predicted, by the model or by the data."""
        known = self._by_model(batch)
        if known or (known is not None and batch.labelled):
            return known
        possible = _read_off(batch)
        if len(possible) == 1 and not (possible == {True} and self._sees_ahead(batch)):
            self._by_data = known is None
            return possible.pop()
        if not batch.labelled:
            raise InputError(
                "what the model answers about a token depends on the tokens after it, so it does "
                "not predict the next one: pass labels, -100 where a token does not count"
            )
        if self._otherwise is None:
            raise self._ambiguous(logits)
        return self._otherwise

    def _ambiguous(self, logits: Tensor) -> OptionError:
        return OptionError(
            f"the outputs of {type(self.model).__name__}, of shape {tuple(logits.shape)}, may be "
            "of the label in their own place or of the next one: pass to leakbound.torch.score "
            f"{_CHOICE}"
        )

    def _by_model(self, batch: Batch) -> bool | None:
        """Return which labels the model's own loss compares its outputs with; None if unknown."""
        if not self._own:
            return None
        few = self._ready(batch.rows(slice(_ROWS)))
        logits = unwrapped(self._answer(few))
        if not _is_logits(logits) or logits.shape[:-1] != few.targets.shape:
            return None
        told = (self._by_loss(one, few=few, logits=logits) for one in self._own)
        return next((one for one in told if one is not None), None)

    def _by_loss(self, own: nn.Module, few: Batch, logits: Tensor) -> bool | None:
        """Return which labels the loss of a module is of, if `logits` are the module's."""
        labels = few.labels().to(torch.int64)
        kinds = [kind for end, kind in _KINDS.items() if type(own).__name__.endswith(end)]
        named = None
        if kinds:
            named = kinds[0]
        try:
            answer = few.given(labels=labels).through(own)
        except Exception:  # of a model that another one calls in its own way
            if own is self.model:
                return named
            return None
        if _distance(unwrapped(answer), logits) > _near(logits):
            return None
        loss = getattr(answer, "loss", None)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            return named
        here = _mean_loss(logits, labels)
        following = _mean_loss(logits[:, :-1], labels[:, 1:])
        room = _near(logits) * (1 + abs(float(loss)))
        fits = [abs(float(loss) - mean) <= room for mean in (here, following)]
        if fits[0] == fits[1]:
            return named
        return fits[1]

    def _sees_ahead(self, batch: Batch) -> bool:
        """Return whether the answer about the first token of a row changes with later tokens."""
        real = batch.others.get("attention_mask", torch.ones_like(batch.inputs)).bool()
        row = int(real.sum(1).argmax())
        first = int(real[row].to(torch.int64).argmax())
        one = self._ready(batch.rows(slice(row, row + 1)))
        low = batch.inputs.min()
        high = batch.inputs.max()
        others = one.inputs.clone()
        others[:, first + 1 :] = torch.where(others[:, first + 1 :] == low, high, low)
        before = unwrapped(self._answer(one))
        after = unwrapped(self._answer(one.of(others)))
        if _is_logits(before) and _is_logits(after):
            before = before[:, first]
            after = after[:, first]
        return isinstance(before, Tensor) and _distance(after, before) > _near(before)


def unwrapped(output: object) -> Any:
    """Return the logits of a model's output: its attribute of that name, or all of it."""
    return getattr(output, "logits", output)


def _arguments(module: nn.Module) -> set[str]:
    """Return the names of what a module takes; those with labels compute a loss of their own."""
    try:
        return set(inspect.signature(type(module).forward).parameters)
    except (TypeError, ValueError):  # code that Python cannot read
        return set()


def _decodes(module: nn.Module) -> bool:
    """Return whether a module of transformers writes one sequence after reading another."""
    generates = getattr(module, "can_generate", None)
    if not callable(generates) or "decoder_input_ids" not in _arguments(module):
        return False
    return bool(generates())


def _mean_loss(logits: Tensor, labels: Tensor) -> float:
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)).flatten(0, 1)
    return float(functional.cross_entropy(scores, labels.flatten(), ignore_index=IGNORED))


def _read_off(batch: Batch) -> set[bool]:
    """Return what may be true of labels, given the tokens: that they are these or the next ones.

    Labels that are the tokens in their places are those of models that predict the next one; labels
    that are the next tokens already are predicted in their own places.
    """
    inputs = batch.inputs
    labels = batch.targets
    if not batch.labelled:
        return {True}
    if inputs.shape != labels.shape or inputs.is_floating_point() or inputs.is_complex():
        return set()
    inputs = inputs.to(labels.device)
    counted = labels != IGNORED
    predicted = counted[:, :-1]
    are_tokens = (labels == inputs)[counted].all()
    are_next = (labels[:, :-1] == inputs[:, 1:])[predicted].all()
    holds = {True: bool(are_tokens), False: bool(predicted.any() and are_next)}
    return {kind for kind in holds if holds[kind]}


def _left_padding(batch: Batch) -> Tensor | None:
    """Return how much padding is on the left of each row; None where there is none, or places."""
    mask = batch.others.get("attention_mask")
    tokens = batch.inputs.ndim == 2 and mask is not None and mask.shape == batch.inputs.shape
    if mask is None or not tokens or "position_ids" in batch.others:
        return None
    before = mask.bool().cumsum(1) == 0
    padding = before.sum(1)
    padding = padding.masked_fill(padding == mask.shape[1], 0)
    if bool(padding.any()):
        return padding
    return None


def _places(batch: Batch, padding: Tensor) -> Tensor:
    """Return the places of tokens, counted from the first one behind padding."""
    every = torch.arange(batch.inputs.shape[1], device=padding.device)
    return (every.unsqueeze(0) - padding.unsqueeze(1)).clamp(min=0)


def _is_logits(output: object) -> bool:
    return isinstance(output, Tensor) and output.is_floating_point() and output.ndim >= 2


def _near(logits: Tensor) -> float:
    if logits.element_size() >= torch.float32.itemsize:
        return _EXACT
    return _HALF


def _distance(found: object, expected: Tensor) -> float:
    """Return the largest difference of two answers, as a share of the largest number."""
    if not isinstance(found, Tensor) or found.shape != expected.shape:
        return math.inf
    apart = (found.float() - expected.float()).abs().nan_to_num()
    scale = float(expected.float().abs().nan_to_num(posinf=0.0).max()) or 1.0
    return float(apart.max()) / scale
