"""What every cut policy that works on whole paths offers.

The public names are those of `leakbound.cuts`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.types import FloatArray, IntArray, Kind, PathOrder, Sides

__all__ = ["ORDERS", "Best", "BestCut", "CurvePoints", "PathPolicy"]

CurvePoints: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""Guesses, right guesses and log-odds bound (not clipped; NaN where not tested) at some cuts."""

ORDERS: dict[Sides, tuple[PathOrder, ...]] = {
    "member": ("member",),
    "both": ("member_half", "nonmember_half", "interleaved"),
}
"""The paths of a ranking that serve a choice of sides, the longest last."""


class BestCut(Protocol):
    """A bound and the cut that gave it."""

    @property
    def logit(self) -> float:
        """The bound: on the log-odds of a right guess, or what `strength` says; not clipped."""

    @property
    def cut(self) -> int:
        """Guesses made; 0 if no cut stands out."""

    @property
    def successes(self) -> int:
        """Guesses right."""


@dataclass(frozen=True)
class Best:
    """A `BestCut` of a policy that does not get one from the core."""

    logit: float
    cut: int
    successes: int


class PathPolicy(ABC):
    """A policy that works on whole paths: every one but `Split`."""

    kind: ClassVar[Kind] = "lower_bound"
    """What its bounds are."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""

    @abstractmethod
    def bound(self, path: _core.Path, level: float) -> BestCut:
        """Return the best bound on the log-odds of a right guess, wrong with probability `level`.

        Parameters
        ----------
        path : Path
            Guesses in visiting order.
        level : float
            Probability of error, in (0, 1).

        Returns
        -------
        BestCut
            The bound, with the cut that gave it.
        """

    @abstractmethod
    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """Return what the policy would report at each of some cuts, had it been the best one.

        Parameters
        ----------
        path : Path
            Guesses in visiting order.
        level : float
            Probability of error, in (0, 1).
        points : int
            The most cuts to return, picked without looking at which guesses are right.

        Returns
        -------
        tuple of ndarray
            Guesses, right guesses and bounds on the log-odds.
        """

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """Return the paths that are tried, the longest last.

        Parameters
        ----------
        sides : {"both", "member"}
            Whether non-members are guessed too.

        Returns
        -------
        tuple of str
            Names of paths of a ranking.
        """
        return ORDERS[sides]

    def path(self, ranking: _core.Ranking, order: PathOrder) -> _core.Path:
        """Return a path as the policy visits it.

        Parameters
        ----------
        ranking : Ranking
            The ranked examples.
        order : str
            Name of the path.

        Returns
        -------
        Path
            Guesses in visiting order.
        """
        return ranking.path(order)

    def along(self, order: PathOrder) -> "PathPolicy":  # noqa: ARG002 (most treat all paths alike)
        """Return the policy for one path.

        Parameters
        ----------
        order : str
            Name of the path.

        Returns
        -------
        PathPolicy
            The policy that bounds it.
        """
        return self

    def perfect(
        self, order: PathOrder, examples: int, level: float, most: int | None = None
    ) -> float:
        """Return what a perfect attack proves on as many members as non-members.

        Parameters
        ----------
        order : str
            Name of the path.
        examples : int
            m.
        level : float
            Probability of error, in (0, 1).
        most : int, optional
            The most guesses of a cut that is tested; any if None.

        Returns
        -------
        float
            The bound on the log-odds of a right guess; not clipped.
        """
        half = examples // 2
        right = examples if order == "interleaved" else half
        successes = np.zeros(half if order.endswith("half") else examples, dtype=np.bool_)
        successes[:right] = True
        path = _core.Path.from_successes(successes)
        return self.bound(path if most is None else path.prefix(most), level).logit

    def level(self, beta: float, paths: int) -> float:
        """Return the probability of error of each path.

        Parameters
        ----------
        beta : float
            Probability of error of the audit.
        paths : int
            Number of paths tried.

        Returns
        -------
        float
            Their equal share.
        """
        return beta / paths

    def chosen(self, path: _core.Path, best: BestCut) -> tuple[int, int]:  # noqa: ARG002
        """Return the cut that the bound speaks of.

        Parameters
        ----------
        path : Path
            Guesses in visiting order.
        best : BestCut
            What `bound` returned.

        Returns
        -------
        tuple of int
            Guesses made and guesses right; zeros where no cut stands out.
        """
        return best.cut, best.successes

    def check(self, examples: int) -> None:  # noqa: B027 (most policies suit any number)
        """Check that the policy suits a number of examples.

        Parameters
        ----------
        examples : int
            m.

        Raises
        ------
        OptionError
            If it asks for more guesses than there are examples.
        """

    @property
    def strength(self) -> str:
        """What the bounds are on, by name: the larger, the less private."""
        return "epsilon"

    @property
    def horizon(self) -> int:
        """The most examples with which more of them may be worth asking for."""
        return 100_000

    @property
    def fixed_guesses(self) -> int | None:
        """The number of guesses, if it is fixed in advance."""
        return None

    def with_guesses(self, guesses: int, examples: int) -> "PathPolicy":  # noqa: ARG002
        """Return the policy for another number of examples.

        Parameters
        ----------
        guesses : int
            Number of guesses of a policy that fixes it.
        examples : int
            m.

        Returns
        -------
        PathPolicy
            The same policy there.
        """
        return self

    def settled(self, level: float) -> "PathPolicy":  # noqa: ARG002 (most depend on nothing)
        """Return the policy with the values that stand for None filled in.

        Parameters
        ----------
        level : float
            Probability of error of each path.

        Returns
        -------
        PathPolicy
            The same policy in full.
        """
        return self
