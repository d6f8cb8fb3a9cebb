"""Losses of members, generated and real non-members under each model: what attacks learn from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from leakbound._base.types import FloatArray, IntArray

_HELPER = "helper"
_SIDES = {"members": "members", "generated": "generated", "nonmembers": "real non-members"}
"""Sides of a run, and what figures call them."""
_BINS = 40
_ENDS = (0.005, 0.995)
"""Quantiles of all losses at which the bins end."""


@dataclass(frozen=True, eq=False)
class Losses:
    """Histograms of the losses of one model.

    Parameters
    ----------
    model : str
        Name of a target, or "helper"; of several helpers, the others are "helper 2" and so on.
    logarithmic : bool
        Whether edges are in equal ratios, as for the loss of a label, which is tiny once learnt by
        heart, or equally far apart, as for the mean loss of tokens.
    edges : ndarray of float64, shape (41,)
        From the 0.5 % to the 99.5 % quantile of all losses, in nats.
    members, generated : ndarray of int64, shape (40,)
        Members that were not the generator's, and generated examples; losses beyond the quantiles
        are in the end bins.
    real : ndarray of int64, shape (40,), or None
        Real non-members, if there are some.
    medians : dict of str to float
        Median loss of "members", "generated" and, if there are some, "real non-members".
    """

    model: str
    logarithmic: bool
    edges: FloatArray
    members: IntArray
    generated: IntArray
    real: IntArray | None
    medians: dict[str, float]

    @property
    def sides(self) -> dict[str, IntArray]:
        """Counts by whose they are."""
        counts = (self.members, self.generated, self.real)
        return {
            name: count
            for name, count in zip(_SIDES.values(), counts, strict=True)
            if count is not None
        }


def helper_name(index: int) -> str:
    """Return what a helper is called among models."""
    return f"{_HELPER} {index + 1}" if index else _HELPER


def is_helper(model: str) -> bool:
    """Tell whether a model is a helper."""
    return re.fullmatch(rf"{_HELPER}( \d+)?", model) is not None


def losses_of(said: Mapping[str, FloatArray], targets: Mapping[str, object]) -> Iterator[Losses]:
    """Count the losses of every target, then of every helper."""
    keys = [(target, f"target {target}") for target in targets]
    helpers = (key.removesuffix(" members") for key in said if key.endswith(" members"))
    keys += [(name, name) for name in helpers if is_helper(name)]
    for model, key in keys:
        sides = {side: _losses(said[f"{key} {side}"]) for side in _SIDES if f"{key} {side}" in said}
        tokens = said[f"{key} members"].shape[1] > 1
        edges = _edges(np.concatenate([*sides.values()]), tokens=tokens)
        counts = {
            side: np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
            for side, values in sides.items()
        }
        yield Losses(
            model,
            not tokens,
            edges,
            counts["members"],
            counts["generated"],
            counts.get("nonmembers"),
            {_SIDES[side]: float(np.median(values)) for side, values in sides.items()},
        )


def _edges(losses: FloatArray, *, tokens: bool) -> FloatArray:
    low, high = (float(x) for x in np.quantile(losses, _ENDS))
    if tokens:
        return np.linspace(low, high if high > low else low + 1, _BINS + 1)
    low = max(low, np.finfo(np.float64).tiny)
    return np.geomspace(low, high if high > low else 2 * low, _BINS + 1)


def fallen(said: FloatArray, before: FloatArray | None) -> FloatArray:
    """Return how far the loss fell since initialisation, or how small it is where none is known."""
    if before is None:
        return said[:, 0] if said.shape[1] == 1 else -said.mean(axis=1)
    return _losses(before) - _losses(said)


def _losses(said: FloatArray) -> FloatArray:
    """Turn log-odds of labels into losses, -ln σ, or take the mean loss of tokens."""
    losses: FloatArray = np.logaddexp(0.0, -said[:, 0]) if said.shape[1] == 1 else said.mean(axis=1)
    return losses
