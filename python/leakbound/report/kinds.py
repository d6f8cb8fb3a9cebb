"""The kinds of number an audit can return: the tag printed beside each, and what it proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound._base.types import Kind

SMALL = 0.1
"""A bound below this proves leakage, but little: it is stated as a number, and no more is said."""


@dataclass(frozen=True)
class KindWords:
    """The tag printed beside every number of one kind, and whether it proves anything."""

    tag: str
    proves: bool = True
    """Whether the number bounds something from below, so that it may refute a claim."""
    condition: str = ""
    """What has to hold for that, besides what every audit assumes; as it ends a sentence."""


KINDS: dict[Kind, KindWords] = {
    "lower_bound": KindWords("lower bound"),
    "family_lower_bound": KindWords("lower bound within a family"),
    "conditional_lower_bound": KindWords(
        "conditional lower bound", condition="if the propensities are right"
    ),
    "exploratory_lower_bound": KindWords("exploratory, not a confidence bound", proves=False),
    "estimate": KindWords("estimate, not a lower bound", proves=False),
}
