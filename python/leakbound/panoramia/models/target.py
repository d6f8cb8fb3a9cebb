"""Outputs of models on examples, and the helper: a model trained without audited members."""

import copy
import hashlib
import pickle
import secrets
from collections.abc import Callable, Iterable
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
    if named:
        return str(choose(named, []))
    for model in models:
        if not isinstance(model, nn.Module):
            continue
        first_parameter = next(model.parameters(), None)
        if first_parameter is not None:
            return str(choose(first_parameter.device, []))
    return str(choose("cpu", []))


def signals(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the outputs of a model on each example, which must not depend on the others."""
    values = _outputs(model, examples=examples, inputs=inputs)
    copies = min(len(values), BATCH)
    first_repeated = examples.take(np.zeros(copies, np.int64))
    repeated_values = _outputs(model, examples=first_repeated, inputs=inputs)
    check_alone(values[0, : repeated_values.shape[1]], repeated_values[0])
    return values


def _outputs(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    if not isinstance(model, nn.Module):
        return margins_of(model, examples=examples, inputs=inputs)
    x = examples.x
    if inputs is not None:
        x = inputs(examples.x)
    if examples.y is None:
        values = token_losses(model, x, batch_size=BATCH, progress=False).astype(np.float64)
    else:
        values = _margins(model, x=x, y=examples.y)[:, None]
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
        model = _untrained(helper, target)
        model.to(device)
        # The first tenth says when to stop; examples come in random order.
        held_out_size = max(1, len(examples) // HELD_OUT)
        training = pairs(examples.take(slice(held_out_size, None)), inputs)
        held_out = pairs(examples.take(slice(held_out_size)), inputs)
        loader = DataLoader(training, batch_size=helper.batch_size, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=helper.learning_rate)

        def one_epoch(epoch: int) -> None:
            progress(f"training the helper, epoch {epoch} of {helper.epochs}")
            model.train()
            for x, y in loader:
                descend(optimizer, _loss(model, x=x, y=y))

        train_to_best(
            model, rounds=helper.epochs, train=one_epoch, loss=lambda: _mean_loss(model, held_out)
        )
    return model


def _untrained(helper: Helper, target: Target) -> nn.Module:
    """Return the network of a helper, by default the target's architecture with new weights."""
    if helper.network is not None:
        return helper.network()
    return _reinitialised(target)


def pairs(examples: Examples, inputs: Inputs | None) -> TensorDataset:
    """Return inputs and labels as tensors: tokens are their own labels."""
    values = examples.x
    if inputs is not None:
        values = inputs(values)
    x = torch.as_tensor(np.array(values))
    dtype = torch.int64
    if x.is_floating_point():
        dtype = torch.float32
    x = x.to(dtype)
    if examples.y is None:
        return TensorDataset(x, x)
    return TensorDataset(x, torch.tensor(examples.y))


def fingerprint(model: Target) -> str:
    """Return a digest of a model's parameters and buffers."""
    if not isinstance(model, nn.Module):
        # The state of a function is unknown, so it never counts as equal.
        if hasattr(model, "get_params"):
            return hashlib.sha256(pickle.dumps(model)).hexdigest()
        return secrets.token_hex(32)
    return weights_digest(model)


def _margins(model: nn.Module, x: AnyArray, y: IntArray) -> FloatArray:
    """Return the log-odds of each label; equal examples may be equal, unlike in an audit."""
    with evaluating(model, "auto") as device:
        margins_of_batch = measure(model, signal="logit_margin", reference=model)
        margins = []
        for batch in read((x, y), batch_size=BATCH).on(device):
            batch_margins = margins_of_batch(batch).cpu().numpy()
            margins.append(batch_margins.astype(np.float64))
    return np.concatenate(margins)


def _reinitialised(target: Target) -> nn.Module:
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


def _mean_loss(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    total_loss = 0.0
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=BATCH):
            batch_loss = float(_loss(model, x=x, y=y))
            total_loss += batch_loss * len(x)
    return total_loss / len(data)


def _loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean loss of a batch: of labels, or of next tokens."""
    device = next(model.parameters()).device
    logits = unwrapped(model(x.to(device)))
    y = y.to(device)
    if not isinstance(logits, Tensor):
        raise OptionError("the helper must return logits, or an object with such `logits`")
    if logits.ndim == 3:
        logits = logits[:, :-1].flatten(0, 1)
        y = y[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, y)


def margins_of(model: object, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the log-odds of each label; those of probabilities 0 and 1 are ±37."""
    if examples.y is None:
        raise OptionError(
            "a target that is not a torch module must be a classifier, so members need labels"
        )
    x = examples.x
    if inputs is not None:
        x = inputs(examples.x)
    # inputs of models, baseline and attack: no bound is cut off
    unclipped = score(model, X=x, y=examples.labels).values
    margins: FloatArray = np.clip(unclipped, -SURE, SURE)
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
    x = lesson.x
    if inputs is not None:
        x = inputs(x)
    return helper.fit(x, lesson.labels)
