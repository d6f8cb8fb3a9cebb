"""An accountant's guarantee beside what an audit proves: of one relation, and of one unit."""

from leakbound._base.checks import choice
from leakbound._base.types import Relation, Unit
from leakbound.claims import replacing
from leakbound.errors import IncompatibleOptionsError
from leakbound.results.words import COMPARED

_SPLIT = 'audit a random split (design="random_split") for a bound on replacing one'


def check_comparable(
    audited: tuple[Relation, Unit],
    stated: tuple[Relation, Unit],
    *,
    epsilon: float,
    delta: float,
) -> None:
    """Raise unless both are about the same change of the data; the message says what follows.

    Parameters
    ----------
    audited, stated : tuple of Relation and Unit
        What the bound is about, and what the accountant's guarantee is about.
    epsilon, delta : float
        That guarantee.

    Raises
    ------
    IncompatibleOptionsError
        If they differ.
    OptionError
        If there is no such relation or unit.
    """
    relation, unit = stated
    choice(relation, "relation", Relation)
    choice(unit, "unit", Unit)
    if stated == audited:
        return
    said = (
        f"the bound is on {_words(*audited)}, and the accountant's guarantee on "
        f"{_words(relation, unit)}"
    )
    advice = _between_units(unit) if unit != audited[1] else _between(relation, epsilon, delta)
    message = f"{said}: {advice}"
    raise IncompatibleOptionsError(message)


def _words(relation: Relation, unit: Unit) -> str:
    return f"{COMPARED[relation]} one {unit}"


def _between(relation: Relation, epsilon: float, delta: float) -> str:
    """Say what a guarantee of the other relation is worth."""
    if relation == "replace":
        return f"it says nothing about adding or removing; {_SPLIT}"
    twice, failure = replacing(epsilon, delta)
    worth = f"(2ε, (1 + e^ε) δ) = ({twice:.6g}, {failure:.3g})"
    if failure >= 1:
        return f"what follows for replacing is {worth}, which is no guarantee; {_same_relation()}"
    return (
        f"what follows for replacing is {worth}, by leakbound.claims.replacing; pass that with "
        f'relation="replace", or {_same_relation()}'
    )


def _same_relation() -> str:
    return "have the accountant state ε for replacing one"


def _between_units(unit: Unit) -> str:
    if unit == "example":
        return (
            "for a user of at most k examples follows (kε, (e^(kε) - 1)/(e^ε - 1) δ), by group "
            'privacy; pass that with unit="user"'
        )
    return (
        "where each audited example is a user by itself it holds as it is; pass it with "
        'unit="example"'
    )
