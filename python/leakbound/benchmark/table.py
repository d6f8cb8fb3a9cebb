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
_COLUMN_TYPES = {
    **dict.fromkeys(KEY, "string"),
    **dict.fromkeys(("bound", "truth", "oracle", "seconds"), "float64"),
    "false_claim": "bool_",
    **dict.fromkeys(("error", "version"), "string"),
    "m": "int64",
    "seed": "int64",
    "confidence": "float64",
}
# Columns that the rows of a line of the summary share, and aggregates of the others.
_SHARED_COLUMNS = ["game", "m", "claim", "method", "options", "confidence"]
_AGGREGATES = ["bound mean", "bound count", "truth mean", "oracle mean", "false_claim sum"]
_AGGREGATES += ["false_claim count", "seconds approximate_median", "error max", "row min"]
# Probability that bad luck makes any bound of a table look false.
_FAMILY_WISE_LEVEL = 1e-3
# Chance that a share of false claims is beyond either of its limits.
_TAIL_PROBABILITY = 0.025

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
        level = shares.SUMMARY_LINES.of(_FAMILY_WISE_LEVEL, len(self.lines))
        return tuple(summary_line for summary_line in self.lines if summary_line["p_value"] < level)

    def to_markdown(self) -> str:
        """Return the lines as a table, with exact limits of the share of false claims."""
        headings = (
            "game, claim, bound, m, mean, of truth, of oracle, false claims, , errors, seconds"
        )
        table_rows = [headings.split(", "), ["---"] * 11]
        for summary_line in self.lines:
            shares_of_bounds = (summary_line[name] for name in ("bound", "of_truth", "of_oracle"))
            decimals = [f"{share:.3f}".replace("nan", "-") for share in shares_of_bounds]
            share_of_false_claims = "{false_claims} of {judged} ({0:.1f} to {1:.1f} %)".format(
                100 * summary_line["low"], 100 * summary_line["high"], **summary_line
            )
            judged_cells = ["-", ""]
            if summary_line["judged"]:
                verdict = ""
                if summary_line in self.false:
                    verdict = "FALSE"
                judged_cells = [share_of_false_claims, verdict]
            name_cells = [
                summary_line["game"],
                summary_line["claim"],
                method(summary_line),
                f"{summary_line['m']:,}",
            ]
            last_cells = [str(summary_line["errors"]), f"{summary_line['seconds']:.2g}"]
            table_rows.append([*name_cells, *decimals, *judged_cells, *last_cells])
        table_rows = [[cell.replace("|", "\\|") for cell in cells] for cells in table_rows]
        widths = [max(map(len, column)) for column in zip(*table_rows, strict=True)]
        padded_rows = (map(str.ljust, cells, widths) for cells in table_rows)
        return "".join(f"| {' | '.join(cells)} |\n" for cells in padded_rows)

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
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMN_TYPES.items()])
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
        numbered_rows = self.arrow.append_column("row", [range(self.arrow.num_rows)])
        aggregates: list[object] = [*map(str.split, _AGGREGATES), ([], "count_all")]
        groups = numbered_rows.group_by(_SHARED_COLUMNS).aggregate(aggregates).sort_by("row_min")
        return Summary(tuple(map(_summary_line, groups.to_pylist())))


def method(line: Row) -> str:
    """Return the name of a bound with its options."""
    if line["options"]:
        return f"{line['method']}({line['options']})"
    return str(line["method"])


def _summary_line(group: Row) -> Row:
    """Return the aggregates of the rows of a group."""
    false_claims = group["false_claim_sum"] or 0
    judged = group["false_claim_count"]
    mean_bound = _nan_if_unknown(group["bound_mean"])
    mean_truth = _nan_if_unknown(group["truth_mean"])
    mean_oracle = _nan_if_unknown(group["oracle_mean"])
    of_truth = math.nan
    if 0 < mean_truth < math.inf:
        of_truth = mean_bound / mean_truth
    of_oracle = math.nan
    if mean_oracle > 0:
        of_oracle = mean_bound / mean_oracle
    # Clopper-Pearson limits of the share of false claims, and the tail of their number.
    lower_limit = 0.0
    if false_claims:
        lower_limit = clopper_pearson(false_claims, judged, beta=_TAIL_PROBABILITY)
    upper_limit = 1.0
    if judged > false_claims:
        upper_limit = 1 - clopper_pearson(judged - false_claims, judged, beta=_TAIL_PROBABILITY)
    p_value = 1.0
    if judged:
        p_value = binomial_tail(false_claims, n=judged, p=1 - group["confidence"])
    return {
        **{name: group[name] for name in _SHARED_COLUMNS},
        "bound": mean_bound,
        "truth": mean_truth,
        "oracle": mean_oracle,
        "of_truth": of_truth,
        "of_oracle": of_oracle,
        "false_claims": false_claims,
        "judged": judged,
        "low": lower_limit,
        "high": upper_limit,
        "p_value": p_value,
        "games": group["count_all"],
        "errors": group["count_all"] - group["bound_count"],
        "error": group["error_max"],
        "seconds": group["seconds_approximate_median"],
    }


def _nan_if_unknown(mean: float | None) -> float:
    """Return a mean of Arrow, which is null where no row has the number."""
    if mean is None:
        return math.nan
    return mean
