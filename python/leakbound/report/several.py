"""What is said of several models together: at a confidence that covers all of their bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leakbound._base.formatting import number, percent
from leakbound.report.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from leakbound.report.contents import Reportable

__all__ = ["headline_of_many", "joint_confidence"]


def joint_confidence(results: Iterable[Reportable]) -> float:
    """Return the confidence at which all bounds hold together, whatever their dependence.

    Parameters
    ----------
    results : iterable of result
        Their probabilities of error add up; an estimate proves nothing and adds none.

    Returns
    -------
    float
        At least 0.
    """
    return max(0.0, 1 - sum(1 - one.confidence for one in results if KINDS[one.kind].proves))


def headline_of_many(results: Mapping[str, Reportable]) -> str:
    """Return the verdict on several models: how many leak, and which one most.

    To name the worst of several is a statement about all of them, so its confidence is the joint
    one: audits at confidence 1 - β/n each let it be 1 - β.

    Parameters
    ----------
    results : mapping of str to result
        At least two results by name.

    Returns
    -------
    str
        One or two sentences.
    """
    proved = {
        name: summary
        for name, result in results.items()
        for summary in [result.summary()]
        if KINDS[result.kind].proves and summary.epsilon > 0
    }
    if not proved:
        return f"Nothing could be refuted on any of the {len(results)} models."
    together = joint_confidence(results.values())
    if together <= 0:
        return (
            f"Nothing is claimed of the {len(results)} models together: each bound has its own "
            "probability of error, and these add up to 1. Audit each at a confidence of "
            f"1 - 0.05/{len(results)}."
        )
    sure = f"({percent(together)} confidence, simultaneously over the {len(results)} models)"
    most = max(proved, key=lambda name: proved[name].epsilon)
    worst = proved[most]
    leaking = sum(summary.leaks for summary in proved.values())
    if not leaking:
        return (
            f"Little is proved on the {len(results)} models: at most, ε is at least "
            f"{number(worst.epsilon)} on “{most}” {sure}."
        )
    share = (
        f"All {len(results)} models leak"
        if leaking == len(results)
        else f"{leaking} of {len(results)} models leak"
    )
    return (
        f"{share}. The worst is “{most}”: no {worst.guarantee} guarantee with "
        f"ε < {number(worst.epsilon)} is compatible with its audit {sure}."
    )
