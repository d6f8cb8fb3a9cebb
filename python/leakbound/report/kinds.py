"""The kinds of number an audit can return: the tag printed beside each, and what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound._base.types import Kind

__all__ = ["KINDS", "KindWords"]


@dataclass(frozen=True)
class KindWords:
    """The tag printed beside every number of one kind, and what the kind promises."""

    tag: str
    meaning: str
    proves: bool = True
    """Whether the number bounds something from below, so that it may refute a claim."""
    condition: str = ""
    """What has to hold for that, besides what every audit assumes; as it ends a sentence."""


KINDS: dict[Kind, KindWords] = {
    "lower_bound": KindWords(
        "lower bound",
        "It holds for every mechanism that satisfies the claim, whatever goes on inside.",
    ),
    "family_lower_bound": KindWords(
        "lower bound within a family",
        "It holds among the mechanisms of the named family; its ε is a conversion.",
    ),
    "conditional_lower_bound": KindWords(
        "conditional lower bound",
        "It holds if the model of who became a member is right.",
        condition="if the propensities are right",
    ),
    "exploratory_lower_bound": KindWords(
        "exploratory, not a confidence bound",
        "Propensities were learnt, and their error is allowed for by refits or not at all: scores "
        "that know where a model errs can lift the number above the true leakage.",
        proves=False,
    ),
    "estimate": KindWords(
        "estimate, not a lower bound",
        "The difference of two lower bounds: it may exceed the true leakage.",
        proves=False,
    ),
    "invalid": KindWords(
        "invalid, not a bound",
        "The best of many cuts was picked, and the stated confidence does not cover the choice.",
        proves=False,
    ),
}
