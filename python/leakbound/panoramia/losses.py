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
    """Count the losses of every target, then of every helper.

    `answers` are outputs of each model on each side, such as those of "helper generated".
    """
    key_of_model = {target: f"target {target}" for target in targets}
    for key in answers:
        model = key.removesuffix(" members")
        if key.endswith(" members") and is_helper(model):
            key_of_model[model] = model
    for model, key_of_answers in key_of_model.items():
        losses_of_sides = dict[str, FloatArray]()
        for side, title in _SIDES.items():
            name = f"{key_of_answers} {side}"
            if name in answers:
                losses_of_sides[title] = _losses(answers[name])
        answers_on_members = answers[f"{key_of_answers} members"]
        yield _histograms(model, losses_of_sides, logarithmic=_are_of_labels(answers_on_members))


def _histograms(
    model: str, losses_of_sides: Mapping[str, FloatArray], *, logarithmic: bool
) -> Losses:
    """Count the losses of one model in bins that all sides share."""
    all_losses = np.concatenate([*losses_of_sides.values()])
    lowest_edge, highest_edge = np.quantile(all_losses, _ENDS)
    # Losses of labels are spread over orders of magnitude, mean losses of tokens are not.
    if logarithmic:
        lowest_edge = max(lowest_edge, np.finfo(np.float64).tiny)
        if highest_edge <= lowest_edge:
            highest_edge = 2 * lowest_edge
        edges = np.geomspace(lowest_edge, highest_edge, _BINS + 1)
    else:
        if highest_edge <= lowest_edge:
            highest_edge = lowest_edge + 1
        edges = np.linspace(lowest_edge, highest_edge, _BINS + 1)
    counts = dict[str, IntArray]()
    medians = dict[str, float]()
    for side, losses in losses_of_sides.items():
        within_edges = np.clip(losses, edges[0], edges[-1])
        counts[side], _ = np.histogram(within_edges, edges)
        medians[side] = float(np.median(losses))
    return Losses(model=model, logarithmic=logarithmic, edges=edges, sides=counts, medians=medians)


def loss_decrease(answers: FloatArray, before: FloatArray | None) -> FloatArray:
    """Return how far the loss fell since initialisation, or how small it is where none is known."""
    if before is not None:
        return _losses(before) - _losses(answers)
    if _are_of_labels(answers):
        return answers[:, 0]
    negative_mean_losses: FloatArray = -answers.mean(axis=1)
    return negative_mean_losses


def _losses(answers: FloatArray) -> FloatArray:
    """Turn log-odds of labels into losses, -ln σ, or take the mean loss of tokens."""
    if _are_of_labels(answers):
        log_odds = answers[:, 0]
        return np.logaddexp(0.0, -log_odds)
    return np.asarray(answers.mean(axis=1))


def _are_of_labels(answers: FloatArray) -> bool:
    """Tell whether answers are log-odds of labels, one for each example, or losses of tokens."""
    _, values_per_example = answers.shape
    return bool(values_per_example == 1)
