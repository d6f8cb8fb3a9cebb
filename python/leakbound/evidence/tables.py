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
    check_all_used,
    option_json,
    read_option,
    run_and_compared,
    was_asked,
)
from leakbound.results.synthetic import SyntheticResult

_TABLES = ("members", "nonmembers", "synthetic", "reference")
# Options that are a claim, a policy or one value.
_OPTIONS = ("claim", "confidence", "cuts", "challenge", "seed")
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
        arguments = self.arguments
        arrays: dict[str, AnyArray] = {}
        tables: JsonObject = {}
        for name in _TABLES:
            if arguments.get(name) is not None:
                tables[name] = list(stored_table(name, arguments[name], arrays))
        attacks = arguments["attacks"]
        has_own_scores = isinstance(attacks, Mapping)
        if has_own_scores:
            for number, scores in enumerate(attacks.values()):
                arrays[_attack_array(number)] = np.asarray(scores, dtype=np.float64)
        options: JsonObject = {}
        for name in _OPTIONS:
            if name in arguments:
                options[name] = option_json(name, arguments[name])
        content: JsonObject = {
            "audit": SYNTHETIC,
            "options": options,
            "tables": tables,
            "attacks": {"names": list(attacks), "own": has_own_scores},
            "columns": dict(arguments["columns"]),
            "writing": stored_writing(arguments["members"]),
        }
        return content, arrays

    @classmethod
    def decoded(cls, content: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if content.keys() - {"audit"} != _PARTS:
            raise FormatError(f"it must have exactly {', '.join(sorted(_PARTS))}")
        options = _json_table(content, "options")
        tables = _json_table(content, "tables")
        columns = _json_table(content, "columns")
        if options.keys() - {*_OPTIONS} or tables.keys() - {*_TABLES}:
            raise FormatError(f"options are {', '.join(_OPTIONS)}, and tables {', '.join(_TABLES)}")
        arguments: dict[str, object] = {"columns": columns}
        for name, option in options.items():
            arguments[name] = read_option(name, option)
        writing = read_writing(_json_table(content, "writing"))
        used_arrays: set[str] = set()
        for name, parts in tables.items():
            arguments[name] = read_table(
                name, parts, arrays=arrays, writing=writing, used_arrays=used_arrays
            )
        attacks = _json_table(content, "attacks")
        arguments["attacks"] = _read_attacks(attacks, arrays, used_arrays)
        check_all_used(arrays, used_arrays)
        return cls(arguments)


def tables_recipe_of(result: SyntheticResult, inputs: SyntheticInputs) -> TablesRecipe:
    """Return the recipe that gives a result again, bit for bit, from its own options."""
    writing = Writing(missing=missing_marks(inputs.missing))
    arguments: dict[str, object] = {}
    for name in _TABLES:
        table = getattr(inputs, name)
        if table is not None:
            arguments[name] = read_columns(table, f"the table {name}", writing)
    arguments |= {
        "attacks": _audited_attacks(result, inputs),
        "columns": dict(inputs.columns or {}),
        "claim": result.claim,
        "confidence": result.confidence,
        "challenge": inputs.challenge,
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


def _audited_attacks(result: SyntheticResult, inputs: SyntheticInputs) -> object:
    """Return the names of attacks, or scores of one's own in the order of the records."""
    if inputs.attacks is None:
        return list(_json_table(dict(result.options), "attacks"))
    order = ExampleOrder.of_tables(
        [inputs.members, inputs.nonmembers], "the index of members and non-members"
    )
    scores_by_attack = {}
    for name, scores in inputs.attacks.items():
        scores_by_attack[name] = order.placed(scores, f"scores of {name!r}")
    return scores_by_attack


def _attack_array(number: int) -> str:
    """Return the name of the array that holds the scores of an attack."""
    return f"attacks.{number}"


def _read_attacks(
    content: Mapping[str, object], arrays: Mapping[str, AnyArray], used_arrays: set[str]
) -> object:
    """Return names of attacks, or scores of one's own."""
    names = content.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"attacks are {shown(names)}, not names")
    has_own_scores = content.get("own")
    if not has_own_scores:
        return names
    array_names = [_attack_array(number) for number in range(len(names))]
    are_stored = arrays.keys() >= set(array_names)
    if not are_stored or len(set(names)) < len(names):
        raise FormatError("attacks have names that differ, and an array for each")
    used_arrays.update(array_names)
    scores = [arrays[array_name] for array_name in array_names]
    return dict(zip(names, scores, strict=True))


def _json_table(content: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a part of JSON that has to be a table."""
    table = content.get(name)
    if not isinstance(table, dict):
        raise FormatError(f"{name} is {shown(table)}, not a table of names")
    return table
