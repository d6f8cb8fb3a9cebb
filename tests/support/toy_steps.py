"""Steps of DP-SGD in NumPy whose examples are gradients: one as claimed, and ones with faults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import leakbound as lb

__all__ = ["FAULTS", "SIGMA", "SIZES", "Toy", "examples", "pairs_of", "probed"]

SIGMA = 1.1
SIZES = {"matrix": 192, "bias": 16, "head": 32, "last": 2}
EXPECTED = 8
P = sum(SIZES.values())
PLACES = np.cumsum([0, *SIZES.values()])

Array = NDArray[np.float64]


def tensors(values: Array) -> dict[str, Array]:
    """Return the tensors of a gradient."""
    return {name: values[PLACES[k] : PLACES[k + 1]] for k, name in enumerate(SIZES)}


def clipped(rows: Array, norm: float = 1.0) -> Array:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    short: Array = rows * np.minimum(1.0, norm / np.maximum(lengths, 1e-12))
    return short


@dataclass
class Toy:
    """A step: clips rows, sums, adds noise and divides. Faults replace one of these."""

    clip: Callable[[Array], Array] = lambda rows: clipped(rows).sum(0)
    noise: Callable[[np.random.Generator, int, Array], Array] = lambda rng, _size, _total: (
        SIGMA * rng.normal(size=P)
    )
    divisor: Callable[[int], float] = lambda _size: EXPECTED
    single: bool = False
    """Whether results are in single precision."""
    own: np.random.Generator = field(default_factory=lambda: np.random.default_rng(99))

    def __call__(self, batch: Any, seed: int | None) -> Mapping[str, Array]:
        rng = self.own if seed is None else np.random.default_rng(seed)
        rows = getattr(batch, "loss_factor", 1.0) * np.array(batch).reshape(len(batch), P)
        total = self.clip(rows)
        released = (total + self.noise(rng, len(batch), total)) / self.divisor(len(batch))
        return tensors(released.astype(np.float32) if self.single else released)


def examples(number: int = 10, seed: int = 0) -> list[Array]:
    """Return gradients of a length near 1."""
    rows = np.random.default_rng(seed).normal(size=(number, P)) / np.sqrt(P)
    return list(rows)


def pairs_of(relation: Any = "add_remove") -> list[lb.dp_sgd.Pair]:
    """Return few pairs that bring every fault here out; the last candidates oppose each other."""
    rows = examples()
    return lb.dp_sgd.neighbouring_batches(
        [rows[:EXPECTED]], [rows[8], -rows[8]], relation=relation, sweep=False
    )


def probed(step: Any, seed: int = 0, **options: Any) -> lb.DPStepAudit:
    """Probe a step on these pairs."""
    relation = options.get("relation", "add_remove")
    options.setdefault("pairs", pairs_of(relation))
    return lb.probe_dp_step(step, noise_multiplier=SIGMA, seed=seed, **options)


def _by_tensor(rows: Array) -> Array:
    parts = [rows[:, PLACES[k] : PLACES[k + 1]] for k in range(len(SIZES))]
    total: Array = np.concatenate([clipped(one) for one in parts], axis=1).sum(0)
    return total


def _without(place: int) -> Callable[[np.random.Generator, int, Array], Array]:
    def noise(rng: np.random.Generator, _size: int, _total: Array) -> Array:
        values = SIGMA * rng.normal(size=P)
        values[PLACES[place] : PLACES[place + 1]] = 0
        return values

    return noise


def _matrix_unclipped(rows: Array) -> Array:
    free = rows.copy()
    free[:, PLACES[1] :] = clipped(rows[:, PLACES[1] :])
    total: Array = free.sum(0)
    return total


def _one_row(rng: np.random.Generator, _size: int, _total: Array) -> Array:
    values = SIGMA * rng.normal(size=P)
    values[: SIZES["matrix"]] = np.tile(values[:16], 12)
    return values


def _same_in_each(rng: np.random.Generator, _size: int, _total: Array) -> Array:
    values = SIGMA * rng.normal(size=SIZES["matrix"])
    return np.concatenate([values[:size] for size in SIZES.values()])


def _where_touched(rng: np.random.Generator, _size: int, total: Array) -> Array:
    return np.where(total != 0, SIGMA * rng.normal(size=P), 0.0)


class _HalfOld:
    """Half of the noise, by variance, is that of the step before."""

    old: Array = np.zeros(P)

    def __call__(self, rng: np.random.Generator, _size: int, _total: Array) -> Array:
        new = SIGMA * rng.normal(size=P)
        if rng is not self.generator:
            return new
        old, self.old = self.old, new
        both: Array = (new + old) / np.sqrt(2)
        return both

    def __init__(self) -> None:
        self.toy = Toy(noise=self)
        self.generator = self.toy.own


def _noise(scale: float) -> Callable[[np.random.Generator, int, Array], Array]:
    return lambda rng, _size, _total: scale * rng.normal(size=P)


FAULTS: dict[str, tuple[Callable[[], Toy], str]] = {
    "no noise": (lambda: Toy(noise=_noise(0.0)), "contribution"),
    "three quarters of the noise": (lambda: Toy(noise=_noise(0.75 * SIGMA)), "contribution"),
    "no clipping": (lambda: Toy(clip=lambda rows: rows.sum(0)), "contribution"),
    "each tensor clipped by itself": (lambda: Toy(clip=_by_tensor), "contribution"),
    "a tensor without noise": (lambda: Toy(noise=_without(0)), "contribution"),
    "a small tensor without noise": (lambda: Toy(noise=_without(1)), "contribution"),
    "a tensor not clipped": (lambda: Toy(clip=_matrix_unclipped), "contribution"),
    "the sum clipped": (lambda: Toy(clip=lambda rows: clipped(rows.sum(0))), "contribution"),
    "the mean clipped": (
        lambda: Toy(clip=lambda rows: EXPECTED * clipped(rows.sum(0) / max(1, len(rows)))),
        "contribution",
    ),
    "a divisor that follows the batch": (
        lambda: Toy(divisor=lambda size: float(max(1, size))),
        "coupling",
    ),
    "noise that follows the batch": (
        lambda: Toy(noise=lambda rng, size, _: SIGMA * (1 + 0.01 * size) * rng.normal(size=P)),
        "coupling",
    ),
    "noise where the sum is not zero": (lambda: Toy(noise=_where_touched), "contribution"),
    "one row of noise": (lambda: Toy(noise=_one_row), "independent"),
    "the same noise in each tensor": (lambda: Toy(noise=_same_in_each), "independent"),
    "uniform noise": (
        lambda: Toy(noise=lambda rng, _s, _t: SIGMA * np.sqrt(3) * rng.uniform(-1, 1, size=P)),
        "normal",
    ),
    "half of the noise of the step before": (lambda: _HalfOld().toy, "steps"),
}
"""Faults, and one part that refutes each."""
