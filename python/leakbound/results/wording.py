"""The words of a design, which it carries and results store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from leakbound._base.formatting import plural
from leakbound._base.types import Relation
from leakbound.errors import FormatError


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The words of a design, from which sentences about its results are made.

    A design sets them as `wording`, and results store them: descriptions know no design by its
    name.

    Examples
    --------
    >>> Wording(drawn="a draw of one twin of each pair", chance="over the draws").subject
    'model'
    """

    drawn: str
    """How membership was drawn, such as "independent coin for each example"."""
    chance: str
    """What the confidence is over, such as "over the coins of membership"."""
    question: str = "membership"
    """What a guess is about, such as "which of two examples was in the training data"."""
    unit: str = "example"
    """What the bound adds, removes or replaces one of."""
    units: str = "examples"
    """What is audited, as in "these examples"."""
    subject: str = "model"
    """What leaks; of "mechanism", each unit is a run of its own."""
    order: str = ""
    """Which guesses come first, such as "largest margin first"; empty for the usual order."""
    each: str = ""
    """What each unit has where it is neither a member nor not, such as "10 candidates each"."""

    @property
    def is_mechanism(self) -> bool:
        """Whether each unit is a run of its own, and not an example of one training run."""
        return self.subject == "mechanism"

    def changed(self, relation: Relation) -> str:
        """Return what a guarantee is for, as " for replacing one example".

        It is empty for adding or removing one example, which is what guarantees are mostly for.
        """
        if relation == "replace":
            return f" for replacing one {self.unit}"
        if self.unit == "example":
            return ""
        return f" for adding or removing one {self.unit}"


UNSTATED = Wording(drawn="", chance="")
"""Stands for the words that the options of a result imply: see `implied_by`."""
COINS = Wording(drawn="independent coin for each example", chance="over the coins of membership")
TRIALS = Wording(
    drawn="independent run for each coin",
    chance="over the coins of membership",
    units="trials",
    subject="mechanism",
)
FIXED_TRIALS = replace(
    TRIALS, drawn="independent runs, their numbers fixed in advance", chance="over the runs"
)
SPLIT = Wording(
    drawn="random split",
    chance="over the random split",
    question="which of two examples was in the training data",
)
PAIRS = Wording(
    drawn="a fair coin for each pair of a member and a non-member",
    chance="over the coins of membership",
)
GIVEN = Wording(
    drawn="given members and non-members, corrected for distribution shift",
    chance="over who became a member, given the features",
)
"""Words of the designs of the package, which results of earlier versions do not store."""


def of_unit(wording: Wording, unit: str) -> Wording:
    """Return the words of a design for what it adds, removes or replaces one of: a "user".

    Examples
    --------
    >>> of_unit(COINS, "user").drawn, of_unit(COINS, "user").units
    ('independent coin for each user', 'users')
    """
    if unit == wording.unit:
        return wording
    units = plural(unit)
    drawn = wording.drawn.replace("each example", f"each {unit}")
    question = wording.question.replace("two examples", f"two {units}")
    return replace(wording, drawn=drawn, question=question, unit=unit, units=units)


def of_choices(k: int) -> Wording:
    """Return the words of draws of one of `k` candidates."""
    return Wording(
        drawn="one candidate of each secret, drawn uniformly",
        chance="over the draws",
        question=f"which of {k} candidates was in the training data",
        unit="candidate",
        units="secrets",
        order="largest margin first",
        each=f"{k} candidates each",
    )


def implied_by(options: Mapping[str, Any]) -> Wording:
    """Return the words of a result that stores none, of a design of the package.

    Raises
    ------
    FormatError
        If the design is from outside the package: its words are not known.
    """
    design = str(options.get("design", "coins"))
    if "design" not in options and "correction" in options:
        design = "zero_run"
    if design == "choices":
        return of_choices(options.get("k", 2))
    if design == "trials" and options.get("fixed"):
        return FIXED_TRIALS
    known = {"coins": COINS, "trials": TRIALS, "random_split": SPLIT, "zero_run": GIVEN}
    if design not in known:
        raise FormatError(
            f"the design {design!r:.60} is not of this package, and the result has no wording "
            "that says what was drawn: audit again with the version that defines the design"
        )
    if "unit" not in options:
        return known[design]
    return of_unit(known[design], str(options["unit"]))
