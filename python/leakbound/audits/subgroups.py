"""Subgroups that labels tell apart: an audit of each, and one error probability for all."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement, instance, integer, vector
from leakbound._base.codes import by_first_row, check_codes
from leakbound._base.formatting import percent
from leakbound._base.types import ArrayInput, GenericArray, IntArray, MemberInput
from leakbound._tally.tally import AnyTally, by_attack
from leakbound.audits.member_count import IMPOSSIBLE
from leakbound.audits.model_features import Features
from leakbound.audits.pairs import TooFewError, torn_group
from leakbound.audits.road import AlignedScores, Request
from leakbound.errors import AbstentionError, DesignError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult

SUBGROUP = ("subgroup", "subgroups", "not_audited")
"""Options of a result that is one of several: its label, how many, and which are not audited."""
# Labels that a message names.
_LISTED = 3
# Of those that cannot be audited, which have to be known to merge them.
_FAILED = 50


def audit_each(
    design: Any,
    read: AlignedScores,
    request: Request,
    by: ArrayInput,
    rowwise: Mapping[str, Any],
) -> dict[Any, AuditResult]:
    """Audit the examples of each label, at an equal share of the error probability.

    `rowwise` has the options of the design that have a value for each row, in their order.

    A label that cannot be audited is left out, and the results of the others say why. All labels
    have their share of the error probability, so that this costs nothing, even where the reason
    reads membership: it is as if the bound were 0, which is never above the truth, and whatever
    the reasons are, the bounds that are false with probability β/k each are at most k.
    """
    order, attacks, member = read
    labels = _labels(order.placed(by, "by"), examples=member.size)
    groups = rowwise.get("groups")
    if groups is not None:
        _check_whole(groups, labels)
    names = np.unique(labels)
    level = shares.SUBGROUPS.of(request.level, names.size)
    _check_sizes(labels, groups, level)
    results: dict[Any, AuditResult] = {}
    failures: dict[Any, LeakboundError] = {}
    for name in names.tolist():
        rows = np.flatnonzero(labels == name)
        given = {one: _taken(values, rows) for one, values in rowwise.items()}
        part = replace(design, member=member[rows], **given)
        ids = None
        if order.told_ids is not None:
            ids = order.told_ids[rows]
        scores: Any = attacks.taken(rows).scores
        if [*scores] == [""]:
            scores = scores[""]
        asked = replace(request, confidence=confidence_at(level), ids=ids)
        try:
            results[name] = part.audit(scores, asked)
        except AbstentionError as error:
            failures[name] = error
        except TooFewError as error:
            failures[name] = error
            _check_apart(labels == name, member, str(name), groups, rowwise.get("strata"))
        except LeakboundError as error:
            message = f"subgroup {name!s:.60} of by: {error}"
            raise type(error)(message, option=error.option) from error
    if not results:
        raise _together(failures, names.size) from next(iter(failures.values()))
    told = _reasons(failures)
    return {name: one_of(one, str(name), names.size, told) for name, one in results.items()}


def _of_units(values: GenericArray, groups: GenericArray | None) -> GenericArray:
    """Return what each row has as what each group of rows has."""
    if groups is None:
        return values
    return values[by_first_row(groups)[1]]


def _check_apart(
    inside: GenericArray,
    member: GenericArray,
    name: str,
    groups: GenericArray | None,
    strata: GenericArray | None,
) -> None:
    """Refuse labels that tell members: those of a subgroup that is on one side of the split.

    If membership had no part in the labels, n units of one label are a random n of all N in their
    stratum: they are all among the M on one side with probability (M choose n) / (N choose n).
    """
    of_label, coins = (_of_units(values, groups) for values in (inside, member))
    size = int(of_label.sum())
    members = int(coins[of_label].sum())
    if members not in {0, size}:
        return
    if strata is None:
        strata = np.zeros(member.size)
    stratum = _of_units(strata, groups)
    log_p = 0.0
    for one in np.unique(stratum[of_label]):
        here = stratum == one
        alike = coins[here] == coins[of_label][0]
        some = int((here & of_label).sum())
        log_p += _log_choose(int(alike.sum()), some) - _log_choose(int(here.sum()), some)
    if log_p >= math.log(IMPOSSIBLE):
        return
    part = "non-members"
    if members:
        part = "members"
    raise DesignError(
        f"subgroup {name:.60} of by: all {size:,} are {part}, where {int(coins.sum()):,} of all "
        f"{coins.size:,} are members. Membership had a part in these labels, and no bound is "
        "computed: give labels that were there before members were drawn, such as regions"
    )


def _log_choose(of: int, some: int) -> float:
    """Return the logarithm of the number of ways to choose some of several."""
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def _reasons(failures: Mapping[Any, LeakboundError]) -> str:
    """Say which labels are not audited, and why; nothing if all are."""
    told = [f"{name!s:.30} ({_first(error)})" for name, error in failures.items()][:_FAILED]
    if len(failures) > _FAILED:
        told.append("…")
    return "; ".join(told)


def _first(error: LeakboundError) -> str:
    """Return what is wrong, without what to do about it."""
    return str(error).partition(": ")[0]


def of_single_examples(
    member: MemberInput | None, scores: object, counted: type[AnyTally]
) -> MemberInput:
    """Return membership of single examples; what is counted has no subgroups."""
    if member is None or by_attack(scores, counted) is not None:
        raise OptionError("by= needs single examples and their member: a tally has counts")
    return member


def _taken(values: Any, rows: IntArray) -> Any:
    """Return the rows of an option, if it was given."""
    if values is None:
        return None
    if isinstance(values, Features):
        return values.taken(rows)
    return values[rows]


def _together(failures: Mapping[Any, LeakboundError], labels: int) -> LeakboundError:
    """Return one error about all labels whose examples cannot be audited."""
    (first, error), *_ = failures.items()
    listed = [f"{name!s:.30}" for name in failures][:_FAILED]
    if len(failures) > _FAILED:
        listed.append("…")
    message = (
        f"subgroup {first!s:.60} of by: {error}. Of {labels:,} labels, {len(failures):,} cannot be "
        f"audited ({', '.join(listed)}): merge them into others or drop their examples, by a rule "
        "without membership"
    )
    return type(error)(message, option=error.option)


def one_of(
    result: AuditResult, subgroup: str, subgroups: int, not_audited: str = ""
) -> AuditResult:
    """Return the result of one of several subgroups, which says so, and which are not audited."""
    instance(subgroup, name="subgroup", types=str)
    instance(not_audited, name="not_audited", types=str)
    integer(subgroups, name="subgroups", least=1)
    together = percent(max(0.0, 1 - subgroups * complement(result.confidence)))
    statement = (
        f"This is subgroup {subgroup} of {subgroups}. Who was a member had no part in the labels. "
        "Each subgroup has an equal share of the error probability, so that all bounds hold "
        f"together with {together} confidence."
    )
    options = {**result.options, "subgroup": subgroup, "subgroups": subgroups}
    if not_audited:
        statement += f" Not audited, each with its share: {not_audited}."
        options["not_audited"] = not_audited
    assumption = Assumption("labels without membership", statement, "declared")
    wording = replace(
        result.wording,
        drawn=f"{result.wording.drawn}, subgroup {subgroup} of {subgroups}",
        chance=f"{result.wording.chance}; {together} for all {subgroups} subgroups together",
    )
    return replace(
        result,
        options=options,
        assumptions=(*result.assumptions, assumption),
        wording=wording,
    )


def labels_of_subgroups(by: ArrayInput, groups: ArrayInput | None) -> GenericArray:
    """Return the label of each example, or of each group of rows."""
    size = len(vector(by, name="by", kinds="biufSUO"))
    labels = _labels(by, examples=size)
    if groups is None:
        return labels
    codes = check_codes(groups, examples=size, name="groups")
    _check_whole(codes, labels)
    return labels[by_first_row(codes)[1]]


def confidence_at(level: float) -> float:
    """Return the confidence whose probability of error is not above a level."""
    confidence = 1 - level
    while complement(confidence) > level:
        confidence = math.nextafter(confidence, 1.0)
    return confidence


def _labels(by: ArrayInput, examples: int) -> GenericArray:
    """Read the label of each row, none missing."""
    return check_codes(
        by, examples=examples, name="by", cure="give each example a label, such as 'unknown'"
    )


def _check_whole(groups: GenericArray, labels: GenericArray) -> None:
    """Refuse groups whose rows have several labels."""
    torn = torn_group(groups, labels)
    if torn is not None:
        raise DesignError(
            f"{torn.torn:,} of {torn.of:,} groups have several labels in by, the first being "
            f"{torn.name!s:.60} (rows {torn.first} and {torn.other}): give all rows of a group one "
            "label"
        )


def _check_sizes(labels: GenericArray, groups: GenericArray | None, level: float) -> None:
    """Refuse labels of which none has enough units for any bound."""
    names, sizes = np.unique(_of_units(labels, groups), return_counts=True)
    largest = int(sizes.max())
    # A perfect attack on n units is right in all guesses with probability 2⁻ⁿ where nothing leaks.
    if 2.0**-largest < level:
        return
    shown = ", ".join(f"{name!s:.30}" for name in names[:_LISTED])
    if names.size > _LISTED:
        shown += ", …"
    raise DesignError(
        f"by has {names.size:,} labels ({shown}), and the largest subgroup has {largest:,}: at "
        f"1/{names.size:,} of the error probability even a perfect attack proves nothing. Use "
        "fewer labels; leakbound.planning.ceilings says what each subgroup can prove"
    )
