"""Rows of attackers that know the nuisance: who is likely a member, whatever the model says."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import FloatArray
from leakbound.claims import PureDP
from leakbound.cuts import Fixed
from validity.lengths import DEAR
from validity.shifted import Leak, ShiftedGame
from validity.streams import stream
from validity.suite import Case
from validity.zero_run import FORMS, leak_of, zero_run_case

__all__ = ["Informed", "attacker_cases"]

Knowledge: TypeAlias = Literal["odds", "noisy-odds", "minus-odds", "curved", "posterior"]
"""What scores are made of.

The log-odds λ of membership; λ and noise; -λ; a function of the features that is not linear in
them; or the posterior log-odds of membership, given the features and what the mechanism reports,
which no attacker can beat.
"""
Odds: TypeAlias = Literal["normal", "two", "one"]
"""How λ is spread: normal, one of two values, or 0 but for one example."""


@dataclass(frozen=True, kw_only=True)
class Informed:
    """Members and non-members that differ, a mechanism at its boundary, and a knowing attacker."""

    m: int
    knows: Knowledge
    kind: Leak
    spread: float = 1.0
    odds: Odds = "normal"
    failure: float = 0.0
    d: int = 3

    def __call__(self, *, seed: int) -> ShiftedGame:
        """Play the game of a seed."""
        rng = stream("knowing-attacker", seed)
        features = rng.normal(size=(self.m, self.d))
        odds = self._odds(features)
        member = rng.random(self.m) < expit(odds)
        told, truth = self._told(rng, member)
        scores = {
            "odds": odds + told,
            "noisy-odds": odds + rng.normal(size=self.m) + told,
            "minus-odds": -odds + told,
            "curved": np.tanh(odds) ** 3 + np.abs(features).sum(axis=1) / self.d + told,
            "posterior": odds + told,
        }[self.knows]
        none = features[:0]
        return ShiftedGame(scores, member, expit(odds), truth, features, none, none[:, 0] > 0)

    def _odds(self, features: FloatArray) -> FloatArray:
        along = features.sum(axis=1) / math.sqrt(self.d)
        if self.odds == "two":
            return np.asarray(self.spread * np.sign(along))
        if self.odds == "one":
            return np.where(np.arange(self.m) == 0, self.spread, 0.0)
        return np.asarray(self.spread * along)

    def _told(self, rng: np.random.Generator, member: np.ndarray) -> tuple[FloatArray, float]:
        """Return the log-likelihood ratios of what the mechanism says, and its ε or μ."""
        if self.kind == "nothing":
            return np.zeros(self.m), 0.0
        if self.kind == "gaussian":
            return member + rng.normal(size=self.m) - 0.5, 1.0
        right = rng.random(self.m) * (1 + math.exp(-1.0)) < 1
        right |= rng.random(self.m) < self.failure
        return np.where(member == right, 1.0, -1.0), 1.0


_M = 150


def attacker_cases() -> Iterator[Case]:
    """Yield the rows of attackers that know the propensities, which the audit knows too."""
    for name, claim, options in FORMS:
        form = name, claim, options
        raw = name, claim, options | {"adversary": "raw"}
        knowing = partial(Informed, m=_M, kind="nothing", spread=2.0)
        best = partial(Informed, m=_M, knows="posterior", kind=leak_of(claim), failure=claim.delta)
        for sides in ("both", "member"):
            row = partial(zero_run_case, sides=sides, long=DEAR)
            for knows in ("odds", "noisy-odds", "minus-odds", "curved"):
                yield row(form, knowing(knows=knows), f"knows-{knows}")
            yield row(raw, best(), "knows-posterior")
            yield row(raw, best(spread=3.0), "knows-steep-posterior")
            for size in (5.0, 10.0):
                yield row(raw, best(odds="two", spread=size), f"λ=±{size:g}")
            yield row(raw, best(odds="one", spread=30.0), "one-λ=30")
        if not claim.delta:
            for d in (1, 10, 100):
                game = Informed(m=_M, knows="noisy-odds", kind="nothing", d=d)
                yield zero_run_case(form, game, f"d={d}", long=DEAR)
    fixed = "poisson_binomial", PureDP(), {"cuts": Fixed(25), "adversary": "raw"}
    certain = Informed(m=_M, knows="posterior", kind="response", odds="two", spread=10.0)
    yield zero_run_case(fixed, certain, "λ=±10,fixed", long=DEAR)
