"""Trade-off functions of DP-SGD, from the privacy loss distributions of dp-accounting."""

from functools import lru_cache
from typing import Any

import numpy as np

from leakbound._typing import FloatArray
from leakbound.errors import MissingExtraError
from leakbound.tradeoff import TradeOff

__all__ = ["subsampled_gaussian"]

_STEP = 1e-3
"""Losses are rounded up to multiples of this, so that their mean is kept: connect the dots."""
_POINTS = 1000
"""Least distance of ε on the grid is a hundredth, and there are no more points on each side."""
_NOISE = 1e-13
"""What the Fourier transform of dp-accounting, and sums, may take from a δ."""
_FARTHEST = 600.0


@lru_cache(maxsize=512)
def subsampled_gaussian(
    noise_multiplier: float, sampling_rate: float, steps: int, sides: str
) -> TradeOff:
    """Return the curve of so many steps of the Gaussian mechanism on Poisson samples.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the norm of an example's contribution, above 0.
    sampling_rate : float
        Probability of an example to be in a sample, in (0, 1].
    steps : int
        Number of samples, at least 1.
    sides : {"both", "member"}
        Which guesses it is to bound. "member": the power is that of training with the example,
        the level that without. "both": at each ε the larger δ of the two orders, so that the
        curve is the concave hull of both.

    Returns
    -------
    TradeOff
        A curve that allows at least as much as the mechanism: δ is a pessimistic estimate, and
        the curve rests on a grid of ε.

    Raises
    ------
    MissingExtraError
        If dp-accounting is not installed.
    """
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as error:
        message = (
            "SubsampledGaussianDP needs dp-accounting, which is not installed: "
            "pip install 'leakbound[dp]'"
        )
        raise MissingExtraError(message) from error
    loss = pld.from_gaussian_mechanism(
        noise_multiplier, value_discretization_interval=_STEP, sampling_prob=sampling_rate
    ).self_compose(steps)
    far = min(_FARTHEST, max(_STEP, float(loss.get_epsilon_for_delta(_NOISE))))
    half = np.linspace(0, far, min(_POINTS, max(2, round(100 * far))) + 1)
    grid = np.concatenate([-half[:0:-1], half])
    delta = _delta(loss, grid, "remove")
    if sides == "both":
        delta = np.maximum(delta, _delta(loss, grid, "add"))
    return TradeOff.profile(grid, np.clip(delta + _NOISE, 0.0, 1.0))


def _delta(loss: Any, epsilon: FloatArray, order: str) -> FloatArray:
    """Return δ(ε) with the example on the side of the power, or of the level.

    δ(ε) = Σ P(l) (1 - e^{ε - l}) over losses l above ε, certain ones included. dp-accounting offers
    the larger of both orders only, and one ε at a time.
    """
    law = getattr(loss, f"_pmf_{order}").to_dense_pmf()
    mass: FloatArray = np.maximum(vars(law)["_probs"], 0.0)
    first, step = vars(law)["_lower_loss"], vars(law)["_discretization"]
    losses = (first + np.arange(mass.size)) * step
    # Sums over all losses from each one on, and over none.
    tail = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    scaled = np.append(np.cumsum((mass * np.exp(-losses))[::-1])[::-1], 0.0)
    above = np.searchsorted(losses, epsilon, side="right")
    delta = tail[above] - np.exp(epsilon) * scaled[above]
    certain: FloatArray = vars(law)["_infinity_mass"] + np.maximum(delta, 0.0)
    return certain
