"""Games of membership, and the exact privacy of what was played."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real
from leakbound._base.numerics import halved
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import FAMILIES, Claim, GaussianDP
from leakbound.stats import log_normal_cdf

Parameter: TypeAlias = Literal["epsilon", "mu", "inverse_noise"]
# From ε ≥ 0 to the smallest δ with which the mechanism is (ε, δ)-DP; non-increasing.
Profile: TypeAlias = Callable[[float], float]

# Beyond this ε all probabilities are 0 or out of reach of an exponent.
_LARGEST_EPSILON = 500.0
# Relative precision of ε, found by bisection.
_EPSILON_PRECISION = 1e-13
# The least δ of a Gaussian, which is never 0.
LEAST_DELTA = math.ulp(0.0)
# Where curves of a family are compared with a game's: the largest ε, points, and rounding.
_LARGEST_COMPARED_EPSILON = 30.0
_COMPARED_POINTS = 601
_ROUNDING_SLACK = 1e-12
_LARGEST_PARAMETER = 1e3
# Relative precision of the parameter of a family.
_PARAMETER_PRECISION = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Game:
    """One game of membership that was played: what an audit sees, and the truth.

    Parameters
    ----------
    scores, member : ndarray of float64 and of bool, shape (m,)
        Higher for likelier members, and what independent fair coins said.
    truth, parameter : float, and "epsilon", "mu" or "inverse_noise"
        The smallest ε of (ε, δ)-DP, or μ of Gaussian DP, with which the mechanism is private; or
        1/σ of DP-SGD. NaN where it is not known.
    profile : callable, optional
        From ε ≥ 0 to the smallest δ with which the mechanism is (ε, δ)-DP, non-increasing; if None,
        that of a Gaussian for "mu", and of randomised response for "epsilon".
    design : callable, optional
        Makes the design of an audit, such as ``partial(lb.ZeroRun, member, propensity)``; fair
        coins if None.
    """

    scores: FloatArray
    member: BoolArray
    truth: float
    parameter: Parameter
    profile: Profile | None = field(default=None, repr=False)
    design: Callable[[], Any] | None = field(default=None, repr=False)

    @property
    def _profile(self) -> Profile:
        """The profile of the mechanism, or that of its parameter."""
        if self.profile is not None:
            return self.profile
        if self.parameter == "mu":
            return gaussian_profile(self.truth)
        return response_profile(self.truth)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ with which the mechanism is (ε, δ)-DP, for ε ≥ 0."""
        return self._profile(real(epsilon, name="epsilon", least=0, below=math.inf))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε with which the mechanism is (ε, δ)-DP: what no bound may exceed.

        For δ in [0, 1); rounded up by less than 1e-12 relative, inf if no ε will do.
        """
        delta = real(delta, name="delta", least=0, below=1)
        if self._profile(0.0) <= delta:
            return 0.0
        upper_epsilon = 1.0
        while self._profile(upper_epsilon) > delta:
            upper_epsilon *= 2
            if upper_epsilon > _LARGEST_EPSILON:
                return math.inf

        def is_too_small(epsilon: float) -> bool:
            return self._profile(epsilon) > delta

        _, smallest_epsilon = halved(0.0, upper_epsilon, is_too_small, width=_EPSILON_PRECISION)
        return smallest_epsilon

    def least(self, claim: Claim) -> float:
        """Return the smallest parameter of a claim that is true: what no bound may exceed.

        For families of trade-off functions it is looked for where ε is at most 30, and inf if no
        parameter below 10^3 will do; NaN if the truth is not known.
        """
        if math.isnan(self.truth):
            return math.nan
        if not isinstance(claim, FAMILIES):
            return self.epsilon(claim.delta)
        if isinstance(claim, GaussianDP) and self.parameter == "mu" and not claim.delta:
            return self.truth
        compared_epsilons = np.linspace(0, _LARGEST_COMPARED_EPSILON, _COMPARED_POINTS)
        delta_of_game = np.array([self.delta(epsilon) for epsilon in compared_epsilons])

        def is_false_claim(parameter: float) -> bool:
            delta_of_claim = claim.curve(parameter, "both").delta(compared_epsilons)
            return not (delta_of_game <= delta_of_claim + _ROUNDING_SLACK).all()

        smallest_parameter = claim.search[0]
        largest_parameter = min(claim.search[1], _LARGEST_PARAMETER)
        if not is_false_claim(smallest_parameter):
            return smallest_parameter
        if is_false_claim(largest_parameter):
            return math.inf
        _, smallest_true = halved(
            smallest_parameter, largest_parameter, is_false_claim, width=_PARAMETER_PRECISION
        )
        return smallest_true

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self.member.size}, {self.parameter}={self.truth:g})"


def tossed(purpose: Purpose, m: int, seed: int) -> tuple[np.random.Generator, BoolArray]:
    """Return the generator of a game of m examples, and the fair coins that it tossed first."""
    checked_seed = integer(seed, name="seed", least=0)
    examples = integer(m, name="m", least=1, most=MOST_EXAMPLES)
    game_rng = purpose.rng(checked_seed)
    member = game_rng.random(examples) < 0.5
    return game_rng, member


def null(m: int, *, seed: int) -> Game:
    """Play the game with a model that learnt nothing: m scores from N(0, 1), and ε = 0.

    Parameters
    ----------
    m, seed : int
        Examples, at most 10^8, and the seed of coins and noise, at least 0.

    Examples
    --------
    >>> null(1000, seed=0).truth
    0.0
    """
    game_rng, member = tossed(Purpose.NULL_GAME, m=m, seed=seed)
    return Game(scores=game_rng.normal(size=m), member=member, truth=0.0, parameter="epsilon")


def gaussian(m: int, mu: float, *, seed: int) -> Game:
    """Play the game against a noisy sum of orthogonal canaries.

    Each canary has a coordinate of its own, so its presence is seen through one draw from N(±μ/2,
    1), and the draws are independent.

    Parameters
    ----------
    m, mu, seed : int, float and int
        Canaries, at most 10^8; μ, at least 0: the length of a canary over the standard deviation of
        the noise, 1/σ; and the seed of coins and noise, at least 0.

    Returns
    -------
    Game
        The mechanism is μ-GDP under adding or removing a canary, and for no smaller μ.

    Notes
    -----
    The game of Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run"
    (2025), Algorithm 4, for two values of each canary; an audit counts its guesses.

    Examples
    --------
    >>> game = gaussian(1000, 1.0, seed=0)
    >>> round(game.epsilon(1e-5), 3)
    4.377
    """
    game_rng, member = tossed(Purpose.GAUSSIAN_GAME, m=m, seed=seed)
    mu = real(mu, name="mu", least=0, below=math.inf)
    means_of_scores = np.where(member, mu / 2, -mu / 2)
    scores = means_of_scores + game_rng.normal(size=m)
    return Game(scores=scores, member=member, truth=mu, parameter="mu")


def mixture(m: int, mu: float = 1.0, *, dependence: float = 0.95, seed: int) -> Game:
    """Play the game against a mechanism that is μ-GDP and whose canaries leak together.

    The mechanism publishes, for every canary, how reliable its report will be, and then whether the
    canary is in, by randomised response of that reliability. Reliabilities depend on one another
    but not on membership.

    Parameters
    ----------
    m, mu, seed : int, float and int
        Canaries, at most 10^8; μ, at least 0; and the seed of coins, reliabilities and reports.
    dependence : float
        Correlation of what reliabilities are drawn from, in [0, 1]. At 1 all scores are tied.

    Returns
    -------
    Game
        Scores are reports times reliabilities. The mechanism is μ-GDP, and for no smaller μ, under
        adding or removing a canary.

    Notes
    -----
    Canary by canary it looks just as the game of `gaussian`, but the number of correct guesses is
    far from binomial: a bound that takes guesses for independent draws from the Gaussian channel is
    often above μ. ``docs/theory/validity.md`` has the law in full, and why it is μ-GDP.

    Examples
    --------
    >>> game = mixture(1000, seed=0)
    >>> game.truth, round(game.epsilon(1e-5), 3)
    (1.0, 4.377)
    """
    game_rng, member = tossed(Purpose.MIXTURE_GAME, m=m, seed=seed)
    mu = real(mu, name="mu", least=0, below=math.inf)
    reliability_correlation = real(dependence, name="dependence", least=0, most=1)
    common_normal = game_rng.normal()
    independent_normals = game_rng.normal(size=m)
    common_part = math.sqrt(reliability_correlation) * common_normal
    independent_parts = math.sqrt(1 - reliability_correlation) * independent_normals
    reliabilities = np.abs(mu / 2 + common_part + independent_parts)
    is_truthful_report = game_rng.random(m) * (1 + np.exp(-mu * reliabilities)) < 1
    scores = np.where(member == is_truthful_report, reliabilities, -reliabilities)
    return Game(scores=scores, member=member, truth=mu, parameter="mu")


def randomized_response(
    m: int, epsilon: float, *, fraction: float = 1.0, delta: float = 0.0, seed: int
) -> Game:
    """Play the game against randomised response: each report is right with odds e^ε.

    Parameters
    ----------
    m, epsilon, seed : int, float and int
        Examples, at most 10^8; ε, at least 0; and the seed of coins, lot and reports.
    fraction, delta : float
        Share of the examples that are reported on, chosen by lot, in (0, 1], the other scores being
        noise; and probability that a report is the plain truth, and seen to be so, in [0, 1).

    Returns
    -------
    Game
        The sign of a score is the report, and its size is drawn independently of membership: above
        2 for what is seen to be true, in (1, 2) for other reports, below 1 for noise. The mechanism
        is (ε, δ)-DP under adding or removing an example, and for no smaller ε at this δ.

    Notes
    -----
    Every guess that follows a report is right with probability e^ε / (1 + e^ε), independently,
    which is the most that ε-DP allows: audits err as often here as anywhere. With δ > 0 the reports
    reach P(report | member) = e^ε P(report | non-member) + δ on the set of those that say "member".

    Examples
    --------
    >>> game = randomized_response(1000, 1.5, seed=0)
    >>> right = (game.scores > 0) == game.member
    >>> game.truth, bool(abs(right.mean() - 1 / (1 + np.exp(-1.5))) < 0.05)
    (1.5, True)
    """
    game_rng, member = tossed(Purpose.RESPONSE_GAME, m=m, seed=seed)
    epsilon = real(epsilon, name="epsilon", least=0, below=math.inf)
    plain_truth_probability = real(delta, name="delta", least=0, below=1)
    reported_share = real(fraction, name="fraction", above=0, most=1)
    is_reported_example = game_rng.permutation(m) < math.ceil(reported_share * m)
    is_plain_truth = is_reported_example & (game_rng.random(m) < plain_truth_probability)
    is_truthful_report = game_rng.random(m) * (1 + math.exp(-epsilon)) < 1
    reports_of_noise = game_rng.random(m) < 0.5
    randomized_reports = np.where(
        is_reported_example, member == is_truthful_report, reports_of_noise
    )
    reports = np.where(is_plain_truth, member, randomized_reports)
    # Sizes are in (0, 1] for noise, (1, 2] for reports and (2, 3] for the plain truth.
    score_magnitudes = 1 - game_rng.random(m) + is_reported_example + is_plain_truth

    return Game(
        scores=np.where(reports, score_magnitudes, -score_magnitudes),
        member=member,
        truth=epsilon,
        parameter="epsilon",
        profile=response_profile(epsilon, plain_truth_probability),
    )


def response_profile(epsilon: float, plain_truth_probability: float = 0.0) -> Profile:
    """Return the profile of randomised response that tells the plain truth with some chance."""

    def delta(claimed_epsilon: float) -> float:
        randomized_delta = max(0.0, -math.expm1(claimed_epsilon - epsilon)) / (
            1 + math.exp(-epsilon)
        )
        return plain_truth_probability + (1 - plain_truth_probability) * randomized_delta

    return delta


def gaussian_profile(mu: float) -> Profile:
    """Return the profile of one draw from N(μ, 1) or N(0, 1)."""

    def delta(epsilon: float) -> float:
        if mu == 0:
            return 0.0
        # As logarithms: far tails are 0 in doubles.
        # δ = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ): Balle and Wang (2018), Theorem 8.
        half_distance = mu / 2
        scaled_epsilon = epsilon / mu
        log_tail_with_example = float(log_normal_cdf(half_distance - scaled_epsilon))
        log_tail_without_example = float(log_normal_cdf(-half_distance - scaled_epsilon))
        log_tail_ratio = epsilon + log_tail_without_example - log_tail_with_example
        share_of_excess = -math.expm1(min(0.0, log_tail_ratio))
        return max(LEAST_DELTA, math.exp(log_tail_with_example) * share_of_excess)

    return delta
