"""What the bound of a Zero-Run audit rests on, and what its reader should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound.results import Assumption

if TYPE_CHECKING:
    from leakbound._base.types import Design
    from leakbound.audits.engine.coins import MemberCount
    from leakbound.audits.zero_run.propensities import Shift
    from leakbound.audits.zero_run.study import Corrected
    from leakbound.propensity import Falsification

__all__ = ["conditions", "shift_warnings"]

_SCARCE = 0.1
"""Share of examples kept below which most of them are wasted."""


def conditions(
    shift: Shift,
    count: MemberCount,
    refutation: Falsification | None,
    design: Design,
    limit: float | None,
    others: str,
) -> tuple[Assumption, ...]:
    """Return what must be true for the bound to mean what it says.

    Parameters
    ----------
    shift : Shift
        What is known of the propensities.
    count : MemberCount
        How many members there are, against how many they make likely.
    refutation : Falsification or None
        What came of the attempt to refute them.
    design : {"coins", "fixed_size"}
        How members came about.
    limit : float or None
        The largest |λ| that was audited.
    others : str
        What is assumed of other attacks, but for the verb's object.

    Returns
    -------
    tuple of Assumption
        Each with its status.
    """
    fixed = design == "fixed_size"
    return (
        _propensities(shift, count, refutation),
        Assumption(
            "independent memberships",
            "Given the features, each audited example was in the training set independently of the "
            "others, with its propensity; the rest of training is independent of who was."
            + (
                " Numbers of members and non-members were fixed: a subset with a random number was "
                "audited, which mends this only roughly."
                if fixed
                else ""
            ),
            "approximate" if fixed else "declared",
        ),
        Assumption(
            "replace one example" if fixed else "add or remove one example",
            "The claim is about training with one example replaced by another: members that are "
            "not audited stay in training. Its ε is at most twice that of adding or removing one."
            if fixed
            else "The claim is about training with and without one example; each candidate joined "
            "training independently, and the audit set was chosen without a look at who did.",
            "declared",
        ),
        Assumption(
            "propensities from other examples",
            "No audited example, and no score, had a part in the propensities.",
            "declared",
        ),
        Assumption(
            "scores without membership",
            "The scores come from the trained model and the examples, without a look at which of "
            f"these examples were members; options were chosen before that look, and {others} "
            "tried on it.",
            "declared",
        ),
        Assumption(
            "abstention by features alone",
            "Guesses and their order depend on scores and propensities only; examples are left out "
            + (
                f"if their log-odds are beyond {limit:g}, whatever their score."
                if limit is not None
                else "for no reason."
            ),
            "checked",
        ),
    )


def _propensities(shift: Shift, count: MemberCount, refutation: Falsification | None) -> Assumption:
    name = "propensities"
    how = "lie within the limits given" if shift.limited else "are those given"
    if shift.draws is not None:
        how = f"are as uncertain as {len(shift.draws)} replicates show"
    statement = f"The probabilities of membership given the features {how}"
    if refutation is None:
        text = count.statement(f"{statement}; not tested against features.")
        return Assumption(name, text, count.status("unverifiable"))
    tried = (
        f"{refutation.sceptic} bet against them and was right {refutation.correct} times of "
        f"{refutation.guesses}, {refutation.expected:.1f} expected (p = {refutation.p_value:.2g})"
    )
    if refutation.refuted:
        text = count.statement(f"{statement}: REFUTED. {tried}.")
        return Assumption(name, text, "contradicted")
    text = count.statement(f"{statement}; not refuted: {tried}. Mild failures pass unseen.")
    return Assumption(name, text, count.status("unverifiable"))


def shift_warnings(
    corrected: Corrected,
    shift: Shift,
    refutation: Falsification | None,
    examples: int,
    design: Design,
) -> tuple[str, ...]:
    """Say what limits a Zero-Run audit.

    Parameters
    ----------
    corrected : Corrected
        What the correction made of the study.
    shift : Shift
        What is known of the propensities.
    refutation : Falsification or None
        What came of the attempt to refute the propensities.
    examples : int
        Examples audited.
    design : {"coins", "fixed_size"}
        How members came about.

    Returns
    -------
    tuple of str
        Warnings, often none.
    """
    notes = []
    if refutation is not None and refutation.refuted:
        notes.append(
            f"propensity model refuted (p = {refutation.p_value:.2g}): features say more about "
            "membership than it knows, and right guesses may owe to that"
        )
    if refutation is None and shift.draws is not None:
        notes.append(
            "the propensities were learnt and nothing tested them, which takes features=: scores "
            "that know where they err can prove too much"
        )
    if corrected.kept < _SCARCE * examples:
        notes.append(
            f"matching keeps {corrected.kept} of {examples} examples: members and non-members "
            "hardly overlap"
        )
    if design == "fixed_size":
        notes.append(
            "numbers of members and non-members were fixed: the bound is about replacing an "
            "example, and approximate; adding or removing one has at least half that parameter"
        )
    return tuple(notes)
