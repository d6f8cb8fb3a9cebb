"""What was drawn, and how often a member was inserted: as stated, or as a plan has it."""

from leakbound._base.checks import integer, shown
from leakbound._base.messages import Message
from leakbound.errors import InputTypeError, OptionError

# Letters of the word for a unit, at most.
_UNIT = 30


def check_unit(unit: object) -> str:
    """Check the one word for what is added, removed or replaced, such as "user"."""
    if not isinstance(unit, str):
        raise InputTypeError(
            f"unit must be a word such as 'user', got {shown(unit)}", option="unit"
        )
    if not unit.replace("-", "").isalpha() or len(unit) > _UNIT:
        raise OptionError(
            f"unit must be a singular noun of one word and at most {_UNIT} letters, such as "
            f"'user', 'hospital' or 'web-page', got {shown(unit)}",
            option="unit",
        )
    return unit


def unit_of(drawn: object, unit: str | None, *, grouped: bool) -> str:
    """Return what is drawn: as stated, as a plan has it, a user with groups, or an example."""
    planned_unit = str(getattr(drawn, "unit", "example"))
    if unit is not None:
        return _stated_unit(unit, planned_unit)
    if grouped and planned_unit == "example":
        return "user"
    return planned_unit


def _stated_unit(unit: str, planned_unit: str) -> str:
    """Return what is drawn as stated, unless a plan has another unit."""
    stated_unit = check_unit(unit)
    if planned_unit not in {"example", stated_unit}:
        raise OptionError(
            f"unit is {stated_unit!r}, and the plan was drawn for each {planned_unit}: leave unit "
            "out",
            option="unit",
        )
    return stated_unit


def copies_of(drawn: object, copies: int | None) -> int:
    """Return how often each member was inserted: as stated, as a plan has it, or once."""
    planned_copies = int(getattr(drawn, "copies", 1))
    if copies is None:
        return planned_copies
    return _stated_copies(copies, planned_copies)


def _stated_copies(copies: int, planned_copies: int) -> int:
    """Return how often each member was inserted as stated, unless a plan says otherwise."""
    stated_copies = integer(copies, name="copies", least=1)
    if planned_copies not in {1, stated_copies}:
        raise OptionError(
            f"copies is {stated_copies}, and the plan was drawn for {planned_copies} copies of "
            "each: leave copies out"
        )
    return stated_copies


def check_copies(copies: int, examples: int) -> None:
    """Refuse more copies of a record than records are audited: no attack would show anything.

    The largest ε that m records can show grows as ln m, and R copies share it.
    """
    if copies > max(1, examples):
        raise OptionError(
            f"copies is {copies}, more than the {examples:,} records that are audited: copies of "
            "one record share its ε, so that even a perfect attack would show nearly nothing; "
            "give the number of times that each single one was inserted"
        )


def refuse_copies(drawn: object) -> None:
    """Refuse a plan whose members were inserted several times, where a bound does not know it."""
    planned_copies = copies_of(drawn, copies=None)
    if planned_copies > 1:
        message = (
            "the plan was drawn for {planned} copies of each member, and this bound would be on "
            "all {planned} at once: audit with {Coins(plan)} or {Choices(plan)}, which convert it "
            "to one record"
        )
        raise OptionError(Message(message, planned=planned_copies))
