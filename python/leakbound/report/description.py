"""Descriptions of results: words, key numbers, figures and assumptions, made once for all outputs.

A result holds numbers. A function `describe` for each type of result makes its `Description`.
Console, page, notebook and tables lay it out, whatever the type of the result.
"""

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from leakbound._base.formatting import number
from leakbound._base.types import FloatArray, Kind, Named, Number, Strings
from leakbound.report.parts import Assumption, Provenance, ScoreAudit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Metric:
    """One key number: its name, its value, and a note."""

    name: str
    value: str
    note: str


@dataclass(frozen=True)
class Terms:
    """What a bound refers to: guarantees, within a family or not, under a condition or not."""

    guarantee: str
    """One guarantee, as in "no ε-DP guarantee"."""
    family: str
    """All guarantees that are audited, as in "some guarantee of …"."""
    epsilon: float
    """The bound as an ε: of a family of trade-off functions, at `delta`. See `symbol`, too."""
    ceiling: float
    """The ceiling as an ε, converted in the same way."""
    at: str = ""
    """For a family, the δ at which ε is converted."""
    condition: str = ""
    """What has to be right, as in "if the propensities are right"."""
    units: str = "examples"
    """What was audited, as in "these examples"."""
    replaced: str = ""
    """For a bound on replacing one example, "for replacing one example"."""
    delta: float = 0.0
    """The δ of ε, whatever was claimed."""
    own: str = ""
    """The bound in the unit of a family's own parameter, such as "μ ≥ 1.2"."""
    own_ceiling: str = ""
    """The ceiling, in the same way."""
    copies: int = 1
    """How often each record was inserted."""
    grouped: str = ""
    """The bound on all copies at once; empty where there is one."""
    symbol: str = "ε"
    """What bound and ceiling are; of a parameter that bounds no ε, its own symbol."""

    @property
    def within(self) -> str:
        """Within which family the bound holds, if in one."""
        if self.at:
            return f" within {self.family}"
        return ""

    @property
    def is_infinite(self) -> bool:
        """Whether the bound is on a family's own parameter, and its curves have no finite ε."""
        return bool(self.own) and math.isinf(self.epsilon)

    @property
    def smaller(self) -> str:
        """What is ruled out, as in "ε < 1.2 at δ = 1e-05"."""
        if self.is_infinite:
            return self.own.replace("≥", "<").replace("≤", ">")
        return f"{self.symbol} < {number(self.epsilon)}{self.at}"

    @property
    def parameter(self) -> str:
        """What is bounded, as in "ε at δ = 1e-05"."""
        if self.is_infinite:
            return self.own.split(" ≥ ")[0]
        return f"{self.symbol}{self.at}"

    def sure(self, confidence: str) -> str:
        """Return the confidence in brackets, with the bound in a family's own unit."""
        parts = [self.own, self.grouped, f"{confidence} confidence"]
        if self.is_infinite:
            parts = [*parts[1:], f"no ε{self.at} follows"]
        return f"({'; '.join(filter(None, parts))})"

    def conditional(self, sentence: str) -> str:
        """Put the condition before a sentence."""
        if not self.condition:
            return sentence
        return f"{self.condition.capitalize()}, {sentence[0].lower()}{sentence[1:]}"

    def qualified(self, words: str) -> str:
        """Put family and condition behind a few words."""
        if self.condition:
            return f"{words}{self.within}, {self.condition}"
        return f"{words}{self.within}"


@dataclass(frozen=True)
class Levels:
    """Two levels on the axis of ε, and what the three parts that they leave are called."""

    first: float
    second: float
    names: tuple[str, str, str]


@dataclass(frozen=True)
class Meaning:
    """What a number says, and what it does not say."""

    says: Strings
    does_not_say: Strings


@dataclass(frozen=True)
class Figure:
    """A figure to draw: its name and title, and how to read it."""

    name: str
    title: str
    draw: "Callable[[Axes | None], Axes]"
    caption: str


@dataclass(frozen=True)
class Section:
    """Why one bound holds, what it assumes, and its figures."""

    title: str
    paragraphs: Strings
    assumptions: tuple[Assumption, ...]
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Overview:
    """A comparison of audits: a table with its headings first, a note, and a figure."""

    title: str
    table: Sequence[Strings]
    note: str
    figure: Figure | None = None


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """What is printed of one result: its `str` is the paragraph that pages open with."""

    terms: Terms
    warnings: Strings
    headline: str
    refutes: bool
    """Whether some guarantee is refuted."""
    leaks: bool
    """Whether leakage worth the word is proved."""
    subject: str = "model"
    """What is audited."""
    plainly: str = ""
    """One sentence without ε, in which pages begin; empty where nothing like it is proved."""
    answer: str = ""
    """The answer about the guarantee that was checked; empty if none was."""
    paragraphs: Strings = ()
    """What was guessed right, what that means for a promise of ε, and how sure it is."""
    next_steps: Strings = ()
    """What to do next: at most three steps."""
    contradicted: tuple[Assumption, ...] = ()
    """The assumptions that the data contradict, each once."""

    @property
    def opening(self) -> Strings:
        """What pages begin with; the answer only once, where it is the headline."""
        texts = (self.plainly, self.headline, self.answer, *self.paragraphs)
        return tuple(dict.fromkeys(filter(None, texts)))

    def __str__(self) -> str:
        warned = (f"Warning: {text.removesuffix('.')}." for text in self.warnings)
        steps = (f"Next: {text}" for text in self.next_steps)
        return " ".join((*self.opening, *warned, *steps))


@dataclass(frozen=True, kw_only=True)
class Description(Sentences):
    """All that is said of one result: sentences, numbers, figures and grounds of a page."""

    kind: Kind
    confidence: float
    claim: str
    design: str
    """How membership was assigned."""
    epsilon: float
    ceiling: float
    """Bound and ceiling as the terms have them, or the mean of several audits."""
    formula: str
    """The bound with its sign."""
    verdict: str
    metrics: tuple[Metric, ...]
    meaning: Meaning
    levels: Levels
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    """Why each bound holds; pages fold the theory."""
    numbers: dict[str, float]
    """Finite numbers, for MLflow, Weights & Biases or a row of a table; `delta` is that of ε."""
    units: dict[str, str] = field(default_factory=dict)
    """The units of `epsilon`, `epsilon_ceiling` and `bound` among them."""
    title: str = "Privacy audit"
    claimed: float | None = None
    """The ε of the guarantee that was checked, where the bar can show it."""
    papers: Strings = ()
    """Names of papers to cite in addition to those that every report cites."""
    about: dict[str, str] = field(default_factory=dict)
    """Facts to list below the title of a page."""
    overview: Overview | None = None
    shown: int = 4
    """How many figures a page shows before it folds the others."""

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of all bounds, each once."""
        return tuple(
            dict.fromkeys(
                assumption for section in self.sections for assumption in section.assumptions
            )
        )

    def _repr_html_(self) -> str:
        def tagged(tag: str, texts: Iterable[str]) -> str:
            return "".join(
                f"<{tag} style='text-align:left'>{html.escape(text)}</{tag}>" for text in texts
            )

        cells_of_metrics = (
            tagged("td", (metric.name, metric.value, metric.note)) for metric in self.metrics
        )
        rows_of_table = "".join(f"<tr>{row}</tr>" for row in cells_of_metrics)
        opening_paragraphs = tagged("p", self.opening)
        next_steps = f"<p>What next</p><ol>{tagged('li', self.next_steps)}</ol>"
        table = f"<table>{rows_of_table}</table>"
        warnings = f"<ul>{tagged('li', self.warnings)}</ul>"
        return f"{opening_paragraphs}{next_steps}{table}{warnings}"


@dataclass(frozen=True)
class Series:
    """One ranking in a figure: what it, its bound and what it ranks are called, and its colour."""

    name: str
    symbol: str
    prefix: str
    colour: str
    bound: str
    ranking: ScoreAudit
    units: str = "examples"


class Curve(Protocol):
    """A curve of trade-offs between the two errors of a test, in arrays of any shape."""

    def f(self, alpha: FloatArray) -> Number:
        """Return the smallest error of the second kind at levels α in [0, 1]."""

    def epsilon(self, delta: FloatArray) -> Number:
        """Return the least ε of the curve at each δ in [0, 1]."""


@dataclass(frozen=True)
class Drawing:
    """What the figures of every audit are drawn from: the ranking of the bound comes first."""

    kind: Kind
    series: tuple[Series, ...]
    family: bool = False
    """Whether the bound is on a family of trade-off functions, with these two curves."""
    rejected: "Curve | None" = None
    """The least private one that is rejected."""
    rejectable: "Curve | None" = None
    """The one that a perfect attack would have rejected."""
    copies: int = 1
    """How often each member was inserted: a measured ROC is of all copies at once."""
    has_epsilon: bool = True
    """Whether the parameter of a family bounds an ε, so that there are curves to draw."""
    together: "Curve | None" = None
    """The curve that is rejected of all copies at once, where there are several."""
    batches: bool = False
    """Whether scores came in batches, with a bound after each."""


class Reportable(Protocol):
    """What a page is made of."""

    @property
    def options(self) -> Named:
        """Every option in force."""

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of inputs."""

    def summary(self) -> Description:
        """Return what is said of the result."""


# A bound below this proves leakage, but little: it is stated as a number, and no more is said
SMALL = 0.1


@dataclass(frozen=True)
class KindWords:
    """The tag of every number of one kind, and whether it proves anything."""

    tag: str
    proves: bool = True
    """Whether the number bounds something from below, so that it may refute a claim."""
    condition: str = ""
    """What it assumes in addition to what every audit assumes; as it ends a sentence."""


KINDS: dict[Kind, KindWords] = {
    "lower_bound": KindWords("lower bound"),
    "family_lower_bound": KindWords("lower bound within a family"),
    "conditional_lower_bound": KindWords(
        "conditional lower bound", condition="if the propensities are right"
    ),
    "exploratory_lower_bound": KindWords("exploratory, not a confidence bound", proves=False),
    "estimate": KindWords("estimate, not a lower bound", proves=False),
}


def estimated(c: str, c_lb: float, both: str, both_lb: float, epsilon: str) -> Levels:
    """Return what the bar shows of an estimate by PANORAMIA: c of the generator, then ε̃."""
    names = (
        f"c of the generator: at least {c}",
        f"ε̃ = {epsilon}, an estimate; c + ε is at least {both}",
        "not shown by this audit",
    )
    return Levels(first=c_lb, second=max(c_lb, both_lb), names=names)
