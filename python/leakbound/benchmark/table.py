"""Rows of a benchmark, and their summary."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from leakbound._base import shares
from leakbound._base.files import replacing
from leakbound._base.imports import needs
from leakbound._base.types import PathInput
from leakbound.benchmark.games import read_parquet
from leakbound.errors import FormatError
from leakbound.stats import binomial_tail, clopper_pearson

if TYPE_CHECKING:
    import pyarrow as pa

KEY = ("game", "m", "seed", "claim", "method", "options", "confidence")
"""Columns that tell a row from all others."""
_TYPES = {
    **dict.fromkeys(KEY, "string"),
    **dict.fromkeys(("bound", "truth", "oracle", "seconds"), "float64"),
    "false_claim": "bool_",
    **dict.fromkeys(("error", "version"), "string"),
    "m": "int64",
    "seed": "int64",
    "confidence": "float64",
}
# Columns that the rows of a line of the summary share, and aggregates of the others.
_SAME = ["game", "m", "claim", "method", "options", "confidence"]
_SUMS = ["bound mean", "bound count", "truth mean", "oracle mean", "false_claim sum"]
_SUMS += ["false_claim count", "seconds approximate_median", "error max", "row min"]
# Probability that bad luck makes any bound of a table look false.
_FAMILY_WISE = 1e-3
# Chance that a share of false claims is beyond either of its limits.
_BEYOND = 0.025

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Summary:
    """A summary of each bound on each claim, in games of each kind and size.

    Parameters
    ----------
    lines : tuple of dict
        Each has the game, m, claim, method and options of its rows; mean bound, truth and oracle,
        and the bound's shares of both (`of_truth`, `of_oracle`), NaN if unknown; the
        number of false claims among those that could be judged, Clopper-Pearson limits of its share
        (`low`, `high`), each at 97.5 %, and the p-value P(Bin(judged, 1 - confidence) ≥ false
        claims); the number of games, and how many raised an error, which count for nothing else;
        one of these errors; and the median seconds of a bound.
    """

    lines: tuple[Row, ...]

    @property
    def false(self) -> tuple[Row, ...]:
        """Bounds with more false claims than chance explains, at family-wise level 0.001."""
        level = shares.SUMMARY_LINES.of(_FAMILY_WISE, len(self.lines))
        return tuple(line for line in self.lines if line["p_value"] < level)

    def to_markdown(self) -> str:
        """Return the lines as a table, with exact limits of the share of false claims."""
        heads = "game, claim, bound, m, mean, of truth, of oracle, false claims, , errors, seconds"
        rows = [heads.split(", "), ["---"] * 11]
        for line in self.lines:
            shares = (line[name] for name in ("bound", "of_truth", "of_oracle"))
            digits = [f"{one:.3f}".replace("nan", "-") for one in shares]
            told = "{false_claims} of {judged} ({0:.1f} to {1:.1f} %)".format(
                100 * line["low"], 100 * line["high"], **line
            )
            judged = ["-", ""]
            if line["judged"]:
                judgement = ""
                if line in self.false:
                    judgement = "FALSE"
                judged = [told, judgement]
            names = [line["game"], line["claim"], method(line), f"{line['m']:,}"]
            rows.append([*names, *digits, *judged, str(line["errors"]), f"{line['seconds']:.2g}"])
        rows = [[cell.replace("|", "\\|") for cell in cells] for cells in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (map(str.ljust, cells, widths) for cells in rows)
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    __str__ = to_markdown


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a benchmark, as an Arrow table."""

    arrow: "pa.Table"

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, object]]) -> "Table":
        """Build the table of rows."""
        with needs("io", "leakbound.benchmark"):
            import pyarrow as pa
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _TYPES.items()])
        return cls(pa.Table.from_pylist([*rows], schema=schema))

    @classmethod
    def read(cls, path: PathInput) -> "Table":
        """Read the rows of a parquet file."""
        table = read_parquet(Path(path))
        if not {*KEY} <= {*table.column_names}:
            raise FormatError(
                f"{path} has no rows of a benchmark, whose columns are {', '.join(KEY)}"
            )
        return cls.of(table.to_pylist())

    def to_arrow(self) -> "pa.Table":
        """Return the rows as a `pyarrow.Table`."""
        return self.arrow

    def to_parquet(self, path: PathInput) -> None:
        """Write the rows to a parquet file, all of it or nothing."""
        from pyarrow import parquet

        with replacing(path) as file:
            parquet.write_table(self.arrow, file, compression="zstd")

    def summary(self) -> Summary:
        """Return a line for each bound on each claim, in games of each kind and size."""
        numbered = self.arrow.append_column("row", [range(self.arrow.num_rows)])
        sums: list[object] = [*map(str.split, _SUMS), ([], "count_all")]
        groups = numbered.group_by(_SAME).aggregate(sums).sort_by("row_min")
        return Summary(tuple(map(_line, groups.to_pylist())))


def method(line: Row) -> str:
    """Return the name of a bound with its options."""
    if line["options"]:
        return f"{line['method']}({line['options']})"
    return str(line["method"])


def _line(group: Row) -> Row:
    """Return the aggregates of the rows of a group."""
    false = group["false_claim_sum"] or 0
    judged = group["false_claim_count"]
    mean = _known(group["bound_mean"])
    truth = _known(group["truth_mean"])
    oracle = _known(group["oracle_mean"])
    of_truth = math.nan
    if 0 < truth < math.inf:
        of_truth = mean / truth
    of_oracle = math.nan
    if oracle > 0:
        of_oracle = mean / oracle
    # Clopper-Pearson limits of the share of false claims, and the tail of their number.
    low = 0.0
    if false:
        low = clopper_pearson(false, judged, beta=_BEYOND)
    high = 1.0
    if judged > false:
        high = 1 - clopper_pearson(judged - false, judged, beta=_BEYOND)
    p_value = 1.0
    if judged:
        p_value = binomial_tail(false, n=judged, p=1 - group["confidence"])
    return {
        **{name: group[name] for name in _SAME},
        "bound": mean,
        "truth": truth,
        "oracle": oracle,
        "of_truth": of_truth,
        "of_oracle": of_oracle,
        "false_claims": false,
        "judged": judged,
        "low": low,
        "high": high,
        "p_value": p_value,
        "games": group["count_all"],
        "errors": group["count_all"] - group["bound_count"],
        "error": group["error_max"],
        "seconds": group["seconds_approximate_median"],
    }


def _known(mean: float | None) -> float:
    if mean is None:
        return math.nan
    return mean
