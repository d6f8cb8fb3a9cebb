"""What a bound means for people: how often somebody who has the model can be right."""

import math

from leakbound._base.formatting import plural
from leakbound.report.description import SMALL
from leakbound.results.one_run import AuditResult

# The chance of a fair coin
_FAIR_COIN = 0.5


def plainly(result: AuditResult) -> str:
    """Return the first sentence of a report, without ε; empty where none like it is proved.

    If training is not ε-DP, some outcome is more than e^ε times likelier with some record than
    without it, given all other records. Who sees it, knows these and knew nothing of that record,
    is right about it with probability e^ε / (1 + e^ε) or more; about one of k candidates,
    e^ε / (k - 1 + e^ε). Bounds that hold within a family, on a condition, for several copies at
    once or for runs of a mechanism say less.
    """
    if not _is_stated_plainly(result):
        return ""
    # Of k candidates, a guess is right with probability e^ε / (k - 1 + e^ε).
    candidates = int(result.options.get("k", 2))
    probability_of_right_guess = 1 / (1 + (candidates - 1) * math.exp(-result.bound))
    right_in_hundred = min(99, math.floor(100 * probability_of_right_guess))
    right_by_chance = math.ceil(100 / candidates)
    if right_in_hundred <= right_by_chance:
        return ""
    times = "times"
    if right_by_chance == 1:
        times = "time"
    subject = f"this {result.wording.subject}"
    if result.wording.subject == "generator":
        subject = "the synthetic table"
    return (
        f"Someone who has {subject} and knows all other {_other_records(result)} can guess "
        f"{_guessed_secret(result)}, and be right at least {right_in_hundred} times in 100 (by "
        f"chance: {right_by_chance} {times})."
    )


def _is_stated_plainly(result: AuditResult) -> bool:
    """Return whether a bound is about one record, drawn by a fair coin, and without conditions."""
    if not result.claim.has_epsilon or result.is_withheld or result.wording.is_mechanism:
        return False
    if result.kind != "lower_bound" or not result.refutes or result.bound < SMALL:
        return False
    prior = result.options.get("prior", _FAIR_COIN)
    statuses = {assumption.status for assumption in result.assumptions}
    return prior == _FAIR_COIN and result.copies == 1 and "contradicted" not in statuses


def _guessed_secret(result: AuditResult) -> str:
    """Return what can be guessed about some records, in the words of the design."""
    if result.relation != "add_remove":
        return f"in some cases {result.wording.question.replace(' examples ', ' records ', 1)}"
    records = "records"
    if result.wording.unit != "example":
        records = plural(result.wording.unit)
    return f"for some {records} whether they were in the training data"


def _other_records(result: AuditResult) -> str:
    """Return what was drawn, in the plural."""
    if result.wording.unit == "example":
        return "records"
    return result.wording.units
