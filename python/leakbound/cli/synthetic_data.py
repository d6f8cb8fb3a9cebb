"""The command that audits a synthetic table."""

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from leakbound import audit_synthetic
from leakbound._base.checks import shown
from leakbound._base.console import bar
from leakbound.cli import options
from leakbound.cli.files import Signs, read, suffix_of
from leakbound.cli.options import Delivery, command, option
from leakbound.errors import InputError

app = typer.Typer()

Table: TypeAlias = dict[str, NDArray[Any]]

# Words for a missing value in a column of numbers or dates; in text only the empty one.
_MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "?"})
# Smallest probability of values in another format all being in one table by chance.
_BY_CHANCE = 1e-6
# How codes such as postal codes begin, which are not numbers.
_CODE = re.compile(r"[+-]?0\d")

SYNTHETIC = (
    "The records were split at random: the generator was trained on --members, and --nonmembers "
    "were held out. All three files have the same columns: numbers, dates (2024-05-31), words, "
    "and an empty cell for a missing value. The bound is on ε for replacing one training record. "
    "The usual similarity metrics are reported too.\n\n[dim]Needs: pip install "
    "'leakbound\\[io,ml]'[/]"
)


@dataclass(frozen=True)
class ColumnNames:
    """Columns of the records with a special role."""

    strata: Annotated[str, option("COL", "Column that the split was stratified by.")] = ""
    groups: Annotated[
        str, option("COL", "Column of groups that the split kept together, such as a person's id.")
    ] = ""
    categorical: Annotated[str, option("COL,COL", "Columns whose numbers are categories.")] = ""


@command(
    app,
    "synthetic",
    "leakbound synthetic --members train.csv --nonmembers test.csv --synthetic made.csv",
    SYNTHETIC,
)
def synthetic(
    *,
    members: Annotated[Path, option("FILE", "Training records of the generator, one per row.")],
    nonmembers: Annotated[Path, option("FILE", "Held-out records of the same random split.")],
    table: Annotated[
        Path, option("FILE", "Synthetic records that the generator produced.", "--synthetic")
    ],
    reference: Annotated[
        Path | None,
        option("FILE", "Other records of the population, not in --nonmembers."),
    ] = None,
    relation: options.Relation = "replace",
    attacks: Annotated[
        str, option("NAME,NAME", "Attacks to run. The error level is divided among them.")
    ] = "default",
    columns: ColumnNames,
    question: options.Question,
    signs: Signs,
    delivery: Delivery,
) -> None:
    """Audit a synthetic table in a file."""
    common, names = question.options(relation), options.parse_columns(attacks, "--attacks")
    with bar("Reading the tables"):
        inside, outside = read_tables([members, nonmembers], signs)
        (generated,) = read_tables([table], signs)
        third = None if reference is None else read_tables([reference], signs)[0]
    codes = options.parse_columns(columns.categorical, "--categorical")
    roles: dict[str, Any] = dict.fromkeys(codes, "codes")
    if columns.strata:
        roles[columns.strata] = "stratum of codes" if columns.strata in codes else "stratum"
    if columns.groups:
        roles[columns.groups] = "group"
    with bar("Auditing the synthetic table"):
        result = audit_synthetic(
            inside,
            outside,
            generated,
            reference=third,
            attacks="default" if names == ["default"] else names,
            columns=roles,
            **common,
        )
    delivery.conclude(result, table, question.goal, relation)


def read_tables(paths: Sequence[Path], signs: Signs) -> list[Table]:
    """Read tables of records; each column gets one type in all of them."""
    return typed([_records(path, signs) for path in paths], signs.decimal or ".")


def _records(path: Path, signs: Signs) -> Table:
    """Read all columns of a table of records: text from csv, stored types otherwise."""
    columns = read(path, None, signs)
    table = {
        name: stored if isinstance(stored, np.ndarray) else stored.to_numpy(zero_copy_only=False)
        for name, stored in columns.stored.items()
    }
    if suffix_of(path) in {".csv", ".tsv"}:
        return {name: np.char.strip(words.astype(np.str_)) for name, words in table.items()}
    return table


def typed(tables: Sequence[Table], sign: str = ".") -> list[Table]:
    """Convert columns of text to numbers or dates if they are in all tables.

    The type of a column is decided from all tables together: otherwise equal values could differ
    between tables. `sign` is the decimal sign.
    """
    tables = [dict(table) for table in tables]
    for name in sorted({name for table in tables for name in table}):
        holders = [table for table in tables if name in table]
        words = [table[name] for table in holders]
        if any(column.dtype.kind != "U" for column in words):
            continue
        distinct, which = np.unique(np.concatenate(words), return_inverse=True)
        values = _read(distinct, partial(_number, sign=sign), np.float64(np.nan))
        values = _dates(distinct, name) if values is None else values
        if values is not None:
            ends = np.cumsum([column.size for column in words])[:-1]
            for table, part in zip(holders, np.split(values[which], ends), strict=True):
                table[name] = part
        elif len(words) == 2:
            _check_alike(words, name)
    return tables


def _check_alike(columns: Sequence[NDArray[np.str_]], name: str) -> None:
    """Check that two tables do not write a column in two formats, one of them readable."""
    tables = [[word for word in one.tolist() if word.lower() not in _MISSING] for one in columns]
    sizes = [len(one) for one in tables]
    splits = math.lgamma(sum(sizes) + 1) - sum(math.lgamma(size + 1) for size in sizes)
    if splits < -math.log(_BY_CHANCE):
        return
    # Members and non-members may have been exported by different tools.
    readers: tuple[Callable[[str], object], ...] = (
        _number,
        partial(_number, sign=","),
        dt.datetime.fromisoformat,
    )
    for reader in readers:
        for one, other in (tables, tables[::-1]):
            if all(_reads(word, reader) for word in one) and not any(
                _reads(word, reader) for word in other
            ):
                kind = "dates" if reader is dt.datetime.fromisoformat else "numbers"
                raise InputError(
                    f"column {name!r} holds {kind} in one of the tables of members and non-members "
                    f"({shown(one[0])}) and text in the other ({shown(other[0])}): the format "
                    "would reveal who is a member; write both in the same format"
                )


def _reads(word: str, reader: Callable[[str], object]) -> bool:
    return _read(np.array([word]), reader, None) is not None


def _number(word: str, sign: str = ".") -> float:
    if "_" in word or _CODE.match(word) or (sign == "," and "." in word):
        raise ValueError(word)
    return float(word.replace(sign, "."))


def _dates(words: NDArray[np.str_], name: str) -> NDArray[Any] | None:
    zoned = set[bool]()

    def date(word: str) -> np.datetime64:
        moment = dt.datetime.fromisoformat(word)
        zoned.add(moment.tzinfo is not None)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        return np.datetime64(moment, "us")

    dates = _read(words, date, np.datetime64("NaT", "us"))
    if dates is not None and len(zoned) > 1:
        raise InputError(
            f"column {name!r} has dates with a time zone and dates without one: the format would "
            "reveal who is a member; write all dates with a time zone, or none"
        )
    return dates


def _read(
    words: NDArray[np.str_], reader: Callable[[str], Any], missing: object
) -> NDArray[Any] | None:
    """Return the values of distinct words, or None if some cannot be read."""
    try:
        return np.array(
            [missing if word.lower() in _MISSING else reader(word) for word in words.tolist()]
        )
    except (ValueError, OverflowError):
        return None
