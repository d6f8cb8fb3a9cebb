"""Outputs of models on examples, and the helper: a model trained without audited members."""

import copy
import hashlib
import pickle
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, FloatArray, IntArray
from leakbound.attacks import score
from leakbound.errors import InputError, OptionError
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.models.networks import train_to_best
from leakbound.panoramia.options import Helper, Inputs, Target
from leakbound.torch import token_losses
from leakbound.torch.data import read
from leakbound.torch.device import choose, descend, evaluating, seeded, weights_digest
from leakbound.torch.model_outputs import unwrapped
from leakbound.torch.signals import check_alone, measure

Progress: TypeAlias = Callable[[str], None]
BATCH = 512
HELD_OUT = 10  # one example in so many shows when the helper stops to learn
SURE = 37.0  # log-odds beyond those of a probability in double precision, short of 0 and 1


def device_for(named: str | None, models: Iterable[Target]) -> str:
    """Return the device that was named, or else that of the first network with parameters."""
    networks = [model for model in models if isinstance(model, nn.Module)]
    devices_of_weights = (weight.device for network in networks for weight in network.parameters())
    device = named or next(devices_of_weights, "cpu")
    return str(choose(device, []))


def signals(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the outputs of a model on each example, which must not depend on the others."""
    outputs = _target_outputs(model, examples=examples, inputs=inputs)
    copies = min(len(outputs), BATCH)
    first_rows = np.zeros(copies, dtype=np.int64)
    first_repeated = examples.take(first_rows)
    repeated_outputs = _target_outputs(model, examples=first_repeated, inputs=inputs)
    value_count = repeated_outputs.shape[1]
    check_alone(outputs[0, :value_count], repeated_outputs[0])
    return outputs


def _target_outputs(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    if not isinstance(model, nn.Module):
        return margins_of(model, examples=examples, inputs=inputs)
    model_inputs = examples.model_inputs(inputs)
    if examples.y is None:
        losses = token_losses(model, model_inputs, batch_size=BATCH, progress=False)
        values = losses.astype(np.float64)
    else:
        values = _network_margins(model, model_inputs, labels=examples.y)[:, None]
    nan_rows = np.flatnonzero(np.isnan(values).any(axis=1))
    if nan_rows.size:
        raise InputError(
            f"the model returns NaN for {nan_rows.size} examples, the first in row {nan_rows[0]}"
        )
    return values


def train(
    helper: Helper,
    target: Target,
    examples: Examples,
    inputs: Inputs | None,
    seed: int,
    progress: Progress,
    device: str = "cpu",
) -> Target:
    """Train a model for the target's task, as far as it gets better on examples held out."""
    # an estimator is fitted as it is
    if helper.network is None and not isinstance(target, nn.Module):
        progress("fitting the helper")
        fitted: Target = taught(target, lesson=examples, inputs=inputs, seed=seed)
        return fitted
    with seeded(Purpose.HELPER, seed=seed, device=device):
        new_network = helper.network or partial(_reinitialised_target, target)
        model = new_network().to(device)
        # The first tenth says when to stop; examples come in random order.
        held_out_size = max(1, len(examples) // HELD_OUT)
        training = _helper_tensors(examples.take(slice(held_out_size, None)), inputs)
        held_out = _helper_tensors(examples.take(slice(held_out_size)), inputs)
        training_batches = DataLoader(training, batch_size=helper.batch_size, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=helper.learning_rate)

        def one_epoch(epoch: int) -> None:
            progress(f"training the helper, epoch {epoch} of {helper.epochs}")
            model.train()
            for input_batch, label_batch in training_batches:
                descend(optimizer, _helper_loss(model, input_batch, label_batch))

        train_to_best(
            model,
            rounds=helper.epochs,
            train=one_epoch,
            loss=lambda: _mean_helper_loss(model, held_out),
        )
    return model


def _helper_tensors(examples: Examples, inputs: Inputs | None) -> TensorDataset:
    """Return inputs and labels as tensors: tokens are their own labels."""
    input_array = np.array(examples.model_inputs(inputs))
    input_tensor = torch.as_tensor(input_array)
    dtype = torch.int64
    if input_tensor.is_floating_point():
        dtype = torch.float32
    input_tensor = input_tensor.to(dtype)
    label_tensor = input_tensor
    if examples.y is not None:
        label_tensor = torch.tensor(examples.y)
    return TensorDataset(input_tensor, label_tensor)


def fingerprint(model: Target) -> str:
    """Return a digest of a model's parameters and buffers."""
    if not isinstance(model, nn.Module):
        # The state of a function is unknown, so it never counts as equal.
        if hasattr(model, "get_params"):
            return hashlib.sha256(pickle.dumps(model)).hexdigest()
        return secrets.token_hex(32)
    return weights_digest(model)


def _network_margins(model: nn.Module, model_inputs: AnyArray, labels: IntArray) -> FloatArray:
    """Return the log-odds of each label; equal examples may be equal, unlike in an audit."""
    with evaluating(model, "auto") as device:
        margins_of_batch = measure(model, signal="logit_margin", reference=model)
        batches = read((model_inputs, labels), batch_size=BATCH)
        margins = []
        for batch in batches.on(device):
            batch_margins = margins_of_batch(batch).cpu().numpy()
            margins.append(batch_margins.astype(np.float64))
    return np.concatenate(margins)


def _reinitialised_target(target: Target) -> nn.Module:
    """Return the target's architecture with new weights."""
    assert isinstance(target, nn.Module)
    model = copy.deepcopy(target)
    # Weights of modules that cannot be initialised would be those of the target.
    reset_weights: set[int] = set()
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
            reset_weights |= {id(weight) for weight in module.parameters(recurse=False)}
    for name, weight in model.named_parameters():
        if id(weight) not in reset_weights:
            raise OptionError(
                f"the target's {name} cannot be initialised again: pass Helper(network=...)"
            )
    return model.requires_grad_()


def _mean_helper_loss(model: nn.Module, held_out: TensorDataset) -> float:
    model.eval()
    total_loss = 0.0
    with torch.no_grad():
        for input_batch, label_batch in DataLoader(held_out, batch_size=BATCH):
            mean_loss_of_batch = float(_helper_loss(model, input_batch, label_batch))
            total_loss += mean_loss_of_batch * len(input_batch)
    return total_loss / len(held_out)


def _helper_loss(model: nn.Module, input_batch: Tensor, label_batch: Tensor) -> Tensor:
    """Mean loss of a batch: of labels, or of next tokens."""
    device = next(model.parameters()).device
    logits = unwrapped(model(input_batch.to(device)))
    labels = label_batch.to(device)
    if not isinstance(logits, Tensor):
        raise OptionError("the helper must return logits, or an object with such `logits`")
    if logits.ndim == 3:
        logits = logits[:, :-1].flatten(0, 1)
        labels = labels[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, labels)


def margins_of(model: object, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the log-odds of each label; those of probabilities 0 and 1 are ±37."""
    if examples.y is None:
        raise OptionError(
            "a target that is not a torch module must be a classifier, so members need labels"
        )
    model_inputs = examples.model_inputs(inputs)
    # inputs of models, baseline and attack: no bound is cut off
    unclipped_margins = score(model, X=model_inputs, y=examples.labels).values
    margins: FloatArray = np.clip(unclipped_margins, -SURE, SURE)
    return margins[:, None]


def taught(target: object, lesson: Examples, inputs: Inputs | None, seed: int) -> Any:
    """Return an estimator like the target, fitted to other examples."""
    if not hasattr(target, "get_params"):
        raise OptionError(
            "the target is a function: pass Helper(network=...) to train a helper, or helper=None"
        )
    from sklearn.base import clone

    # Of a pipeline, every step has a random state of its own.
    helper = clone(target)
    random_state = Purpose.HELPER_ESTIMATOR.derived(seed, bits=32)
    random_states = {}
    for name in helper.get_params():
        if name.split("__")[-1] == "random_state":
            random_states[name] = random_state
    helper.set_params(**random_states)
    return helper.fit(lesson.model_inputs(inputs), lesson.labels)
