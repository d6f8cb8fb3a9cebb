"""The options that an audit was given, and what a design must say for results to store them."""

from functools import cache
from inspect import getattr_static

from leakbound._base.checks import shown
from leakbound._base.types import JsonObject, JsonValue
from leakbound.errors import OptionError
from leakbound.results.wording import Wording


def asked(cuts: object, **options: object) -> JsonObject:
    """Return what results store of options that an audit fills in, None here: names of those given.

    A bundle states these and no others, so that what runs again is what was asked.
    """
    given_options = {"cuts": cuts, **options}
    names: list[JsonValue] = [name for name, value in given_options.items() if value is not None]
    if not names:
        return {}
    return {"asked": names}


@cache
def check_design_class(design: type[object]) -> None:
    """Check that a design has a name and words, once for each class.

    Words that are a property are known, and checked, when a result stores them.
    """
    name = getattr(design, "name", None)
    if not isinstance(name, str) or not name:
        raise OptionError(
            f"{design.__name__}.name must be a text, by which results call the design, got "
            f'{shown(name)}: write name: ClassVar[str] = "…" in the class'
        )
    wording = getattr_static(design, "wording", None)
    is_property = hasattr(wording, "__get__") and not callable(wording)
    if not is_property and not isinstance(wording, Wording):
        raise error_of_wording(design, wording)


def error_of_wording(design: type[object], wording: object) -> OptionError:
    """Return what to write in place of what are no words of a design."""
    return OptionError(
        f"{design.__name__}.wording must be a Wording, the words of sentences about the design, or "
        f"a property that returns one, got {shown(wording)}: write wording: ClassVar[Wording] = "
        'Wording(drawn="…", chance="…") in the class'
    )
