"""What the bound of a Zero-Run audit rests on, and what its reader should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound.results import Assumption

if TYPE_CHECKING:
    from leakbound.audits.member_count import MemberCount
    from leakbound.audits.zero_run.propensities import Shift
    from leakbound.audits.zero_run.request import ZeroRunRequest
    from leakbound.audits.zero_run.study import Corrected
    from leakbound.propensity import Falsification, FormTest

_SCARCE = 0.1
"""Share of examples kept below which most of them are wasted."""


FROM_OTHER_EXAMPLES = Assumption(
    "propensities from other examples",
    "No audited example, and no score, had a part in the propensities.",
    "declared",
)


def conditions(
    propensities: Assumption, source: Assumption, request: ZeroRunRequest, others: str
) -> tuple[Assumption, ...]:
    """Return what must be true for the bound to mean what it says.

    First what is assumed of the propensities; `source` is what they were learnt from, `others` what
    is assumed of other attacks, but for the verb's object.
    """
    limit = request.max_log_odds
    return (
        propensities,
        Assumption(
            "independent memberships",
            "Given the features, each audited example was in the training set independently of the "
            "others, with its propensity; the rest of training is independent of who was.",
            "declared",
        ),
        Assumption(
            "add or remove one example",
            "The claim is about training with and without one example; each candidate joined "
            "training independently, and the audit set was chosen without a look at who did.",
            "declared",
        ),
        source,
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


def given_propensities(
    shift: Shift, count: MemberCount, refutation: Falsification | None
) -> Assumption:
    """Say what is known of propensities that were given, or come from refits."""
    name = "propensities"
    how = "lie within the limits given" if shift.limited else "are those given"
    if shift.learnt:
        how = "are those of a fitted model, taken as they are"
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


def learnt_propensities(tests: tuple[FormTest, ...], refusal: str) -> Assumption:
    """Say what is known of log-odds that a logistic model is to give."""
    name = "propensities"
    statement = (
        "Log-odds of membership are a linear function of the features (a logistic model), with any "
        "coefficients, and all labels are independent given the features"
    )
    if refusal:
        return Assumption(name, f"{statement}; no confidence set: {refusal}.", "unverifiable")
    if not tests:
        return Assumption(name, f"{statement}; the form was not tested.", "unverifiable")
    tried = "; ".join(f"{one.test}: p = {one.p_value:.2g}" for one in tests)
    if any(one.refuted for one in tests):
        return Assumption(name, f"{statement}: REFUTED. {tried}.", "contradicted")
    text = f"{statement}; not refuted ({tried}). Missing features and mild misfit pass unseen."
    return Assumption(name, text, "unverifiable")


def one_law(reference: bool) -> Assumption:  # noqa: FBT001 (its only argument)
    """Say what labels the log-odds are learnt from."""
    return Assumption(
        "propensities from labels alone",
        "No score had a part in the propensities. The audited labels have, which the confidence "
        "set allows for"
        + (
            "; those of the other examples follow the same log-odds, whatever their features."
            if reference
            else "."
        ),
        "declared",
    )


def shift_warnings(
    corrected: Corrected,
    shift: Shift,
    refutation: Falsification | None,
    examples: int,
) -> tuple[str, ...]:
    """Say what limits a Zero-Run audit; often nothing."""
    notes = []
    if refutation is not None and refutation.refuted:
        notes.append(
            f"propensity model refuted (p = {refutation.p_value:.2g}): features say more about "
            "membership than it knows, which may explain correct guesses"
        )
    if refutation is None and shift.learnt:
        notes.append(
            "the propensities were learnt and nothing tested them, which takes features=: scores "
            "that know where they err can show too much"
        )
    if corrected.kept < _SCARCE * examples:
        notes.append(
            f"matching keeps {corrected.kept} of {examples} examples: members and non-members "
            "hardly overlap"
        )
    return tuple(notes)
