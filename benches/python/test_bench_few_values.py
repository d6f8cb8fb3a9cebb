"""What whole values prove, where scores have few, beside cuts through ties and the best pair.

The best pair guesses "member" of so many values from the top and "non-member" of so many from the
bottom. It is found with the labels at hand, which no audit may do.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest
from scipy.special import expit

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.mechanisms import GRR, SUE
from local_dp import log_ratios_of_reports

BETA = 0.05
RUNS = 60
LEAST_SHARE = 0.97
"""What whole values prove at least, of what cuts through ties prove."""
Play: TypeAlias = Callable[[BoolArray, np.random.Generator], FloatArray]
"""A game: the scores of members and non-members."""


def failing_response(member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return randomised response with ε = 1, of which a twentieth tells the coin."""
    signs = np.where(member, 1.0, -1.0)
    is_true = rng.random(member.size) < expit(1)
    responses = np.where(is_true, signs, -signs)
    is_revealed = rng.random(member.size) < 0.05
    return np.where(is_revealed, 3 * signs, responses)


def one_sided(member: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Return 1 for a tenth, 90 % of them members, and -1 for half of the others, at random."""
    top_probability = np.where(member, 0.18, 0.02)
    is_top = rng.random(member.size) < top_probability
    is_bottom = rng.random(member.size) < 0.5
    other_scores = np.where(is_bottom, -1.0, 0.0)
    return np.where(is_top, 1.0, other_scores)


def predicted_labels(member_accuracy: float, nonmember_accuracy: float) -> Play:
    """Return a game of scores that are 1 where a model's label is right."""

    def play(member: BoolArray, rng: np.random.Generator) -> FloatArray:
        accuracy = np.where(member, member_accuracy, nonmember_accuracy)
        is_right = rng.random(member.size) < accuracy
        return np.where(is_right, 1.0, 0.0)

    return play


def rounded_gaussian(mu: float, values: int) -> Play:
    """Return a game of scores N(±μ/2, 1) that are rounded to so many values."""
    largest_value = values - 1

    def play(member: BoolArray, rng: np.random.Generator) -> FloatArray:
        gaussian_noise = rng.normal(size=member.size)
        scores = gaussian_noise + mu * (member - 0.5)
        share_of_range = scores / (4 + mu) + 0.5
        rounded_scores = np.rint(share_of_range * largest_value)
        return np.clip(rounded_scores, a_min=0, a_max=largest_value)

    return play


GAMES: dict[str, Play] = {
    "GRR, k = 25, ε = 1": partial(log_ratios_of_reports, GRR(k=25, epsilon=1.0)),
    "SUE, k = 25, ε = 1": partial(log_ratios_of_reports, SUE(k=25, epsilon=1.0)),
    "SUE, k = 100, ε = 4": partial(log_ratios_of_reports, SUE(k=100, epsilon=4.0)),
    "randomised response, 5 % told": failing_response,
    "5 % of members told": predicted_labels(member_accuracy=0.05, nonmember_accuracy=0.0),
    "labels: 95 % against 85 % right": predicted_labels(
        member_accuracy=0.95, nonmember_accuracy=0.85
    ),
    "a tenth at the top only": one_sided,
    "N(1) in 5 values": rounded_gaussian(mu=1.0, values=5),
    "N(1) in 10 values": rounded_gaussian(mu=1.0, values=10),
    "N(2) in 5 values": rounded_gaussian(mu=2.0, values=5),
}


def bound_of_whole_values(
    scores: FloatArray, member: BoolArray, lowest_top: float, highest_bottom: float
) -> float:
    """Return the ε proved by guessing "member" from a value on, and "non-member" up to one."""
    correct_at_bottom = ~member[scores <= highest_bottom]
    correct_at_top = member[scores >= lowest_top]
    guesses = correct_at_bottom.size + correct_at_top.size
    if not guesses:
        return 0.0
    correct = int(correct_at_bottom.sum() + correct_at_top.sum())
    bound = lb.cuts.OutsideIn().limit(None, guesses, correct, BETA)
    return max(0.0, bound)


def best_pair_mean(games_played: list[tuple[FloatArray, BoolArray]]) -> float:
    """Return the largest mean bound of whole values from the top, and from the bottom."""
    values = np.unique([scores for scores, _ in games_played])
    largest_mean = 0.0
    for highest_bottom, lowest_top in combinations([-np.inf, *values, np.inf], 2):
        bounds = []
        for scores, member in games_played:
            bound = bound_of_whole_values(scores, member, lowest_top, highest_bottom)
            bounds.append(bound)
        largest_mean = max(largest_mean, float(np.mean(bounds)))
    return largest_mean


def mean_audited(
    games_played: list[tuple[FloatArray, BoolArray]], cuts: lb.OutsideIn | None
) -> float:
    """Return the mean bound of audits under a policy, the default if None."""
    bounds = []
    for seed, (scores, member) in enumerate(games_played):
        result = lb.audit(scores, lb.Coins(member), cuts=cuts, seed=seed)
        bounds.append(result.bound)
    return float(np.mean(bounds))


@pytest.mark.parametrize("m", [1000, 10_000])
@pytest.mark.parametrize("game", list(GAMES))
def test_whole_values_beside_levels(game: str, m: int) -> None:
    games_played = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        member = rng.random(m) < 0.5
        scores = GAMES[game](member, rng)
        games_played.append((scores, member))
    ladder = lb.cuts.OutsideIn().ladder(m, BETA, "auto")
    cuts_through_ties = lb.cuts.OutsideIn(ladder)
    through_ties = mean_audited(games_played, cuts=cuts_through_ties)
    whole_values = mean_audited(games_played, cuts=None)
    best_pair = best_pair_mean(games_played)
    print(f"m = {m:>6,} {game:32} {through_ties:.2f} {whole_values:.2f} {best_pair:.2f}")
    assert whole_values >= LEAST_SHARE * through_ties
