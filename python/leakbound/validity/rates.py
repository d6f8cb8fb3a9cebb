"""What happened to the cases of a run: their rates, and the report on all, as Markdown too."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from leakbound._base.records import Record

Verdict: TypeAlias = Literal["holds", "fails"]
_WORDS, _NUMBERS = "claim cuts sides truth", "games counted rate nominal p-value"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a case and its rate have in common."""

    audit: str
    claim: str
    cuts: str
    sides: str
    truth: str
    error: float
    valid: bool = True


@dataclass(frozen=True, kw_only=True)
class Rate(Row):
    """What happened to one case.

    Parameters
    ----------
    audit, claim, cuts, sides, truth, error, valid
        As for `Case`.
    repetitions, errors : int
        Games played, and false claims among them.
    p_value : float
        P(Bin(repetitions, error) ≥ errors): how well luck explains so many.
    verdict : {"holds", "fails"}
        "fails" if `p_value` is below the case's share of the family-wise level.
    """

    repetitions: int
    errors: int
    p_value: float
    verdict: Verdict

    @property
    def rate(self) -> float:
        """Share of games with a false claim."""
        return self.errors / self.repetitions

    @property
    def expectation(self) -> Verdict:
        """What should come out: "holds" of a valid audit, "fails" of another one."""
        return "holds" if self.valid else "fails"

    @property
    def expected(self) -> bool:
        """Whether that came out."""
        return self.verdict == self.expectation


@dataclass(frozen=True, kw_only=True, eq=False)
class ValidityReport(Record):
    """What happened to all cases of a run.

    Parameters
    ----------
    rates : tuple of Rate
        One for each case, in order.
    family_wise : float
        Probability that bad luck alone gives a valid case the verdict "fails".
    seed : int
        Seed of the run.
    leakbound, source : str
        Version of the package, and SHA-256 of its Python files and compiled core.
    """

    rates: tuple[Rate, ...]
    family_wise: float
    seed: int
    leakbound: str
    source: str

    @property
    def ok(self) -> bool:
        """Whether every case came out as expected."""
        return all(rate.expected for rate in self.rates)

    def summary(self) -> str:
        """Return in a sentence how many cases came out as expected, of valid audits and others."""
        parts = []
        for valid, words in ((True, "valid audits hold"), (False, "invalid ones fail")):
            expected = [rate.expected for rate in self.rates if rate.valid is valid]
            if expected:
                parts.append(f"{sum(expected):,} of {len(expected):,} {words}")
        test = f"each judged by an exact binomial test, family-wise at {self.family_wise:g}"
        return f"{', '.join(parts)}: {test}."

    def to_markdown(self) -> str:
        """Return the counts as a page of Markdown, with a table for each audit."""
        return "\n".join(_lines(self))


def _lines(report: ValidityReport) -> Iterator[str]:
    rates = sorted(report.rates, key=lambda rate: rate.audit)
    games = sum(rate.repetitions for rate in rates)
    yield "# False claims, counted\n"
    yield f"leakbound {report.leakbound}, seed {report.seed}:"
    yield f"{games:,} games of {len(rates):,} cases. {report.summary()}"
    for audit, group in groupby(rates, lambda rate: rate.audit):
        yield f"\n## {audit}\n"
        yield f"| {' | '.join([*_WORDS.split(), *_NUMBERS.split(), 'expected', 'verdict'])} |"
        yield f"{'|---' * 4}{'|--:' * 5}|---|---|"
        yield from map(_row, group)
    yield ""


def _row(rate: Rate) -> str:
    cells = (
        rate.claim,
        rate.cuts,
        rate.sides,
        rate.truth,
        f"{rate.repetitions:,}",
        f"{rate.errors:,}",
        f"{100 * rate.rate:.2f} %",
        f"{100 * rate.error:g} %",
        f"{rate.p_value:.2g}",
        rate.expectation,
        rate.verdict if rate.expected else f"**{rate.verdict}**",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
