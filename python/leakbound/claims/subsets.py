"""Trade-off functions of DP-SGD on batches of a fixed size, a fresh uniform subset in each step.

One example is replaced. With q = B/N and μ = 2/σ, one step has for a ≥ 0 at most

    δ(ln(1 + q (e^a - 1))) = q δ_μ(a),  δ_μ(a) = Φ(μ/2 - a/μ) - e^a Φ(-μ/2 - a/μ)

(Balle, Barthe and Gaboardi 2018, Theorem 9), in both orders, so that δ(-ε) = 1 - e^-ε + e^-ε δ(ε).
docs/theory/dp-sgd.md has the proof.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.imports import needs
from leakbound._base.types import FloatArray
from leakbound.claims.dp_sgd import allowed, normal_cells
from leakbound.claims.tradeoff import TradeOff

if TYPE_CHECKING:
    from dp_accounting.pld.pld_pmf import PLDPmf

# Losses of a step are on a lattice of this length at most, and have so many points at least. What
# rounding adds to ε is about T times an eighth of its square.
_STEP = 1e-2
_POINTS = 256
_ROUNDED = 5e-4
# Deviations of a loss beyond which it counts as infinite, and the largest exponent
_DEVIATIONS = 8.5
_FARTHEST = 690.0
# What the composition may count as infinite
_TRUNCATED = 1e-15
# Roundings of a difference of two masses
_ROUNDINGS = 8 * 2.0**-52


@lru_cache(maxsize=512)
def of_fixed_size(noise_multiplier: float, sampling_rate: float, steps: int) -> TradeOff:
    """Return the curve of so many steps on subsets of a fixed size, to replace one example.

    It allows at least as much as the mechanism: the loss of one step is moved to a lattice, and
    steps are composed as those of two laws with this δ.
    """
    with needs("dp", "SubsampledGaussianDP"):
        from dp_accounting.pld import privacy_loss_distribution as pld
    one = step_loss(noise_multiplier, sampling_rate, steps)
    loss: Any = pld.PrivacyLossDistribution(one)
    composed = loss.self_compose(steps, tail_mass_truncation=_TRUNCATED)
    return allowed(composed, ["remove"])


def step_loss(noise_multiplier: float, sampling_rate: float, steps: int) -> "PLDPmf":
    """Return the law of the loss of one of so many steps, under P, on a lattice.

    Its δ is that of the module. Where the Gaussian mechanism has the loss a > 0, this one has
    ln(1 + q (e^a - 1)) with the same probability under Q; negative losses are those with P and Q
    exchanged, and all else is 0. The mass of a cell goes to its two ends, so that its
    probabilities under P and Q are kept: connect the dots (Doroshenko et al. 2022).
    """
    from dp_accounting.pld.pld_pmf import create_pmf

    rate = sampling_rate
    mu = 2 / noise_multiplier
    ends = _lattice(mu, rate, steps)
    step = float(ends[1])
    points = ends.size - 1
    # 1. Probabilities of cells of positive losses, where e^a = 1 + (e^loss - 1)/q.
    unsampled = np.log1p(np.expm1(ends) / rate)
    under_q = normal_cells(unsampled / mu + mu / 2)
    under_p = (1 - rate) * under_q + rate * normal_cells(unsampled / mu - mu / 2)
    nothing = float(normal_cells(np.array([-mu / 2, mu / 2]))[1])
    # 2. Their masses under P, at both ends: of positive losses, and of negative ones.
    p = under_p[1:-1]
    q = under_q[1:-1]
    masses = np.zeros(2 * points + 1)
    upper = _to_upper_ends(p, q * np.exp(ends[:-1]), step)
    masses[points + 1 :] += upper
    masses[points:-1] += p - upper
    upper = _to_upper_ends(q, p * np.exp(-ends[1:]), step)
    masses[points:0:-1] += upper
    masses[points - 1 :: -1] += q - upper
    masses[points] += (1 - rate) * nothing
    masses[0] += under_q[-1]
    losses = range(-points, points + 1)
    return create_pmf(
        dict(zip(losses, masses.tolist(), strict=True)),
        discretization=step,
        infinity_mass=float(under_p[-1]),
        pessimistic_estimate=True,
    )


def _lattice(mu: float, rate: float, steps: int) -> FloatArray:
    """Return rounded losses of a step, from 0 to where they are too rare to matter."""
    far = reach = min(mu * mu / 2 + _DEVIATIONS * mu, _FARTHEST)
    if rate < 1:
        far = float(np.logaddexp(math.log1p(-rate), math.log(rate) + reach))
    step = min(_STEP, far / _POINTS, math.sqrt(8 * _ROUNDED / steps))
    losses = step * np.arange(math.ceil(far / step) + 1)
    return np.asarray(losses, dtype=np.float64)


def _to_upper_ends(mass: FloatArray, at_lower_ends: FloatArray, step: float) -> FloatArray:
    """Return what of each cell's mass goes to its upper end, rounded up.

    With u there, P = u + l and Q = u e^-upper + l e^-lower: u = (P - Q e^lower) / (1 - e^-step).
    """
    share = (mass - at_lower_ends + _ROUNDINGS * mass) / -math.expm1(-step)
    return np.clip(share, 0.0, mass)
