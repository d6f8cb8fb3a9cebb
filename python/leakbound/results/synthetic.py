"""What an audit of synthetic data returns; the public name is that of the package."""

from dataclasses import dataclass, replace

from leakbound.attacks.synthetic import Similarity
from leakbound.results.one_run import AuditResult


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticResult(AuditResult):
    """What an audit of synthetic data proves of the generator, on replacing one example."""

    _words = "leakbound.results.descriptions.synthetic"

    similarity: Similarity
    """The usual similarity metrics; the bound does not use them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "wording", replace(self.wording, subject="generator"))

    @property
    def attack(self) -> str:
        """The name of the attack that the bound comes from."""
        return str(self.options["attack"])
