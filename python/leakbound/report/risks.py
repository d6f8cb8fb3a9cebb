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
        places = range(len(bars))
        ax.barh(
            places,
            [100 * one.members for one in bars],
            height=0.5,
            facecolor=style.MEMBER,
            alpha=0.45,
            label="members",
        )
        ax.plot(
            [100 * one.others for one in bars],
            places,
            linestyle="",
            marker="D",
            markersize=5,
            color=style.OTHER,
            label="held-out people, with their limit",
        )
        longest = max(max(one.members, one.others, one.limit or 0.0) for one in bars)
        for place, one in zip(places, bars, strict=True):
            if one.limit is not None:
                ends = [100 * one.others, 100 * one.limit]
                ax.plot(ends, [place, place], color=style.OTHER, linewidth=1.3)
            reach = max(one.members, one.limit or one.others) + 0.02 * longest
            ax.text(100 * reach, place, one.proved, va="center", fontsize=8)
        ax.set_xlim(0, 150 * longest or 1.0)
        ax.set_yticks(places, [one.name for one in bars])
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=2, borderaxespad=0.1)
        style.name_axes(ax, title="", x="attack succeeds, % of people", y="")
        ax.set_title("Three questions", pad=22)  # above the legend
    return ax
