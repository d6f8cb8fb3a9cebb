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
from leakbound._base.messages import Message
from leakbound._base.types import ArrayInput, GenericArray, IntArray, MemberInput
from leakbound._tally.tally import AnyTally, by_attack
from leakbound.audits.model_features import Features
from leakbound.audits.pairs import torn_group
from leakbound.audits.road import AlignedScores, Request
from leakbound.errors import AbstentionError, DesignError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult

SUBGROUP = ("subgroup", "subgroups")
"""Options of a result that is one of several: its label as text, and how many there are."""
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
            results[name] = one_of(part.audit(scores, asked), str(name), names.size)
        except (AbstentionError, DesignError) as error:
            failures[name] = error  # such as too few examples: said of all labels at once
        except LeakboundError as error:
            message = Message("subgroup {name!s:.60} of by: {error}", name=name, error=error)
            raise type(error)(message, option=error.option) from error
    if failures:
        raise _together(failures, names.size) from next(iter(failures.values()))
    return results


def of_single_examples(
    member: MemberInput | None, scores: object, counted: type[AnyTally]
) -> MemberInput:
    """Return membership of single examples; what is counted has no subgroups."""
    if member is None or by_attack(scores, counted) is not None:
        raise OptionError(
            Message("{by=} needs single examples and their member: a tally has counts")
        )
    return member


def _taken(values: Any, rows: IntArray) -> Any:
    """Return the rows of an option, if it was given."""
    if values is None:
        return None
    if isinstance(values, Features):
        return values.taken(rows)
    return values[rows]


def _together(failures: Mapping[object, LeakboundError], labels: int) -> LeakboundError:
    """Return one error about all labels whose examples cannot be audited."""
    (first, error), *_ = failures.items()
    listed = [f"{name!s:.30}" for name in failures][:_FAILED]
    if len(failures) > _FAILED:
        listed.append("…")
    message = Message(
        "subgroup {first!s:.60} of by: {error}. Of {labels:,} labels, {failed:,} cannot be "
        "audited ({listed}): merge them into others or drop their examples, by a rule "
        "without membership",
        first=first,
        error=error,
        labels=labels,
        failed=len(failures),
        listed=", ".join(listed),
    )
    return type(error)(message, option=error.option)


def one_of(result: AuditResult, subgroup: str, subgroups: int) -> AuditResult:
    """Return the result of one of several subgroups, which says so."""
    instance(subgroup, name="subgroup", types=str)
    integer(subgroups, name="subgroups", least=1)
    together = percent(max(0.0, 1 - subgroups * complement(result.confidence)))
    assumption = Assumption(
        name="labels without membership",
        statement=f"This is subgroup {subgroup} of {subgroups}. Who was a member had no part in "
        "the labels. Each subgroup has an equal share of the error probability, so that all "
        f"bounds hold together with {together} confidence.",
        status="declared",
    )
    wording = replace(
        result.wording,
        drawn=f"{result.wording.drawn}, subgroup {subgroup} of {subgroups}",
        chance=f"{result.wording.chance}; {together} for all {subgroups} subgroups together",
    )
    return replace(
        result,
        options={**result.options, "subgroup": subgroup, "subgroups": subgroups},
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
    if groups is not None:
        labels = labels[by_first_row(groups)[1]]
    names, sizes = np.unique(labels, return_counts=True)
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
