"""Figures of a report: drawn by matplotlib, coloured and set in type by the page around them."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound._base.formatting import number
from leakbound.report import figures as plots
from leakbound.results import PanoramiaResult
from leakbound.results.words import DELTA, is_family, reachable, shown, symbol
from leakbound.results.zero_run import ZeroRunResult
from leakbound.results.zero_run_figures import plots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from leakbound.results.words import Result

_SIZE = (4.3, 2.9)
_COLOURS = {
    plots.INK: "ink",
    plots.MUTED: "muted",
    plots.RULE: "grid",
    plots.PAPER: "paper",
    plots.MEMBER: "member",
    plots.OTHER: "other",
    plots.ALERT: "alert",
}
_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


@dataclass(frozen=True)
class Drawn:
    """A figure, ready for the page: SVG, its name, what it shows, and how to read it."""

    kind: str
    title: str
    svg: str
    words: str
    caption: str


def draw(result: Result, ident: str, *, only: Collection[str] | None = None) -> tuple[Drawn, ...]:
    """Draw all figures of one result, or some.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        What to draw.
    ident : str
        Unique on the page; begins every id inside the figures.
    only : collection of str, optional
        Which, by name.

    Returns
    -------
    tuple of Drawn
        One per figure.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return tuple(
        Drawn(
            kind=kind,
            title=_title(kind, result),
            svg=inline(svg(plot, result, heading=False), f"{ident}-{kind}", words(result)),
            words=words(result),
            caption=caption(result),
        )
        for kind, plot in plots_of(result).items()
        if only is None or kind in only
        for _, words, caption in [_TEXTS[kind]]
    )


def svg(plot: plots.Plot, result: Result, *, heading: bool = True) -> str:
    """Draw one figure as a stand-alone SVG document, the same bytes every time.

    Parameters
    ----------
    plot : callable
        One of `leakbound.report.figures`.
    result : AuditResult or PanoramiaResult
        What to draw.
    heading : bool
        Whether the figure carries its title; in a page the page does.

    Returns
    -------
    str
        The SVG.
    """
    with plots.house_style():
        import matplotlib as mpl
        from matplotlib.figure import Figure

        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = plot(result, figure.add_subplot())
        if not heading:
            axes.set_title("")
        text = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": "leakbound"}):
            figure.savefig(text, format="svg", metadata=_METADATA)
    return text.getvalue()


def inline(document: str, ident: str, words: str) -> str:
    """Turn an SVG document into an element of a page.

    Parameters
    ----------
    document : str
        What `svg` returned.
    ident : str
        Unique on the page.
    words : str
        What the figure shows, for those who do not see it.

    Returns
    -------
    str
        An svg element that takes its colours and its typeface from the page.
    """
    _, view, body = re.split(r'<svg[^>]*(viewBox="[^"]*")[^>]*>', document, maxsplit=1)
    body = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL
    )
    body = re.sub(r'\bid="', f'id="{ident}-', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{ident}-", body)
    body = re.sub(r"font-family: [^;\"]*;? ?", "", body)
    for colour, name in _COLOURS.items():
        body = body.replace(colour, f"var(--{name})")
    return f'<svg {view} role="img" aria-label="{_escape(words)}">{body}'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _bound_words(result: Result) -> str:
    if isinstance(result, PanoramiaResult):
        return (
            f"Lower bound against number of guesses. The baseline reaches c = "
            f"{number(result.c_lb)} at {result.baseline.guesses:,} guesses, the attack c + ε = "
            f"{number(result.c_plus_epsilon_lb)} at {result.attack.guesses:,}."
        )
    if is_family(result):
        return (
            f"Privacy loss ε against δ of the rejected curve: {number(shown(result))} at "
            f"δ = {DELTA:g}; a perfect attack would reach {number(reachable(result))}."
        )
    if result.bound > 0:
        return (
            f"Lower bound on ε against number of guesses. It is highest, {number(result.bound)}, "
            f"at {result.guesses:,} guesses; a perfect attack would reach "
            f"{number(result.ceiling)}."
        )
    return (
        "Lower bound on ε against number of guesses. It is 0 throughout; a perfect attack would "
        f"reach {number(result.ceiling)}."
    )


def _bound_caption(result: Result) -> str:
    if is_family(result):
        return (
            "The ε that the least private rejected curve of the family has at each δ, and dotted "
            "the curve that a perfect attack would have rejected."
        )
    return (
        "Each tested cut of the ranking, with the bound it would give were it the best. The dashed "
        "line is the final bound, the dotted line what a perfect attack would have reached."
    )


def _precision_words(result: Result) -> str:
    share = f"{result.correct:,} of {result.guesses:,} guesses are right at the chosen cut."
    return f"Share of right guesses against recall. {share}"


def _precision_caption(result: Result) -> str:
    if is_family(result):
        return "The marked cut is the one tested."
    if result.bound > 0 or isinstance(result, PanoramiaResult):
        return (
            "Every point of a dashed line has the same bound as the result. The measured curve "
            "touches it at the chosen cut and stays below it elsewhere."
        )
    return "With no cut far enough above ½, no bound above 0 follows."


def _roc_words(result: Result) -> str:
    return (
        "True-positive rate against false-positive rate on logarithmic axes; area under the curve "
        f"{result.auc:.3f}."
    )


def _roc_caption(result: Result) -> str:
    if is_family(result) and shown(result) > 0:
        return (
            "The dashed line is the rejected trade-off curve: a mechanism that obeyed it would lie "
            "below, but for chance, which the bound accounts for."
        )
    if isinstance(result, PanoramiaResult) or shown(result) > 0:
        return (
            "The dashed line is the most that the guarantee allows: TPR = exp(ε) · FPR and its "
            "mirror image. Single points may pass it by chance; the bound accounts for that."
        )
    return "The dotted line is guessing. Rates of 0 are drawn at the edge."


def _histogram_words(result: Result) -> str:
    return (
        f"Histogram of the scores of {result.members:,} members and "
        f"{result.m - result.members:,} non-members."
    )


def _histogram_caption(result: Result) -> str:
    which = "the attack " if isinstance(result, PanoramiaResult) else ""
    return (
        f"The scores {which}ranked by. Leakage shows where one group stands alone, most often in "
        "the right tail. The outermost bins hold everything beyond."
    )


def _true_positive_words(result: Result) -> str:
    if not isinstance(result, PanoramiaResult):
        return ""
    return (
        f"Right guesses against guesses: {result.attack.correct:,} of {result.attack.guesses:,} "
        f"with the model, {result.baseline.correct:,} of {result.baseline.guesses:,} by the "
        "baseline, at the cuts that prove most."
    )


def _true_positive_caption(result: Result) -> str:  # noqa: ARG001 (one for all)
    return (
        "Members found among the first guesses, as the propositions count them. Between the dotted "
        "lines lies what is possible beyond a coin toss."
    )


def _overlap_words(result: Result) -> str:
    if not isinstance(result, ZeroRunResult):
        return ""
    return (
        f"Histogram of the propensities of {result.m:,} examples, which are worth "
        f"{result.overlap.m_eff:,.0f}."
    )


def _overlap_caption(result: Result) -> str:  # noqa: ARG001 (one for all)
    return (
        "How likely features alone make each example a member. Where members and non-members "
        "overlap, a right guess says something about the model."
    )


def _bootstrap_words(result: Result) -> str:
    if not isinstance(result, ZeroRunResult) or result.bootstrap is None:
        return ""
    bounds = result.bootstrap.bounds
    return (
        f"Histogram of the bound under {bounds.size:,} replicates of the propensities, from "
        f"{bounds.min():.3g} to {bounds.max():.3g}."
    )


def _bootstrap_caption(result: Result) -> str:  # noqa: ARG001 (one for all)
    return (
        "The propensities are known only roughly: the bound that is reported is low among those "
        "under refitted propensities, and the estimate alone is not used."
    )


def _shift_words(result: Result) -> str:
    if not isinstance(result, ZeroRunResult) or result.shift_curve is None:
        return ""
    curve = result.shift_curve
    bounds, naive = (map(number, values.tolist()) for values in (curve.bound, curve.naive))
    points = zip(curve.max_log_odds, curve.examples.tolist(), bounds, naive, strict=True)
    listed = "; ".join(
        f"{limit:.2g}: {left:,} examples, bound {one}, naive {other}"
        for limit, left, one, other in points
    )
    return f"Bound on {symbol(result)} by the largest absolute log-odds left. {listed}."


def _shift_caption(result: Result) -> str:
    estimated = isinstance(result, ZeroRunResult) and result.bootstrap is not None
    return (
        "Leaving out examples whose features say much about membership trades number for likeness. "
        "Each point is an audit of its own"
        + (", at the estimate of the propensities" if estimated else "")
        + ". Fix max_log_odds before the audit: the best of these points is not a bound at the "
        "stated confidence. What the naive audit loses on the way to the left was shift."
    )


def _title(kind: str, result: Result) -> str:
    if kind == "bound" and is_family(result):
        return "ε against δ"
    return _TEXTS[kind][0]


_TEXTS: dict[str, tuple[str, Callable[[Result], str], Callable[[Result], str]]] = {
    "bound": ("Bound against guesses", _bound_words, _bound_caption),
    "precision_recall": ("Precision and recall", _precision_words, _precision_caption),
    "roc": ("ROC on logarithmic axes", _roc_words, _roc_caption),
    "histogram": ("Scores", _histogram_words, _histogram_caption),
    "true_positives": ("True positives", _true_positive_words, _true_positive_caption),
    "overlap": ("Overlap", _overlap_words, _overlap_caption),
    "shift": ("Bounds against shift", _shift_words, _shift_caption),
    "bootstrap": ("Uncertain propensities", _bootstrap_words, _bootstrap_caption),
}
