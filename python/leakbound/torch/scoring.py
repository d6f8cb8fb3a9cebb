"""Scoring: one pass over the data, one number for each example."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from leakbound._base.checks import (
    MOST_BATCH,
    check_ids,
    check_length,
    flag,
    instance,
    integer,
    vector,
)
from leakbound._base.console import track
from leakbound._base.messages import Message, Option
from leakbound._base.scores import Scores
from leakbound._base.types import AnyArray, ArrayInput, FloatArray
from leakbound.errors import DeviceMemoryError, InputError, OptionError
from leakbound.torch import signals
from leakbound.torch.data import EMPTY, Batches, read
from leakbound.torch.device import evaluating
from leakbound.torch.model_outputs import ScoredModel

Data: TypeAlias = (
    Dataset[object] | DataLoader[object] | tuple[object, object] | Mapping[str, object] | ArrayInput
)


def score(
    model: nn.Module,
    data: Data,
    *,
    signal: signals.Signal = "logit_margin",
    batch_size: int = 256,
    device: str | torch.device = "auto",
    ids: ArrayInput | None = None,
    progress: bool = True,
    reference: nn.Module | None = None,
    next_token: bool | None = None,
) -> Scores:
    r"""Score examples by how much `model` acts as if it was trained on them.

    One pass in evaluation mode. Afterwards the model is as it was: the mode of every submodule, the
    device, gradients and torch's random state on the CPU.

    Parameters
    ----------
    model : torch.nn.Module
        Maps a batch of inputs to logits, or to an object with such ``logits``: of shape
        (batch, classes) for class labels, (batch, labels) for several labels at once,
        (batch, length, vocabulary) for tokens, see `next_token`; for a callable `signal`, to
        anything. Encoder-decoder models of transformers are given labels, from which they make
        ``decoder_input_ids`` where the data has none.
    data : Dataset, DataLoader, tensors or arrays
        Pairs (x, y) of an input and its target, or all inputs and all targets. A target is a class
        label, for several labels a row of 0 and 1, for tokens a row of labels where they stand, as
        in transformers, -100 where a token does not count.

        Or tokens under their names: mappings with ``input_ids``, perhaps ``attention_mask``,
        ``labels`` and other arguments of the model; a table of integers is ``input_ids`` alone.
        Without ``labels`` every token counts. Padding never does, and no next token after it.

        A loader must keep the order of its dataset and not drop any example. Floats are given the
        precision of the model. Rows padded on the left get ``position_ids`` that count from their
        first token if the model needs them; padding that changes answers all the same is refused.
        If an answer depends on the other examples of its batch, score members and others in one
        call and in random order, as `leakbound.audit_model` does.
    signal : str or callable
        What to measure; higher must mean more likely a member.

        - "logit_margin": :math:`z_y-\log\sum_{j\ne y}e^{z_j}`, the log-odds of the label, in
          float64. Orders examples as the loss does and keeps confident ones apart.
        - "cross_entropy": minus the loss, as torch computes it in float32 (float64 for logits in
          float64). Confident examples round to 0 and are then refused as ties. For tokens, minus
          the mean loss of those that count.
        - "binary_cross_entropy": minus the mean loss of the labels, each by itself, in float64.
        - "loss_drop": the loss (of class, labels or tokens) under `reference` less that under
          `model`.
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
    reference : torch.nn.Module, optional
        For "loss_drop": the model at initialisation, or at another moment
        before the examples were trained on. Left as it was, too.
    next_token : bool, optional
        For outputs of shape (batch, length, classes): True if those at a token predict the label to
        its right, as language models do, and False if they predict its own label, as token
        classifiers, masked language models and decoders with ``decoder_input_ids`` do. If None,
        the loss that a model of transformers computes itself tells, or else labels that are the
        tokens, or the next tokens; where nothing tells, `score` asks for it.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", 2022, arXiv:2112.03570,
    equation 3 (log-odds).

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
    flag(progress, name="progress")
    if next_token is not None:
        flag(next_token, name="next_token")
    signal_label = signals.signal_name(signal)
    compared_model = model_to_compare(model, signal=signal, reference=reference)
    # 1. Whatever can be checked before the pass.
    batches, example_ids = _checked_batches_and_ids(
        model, data=data, batch_size=batch_size, ids=ids
    )
    # 2. The pass.
    with evaluating_with_reference(
        model, compared_model, device=device, batch_size=batch_size
    ) as chosen_device:
        measure_batch = signals.measure(
            model, signal=signal, reference=compared_model, next_token=next_token
        )
        on_device = batches.on(chosen_device, example_ids)
        tracked_batches = track(on_device, "scoring", total=batches.batches, shown=progress)
        example_scores, are_floats = joined_scores_of_batches(map(measure_batch, tracked_batches))
    # 3. What audits refuse, while the scores are at hand.
    if not example_scores.size:
        raise InputError(EMPTY)
    if example_ids is None:
        example_ids = np.arange(example_scores.size)
    example_ids = np.array(example_ids)
    check_ids(example_ids, np.zeros(example_scores.size, dtype=np.bool_))
    signals.check_nan_scores(example_scores, example_ids=example_ids, signal=signal_label)
    if are_floats:
        signals.check_tied_scores(example_scores, signal_label)
    return Scores(values=example_scores, ids=example_ids, signal=signal_label)


def token_losses(
    model: nn.Module,
    data: Data,
    *,
    batch_size: int = 256,
    device: str | torch.device = "auto",
    progress: bool = True,
) -> NDArray[np.floating]:
    r"""Return the loss of every token: what attacks on language models are made of.

    Column t holds :math:`-\log p(x_{t+1}\mid x_0,\ldots,x_t)`. The mean over the tokens that count
    is minus the "cross_entropy" of `score`.

    Parameters
    ----------
    model : torch.nn.Module
        A causal language model: maps tokens to logits of shape (batch, length, vocabulary), or to
        an object with such ``logits``.
    data, batch_size, device, progress : Dataset, DataLoader, tensors or arrays, and optional
        As in `score`.

    Returns
    -------
    ndarray of float32 or float64, shape (m, longest - 1)
        Losses in nats, at least 0, in the precision of the logits but at least float32; NaN where
        a token does not count, or a sequence is over.
    """
    flag(progress, name="progress")
    batches, example_ids = _checked_batches_and_ids(
        model, data=data, batch_size=batch_size, ids=None
    )
    losses_of_batches: list[NDArray[np.floating]] = []
    scored_model = ScoredModel(model, default_next_token=True)
    with evaluating_with_reference(
        model, model, device=device, batch_size=batch_size
    ) as chosen_device:
        on_device = batches.on(chosen_device, example_ids)
        for batch in track(on_device, "scoring", total=batches.batches, shown=progress):
            output = scored_model(batch)
            losses, is_counted = signals.token_losses_of(scored_model, output=output, batch=batch)
            if not scored_model.next_token:
                raise InputError(
                    f"token_losses takes causal language models, and {type(model).__name__} "
                    "predicts labels in their own places: use score with signal='cross_entropy'"
                )
            counted_losses = losses.cpu().masked_fill(~is_counted.cpu(), torch.nan)
            # The last token predicts no label.
            losses_of_batches.append(counted_losses[:, :-1].numpy())
    if not losses_of_batches:
        raise InputError(EMPTY)
    longest = max(losses.shape[1] for losses in losses_of_batches)
    padded_losses = []
    for batch_losses in losses_of_batches:
        missing_columns = longest - batch_losses.shape[1]
        widths = ((0, 0), (0, missing_columns))
        padded_losses.append(np.pad(batch_losses, widths, constant_values=np.nan))
    return np.concatenate(padded_losses)


def model_to_compare(
    model: nn.Module, signal: signals.Signal, reference: nn.Module | None
) -> nn.Module:
    """Return the model to compare with: itself, for signals that do not compare."""
    if signal != "loss_drop":
        if reference is not None:
            name = signals.signal_name(signal)
            raise OptionError(f"{name} compares with no reference; leave it out")
        return model
    if reference is None:
        message = (
            "{signal} compares with a base model: pass {reference=}, the model as it was before "
            "training, to leakbound.torch.score, and audit its scores"
        )
        raise OptionError(Message(message, signal=signal))
    instance(reference, name="reference", types=nn.Module)
    return reference


def _checked_batches_and_ids(
    model: nn.Module, data: Data, batch_size: int, ids: ArrayInput | None
) -> tuple[Batches, AnyArray | None]:
    """Check what there is to check before the pass."""
    instance(model, name="model", types=nn.Module)
    checked_batch_size = integer(batch_size, name="batch_size", least=1, most=MOST_BATCH)
    batches = read(data, batch_size=checked_batch_size)
    if ids is None:
        return batches, None
    example_ids = vector(ids, name="ids", kinds="biufSUOT")
    if batches.examples is not None:
        check_length(example_ids, examples=batches.examples, name="ids")
    return batches, example_ids


@contextmanager
def evaluating_with_reference(
    model: nn.Module, reference: nn.Module, *, device: str | torch.device, batch_size: int
) -> Iterator[torch.device]:
    """Make both models ready to be scored, and say what to do where memory runs out."""
    try:
        with ExitStack() as stack:
            chosen_device = stack.enter_context(evaluating(model, device))
            if reference is not model:
                stack.enter_context(evaluating(reference, chosen_device))
            yield chosen_device
    except torch.OutOfMemoryError as error:
        smaller_batch = Option("batch_size", math.ceil(batch_size / 4))
        message = "out of memory: pass {smaller_batch} or less, or {device='cpu'}"
        raise DeviceMemoryError(Message(message, smaller_batch=smaller_batch)) from error


def joined_scores_of_batches(scores_of_batches: Iterable[Tensor]) -> tuple[FloatArray, bool]:
    """Return all scores, and whether they are floats; the device is waited for once, at the end."""
    tensors = list(scores_of_batches)
    if not tensors:
        return np.empty(0), True
    values: FloatArray = signals.in_float64(torch.cat(tensors)).cpu().numpy()
    return values, tensors[0].is_floating_point()
