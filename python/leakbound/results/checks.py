"""What results of all kinds check in the same way."""

from collections.abc import Callable

from leakbound._base.checks import choice, real
from leakbound._base.types import Kind, Relation, Unit, Verdict
from leakbound.claims import Claim, replacing
from leakbound.errors import OptionError

COMPARED: dict[Relation, str] = {"add_remove": "adding or removing", "replace": "replacing"}
"""What a guarantee compares, as a verb."""


def judged(
    kind: Kind, *, refuted: bool, refutable: Callable[[], bool], withheld: bool = False
) -> Verdict:
    """Return the verdict on a claim: what is refuted, what could have been."""
    if withheld or kind == "exploratory_lower_bound":
        return "inconclusive"
    if refuted:
        return "refuted"
    return "not refuted" if refutable() else "inconclusive"


def check_delta(delta: float, claim: Claim) -> None:
    """Check that a bound on the claim refers to a δ."""
    if real(delta, "delta", least=0, below=1) > claim.delta:
        limit = f"at most {claim.delta:g}" if claim.delta else "only delta = 0"
        message = f"a bound on {claim.name} says nothing about delta = {delta:g}: {limit}"
        raise OptionError(message)


def flaw_of(part: object, *, sound: bool, confidence: float = 0.5) -> str:
    """Return why what was read is no result; empty if it is one."""
    if not 0 < confidence < 1:
        return f"confidence is {confidence:g}, outside (0, 1)"
    return "" if sound else f"the parts of this {type(part).__name__} contradict each other"


def check_comparable(
    audited: tuple[Relation, Unit], stated: tuple[Relation, Unit], *, epsilon: float, delta: float
) -> None:
    """Raise unless bound and accountant's guarantee are about the same change of the data.

    The message says what follows from the guarantee, ε and δ.
    """
    relation, unit = stated
    choice(relation, "relation", Relation)
    choice(unit, "unit", Unit)
    if stated == audited:
        return
    if unit != audited[1]:
        advice = (
            'unit="user" if each audited example is a user, or by group privacy, for at most k '
            "examples of a user, (kε, (e^(kε) - 1)/(e^ε - 1) δ)"
        )
    elif relation == "replace":
        advice = "audit a random split (RandomSplit) for a bound on replacing one"
    else:
        twice, failure = replacing(epsilon, delta)
        advice = (
            "by leakbound.claims.replacing, for replacing one follows (2ε, (1 + e^ε) δ) = "
            f"({twice:.6g}, {failure:.3g}){', which is no guarantee' * (failure >= 1)}"
        )
    message = (
        f"the bound is on {COMPARED[audited[0]]} one {audited[1]}, and the accountant's guarantee "
        f"on {COMPARED[relation]} one {unit}: {advice}"
    )
    raise OptionError(message)
