"""The figure of the three questions: on how many members and others attacks succeed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class RiskBar:
    """One bar: shares of members and of others, the limit of the latter, and what is proved."""

    name: str
    members: float
    others: float
    limit: float | None
    proved: str


def plot_risks(bars: Sequence[RiskBar], ax: "Axes | None" = None) -> "Axes":
    """Draw a bar for each risk, the share of members, and a mark for others with their limit."""
    with style.house_style():
        ax = style.new_axes(ax)
        bar_places = range(len(bars))
        ax.barh(
            bar_places,
            [100 * risk_bar.members for risk_bar in bars],
            height=0.5,
            facecolor=style.MEMBER,
            alpha=0.45,
            label="members",
        )
        ax.plot(
            [100 * risk_bar.others for risk_bar in bars],
            bar_places,
            linestyle="",
            marker="D",
            markersize=5,
            color=style.OTHER,
            label="held-out people, with their limit",
        )
        largest_share = max(
            max(risk_bar.members, risk_bar.others, risk_bar.limit or 0.0) for risk_bar in bars
        )
        for bar_place, risk_bar in zip(bar_places, bars, strict=True):
            if risk_bar.limit is not None:
                ends_of_limit = [100 * risk_bar.others, 100 * risk_bar.limit]
                ax.plot(ends_of_limit, [bar_place, bar_place], color=style.OTHER, linewidth=1.3)
            end_of_bar = (
                max(risk_bar.members, risk_bar.limit or risk_bar.others) + 0.02 * largest_share
            )
            ax.text(100 * end_of_bar, bar_place, risk_bar.proved, va="center", fontsize=8)
        ax.set_xlim(0, 150 * largest_share or 1.0)
        ax.set_yticks(bar_places, [risk_bar.name for risk_bar in bars])
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=2, borderaxespad=0.1)
        style.name_axes(ax, title="", x="attack succeeds, % of people", y="")
        ax.set_title("Three questions", pad=22)  # above the legend
    return ax
