"""One ranking on trial: the choices of an audit that hold for every attack."""

import math
from dataclasses import dataclass

import leakbound._core as _core
from leakbound._base.types import PathName, PathOrder
from leakbound.cuts import (
    BestCut,
    PathPolicy,
)

__all__ = ["PATH_NAMES", "Trial", "reason"]

PATH_NAMES: dict[PathOrder, PathName] = {
    "member": "member",
    "member_half": "members",
    "nonmember_half": "non-members",
    "interleaved": "interleaved",
}


@dataclass(frozen=True)
class Trial:
    """A policy tested on some paths of a ranking, and the path that won."""

    ranking: _core.Ranking
    cuts: PathPolicy
    orders: tuple[PathOrder, ...]
    level: float
    order: PathOrder
    path: _core.Path
    best: BestCut
    recall: float = 1.0

    @property
    def cut(self) -> tuple[int, int]:
        """Guesses made and guesses right at the chosen cut."""
        return self.cuts.chosen(self.path, self.best)

    @classmethod
    def of(
        cls,
        ranking: _core.Ranking,
        cuts: PathPolicy,
        orders: tuple[PathOrder, ...],
        beta: float,
        recall: float = 1.0,
    ) -> "Trial":
        """Bound every path at its share of `beta` and keep the best; on equality the first.

        Cuts of more than a share `recall` of the examples are left out.
        """
        level = cuts.level(beta, len(orders))
        paths = {order: cuts.path(ranking, order) for order in orders}
        if recall < 1:
            most = _most(recall, ranking.examples)
            paths = {order: path.prefix(most) for order, path in paths.items()}
        bounds = {order: cuts.along(order).bound(path, level) for order, path in paths.items()}
        winner = max(orders, key=lambda order: bounds[order].logit)
        return cls(ranking, cuts, orders, level, winner, paths[winner], bounds[winner], recall)

    def perfect(self, cuts: PathPolicy, examples: int) -> float:
        """Return what a perfect attack proves on the longest path."""
        most = None if self.recall == 1 else _most(self.recall, examples)
        return cuts.perfect(self.orders[-1], examples, self.level, most)


def _most(recall: float, examples: int) -> int:
    """Return the guesses of the longest cut, whose recall is so large if scores say nothing."""
    return max(1, math.floor(recall * examples))


def reason(guesses: int, correct: int) -> str:
    """Say why nothing is proved.

    Parameters
    ----------
    guesses, correct : int
        Guesses made and guesses right at the best cut; zeros if no cut stands out.

    Returns
    -------
    str
        A clause.
    """
    if guesses == 0:
        return "no tested cut has enough right guesses to count against chance"
    return (
        f"chance explains every tested cut: at the best one {correct} of {guesses} "
        "guesses are right"
    )
