"""Captions of the figures that every audit has: what they show, and how to read them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from leakbound.report.contents import Figure
from leakbound.report.figures import PLOTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound.report.contents import Drawable
    from leakbound.results.ranking import ScoreAudit

BOUND = "Bound against guesses"
CUTS = (
    "Each tested cut of the ranking, with the bound it would give were it the best. The dashed "
    "line is the final bound, the dotted line what a perfect attack would have reached."
)
_SHIFTED = (
    " It is the ranking as it is: shift is not corrected for in this figure, and features alone "
    "may lift the curve."
)


class Caption(NamedTuple):
    """The title of a figure, what it shows, and how to read it."""

    title: str
    words: Callable[[], str]
    text: str


def figures(
    result: Drawable,
    ranking: ScoreAudit,
    bound: Caption,
    *,
    refuted: bool,
    family: bool = False,
    pair: bool = False,
    withheld: bool = False,
    shifted: bool = False,
) -> tuple[Figure, ...]:
    """Return the figures that every audit has; `shifted` if features alone tell members apart."""
    raw = _SHIFTED if shifted else ""
    captions = (
        bound,
        Caption(
            "Precision and recall",
            lambda: (
                f"Share of correct guesses against recall. {ranking.correct:,} of "
                f"{ranking.guesses:,} guesses are correct at the chosen cut."
            ),
            _precision(family=family, refuted=refuted or pair, withheld=withheld),
        ),
        Caption(
            "ROC on logarithmic axes",
            lambda: (
                "True-positive rate against false-positive rate on logarithmic axes; area under "
                f"the curve {ranking.auc:.3f}."
            ),
            _roc(family=family, refuted=refuted or pair) + raw,
        ),
        Caption(
            "Scores",
            lambda: (
                f"Histogram of the scores of {ranking.members:,} members and "
                f"{ranking.m - ranking.members:,} non-members."
            ),
            f"The scores {'the attack ' if pair else ''}ranked by. Leakage shows where one group "
            "stands alone, most often in the right tail. The outermost bins hold everything "
            "beyond.",
        ),
    )
    return tuple(
        Figure(name, one.title, partial(plot, result), one.words, one.text)
        for (name, plot), one in zip(PLOTS.items(), captions, strict=True)
    )


def _precision(*, family: bool, refuted: bool, withheld: bool) -> str:
    if withheld:
        return (
            "The share of correct guesses as it is: features alone may explain it, and the bound "
            "is withheld."
        )
    if family:
        return "The marked cut is the one tested."
    if refuted:
        return (
            "Every point of a dashed line has the same bound as the result. The measured curve "
            "touches it at the chosen cut and stays below it elsewhere."
        )
    return "With no cut far enough above ½, no bound above 0 follows."


def _roc(*, family: bool, refuted: bool) -> str:
    if not refuted:
        return "The dotted line is guessing. Rates of 0 are drawn at the edge."
    if family:
        return (
            "The dashed line is the rejected trade-off curve: a mechanism that obeyed it would lie "
            "below, but for chance. How far the measured curve passes it is partly chance, which "
            "the bound leaves out."
        )
    return (
        "The dashed line is the most that a guarantee at the bound allows: TPR = exp(ε) · FPR and "
        "its mirror image. How far the measured curve passes it is partly chance, which the bound "
        "leaves out."
    )
