"""Cases of attackers that know the nuisance: true propensities, or where learnt ones err.

Nothing leaks. Scores that point along the error of an estimate make a number rise with that error,
which no resampling of the estimate shows, and a confidence set of log-odds covers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.odds import expit
from leakbound._base.streams import Purpose
from leakbound.audits import audit_zero_run
from leakbound.claims import Claim, GaussianDP, PureDP
from leakbound.propensity import LogisticPropensity
from leakbound.validity.suite import Case
from leakbound.validity.trials import ERROR

__all__ = ["NuisanceTrial", "nuisance_cases"]

Known: TypeAlias = Literal["log-odds", "noisy-log-odds", "error"]
"""What the scores say: λ, λ + N(0, 1), or λ less its estimate."""

_SIZES = (
    (0, 1500, 1, 1.5),
    (0, 1500, 10, 2.0),
    (60, 1500, 6, 1.5),
    (200, 1500, 20, 2.0),
    (300, 1500, 30, 2.0),
    (150, 1500, 50, 2.0),
    (1000, 3000, 30, 2.0),
    (2000, 4000, 100, 2.0),
)
"""Rows of D', examples, features, standard deviation of λ."""


@dataclass(frozen=True, kw_only=True)
class NuisanceTrial:
    """Whether Zero-Run with a fitted logistic model, rightly specified, claims that noise leaks."""

    held_out: int
    m: int
    features: int
    spread: float
    known: Known
    claim: Claim

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it by the defaults."""
        rng = Purpose.NUISANCE.rng(seed)
        direction = rng.normal(size=self.features)
        direction *= self.spread / np.linalg.norm(direction)
        table = rng.normal(size=(self.held_out + self.m, self.features))
        log_odds = table @ direction
        member = rng.random(log_odds.size) < expit(log_odds)
        learn, audited = slice(self.held_out), slice(self.held_out, None)
        model = LogisticPropensity()
        fit = model.fit(table[learn], member[learn]) if self.held_out else None
        scores = log_odds[audited]
        if self.known == "noisy-log-odds":
            scores = scores + rng.normal(size=self.m)
        elif self.known == "error":
            scores = scores - model.fit(table[learn], member[learn]).log_odds(table[audited])
        result = audit_zero_run(
            scores,
            member[audited],
            model if fit is None else fit,
            claim=self.claim,
            features=table[audited],
            confidence=1 - ERROR,
            seed=seed % 2**63,
        )
        return result.bound > 0


def nuisance_cases() -> Iterator[Case]:
    """Yield the cases, a few games in short runs and 100 in long ones."""
    claims: tuple[Claim, ...] = (GaussianDP(), PureDP())
    kinds: tuple[Known, ...] = ("log-odds", "noisy-log-odds", "error")
    for claim in claims:
        for held_out, m, features, spread in _SIZES:
            for known in kinds if held_out else kinds[:-1]:
                trial = NuisanceTrial(
                    held_out=held_out,
                    m=m,
                    features=features,
                    spread=spread,
                    known=known,
                    claim=claim,
                )
                yield Case(
                    audit="zero-run",
                    claim=claim.name,
                    cuts="fitted",
                    sides="both",
                    truth=f"knows-{known}-{held_out}-{features}",
                    error=ERROR,
                    trial=trial,
                    quick=2 if (held_out, known) == (60, "noisy-log-odds") else 0,
                    long=100,
                )
