"""What an audit of recorded batches returns; the public name is that of the package."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from leakbound._base import shares
from leakbound._base.checks import choice
from leakbound._base.formatting import percent
from leakbound._base.records import Record
from leakbound._base.types import Verdict
from leakbound.report.parts import Provenance
from leakbound.results.base import flaw_of

BatchTest: TypeAlias = Literal["repeats", "few in common", "many in common", "counts"]
"""What may refute Poisson samples: an example twice in one batch, batches some steps apart with too
few or too many examples in common, and examples that come too evenly or unevenly often."""
# Tests that have a share of the error: repeats are impossible
BATCH_TESTS = 3
_REASONS: dict[BatchTest, str] = {
    "repeats": "an example is in one batch twice",
    "few in common": "batches some steps apart have too few examples in common, as in shuffled "
    "epochs",
    "many in common": "batches some steps apart have too many examples in common, as in a fixed "
    "order",
    "counts": "examples come too evenly, or too unevenly, often",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchesAudit(Record):
    """Whether recorded batches can be Poisson samples, given their sizes."""

    batches: int
    """Batches that were tested."""
    examples: int
    """Examples in the data."""
    examples_tested: int
    """How many of them were looked at, drawn by the seed."""
    mean: float
    """Mean size of a batch."""
    p_values: dict[str, float]
    """Of each test; "repeats" is 0 if there is one, and else 1."""
    confidence: float
    """Probability that Poisson samples are not refuted."""
    options: dict[str, Any]
    """Every option in force."""
    warnings: tuple[str, ...]
    """What a reader should know."""
    provenance: Provenance
    """Versions, seed and digest of the batches."""

    @property
    def refuted_by(self) -> tuple[BatchTest, ...]:
        """What contradicts Poisson samples, each test at an equal share of the error."""
        price = shares.BATCHES.price(BATCH_TESTS)
        level = 1 - self.confidence
        return tuple(name for name in _REASONS if price * self.p_values[name] <= level)

    def check(self) -> Verdict:
        """Return the verdict on Poisson samples; "inconclusive" if some test could not refute."""
        if self.refuted_by:
            return "refuted"
        if self.warnings:
            return "inconclusive"
        return "not refuted"

    def summary(self) -> str:
        """Return what was found, in a paragraph."""
        seen = (
            f"{self.batches:,} batches of {self.mean:.1f} of {self.examples:,} examples on average"
        )
        sure = f"{percent(self.confidence)} confidence"
        if self.refuted_by:
            reasons = "; ".join(_REASONS[name] for name in self.refuted_by)
            return f"Refuted: {seen} are not Poisson samples, because {reasons} ({sure})."
        said = f"Nothing contradicts that {seen} are Poisson samples, given their sizes ({sure})."
        return " ".join([said, *(f"Warning: {text}." for text in self.warnings)])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _flaw(self) -> str:
        for name in self.p_values:
            choice(name, name="p_values", allowed=BatchTest)
        sound = (
            self.p_values.keys() == _REASONS.keys()
            and all(0 <= p <= 1 for p in self.p_values.values())
            and 1 <= self.examples_tested <= self.examples
            and self.batches >= 1
            and 0 <= self.mean <= self.examples
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)
