"""What a run finds, in a table, in words, and as figures and a page."""

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from leakbound._base.checks import choice
from leakbound._base.formatting import number
from leakbound._base.records import Record, unstored
from leakbound._base.types import Kind
from leakbound.errors import OptionError
from leakbound.panoramia.figures import (
    audits_figure,
    loss_figure,
    plot_losses,
    saturation_figure,
    target_figure,
)
from leakbound.panoramia.losses import Losses
from leakbound.panoramia.scores import CORRECTIONS, GameScores, NonMembers
from leakbound.panoramia.table import (
    CONDITION,
    DEFINITIONS,
    HEADINGS,
    NOTE,
    REAL,
    Audit,
    PanoramiaRow,
    Saturation,
    estimate,
    sums,
)
from leakbound.report import write
from leakbound.report.contents import Figure, Levels, Meaning, Metric, Overview, Section, Summary
from leakbound.report.parts import Provenance
from leakbound.results import PanoramiaResult, ZeroRunResult
from leakbound.results.checks import named
from leakbound.results.panoramia import why_zero
from leakbound.results.words import MEANINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FigureName: TypeAlias = Literal["targets", "audits", "saturation", "losses"]

TRIFLE = 0.05
"""Mean of a bound below which it does not speak against a target that leaks little."""


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
        audits = dict.fromkeys(row.audit for row in self.rows)
        defined = " ".join(DEFINITIONS[audit] for audit in audits if audit in DEFINITIONS)
        return " ".join(filter(None, [NOTE, sums(self.rows), defined, CONDITION * conditional]))

    def plot(
        self, kind: FigureName = "targets", ax: "Axes | None" = None, *, model: str | None = None
    ) -> "Axes":
        """Draw one figure of the run; those of each result are drawn by `PanoramiaResult.plot`.

        Parameters
        ----------
        kind : {"targets", "audits", "saturation", "losses"}
            c and ε̃ by target, every audit of every target, c against the baseline's training data,
            or losses of members, generated and real non-members.
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
        choice(kind, "kind", FigureName)
        if kind != "losses":
            drawn = (audits_figure(self.rows), *self.figures())
            return next(one for one in drawn if one.name == kind).draw(ax)
        models = {one.model: one for one in self.losses}
        if model is not None and model not in models:
            message = f"model must be one of {', '.join(map(repr, models))}, got {model!r}"
            raise OptionError(message)
        return plot_losses(models[model] if model else self.losses[0], ax)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        summary: str = "",
        model: str = "",
        auditor: str = "",
        date: str = "",
        notes: str = "",
    ) -> None:
        """Write a self-contained HTML report, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.
        title, summary : str
            Title of the document, and a paragraph about what was audited.
        model, auditor, date : str
            What was audited, by whom and when; below the title, where they are given.
        notes : str
            A paragraph at the end of the page.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        parts = ", ".join(f"{count:,} {part}" for part, count in self.sizes.items())
        write(
            path,
            self,
            title=title or "PANORAMIA",
            summary=summary,
            about={**named(model=model, auditor=auditor, date=date), "Parts": parts},
            notes=notes,
            overview=Overview(
                "All targets", audits_figure(self.rows), [HEADINGS, *self.table()], self.note
            ),
        )

    kind: ClassVar[Kind] = "estimate"
    """What the largest ε̃ is."""
    answered: ClassVar[str] = ""
    """No claimed guarantee is put to the test."""

    @property
    def confidence(self) -> float:
        """Of every result by itself."""
        return self._lead.confidence

    @property
    def design(self) -> str:
        """How membership was assigned."""
        return self._lead.design

    @property
    def provenance(self) -> Provenance:
        """Versions, and the first seed; digests of inputs are with the results of each seed."""
        return replace(self._lead.provenance, seed=self.seeds[0], sha256={})

    @property
    def epsilon_ceiling(self) -> float:
        """Mean over seeds of the largest ε̃ that a perfect attack would have given."""
        return float(np.mean([one.ceiling for one in self._largest.estimates]))

    def answer(self, *, epsilon: float, c: float | None = None) -> str:
        """Return what the first seed says about a claimed guarantee."""
        return self._lead.answer(epsilon=epsilon, c=c)

    def summary(self) -> Summary:
        """Return the largest estimate in a few values."""
        lead = self._lead.summary()
        papers = (*lead.papers, *(("Zero-Run",) if self._conditional else ()))
        claim = f"{lead.claim}, each bound by itself"
        return replace(lead, claim=claim, epsilon=estimate(self._largest), papers=papers)

    def levels(self) -> Levels:
        """Return what the bar from 0 to the ceiling shows."""
        row = self._largest
        assert row.c_lb is not None
        assert row.c_plus_epsilon_lb is not None
        c, both = row.c_lb.mean, row.c_plus_epsilon_lb.mean
        names = (
            f"c of the generator: at least {row.c_lb}",
            f"ε̃ = {row.epsilon_tilde}, an estimate; c + ε is at least {row.c_plus_epsilon_lb}",
            "not shown by this audit",
        )
        return Levels(c, max(c, both), names)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers of the target with the largest estimate."""
        row = self._largest
        return (
            Metric("Estimate ε̃", str(row.epsilon_tilde), "estimate, not a lower bound"),
            Metric("c + ε at least", str(row.c_plus_epsilon_lb), "attack, with the model"),
            Metric("c at least", str(row.c_lb), "baseline, without the model"),
            Metric("Examples", f"{row.m:,}", f"tested with each of {len(self.seeds)} seeds"),
        )

    @property
    def _estimated(self) -> list[PanoramiaRow]:
        return [row for row in self.rows if row.audit == "PANORAMIA"]

    @property
    def _largest(self) -> PanoramiaRow:
        """The target with the largest estimate."""
        return max(self._estimated, key=estimate)

    @property
    def _lead(self) -> PanoramiaResult:
        return self._largest.estimates[0]

    @property
    def _without(self) -> list[PanoramiaRow]:
        """The targets whose estimate is 0 for every seed."""
        return [row for row in self._estimated if estimate(row) == 0]

    @property
    def _conditional(self) -> ZeroRunResult | None:
        """The first seed's result by Zero-Run, of the largest estimate's target if it has one."""
        rows = sorted(self.rows, key=lambda row: row.target != self._largest.target)
        return next((result for row in rows for result in row.conditional), None)

    def headline(self) -> str:
        """Return what the run found in a sentence or two."""
        rows, lead = self._estimated, self._largest
        if estimate(lead) <= 0:
            return (
                "No leakage estimated: the attack with the model finds no more than the baseline "
                "finds without it."
            )
        of = "" if len(rows) == 1 else f" for “{lead.target}”, the largest of {len(rows)} targets"
        return (
            f"Estimated leakage{of}: ε̃ = {number(estimate(lead))} in the mean over "
            f"{len(self.seeds)} seeds. This is not a lower bound on ε."
        )

    def evidence(self) -> tuple[str, ...]:
        """Return the paragraph below the headline."""
        lead = self._largest
        said = [
            (
                f"The bound of the baseline, without the model, is c ≥ {lead.c_lb}; that of the "
                f"attack, with it, is c + ε ≥ {lead.c_plus_epsilon_lb}."
            )
        ]
        rows = {row.audit: row for row in self.rows if row.target == lead.target}
        if proved := [f"{rows[name].epsilon} by {name}" for name in CORRECTIONS if name in rows]:
            said.append(
                "If the baseline's score says all that an example says of its coin, ε is at least "
                f"{' and '.join(proved)}, on the same examples."
            )
        if "RM;RN" in rows:
            said.append(
                "Against real non-members, where c = 0, the same kind of attack gives ε ≥ "
                f"{rows['RM;RN'].epsilon}, and guesses of members and non-members by the loss "
                f"alone ε ≥ {rows['O(1)'].epsilon}."
            )
        return (" ".join(said),)

    def meaning(self) -> Meaning:
        """Return what the numbers say, what they do not, and why some estimates are 0."""
        found, rows = MEANINGS["estimate"], self._without
        if not rows:
            return found
        pairs = [(one.c_lb, one.attack.ceiling) for row in rows for one in row.estimates]
        c_lb, ceiling = np.mean(pairs, axis=0).tolist()
        targets = {row.target for row in rows}
        proofs = [
            f"{_named(row.audit)} gives ε ≥ {row.epsilon} of “{row.target}”"
            for row in self.rows
            if row.target in targets and row.epsilon is not None and row.epsilon.mean > TRIFLE
        ]
        return replace(
            found,
            why_zero=why_zero(c_lb, ceiling, "; ".join(proofs)),
            zero_for=", ".join(row.target for row in rows) if len(self._estimated) > 1 else "",
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures about all targets, none of them drawn yet."""
        return (
            saturation_figure(self.saturation),
            target_figure(self._estimated),
            *(loss_figure(one, place) for place, one in enumerate(self.losses)),
        )

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds: why the bounds hold, and what they assume."""
        lead, beside = self._lead, self._conditional
        own = Section("Why the bounds hold", (lead.theorem,), lead.assumptions)
        if beside is None:
            return (own,)
        title = "Grounds of the conditional lower bounds"
        return (own, Section(title, (beside.theorem,), beside.assumptions))

    def __str__(self) -> str:
        lines = [HEADINGS, *self.table()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*padded, "", self.note, *(f"warning: {text}" for text in self.warnings)])

    def __repr__(self) -> str:
        targets = len({row.target for row in self.rows})
        return f"PanoramiaReport(targets={targets}, rows={len(self.rows)}, seeds={self.seeds})"


def _named(audit: Audit) -> str:
    """Return the name of an audit in a sentence, and whom it compares members with."""
    return f"{audit}, against real non-members," if audit in REAL else audit
