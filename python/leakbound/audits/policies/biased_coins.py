"""Coins that are not fair: every guess has a chance of its own at ε = 0.

If example i is a member with probability πᵢ, a correct guess of "member" has odds of at most
e^ε πᵢ/(1 - πᵢ) and one of "non-member" of at most e^ε (1 - πᵢ)/πᵢ, given the trained model and all
other coins. So guess i is right with probability at most σ(ε + tᵢ logit πᵢ), tᵢ = ±1 its sign.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base.messages import Message, Option
from leakbound._base.numerics import expit, logit
from leakbound._base.types import BoolArray, FloatArray, JsonObject, JsonValue, PathOrder, Sides
from leakbound.cuts import ORDERS, CutPolicy, Fixed, Game, KLScan, ScoreGame
from leakbound.cuts.policy import Best, DerivedPolicy
from leakbound.errors import OptionError

# The largest log-odds of a prior, either way, that the scan takes.
_LARGEST_PRIOR_LOG_ODDS = 300.0
_FIXED = (
    "One threshold, fixed in advance: the largest ε at which a Poisson-binomial sum rarely is "
    "this large."
)
_SCAN = f"{KLScan.method} The guesses have different probabilities."
# One path, and the log-odds of each of its guesses at ε = 0.
_BiasedPath: TypeAlias = tuple[_core.Path, FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class PriorPolicy(DerivedPolicy[KLScan | Fixed]):
    """A policy with bounds that hold where guesses have unlike chances, those of the examples.

    `member` and `log_odds`, logit πᵢ, are those of the examples, for the attack that knows them.
    """

    ties = "broken"
    visits: Mapping[PathOrder, _BiasedPath]
    member: BoolArray
    log_odds: FloatArray
    sides: Sides

    @property
    def method(self) -> str:
        """How the bound is valid, in a sentence of the result."""
        if isinstance(self.base, Fixed):
            return _FIXED
        return _SCAN

    @property
    def _cuts(self) -> KLScan | Fixed:
        """The cuts that are tested: a scan looks at every one."""
        if isinstance(self.base, Fixed):
            return self.base
        return replace(self.base, grid="all")

    def described(self, level: float, /) -> JsonValue:
        """See `PathPolicy.described`."""
        return self._cuts.described(level)

    def searched(
        self, examples: int, sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        """See `Policy.searched`."""
        return self._cuts.searched(examples, sides, units=units, recall=recall)

    def paths(
        self, _ranking: _core.Ranking, orders: tuple[PathOrder, ...]
    ) -> dict[PathOrder, _core.Path]:
        """See `PathPolicy.paths`: roles part at the expected number of members."""
        return {order: self.visits[order][0] for order in orders}

    def bound(self, path: _core.Path, order: PathOrder, level: float, /) -> Best:
        """See `PathPolicy.bound`."""
        return self._bound_on_epsilon(path, offsets=self.visits[order][1], level=level)

    def _bound_on_epsilon(self, path: _core.Path, offsets: FloatArray, level: float) -> Best:
        """Return a bound on ε in the place of one on log-odds."""
        cuts = self.base
        if isinstance(cuts, Fixed):
            guesses, correct = cuts.cut(path)
            epsilon = _core.poisson_binomial_epsilon(
                offsets[:guesses], np.array([correct]), beta=level, counts=None
            )
            return Best(float(epsilon[0]), guesses, correct)
        best = _core.kl_scan_offsets(
            path, offsets, beta=level, kappa=cuts.kappa, min_guesses=cuts.min_guesses or 1
        )
        return Best(best.epsilon, best.cut, best.successes)

    def perfect(self, _examples: int, _order: PathOrder, level: float, _recall: float, /) -> float:
        """See `PathPolicy.perfect`: all members first, the least likely of them at the top."""
        scores = (
            np.where(self.member, 3 * _LARGEST_PRIOR_LOG_ODDS, -3 * _LARGEST_PRIOR_LOG_ODDS)
            - self.log_odds
        )
        orders = self.orders(self.sides)
        visits = _biased_paths(
            scores, member=self.member, log_odds=self.log_odds, orders=orders, sides=self.sides
        )
        return max(self._bound_on_epsilon(*visit, level).logit for visit in visits.values())


def prior_policy(cuts: CutPolicy | None, game: ScoreGame, prior: FloatArray) -> PriorPolicy:
    """Return the policy of an audit of pure DP with coins that are not fair.

    Without `cuts` it is `KLScan()`. Raise OptionError if there is no such form.
    """
    base = cuts
    if cuts is None:
        base = KLScan()
    if not isinstance(base, Fixed | KLScan):
        message = (
            "{cuts} needs guesses of equal probability: with a prior other than 1/2 use {KLScan} "
            "or {Fixed}"
        )
        raise OptionError(Message(message, cuts=Option("cuts", type(base))))
    base.check(game.examples)
    scores = game.ranks(game.scores)
    member = game.member
    sides = game.sides
    log_odds = np.clip(logit(prior), -_LARGEST_PRIOR_LOG_ODDS, _LARGEST_PRIOR_LOG_ODDS)
    visits = _biased_paths(
        scores, member=member, log_odds=log_odds, orders=ORDERS[sides], sides=sides
    )
    return PriorPolicy(base=base, visits=visits, member=member, log_odds=log_odds, sides=sides)


def _biased_paths(
    scores: FloatArray,
    member: BoolArray,
    log_odds: FloatArray,
    orders: tuple[PathOrder, ...],
    *,
    sides: Sides,
) -> dict[PathOrder, _BiasedPath]:
    """Return the paths through a ranking, roles parted at the expected number of members."""
    highest_first = np.argsort(-scores, kind="stable")
    expected_members = round(float(expit(log_odds).sum()))
    member_guesses = scores.size
    if sides != "member":
        member_guesses = min(max(1, expected_members), scores.size - 1)
    guessed_members = highest_first[:member_guesses]
    guessed_non_members = highest_first[member_guesses:][::-1]
    # Top and bottom take turns, as long as there are both.
    member_turns = 2 * np.arange(guessed_members.size)
    non_member_turns = 2 * np.arange(guessed_non_members.size) + 1
    turns = np.concatenate([member_turns, non_member_turns])
    both_roles = np.concatenate([guessed_members, guessed_non_members])
    rows_of_orders = {
        "member": guessed_members,
        "member_half": guessed_members,
        "nonmember_half": guessed_non_members,
        "interleaved": both_roles[np.argsort(turns, kind="stable")],
    }
    is_guessed_member = np.zeros(scores.size, dtype=np.bool_)
    is_guessed_member[guessed_members] = True
    offsets = np.where(is_guessed_member, log_odds, -log_odds)
    is_correct = is_guessed_member == member
    visits = {}
    for order in orders:
        rows = rows_of_orders[order]
        path = _core.Path.from_successes(is_correct[rows])
        visits[order] = (path, offsets[rows])
    return visits


def prior_in_options(prior: FloatArray) -> JsonValue:
    """Return prior probabilities as options show them: the one value, or the range and the mean."""
    least = float(np.min(prior))
    most = float(np.max(prior))
    if least == most:
        return least
    return {"least": least, "most": most, "mean": float(np.mean(prior))}


def odds_in_options(prior: FloatArray | None, game: Game) -> JsonObject:
    """Return how often guesses are right by chance, as options show it; empty for fair coins.

    `prior` has the probabilities of the coins; of a guess among `k` candidates, options also have
    the number of guesses.
    """
    odds: JsonObject = {}
    if prior is not None:
        odds["prior"] = prior_in_options(prior)
    if game.k > 2:
        odds |= {"k": game.k, "secrets": game.examples}
    return odds
