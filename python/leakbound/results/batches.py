"""What an audit of recorded batches returns; the public name is that of the package."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from leakbound._base import shares
from leakbound._base.checks import choice
from leakbound._base.formatting import percent
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import Batches, Verdict
from leakbound.report.parts import Provenance
from leakbound.results.base import flaw_of

BatchTest: TypeAlias = Literal[
    "sizes", "repeats", "few in common", "many in common", "counts", "epochs"
]
"""What may refute stated batches: sizes that are not one, an example twice in one batch, batches
some steps apart with too few or too many examples in common, examples that come too evenly or
unevenly often, and an example twice in one epoch."""
# Tests that have a share of the error: the others see what is impossible
BATCH_TESTS = 3
_IMPOSSIBLE = frozenset({"sizes", "repeats", "epochs"})
_OF_SUBSETS: tuple[BatchTest, ...] = ("repeats", "few in common", "many in common", "counts")
_TESTS: dict[Batches, tuple[BatchTest, ...]] = {
    "poisson": _OF_SUBSETS,
    "fixed_size": ("sizes", *_OF_SUBSETS),
    "epochs": ("epochs",),
}
_STATED: dict[Batches, str] = {
    "poisson": "Poisson samples",
    "fixed_size": "uniform samples of one size",
    "epochs": "epochs that have each example once at most",
}
_REASONS: dict[BatchTest, str] = {
    "sizes": "their sizes differ",
    "repeats": "an example is in one batch twice",
    "few in common": "batches some steps apart have too few examples in common, as in shuffled "
    "epochs",
    "many in common": "batches some steps apart have too many examples in common, as in a fixed "
    "order",
    "counts": "examples are drawn too evenly, or too unevenly",
    "epochs": "an example is twice in one epoch, counted from the first batch",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchesAudit(Record):
    """Whether recorded batches can be made as stated."""

    batches: int
    """Batches that were tested."""
    examples: int
    """Examples in the data."""
    examples_tested: int
    """How many of them were looked at, drawn by the seed."""
    mean: float
    """Mean size of a batch."""
    p_values: dict[str, float]
    """Of each test; of "sizes", "repeats" and "epochs" 0 if batches as stated cannot be like that,
    and else 1."""
    confidence: float
    """Probability that batches as stated are not refuted."""
    options: dict[str, Any]
    """Every option in force."""
    warnings: tuple[str, ...]
    """What a reader should know."""
    provenance: Provenance
    """Versions, seed and digest of the batches."""
    sampling: Batches = field(default="poisson", metadata=IF_ANY)
    """What is stated: Poisson samples, uniform samples of one size, or epochs."""

    @property
    def refuted_by(self) -> tuple[BatchTest, ...]:
        """What contradicts what is stated, each test by chance at an equal share of the error."""
        price = shares.BATCHES.price(BATCH_TESTS)
        level = 1 - self.confidence
        return tuple(name for name in _TESTS[self.sampling] if price * self.p_values[name] <= level)

    def check(self) -> Verdict:
        """Return the verdict on what is stated; "inconclusive" if some test could not refute."""
        if self.refuted_by:
            return "refuted"
        if self.warnings:
            return "inconclusive"
        return "not refuted"

    def summary(self) -> str:
        """Return what was found, in a paragraph."""
        batches_in_words = (
            f"{self.batches:,} batches (on average {self.mean:.1f} of {self.examples:,} examples)"
        )
        stated_batches = _STATED[self.sampling]
        given_sizes = ""
        if self.sampling == "poisson":
            given_sizes = ", given their sizes"
        confidence_in_words = f" ({percent(self.confidence)} confidence)"
        if self.sampling == "epochs":
            confidence_in_words = ""  # nothing is left to chance
        if self.refuted_by:
            reasons = "; ".join(_REASONS[name] for name in self.refuted_by)
            return (
                f"Refuted: {batches_in_words} are not {stated_batches}, because "
                f"{reasons}{confidence_in_words}."
            )
        sentence = (
            f"Nothing contradicts that {batches_in_words} are "
            f"{stated_batches}{given_sizes}{confidence_in_words}."
        )
        return " ".join([sentence, *(f"Warning: {text}." for text in self.warnings)])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _flaw(self) -> str:
        for name in self.p_values:
            choice(name, name="p_values", allowed=BatchTest)
        choice(self.sampling, name="sampling", allowed=Batches)
        p_values_without_chance = [p for name, p in self.p_values.items() if name in _IMPOSSIBLE]
        is_sound = (
            self.p_values.keys() == set(_TESTS[self.sampling])
            and all(0 <= p <= 1 for p in self.p_values.values())
            and all(p in {0.0, 1.0} for p in p_values_without_chance)
            and 1 <= self.examples_tested <= self.examples
            and self.batches >= 1
            and 0 <= self.mean <= self.examples
        )
        return flaw_of(self, sound=is_sound, confidence=self.confidence)
