"""What happened to the cases of a run: their rates, and the report on all, as Markdown too.

The public names are those of `leakbound.validity`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from leakbound._base.records import Record

__all__ = ["Counted", "Rate", "ValidityReport", "Verdict"]

Verdict: TypeAlias = Literal["holds", "fails"]
Counted: TypeAlias = Literal["false claims", "misses"]
Outcome: TypeAlias = Literal["holds", "fails", "caught", "missed"]
_HEADINGS = (
    "claim",
    "cuts",
    "sides",
    "truth",
    "games",
    "counted",
    "rate",
    "nominal",
    "p-value",
    "expected",
    "verdict",
)
_NUMBERS = {"games", "counted", "rate", "nominal", "p-value"}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What happened to one case.

    Parameters
    ----------
    audit, claim, cuts, sides, truth, error, valid, counted
        As for `Case`.
    repetitions, errors : int
        Games played, and false claims (or misses) among them.
    p_value : float
        P(Bin(repetitions, error) ≥ errors): how well luck explains so many.
    verdict : {"holds", "fails"}
        "fails" if `p_value` is below the case's share of the family-wise level.
    """

    audit: str
    claim: str
    cuts: str
    sides: str
    truth: str
    error: float
    valid: bool
    counted: Counted
    repetitions: int
    errors: int
    p_value: float
    verdict: Verdict

    @property
    def rate(self) -> float:
        """Share of games with a false claim, or a miss."""
        return self.errors / self.repetitions

    @property
    def expected(self) -> bool:
        """Whether a valid audit holds, or an invalid one fails."""
        return (self.verdict == "holds") == self.valid

    @property
    def expectation(self) -> Outcome:
        """What should come out: "holds", "fails" or, for a wrong design, "caught"."""
        if self.counted == "misses":
            return "caught"
        return "holds" if self.valid else "fails"

    @property
    def outcome(self) -> Outcome:
        """What came out: the verdict or, for a wrong design, "caught" or "missed"."""
        if self.counted == "misses":
            return "caught" if self.verdict == "holds" else "missed"
        return self.verdict


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
    commit : str or None
        Commit of the code, if the environment or git tells.
    """

    rates: tuple[Rate, ...]
    family_wise: float
    seed: int
    leakbound: str
    source: str
    commit: str | None

    @property
    def ok(self) -> bool:
        """Whether every case came out as expected."""
        return all(rate.expected for rate in self.rates)

    def summary(self) -> str:
        """Return in a sentence how many cases came out as expected.

        Returns
        -------
        str
            Counts of valid audits, invalid ones and wrong designs.
        """
        kinds = {
            "holds": "valid audits hold",
            "fails": "invalid ones fail",
            "caught": "wrong designs are caught",
        }
        parts = []
        for expectation, words in kinds.items():
            found = [rate.expected for rate in self.rates if rate.expectation == expectation]
            if found:
                parts.append(f"{sum(found):,} of {len(found):,} {words}")
        return (
            f"{', '.join(parts)}: each judged by an exact binomial test, "
            f"family-wise at {self.family_wise:g}."
        )

    def to_markdown(self) -> str:
        """Return the counts as a page of Markdown, a table for each audit.

        Returns
        -------
        str
            Version, commit, seed, number of games, and a row for each case.
        """
        return "\n".join(_lines(self))


def _lines(report: ValidityReport) -> Iterator[str]:
    rates = sorted(report.rates, key=lambda rate: rate.audit)
    games = sum(rate.repetitions for rate in rates)
    commit = f", commit {report.commit}" if report.commit else ""
    yield "# False claims, counted"
    yield ""
    yield f"leakbound {report.leakbound}{commit}, seed {report.seed}:"
    yield f"{games:,} games of {len(rates):,} cases. {report.summary()}"
    for audit, group in groupby(rates, lambda rate: rate.audit):
        yield ""
        yield f"## {audit}"
        yield ""
        yield f"| {' | '.join(_HEADINGS)} |"
        yield f"|{'|'.join('--:' if name in _NUMBERS else '---' for name in _HEADINGS)}|"
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
        rate.outcome if rate.expected else f"**{rate.outcome}**",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
