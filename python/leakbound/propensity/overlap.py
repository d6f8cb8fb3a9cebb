"""Overlap of members and non-members: diagnostics of the propensities."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.odds import expit
from leakbound._base.records import Record
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.report.style import draw_classes, house_style, name_axes, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bins of the histograms: as fine as a figure shows.
_BINS = 40


@dataclass(frozen=True, eq=False)
class Overlap(Record):
    """The distribution of the propensities π of an audit set, by class.

    Of `m` examples, `members` are members. A histogram has the `edges` of its bins in π, and counts
    of each class.
    """

    m: int
    members: int
    m_eff: float
    """Σ 2 min(πᵢ, 1 - πᵢ), which matching keeps on average: m if every π is ½, 0 if features
    determine membership."""
    ess_members: float
    """Kish's effective size of a class, (Σ w)² / Σ w², with the weights of matching: min(1, e^-λ)
    for members and min(1, e^λ) for non-members."""
    ess_nonmembers: float
    certain: int
    """Examples with a propensity of exactly 0 or 1, on which an audit must abstain."""
    edges: FloatArray
    member_counts: IntArray
    nonmember_counts: IntArray

    def _flaw(self) -> str:
        bins = self.edges.size - 1
        if not bins == self.member_counts.size == self.nonmember_counts.size:
            return "edges and counts differ in length"
        ordered = 0 <= self.members <= self.m
        return "" if ordered else f"members ({self.members}) <= m ({self.m}) does not hold"

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the propensities of members and of non-members, in axes or in a new figure.

        Where the two overlap, correct guesses are evidence about the model. Elsewhere, the features
        alone reveal membership.
        """
        with house_style():
            ax = new_axes(ax)
            draw_classes(ax, self.edges, self.member_counts, self.nonmember_counts)
            ax.set_xlim(0.0, 1.0)
            title = f"Overlap: worth {self.m_eff:,.0f} of {self.m:,} examples"
            name_axes(ax, title, "propensity: P(member | features)", "examples per bin")
            ax.set_title(title, pad=20)
        return ax

    def __repr__(self) -> str:
        return (
            f"Overlap(m={self.m}, m_eff={self.m_eff:.0f}, effective members "
            f"{self.ess_members:.0f} of {self.members}, non-members {self.ess_nonmembers:.0f} of "
            f"{self.m - self.members})"
        )


def overlap(log_odds: FloatArray, member: BoolArray) -> Overlap:
    """Summarise the propensities of an audit set."""
    size = np.abs(log_odds)
    smaller = expit(-size)
    propensity = np.where(log_odds > 0, 1.0 - smaller, smaller)
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts = [np.histogram(propensity[member == one], edges)[0] for one in (True, False)]
    weights = np.exp(-np.maximum(0.0, np.where(member, log_odds, -log_odds)))
    return Overlap(
        m=log_odds.size,
        members=int(member.sum()),
        m_eff=float(2.0 * smaller.sum()),
        ess_members=_effective_size(weights[member]),
        ess_nonmembers=_effective_size(weights[~member]),
        certain=int(np.isinf(size).sum()),
        edges=edges,
        member_counts=counts[0].astype(np.int64),
        nonmember_counts=counts[1].astype(np.int64),
    )


def _effective_size(weights: FloatArray) -> float:
    total = float(weights.sum())
    return total * total / float(np.square(weights).sum()) if total > 0 else 0.0
