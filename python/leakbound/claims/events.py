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


def described_event(event: object) -> str:
    """Return an event as text; refuse anything else."""
    with needs("dp", "from_event"):
        from dp_accounting import dp_event
    if not isinstance(event, dp_event.DpEvent):
        raise InputTypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    return json.dumps(_content(event), sort_keys=True)


def _content(value: object) -> Any:
    """Return an event, and those within, as what JSON has."""
    if hasattr(value, "__attrs_attrs__"):
        event_content = {"type": type(value).__name__}
        for attribute in value.__attrs_attrs__:
            event_content[attribute.name] = _content(getattr(value, attribute.name))
        return event_content
    if isinstance(value, list | tuple):
        return [_content(element) for element in value]
    if hasattr(value, "item"):
        return value.item()  # a scalar of NumPy
    return value


def read_event(text: str) -> JsonObject:
    """Return the content of an event that is kept as text; refuse what is no family by its name."""
    try:
        event_content = json.loads(text)
        events = list(_nested_events(event_content))
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent: {error}") from error
    for event in events:
        _check_event(event)
    mechanisms = count_of_mechanisms(event_content)
    if mechanisms > _MOST_MECHANISMS:
        raise OptionError(
            f"{event_name(event_content)} composes {mechanisms:,} mechanisms, of "
            f"{_MOST_MECHANISMS:,} at most"
        )
    return dict(event_content)


def _check_event(event: Any) -> None:
    """Refuse an event without noise to divide, or what is no event."""
    event_type = None
    if isinstance(event, Mapping):
        event_type = event.get("type")
    if not (isinstance(event_type, str) and event_type.endswith(_CLASS_SUFFIX)):
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent, got {event_type!r}")
    if event_type in _REFUSED_EVENTS:
        raise OptionError(f"{event_type} is not a family: {_REFUSED_EVENTS[event_type]}")
    if event_type not in _SUPPORTED_EVENTS:
        raise OptionError(f"{event_type} is not supported by dp_accounting's PLDAccountant")
    if event_type in _NOISE_FIELDS:
        noise_field, _ = _NOISE_FIELDS[event_type]
        noise_level = event.get(noise_field)
        real(noise_level, name=f"{noise_field} of {event_type}", above=0, below=math.inf)
    if event_type in _INNER_FIELDS:
        inner_field = _INNER_FIELDS[event_type]
        inner_content = event.get(inner_field)
        if not isinstance(inner_content, list | Mapping):
            raise OptionError(f"{event_type} has no {inner_field}")
    if event_type == "SelfComposedDpEvent":
        repetitions = event.get("count")
        integer(repetitions, name=f"count of {event_type}", least=0)


def _nested_events(event_content: object) -> Iterator[Any]:
    """Yield an event, and all within it."""
    yield event_content
    if not isinstance(event_content, Mapping):
        return
    composed_events = event_content.get("events", [])
    if isinstance(composed_events, list):
        for event in composed_events:
            yield from _nested_events(event)
    if "event" in event_content:
        yield from _nested_events(event_content["event"])


def check_event_is_supported(event_content: JsonObject, relation: Relation) -> None:
    """Refuse events that the accountant does not support, by the part that it does not."""
    with needs("dp", "from_event"):
        accountant = _accountant(relation, _LOSS_SPACING)
    innermost_first = reversed(list(_nested_events(event_content)))
    for event in innermost_first:
        if accountant.supports(built_event(event)):
            continue
        inner_kind = ""
        if isinstance(event.get("event"), Mapping):
            inner_kind = f" of {event['event']['type']}"
        raise OptionError(
            f"{event['type']}{inner_kind} is not supported by dp_accounting's PLDAccountant for "
            f"relation={relation!r}"
        )
    if not _releases_data(event_content):
        raise OptionError(f"nothing in {event_name(event_content)} has noise that can be divided")


def _releases_data(event_content: Mapping[str, Any]) -> bool:
    """Return whether an event releases anything about its data."""
    event_type = event_content["type"]
    if event_type == _NO_MECHANISM:
        return False
    is_sampled = event_content.get("sampling_probability", 1)
    if not is_sampled:
        return False
    if event_type in _NOISE_FIELDS:
        has_data = bool(event_content.get("dataset_size", 1))
        is_sensitive = any(event_content.get("sensitivities", [1]))
        return has_data and is_sensitive
    repetition_count = event_content.get("count", 1)
    if not repetition_count:
        return False
    inner_events = list(event_content.get("events", []))
    if "event" in event_content:
        inner_events.append(event_content["event"])
    return any(_releases_data(event) for event in inner_events)


def built_event(event_content: Mapping[str, Any], divisor: float = 1.0) -> Any:
    """Return the event of some content, with all of its noise divided."""
    from dp_accounting import dp_event

    event_fields = dict(event_content)
    event_type = str(event_fields.pop("type"))
    if event_type in _NOISE_FIELDS:
        noise_field, power_of_divisor = _NOISE_FIELDS[event_type]
        event_fields[noise_field] *= divisor**power_of_divisor
    if "event" in event_fields:
        event_fields["event"] = built_event(event_fields["event"], divisor)
    if "events" in event_fields:
        event_fields["events"] = [built_event(event, divisor) for event in event_fields["events"]]
    event_class = getattr(dp_event, event_type)
    try:
        return event_class(**event_fields)
    except TypeError as error:
        raise OptionError(f"{event_type} has other fields: {error}") from error


def event_name(event_content: Mapping[str, Any]) -> str:
    """Return an event in short, such as "Composed(Gaussian(1), Laplace(2))"."""
    event_type = str(event_content["type"]).removesuffix(_CLASS_SUFFIX)
    arguments = list[str]()
    for field, value in event_content.items():
        if field == "type":
            continue
        if field == "events":
            arguments.extend(event_name(event) for event in value)
        elif isinstance(value, Mapping):
            arguments.append(event_name(value))
        elif isinstance(value, int | float):
            arguments.append(f"{value:g}")
        else:
            arguments.append(str(value))
    return f"{event_type}({', '.join(arguments)})"


def count_of_mechanisms(event_content: Mapping[str, Any]) -> int:
    """Return how many mechanisms are composed, at most."""
    event_type = event_content["type"]
    if event_type == "SelfComposedDpEvent":
        repetitions = int(event_content["count"])
        return repetitions * count_of_mechanisms(event_content["event"])
    if event_type == "ComposedDpEvent":
        return sum(count_of_mechanisms(event) for event in event_content["events"])
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
    event = built_event(read_event(text), divisor)
    accountant.compose(event)
    return accountant._pld  # noqa: SLF001 (its δ at a grid of ε, by `claims.dp_sgd`, is faster)


def _neighbour_orders(relation: Relation, sides: Sides) -> list[str]:
    """Return the orders of the two data sets that guesses of some sides are about."""
    if sides == "member" and relation == "add_remove":
        return ["remove"]
    return ["remove", "add"]


@lru_cache(maxsize=512)
def event_curve(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that an event with less noise obeys, by its pessimistic loss distribution."""
    privacy_loss = _privacy_loss(text, relation, divisor, _LOSS_SPACING)
    return allowed(privacy_loss, _neighbour_orders(relation, sides))


@lru_cache(maxsize=512)
def attained_event_curve(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that allows less than an event with less noise.

    Its losses are rounded up by at most a spacing for each mechanism composed, so that at an ε that
    is larger by all of these its δ is at most the exact one.
    """
    mechanisms = count_of_mechanisms(read_event(text))
    spacing_for_rounding = max(_FINEST_LOSS_SPACING, _LARGEST_TOTAL_ROUNDING / mechanisms)
    loss_spacing = min(_LOSS_SPACING, spacing_for_rounding)
    privacy_loss = _privacy_loss(text, relation, divisor, loss_spacing)
    orders = _neighbour_orders(relation, sides)
    return attained_of(privacy_loss, orders, rounded=mechanisms * loss_spacing)
