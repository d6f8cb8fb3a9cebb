"""What a result hands to a report to lay out: words, key numbers, figures and grounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from leakbound._base.types import FloatArray, Kind
    from leakbound.report.parts import Assumption, Curve, Histogram, Provenance, Roc


@dataclass(frozen=True)
class Metric:
    """One key number: its name, its value, and a note beside it."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Terms:
    """What a bound refers to: guarantees, within a family or not, under a condition or not."""

    guarantee: str
    """Any of them, as in "no ε-DP guarantee"."""
    family: str
    """All of the guarantees that are audited, as in "some guarantee of …"."""
    bound: str
    """Those that are refuted, if any, as in "ε < 1.20"."""
    however: str = "however small its ε"
    """Which of them are most easily refuted."""
    at: str = ""
    """For a family, the δ at which ε is converted."""
    condition: str = ""
    """What has to be right, as in "if the propensities are right"."""
    units: str = "examples"
    """What was audited, as in "these examples"."""

    @property
    def within(self) -> str:
        """Within which family the bound holds, if in one."""
        return f" within {self.family}" if self.at else ""

    def conditional(self, sentence: str) -> str:
        """Put the condition before a sentence."""
        if not self.condition:
            return sentence
        first = sentence[0] if sentence[0] in "ε(" else sentence[0].lower()
        return f"{self.condition.capitalize()}, {first}{sentence[1:]}"

    def qualified(self, words: str) -> str:
        """Put family and condition behind a few words."""
        return f"{words}{self.within}" + (f", {self.condition}" if self.condition else "")


@dataclass(frozen=True)
class Summary:
    """One result in a few values: for tables, and for headlines about several models."""

    claim: str
    terms: Terms
    epsilon: float
    """The bound as an ε."""
    formula: str
    verdict: str
    refutes: bool
    leaks: bool
    guesses: int
    correct: int
    auc: float
    papers: tuple[str, ...] = ()
    """Names of papers to cite, besides those that every report cites."""
    beside: str = ""
    """ε proved and accounted, where an accountant's stands beside it."""
    text: str = ""
    """The paragraph that pages open with: the verdict and the evidence."""
    subject: str = "model"
    """What is audited."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Levels:
    """Two levels on the axis of ε, and what the three parts that they leave are called."""

    first: float
    second: float
    names: tuple[str, str, str]


@dataclass(frozen=True)
class Meaning:
    """What a number says, what it does not say, and why it may be 0 where that takes words."""

    says: tuple[str, ...]
    does_not_say: tuple[str, ...]
    why_zero: tuple[str, ...] = ()
    zero_for: str = ""
    """Of which of several models it is 0."""


@dataclass(frozen=True)
class Figure:
    """A figure to draw: its name and title, what it shows in words, and how to read it."""

    name: str
    title: str
    draw: Callable[[Axes | None], Axes]
    words: Callable[[], str]
    caption: str


@dataclass(frozen=True)
class Section:
    """Grounds of one bound: why it holds, what it assumes, and figures of its own."""

    title: str
    paragraphs: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Overview:
    """Several audits beside each other: a figure, a table with its headings first, and a note."""

    title: str
    figure: Figure
    table: Sequence[tuple[str, ...]]
    note: str


class Ranking(Protocol):
    """One ranking of the examples: what it proves at the chosen cut, and what all cuts give."""

    @property
    def bound(self) -> float:
        """The lower bound."""

    @property
    def ceiling(self) -> float:
        """The bound of a perfect attack."""

    @property
    def guesses(self) -> int:
        """Guesses at the chosen cut."""

    @property
    def correct(self) -> int:
        """Correct guesses among them."""

    @property
    def curve(self) -> Curve:
        """The cuts and their bounds."""

    @property
    def roc(self) -> Roc:
        """The ranking as a membership test."""


@dataclass(frozen=True)
class Series:
    """One ranking in a figure: what it, its bound and what it ranks are called, and its colour."""

    name: str
    symbol: str
    prefix: str
    colour: str
    bound: str
    ranking: Ranking
    units: str = "examples"


class PrivacyCurve(Protocol):
    """A trade-off function."""

    def f(self, alpha: FloatArray, /) -> Any:
        """Return the smallest error of the second kind."""

    def epsilon(self, delta: FloatArray, /) -> Any:
        """Return the ε that it has at δ."""


class Profile(Protocol):
    """What an audit of a family of trade-off functions rejects, and what it could have."""

    @property
    def kind(self) -> Kind:
        """What the bound is."""

    @property
    def rejected(self) -> PrivacyCurve | None:
        """The least private curve that is rejected."""

    @property
    def rejectable(self) -> PrivacyCurve | None:
        """The curve that a perfect attack would have rejected."""


class Drawable(Protocol):
    """What the figures of every audit are drawn from."""

    @property
    def kind(self) -> Kind:
        """What the bound is."""

    @property
    def series(self) -> tuple[Series, ...]:
        """The rankings to draw, the one that the bound comes from first."""

    @property
    def histogram(self) -> Histogram:
        """The scores of that ranking."""

    @property
    def profile(self) -> Profile | None:
        """The rejected curve, for a family of trade-off functions."""


class Reportable(Protocol):
    """What a page is made of: the result says it, the page lays it out."""

    @property
    def kind(self) -> Kind:
        """What the bound is."""

    @property
    def confidence(self) -> float:
        """Probability that the bound is not above the truth."""

    @property
    def design(self) -> str:
        """How membership was assigned."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know."""

    @property
    def options(self) -> dict[str, Any]:
        """Every option in force."""

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of inputs."""

    @property
    def epsilon_ceiling(self) -> float:
        """The ceiling as an ε."""

    def headline(self) -> str:
        """Return the verdict in one sentence."""

    def evidence(self) -> tuple[str, ...]:
        """Return the paragraphs below the verdict."""

    @property
    def answered(self) -> str:
        """What the audit says about the guarantee that was checked; empty if none was."""

    def answer(self, *, epsilon: float, c: float | None = None) -> str:
        """Return what the audit says about a claimed guarantee."""

    def summary(self) -> Summary:
        """Return the result in a few values."""

    def levels(self) -> Levels:
        """Return what the bar from 0 to the ceiling shows."""

    def meaning(self) -> Meaning:
        """Return what the number says, and what it does not."""

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers."""

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures."""

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds, section by section."""


SMALL = 0.1
"""A bound below this proves leakage, but little: it is stated as a number, and no more is said."""


@dataclass(frozen=True)
class KindWords:
    """The tag printed beside every number of one kind, and whether it proves anything."""

    tag: str
    proves: bool = True
    """Whether the number bounds something from below, so that it may refute a claim."""
    condition: str = ""
    """What has to hold for that, besides what every audit assumes; as it ends a sentence."""


KINDS: dict[Kind, KindWords] = {
    "lower_bound": KindWords("lower bound"),
    "family_lower_bound": KindWords("lower bound within a family"),
    "conditional_lower_bound": KindWords(
        "conditional lower bound", condition="if the propensities are right"
    ),
    "exploratory_lower_bound": KindWords("exploratory, not a confidence bound", proves=False),
    "estimate": KindWords("estimate, not a lower bound", proves=False),
}
