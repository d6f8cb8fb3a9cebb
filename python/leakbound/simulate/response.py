"""Randomised response: the game in which a claim of (ε, δ)-DP is tight for every guess.

The public name is that of `leakbound.simulate`.
"""

import math

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real
from leakbound._base.streams import Purpose, in_pieces, permutation
from leakbound._base.types import BoolArray
from leakbound.simulate.games import Game, coins
from leakbound.simulate.profiles import response_profile


def randomized_response(
    m: int, epsilon: float, *, fraction: float = 1.0, delta: float = 0.0, seed: int
) -> Game:
    """Play the game against randomised response: each report is right with odds e^ε.

    Parameters
    ----------
    m : int
        Examples, at least 1 and at most 10^8.
    epsilon : float
        ε, at least 0.
    fraction : float
        Share of the examples that are reported on, chosen by lot, in (0, 1]; the other scores are
        noise.
    delta : float
        Probability that a report is the plain truth, and seen to be so, in [0, 1).
    seed : int
        Seed of coins, lot and reports, at least 0.

    Returns
    -------
    Game
        The sign of a score is the report, and its size is drawn independently of membership: above
        2 for what is seen to be true, in (1, 2) for other reports, below 1 for noise. The mechanism
        is (ε, δ)-DP under adding or removing an example, and for no smaller ε at this δ.

    Raises
    ------
    OptionError, OptionTypeError
        If an argument is outside its range or not a number.

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
    rng = Purpose.RESPONSE_GAME.rng(integer(seed, "seed", least=0))
    member = coins(rng, integer(m, "m", least=1, most=MOST_EXAMPLES))
    epsilon = real(epsilon, "epsilon", least=0, below=math.inf)
    failure = real(delta, "delta", least=0, below=1)
    share = real(fraction, "fraction", above=0, most=1)
    answered = permutation(rng, m) < math.ceil(share * m)

    def below(threshold: float, factor: float = 1.0) -> BoolArray:
        return in_pieces(m, lambda _, size: rng.random(size) * factor < threshold, np.bool_)

    plain = answered & below(failure)
    honest, noise = below(1, 1 + math.exp(-epsilon)), below(0.5)
    said = np.where(plain, member, np.where(answered, member == honest, noise))
    size = 1 - in_pieces(m, lambda _, size: rng.random(size), np.float64) + answered + plain
    tail = f" at delta = {failure:g}" if failure else ""
    return Game(
        scores=np.where(said, size, -size),
        member=member,
        truth=epsilon,
        parameter="epsilon",
        guarantee=f"{epsilon:g}-DP{tail} under adding or removing an example, independent reports",
        _profile=response_profile(epsilon, failure),
    )
