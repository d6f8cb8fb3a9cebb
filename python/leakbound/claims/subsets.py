"""Trade-off functions of DP-SGD on batches of a fixed size, a fresh uniform subset in each step.

One example is replaced. With q = B/N and μ = 2/σ, one step has for a ≥ 0 at most

    δ(ln(1 + q (e^a - 1))) = q δ_μ(a),  δ_μ(a) = Φ(μ/2 - a/μ) - e^a Φ(-μ/2 - a/μ)

(Balle, Barthe and Gaboardi 2018, Theorem 9), in both orders, so that δ(-ε) = 1 - e^-ε + e^-ε δ(ε).
docs/theory/dp-sgd.md has the proof.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.types import FloatArray
from leakbound.claims.dp_sgd import allowed, normal_cells, self_composed
from leakbound.claims.tradeoff import TradeOff

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf

# Losses of a step are on a lattice of this spacing at most, and have so many points at least. What
# rounding adds to ε is about T times an eighth of its square.
_LARGEST_SPACING = 1e-2
_LEAST_POINTS = 256
_ROUNDING_OF_EPSILON = 5e-4
# Deviations of a loss beyond which it counts as infinite, and the largest exponent
_DEVIATIONS = 8.5
_LARGEST_EXPONENT = 690.0
# Roundings of a difference of two masses
_ROUNDINGS = 8 * 2.0**-52


@lru_cache(maxsize=512)
def of_fixed_size(noise_multiplier: float, sampling_rate: float, steps: int) -> TradeOff:
    """Return the curve of so many steps on subsets of a fixed size, to replace one example.

    It allows at least as much as the mechanism: the loss of one step is moved to a lattice, and
    steps are composed as those of two laws with this δ.
    """
    with needs("dp", "SubsampledGaussianDP"):
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    loss_law_of_step = step_loss(noise_multiplier, sampling_rate, steps)
    composed_law = self_composed(loss_law_of_step, steps)
    return allowed(PrivacyLossDistribution(composed_law), ["remove"])


def step_loss(noise_multiplier: float, sampling_rate: float, steps: int) -> "PLDPmf":
    """Return the law of the loss of one of so many steps, under P, on a lattice.

    Its δ is that of the module. Where the Gaussian mechanism has the loss a > 0, this one has
    ln(1 + q (e^a - 1)) with the same probability under Q; negative losses are those with P and Q
    exchanged, and all else is 0. The mass of a cell goes to its two ends, so that its
    probabilities under P and Q are kept: connect the dots (Doroshenko et al. 2022).
    """
    from dp_accounting.pld.pld_pmf import create_pmf

    mean_shift = 2 / noise_multiplier
    lattice_losses = _positive_losses(mean_shift, sampling_rate, steps)
    lattice_spacing = float(lattice_losses[1])
    cell_count = lattice_losses.size - 1
    # 1. Probabilities of cells of positive losses, where e^a = 1 + (e^loss - 1)/q.
    gaussian_losses = np.log1p(np.expm1(lattice_losses) / sampling_rate)
    noise_at_losses = gaussian_losses / mean_shift
    probabilities_under_q = normal_cells(noise_at_losses + mean_shift / 2)
    probabilities_if_sampled = normal_cells(noise_at_losses - mean_shift / 2)
    probabilities_under_p = (
        1 - sampling_rate
    ) * probabilities_under_q + sampling_rate * probabilities_if_sampled
    # 2. Their masses under P, at both ends: of positive losses, and of negative ones.
    bounded_masses_under_p = probabilities_under_p[1:-1]
    bounded_masses_under_q = probabilities_under_q[1:-1]
    lattice_masses = np.zeros(2 * cell_count + 1)
    q_masses_at_lower_ends = bounded_masses_under_q * np.exp(lattice_losses[:-1])
    upper_masses = _masses_at_upper_ends(
        bounded_masses_under_p, q_masses_at_lower_ends, lattice_spacing
    )
    lattice_masses[cell_count + 1 :] += upper_masses
    lattice_masses[cell_count:-1] += bounded_masses_under_p - upper_masses
    p_masses_at_lower_ends = bounded_masses_under_p * np.exp(-lattice_losses[1:])
    upper_masses = _masses_at_upper_ends(
        bounded_masses_under_q, p_masses_at_lower_ends, lattice_spacing
    )
    lattice_masses[cell_count:0:-1] += upper_masses
    lattice_masses[cell_count - 1 :: -1] += bounded_masses_under_q - upper_masses
    # 3. The loss is 0 between, and the least one stands for all that are smaller.
    cell_of_zero_loss = np.array([-mean_shift / 2, mean_shift / 2])
    zero_loss_probability = float(normal_cells(cell_of_zero_loss)[1])
    lattice_masses[cell_count] += (1 - sampling_rate) * zero_loss_probability
    lattice_masses[0] += probabilities_under_q[-1]
    lattice_points = range(-cell_count, cell_count + 1)
    mass_by_point = dict(zip(lattice_points, lattice_masses.tolist(), strict=True))
    return create_pmf(
        mass_by_point,
        discretization=lattice_spacing,
        infinity_mass=float(probabilities_under_p[-1]),
        pessimistic_estimate=True,
    )


def _positive_losses(mean_shift: float, sampling_rate: float, steps: int) -> FloatArray:
    """Return rounded losses of a step, from 0 to where they are too rare to matter."""
    largest_gaussian_loss = mean_shift * mean_shift / 2 + _DEVIATIONS * mean_shift
    largest_gaussian_loss = min(largest_gaussian_loss, _LARGEST_EXPONENT)
    largest_loss = largest_gaussian_loss
    if sampling_rate < 1:
        ln_not_sampled = math.log1p(-sampling_rate)
        ln_sampled = math.log(sampling_rate) + largest_gaussian_loss
        largest_loss = float(np.logaddexp(ln_not_sampled, ln_sampled))
    spacing_for_points = largest_loss / _LEAST_POINTS
    spacing_for_rounding = math.sqrt(8 * _ROUNDING_OF_EPSILON / steps)
    lattice_spacing = min(_LARGEST_SPACING, spacing_for_points, spacing_for_rounding)
    lattice_losses = lattice_spacing * np.arange(math.ceil(largest_loss / lattice_spacing) + 1)
    return np.asarray(lattice_losses, dtype=np.float64)


def _masses_at_upper_ends(
    cell_masses: FloatArray, other_masses_at_lower_ends: FloatArray, lattice_spacing: float
) -> FloatArray:
    """Return what of each cell's mass goes to its upper end, rounded up.

    With u there, P = u + l and Q = u e^-upper + l e^-lower: u = (P - Q e^lower) / (1 - e^-spacing).
    """
    mass_difference = cell_masses - other_masses_at_lower_ends + _ROUNDINGS * cell_masses
    upper_masses = mass_difference / -math.expm1(-lattice_spacing)
    return np.clip(upper_masses, 0.0, cell_masses)
