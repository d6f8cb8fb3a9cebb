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
from leakbound.evidence.recipe import (
    SYNTHETIC,
    check_all_used,
    option_json,
    read_option,
    run_and_compared,
    was_asked,
)
from leakbound.evidence.stored_tables import read_table, read_writing, stored_table, stored_writing
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
        stored_arrays: dict[str, AnyArray] = {}
        tables: JsonObject = {}
        for table_name in _TABLES:
            columns = arguments.get(table_name)
            if columns is not None:
                tables[table_name] = list(stored_table(table_name, columns, stored_arrays))
        attacks = arguments["attacks"]
        has_own_scores = isinstance(attacks, Mapping)
        if has_own_scores:
            for number, scores in enumerate(attacks.values()):
                stored_arrays[_attack_array(number)] = np.asarray(scores, dtype=np.float64)
        options: JsonObject = {}
        for option_name in _OPTIONS:
            if option_name in arguments:
                options[option_name] = option_json(option_name, arguments[option_name])
        recipe_json: JsonObject = {
            "audit": SYNTHETIC,
            "options": options,
            "tables": tables,
            "attacks": {"names": list(attacks), "own": has_own_scores},
            "columns": dict(arguments["columns"]),
            "writing": stored_writing(arguments["members"]),
        }
        return recipe_json, stored_arrays

    @classmethod
    def decoded(
        cls, recipe_json: Mapping[str, object], stored_arrays: Mapping[str, AnyArray]
    ) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if recipe_json.keys() - {"audit"} != _PARTS:
            raise FormatError(f"it must have exactly {', '.join(sorted(_PARTS))}")
        options = _json_table(recipe_json, "options")
        tables = _json_table(recipe_json, "tables")
        columns = _json_table(recipe_json, "columns")
        if options.keys() - {*_OPTIONS} or tables.keys() - {*_TABLES}:
            raise FormatError(f"options are {', '.join(_OPTIONS)}, and tables {', '.join(_TABLES)}")
        arguments: dict[str, object] = {"columns": columns}
        for option_name, option in options.items():
            arguments[option_name] = read_option(option_name, option)
        writing = read_writing(_json_table(recipe_json, "writing"))
        used_arrays: set[str] = set()
        for table_name, column_parts in tables.items():
            arguments[table_name] = read_table(
                table_name,
                column_parts,
                stored_arrays=stored_arrays,
                writing=writing,
                used_arrays=used_arrays,
            )
        attacks = _json_table(recipe_json, "attacks")
        arguments["attacks"] = _read_attacks(attacks, stored_arrays, used_arrays)
        check_all_used(stored_arrays, used_arrays)
        return cls(arguments)


def tables_recipe_of(result: SyntheticResult, inputs: SyntheticInputs) -> TablesRecipe:
    """Return the recipe that gives a result again, bit for bit, from its own options."""
    writing = Writing(missing=missing_marks(inputs.missing))
    arguments: dict[str, object] = {}
    for table_name in _TABLES:
        table = getattr(inputs, table_name)
        if table is not None:
            arguments[table_name] = read_columns(table, f"the table {table_name}", writing)
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
    recipe_json, arrays = TablesRecipe(arguments).encoded()
    recipe = TablesRecipe.decoded(recipe_json, arrays)
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
    for attack_name, scores in inputs.attacks.items():
        scores_by_attack[attack_name] = order.placed(scores, f"scores of {attack_name!r}")
    return scores_by_attack


def _attack_array(number: int) -> str:
    """Return the name of the array that holds the scores of an attack."""
    return f"attacks.{number}"


def _read_attacks(
    attacks_json: Mapping[str, object], stored_arrays: Mapping[str, AnyArray], used_arrays: set[str]
) -> object:
    """Return names of attacks, or scores of one's own."""
    attack_names = attacks_json.get("names")
    if not isinstance(attack_names, list) or not all(
        isinstance(name, str) for name in attack_names
    ):
        raise FormatError(f"attacks are {shown(attack_names)}, not names")
    has_own_scores = attacks_json.get("own")
    if not has_own_scores:
        return attack_names
    array_names = [_attack_array(number) for number in range(len(attack_names))]
    are_stored = stored_arrays.keys() >= set(array_names)
    if not are_stored or len(set(attack_names)) < len(attack_names):
        raise FormatError("attacks have names that differ, and an array for each")
    used_arrays.update(array_names)
    scores = [stored_arrays[array_name] for array_name in array_names]
    return dict(zip(attack_names, scores, strict=True))


def _json_table(content: Mapping[str, object], name: str) -> dict[str, object]:
    """Return a part of JSON that has to be a table."""
    table = content.get(name)
    if not isinstance(table, dict):
        raise FormatError(f"{name} is {shown(table)}, not a table of names")
    return table
