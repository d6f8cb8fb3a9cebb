"""The options of a Zero-Run audit, checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypedDict, TypeVar, cast

from leakbound._base.streams import seed_of
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    CorrectionChoice,
    SidesChoice,
    Uncertainty,
    ZeroRunVariant,
)
from leakbound._base.validation import choice, complement, flag, instance, real
from leakbound.claims import CLAIMS, Claim, GaussianDP
from leakbound.cuts import CUT_POLICIES, CutPolicy, Weighted
from leakbound.errors import IncompatibleOptionsError

__all__ = ["ZeroRunOptions", "ZeroRunRequest", "with_fields_of"]

F = TypeVar("F", bound=Callable[..., Any])


class ZeroRunOptions(TypedDict, total=False):
    """What `audit_zero_run` takes beside scores, membership, propensities and claim."""

    correction: CorrectionChoice
    confidence: float
    cuts: CutPolicy | None
    sides: SidesChoice
    adversary: Adversary | None
    variant: ZeroRunVariant
    uncertainty: Uncertainty | None
    features: ArrayInput | None
    max_log_odds: float | None
    falsify: bool
    release_refuted: bool
    ids: ArrayInput | None
    seed: int | None


_CHOICES: dict[str, Any] = {
    "correction": CorrectionChoice,
    "sides": SidesChoice,
    "variant": ZeroRunVariant,
}
_CHOICES_IF_ANY: dict[str, Any] = {"adversary": Adversary, "uncertainty": Uncertainty}
_FLAGS = ("falsify", "release_refuted")


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroRunRequest:
    """The claim and the options of `ZeroRunOptions`, checked, with their defaults."""

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
    seed: int = cast("int", None)  # settled below

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
        object.__setattr__(self, "seed", seed_of(self.seed))
        if self.max_log_odds is not None:
            limit = real(self.max_log_odds, "max_log_odds", above=0)
            object.__setattr__(self, "max_log_odds", limit)
        if isinstance(self.cuts, Weighted):
            message = (
                f"cuts={self.cuts!r} has no form for Zero-Run: choose a policy that is fixed in "
                "advance"
            )
            raise IncompatibleOptionsError(message)


def with_fields_of(request: type) -> Callable[[F], F]:
    """Write the fields of a dataclass in place of **options into a function's signature."""
    own = [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type
        )
        for one in fields(request)
        if one.name != "claim"
    ]

    def signed(function: F) -> F:
        signature = inspect.signature(function)
        given = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*given, *own])  # type: ignore[attr-defined]
        return function

    return signed
