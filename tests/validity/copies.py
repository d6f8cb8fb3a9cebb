"""Rows of records that were inserted several times: at the boundary of a guarantee for one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.types import FloatArray
from leakbound.audits import Choices, Coins, audit
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP, grouped
from validity.lengths import COSTLY, DEAR, FUTILE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["CopiesTrial", "copies_cases"]

_EPSILON, _MU, _DELTA = 0.5, 0.5, 1e-3
_CANDIDATES = 10
Mechanism: TypeAlias = Literal["counts", "response", "failing", "gaussian", "choices"]


@dataclass(frozen=True, kw_only=True)
class CopiesTrial:
    """Whether an audit of so many copies claims more than what holds for one record.

    "counts" publishes how often each record is there, with Laplace noise; "choices" does so for
    each candidate of a secret; "gaussian" has normal noise. "response" is right with odds e^(Rε),
    the most that R copies allow, and "failing" tells all with the probability that they allow.
    """

    m: int
    copies: int
    mechanism: Mechanism
    stated: bool = True
    error: float = ERROR

    @property
    def claim(self) -> Claim:
        """What is claimed of one record, as it is tested of all copies at once."""
        if self.mechanism == "gaussian":
            return GaussianDP()
        if self.mechanism == "failing":
            return ApproxDP(delta=grouped(_EPSILON, _DELTA, copies=self.copies)[1])
        return PureDP()

    def play(self, seed: int) -> tuple[FloatArray, Any]:
        """Return scores, and the members or the chosen candidates, of a seed."""
        rng, copies = stream("copies", seed), self.copies
        if self.mechanism == "choices":
            chosen = rng.integers(_CANDIDATES, size=self.m)
            counts = copies * np.eye(_CANDIDATES)[chosen]
            # replacing one record changes two counts by one
            return counts + rng.laplace(scale=2 / _EPSILON, size=counts.shape), chosen
        member = rng.random(self.m) < 0.5
        if self.mechanism == "counts":
            return copies * member + rng.laplace(scale=1 / _EPSILON, size=self.m), member
        if self.mechanism == "gaussian":
            return copies * _MU * member + rng.normal(size=self.m), member
        right = rng.random(self.m) < 1 / (1 + math.exp(-copies * _EPSILON))
        if self.mechanism == "failing" and rng.random() < self.claim.delta:
            right[:] = True
        sure = 1 + rng.random(self.m)
        return np.where(right == member, sure, -sure), member

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        scores, drawn = self.play(2 * seed)
        copies = self.copies if self.stated else 1
        design = (
            Choices(drawn, _CANDIDATES, copies=copies)
            if self.mechanism == "choices"
            else Coins(drawn, copies=copies)
        )
        result = audit(
            scores, design, claim=self.claim, confidence=1 - self.error, seed=2 * seed + 1
        )
        truth = _MU if self.mechanism == "gaussian" else _EPSILON
        return bool(result.bound > truth)


_GAMES: dict[Mechanism, tuple[int, int]] = {
    "counts": (1_000, DEAR),
    "response": (1_000, DEAR),
    "failing": (0, DEAR),
    "gaussian": (0, COSTLY),
    "choices": (1_000, DEAR),
}
"""Games of quick and of long runs."""


def copies_cases() -> Iterator[Case]:
    """Yield the rows of copies."""
    row = partial(Case, audit="copies", cuts="planned", sides="auto", error=ERROR)
    for copies in (1, 2, 10):
        for mechanism, (quick, long) in _GAMES.items():
            trial = CopiesTrial(m=300, copies=copies, mechanism=mechanism)
            yield row(
                claim=trial.claim.name,
                truth=f"{mechanism}-{copies}-times",
                trial=trial,
                quick=quick,
                long=long,
            )
    for mechanism in ("counts", "choices"):
        trial = CopiesTrial(m=300, copies=10, mechanism=mechanism, stated=False)
        yield row(
            audit="copies-trap",
            claim=trial.claim.name,
            truth=f"{mechanism}-not-stated",
            trial=trial,
            quick=40,
            long=FUTILE,
            valid=False,
        )
