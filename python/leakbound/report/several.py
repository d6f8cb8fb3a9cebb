"""What is said of several models together: at a confidence that covers all of their bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from leakbound._base.formatting import number, percent
from leakbound.report.description import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from leakbound.report.description import Description, Terms


def subject_of(said: Iterable[Description]) -> str:
    """Return what the results are of: of models, where they are not all of the same."""
    subjects = {one.subject for one in said}
    return subjects.pop() if len(subjects) == 1 else "model"


def joint_confidence(said: Iterable[Description]) -> float:
    """Return the confidence at which all bounds hold together, whatever their dependence."""
    return max(0.0, 1 - sum(1 - one.confidence for one in said if KINDS[one.kind].proves))


def headline_of_many(said: Mapping[str, Description]) -> str:
    """Return the verdict on several models, or generators: how many leak, and which one most.

    To name the worst of several is a statement about all of them, so its confidence is the joint
    one: audits at confidence 1 - 0.05/n each let it be 95 %. What any of the bounds is conditional
    on, the headline is too.
    """
    proved = {name: one for name, one in said.items() if one.refutes}
    counted = f"{len(said)} {subject_of(said.values())}s"
    if not proved:
        return f"Nothing could be refuted on any of the {counted}."
    together = joint_confidence(said.values())
    if together <= 0:
        return (
            f"Nothing is claimed of the {counted} together: each bound has its own "
            "probability of error, and these add up to 1. Audit each at a confidence of "
            f"1 - 0.05/{len(said)}."
        )
    sure = f"({percent(together)} confidence, simultaneously over the {counted})"
    most = max(proved, key=lambda name: proved[name].epsilon)
    worst, epsilon = proved[most].terms, number(proved[most].epsilon)
    conditional = replace(worst, condition=_together(one.terms for one in proved.values()))
    leaking = sum(one.leaks for one in proved.values())
    if not leaking:
        return conditional.conditional(
            f"Little is proved on the {counted}: at most, ε is at least "
            f"{epsilon}{worst.at}{worst.within} on “{most}” {sure}."
        )
    share = "All" if leaking == len(said) else f"{leaking} of"
    end = "; the" if conditional.condition else ". The"
    return conditional.conditional(
        f"{share} {counted} leak{end} worst is “{most}”: no {worst.guarantee} "
        f"with ε < {epsilon}{worst.at} is compatible with its audit {sure}."
    )


def _together(terms: Iterable[Terms]) -> str:
    """Return all that has to hold for some bounds, each condition once."""
    conditions = dict.fromkeys(one.condition for one in terms if one.condition)
    first, *others = conditions or [""]
    return first + "".join(f", and {one.removeprefix('if ')}" for one in others)
