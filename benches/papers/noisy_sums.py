"""A noisy sum of members that differ in distribution from non-members: the Zero-Run game."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base.numerics import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.simulate import Game
from streams import generator

__all__ = ["NoisySum", "noisy_sum"]

# Coordinates of members that are drawn at a time: 32 MiB in single precision.
_COORDINATES_OF_BLOCK = 2**23
# Points where λ is integrated, and the degree of the polynomial between them.
_INTERPOLATION_NODES = 200
_POLYNOMIAL_DEGREE = 24
# Half-width of the integration in deviations, and its points.
_INTEGRATION_HALF_WIDTH = 40.0
_INTEGRATION_POINTS = 801


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisySum(Game):
    """One game against a noisy sum, with the true odds of membership given the features.

    Parameters
    ----------
    scores, member, truth, parameter
        As for `Game`.
    log_odds, propensity : ndarray of float64, shape (m,)
        Log-odds λ and probability π of membership given an example's features, exactly.
    features : ndarray of float64, shape (m, f)
        The first coordinates of each example, times √d. But for the common length, only the first
        differs in distribution between members and non-members.
    holdout_features, holdout_member : ndarray, of shapes (h, f) and (h,)
        Other examples of the same two populations, not in the sum, and which each is from.
    """

    log_odds: FloatArray
    propensity: FloatArray
    features: FloatArray
    holdout_features: FloatArray
    holdout_member: BoolArray


@dataclass(frozen=True, kw_only=True)
class _Population:
    """Directions of draws from N(γ e₁, I) in d dimensions."""

    dimension: int
    features: int
    bias: float
    ratio: float

    def draw(
        self, rng: np.random.Generator, member: BoolArray, theta: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the first coordinates of examples outside the sum, and their scores."""
        # Only the first coordinates, the component along the rest of θ and the length matter; given
        # θ all three are independent: a normal vector, a normal number and a χ².
        size = member.size
        first_coordinates = rng.normal(size=(size, self.features))
        first_coordinates[:, 0] += np.where(member, self.bias, self.ratio * self.bias)
        along_theta = rng.normal(size=size)
        remaining_dimensions = self.dimension - self.features - 1
        remaining_squares = rng.chisquare(df=remaining_dimensions, size=size)
        squared_lengths = (first_coordinates**2).sum(axis=1) + along_theta**2 + remaining_squares
        lengths = np.sqrt(squared_lengths)
        scores = np.zeros(size)
        if theta is not None:
            rest_of_theta = theta[self.features :]
            squared_length_of_rest = float((rest_of_theta**2).sum())
            length_of_rest = math.sqrt(squared_length_of_rest)
            of_first_coordinates = first_coordinates @ theta[: self.features]
            scores = (of_first_coordinates + length_of_rest * along_theta) / lengths
        return first_coordinates / lengths[:, None], scores

    def train(
        self, rng: np.random.Generator, members: int, sigma: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw the members; return their first coordinates, their scores and the noisy sum θ."""
        # Blocks of members are drawn again from the same seeds once θ is known, so that memory does
        # not grow with their number times the dimension.
        largest_block = max(1, _COORDINATES_OF_BLOCK // self.dimension)
        seed_of_members = int(rng.integers(2**63))
        first_coordinates = np.empty((members, self.features))
        theta = sigma * rng.normal(size=self.dimension)
        for block_number, start in enumerate(range(0, members, largest_block)):
            size = min(largest_block, members - start)
            block = self._member_block(seed_of_members, block_number=block_number, size=size)
            first_coordinates[start : start + size] = block[:, : self.features]
            theta += block.sum(axis=0, dtype=np.float64)
        theta_in_single_precision = theta.astype(np.float32)
        scores = np.empty(members)
        for block_number, start in enumerate(range(0, members, largest_block)):
            size = min(largest_block, members - start)
            block = self._member_block(seed_of_members, block_number=block_number, size=size)
            scores[start : start + size] = block @ theta_in_single_precision
        return first_coordinates, scores, theta

    def _member_block(self, seed: int, block_number: int, size: int) -> NDArray[np.float32]:
        """Draw some members: unit vectors in d dimensions, shape (size, d)."""
        rng = generator("simulate/noisy-sum-members", seed, block_number)
        block = rng.standard_normal((size, self.dimension), dtype=np.float32)
        block[:, 0] += np.float32(self.bias)
        squared_lengths = np.einsum("ij,ij->i", block, block, dtype=np.float64)
        lengths = np.sqrt(squared_lengths)
        block /= lengths[:, None].astype(np.float32)
        return block

    def log_odds(self, cosine: FloatArray) -> FloatArray:
        """Return λ at the given first coordinates of unit vectors, for equally many of each kind.

        The density of a direction x at x₁ = t is proportional to
        e^(-γ²/2) ∫ r^(d-1) exp(-r²/2 + r γ t) dr, over lengths r > 0.
        """
        if self.ratio == 1 or self.bias == 0:
            return np.zeros(cosine.size)
        lowest = float(cosine.min())
        highest = float(cosine.max())
        nodes = np.array([lowest])
        if highest > lowest:
            nodes = np.linspace(lowest, highest, num=_INTERPOLATION_NODES)
        nonmember_bias = self.ratio * self.bias
        member_log_densities = self._log_length_integral(self.bias * nodes)
        nonmember_log_densities = self._log_length_integral(nonmember_bias * nodes)
        log_ratio_of_constants = (self.bias**2 - nonmember_bias**2) / 2
        log_odds = member_log_densities - nonmember_log_densities - log_ratio_of_constants
        if nodes.size == 1:
            return np.full(cosine.size, fill_value=log_odds[0])
        # λ is analytic and smooth: a polynomial between the nodes is exact to 1e-8.
        polynomial = np.polynomial.Chebyshev.fit(nodes, log_odds, _POLYNOMIAL_DEGREE)
        return np.asarray(polynomial(cosine))

    def _log_length_integral(self, pull: FloatArray) -> FloatArray:
        """Return ln ∫ r^(d-1) exp(-r²/2 + r s) dr at each s, by the trapezoid rule in ln r."""
        discriminant = pull**2 + 4 * self.dimension
        mode = (pull + np.sqrt(discriminant)) / 2
        curvature = 2 * mode**2 - pull * mode
        deviation = 1 / np.sqrt(curvature)
        deviations = np.linspace(
            -_INTEGRATION_HALF_WIDTH, _INTEGRATION_HALF_WIDTH, num=_INTEGRATION_POINTS
        )
        log_mode = np.log(mode)
        log_lengths = log_mode[:, None] + deviations * deviation[:, None]
        lengths = np.exp(log_lengths)
        gaussian_term = np.exp(2 * log_lengths) / 2
        log_integrand = self.dimension * log_lengths - gaussian_term + pull[:, None] * lengths
        log_sum: FloatArray = np.logaddexp.reduce(log_integrand, axis=1)
        return log_sum + np.log(deviation)


def noisy_sum(
    m: int,
    *,
    mu: float = 0.66,
    shift: float = 1.0,
    bias: float = 2.0,
    dimension: int | None = None,
    features: int = 1,
    holdout: int = 0,
    seed: int,
) -> NoisySum:
    """Play the game against a noisy sum of unit vectors, with a shift between the populations.

    Parameters
    ----------
    m, mu, seed : int, float and int
        Audited examples, at least 2; μ, one over the deviation of the noise; and the seed of
        everything.
    shift, bias : float
        The bias γ, at least 0, is how far members lean in the common direction; that of non-members
        is ργ, with the shift ρ in [0, 1]; 1 is no shift.
    dimension : int, optional
        d, at least `features` + 2; m if None. The signal drowns in the other members if d is much
        smaller than their number.
    features, holdout : int
        Coordinates that `features` has, and examples, half of each population, to fit propensities.

    Returns
    -------
    NoisySum
        Scores ⟨x, θ⟩, with exact propensities. The mechanism is μ-GDP under adding or removing an
        example, and for no smaller μ. Given the features memberships are independent with
        probability π(x).

    Notes
    -----
    The synthetic experiment of Ceberé, Even, Bleistein and Bellet, "Privacy auditing with zero (0)
    training run", Appendix F: members are x̃/‖x̃‖ for x̃ ~ N(γv, I), non-members the same with ργ,
    and θ = Σ x + η with η ~ N(0, I/μ²). Noise and populations look alike in every frame whose first
    axis is v, so v is the first axis here. Scores of non-members, which are independent of θ, are
    drawn through what they depend on, without their d coordinates; the law is the same.

    Examples
    --------
    >>> game = noisy_sum(400, mu=1.0, shift=0.5, seed=0)
    >>> game.truth, game.features.shape
    (1.0, (400, 1))
    >>> bool(abs(game.propensity.mean() - 0.5) < 0.05)
    True
    """
    # 1. The two populations.
    rng = generator("simulate/noisy-sum", seed)
    if dimension is None:
        dimension = m
    population = _Population(dimension=dimension, features=features, bias=bias, ratio=shift)
    # 2. Members are in the sum; non-members are scored by it.
    member = rng.random(m) < 0.5
    members = int(member.sum())
    first_coordinates = np.empty((m, features))
    scores = np.empty(m)
    first_coordinates[member], scores[member], theta = population.train(rng, members, 1 / mu)
    first_coordinates[~member], scores[~member] = population.draw(rng, member[~member], theta)
    # 3. Other examples of both populations, and the exact odds of the audited ones.
    holdout_member = np.arange(holdout) % 2 == 0
    holdout_coordinates, _ = population.draw(rng, holdout_member)
    log_odds = population.log_odds(first_coordinates[:, 0])
    return NoisySum(
        scores=scores,
        member=member,
        truth=mu,
        parameter="mu",
        log_odds=log_odds,
        propensity=expit(log_odds),
        features=first_coordinates * math.sqrt(dimension),
        holdout_features=holdout_coordinates * math.sqrt(dimension),
        holdout_member=holdout_member,
    )
