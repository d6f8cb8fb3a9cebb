"""Rows of mechanisms that are run until a claim about them is refuted, with a learnt score."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import leakbound as lb
from leakbound.mechanisms import (
    FloatLaplace,
    GaussianNoise,
    LaplaceNoise,
    NoisyMax,
    audit_mechanism,
)
from validity.lengths import DEAREST
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["mechanism_cases"]


@dataclass(frozen=True)
class _Refuted:
    """Whether the audit of a right mechanism stops before it has made all of its runs."""

    mechanism: Any
    claim: Any

    def __call__(self, seed: int) -> bool:
        """Run the mechanism of a seed."""
        audited = self.mechanism
        how: dict[str, Any] = {"confidence": 1 - ERROR, "most_runs": 200, "seed": seed}
        result = audit_mechanism(
            audited.run, audited.d0, audited.d1, self.claim, parameter=audited.parameter, **how
        )
        return bool(result.bound > audited.parameter)


def mechanism_cases() -> Iterator[Case]:
    """Yield mechanisms at the boundary of their claims."""
    games: dict[str, tuple[Any, Any]] = {
        "laplace": (LaplaceNoise(), lb.PureDP()),
        "laplace-curve": (LaplaceNoise(), lb.LaplaceDP()),
        "laplace-failing": (LaplaceNoise(), lb.ApproxDP(delta=0.02)),
        "gaussian": (GaussianNoise(), lb.GaussianDP()),
        "geometric": (FloatLaplace(), lb.PureDP()),
        "noisy-max": (NoisyMax(), lb.PureDP()),
    }
    for truth, (mechanism, claim) in games.items():
        yield Case(
            audit="mechanism",
            claim=claim.name,
            cuts="ville",
            sides="both",
            truth=truth,
            error=ERROR,
            trial=_Refuted(mechanism, claim),
            quick=0,
            long=DEAREST,
        )
