"""Losses of members, generated and real non-members under each model."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from leakbound._base.types import FloatArray, IntArray

_HELPER = "helper"
# Sides of a run, and what figures call them.
_SIDES = {"members": "members", "generated": "generated", "real": "real non-members"}
_BINS = 40
_ENDS = (0.005, 0.995)  # quantiles of all losses at which the bins end


@dataclass(frozen=True, eq=False)
class Losses:
    """Histograms of the losses of one model."""

    model: str
    """Name of a target, or "helper"; of several helpers, the others are "helper 2" and so on."""
    logarithmic: bool
    """Whether edges are in equal ratios, as for the loss of a label, or equally far apart."""
    edges: FloatArray
    """41, from the 0.5 % to the 99.5 % quantile of all losses, in nats."""
    sides: dict[str, IntArray]
    """Counts of "members" that were not the generator's, "generated" and "real non-members"."""
    medians: dict[str, float]
    """Median loss of each side."""


def helper_name(index: int) -> str:
    """Return what a helper is called among models."""
    if index:
        return f"{_HELPER} {index + 1}"
    return _HELPER


def is_helper(model: str) -> bool:
    """Tell whether a model is a helper."""
    return re.fullmatch(rf"{_HELPER}( \d+)?", model) is not None


def losses_of(answers: Mapping[str, FloatArray], targets: Iterable[str]) -> Iterator[Losses]:
    """Count the losses of every target, then of every helper."""
    keys = {target: f"target {target}" for target in targets}
    helpers = (key.removesuffix(" members") for key in answers if key.endswith(" members"))
    keys |= {name: name for name in helpers if is_helper(name)}
    for model, key in keys.items():
        names = [f"{key} {side}" for side in _SIDES]
        losses = {
            side: _losses(answers[name])
            for side, name in zip(_SIDES.values(), names, strict=True)
            if name in answers
        }
        labels = answers[f"{key} members"].shape[1] == 1
        # Losses of labels are spread over orders of magnitude, mean losses of tokens are not.
        low, high = np.quantile(np.concatenate([*losses.values()]), _ENDS)
        if labels:
            low = max(low, np.finfo(np.float64).tiny)
            if high <= low:
                high = 2 * low
            edges = np.geomspace(low, high, _BINS + 1)
        else:
            if high <= low:
                high = low + 1
            edges = np.linspace(low, high, _BINS + 1)
        counts = {
            side: np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
            for side, values in losses.items()
        }
        medians = {side: float(np.median(values)) for side, values in losses.items()}
        yield Losses(model=model, logarithmic=labels, edges=edges, sides=counts, medians=medians)


def fallen(answers: FloatArray, before: FloatArray | None) -> FloatArray:
    """Return how far the loss fell since initialisation, or how small it is where none is known."""
    if before is None:
        if answers.shape[1] == 1:
            return answers[:, 0]
        smallness: FloatArray = -answers.mean(axis=1)
        return smallness
    return _losses(before) - _losses(answers)


def _losses(answers: FloatArray) -> FloatArray:
    """Turn log-odds of labels into losses, -ln σ, or take the mean loss of tokens."""
    labels = answers.shape[1] == 1
    if labels:
        return np.logaddexp(0.0, -answers[:, 0])
    return np.asarray(answers.mean(axis=1))
