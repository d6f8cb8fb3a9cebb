"""Rows of users, of subgroups and of several runs: rows of a user and of a canary depend."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits import Coins, RandomSplit, audit
from leakbound.audits.pairs import Aggregate
from leakbound.claims import Claim, GaussianDP, PureDP
from leakbound.cuts import CutPolicy, Fixed
from leakbound.errors import DesignError
from validity.defaults import ERROR
from validity.lengths import FUTILE, MODERATE
from validity.streams import stream
from validity.suite import Case

__all__ = ["user_cases"]

_EPSILON, _MU = 1.0, 1.0
_RUNS = 3
Mechanism: TypeAlias = Literal["response", "gaussian"]
Runs: TypeAlias = Literal["own coins", "same coins", "same coins as one run", "the best of five"]
_CLAIMS: dict[Mechanism, Claim] = {"response": PureDP(), "gaussian": GaussianDP()}


def _reports(
    rng: np.random.Generator, member: BoolArray, mechanism: Mechanism, part: float = 1.0
) -> FloatArray:
    """Return a report about each unit, as leaky as a part of ε = 1 or μ = 1 allows."""
    if mechanism == "gaussian":
        return rng.normal(size=member.size) + part * _MU * member
    right = rng.random(member.size) < 1 / (1 + math.exp(-part * _EPSILON))
    return np.where(right == member, 1.0, -1.0) * (1 + rng.random(member.size))


def _rows(
    rng: np.random.Generator, reports: FloatArray, *, aggregate: Aggregate
) -> tuple[FloatArray, IntArray]:
    """Return scores of rows, one to five of each user, and their users: rows depend."""
    user = np.repeat(np.arange(reports.size), rng.integers(1, 6, reports.size))
    size = np.bincount(user)
    if aggregate == "sum":
        return reports[user] / size[user], user
    noise = rng.normal(size=user.size)
    centred = noise - (np.bincount(user, noise) / size)[user]
    return reports[user] + (aggregate == "mean") * centred, user


@dataclass(frozen=True, kw_only=True)
class UserTrial:
    """Whether an audit of users claims more than the truth.

    If not `grouped`, rows are audited as if a coin had decided on each. A number of rows that no
    coins give is refused, and claims nothing.
    """

    aggregate: Aggregate
    mechanism: Mechanism = "response"
    split: bool = False
    grouped: bool = True
    users: int = 120
    guesses: int = 50
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = stream("users", 2 * seed)
        coins = rng.random(self.users) < 0.5
        if self.split:
            coins = rng.permutation(self.users) < self.users // 2
        scores, user = _rows(rng, _reports(rng, coins, self.mechanism), aggregate=self.aggregate)
        options: dict[str, Any] = {}
        if self.grouped:
            options = {"groups": user, "aggregate": self.aggregate}
        design: Any = (RandomSplit if self.split else Coins)(coins[user], **options)
        try:
            result = audit(
                scores,
                design,
                claim=_CLAIMS[self.mechanism],
                cuts=Fixed(self.guesses),
                confidence=1 - self.error,
                seed=2 * seed + 1,
            )
        except DesignError:
            if self.grouped:
                raise
            return False
        return bool(result.bound > _EPSILON * (1 + self.split))


@dataclass(frozen=True, kw_only=True)
class SubgroupTrial:
    """Whether an audit claims more than the truth of any of three subgroups, in rows of users.

    If not `together`, each is audited at the whole error probability.
    """

    together: bool = True
    cuts: CutPolicy | None = None
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = stream("subgroups", 2 * seed)
        coins = rng.random(360) < 0.5
        scores, user = _rows(rng, _reports(rng, coins, "response"), aggregate="mean")
        label = user % 3
        options: dict[str, Any] = {"cuts": self.cuts, "seed": 2 * seed + 1}
        options["confidence"] = 1 - self.error
        if self.together:
            design = Coins(coins[user], groups=user)
            found = [*audit(scores, design, by=label, **options).values()]
        else:
            found = []
            for one in range(3):
                rows = label == one
                design = Coins(coins[user[rows]], groups=user[rows])
                found.append(audit(scores[rows], design, **options))
        return any(result.bound > _EPSILON for result in found)


@dataclass(frozen=True, kw_only=True)
class RunsTrial:
    """Whether one audit of several runs claims more than one run leaks, or than all together."""

    runs: Runs
    mechanism: Mechanism = "response"
    canaries: int = 180
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = stream("runs", 2 * seed)
        options: dict[str, Any] = {"confidence": 1 - self.error, "seed": 2 * seed + 1}
        options["claim"] = _CLAIMS[self.mechanism]
        if self.runs == "the best of five":
            return any(self._of_one(rng, options) for _ in range(5))
        canary = np.tile(np.arange(self.canaries), _RUNS)
        if self.runs == "own coins":
            member = rng.random(canary.size) < 0.5
            # A canary that stands out does so in each run: its reports depend on each other.
            size = 1 + rng.random(self.canaries)[canary]
            scores = size * np.sign(_reports(rng, member, self.mechanism))
            if self.mechanism == "gaussian":
                scores = _reports(rng, member, self.mechanism)
            cuts = Fixed(126)
            return bool(audit(scores, Coins(member), cuts=cuts, **options).bound > _EPSILON)
        # Together as leaky as ε = 1 or μ = 1: ε of runs add up, and so do squares of μ.
        part = 1 / _RUNS
        if self.mechanism == "gaussian":
            part = math.sqrt(part)
        member = (rng.random(self.canaries) < 0.5)[canary]
        scores = _reports(rng, member, self.mechanism, part)
        design = Coins(member, groups=canary)
        bound = audit(scores, design, cuts=Fixed(28), **options).bound
        if self.runs == "same coins":
            return bool(bound > _EPSILON)
        return bool(bound > part * _EPSILON)

    def _of_one(self, rng: np.random.Generator, options: dict[str, Any]) -> bool:
        """Audit one run by itself."""
        member = rng.random(self.canaries) < 0.5
        scores = _reports(rng, member, self.mechanism)
        return bool(audit(scores, Coins(member), cuts=Fixed(50), **options).bound > _EPSILON)


def user_cases() -> Iterator[Case]:
    """Yield the rows of users, of subgroups and of several runs, and of what they must not be."""
    row = partial(Case, sides="auto", error=ERROR, quick=1_000, long=MODERATE)
    users = partial(row, audit="users", cuts="fixed")
    for aggregate in ("mean", "max", "sum", "log_mean_exp"):
        trial = UserTrial(aggregate=aggregate)
        quick = 1_000 if aggregate in {"mean", "sum"} else 0
        yield users(claim="pure DP", truth=f"response-{aggregate}", trial=trial, quick=quick)
    yield users(
        claim="Gaussian DP",
        truth="gaussian-mean",
        trial=UserTrial(aggregate="mean", mechanism="gaussian"),
        quick=0,
    )
    split = UserTrial(aggregate="sum", split=True, users=300, guesses=45)
    yield users(claim="pure DP", truth="split-sum", trial=split)
    subgroups = partial(row, audit="subgroups", claim="pure DP", truth="any-of-3")
    yield subgroups(cuts="fixed", trial=SubgroupTrial(cuts=Fixed(44)))
    yield subgroups(cuts="planned", trial=SubgroupTrial(), quick=0)
    runs = partial(row, audit="runs", cuts="fixed")
    yield runs(claim="pure DP", truth="own-coins", trial=RunsTrial(runs="own coins"))
    for mechanism, claim in _CLAIMS.items():
        same = RunsTrial(runs="same coins", mechanism=mechanism)
        quick = 1_000 if mechanism == "response" else 0
        yield runs(claim=claim.name, truth="same-coins-together", trial=same, quick=quick)
    gaussian = RunsTrial(runs="own coins", mechanism="gaussian")
    yield runs(claim="Gaussian DP", truth="own-coins", trial=gaussian, quick=0)
    wrong = partial(row, claim="pure DP", cuts="fixed", quick=400, long=FUTILE, valid=False)
    alone = UserTrial(aggregate="max", grouped=False, guesses=150)
    yield wrong(audit="users-trap", truth="rows-as-examples", trial=alone)
    yield wrong(
        audit="subgroups-trap",
        truth="each-at-the-whole-level",
        trial=SubgroupTrial(together=False, cuts=Fixed(44)),
        quick=800,
    )
    together = RunsTrial(runs="same coins as one run")
    yield wrong(audit="runs-trap", truth="same-coins-as-one-run", trial=together)
    best = RunsTrial(runs="the best of five")
    yield wrong(audit="runs-trap", truth="the-best-of-five", trial=best)
