"""How an audit of a synthetic table is run again: its options as JSON, and its tables as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import shown
from leakbound._base.tables import TableInput, Writing, read_columns
from leakbound._base.types import AnyArray, JsonObject
from leakbound.audits.synthetic import audit_synthetic
from leakbound.audits.synthetic_tables import missing_marks
from leakbound.errors import FormatError
from leakbound.evidence.columns import read_table, read_writing, stored_table, stored_writing
from leakbound.evidence.recipe import (
    SYNTHETIC,
    option_json,
    read_option,
    run_and_compared,
    was_asked,
)
from leakbound.results.synthetic import SyntheticResult

_TABLES = ("members", "nonmembers", "synthetic", "reference")
# Options that are a claim, a policy or one value.
_PLAIN = ("claim", "confidence", "cuts", "challenge", "seed")
_PARTS = {"options", "tables", "attacks", "columns", "writing"}


class SyntheticInputs(NamedTuple):
    """What `audit_synthetic` was given, besides the options that its result stores."""

    members: TableInput
    nonmembers: TableInput
    synthetic: TableInput
    reference: TableInput | None = None
    columns: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    challenge: bool | None = None
    attacks: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TablesRecipe:
    """All arguments of an audit of a synthetic table, with the columns of its tables as read."""

    arguments: Mapping[str, Any]
    audit: str = SYNTHETIC
    fitted: bool = True
    """Attacks fit models to the tables."""

    def run(self) -> SyntheticResult:
        """Run the audit."""
        return audit_synthetic(**self.arguments)

    def encoded(self) -> tuple[JsonObject, dict[str, AnyArray]]:
        """Return the recipe as JSON, and its arrays, named by their tables and places."""
        given = self.arguments
        arrays: dict[str, AnyArray] = {}
        tables: JsonObject = {}
        for name in _TABLES:
            if given.get(name) is not None:
                tables[name] = list(stored_table(name, given[name], arrays))
        attacks = given["attacks"]
        if isinstance(attacks, Mapping):
            for place, values in enumerate(attacks.values()):
                arrays[f"attacks.{place}"] = np.asarray(values, dtype=np.float64)
        content: JsonObject = {
            "audit": SYNTHETIC,
            "options": {name: option_json(name, given[name]) for name in _PLAIN if name in given},
            "tables": tables,
            "attacks": {"names": list(attacks), "own": isinstance(attacks, Mapping)},
            "columns": dict(given["columns"]),
            "writing": stored_writing(given["members"]),
        }
        return content, arrays

    @classmethod
    def decoded(cls, content: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if content.keys() - {"audit"} != _PARTS:
            raise FormatError(f"it must have exactly {', '.join(sorted(_PARTS))}")
        options, tables, columns = (
            _mapping(content, name) for name in ("options", "tables", "columns")
        )
        if options.keys() - {*_PLAIN} or tables.keys() - {*_TABLES}:
            raise FormatError(f"options are {', '.join(_PLAIN)}, and tables {', '.join(_TABLES)}")
        arguments: dict[str, object] = {
            name: read_option(name, value) for name, value in options.items()
        }
        writing = read_writing(_mapping(content, "writing"))
        used: set[str] = set()
        for name, parts in tables.items():
            arguments[name] = read_table(name, parts, arrays, writing, used)
        arguments["attacks"] = _read_attacks(_mapping(content, "attacks"), arrays, used)
        if used != set(arrays):
            raise FormatError(f"the arrays {', '.join(sorted(set(arrays) - used))} are no argument")
        return cls({**arguments, "columns": columns})


def tables_recipe_of(result: SyntheticResult, given: SyntheticInputs) -> TablesRecipe:
    """Return the recipe that gives a result again, bit for bit, from its own options."""
    writing = Writing(missing=missing_marks(given.missing))
    arguments: dict[str, object] = {
        name: read_columns(table, f"the table {name}", writing)
        for name in _TABLES
        if (table := getattr(given, name)) is not None
    }
    arguments |= {
        "attacks": _attacks_of(result, given),
        "columns": dict(given.columns or {}),
        "claim": result.claim,
        "confidence": result.confidence,
        "challenge": given.challenge,
        "seed": result.provenance.seed,
    }
    if was_asked(result, "cuts"):
        arguments["cuts"] = result.options["cuts"]
    content, arrays = TablesRecipe(arguments).encoded()
    recipe = TablesRecipe.decoded(content, arrays)
    differs = run_and_compared(recipe.run, result)
    if differs:
        raise FormatError(
            f"auditing these tables gives another result: {differs}; pass the tables that were "
            "audited, and columns, missing, challenge and attacks of one's own as the audit had "
            "them"
        )
    return recipe


def _attacks_of(result: SyntheticResult, given: SyntheticInputs) -> object:
    """Return the names of attacks, or scores of one's own in the order of the records."""
    if given.attacks is None:
        return list(_mapping(dict(result.options), "attacks"))
    rows = ExampleOrder.of_tables(
        [given.members, given.nonmembers], "the index of members and non-members"
    )
    return {
        name: rows.placed(values, f"scores of {name!r}") for name, values in given.attacks.items()
    }


def _read_attacks(
    content: Mapping[str, object], arrays: Mapping[str, AnyArray], used: set[str]
) -> object:
    """Return names of attacks, or scores of one's own."""
    names, own = (content.get(name) for name in ("names", "own"))
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise FormatError(f"attacks are {shown(names)}, not names")
    if not own:
        return names
    places = [f"attacks.{place}" for place, _ in enumerate(names)]
    if not {*places} <= arrays.keys() or len({*names}) < len(names):
        raise FormatError("attacks have names that differ, and an array for each")
    used |= {*places}
    return {name: arrays[place] for name, place in zip(names, places, strict=True)}


def _mapping(content: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a part of JSON that has to be a table."""
    part = content.get(name)
    if not isinstance(part, dict):
        raise FormatError(f"{name} is {shown(part)}, not a table of names")
    return part
