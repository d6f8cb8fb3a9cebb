"""What audits assume, and premises that were broken before: copied rows, scores filled in."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from leakbound._base.messages import Message
from leakbound._base.scores import FILLED
from leakbound._base.types import BoolArray, FloatArray, GenericArray, IntArray, Strings
from leakbound._tally.tally import Tally
from leakbound.claims import FAMILIES, Claim, EventFamily, SubsampledGaussianDP
from leakbound.cuts.games import NEAR_CEILING
from leakbound.errors import DesignError, OptionError
from leakbound.report.parts import Assumption, Assumptions

# Runs of one value that a shorter membership must have: layouts by class have few, coins many
_LEAST_RUNS = 16
# Draws that would all have to agree with earlier ones by chance: once in 10⁹
_LEAST_AGREEING = 30
# Values that are compared before all are, and whose runs are looked at first
_FIRST_ROWS = 64
_HEAD_ROWS = 4096
# Examples of a part whose one score is no accident
_LEAST_EXAMPLES = 8
# Examples of the other part that may have it: it may be their lowest, or their median
_MOST_SHARED = 1


def refuse_repeated(drawn: GenericArray, what: str, cure: str) -> None:
    """Refuse draws that are those of fewer units, repeated or tiled as copied rows are."""
    repetition = repetition_of(drawn)
    if repetition is not None:
        raise DesignError(_message_on_repetition(drawn.size, repetition, what=what, cure=cure))


def _message_on_repetition(
    rows: int, repetition: tuple[str, int, int], what: str, cure: str
) -> Message:
    """Say that the draws of some rows are those of fewer units, and what to do."""
    word, units, times = repetition
    return Message(
        "{what} of these {rows:,} rows is that of {units:,}, {word} {times:,} times: separate "
        "draws for each row cannot give this. Several rows of one unit share its draw: {cure}",
        what=what,
        rows=rows,
        units=units,
        word=word,
        times=times,
        cure=cure,
    )


def repetition_of(drawn: GenericArray) -> tuple[str, int, int] | None:
    """Return whether draws are shorter ones "repeated" or "tiled", how many, and how often.

    As by ``numpy.repeat``, where each draw stands several times in a row, or by ``numpy.tile``,
    where all stand one behind the other again. The shorter ones must look like draws: rows that are
    sorted by class and part are no copies.
    """
    rows = drawn.size
    times = _common_run_length(drawn[:_HEAD_ROWS], rows)
    if times > 1 and rows > _HEAD_ROWS:  # hardly ever: all changes of large data take memory
        times = _common_run_length(drawn, rows)
    period = _shortest_period(drawn)
    for how, shorter in (("repeated", drawn[::times]), ("tiled", drawn[:period])):
        if rows - shorter.size >= _LEAST_AGREEING and looks_drawn(shorter):
            return how, shorter.size, rows // shorter.size
    return None


def _common_run_length(drawn: GenericArray, rows: int) -> int:
    """Return the largest length of which all runs of one value are multiples, and all rows."""
    divisor_of_changes = np.gcd.reduce(_rows_of_changes(drawn), initial=0)
    return math.gcd(rows, int(divisor_of_changes))


def _rows_of_changes(drawn: GenericArray) -> IntArray:
    """Return where another value begins."""
    rows: IntArray = np.flatnonzero(drawn[1:] != drawn[:-1]) + 1
    return rows


def looks_drawn(drawn: GenericArray) -> bool:
    """Return whether values change as draws do, and are not a short pattern."""
    pattern = drawn[: _shortest_period(drawn)]
    runs = _rows_of_changes(pattern).size + 1
    return runs >= _LEAST_RUNS


def _shortest_period(drawn: GenericArray) -> int:
    """Return the shortest length whose copies make all values; that of all if none does."""
    rows = drawn.size
    small_divisors = [part for part in range(1, math.isqrt(rows) + 1) if rows % part == 0]
    large_divisors = [rows // divisor for divisor in small_divisors]
    for period in sorted({*small_divisors, *large_divisors}):
        after_first_period = drawn[period:]
        first_values = after_first_period[:_FIRST_ROWS]
        if not np.array_equal(first_values, drawn[: first_values.size]):
            continue
        if np.array_equal(after_first_period, drawn[: after_first_period.size]):
            return period
    return rows


def filled(
    attacks: Mapping[str, FloatArray],
    member: BoolArray,
    parts: tuple[str, str] = ("member", "non-member"),
) -> dict[str, str]:
    """Return a warning for each attack whose scores tell one part by a value that all of it has.

    `parts` are the words for one member and for one non-member.
    """
    warnings = {}
    one_member, one_other = parts
    for name, scores in attacks.items():
        for in_part, called, other in (
            (~member, one_other, one_member),
            (member, one_member, one_other),
        ):
            first_score = scores[np.argmax(in_part)]
            if _is_score_of_part(scores, score=first_score, in_part=in_part):
                warning = _warning_of_part(
                    scores, first_score, in_part=in_part, called=called, other=other
                )
                if warning:
                    warnings[name] = warning
                    break
    return warnings


def _warning_of_part(
    scores: FloatArray, score: float, in_part: BoolArray, called: str, other: str
) -> str:
    """Say that all of one part have a value; "" of few, or if others have one value, too."""
    examples = int(np.count_nonzero(in_part))
    other_scores = scores[~in_part]
    # of two values in all, the score may be a guess, and a right one
    if (
        examples < _LEAST_EXAMPLES
        or not other_scores.size
        or other_scores.min() == other_scores.max()
    ):
        return ""
    return _warning_of_filled_scores(
        examples,
        called=called,
        score=f"{score:g}",
        other=other,
        shared_by=int(np.count_nonzero(other_scores == score)),
    )


def filled_choices(attacks: Mapping[str, FloatArray], chosen: IntArray, k: int) -> dict[str, str]:
    """Return the same of scores of candidates: those that were drawn, and all others."""
    is_drawn = (np.arange(k) == chosen[:, None]).ravel()
    scores_of_candidates = {name: scores.ravel() for name, scores in attacks.items()}
    parts = ("drawn candidate", "other candidate")
    return filled(scores_of_candidates, member=is_drawn, parts=parts)


def filled_tallies(tallies: Mapping[str, Tally]) -> dict[str, str]:
    """Return the same of scores that are counted: all of one part have one key."""
    warnings = {}
    for name, tally in tallies.items():
        members_at = tally.members_at
        others_at = tally.examples_at - tally.members_at
        for counts, other_counts, called, other in (
            (others_at, members_at, "non-member", "member"),
            (members_at, others_at, "member", "non-member"),
        ):
            keys = np.flatnonzero(counts)
            examples = int(counts.sum())
            if keys.size != 1 or examples < _LEAST_EXAMPLES or np.count_nonzero(other_counts) <= 1:
                continue
            (key,) = keys
            shared_by = int(other_counts[key])
            if shared_by > _MOST_SHARED:
                continue
            warnings[name] = _warning_of_filled_scores(
                examples,
                called=called,
                score=f"{tally.values[key]:.4g}, or nearly",
                other=other,
                shared_by=shared_by,
            )
            break
    return warnings


def with_filled(filled: str, warnings: Strings) -> Strings:
    """Return warnings with that of one attack, if any: its bound is then near nothing."""
    if not filled:
        return warnings
    other_warnings = [text for text in warnings if not text.startswith(NEAR_CEILING)]
    return (filled, *other_warnings)


def _warning_of_filled_scores(
    examples: int, called: str, score: str, other: str, shared_by: int
) -> str:
    who_shares = f"no {other} has it"
    if shared_by:
        who_shares = f"only one {other} has it"
    return (
        f"all {examples:,} {called}s have the score {score}, and {who_shares}: {FILLED}, the bound "
        "says nothing; score all records in the same way"
    )


def _is_score_of_part(scores: FloatArray, score: float, in_part: BoolArray) -> bool:
    """Return whether all of one part have a value, and almost none of the other.

    Some are looked at before all are.
    """
    for rows in (_FIRST_ROWS, scores.size):
        is_equal = scores[:rows] == score
        part = in_part[:rows]
        if not is_equal[part].all() or np.count_nonzero(is_equal & ~part) > _MOST_SHARED:
            return False
    return True


def assumptions_on_scores(
    claim: Claim,
    others: str,
    output: str,
    units: str,
    order: str,
    of: str = "training",
) -> Assumptions:
    """Return what is assumed of scores of such an output, of options, and of the order.

    `others` are other attacks: see `AnyAttacks.others`.
    """
    return (
        Assumption(
            "scores without membership",
            f"The scores come from the {output} and the {units} only. Which of these {units} were "
            "members was not used to compute or choose a score.",
            "declared",
        ),
        Assumption(
            "options chosen in advance",
            f"All audit options were chosen before membership was known, and {others} tried.",
            "declared",
        ),
        Assumption("guesses ordered by scores only", order, "checked"),
        *family_assumption(claim, of),
    )


def family_assumption(claim: Claim, of: str = "training") -> Assumptions:
    """Return what a bound on a family of trade-off functions assumes; nothing for other claims.

    A bound on the parameter alone, as on ρ of zero-concentrated DP, needs no family.
    """
    if not (isinstance(claim, FAMILIES) and claim.has_epsilon):
        return ()
    return (
        Assumption(
            "family of trade-off functions",
            f"The trade-off function of {of} is a curve of the claimed family, {claim.name}. The "
            f"bound holds within this family: if {of} has another curve, the ε converted from the "
            "rejected curve may be larger than the true ε.",
            "declared",
        ),
    )


def claim_of_replacing(claim: Claim) -> Claim:
    """Return a claim about replacing an example, where it can be about either."""
    if isinstance(claim, EventFamily) and claim.relation == "add_remove":
        raise OptionError(
            "one example is in the place of another here, and the noise of this event is told for "
            'adding or removing one: claims.from_event(event, relation="replace")'
        )
    if isinstance(claim, SubsampledGaussianDP):
        return replace(claim, relation="replace")
    return claim


def refuse_replacing(claim: Claim) -> None:
    """Refuse a claim about replacing an example, where examples are added or not."""
    if isinstance(claim, SubsampledGaussianDP | EventFamily) and claim.relation == "replace":
        message = (
            '{relation="replace"} is for {RandomSplit}: a coin decides whether an example is '
            "added, so the bound is on adding or removing one"
        )
        raise OptionError(Message(message))


def delta_warnings(delta: float, examples: int, unit: str = "example") -> Strings:
    """Say that a δ is no small one for so many examples, or what else `unit` calls them."""
    if delta < 1 / examples:
        return ()
    return (_warning_of_large_delta(delta, examples, unit),)


def _warning_of_large_delta(delta: float, examples: int, unit: str) -> str:
    return (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that publishes one "
        f"whole {unit} can satisfy the claim, and large ε are hard to refute"
    )
