"""Which members an audit singles out; the public name is that of `leakbound.results`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import BoolArray, FloatArray, IntArray

RATE = 0.1
"""False discovery rate of the list. It is fixed: a rate chosen after a look would not hold."""
# Guesses up to which a list may reach, so that a stored result stays small
_MOST = 10_000


@dataclass(frozen=True, eq=False)
class Exposed:
    """The most exposed members, at a false discovery rate of 10 %.

    The examples of highest score are guessed to be members. Listed are the correct ones among the
    first k guesses, for the largest k at which (1 + wrong guesses) / (correct guesses) is at most
    `rate`. There are at least ten of them, or none. Non-members are never listed.

    Notes
    -----
    Call a listed member *false* if its guess had posterior odds of at most e^η, given the output of
    training and all other coins. The expected share of false ones in the list is at most
    e^η · `rate`, for every η ≥ 0 at once: at η = 0, these are members about whom the output says
    nothing. The expectation is over fair, independent coins and the randomness of training; how
    coins depend on each other given the output does not matter.

    Proof (as Barber, Candès and Samworth 2020, Theorem 1). Let W be the wrong guesses among the
    first k. By the stopping rule, the false share is at most rate · Σ 1{j false} / (1 + W), over
    listed j. Replace k by k_j, the stopping point if coin j had come up "member", and W by W_j,
    which leaves out j: for listed j both are equal. Neither depends on coin j, nor does whether j
    is false, so each term grows at most by e^η, on average, if coin j is turned to "non-member".
    The sum is then over wrong guesses j ≤ k_j of 1 / (1 + W_j). All such j have the same k_j, since
    from the later of two on, counts do not tell which was turned. So 1 + W_j are the wrong guesses
    up to there, and the sum is at most 1. Stopping points lie between blocks of tied scores, and
    are at most 10,000: neither depends on coins. Of several attacks, of which the best is chosen by
    the coins, each has its equal share of `rate`.

    References
    ----------
    R. F. Barber, E. J. Candès and R. J. Samworth, "Robust inference with knockoffs", Annals of
    Statistics 48, 2020 (arXiv 1801.03896).
    """

    rate: float
    """Bound on the expected share of false discoveries."""
    rows: IntArray
    """Rows of the scores, the most exposed member first."""
    ids: tuple[str, ...]
    """Ids of these examples, as text, where `ids`, scores or a plan told them; else empty."""

    def _flaw(self) -> str:
        named, distinct = len(self.ids) in {0, self.rows.size}, np.unique(self.rows).size
        if named and distinct == self.rows.size and (self.rows >= 0).all() and self.rate == RATE:
            return ""
        return "exposed has rows, ids or a rate that no audit lists"


def exposed(
    scores: FloatArray,
    member: BoolArray,
    ids: NDArray[np.generic] | None,
    attacks: int = 1,
    given: IntArray | None = None,
) -> Exposed:
    """List the most exposed members by the best of several attacks; `given` has rows as passed."""
    order = np.argsort(-scores, kind="stable")[: _MOST + 1]
    correct = np.cumsum(member[order])
    wrong = np.arange(1, order.size + 1) - correct
    # the last of all examples ends a block, and the guess after the longest list only shows a tie
    ends = np.append(scores[order[1:]] != scores[order[:-1]], order.size <= _MOST)
    stops = np.flatnonzero(ends & (1 + wrong <= RATE / attacks * correct))
    first = order[: stops[-1] + 1] if stops.size else order[:0]
    rows = first[member[first]]
    names = () if ids is None else tuple(map(str, ids[rows].tolist()))
    return Exposed(RATE, rows if given is None else given[rows], names)
