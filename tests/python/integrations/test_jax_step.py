"""A step of DP-SGD in JAX, written by hand, through the probe; needs the extra `jax`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
from leakbound.dp_sgd import neighbouring_batches

jax: Any = pytest.importorskip("jax", reason="a step in JAX needs leakbound[jax]")
SIGMA, NORM, BATCH, INPUTS = 1.1, 1.0, 8, 12

Step = Callable[[Any, Any], Mapping[str, NDArray[Any]]]


def parameters() -> dict[str, Any]:
    keys = jax.random.split(jax.random.key(0), 2)
    return {
        "first": jax.random.normal(keys[0], (INPUTS, 32)) / INPUTS**0.5,
        "bias": jax.numpy.zeros(32),
        "last": jax.random.normal(keys[1], (32, 2)) / 4,
    }


def loss(weights: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = jax.numpy.tanh(x @ weights["first"] + weights["bias"])
    return -jax.nn.log_softmax(hidden @ weights["last"])[y]


def step_of(norm_of: str = "", *, one_key: bool = False) -> Step:
    """Clip the gradient of each example, add up, and add noise: as told, or with a fault.

    The clipping norm is that of one tensor in place of all, or one key makes the noise of all.
    """
    weights, own = parameters(), [jax.random.key(5)]

    def clipped(weights: Any, x: Any, y: Any, scale: Any) -> Any:
        grad = jax.tree.map(lambda one: scale * one, jax.grad(loss)(weights, x, y))
        told = [grad[norm_of]] if norm_of else jax.tree.leaves(grad)
        norm = jax.numpy.sqrt(sum(jax.numpy.sum(one**2) for one in told))
        return jax.tree.map(lambda one: one * jax.numpy.minimum(1.0, NORM / norm), grad)

    each = jax.jit(jax.vmap(clipped, in_axes=(None, 0, 0, None)))

    def step(examples: Any, seed: int | None) -> Mapping[str, NDArray[Any]]:
        own[0], going_on = jax.random.split(own[0])
        key = going_on if seed is None else jax.random.key(seed % 2**32)
        total = jax.tree.map(jax.numpy.zeros_like, weights)
        if len(examples):
            x = np.stack([one for one, _ in examples])
            y = np.array([label for _, label in examples])
            scale = float(getattr(examples, "loss_factor", 1.0))
            total = jax.tree.map(lambda one: one.sum(0), each(weights, x, y, scale))
        keys = [key] * 3 if one_key else jax.random.split(key, 3)
        return {
            name: np.asarray(total[name] + SIGMA * NORM * jax.random.normal(of, total[name].shape))
            / BATCH
            for name, of in zip(total, keys, strict=True)
        }

    return step


def probed(step: Step) -> lb.dp_sgd.DPStepAudit:
    x = np.random.default_rng(0).normal(size=(BATCH + 2, INPUTS)).astype(np.float32)
    data = [(one, int(one[0] > 0)) for one in x]
    candidates = [(one, 1 - label) for one, label in data[BATCH:]]
    pairs = neighbouring_batches([data[:BATCH]], [*data[BATCH:], *candidates])
    return lb.probe_dp_step(step, pairs, noise_multiplier=SIGMA, seed=0)


def test_a_right_step_comes_near_its_claim() -> None:
    audit = probed(step_of())
    assert audit.refuted_by == ()
    assert 0.85 / SIGMA < audit.bound < 1 / SIGMA


def test_the_norm_of_one_tensor_is_no_clipping_of_all() -> None:
    audit = probed(step_of("bias"))
    assert "contribution" in audit.refuted_by
    assert audit.bound > 1.2 / SIGMA


def test_one_key_for_all_tensors_is_seen_in_the_noise() -> None:
    assert "independent" in probed(step_of(one_key=True)).refuted_by
