"""The options that an audit was given, as results store them."""

from leakbound._base.types import JsonObject, JsonValue


def asked(cuts: object, **options: object) -> JsonObject:
    """Return what results store of options that an audit fills in, None here: names of those given.

    A bundle states these and no others, so that what runs again is what was asked.
    """
    given_options = {"cuts": cuts, **options}
    names: list[JsonValue] = [name for name, value in given_options.items() if value is not None]
    if not names:
        return {}
    return {"asked": names}
