"""What a bound means for people: how often somebody who has the model can be right."""

import math

from leakbound._base.formatting import plural
from leakbound.report.description import SMALL
from leakbound.results.one_run import AuditResult

# The chance of a fair coin
_FAIR = 0.5


def plainly(result: AuditResult) -> str:
    """Return the first sentence of a report, without ε; empty where none like it is proved.

    If training is not ε-DP, some outcome is more than e^ε times likelier with some record than
    without it, given all other records. Who sees it, knows these and knew nothing of that record,
    is right about it with probability e^ε / (1 + e^ε) or more; about one of k candidates,
    e^ε / (k - 1 + e^ε). Bounds that hold within a family, on a condition, for several copies at
    once or for runs of a mechanism say less.
    """
    options = result.options
    even = options.get("prior", _FAIR) == _FAIR and result.copies == 1
    stated = result.kind == "lower_bound" and result.refutes and result.bound >= SMALL
    if not result.claim.has_epsilon:
        return ""
    if not (even and stated) or result.is_withheld or result.wording.is_mechanism:
        return ""
    if any(one.status == "contradicted" for one in result.assumptions):
        return ""
    candidates = int(options.get("k", 2))
    right = 1 / (1 + (candidates - 1) * math.exp(-result.bound))
    often = min(99, math.floor(100 * right))
    guessing = math.ceil(100 / candidates)
    if often <= guessing:
        return ""
    times = "times"
    if guessing == 1:
        times = "time"
    subject = f"this {result.wording.subject}"
    if result.wording.subject == "generator":
        subject = "the synthetic table"
    return (
        f"Someone who has {subject} and knows all other {_many(result)} can guess {_told(result)}, "
        f"and be right at least {often} times in 100 (by chance: {guessing} {times})."
    )


def _told(result: AuditResult) -> str:
    """Return what can be told of some, in the words of the design."""
    if result.relation != "add_remove":
        return f"in some cases {result.wording.question.replace(' examples ', ' records ', 1)}"
    many = "records"
    if result.wording.unit != "example":
        many = plural(result.wording.unit)
    return f"for some {many} whether they were in the training data"


def _many(result: AuditResult) -> str:
    """Return what was drawn, in the plural."""
    if result.wording.unit == "example":
        return "records"
    return result.wording.units
