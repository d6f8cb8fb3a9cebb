"""Rows of mechanisms that are run until a claim about them is refuted, with a learnt score."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

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


# Of all runs, on either input
_UNUSUAL = 0.3


@dataclass(frozen=True)
class _Untidy:
    """A noisy number that keeps its claim, in outputs of more than one kind.

    Which kind comes out does not depend on the input.
    """

    kind: str
    d0: ClassVar[int] = 0
    d1: ClassVar[int] = 1
    parameter: ClassVar[float] = 1.0

    def run(self, data: int, rng: np.random.Generator) -> Any:
        """Release a number with noise, or what is unusual."""
        noisy = data + rng.laplace(scale=1 / self.parameter)
        if rng.random() > _UNUSUAL:
            return {"a key": {"n": noisy}, "a length": [noisy]}.get(self.kind, noisy)
        if self.kind == "raises":
            raise ValueError(f"no {noisy}")
        unusual = {"a key": {"n": noisy, "rare": 1}, "a length": [noisy, 0.0], "nan": math.nan}
        return unusual[self.kind]


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
    for kind in ("raises", "nan", "a key", "a length"):
        games[f"untidy {kind}"] = (_Untidy(kind), lb.PureDP())
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
