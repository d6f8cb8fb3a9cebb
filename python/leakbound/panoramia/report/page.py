"""The report of a run as one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from leakbound._base.files import write_text
from leakbound._base.formatting import number
from leakbound.panoramia.conditional import CORRECTIONS
from leakbound.panoramia.report.figures import estimates, plot_losses, plot_saturation, plot_targets
from leakbound.panoramia.report.losses import Losses, helper_name, is_helper
from leakbound.panoramia.report.report import HEADINGS, estimate, headline
from leakbound.report import environment, svg
from leakbound.results import PanoramiaResult, ZeroRunResult
from leakbound.results.words import figure_of, why_zero

if TYPE_CHECKING:
    import os

    from leakbound.panoramia.report.extremes import FeatureExtreme
    from leakbound.panoramia.report.report import PanoramiaReport, PanoramiaRow

__all__ = ["write"]


TRIFLE = 0.05
"""Mean of a bound below which it does not speak against a target that leaks little."""


@dataclass(frozen=True)
class _Target:
    """What the page shows of one target."""

    name: str
    words: str
    figures: tuple[svg.Drawn, ...]


def write(
    path: str | os.PathLike[str], found: PanoramiaReport, *, title: str, summary: str
) -> None:
    """Write the report of a run, all of it or nothing.

    Parameters
    ----------
    path : str or os.PathLike
        File to write.
    found : PanoramiaReport
        What was found.
    title, summary : str
        Title of the document, and a paragraph about what was audited.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.
    """
    rows = [row for row in found.rows if row.audit == "PANORAMIA"]
    lead = max(rows, key=estimate)
    losses = {one.model: one for one in found.losses}
    result = cast("PanoramiaResult", lead.results[0])
    text = (
        environment()
        .get_template("panoramia.html.j2")
        .render(
            title=title,
            summary=summary,
            headline=headline(found),
            explanation=_explanation(found, lead),
            confidence=result.confidence,
            found=found,
            headings=HEADINGS,
            groups=[
                (target, list(lines)) for target, lines in groupby(found.table(), itemgetter(0))
            ],
            note=found.note,
            shared=_shared(found),
            reasons=_reasons(found),
            ends=[_end(end) for end in found.extremes],
            none_for=", ".join(row.target for row in _without(found)) if len(rows) > 1 else "",
            targets=[_target(row, f"t{i}", losses.get(row.target)) for i, row in enumerate(rows)],
            lead=result,
            conditional=_conditional(found, lead.target),
            options={**found.sizes, **found.options},
            version=result.provenance.leakbound,
        )
    )
    write_text(path, text)


def _end(end: FeatureExtreme) -> tuple[str, ...]:
    sign = ">" if end.side == "high" else "<"
    guesses = "-" if end.guesses is None else str(end.guesses)
    return (f"{end.name} {sign} {end.limit:,g}", str(end.beyond), guesses, number(end.c_lb))


def _without(found: PanoramiaReport) -> list[PanoramiaRow]:
    """Return the targets whose estimate is 0 for every seed."""
    rows = [row for row in found.rows if row.audit == "PANORAMIA"]
    return [row for row in rows if estimate(row) == 0]


def _reasons(found: PanoramiaReport) -> tuple[str, ...]:
    """Return why estimates are 0, if some are, and what other audits say of those targets."""
    rows = _without(found)
    if not rows:
        return ()
    pairs = [(result.c_lb, result.attack.ceiling) for row in rows for result in estimates(row)]
    c_lb, ceiling = np.mean(pairs, axis=0).tolist()
    proofs = [
        f"{row.audit} proves ε ≥ {row.epsilon} of “{row.target}”"
        for row in found.rows
        if row.target in {one.target for one in rows}
        and row.epsilon is not None
        and row.epsilon.mean > TRIFLE
    ]
    return why_zero(c_lb, ceiling, "; ".join(proofs))


def _shared(found: PanoramiaReport) -> list[svg.Drawn]:
    """Draw what is about all targets."""
    sizes, spreads = found.saturation.examples, found.saturation.spreads
    grown = ", ".join(f"{s.mean:.2f} at {n:,}" for n, s in zip(sizes, spreads, strict=True))
    rows = [row for row in found.rows if row.audit == "PANORAMIA"]
    targets = "; ".join(f"{row.target}: {row.epsilon_tilde}" for row in rows)
    figures = (
        (
            "saturation",
            "c against training data",
            plot_saturation,
            f"Lower bound on c against training examples of the baseline: {grown}.",
            (
                "Each grey line is a seed, the dots their mean. Where the line still rises at the "
                "right end, c is larger than shown, and ε̃ smaller."
            ),
        ),
        (
            "targets",
            "c and ε̃ by target",
            plot_targets,
            f"Estimates by target: {targets}.",
            (
                "Grey: what the baseline proves without the model. Blue: what the attack proves "
                "beyond it. Grey that fills the axis is a generator that is easily told from real "
                "data, and leaves no room for ε̃."
            ),
        ),
    )
    drawn = [
        _drawn(kind, title, plot, found, words, text) for kind, title, plot, words, text in figures
    ]
    helpers = [one for one in found.losses if is_helper(one.model)]
    return drawn + [_of_losses(one, one.model.replace(" ", "-")) for one in helpers]


def _drawn(
    kind: str, title: str, plot: object, shown: object, words: str, caption: str, ident: str = ""
) -> svg.Drawn:
    document = svg.svg(cast("Any", plot), cast("Any", shown), heading=False)
    return svg.Drawn(
        kind=kind,
        title=title,
        svg=svg.inline(document, ident or kind, words),
        words=words,
        caption=caption,
    )


def _of_losses(losses: Losses, ident: str) -> svg.Drawn:
    """Draw the losses of a target, or of a helper."""
    medians = ", ".join(f"{side} {value:.3g}" for side, value in losses.medians.items())
    of = "the model"
    if is_helper(losses.model):
        of = "the helper" if losses.model == helper_name(0) else losses.model
    caption = (
        "What the attack learns from: members whose losses are smaller than those of real "
        "non-members were learnt by heart. Where generated examples differ from real non-members, "
        "it is the generator that shows."
    )
    if is_helper(losses.model):
        caption = (
            "What the baseline learns from. The helper saw no member that is audited: where "
            "generated examples differ from the others, they can be told from real data, and c is "
            "large."
        )
    return _drawn(
        "losses",
        f"Losses under {of}",
        plot_losses,
        losses,
        f"Histograms of losses under {of}; medians in nats: {medians}.",
        caption,
        f"{ident}-losses",
    )


def _target(row: PanoramiaRow, ident: str, losses: Losses | None) -> _Target:
    first = estimates(row)[0]
    more = () if losses is None else (_of_losses(losses, ident),)
    return _Target(row.target, figure_of(first), (*svg.draw(first, ident), *more))


def _explanation(found: PanoramiaReport, lead: PanoramiaRow) -> str:
    both = (
        f"Without the model the baseline proves c ≥ {lead.c_lb}, with it the attack proves "
        f"c + ε ≥ {lead.c_plus_epsilon_lb}"
    )
    rows = {row.audit: row for row in found.rows if row.target == lead.target}
    proved = [f"{rows[name].epsilon} by {name}" for name in CORRECTIONS if name in rows]
    said = [f"{both}."]
    if proved:
        said.append(
            "If the baseline's score says all that an example says of its coin, ε is at least "
            f"{' and '.join(proved)}, on the same examples."
        )
    if "RM;RN" in rows:
        said.append(
            "Against real non-members, where c = 0, the same kind of attack proves ε ≥ "
            f"{rows['RM;RN'].epsilon}, and guesses of members and non-members by the loss alone "
            f"ε ≥ {rows['O(1)'].epsilon}."
        )
    return " ".join(said)


def _conditional(found: PanoramiaReport, target: str) -> ZeroRunResult | None:
    """Return the first seed's result by Zero-Run, of a target if it has one."""
    of = [
        result
        for row in sorted(found.rows, key=lambda row: row.target != target)
        for result in row.results
        if isinstance(result, ZeroRunResult)
    ]
    return of[0] if of else None
