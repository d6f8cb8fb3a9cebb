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


def losses_of(model_outputs: Mapping[str, FloatArray], targets: Iterable[str]) -> Iterator[Losses]:
    """Count the losses of every target, then of every helper.

    `model_outputs` are those of each model on each side, such as those of "helper generated".
    """
    prefix_of_model = {target: f"target {target}" for target in targets}
    for key in model_outputs:
        model = key.removesuffix(" members")
        if key.endswith(" members") and is_helper(model):
            prefix_of_model[model] = model
    for model, prefix in prefix_of_model.items():
        losses_of_sides = dict[str, FloatArray]()
        for side, title in _SIDES.items():
            outputs_on_side = model_outputs.get(f"{prefix} {side}")
            if outputs_on_side is not None:
                losses_of_sides[title] = _losses_of_outputs(outputs_on_side)
        outputs_on_members = model_outputs[f"{prefix} members"]
        yield _loss_histograms(
            model, losses_of_sides, logarithmic=_are_label_log_odds(outputs_on_members)
        )


def _loss_histograms(
    model: str, losses_of_sides: Mapping[str, FloatArray], *, logarithmic: bool
) -> Losses:
    """Count the losses of one model in bins that all sides share."""
    losses_of_all_sides = np.concatenate([*losses_of_sides.values()])
    lowest_edge, highest_edge = np.quantile(losses_of_all_sides, _ENDS)
    # Losses of labels are spread over orders of magnitude, mean losses of tokens are not.
    if logarithmic:
        smallest_positive = np.finfo(np.float64).tiny
        lowest_edge = max(lowest_edge, smallest_positive)
        if highest_edge <= lowest_edge:
            highest_edge = 2 * lowest_edge
        bin_edges = np.geomspace(lowest_edge, highest_edge, num=_BINS + 1)
    else:
        if highest_edge <= lowest_edge:
            highest_edge = lowest_edge + 1
        bin_edges = np.linspace(lowest_edge, highest_edge, num=_BINS + 1)
    counts_of_sides = dict[str, IntArray]()
    medians_of_sides = dict[str, float]()
    for side, losses in losses_of_sides.items():
        losses_within_edges = losses.clip(lowest_edge, highest_edge)
        counts_of_sides[side], _ = np.histogram(losses_within_edges, bin_edges)
        medians_of_sides[side] = float(np.median(losses))
    return Losses(
        model=model,
        logarithmic=logarithmic,
        edges=bin_edges,
        sides=counts_of_sides,
        medians=medians_of_sides,
    )


def loss_decrease(outputs: FloatArray, initial_outputs: FloatArray | None) -> FloatArray:
    """Return how far the loss fell since initialisation, or how small it is where none is known."""
    if initial_outputs is not None:
        return _losses_of_outputs(initial_outputs) - _losses_of_outputs(outputs)
    if _are_label_log_odds(outputs):
        return outputs[:, 0]
    return -_losses_of_outputs(outputs)


def _losses_of_outputs(outputs: FloatArray) -> FloatArray:
    """Turn log-odds of labels into losses, -ln σ, or take the mean loss of tokens."""
    if _are_label_log_odds(outputs):
        log_odds = outputs[:, 0]
        return np.logaddexp(0.0, -log_odds)
    return np.asarray(outputs.mean(axis=1))


def _are_label_log_odds(outputs: FloatArray) -> bool:
    """Tell whether outputs are log-odds of labels, one for each example, or losses of tokens."""
    _, values_per_example = outputs.shape
    return bool(values_per_example == 1)
