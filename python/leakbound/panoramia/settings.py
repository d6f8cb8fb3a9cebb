"""The options of a run, checked when they are given; `Panoramia` documents them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from leakbound._base.checks import complement, flag, instance, integer, real
from leakbound._base.streams import seed_of
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan
from leakbound.errors import IncompatibleOptionsError, OptionError, OptionTypeError
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.options import Helper, each_helper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leakbound.generators import Generator, Sampler
    from leakbound.panoramia.options import Inputs


@dataclass(frozen=True)
class Settings:
    """How models are audited."""

    generator: Generator | Sampler
    _: KW_ONLY
    attack: StackedAttack = field(default_factory=StackedAttack)
    helper: Helper | Sequence[Helper] | None = field(default_factory=Helper)
    inputs: Inputs | None = None
    generator_share: float = 0.3
    train_share: float = 0.2
    validation_share: float = 0.08
    helper_examples: int | None = None
    saturation: tuple[float, ...] = (0.125, 0.25, 0.5)
    seeds: tuple[int, ...] = field(default_factory=lambda: tuple(seed_of(None) for _ in range(3)))
    confidence: float = 0.95
    cuts: CutPolicy = field(default_factory=KLScan)
    union: bool = False
    conditional: bool = False

    def __post_init__(self) -> None:
        if not (hasattr(self.generator, "fit") or hasattr(self.generator, "sample")):
            message = (
                f"generator must have a method fit or sample, got {self.generator!r}; see "
                "leakbound.generators"
            )
            raise OptionTypeError(message)
        instance(self.attack, "attack", StackedAttack)
        flag(self.union, "union")
        flag(self.conditional, "conditional")
        each_helper(self.helper)
        shares = ("generator_share", "train_share", "validation_share")
        for name in shares:
            real(getattr(self, name), name, above=0, below=1)
        if sum(getattr(self, name) for name in shares) >= 1:
            message = f"{', '.join(shares)} must leave members to audit: their sum must be below 1"
            raise IncompatibleOptionsError(message)
        if self.helper_examples is not None:
            integer(self.helper_examples, "helper_examples", least=20)
        ends = [0.0, *(real(x, "saturation", above=0, below=1) for x in self.saturation)]
        if any(high <= low for low, high in pairwise(ends)):
            message = f"saturation must increase, got {self.saturation}"
            raise OptionError(message)
        seeds = [integer(seed, "seeds", least=0) for seed in self.seeds]
        if not seeds or len(set(seeds)) < len(seeds):
            message = f"seeds must be different, and at least one, got {self.seeds}"
            raise OptionError(message)
        complement(self.confidence)
        instance(self.cuts, "cuts", CUT_POLICIES)
        if self.conditional and self.attack.modality == "text":
            message = (
                "conditional bounds need features that a sceptic can bet on, and tokens are none; "
                "pass features such as embeddings, with the scores of the report's games, to "
                "audit_panoramia(features=...)"
            )
            raise IncompatibleOptionsError(message)
