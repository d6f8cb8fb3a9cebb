"""Coins that are not fair: every guess has a chance of its own at ε = 0.

If example i is a member with probability πᵢ, a right guess of "member" has odds of at most
e^ε πᵢ/(1 - πᵢ) and one of "non-member" of at most e^ε (1 - πᵢ)/πᵢ, given the trained model and all
other coins. So guess i is right with probability at most σ(ε + tᵢ logit πᵢ), tᵢ = ±1 its sign.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

import leakbound._core as _core
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, JsonValue, PathOrder, Sides
from leakbound._base.validation import check_length, numbers, real, vector
from leakbound.cuts import ORDERS, BestCut, CurvePoints, CutPolicy, Fixed, KLScan, PathPolicy
from leakbound.cuts.base import Best
from leakbound.errors import IncompatibleOptionsError, OptionError

__all__ = ["PriorPolicy", "check_prior", "describe", "prior_policy"]

_HALF = 0.5
_FARTHEST = 300.0
"""The largest log-odds of a prior, either way, that the scan takes."""


def check_prior(prior: float | ArrayInput, examples: int) -> FloatArray | None:
    """Read prior probabilities of membership.

    Parameters
    ----------
    prior : float or array-like, shape (m,)
        One for all, or one for each example, strictly between 0 and 1.
    examples : int
        m.

    Returns
    -------
    ndarray of float64, shape (m,), or None
        One for each example; None if all coins are fair.

    Raises
    ------
    OptionError, OptionTypeError, ArrayTypeError, ShapeError, LengthMismatchError
        If they are not such numbers, or not as many as examples.
    """
    if isinstance(prior, float | int | np.floating | np.integer):
        chance = real(prior, "prior", above=0, below=1)
        return None if chance == _HALF else np.full(examples, chance)
    given = vector(prior, "prior")
    check_length(given, examples, "prior")
    values = numbers(given, "prior", least=0, most=1).astype(np.float64)
    certain = np.flatnonzero((values <= 0) | (values >= 1))
    if certain.size:
        message = (
            f"prior must be strictly between 0 and 1, got {values[certain[0]]:g} at row "
            f"{certain[0]}: drop examples whose membership was certain"
        )
        raise OptionError(message)
    return None if (values == _HALF).all() else values


def describe(prior: FloatArray | None) -> JsonValue:
    """Return prior probabilities as options show them.

    Parameters
    ----------
    prior : ndarray of float64, shape (m,), or None
        As `check_prior` returned it.

    Returns
    -------
    float or dict
        The one value, or the range and the mean.
    """
    if prior is None:
        return _HALF
    low, high = float(prior.min()), float(prior.max())
    return low if low == high else {"least": low, "most": high, "mean": float(prior.mean())}


@dataclass(frozen=True, eq=False)
class _Visit:
    """One path, and the log-odds of each of its guesses at ε = 0."""

    path: _core.Path
    offsets: FloatArray


@dataclass(frozen=True, eq=False)
class PriorPolicy(PathPolicy):
    """A policy with bounds that hold where guesses have unlike chances.

    Parameters
    ----------
    base : KLScan or Fixed
        The policy.
    visits : mapping
        The paths that it visits.
    member : ndarray of bool, shape (m,)
        Membership, for the attack that knows it.
    log_odds : ndarray of float64, shape (m,)
        logit πᵢ.
    sides : {"both", "member"}
        Whether non-members are guessed too.
    order : str, optional
        Name of the path that is bounded.
    """

    base: KLScan | Fixed
    visits: Mapping[PathOrder, _Visit]
    member: BoolArray
    log_odds: FloatArray
    sides: Sides
    order: PathOrder = "member"

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        if isinstance(self.base, Fixed):
            return (
                "One cut, fixed in advance: the largest ε at which a sum of unlike Bernoulli "
                "variables is rarely so large (Poisson binomial)."
            )
        return f"{self.base.method} Steps of the walk have unlike probabilities."

    @property
    def fixed_guesses(self) -> int | None:
        """See `PathPolicy.fixed_guesses`."""
        return self.base.fixed_guesses

    @property
    def horizon(self) -> int:
        """See `PathPolicy.horizon`: examples like these are repeated so often at most."""
        return 10 * self.member.size

    def orders(self, sides: Sides) -> tuple[PathOrder, ...]:
        """See `PathPolicy.orders`."""
        return self.base.orders(sides)

    def check(self, examples: int) -> None:
        """See `PathPolicy.check`."""
        self.base.check(examples)

    def settled(self, level: float) -> PathPolicy:
        """See `PathPolicy.settled`."""
        settled = self.base.settled(level)
        return replace(settled, grid="all") if isinstance(settled, KLScan) else settled

    def chosen(self, path: _core.Path, best: BestCut) -> tuple[int, int]:
        """See `PathPolicy.chosen`."""
        return self.base.chosen(path, best)

    def path(self, ranking: _core.Ranking, order: PathOrder) -> _core.Path:  # noqa: ARG002
        """See `PathPolicy.path`: roles part at the expected number of members."""
        return self.visits[order].path

    def along(self, order: PathOrder) -> "PriorPolicy":
        """See `PathPolicy.along`."""
        return replace(self, order=order)

    def bound(self, path: _core.Path, level: float) -> BestCut:
        """See `PathPolicy.bound`."""
        return _bound(self.base, _Visit(path, self.visits[self.order].offsets), level)

    def curve(self, path: _core.Path, level: float, points: int) -> CurvePoints:  # noqa: ARG002
        """See `PathPolicy.curve`: only the chosen cut has a bound of its own."""
        guesses, correct = path.sample(points)
        return guesses, correct, np.full(guesses.size, np.nan)

    def perfect(
        self,
        order: PathOrder,  # noqa: ARG002
        examples: int,  # noqa: ARG002
        level: float,
        most: int | None = None,  # noqa: ARG002
    ) -> float:
        """See `PathPolicy.perfect`: all members first, the least likely of them at the top."""
        sign = np.where(self.member, 1.0, -1.0)
        scores = 3 * _FARTHEST * sign - self.log_odds
        orders = self.base.orders(self.sides)
        visits = _visits(scores, self.member, self.log_odds, orders, sides=self.sides)
        return max(_bound(self.base, visit, level).logit for visit in visits.values())

    def with_guesses(self, guesses: int, examples: int) -> "PriorPolicy":
        """See `PathPolicy.with_guesses`: examples like these, as often as it takes."""
        return replace(
            self,
            base=Fixed(guesses) if isinstance(self.base, Fixed) else self.base,
            member=np.resize(self.member, examples),
            log_odds=np.resize(self.log_odds, examples),
        )


def prior_policy(
    cuts: CutPolicy | None,
    scores: FloatArray,
    member: BoolArray,
    prior: FloatArray,
    *,
    sides: Sides,
) -> PriorPolicy:
    """Return the policy of an audit of pure DP with coins that are not fair.

    Parameters
    ----------
    cuts : CutPolicy or None
        What was asked for; `KLScan()` if None.
    scores : ndarray of float64, shape (m,)
        Distinct scores.
    member : ndarray of bool, shape (m,)
        Membership.
    prior : ndarray of float64, shape (m,)
        πᵢ.
    sides : {"both", "member"}
        Whether non-members are guessed too.

    Returns
    -------
    PriorPolicy
        The policy.

    Raises
    ------
    IncompatibleOptionsError
        If the policy has no form for unlike guesses.
    """
    base = KLScan() if cuts is None else cuts
    if not isinstance(base, KLScan | Fixed):
        message = (
            f"cuts={type(base).__name__} needs guesses that are all alike: with a prior other than "
            "1/2 take KLScan or Fixed"
        )
        raise IncompatibleOptionsError(message)
    base.check(scores.size)
    log_odds = np.log(prior) - np.log1p(-prior)
    log_odds = np.clip(log_odds, -_FARTHEST, _FARTHEST)
    visits = _visits(scores, member, log_odds, ORDERS[sides], sides=sides)
    return PriorPolicy(base, visits, member, log_odds, sides)


def _visits(
    scores: FloatArray,
    member: BoolArray,
    log_odds: FloatArray,
    orders: tuple[PathOrder, ...],
    *,
    sides: Sides,
) -> dict[PathOrder, _Visit]:
    """Return the paths through a ranking, roles parted at the expected number of members."""
    down = np.argsort(-scores, kind="stable")
    expected = round(float(np.sum(1 / (1 + np.exp(-log_odds)))))
    upper = min(max(1, expected), scores.size - 1) if sides == "both" else scores.size
    top, bottom = down[:upper], down[upper:][::-1]
    turn = np.argsort(
        np.concatenate([2 * np.arange(top.size), 2 * np.arange(bottom.size) + 1]), kind="stable"
    )
    rows = {
        "member": top,
        "member_half": top,
        "nonmember_half": bottom,
        "interleaved": np.concatenate([top, bottom])[turn],
    }
    guessed = np.zeros(scores.size, dtype=np.bool_)
    guessed[top] = True
    offsets = np.where(guessed, log_odds, -log_odds)
    right = guessed == member
    return {
        order: _Visit(_core.Path.from_successes(right[rows[order]]), offsets[rows[order]])
        for order in orders
    }


def _bound(base: KLScan | Fixed, visit: _Visit, level: float) -> Best:
    """Return a bound on ε in the place of one on log-odds."""
    if isinstance(base, Fixed):
        guesses, right = base.cut(visit.path)
        epsilon = _core.poisson_binomial_epsilon(
            visit.offsets[:guesses], np.array([right]), beta=level, counts=None
        )
        return Best(float(epsilon[0]), guesses, right)
    settled = base.settled(level)
    best = _core.kl_scan_offsets(
        visit.path,
        visit.offsets,
        beta=level,
        kappa=settled.kappa,
        min_guesses=settled.min_guesses or 1,
    )
    return Best(best.epsilon, best.cut, best.successes)
