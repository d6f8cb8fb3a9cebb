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
from leakbound.torch.asking import unwrapped
from leakbound.torch.data import read
from leakbound.torch.placement import choose, descend, evaluating, seeded, weights_digest
from leakbound.torch.signals import check_alone, measure

Progress: TypeAlias = Callable[[str], None]
BATCH = 512
HELD_OUT = 10  # one example in so many shows when the helper stops to learn
SURE = 37.0  # log-odds beyond those of a probability in double precision, short of 0 and 1


def device_for(named: str | None, models: Iterable[Target]) -> str:
    """Return the device that was named, or else that of the first network with parameters."""
    networks = (model for model in models if isinstance(model, nn.Module))
    home = next((part.device for one in networks for part in one.parameters()), "cpu")
    return str(choose(named or home, []))


def signals(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the outputs of a model on each example, which must not depend on the others."""
    values = _signals(model, examples=examples, inputs=inputs)
    copies = _signals(
        model, examples=examples.take(np.zeros(min(len(values), BATCH), np.int64)), inputs=inputs
    )
    check_alone(values[0, : copies.shape[1]], copies[0])
    return values


def _signals(model: Target, examples: Examples, inputs: Inputs | None) -> FloatArray:
    if not isinstance(model, nn.Module):
        return margins_of(model, examples=examples, inputs=inputs)
    x = examples.x
    if inputs is not None:
        x = inputs(examples.x)
    if examples.y is None:
        values = token_losses(model, x, batch_size=BATCH, progress=False).astype(np.float64)
    else:
        values = _margins(model, x=x, y=examples.y)[:, None]
    bad = np.flatnonzero(np.isnan(values).any(axis=1))
    if bad.size:
        raise InputError(
            f"the model returns NaN for {bad.size} examples, the first in row {bad[0]}"
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
        model = helper.network() if helper.network is not None else _blank(target)
        model.to(device)
        # The first tenth says when to stop; examples come in random order.
        held = max(1, len(examples) // HELD_OUT)
        training = examples.take(slice(held, None))
        rest = examples.take(slice(held))
        data = pairs(training, inputs)
        held_out = pairs(rest, inputs)
        loader = DataLoader(data, batch_size=helper.batch_size, shuffle=True)
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


def pairs(examples: Examples, inputs: Inputs | None) -> TensorDataset:
    """Return inputs and labels as tensors: tokens are their own labels."""
    values = examples.x
    if inputs is not None:
        values = inputs(values)
    x = torch.as_tensor(np.array(values))
    plain = torch.int64
    if x.is_floating_point():
        plain = torch.float32
    x = x.to(plain)
    if examples.y is None:
        return TensorDataset(x, x)
    return TensorDataset(x, torch.tensor(examples.y))


def fingerprint(model: Target) -> str:
    """Return a digest of a model's parameters and buffers."""
    if not isinstance(model, nn.Module):
        # The state of a function is unknown, so it never counts as equal.
        known = hasattr(model, "get_params")
        if known:
            return hashlib.sha256(pickle.dumps(model)).hexdigest()
        return secrets.token_hex(32)
    return weights_digest(model)


def _margins(model: nn.Module, x: AnyArray, y: IntArray) -> FloatArray:
    """Return the log-odds of each label; equal examples may be equal, unlike in an audit."""
    with evaluating(model, "auto") as device:
        of_batch = measure(model, signal="logit_margin", reference=model)
        batches = read((x, y), batch_size=BATCH).on(device)
        parts = [of_batch(batch).cpu().numpy().astype(np.float64) for batch in batches]
    return np.concatenate(parts)


def _blank(target: Target) -> nn.Module:
    """Return the target's architecture with new weights."""
    assert isinstance(target, nn.Module)
    model = copy.deepcopy(target)
    # Weights of modules that cannot be initialised would be those of the target.
    fresh: set[int] = set()
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
            fresh |= {id(weight) for weight in module.parameters(recurse=False)}
    stale = [name for name, weight in model.named_parameters() if id(weight) not in fresh]
    if stale:
        raise OptionError(
            f"the target's {stale[0]} cannot be initialised again: pass Helper(network=...)"
        )
    return model.requires_grad_()


def _mean_loss(model: nn.Module, data: TensorDataset) -> float:
    model.eval()
    with torch.no_grad():
        total = sum(
            float(_loss(model, x=x, y=y)) * len(x) for x, y in DataLoader(data, batch_size=BATCH)
        )
    return total / len(data)


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
    margins: FloatArray = np.clip(score(model, X=x, y=examples.labels).values, -SURE, SURE)
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
    drawn = [name for name in helper.get_params() if name.split("__")[-1] == "random_state"]
    helper.set_params(**dict.fromkeys(drawn, Purpose.HELPER_ESTIMATOR.derived(seed, bits=32)))
    x = lesson.x
    if inputs is not None:
        x = inputs(x)
    return helper.fit(x, lesson.labels)
