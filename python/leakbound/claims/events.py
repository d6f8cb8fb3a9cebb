"""Mechanisms as accountants describe them, `dp_accounting.DpEvent`, with less noise than they say.

An event is kept as text: its class and fields in JSON, so that results with it can be stored.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from leakbound._base.checks import integer, real
from leakbound._base.imports import needs
from leakbound._base.types import JsonObject, Relation, Sides
from leakbound.claims.dp_sgd import allowed, attained_of
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import InputTypeError, OptionError

# Of each event, the field of its noise, and the power of θ that less noise multiplies it by
_NOISE_FIELDS = {
    "GaussianDpEvent": ("noise_multiplier", -1),
    "LaplaceDpEvent": ("noise_multiplier", -1),
    "DiscreteLaplaceDpEvent": ("noise_parameter", 1),
    "MixtureOfGaussiansDpEvent": ("standard_deviation", -1),
    "TruncatedSubsampledGaussianDpEvent": ("noise_multiplier", -1),
}
# Of events that have others within, where
_INNER_FIELDS = {
    "ComposedDpEvent": "events",
    "SelfComposedDpEvent": "event",
    "PoissonSampledDpEvent": "event",
}
# Mechanisms composed, at most: the law of a sum of more takes too much memory, and time
_MOST_MECHANISMS = 10**6
_NO_MECHANISM = "NoOpDpEvent"
_SUPPORTED_EVENTS = {*_NOISE_FIELDS, *_INNER_FIELDS, _NO_MECHANISM}
# Why the others are no family
_REFUSED_EVENTS = {
    "NonPrivateDpEvent": "it keeps nothing private, whatever its noise",
    "RandomizedResponseDpEvent": (
        "it has no noise to divide: audit a local mechanism with PureDP, whose ε is that of the "
        "response"
    ),
    "ZCDpEvent": "it states Rényi divergences, and no noise: claim ZeroConcentratedDP()",
}
# Losses are rounded up to multiples of this, and finer ones where ε is converted
_LOSS_SPACING = 1e-3
_FINEST_LOSS_SPACING = 2e-5
_LARGEST_TOTAL_ROUNDING = 1e-2
_CLASS_SUFFIX = "DpEvent"


def described(event: object) -> str:
    """Return an event as text; refuse anything else."""
    with needs("dp", "from_event"):
        from dp_accounting import dp_event
    if not isinstance(event, dp_event.DpEvent):
        raise InputTypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    return json.dumps(_content(event), sort_keys=True)


def _content(value: object) -> Any:
    """Return an event, and those within, as what JSON has."""
    if hasattr(value, "__attrs_attrs__"):
        content = {"type": type(value).__name__}
        for attribute in value.__attrs_attrs__:
            content[attribute.name] = _content(getattr(value, attribute.name))
        return content
    if isinstance(value, list | tuple):
        return [_content(element) for element in value]
    if hasattr(value, "item"):
        return value.item()  # a scalar of NumPy
    return value


def read(text: str) -> JsonObject:
    """Return the content of an event that is kept as text; refuse what is no family by its name."""
    try:
        content = json.loads(text)
        events = list(_nested_events(content))
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent: {error}") from error
    for event in events:
        _check_event(event)
    mechanisms = count_of(content)
    if mechanisms > _MOST_MECHANISMS:
        raise OptionError(
            f"{name_of(content)} composes {mechanisms:,} mechanisms, of {_MOST_MECHANISMS:,} at "
            "most"
        )
    return dict(content)


def _check_event(event: Any) -> None:
    """Refuse an event without noise to divide, or what is no event."""
    kind = None
    if isinstance(event, Mapping):
        kind = event.get("type")
    if not (isinstance(kind, str) and kind.endswith(_CLASS_SUFFIX)):
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent, got {kind!r}")
    if kind in _REFUSED_EVENTS:
        raise OptionError(f"{kind} is not a family: {_REFUSED_EVENTS[kind]}")
    if kind not in _SUPPORTED_EVENTS:
        raise OptionError(f"{kind} is not supported by dp_accounting's PLDAccountant")
    if kind in _NOISE_FIELDS:
        noise_field, _ = _NOISE_FIELDS[kind]
        noise = event.get(noise_field)
        real(noise, name=f"{noise_field} of {kind}", above=0, below=math.inf)
    if kind in _INNER_FIELDS:
        inner_field = _INNER_FIELDS[kind]
        inner_content = event.get(inner_field)
        if not isinstance(inner_content, list | Mapping):
            raise OptionError(f"{kind} has no {inner_field}")
    if kind == "SelfComposedDpEvent":
        repetitions = event.get("count")
        integer(repetitions, name=f"count of {kind}", least=0)


def _nested_events(content: object) -> Iterator[Any]:
    """Yield an event, and all within it."""
    yield content
    if not isinstance(content, Mapping):
        return
    composed_events = content.get("events", [])
    if isinstance(composed_events, list):
        for event in composed_events:
            yield from _nested_events(event)
    if "event" in content:
        yield from _nested_events(content["event"])


def check(content: JsonObject, relation: Relation) -> None:
    """Refuse events that the accountant does not support, by the part that it does not."""
    with needs("dp", "from_event"):
        accountant = _accountant(relation, _LOSS_SPACING)
    innermost_first = reversed(list(_nested_events(content)))
    for event in innermost_first:
        if accountant.supports(built(event)):
            continue
        inner_kind = ""
        if isinstance(event.get("event"), Mapping):
            inner_kind = f" of {event['event']['type']}"
        raise OptionError(
            f"{event['type']}{inner_kind} is not supported by dp_accounting's PLDAccountant for "
            f"relation={relation!r}"
        )
    if not _releases_data(content):
        raise OptionError(f"nothing in {name_of(content)} has noise that can be divided")


def _releases_data(content: Mapping[str, Any]) -> bool:
    """Return whether an event releases anything about its data."""
    kind = content["type"]
    if kind == _NO_MECHANISM:
        return False
    is_sampled = content.get("sampling_probability", 1)
    if not is_sampled:
        return False
    if kind in _NOISE_FIELDS:
        has_data = bool(content.get("dataset_size", 1))
        is_sensitive = any(content.get("sensitivities", [1]))
        return has_data and is_sensitive
    repetitions = content.get("count", 1)
    if not repetitions:
        return False
    inner_events = list(content.get("events", []))
    if "event" in content:
        inner_events.append(content["event"])
    return any(_releases_data(event) for event in inner_events)


def built(content: Mapping[str, Any], divisor: float = 1.0) -> Any:
    """Return the event of some content, with all of its noise divided."""
    from dp_accounting import dp_event

    fields = dict(content)
    kind = str(fields.pop("type"))
    if kind in _NOISE_FIELDS:
        noise_field, power = _NOISE_FIELDS[kind]
        fields[noise_field] *= divisor**power
    if "event" in fields:
        fields["event"] = built(fields["event"], divisor)
    if "events" in fields:
        fields["events"] = [built(event, divisor) for event in fields["events"]]
    event_class = getattr(dp_event, kind)
    try:
        return event_class(**fields)
    except TypeError as error:
        raise OptionError(f"{kind} has other fields: {error}") from error


def name_of(content: Mapping[str, Any]) -> str:
    """Return an event in short, such as "Composed(Gaussian(1), Laplace(2))"."""
    kind = str(content["type"]).removesuffix(_CLASS_SUFFIX)
    arguments = list[str]()
    for field, value in content.items():
        if field == "type":
            continue
        if field == "events":
            arguments.extend(name_of(event) for event in value)
        elif isinstance(value, Mapping):
            arguments.append(name_of(value))
        elif isinstance(value, int | float):
            arguments.append(f"{value:g}")
        else:
            arguments.append(str(value))
    return f"{kind}({', '.join(arguments)})"


def count_of(content: Mapping[str, Any]) -> int:
    """Return how many mechanisms are composed, at most."""
    kind = content["type"]
    if kind == "SelfComposedDpEvent":
        repetitions = int(content["count"])
        return repetitions * count_of(content["event"])
    if kind == "ComposedDpEvent":
        return sum(count_of(event) for event in content["events"])
    return 1


def _accountant(relation: Relation, loss_spacing: float) -> Any:
    """Return an accountant of privacy losses that are rounded up to multiples of a spacing."""
    from dp_accounting import NeighboringRelation as Neighbours
    from dp_accounting.pld import PLDAccountant

    neighbours = Neighbours.ADD_OR_REMOVE_ONE
    if relation == "replace":
        neighbours = Neighbours.REPLACE_ONE
    return PLDAccountant(neighbours, value_discretization_interval=loss_spacing)


def _privacy_loss(text: str, relation: Relation, divisor: float, loss_spacing: float) -> Any:
    """Return the law of the privacy loss of an event with less noise, rounded up."""
    accountant = _accountant(relation, loss_spacing)
    event = built(read(text), divisor)
    accountant.compose(event)
    return accountant._pld  # noqa: SLF001 (its δ at a grid of ε, by `claims.dp_sgd`, is faster)


def _neighbour_orders(relation: Relation, sides: Sides) -> list[str]:
    """Return the orders of the two data sets that guesses of some sides are about."""
    if sides == "member" and relation == "add_remove":
        return ["remove"]
    return ["remove", "add"]


@lru_cache(maxsize=512)
def of_event(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that an event with less noise obeys, by its pessimistic loss distribution."""
    privacy_loss = _privacy_loss(text, relation, divisor, _LOSS_SPACING)
    return allowed(privacy_loss, _neighbour_orders(relation, sides))


@lru_cache(maxsize=512)
def attained_by(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that allows less than an event with less noise.

    Its losses are rounded up by at most a spacing for each mechanism composed, so that at an ε that
    is larger by all of these its δ is at most the exact one.
    """
    mechanisms = count_of(read(text))
    spacing_for_rounding = max(_FINEST_LOSS_SPACING, _LARGEST_TOTAL_ROUNDING / mechanisms)
    loss_spacing = min(_LOSS_SPACING, spacing_for_rounding)
    privacy_loss = _privacy_loss(text, relation, divisor, loss_spacing)
    orders = _neighbour_orders(relation, sides)
    return attained_of(privacy_loss, orders, rounded=mechanisms * loss_spacing)
