"""How an audit of a synthetic table is run again: its options as JSON, and its tables as arrays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import shown
from leakbound._base.tables import (
    Column,
    TableInput,
    Writing,
    exact_number,
    objects,
    read_columns,
)
from leakbound._base.types import AnyArray, JsonObject, JsonValue
from leakbound.audits.synthetic import audit_synthetic
from leakbound.audits.synthetic_tables import marks
from leakbound.errors import FormatError
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
_MISSING = "missing"
# Types of the arrays of a column, by its kind; exact numbers are stored as their digits.
_STORED = {
    "number": "f",
    "exact": "U",
    "date": "M",
    "zoned": "M",
    "flag": "U",
    "text": "U",
    "empty": "U",
}


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
                tables[name] = list(_stored_table(name, given[name], arrays))
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
            "writing": _stored_writing(given["members"]),
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
        writing = _read_writing(_mapping(content, "writing"))
        used: set[str] = set()
        for name, parts in tables.items():
            arguments[name] = _read_table(name, parts, arrays, writing, used)
        arguments["attacks"] = _read_attacks(_mapping(content, "attacks"), arrays, used)
        if used != set(arrays):
            raise FormatError(f"the arrays {', '.join(sorted(set(arrays) - used))} are no argument")
        return cls({**arguments, "columns": columns})


def tables_recipe_of(result: SyntheticResult, given: SyntheticInputs) -> TablesRecipe:
    """Return the recipe that gives a result again, bit for bit, from its own options."""
    writing = Writing(missing=marks(given.missing))
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


def _stored_table(
    table: str, columns: Mapping[str, Column], arrays: dict[str, AnyArray]
) -> Iterator[JsonValue]:
    """Put the columns of a table among the arrays, and say what each of them holds."""
    for place, (label, column) in enumerate(columns.items()):
        values = column.values
        kind: str = column.kind
        if column.is_exact:
            kind = "exact"
            values = np.array([repr(exact_number(one)) for one in values.tolist()], dtype=np.str_)
        elif kind == "number":
            values = values.astype(column.precision)
        arrays[f"{table}.{place}"] = values
        arrays[f"{table}.{place}.{_MISSING}"] = column.missing
        yield {"name": label, "kind": kind}


def _stored_writing(columns: Mapping[str, Column]) -> JsonObject:
    """Return how text is written, which is the same in all tables."""
    texts = [one.writing for one in columns.values() if one.kind == "text"]
    writing = texts[0] if texts else Writing()
    return {
        "decimal": writing.decimal,
        "thousands": writing.thousands,
        "missing": list(writing.missing),
    }


def _read_table(
    table: str,
    parts: object,
    arrays: Mapping[str, AnyArray],
    writing: Writing,
    used: set[str],
) -> dict[str, Column]:
    """Return the columns of a table."""
    if not isinstance(parts, list):
        raise FormatError(f"{table} must be a list of columns")
    columns = {}
    for place, part in enumerate(parts):
        known = isinstance(part, dict) and part.keys() == {"name", "kind"}
        if not known or not isinstance(part["name"], str) or part["kind"] not in _STORED:
            raise FormatError(
                f"column {place} of {table} is {shown(part)}: no name and kind of one"
            )
        names = (f"{table}.{place}", f"{table}.{place}.{_MISSING}")
        if not {*names} <= arrays.keys():
            raise FormatError(f"column {place} of {table} has no arrays")
        used |= {*names}
        values, missing = (arrays[name] for name in names)
        columns[part["name"]] = _read_column(
            part["kind"], values, missing, writing, f"{names[0]} ({part['kind']})"
        )
    return columns


def _read_column(
    kind: Any, values: AnyArray, missing: AnyArray, writing: Writing, name: str
) -> Column:
    """Return a column as it was read, if its arrays can be those of one."""
    fits = (
        values.ndim == 1
        and values.dtype.kind == _STORED[kind]
        and missing.shape == values.shape
        and missing.dtype == np.bool_
    )
    if fits and values.dtype.kind == "f":
        fits = bool(np.isfinite(values).all())
    if not fits:
        raise FormatError(f"{name} holds {values.dtype} of shape {values.shape}, not a column")
    if kind == "exact":
        return Column(objects(map(_exact, values.tolist())), missing, "number")
    if kind == "number":
        precision = min(values.dtype, np.dtype(np.float64), key=lambda one: one.itemsize)
        return Column(values.astype(np.float64), missing, "number", precision)
    if kind == "text":
        return Column(values, missing, "text", writing=writing, table=name)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]")
    return Column(values, missing, kind)


def _exact(digits: str) -> int | float:
    """Return the number that its digits stand for."""
    try:
        return int(digits)
    except ValueError:
        pass
    try:
        return float(digits)
    except ValueError:
        raise FormatError(f"{shown(digits)} is not a number") from None


def _read_writing(content: Mapping[str, object]) -> Writing:
    """Return how text is written."""
    decimal = content.get("decimal")
    thousands = content.get("thousands")
    missing = content.get("missing")
    texts = [decimal, thousands, missing]
    if isinstance(missing, list):
        texts = [decimal, thousands, *missing]
    if not all(isinstance(one, str) for one in texts) or isinstance(missing, str):
        raise FormatError(f"writing is {shown(content)}, not a decimal, thousands and missing")
    return Writing(
        decimal=str(decimal), thousands=str(thousands), missing=tuple(map(str, texts[2:]))
    )


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
