"""The report of a run as one self-contained HTML file: it lays out what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from leakbound._base.files import write_text
from leakbound.panoramia.report.figures import loss_figure
from leakbound.report import environment, svg

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from leakbound.panoramia.report.losses import Losses
    from leakbound.report.contents import Figure, Meaning, Reportable, Section

__all__ = ["Target", "write"]


@dataclass(frozen=True)
class Target:
    """What the page shows of one target: its estimate, and figures of the first seed."""

    name: str
    words: str
    figures: tuple[Figure, ...]

    @classmethod
    def of(cls, name: str, first: Reportable, losses: Losses | None) -> Target:
        """Collect what the first seed's result says, and the losses under the target."""
        more = () if losses is None else (loss_figure(losses),)
        return cls(name, first.summary().formula, (*first.figures(), *more))


def write(
    path: str | os.PathLike[str],
    *,
    table: Sequence[tuple[str, ...]],
    folded: Sequence[tuple[str, ...]],
    opening: Figure,
    figures: Sequence[Figure],
    targets: Sequence[Target],
    meaning: Meaning,
    sections: Sequence[Section],
    options: Mapping[str, object],
    **words: object,
) -> None:
    """Write the report of a run, all of it or nothing."""
    drawn = [
        (target, svg.draw(target.figures, f"t{place}")) for place, target in enumerate(targets)
    ]
    text = (
        environment()
        .get_template("panoramia.html.j2")
        .render(
            groups=[(name, list(lines)) for name, lines in groupby(table, itemgetter(0))],
            folded=folded,
            opening=svg.draw([opening], "open", size=(8.6, 1.3 + 0.17 * len(table)))[0],
            shared=svg.draw(figures, "run"),
            targets=drawn,
            meaning=meaning,
            sections=sections,
            options=options,
            **words,
        )
    )
    write_text(path, text)
