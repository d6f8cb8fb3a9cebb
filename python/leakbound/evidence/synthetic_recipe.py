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
    check_all_arrays_read,
    flaw_of_rerun,
    option_json,
    read_option,
    was_asked,
)
from leakbound.evidence.stored_tables import read_table, read_writing, stored_table, stored_writing
from leakbound.results.synthetic import SyntheticResult

_RECIPE_TABLES = ("members", "nonmembers", "synthetic", "reference")
# Options that are a claim, a policy or one value.
_RECIPE_OPTIONS = ("claim", "confidence", "cuts", "challenge", "seed")
_PARTS_OF_RECIPE = {"options", "tables", "attacks", "columns", "writing"}


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
        stored_arrays: dict[str, AnyArray] = {}
        stored_tables: JsonObject = {}
        for table_name in _RECIPE_TABLES:
            table_columns = self.arguments.get(table_name)
            if table_columns is not None:
                stored_columns = stored_table(table_name, table_columns, stored_arrays)
                stored_tables[table_name] = list(stored_columns)
        attacks = self.arguments["attacks"]
        has_own_scores = isinstance(attacks, Mapping)
        if has_own_scores:
            for attack_number, scores in enumerate(attacks.values()):
                stored_arrays[_array_name_of_attack(attack_number)] = np.asarray(
                    scores, dtype=np.float64
                )
        stored_options: JsonObject = {}
        for option_name in _RECIPE_OPTIONS:
            if option_name in self.arguments:
                option = self.arguments[option_name]
                stored_options[option_name] = option_json(option_name, option)
        recipe_json: JsonObject = {
            "audit": SYNTHETIC,
            "options": stored_options,
            "tables": stored_tables,
            "attacks": {"names": list(attacks), "own": has_own_scores},
            "columns": dict(self.arguments["columns"]),
            "writing": stored_writing(self.arguments["members"]),
        }
        return recipe_json, stored_arrays

    @classmethod
    def decoded(
        cls, recipe_json: Mapping[str, object], stored_arrays: Mapping[str, AnyArray]
    ) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if recipe_json.keys() - {"audit"} != _PARTS_OF_RECIPE:
            raise FormatError(f"it must have exactly {', '.join(sorted(_PARTS_OF_RECIPE))}")
        stored_options = _recipe_table(recipe_json, "options")
        stored_tables = _recipe_table(recipe_json, "tables")
        column_roles = _recipe_table(recipe_json, "columns")
        if stored_options.keys() - {*_RECIPE_OPTIONS} or stored_tables.keys() - {*_RECIPE_TABLES}:
            raise FormatError(
                f"options are {', '.join(_RECIPE_OPTIONS)}, and tables {', '.join(_RECIPE_TABLES)}"
            )
        arguments: dict[str, object] = {"columns": column_roles}
        for option_name, option in stored_options.items():
            arguments[option_name] = read_option(option_name, option)
        stored_writing_of_text = read_writing(_recipe_table(recipe_json, "writing"))
        unread_arrays = dict(stored_arrays)
        for table_name, column_parts in stored_tables.items():
            arguments[table_name] = read_table(
                table_name,
                column_parts,
                unread_arrays=unread_arrays,
                writing=stored_writing_of_text,
            )
        stored_attacks = _recipe_table(recipe_json, "attacks")
        arguments["attacks"] = _read_recipe_attacks(stored_attacks, unread_arrays)
        check_all_arrays_read(unread_arrays)
        return cls(arguments)


def tables_recipe_of(result: SyntheticResult, inputs: SyntheticInputs) -> TablesRecipe:
    """Return the recipe that gives a result again, bit for bit, from its own options."""
    writing_of_tables = Writing(missing=missing_marks(inputs.missing))
    arguments: dict[str, object] = {}
    for table_name in _RECIPE_TABLES:
        input_table = getattr(inputs, table_name)
        if input_table is not None:
            arguments[table_name] = read_columns(
                input_table, f"the table {table_name}", writing_of_tables
            )
    arguments |= {
        "attacks": _recipe_attacks(result, inputs),
        "columns": dict(inputs.columns or {}),
        "claim": result.claim,
        "confidence": result.confidence,
        "challenge": inputs.challenge,
        "seed": result.provenance.seed,
    }
    if was_asked(result, "cuts"):
        arguments["cuts"] = result.options["cuts"]
    recipe_json, stored_arrays = TablesRecipe(arguments).encoded()
    checked_recipe = TablesRecipe.decoded(recipe_json, stored_arrays)
    flaw = flaw_of_rerun(checked_recipe.run, result)
    if flaw:
        raise FormatError(
            f"auditing these tables gives another result: {flaw}; pass the tables that were "
            "audited, and columns, missing, challenge and attacks of one's own as the audit had "
            "them"
        )
    return checked_recipe


def _recipe_attacks(result: SyntheticResult, inputs: SyntheticInputs) -> object:
    """Return the names of attacks, or scores of one's own in the order of the records."""
    if inputs.attacks is None:
        return list(_recipe_table(dict(result.options), "attacks"))
    order_of_records = ExampleOrder.of_tables(
        [inputs.members, inputs.nonmembers], "the index of members and non-members"
    )
    scores_by_attack = {}
    for attack_name, attack_scores in inputs.attacks.items():
        scores_by_attack[attack_name] = order_of_records.placed(
            attack_scores, f"scores of {attack_name!r}"
        )
    return scores_by_attack


def _array_name_of_attack(number: int) -> str:
    """Return the name of the array that holds the scores of an attack."""
    return f"attacks.{number}"


def _read_recipe_attacks(
    attacks_json: Mapping[str, object], unread_arrays: dict[str, AnyArray]
) -> object:
    """Return names of attacks, or scores of one's own."""
    attack_names: Any = attacks_json.get("names")
    is_list = isinstance(attack_names, list)
    if not is_list or not all(isinstance(name, str) for name in attack_names):
        raise FormatError(f"attacks are {shown(attack_names)}, not names")
    if not attacks_json.get("own"):
        return attack_names
    array_names = [_array_name_of_attack(number) for number in range(len(attack_names))]
    are_stored = unread_arrays.keys() >= set(array_names)
    if not are_stored or len(set(attack_names)) < len(attack_names):
        raise FormatError("attacks have names that differ, and an array for each")
    attack_scores = [unread_arrays.pop(array_name) for array_name in array_names]
    return dict(zip(attack_names, attack_scores, strict=True))


def _recipe_table(recipe_json: Mapping[str, object], part_name: str) -> dict[str, object]:
    """Return a part of JSON that has to be a table."""
    stored_part = recipe_json.get(part_name)
    if not isinstance(stored_part, dict):
        raise FormatError(f"{part_name} is {shown(stored_part)}, not a table of names")
    return stored_part
