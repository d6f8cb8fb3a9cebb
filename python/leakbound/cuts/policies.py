"""The cut policies: scans, fixed numbers of guesses, mixtures, splits and weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.types import FloatArray, IntArray, Kind, PathOrder, Sides, Tail
from leakbound._base.validation import choice, integer, real, shown
from leakbound.cuts.base import ORDERS, BestCut, CurvePoints, PathPolicy
from leakbound.cuts.score_adaptive import ScoreAdaptive
from leakbound.errors import OptionError, OptionTypeError

__all__ = [
    "CUT_POLICIES",
    "CutPolicy",
    "EqualLevelScan",
    "Fixed",
    "KLScan",
    "Split",
    "Uncorrected",
    "UnionBound",
    "VilleMixture",
    "Weighted",
]

ScanGrid: TypeAlias = Literal["auto", "all"]
_FARTHEST = 1e12
"""A deviation that no number of guesses reaches."""
UnionGrid: TypeAlias = Literal["all", "geometric"]


@dataclass(frozen=True, kw_only=True)
class KLScan(PathPolicy):
    """All cuts at once, by the largest Kullback-Leibler deviation: the default.

    Parameters
    ----------
    kappa : float, optional
        Deviation r·KL(W/r ‖ q) that a cut must reach, in nats, below 1e12; ln(1/β) + 1 if None.
        Smaller values favour few guesses, larger ones broad and weak signals. Choose it before
        looking.
    min_guesses : int, optional
        Smallest number of guesses tested; 1 if None.
    grid : {"auto", "all"}
        Cuts tested: all, or (auto) all up to 20,000 guesses and beyond that a fixed geometric grid
        of ratio 1.005.

    Raises
    ------
    OptionError, OptionTypeError
        If an option is outside its range.

    Notes
    -----
    The statistic is the largest q that some cut rejects at deviation κ. Its law under independent
    guesses, right with probability p, is computed exactly by a boundary-crossing recursion and
    inverted (Buehler 1957), so all cuts cost less than a union bound over a dozen.

    Examples
    --------
    >>> KLScan(kappa=4.5)
    KLScan(kappa=4.5, min_guesses=None, grid='auto')
    """

    kappa: float | None = None
    min_guesses: int | None = None
    grid: ScanGrid = "auto"

    def __post_init__(self) -> None:
        if self.kappa is not None:
            object.__setattr__(self, "kappa", real(self.kappa, "kappa", above=0, below=_FARTHEST))
        if self.min_guesses is not None:
            least = integer(self.min_guesses, "min_guesses", least=1)
            object.__setattr__(self, "min_guesses", least)
        choice(self.grid, "grid", ScanGrid)

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "All cuts are tested at once: the exact law of the largest Kullback-Leibler deviation "
            "over the path, from a boundary-crossing recursion, is inverted (Buehler 1957)."
        )

    def check(self, examples: int) -> None:
        """Raise OptionError if `min_guesses` exceeds the number of examples.

        Parameters
        ----------
        examples : int
            m.
        """
        _check_guesses(self.min_guesses or 1, examples, "KLScan(min_guesses=…)")

    def settled(self, level: float) -> "KLScan":
        """Return the policy with `kappa` and `min_guesses` filled in.

        Parameters
        ----------
        level : float
            Probability of error of each path.

        Returns
        -------
        KLScan
            The same policy in full.
        """
        kappa = math.log(1 / level) + 1 if self.kappa is None else self.kappa
        return replace(self, kappa=kappa, min_guesses=self.min_guesses or 1)

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        return _core.kl_scan(
            path,
            beta=level,
            kappa=self.settled(level).kappa,
            min_guesses=self.min_guesses or 1,
            grid=self.grid,
        )

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        return _core.kl_curve(
            path,
            beta=level,
            kappa=self.settled(level).kappa,
            min_guesses=self.min_guesses or 1,
            grid=self.grid,
            points=points,
        )


@dataclass(frozen=True, kw_only=True)
class EqualLevelScan(PathPolicy):
    """All cuts at once, by the best Clopper-Pearson limit at one fixed level.

    Parameters
    ----------
    alpha0 : float
        Level of each cut's own limit, in (0, 1). It shapes the statistic; validity comes from the
        exact law of the best limit, as for `KLScan`.
    grid : {"auto", "all"}
        Cuts tested, as for `KLScan`.

    Raises
    ------
    OptionError, OptionTypeError
        If an option is outside its range.

    Examples
    --------
    >>> EqualLevelScan()
    EqualLevelScan(alpha0=0.001, grid='auto')
    """

    alpha0: float = 1e-3
    grid: ScanGrid = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha0", real(self.alpha0, "alpha0", above=0, below=1))
        choice(self.grid, "grid", ScanGrid)

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "All cuts are tested at once: the exact law of the best Clopper-Pearson limit at level "
            f"{self.alpha0:g}, from a boundary-crossing recursion, is inverted (Buehler 1957)."
        )

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        return _core.equal_level_scan(
            path, beta=level, alpha0=self.alpha0, min_guesses=1, grid=self.grid
        )

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        return _core.equal_level_curve(
            path,
            beta=level,
            alpha0=self.alpha0,
            min_guesses=1,
            grid=self.grid,
            points=points,
        )


@dataclass(frozen=True, kw_only=True)
class UnionBound(PathPolicy):
    """Every cut of a grid at an equal share of the level: the papers' choice, for comparison.

    Parameters
    ----------
    grid : {"all", "geometric"} or sequence of int
        Numbers of guesses that are tested. "all" divides by the length of the path, always; a
        cut inside a block of tied scores moves to its end.
    ratio : float
        Ratio of the geometric grid, above 1.
    tail : {"exact", "hoeffding"}
        Clopper-Pearson limits, or those of Hoeffding's inequality (equation 1 of PANORAMIA, Kazmi
        et al. 2024).

    Raises
    ------
    OptionError, OptionTypeError
        If an option is outside its range.

    Examples
    --------
    >>> UnionBound(grid=[10, 100, 1000]).grid
    (10, 100, 1000)
    """

    grid: UnionGrid | Sequence[int] = "all"
    ratio: float = 1.5
    tail: Tail = "exact"

    def __post_init__(self) -> None:
        if isinstance(self.grid, str):
            choice(self.grid, "grid", UnionGrid)
        else:
            object.__setattr__(self, "grid", _cut_numbers(self.grid))
        object.__setattr__(self, "ratio", real(self.ratio, "ratio", above=1, below=math.inf))
        choice(self.tail, "tail", Tail)

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        limit = "Clopper-Pearson" if self.tail == "exact" else "Hoeffding"
        grid = self.grid if isinstance(self.grid, str) else f"{len(self.grid)}-point"
        return (
            f"Union bound over the {grid} grid of cuts: {limit} limits, each at an equal share of "
            "the level."
        )

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        return _core.union_bound(
            path, beta=level, grid=self.on(path), ratio=self.ratio, tail=self.tail
        )

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        return _core.union_curve(
            path,
            beta=level,
            grid=self.on(path),
            ratio=self.ratio,
            tail=self.tail,
            points=points,
        )

    def on(self, path: _core.Path) -> UnionGrid | Sequence[int]:
        """Return the grid with cuts beyond a path's end moved to its end.

        Parameters
        ----------
        path : Path
            Guesses in visiting order.

        Returns
        -------
        str or list of int
            What the core takes.
        """
        if isinstance(self.grid, str):
            return self.grid
        return sorted({min(cut, path.guesses) for cut in self.grid})


@dataclass(frozen=True)
class Fixed(PathPolicy):
    """One number of guesses, chosen in advance: Clopper-Pearson.

    With `sides="both"` the top ⌈r/2⌉ examples are guessed members and the bottom ⌊r/2⌋ not. A cut
    inside a block of tied scores moves to its end, and the result says so.

    Parameters
    ----------
    guesses : int
        Number of guesses r, at least 1 and at most the number of examples.

    Raises
    ------
    OptionError, OptionTypeError
        If it is not a positive integer.

    Examples
    --------
    >>> Fixed(120)
    Fixed(guesses=120)
    """

    guesses: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "guesses", integer(self.guesses, "guesses", least=1))

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return "One cut, fixed in advance: the Clopper-Pearson limit (Clopper and Pearson 1934)."

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """Return the one path that is cut.

        Parameters
        ----------
        sides : {"both", "member"}
            Whether non-members are guessed too.

        Returns
        -------
        tuple of str
            Its name.
        """
        return ORDERS[sides][-1:]

    def check(self, examples: int) -> None:
        """Raise OptionError if there are fewer examples than guesses.

        Parameters
        ----------
        examples : int
            m.
        """
        _check_guesses(self.guesses, examples, "Fixed(guesses=…)")

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        cut, _ = self.cut(path)
        return _core.union_bound(path, beta=level, grid=[cut], ratio=1.5, tail="exact")

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:  # noqa: ARG002
        """See `PathPolicy.curve`: no cut but the fixed one is tested."""
        guesses, correct = path.sample(points)
        return guesses, correct, np.full(guesses.size, np.nan)

    def chosen(self, path: _core.Path, best: BestCut) -> tuple[int, int]:  # noqa: ARG002
        """See `PathPolicy.chosen`."""
        return self.cut(path)

    @property
    def fixed_guesses(self) -> int:
        """The number of guesses."""
        return self.guesses

    def with_guesses(self, guesses: int, examples: int) -> "Fixed":  # noqa: ARG002
        """See `PathPolicy.with_guesses`."""
        return Fixed(guesses)

    def limits(self, guesses: IntArray, correct: IntArray, level: float) -> FloatArray:
        """Return the Clopper-Pearson limit of each of some cuts.

        Parameters
        ----------
        guesses, correct : ndarray of int64, shape (k,)
            The cuts.
        level : float
            Probability of error of each.

        Returns
        -------
        ndarray of float64, shape (k,)
            Lower limits on the probability of a right guess.
        """
        counts = correct.astype(np.uint64), guesses.astype(np.uint64)
        return _core.clopper_pearson(*counts, beta=np.full(guesses.size, level))

    def cut(self, path: _core.Path) -> tuple[int, int]:
        """Return the cut on a path: the first allowed one with so many guesses.

        Parameters
        ----------
        path : Path
            Guesses in visiting order.

        Returns
        -------
        tuple of int
            Guesses made and guesses right.
        """
        return path.count(min(self.guesses, path.guesses))


@dataclass(frozen=True)
class VilleMixture(PathPolicy):
    """All cuts at once, by a likelihood ratio averaged over alternatives: valid at any time.

    The path may be looked at after every guess and left at any of them, which `OneRunStream` makes
    use of; where the path is whole, `KLScan` proves a little more as a rule.

    Notes
    -----
    The likelihood ratio of all probabilities above p to p itself, averaged over them evenly, is a
    supermartingale along the path if guesses are right with probability at most p. It ever reaches
    1/β with probability at most β (Ville 1939), so no cut has to be corrected for.

    Examples
    --------
    >>> VilleMixture()
    VilleMixture()
    """

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "All cuts are tested at once: the likelihood ratio averaged over all larger "
            "probabilities ever reaches 1/β with probability at most β (Ville 1939)."
        )

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        return _core.pointwise_bound(path, beta=level, statistic="ville")

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        return _core.pointwise_curve(path, beta=level, statistic="ville", points=points)


@dataclass(frozen=True)
class Uncorrected(PathPolicy):
    """The best Clopper-Pearson limit over all cuts at the full level: **not valid**.

    What several published tools do, kept for comparison. On pure noise it claims leakage in up to
    half of all runs. Its results are of kind "invalid" and can refute nothing.

    Examples
    --------
    >>> Uncorrected().kind
    'invalid'
    """

    kind: ClassVar[Kind] = "invalid"

    @property
    def method(self) -> str:
        """What the bound lacks, in a sentence of the result."""
        return (
            "INVALID: the best Clopper-Pearson limit over all cuts, the choice not corrected for."
        )

    def level(self, beta: float, paths: int) -> float:  # noqa: ARG002 (that is what is wrong)
        """Return the full level for each path.

        Parameters
        ----------
        beta : float
            Probability of error of the audit.
        paths : int
            Number of paths tried: ignored.

        Returns
        -------
        float
            `beta`.
        """
        return beta

    def bound(self, path: _core.Path, level: float) -> _core.Bound:
        """See `PathPolicy.bound`."""
        return _core.pointwise_bound(path, beta=level, statistic="clopper-pearson")

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:
        """See `PathPolicy.curve`."""
        return _core.pointwise_curve(path, beta=level, statistic="clopper-pearson", points=points)


@dataclass(frozen=True)
class Split:
    """One cut, chosen on some of the examples and tested on the others.

    Parameters
    ----------
    fraction : float
        Share of the examples, drawn at random from the audit's seed, that choose the path and the
        number of guesses, in (0, 1).

    Raises
    ------
    OptionError, OptionTypeError
        If it is not a number between 0 and 1.

    Examples
    --------
    >>> Split()
    Split(fraction=0.25)
    """

    fraction: float = 0.25
    kind: ClassVar[Kind] = "lower_bound"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", real(self.fraction, "fraction", above=0, below=1))

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "One cut, chosen on a random part of the examples and tested on the rest: the "
            "Clopper-Pearson limit (Clopper and Pearson 1934)."
        )


@dataclass(frozen=True)
class Weighted:
    """No cut at all: every example is guessed a member, with its score in [0, 1] as a weight.

    The weight of all members is compared with its largest law (Kazmi et al. 2024, Propositions 1
    and 2, as stated). For scores that are calibrated beforehand, such as probabilities; they are
    rounded to multiples of 1/64. Guesses are of "member" only.

    Examples
    --------
    >>> Weighted().kind
    'lower_bound'
    """

    kind: ClassVar[Kind] = "lower_bound"

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        return (
            "One test without cuts: the weight of the members is compared with that of independent "
            "guesses, a weighted Poisson-binomial tail."
        )


CutPolicy: TypeAlias = (
    KLScan
    | EqualLevelScan
    | UnionBound
    | Fixed
    | ScoreAdaptive
    | Split
    | VilleMixture
    | Weighted
    | Uncorrected
)
"""Any policy that an audit takes."""
CUT_POLICIES = (
    KLScan,
    EqualLevelScan,
    UnionBound,
    Fixed,
    ScoreAdaptive,
    Split,
    VilleMixture,
    Weighted,
    Uncorrected,
)


def _check_guesses(guesses: int, examples: int, what: str) -> None:
    if guesses > examples:
        message = (
            f"cuts={what.replace('…', str(guesses))} asks for more guesses than there are "
            f"examples ({examples})"
        )
        raise OptionError(message)


def _cut_numbers(grid: Any) -> tuple[int, ...]:
    listed = isinstance(grid, Sequence | np.ndarray) and getattr(grid, "shape", None) != ()
    if not listed or len(grid) == 0:
        message = (
            'grid must be "all", "geometric" or a sequence of numbers of guesses, got '
            f"{shown(grid)}"
        )
        raise OptionTypeError(message)
    return tuple(sorted({integer(cut, f"grid[{i}]", least=1) for i, cut in enumerate(grid)}))
