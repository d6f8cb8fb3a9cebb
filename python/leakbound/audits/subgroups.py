"""Subgroups that labels tell apart: an audit of each, and one error probability for all."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement, instance, integer, vector
from leakbound._base.formatting import percent
from leakbound._base.labels import by_first_row, check_codes
from leakbound._base.messages import Message
from leakbound._base.numerics import log_choose
from leakbound._base.types import ArrayInput, Data, GenericArray, IntArray, MemberInput, Named
from leakbound._tally.tally import AnyTally, by_attack
from leakbound.audits.member_count import IMPOSSIBLE
from leakbound.audits.model_inputs import Features
from leakbound.audits.pairs import torn_group
from leakbound.audits.road import AlignedScores, AnyDesign, Listed, Request
from leakbound.errors import AbstentionError, DesignError, LeakboundError, OptionError
from leakbound.results import Assumption, AuditResult

SUBGROUP = ("subgroup", "subgroups", "not_audited")
"""Options of a result that is one of several: its label, how many, and which are not audited."""
# Labels that a message names.
_LISTED_LABELS = 3
# Of those that cannot be audited, which have to be known to merge them.
_LISTED_FAILURES = 50
_LABELS_BEFORE_MEMBERSHIP = (
    "Labels must be fixed before members are drawn, as regions are, and not depend on membership"
)


def audit_each(
    design: AnyDesign,
    aligned_scores: AlignedScores,
    request: Request,
    by: ArrayInput,
    rowwise: Named,
) -> dict[Any, AuditResult]:
    """Audit the examples of each label, at an equal share of the error probability.

    `rowwise` has the options of the design that have a value for each row, in their order.

    A label that cannot be audited is left out, and the results of the others say why. It keeps its
    share of the error probability: so what is left out may depend on membership. Whatever decides
    which bounds are reported, one of them is false only if one of all k would be, each with
    probability β/k at most.
    """
    member = aligned_scores.member
    labels = _checked_labels(aligned_scores.order.placed(by, "by"), examples=member.size)
    groups = rowwise.get("groups")
    if groups is not None:
        _check_groups_have_one_label(groups, labels)
    distinct_labels = np.unique(labels)
    subgroup_level = shares.SUBGROUPS.of(request.level, distinct_labels.size)
    _check_largest_subgroup(labels, groups, subgroup_level)
    stratum_of_rows = rowwise.get("strata")
    if stratum_of_rows is None:
        stratum_of_rows = np.zeros(member.size)
    sides_of_units = _SidesOfUnits(
        member=_values_of_units(member, groups),
        stratum=_values_of_units(stratum_of_rows, groups),
    )
    results_by_label = dict[object, AuditResult]()
    errors_by_label = dict[object, LeakboundError]()
    for label in distinct_labels.tolist():
        subgroup = _rows_of_subgroup(
            design, aligned_scores, np.flatnonzero(labels == label), rowwise
        )
        confidence = confidence_at(subgroup_level)
        subgroup_request = replace(request, confidence=confidence, ids=subgroup.ids)
        try:
            results_by_label[label] = subgroup.design.audit(subgroup.scores, subgroup_request)
        except AbstentionError as error:
            errors_by_label[label] = error
        except LeakboundError as error:
            in_subgroup = _values_of_units(labels, groups) == label
            if isinstance(error, DesignError) and sides_of_units.are_one_by_chance(in_subgroup):
                errors_by_label[label] = error
                continue
            message = Message("subgroup {name!s:.60} of by: {error}", name=label, error=error)
            if isinstance(error, DesignError):
                message = Message(
                    "{text}. {before}", text=message, before=_LABELS_BEFORE_MEMBERSHIP
                )
            raise type(error)(message, option=error.option) from error
    if not results_by_label:
        first_failure = next(iter(errors_by_label.values()))
        raise _error_of_all_subgroups(errors_by_label, distinct_labels.size) from first_failure
    not_audited = _reasons_not_audited(errors_by_label)
    return {
        label: one_of(result, str(label), subgroups=distinct_labels.size, not_audited=not_audited)
        for label, result in results_by_label.items()
    }


class _Subgroup(NamedTuple):
    """The examples of one label: their design, scores and ids."""

    design: AnyDesign
    scores: Listed
    ids: GenericArray | None = None


def _rows_of_subgroup(
    design: Any, aligned_scores: AlignedScores, rows_of_subgroup: IntArray, rowwise: Named
) -> _Subgroup:
    """Return the examples in some rows."""
    options_of_rows = {
        option: _option_of_rows(values, rows_of_subgroup) for option, values in rowwise.items()
    }
    ids = None
    if aligned_scores.order.told_ids is not None:
        ids = aligned_scores.order.told_ids[rows_of_subgroup]
    scores_by_attack = aligned_scores.attacks.taken(rows_of_subgroup).scores
    scores: Listed = scores_by_attack
    if aligned_scores.attacks.alone:
        scores = scores_by_attack[""]
    design_of_rows = replace(
        design, member=aligned_scores.member[rows_of_subgroup], **options_of_rows
    )
    return _Subgroup(design_of_rows, scores, ids)


def _values_of_units(values: GenericArray, groups: GenericArray | None) -> GenericArray:
    """Return what each row has as what each group of rows has."""
    if groups is None:
        return values
    _, first_rows, _ = by_first_row(groups)
    return values[first_rows]


@dataclass(frozen=True, eq=False)
class _SidesOfUnits:
    """The sides of the split on which the units of each stratum are."""

    member: GenericArray
    stratum: GenericArray

    def are_one_by_chance(self, in_subgroup: GenericArray) -> bool:
        """Return whether units of one label are on one side of each stratum, or one, by chance.

        If membership had no part in the labels, n units of one label are a random n of all N in
        their stratum: they are all among the M on one side with probability
        (M choose n) / (N choose n).
        """
        log_p_value = 0.0
        for stratum in np.unique(self.stratum[in_subgroup]):
            in_stratum = self.stratum == stratum
            sides = self.member[in_stratum & in_subgroup]
            if (sides != sides[0]).any():
                return False
            sides_of_stratum = self.member[in_stratum]
            on_this_side = int((sides_of_stratum == sides[0]).sum())
            log_p_value += log_choose(on_this_side, sides.size)
            log_p_value -= log_choose(sides_of_stratum.size, sides.size)
        return log_p_value >= math.log(IMPOSSIBLE)


def _reasons_not_audited(failures: Mapping[object, LeakboundError]) -> str:
    """Say which labels are not audited, and why; nothing if all are."""
    reasons = list[str]()
    for name, error in failures.items():
        problem, _, _ = str(error).partition(": ")  # without what to do about it
        reasons.append(f"{name!s:.30} ({problem})")
    if len(reasons) > _LISTED_FAILURES:
        reasons[_LISTED_FAILURES:] = ["…"]
    return "; ".join(reasons)


def membership_of_single_examples(
    member: MemberInput | None, scores: object, counted: type[AnyTally]
) -> MemberInput:
    """Return membership of single examples; what is counted has no subgroups."""
    if member is None or by_attack(scores, counted) is not None:
        raise OptionError(
            Message("{by=} needs single examples and their member: a tally has counts")
        )
    return member


def _option_of_rows(values: Data, rows: IntArray) -> Data:
    """Return the rows of an option, if it was given."""
    if values is None:
        return None
    if isinstance(values, Features):
        return values.taken(rows)
    return values[rows]


def _error_of_all_subgroups(
    errors_by_label: Mapping[object, LeakboundError], subgroups: int
) -> LeakboundError:
    """Return one error about all labels whose examples cannot be audited."""
    (first_label, first_error), *_ = errors_by_label.items()
    listed_names = [f"{name!s:.30}" for name in errors_by_label][:_LISTED_FAILURES]
    if len(errors_by_label) > _LISTED_FAILURES:
        listed_names.append("…")
    message = Message(
        "subgroup {first!s:.60} of by: {error}. Of {labels:,} labels, {failed:,} cannot be "
        "audited ({listed}): merge them into others or drop their examples, by a rule "
        "without membership",
        first=first_label,
        error=first_error,
        labels=subgroups,
        failed=len(errors_by_label),
        listed=", ".join(listed_names),
    )
    return type(first_error)(message, option=first_error.option)


def one_of(
    result: AuditResult, subgroup: str, subgroups: int, not_audited: str = ""
) -> AuditResult:
    """Return the result of one of several subgroups, which says so, and which are not audited."""
    instance(subgroup, name="subgroup", types=str)
    instance(not_audited, name="not_audited", types=str)
    integer(subgroups, name="subgroups", least=1)
    # The union bound over all subgroups.
    confidence_of_all = max(0.0, 1 - subgroups * complement(result.confidence))
    percentage = percent(confidence_of_all)
    statement = (
        f"This is subgroup {subgroup} of {subgroups}. The labels do not depend on membership. "
        "Each subgroup has an equal share of the error probability, so that all bounds hold "
        f"together with {percentage} confidence."
    )
    options = {**result.options, "subgroup": subgroup, "subgroups": subgroups}
    if not_audited:
        statement += f" Not audited, each with its share: {not_audited}."
        options["not_audited"] = not_audited
    assumption = Assumption("labels without membership", statement, "declared")
    wording = replace(
        result.wording,
        drawn=f"{result.wording.drawn}, subgroup {subgroup} of {subgroups}",
        chance=f"{result.wording.chance}; {percentage} for all {subgroups} subgroups together",
    )
    return replace(
        result,
        options=options,
        assumptions=(*result.assumptions, assumption),
        wording=wording,
    )


def labels_of_subgroups(by: ArrayInput, groups: ArrayInput | None) -> GenericArray:
    """Return the label of each example, or of each group of rows."""
    examples = len(vector(by, name="by", kinds="biufSUO"))
    labels = _checked_labels(by, examples=examples)
    if groups is None:
        return labels
    group_codes = check_codes(groups, examples=examples, name="groups")
    _check_groups_have_one_label(group_codes, labels)
    return _values_of_units(labels, group_codes)


def confidence_at(level: float) -> float:
    """Return the confidence whose probability of error is not above a level."""
    confidence = 1 - level
    while complement(confidence) > level:
        confidence = math.nextafter(confidence, 1.0)
    return confidence


def _checked_labels(by: ArrayInput, examples: int) -> GenericArray:
    """Read the label of each row, none missing."""
    return check_codes(
        by, examples=examples, name="by", cure="give each example a label, such as 'unknown'"
    )


def _check_groups_have_one_label(groups: GenericArray, labels: GenericArray) -> None:
    """Refuse groups whose rows have several labels."""
    torn = torn_group(groups, labels)
    if torn is not None:
        raise DesignError(
            f"{torn.torn:,} of {torn.of:,} groups have several labels in by, the first being "
            f"{torn.name!s:.60} (rows {torn.first} and {torn.other}): give all rows of a group one "
            "label"
        )


def _check_largest_subgroup(
    labels: GenericArray, groups: GenericArray | None, level: float
) -> None:
    """Refuse labels of which none has enough units for any bound."""
    labels_of_units = _values_of_units(labels, groups)
    distinct_labels, subgroup_sizes = np.unique(labels_of_units, return_counts=True)
    largest_size = int(subgroup_sizes.max())
    # A perfect attack on n units is right in all guesses with probability 2⁻ⁿ where nothing leaks.
    if 2.0**-largest_size < level:
        return
    listed_names = ", ".join(f"{label!s:.30}" for label in distinct_labels[:_LISTED_LABELS])
    if distinct_labels.size > _LISTED_LABELS:
        listed_names += ", …"
    raise DesignError(
        f"by has {distinct_labels.size:,} labels ({listed_names}), and the largest subgroup has "
        f"{largest_size:,}: at 1/{distinct_labels.size:,} of the error probability even a perfect "
        "attack proves nothing. Use fewer labels; leakbound.planning.ceilings says what each "
        "subgroup can prove"
    )
