"""What a run finds: every seed's result, their spread, and how the baseline grew."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from leakbound._base.formatting import number
from leakbound._base.records import Record, unstored
from leakbound._base.types import FloatArray, IntArray
from leakbound.audits.engine.warnings import saturation_warnings
from leakbound.errors import OptionError
from leakbound.panoramia.conditional import CORRECTIONS, Conditional
from leakbound.panoramia.report.extremes import FeatureExtreme
from leakbound.panoramia.report.losses import Losses
from leakbound.panoramia.scores import GameScores, NonMembers
from leakbound.results import AuditResult, PanoramiaResult
from leakbound.results.zero_run import ZeroRunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Audit", "PanoramiaReport", "PanoramiaRow", "Result", "Saturation", "Spread"]

Audit: TypeAlias = Literal[Conditional, "PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)"]
Result: TypeAlias = PanoramiaResult | ZeroRunResult | AuditResult

GROWTH = 0.05
"""Gain of c_lb from the last doubling of the training data that is still growth."""


@dataclass(frozen=True)
class Spread:
    """The mean over seeds, and how far seeds scatter.

    Parameters
    ----------
    mean : float
        Over seeds.
    half_width : float or None
        Half of the 95 % t-interval around it; None with one seed. It says how much splits, coins
        and training matter: it is not the confidence of a bound, which every seed has by itself.
    """

    mean: float
    half_width: float | None

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Summarise one value for each seed.

        Parameters
        ----------
        values : list of float
            Finite; at least one.

        Returns
        -------
        Spread
            Mean and interval.

        Examples
        --------
        >>> print(Spread.of([1.0, 2.0, 3.0]))
        2.00 ± 2.48
        """
        mean = float(np.mean(values))
        if len(values) == 1:
            return cls(mean, None)
        from scipy.special import stdtrit

        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean, float(stdtrit(len(values) - 1, 0.975)) * error)

    def __str__(self) -> str:
        if self.half_width is None:
            return number(self.mean)
        return f"{number(self.mean)} ± {self.half_width:.2f}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaRow(Record):
    """One target under one audit, with every seed's result.

    Parameters
    ----------
    target : str
        Name of the target.
    audit : {"PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)"} or a correction of Zero-Run
        Against generated non-members; the same scores with the paper's union bound over all cuts;
        the same attack against real non-members; or guessing members and non-members by the loss,
        less that at initialisation where it is known. "Zero-Run, match" and "Zero-Run,
        Poisson-binomial" are conditional lower bounds from the scores of the first.
    results : tuple of PanoramiaResult, ZeroRunResult or AuditResult
        One for each seed, each at its own confidence.
    """

    target: str
    audit: Audit
    results: tuple[Result, ...]

    @property
    def m(self) -> int:
        """Examples tested with each seed."""
        return self.results[0].m

    @property
    def c_lb(self) -> Spread | None:
        """Lower bounds on c, for PANORAMIA."""
        return self._of(lambda result: result.c_lb) if self._estimated else None

    @property
    def c_plus_epsilon_lb(self) -> Spread | None:
        """Lower bounds on c + ε; None where there is none, for O(1) and Zero-Run."""
        if not (self._estimated or self.audit == "RM;RN"):
            return None
        return self._of(lambda result: result.c_plus_epsilon_lb)

    @property
    def epsilon_tilde(self) -> Spread | None:
        """Estimates of ε, for PANORAMIA."""
        return self._of(lambda result: result.epsilon_tilde) if self._estimated else None

    @property
    def epsilon(self) -> Spread | None:
        """Lower bounds on ε; None for PANORAMIA, which gives an estimate."""
        return None if self._estimated else self._of(lambda result: result.bound)

    @property
    def _estimated(self) -> bool:
        return self.audit.startswith("PANORAMIA")

    def _of(self, value: Callable[[Any], float]) -> Spread:
        return Spread.of([value(result) for result in self.results])


@dataclass(frozen=True, eq=False)
class Saturation:
    """How c_lb grows with the training data of the baseline.

    Parameters
    ----------
    examples : ndarray of int64, shape (k,)
        Training examples, half of them members, increasing.
    c_lb : tuple of ndarray of float64, shape (k,)
        For each seed the bound on c of a baseline trained on so many, on the same test data.
    """

    examples: IntArray
    c_lb: tuple[FloatArray, ...]

    @property
    def spreads(self) -> list[Spread]:
        """Mean and interval at each size."""
        return [Spread.of(column.tolist()) for column in np.stack(self.c_lb).T]

    @property
    def growth(self) -> float:
        """Mean gain of c_lb from the last step to the whole training data; 0 with one size."""
        table = np.stack(self.c_lb)
        return float((table[:, -1] - table[:, -2]).mean()) if table.shape[1] > 1 else 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaReport(Record):
    """What `Panoramia.run` finds.

    Parameters
    ----------
    rows : tuple of PanoramiaRow
        Each target under each audit.
    saturation : Saturation
        c_lb against the baseline's training data.
    seeds : tuple of int
        Of splits, coins and training.
    sizes : dict of str to int
        Examples in each part.
    options : dict
        Every option in force.
    warnings : tuple of str
        What a reader should know; none of it changes a bound.
    extremes : tuple of FeatureExtreme
        For a table, where columns of members are beyond all that was generated, in the first seed's
        game: those that prove most first.
    losses : tuple of Losses
        Histograms of losses under each target, and under the helper if there is one.
    scores : tuple of GameScores
        Coins and scores of each seed, against generated and, if there are some, real non-members.
        They are left out of JSON: a report read from there has none.
    """

    rows: tuple[PanoramiaRow, ...]
    saturation: Saturation
    seeds: tuple[int, ...]
    sizes: dict[str, int]
    options: dict[str, Any]
    warnings: tuple[str, ...]
    losses: tuple[Losses, ...]
    extremes: tuple[FeatureExtreme, ...] = ()
    scores: tuple[GameScores, ...] = unstored()

    def row(self, target: str, audit: Audit = "PANORAMIA") -> PanoramiaRow:
        """Return one row of the table.

        Parameters
        ----------
        target : str
            Name of the target.
        audit : {"PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)"} or a correction of Zero-Run
            Which audit of it.

        Returns
        -------
        PanoramiaRow
            Its results.

        Raises
        ------
        OptionError
            If there is no such row.
        """
        for row in self.rows:
            if (row.target, row.audit) == (target, audit):
                return row
        known = ", ".join(f"({row.target!r}, {row.audit!r})" for row in self.rows)
        message = f"there is no row ({target!r}, {audit!r}); rows: {known}"
        raise OptionError(message)

    def games(self, nonmembers: NonMembers = "generated") -> tuple[GameScores, ...]:
        """Return coins and scores of every seed.

        Parameters
        ----------
        nonmembers : {"generated", "real"}
            Whom the members were compared with.

        Returns
        -------
        tuple of GameScores
            One for each seed.

        Raises
        ------
        OptionError
            If there are none: the run had no real non-members, or the report was read from JSON,
            which holds no scores.
        """
        found = tuple(game for game in self.scores if game.nonmembers == nonmembers)
        if not found:
            message = (
                f"there are no scores of games with {nonmembers} non-members: the run had none, or "
                "this report was read from JSON, which holds no scores"
            )
            raise OptionError(message)
        return found

    def audit_again(
        self, target: str, *, nonmembers: NonMembers = "generated", **options: Any
    ) -> PanoramiaRow:
        """Audit the scores of a target anew, with other options and without training anything.

        Parameters
        ----------
        target : str
            Name of the target.
        nonmembers : {"generated", "real"}
            Whom the members were compared with.
        **options : object
            As for `leakbound.audit_panoramia`, such as `cuts`, `gamma` or `max_recall`; confidence
            is that of the run if it is not given.

        Returns
        -------
        PanoramiaRow
            One result for each seed. Each holds at its own confidence, but not the best of several
            audits.

        Raises
        ------
        OptionError
            If there is no such target, or there are no such scores.
        LeakboundError
            As `leakbound.audit_panoramia` does.
        """
        confidence = self.rows[0].results[0].confidence
        return PanoramiaRow(
            target=target,
            audit="PANORAMIA" if nonmembers == "generated" else "RM;RN",
            results=tuple(
                game.audit(target, **({"confidence": confidence} | options))
                for game in self.games(nonmembers)
            ),
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return the table of the paper (its Table 3) in words.

        Returns
        -------
        list of tuple of str
            Target, audit, examples, c, c + ε, ε̃ and ε; "-" where an audit has no such number.
        """
        return [
            (row.target, row.audit, f"{row.m:,}", *("-" if x is None else str(x) for x in spreads))
            for row in self.rows
            for spreads in [(row.c_lb, row.c_plus_epsilon_lb, row.epsilon_tilde, row.epsilon)]
        ]

    @property
    def note(self) -> str:
        """What the numbers of the table mean."""
        conditional = any(row.audit in CORRECTIONS for row in self.rows)
        return NOTE + (CONDITION if conditional else "")

    def plot(
        self, kind: str = "targets", ax: "Axes | None" = None, *, model: str | None = None
    ) -> "Axes":
        """Draw one figure of the run; those of each result are drawn by `PanoramiaResult.plot`.

        Parameters
        ----------
        kind : {"targets", "saturation", "losses"}
            c and ε̃ by target, c against the baseline's training data, or losses of members,
            generated and real non-members.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.
        model : str, optional
            For losses: name of a target, or "helper"; the first target by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        OptionError
            If there is no such figure or model.
        MissingExtraError
            If matplotlib is not installed.
        """
        from leakbound.panoramia.report.figures import draw

        return draw(self, kind, model, ax)

    @property
    def extreme_words(self) -> tuple[str, ...]:
        """Which ends of columns lie furthest beyond what was generated; empty but for tables."""
        if not self.extremes:
            return ()
        listed = "; ".join(map(str, self.extremes[:SHOWN]))
        return (f"Beyond everything generated, with seed {self.seeds[0]}: {listed}.",)

    def report(self, path: str | os.PathLike[str], *, title: str = "", summary: str = "") -> None:
        """Write a self-contained HTML report, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.
        title, summary : str
            Title of the document, and a paragraph about what was audited.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        from leakbound.panoramia.report.page import write

        write(path, self, title=title or "PANORAMIA", summary=summary)

    def __str__(self) -> str:
        lines = [HEADINGS, *self.table()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        notes = [*self.extreme_words, *(f"warning: {text}" for text in self.warnings)]
        return "\n".join([*padded, "", self.note, *notes])

    def __repr__(self) -> str:
        targets = len({row.target for row in self.rows})
        return f"PanoramiaReport(targets={targets}, rows={len(self.rows)}, seeds={self.seeds})"


SHOWN = 3
"""Extremes that are printed below the table; the page has more."""
HEADINGS = ("Target", "Audit", "m", "c ≥", "c + ε ≥", "ε̃", "ε ≥")
NOTE = (
    "Means over seeds ± half of the 95 % t-interval. ε̃ is an estimate, not a lower bound on ε: "
    "what the attack proves beyond the baseline, put down to the model."
)


CONDITION = (
    " Zero-Run gives conditional lower bounds: they hold if the baseline's score says all that an "
    "example says of its coin, and 0 is reported where that is refuted with any seed."
)


def headline(found: PanoramiaReport) -> str:
    """Return what a run found in a sentence or two.

    Parameters
    ----------
    found : PanoramiaReport
        What was found.

    Returns
    -------
    str
        The largest estimate, and what it is not.
    """
    rows = [row for row in found.rows if row.audit == "PANORAMIA"]
    lead = max(rows, key=estimate)
    if estimate(lead) <= 0:
        return (
            "No leakage estimated: the attack with the model proves no more than the baseline "
            "proves without it."
        )
    of = "" if len(rows) == 1 else f" for “{lead.target}”, the largest of {len(rows)} targets"
    return (
        f"Estimated leakage{of}: ε̃ = {number(estimate(lead))} in the mean over "
        f"{len(found.seeds)} seeds. This is not a lower bound on ε."
    )


def estimate(row: PanoramiaRow) -> float:
    """Return the mean of ε̃ over seeds.

    Parameters
    ----------
    row : PanoramiaRow
        A target under an audit.

    Returns
    -------
    float
        At least 0; 0 for an audit that gives bounds.
    """
    return 0.0 if row.epsilon_tilde is None else row.epsilon_tilde.mean


def warnings_of(rows: tuple[PanoramiaRow, ...], saturation: Saturation) -> tuple[str, ...]:
    """Return what a reader should know of baseline and generator.

    Parameters
    ----------
    rows : tuple of PanoramiaRow
        All rows.
    saturation : Saturation
        The growth of c_lb.

    Returns
    -------
    tuple of str
        Sentences.
    """
    return (*_growing(saturation), *_crowded(rows), *_contradicted(rows), *_refuted(rows))


def _refuted(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    """Say where a sceptic found what the propensity model does not know."""
    refuted = [
        result.falsification is not None and result.falsification.refuted
        for row in rows
        for result in row.results
        if isinstance(result, ZeroRunResult)
    ]
    if not any(refuted):
        return ()
    note = (
        f"the propensity model was refuted in {sum(refuted)} of {len(refuted)} audits by Zero-Run, "
        "and the bounds of all seeds are withheld: examples say more of their coin than the "
        "baseline's score does, so that c_lb is not tight either"
    )
    return (note,)


def _growing(saturation: Saturation) -> tuple[str, ...]:
    if saturation.growth <= GROWTH:
        return ()
    before, last = saturation.examples[-2:]
    note = (
        f"c_lb still grows with the baseline's training data: by {saturation.growth:.2f} from "
        f"{before:,} to {last:,} examples; with more of it c_lb would be larger and ε̃ smaller"
    )
    return (note,)


def _crowded(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    audits = [row for row in rows if row.audit == "PANORAMIA"]
    pairs = [
        (result.c_lb, result.baseline.ceiling)
        for row in audits[:1]
        for result in row.results
        if isinstance(result, PanoramiaResult)
    ]
    c_lb, ceiling = (float(x) for x in np.mean(pairs, axis=0))
    return saturation_warnings(c_lb, lambda: ceiling)


def _contradicted(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    """Say where a baseline tells real non-members from members, which it should not."""
    audits = [row for row in rows if row.audit == "RM;RN"]
    bounds = [
        result.baseline.bound
        for row in audits[:1]
        for result in row.results
        if isinstance(result, PanoramiaResult)
    ]
    if not bounds or float(np.median(bounds)) <= 0:
        return ()
    note = (
        "the real non-members are not like the members: a baseline without the model tells them "
        f"apart (c >= {number(float(np.median(bounds)))} in the median over seeds), so that RM;RN "
        "and O(1) overstate ε; draw both from one distribution"
    )
    return (note,)
