"""Truths that a plan can assume: independent Gaussian scores, or randomised response."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import real
from leakbound._base.numerics import doubled_and_halved
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, Sides
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.simulate import gaussian, randomized_response
from leakbound.stats import normal_quantile

PlannedClaim: TypeAlias = PureDP | ApproxDP | GaussianDP
# Examples of the simulated games that are in memory at a time.
_EXAMPLES_IN_MEMORY = 2**22
# Relative precision of the μ that stands for (ε, δ).
_RELATIVE_PRECISION = 1e-9


@dataclass(frozen=True)
class Gaussian:
    """The truth that scores are N(±μ/2, 1), independently: canaries in orthogonal directions.

    Parameters
    ----------
    mu : float
        μ of Gaussian DP, at least 0.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", real(self.mu, name="mu", least=0, below=math.inf))

    def parameter(self, claim: PlannedClaim) -> float:
        """Return the smallest parameter of a claim that is true."""
        if isinstance(claim, GaussianDP):
            return self.mu
        if not claim.delta:
            if self.mu:
                return math.inf
            return 0.0
        return gaussian(1, self.mu, seed=0).epsilon(claim.delta)

    def pairs(self, number_of_pairs: int, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return the confidence of guesses about pairs, and which are right."""
        score_differences = self.mu / 2 + rng.normal(size=number_of_pairs)
        return np.abs(score_differences), score_differences > 0


@dataclass(frozen=True)
class Response:
    """The truth that guesses are correct with odds e^ε: randomised response.

    Parameters
    ----------
    epsilon : float
        ε, at least 0.
    fraction : float
        Share of the examples that leak at all, in (0, 1]; the attack ranks them first.
    """

    epsilon: float
    fraction: float = 1.0

    def __post_init__(self) -> None:
        epsilon = real(self.epsilon, name="epsilon", least=0, below=math.inf)
        fraction = real(self.fraction, name="fraction", above=0, most=1)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "fraction", fraction)

    @property
    def _accuracy(self) -> float:
        """The probability that a guess about a leaking example is right."""
        return 1 / (1 + math.exp(-self.epsilon))

    def parameter(self, claim: PlannedClaim) -> float:
        """Return the smallest parameter of a claim that is true."""
        if isinstance(claim, GaussianDP):  # the curve whose fixed point is that of the response
            return 2 * float(normal_quantile(self._accuracy))
        response_game = randomized_response(1, self.epsilon, seed=0)
        return response_game.epsilon(claim.delta)

    def pairs(self, number_of_pairs: int, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return the confidence of guesses about pairs, and which are right."""
        is_leaking = rng.random(number_of_pairs) < self.fraction
        accuracy = np.where(is_leaking, self._accuracy, 0.5)
        guess_confidence = is_leaking + rng.random(number_of_pairs)
        is_correct = rng.random(number_of_pairs) < accuracy
        return guess_confidence, is_correct


Truth: TypeAlias = Gaussian | Response


def of_copies(truth: Truth, copies: int) -> Truth:
    """Return the truth about several copies of a record at once, which leak as many times more."""
    if copies == 1:
        return truth
    if isinstance(truth, Gaussian):
        return Gaussian(copies * truth.mu)
    return Response(epsilon=copies * truth.epsilon, fraction=truth.fraction)


def truth_of(truth: float | Truth, claim: PlannedClaim) -> Truth:
    """Return the truth for a number, which is a value of the claim's parameter."""
    if isinstance(truth, Gaussian | Response):
        return truth
    assumed_parameter = real(truth, name="truth", least=0, below=math.inf)
    if isinstance(claim, PureDP):
        return Response(assumed_parameter)
    if isinstance(claim, ApproxDP):
        return Gaussian(_largest_gaussian_mu(epsilon=assumed_parameter, delta=claim.delta))
    return Gaussian(assumed_parameter)


def _largest_gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest μ whose mechanism is (ε, δ)-DP."""

    def is_within(mu: float) -> bool:
        return gaussian(1, mu, seed=0).delta(epsilon) <= delta

    largest_within, _ = doubled_and_halved(is_within, width=_RELATIVE_PRECISION)
    return largest_within


def games_of(
    truth: Truth, m: int, sides: Sides, simulations: int, seed: int
) -> Iterator[_core.Ranking]:
    """Yield rankings of simulated games; of pairs, by confidence, with right ones as members."""
    if sides == "pairs":
        for game_number in range(simulations):
            rng = Purpose.POWER_OF_PAIRS.rng(seed, game_number)
            confidence, is_correct = truth.pairs(m, rng)
            yield _core.Ranking(confidence, is_correct)
        return
    derived_seed = Purpose.POWER.derived(seed)
    games_at_once = max(1, _EXAMPLES_IN_MEMORY // m)
    if isinstance(truth, Gaussian):
        strength_of_truth = truth.mu
        leaking_fraction = None
    else:
        strength_of_truth = truth.epsilon
        leaking_fraction = truth.fraction
    for first_game in range(0, simulations, games_at_once):
        yield from _core.play(
            strength_of_truth,
            fraction=leaking_fraction,
            examples=m,
            seed=derived_seed,
            first=first_game,
            count=min(games_at_once, simulations - first_game),
        )
