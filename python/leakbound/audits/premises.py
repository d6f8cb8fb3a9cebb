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
_RUNS = 16
# Draws that would all have to agree with earlier ones by chance: once in 10⁹
_AGREEING = 30
# Values that are compared before all are, and whose runs are looked at first
_FIRST = 64
_HEAD = 4096
# Examples of a part whose one score is no accident
_MANY = 8
# Examples of the other part that may have it: it may be their lowest, or their median
_SHARED = 1


def refuse_repeated(drawn: GenericArray, what: str, cure: str) -> None:
    """Refuse draws that are those of fewer units, repeated or tiled as copied rows are."""
    found = repeated(drawn)
    if found is not None:
        raise DesignError(_of_fewer(drawn.size, found, what, cure))


def _of_fewer(rows: int, found: tuple[str, int, int], what: str, cure: str) -> str:
    """Say that the draws of some rows are those of fewer units, and what to do."""
    word, units, times = found
    message = (
        "{what} of these {rows:,} rows is that of {units:,}, {word} {times:,} times: separate "
        "draws for each row cannot give this. Several rows of one unit share its draw: {cure}"
    )
    counts = {"rows": rows, "units": units, "times": times}
    return Message(message, what=what, word=word, cure=cure, **counts)


def repeated(drawn: GenericArray) -> tuple[str, int, int] | None:
    """Return whether draws are shorter ones "repeated" or "tiled", how many, and how often.

    As by ``numpy.repeat``, where each draw stands several times in a row, or by ``numpy.tile``,
    where all stand one behind the other again. The shorter ones must look like draws: rows that are
    sorted by class and part are no copies.
    """
    size = drawn.size
    times = _common(drawn[:_HEAD], size)
    if times > 1 and size > _HEAD:  # hardly ever: all changes of large data take memory
        times = _common(drawn, size)
    period = _period(drawn)
    for how, shorter in (("repeated", drawn[::times]), ("tiled", drawn[:period])):
        if size - shorter.size >= _AGREEING and looks_drawn(shorter):
            return how, shorter.size, size // shorter.size
    return None


def _common(drawn: GenericArray, size: int) -> int:
    """Return the largest length of which all runs of one value are multiples, and all rows."""
    of_changes = np.gcd.reduce(_changes(drawn), initial=0)
    return math.gcd(size, int(of_changes))


def _changes(drawn: GenericArray) -> IntArray:
    """Return where another value begins."""
    places: IntArray = np.flatnonzero(drawn[1:] != drawn[:-1]) + 1
    return places


def looks_drawn(drawn: GenericArray) -> bool:
    """Return whether values change as draws do, and are not a short pattern."""
    pattern = drawn[: _period(drawn)]
    runs = _changes(pattern).size + 1
    return runs >= _RUNS


def _period(drawn: GenericArray) -> int:
    """Return the shortest length whose copies make all values; that of all if none does."""
    size = drawn.size
    parts = [part for part in range(1, math.isqrt(size) + 1) if size % part == 0]
    for period in sorted({*parts, *(size // part for part in parts)}):
        rest = drawn[period:]
        first = rest[:_FIRST]
        if not np.array_equal(first, drawn[: first.size]):
            continue
        if np.array_equal(rest, drawn[: rest.size]):
            return period
    return size


def filled(
    attacks: Mapping[str, FloatArray],
    member: BoolArray,
    parts: tuple[str, str] = ("member", "non-member"),
) -> dict[str, str]:
    """Return a warning for each attack whose scores tell one part by a value that all of it has.

    `parts` are the words for one member and for one non-member.
    """
    said = {}
    for name, values in attacks.items():
        for inside, called, other in ((~member, *parts[::-1]), (member, *parts)):
            value = values[int(np.argmax(inside))]
            if _told_apart(values, value=value, inside=inside):
                found = _of_one_value(values, inside, called=called, other=other)
                if found:
                    said[name] = found
                    break
    return said


def _of_one_value(values: FloatArray, inside: BoolArray, called: str, other: str) -> str:
    """Say that all of one part have a value; "" of few, or if others have one value, too."""
    size = int(np.count_nonzero(inside))
    others = values[~inside]
    # of two values in all, the score may be a guess, and a right one
    if size < _MANY or not others.size or others.min() == others.max():
        return ""
    value = values[int(np.argmax(inside))]
    shared = int(np.count_nonzero(others == value))
    return _words(size, called=called, value=f"{value:g}", other=other, shared=shared)


def filled_choices(attacks: Mapping[str, FloatArray], chosen: IntArray, k: int) -> dict[str, str]:
    """Return the same of scores of candidates: those that were drawn, and all others."""
    drawn = (np.arange(k) == chosen[:, None]).ravel()
    listed = {name: values.ravel() for name, values in attacks.items()}
    return filled(listed, member=drawn, parts=("drawn candidate", "other candidate"))


def filled_tallies(tallies: Mapping[str, Tally]) -> dict[str, str]:
    """Return the same of scores that are counted: all of one part have one key."""
    said = {}
    for name, tally in tallies.items():
        members = tally.members_at
        others = tally.examples_at - tally.members_at
        for here, there, called, other in (
            (others, members, "non-member", "member"),
            (members, others, "member", "non-member"),
        ):
            keys = np.flatnonzero(here)
            size = int(here.sum())
            among = np.count_nonzero(there)
            if keys.size != 1 or size < _MANY or among <= 1 or there[keys[0]] > _SHARED:
                continue
            value = f"{tally.values[keys[0]]:.4g}, or nearly"
            said[name] = _words(
                size, called=called, value=value, other=other, shared=int(there[keys[0]])
            )
            break
    return said


def with_filled(filled: str, warnings: Strings) -> Strings:
    """Return warnings with that of one attack, if any: its bound is then near nothing."""
    if not filled:
        return warnings
    return (filled, *(text for text in warnings if not text.startswith(NEAR_CEILING)))


def _words(size: int, called: str, value: str, other: str, shared: int) -> str:
    who = f"no {other} has it"
    if shared:
        who = f"only one {other} has it"
    return (
        f"all {size:,} {called}s have the score {value}, and {who}: {FILLED}, the bound says "
        "nothing; score all records in the same way"
    )


def _told_apart(values: FloatArray, value: float, inside: BoolArray) -> bool:
    """Return whether all of one part have a value, and almost none of the other.

    Some are looked at before all are.
    """
    for end in (_FIRST, values.size):
        equal = values[:end] == value
        part = inside[:end]
        if not equal[part].all() or np.count_nonzero(equal & ~part) > _SHARED:
            return False
    return True


def assumed(
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
            "rejected curve may be above the truth.",
            "declared",
        ),
    )


def of_replacing(claim: Claim) -> Claim:
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
    return (_large_delta(delta, examples, unit),)


def _large_delta(delta: float, examples: int, unit: str) -> str:
    return (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that publishes one "
        f"whole {unit} can satisfy the claim, and large ε are hard to refute"
    )
