"""The options of a Zero-Run audit, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leakbound._base.checks import choice, complement, flag, instance, real
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    CorrectionChoice,
    SidesChoice,
    Uncertainty,
    ZeroRunVariant,
)
from leakbound.claims import CLAIMS, Claim, GaussianDP
from leakbound.cuts import CUT_POLICIES, CutPolicy, Weighted
from leakbound.errors import IncompatibleOptionsError

_CHOICES: dict[str, Any] = {
    "correction": CorrectionChoice,
    "sides": SidesChoice,
    "variant": ZeroRunVariant,
}
_CHOICES_IF_ANY: dict[str, Any] = {"adversary": Adversary, "uncertainty": Uncertainty}
_FLAGS = ("falsify", "release_refuted")


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroRunRequest:
    """The options of `audit_zero_run`, checked."""

    seed: int
    claim: Claim = GaussianDP()  # noqa: RUF009 (frozen)
    correction: CorrectionChoice = "conditional"
    confidence: float = 0.95
    cuts: CutPolicy | None = None
    sides: SidesChoice = "both"
    adversary: Adversary | None = None
    variant: ZeroRunVariant = "directional"
    uncertainty: Uncertainty | None = None
    features: ArrayInput | None = None
    max_log_odds: float | None = None
    falsify: bool = True
    release_refuted: bool = False
    ids: ArrayInput | None = None

    def __post_init__(self) -> None:
        instance(self.claim, "claim", CLAIMS)
        if self.cuts is not None:
            instance(self.cuts, "cuts", CUT_POLICIES)
        for name, allowed in _CHOICES.items():
            choice(getattr(self, name), name, allowed)
        for name in _FLAGS:
            object.__setattr__(self, name, flag(getattr(self, name), name))
        for name, allowed in _CHOICES_IF_ANY.items():
            if getattr(self, name) is not None:
                choice(getattr(self, name), name, allowed)
        complement(self.confidence)
        if self.max_log_odds is not None:
            limit = real(self.max_log_odds, "max_log_odds", above=0)
            object.__setattr__(self, "max_log_odds", limit)
        if isinstance(self.cuts, Weighted):
            message = (
                f"cuts={self.cuts!r} has no form for Zero-Run: choose a policy that is fixed in "
                "advance"
            )
            raise IncompatibleOptionsError(message)
