"""Trials beside coins: what they prove of one mechanism, of several shapes of leaks, and wrongly.

`python benches/papers/trials.py [gaussian] [shapes] [wrong]` prints tables of
`docs/theory/trials.md`; that of (ε, δ)-DP is from `benches/tightness/allowance.py`.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import Claim
from printed_tables import Row, print_tables

Play: TypeAlias = Callable[[np.random.Generator, BoolArray], FloatArray]
"""A leak: scores of members and non-members."""


def gaussian_shift(mu: float) -> Play:
    """Scores of a Gaussian mechanism."""

    def play(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        noise = rng.normal(size=member.size)
        return noise + mu * member

    return play


def revealed_shares(member_share: float, nonmember_share: float) -> Play:
    """Scores that give shares of members and of others away, and are noise for the rest."""

    def play(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        probability = np.where(member, member_share, nonmember_share)
        is_revealed = rng.random(member.size) < probability
        noise = rng.normal(size=member.size)
        shifts_if_revealed = np.where(member, 8, -8)
        shifts = np.where(is_revealed, shifts_if_revealed, 0)
        return noise + shifts

    return play


SHAPES: dict[str, Play] = {
    "μ = 0.3": gaussian_shift(0.3),
    "μ = 1": gaussian_shift(1),
    "μ = 2": gaussian_shift(2),
    "μ = 4": gaussian_shift(4),
    "5 % of members told": revealed_shares(member_share=0.05, nonmember_share=0),
    "5 % of others told": revealed_shares(member_share=0, nonmember_share=0.05),
    "5 % of both told": revealed_shares(member_share=0.05, nonmember_share=0.05),
}


def audited(
    scores: FloatArray, member: BoolArray, claim: Claim, seed: int
) -> tuple[lb.AuditResult, lb.AuditResult]:
    """Audit scores as trials, and as coins."""
    result_of_trials = lb.audit(scores, lb.Trials(member), claim=claim, seed=seed)
    result_of_coins = lb.audit(scores, lb.Coins(member), claim=claim, seed=seed)
    return result_of_trials, result_of_coins


def mean(play: Play, m: int, claim: Claim, games: int) -> tuple[float, float]:
    """Return the mean bound of trials and of coins, of families as ε at 1e-5."""
    delta = claim.delta or 1e-5
    epsilons_of_trials = []
    epsilons_of_coins = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        member = rng.random(m) < 0.5
        scores = play(rng, member)
        trials, coins = audited(scores, member=member, claim=claim, seed=seed)
        epsilons_of_trials.append(trials.epsilon(delta))
        epsilons_of_coins.append(coins.epsilon(delta))
    mean_of_trials = float(np.mean(epsilons_of_trials))
    mean_of_coins = float(np.mean(epsilons_of_coins))
    return mean_of_trials, mean_of_coins


def gaussian() -> Iterator[Row]:
    """Yield what is proved of the Gaussian mechanism, by the number of runs."""
    for m in (1_000, 10_000, 100_000):
        trials, coins = mean(gaussian_shift(1), m=m, claim=lb.GaussianDP(), games=40)
        yield m, coins, trials


def shapes() -> Iterator[Row]:
    """Yield what is proved of shapes of leaks in 1,000 runs, as Gaussian DP."""
    for name, play in SHAPES.items():
        trials, coins = mean(play, m=1_000, claim=lb.GaussianDP(), games=20)
        yield name, coins, trials


def wrong() -> Iterator[Row]:
    """Yield false claims about a mechanism that is 1-GDP, where coins of one run pass as trials."""
    games = 200
    for m in (400, 1_000):
        false_trials = 0
        false_coins = 0
        for seed in range(games):
            game = lb.simulate.mixture(m, 1.0, seed=seed)
            trials, coins = audited(
                game.scores, member=game.member, claim=lb.GaussianDP(), seed=seed
            )
            false_trials += trials.bound > game.truth
            false_coins += coins.bound > game.truth
        yield m, f"{false_coins} of {games}", f"{false_trials} of {games}"


if __name__ == "__main__":
    print_tables({"gaussian": gaussian, "shapes": shapes, "wrong": wrong}, columns="coins | trials")
