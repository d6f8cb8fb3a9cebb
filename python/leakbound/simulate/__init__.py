"""Games with known truth: what audits are tested on, planned with and compared on.

Each function plays one idealised game and returns its scores, its membership and the exact
guarantee of the mechanism behind them. A bound that an audit derives from the scores and membership
is false if it exceeds that truth, and may be so no more often than its confidence allows.
"""

from leakbound.simulate.games import Game, gaussian, mixture, null, randomized_response
from leakbound.simulate.mechanisms import (
    RankedGame,
    ShiftedGame,
    dp_sgd,
    laplace,
    losses_near_zero,
    one_sided_tail,
    rankings,
    shifted,
    ties,
    two_sided_tail,
)
from leakbound.simulate.noisy_sums import NoisySum, noisy_sum

__all__ = [
    "Game",
    "NoisySum",
    "RankedGame",
    "ShiftedGame",
    "dp_sgd",
    "gaussian",
    "laplace",
    "losses_near_zero",
    "mixture",
    "noisy_sum",
    "null",
    "one_sided_tail",
    "randomized_response",
    "rankings",
    "shifted",
    "ties",
    "two_sided_tail",
]
