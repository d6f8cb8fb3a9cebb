"""Rows of a benchmark: kept in a folder, summed up, and drawn."""

import math
import os
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import leakbound._core as _core
from leakbound._base.checks import choice
from leakbound._base.files import replacing
from leakbound._base.imports import needs
from leakbound.benchmark.games import read_parquet
from leakbound.report.style import ALERT, INK, MUTED, house_style
from leakbound.stats import binomial_tail, clopper_pearson

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEY = ("game", "m", "seed", "claim", "method", "options", "code", "confidence")
"""Columns that tell a row from all others of the same commit."""
_TYPES = {
    **dict.fromkeys(KEY, "string"),
    **dict.fromkeys(("bound", "truth", "oracle", "seconds"), "float64"),
    "false_claim": "bool_",
    **dict.fromkeys(("error", "version", "commit"), "string"),
    "m": "int64",
    "seed": "int64",
    "confidence": "float64",
}
# Columns that the rows of a line of the summary share, and aggregates of the others.
_SAME = ["game", "m", "claim", "method", "options", "code", "confidence"]
_SUMS = ["bound mean", "bound count", "truth mean", "oracle mean", "false_claim sum"]
_SUMS += ["false_claim count", "seconds approximate_median", "error max", "row min"]
# Of the curves of a figure.
_MARKS = "osD^vPX*"
# Probability that bad luck makes any bound of a table look false.
_FAMILY_WISE = 1e-3
# Chance that a share of false claims is beyond either of its limits.
_BEYOND = 0.025

Row: TypeAlias = dict[str, Any]
Picture: TypeAlias = Literal["bound against m", "false claims"]


@cache
def origin(package: Path = Path(__file__).parents[1]) -> Mapping[str, str]:
    """Return version and commit of the package: the last one that changed its files.

    A digest of these files follows a plus sign where they are not as committed; an installed
    package has nothing but the digest.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words, "--", "."]
        with suppress(OSError):  # no git
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return ""

    files = [one for one in sorted(package.rglob("*")) if one.suffix in {".py", ".so", ".pyd"}]
    contents = (str(one.relative_to(package)).encode() + one.read_bytes() for one in files)
    commit = git("log", "-1", "--format=%h", "--abbrev=12").strip()
    if not commit or git("status", "--porcelain"):
        commit += f"+{sha256(b''.join(contents)).hexdigest()[:12]}"
    return {"version": _core.__version__, "commit": commit}


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
        level = _FAMILY_WISE / len(self.lines)
        return tuple(line for line in self.lines if line["p_value"] < level)

    def to_markdown(self) -> str:
        """Return the lines as a table, with exact limits of the share of false claims."""
        heads = "game, claim, bound, m, mean, of truth, of oracle, false claims, , errors, seconds"
        rows = [heads.split(", "), ["---"] * 11]
        for line in self.lines:
            shares = (line[name] for name in ("bound", "of_truth", "of_oracle"))
            digits = ["-" if math.isnan(one) else f"{one:.3f}" for one in shares]
            told = "{false_claims} of {judged} ({0:.1f} to {1:.1f} %)".format(
                100 * line["low"], 100 * line["high"], **line
            )
            judged = [told, "FALSE" if line in self.false else ""] if line["judged"] else ["-", ""]
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

    arrow: Any

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Table":
        """Build the table of rows."""
        with needs("io", "leakbound.benchmark"):
            import pyarrow as pa
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _TYPES.items()])
        return cls(pa.Table.from_pylist([*rows], schema=schema))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Table":
        """Read all rows of a parquet file, or of a folder of them, whatever code they are of."""
        files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
        return cls.of(row for file in files for row in read_parquet(file).to_pylist())

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`."""
        return self.arrow

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a parquet file, all of it or nothing."""
        from pyarrow import parquet

        with replacing(path) as file:
            parquet.write_table(self.arrow, file, compression="zstd")

    def summary(self) -> Summary:
        """Return a line for each bound on each claim, in games of each kind and size."""
        numbered = self.arrow.append_column("row", [range(self.arrow.num_rows)])
        sums: list[Any] = [*map(str.split, _SUMS), ([], "count_all")]
        groups = numbered.group_by(_SAME).aggregate(sums).sort_by("row_min")
        return Summary(tuple(map(_line, groups.to_pylist())))

    def plot(self, what: Picture = "bound against m", *, claim: str | None = None) -> "Figure":
        """Draw a panel for each game: mean bounds against m, or shares of false claims.

        Parameters
        ----------
        what : {"bound against m", "false claims"}
            Mean bounds, the truth (dashed, where it is in sight) and the oracle (dotted); or false
            claims with their limits, beside the share that is allowed.
        claim : str, optional
            The name of the claim; the first one if None.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        choice(what, "what", Picture)
        panels: dict[str, list[Row]] = {}
        for line in self.summary().lines:
            claim = claim or line["claim"]
            if line["claim"] == claim:
                panels.setdefault(line["game"], []).append(line)
        with house_style():
            from matplotlib import pyplot as plt

            columns = min(3, len(panels))
            down = -(-len(panels) // columns)
            most = max(map(len, panels.values())) if what == "false claims" else 0
            size = 4.2 * columns, max(3.0, 0.25 * most) * down + 0.6
            figure, grid = plt.subplots(
                down, columns, squeeze=False, figsize=size, layout="constrained"
            )
            for ax, (game, lines) in zip(grid.flat, panels.items(), strict=False):
                ax.set_title("\n".join(wrap(game, 34)))
                (_bounds if what == "bound against m" else _false_claims)(ax, lines)
            for ax in figure.axes[len(panels) :]:
                ax.set_axis_off()
            handles, labels = figure.axes[0].get_legend_handles_labels()
            if labels:
                figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return figure


def method(line: Row) -> str:
    """Return the name of a bound with its options."""
    return f"{line['method']}({line['options']})" if line["options"] else str(line["method"])


def _line(group: Row) -> Row:
    """Return the aggregates of the rows of a group."""
    false, judged = group["false_claim_sum"] or 0, group["false_claim_count"]
    found = {name: group[f"{name}_mean"] for name in ("bound", "truth", "oracle")}
    mean, truth, oracle = (math.nan if one is None else one for one in found.values())
    return {
        **{name: group[name] for name in _SAME},
        **dict(zip(found, (mean, truth, oracle), strict=True)),
        "of_truth": mean / truth if 0 < truth < math.inf else math.nan,
        "of_oracle": mean / oracle if oracle > 0 else math.nan,
        "false_claims": false,
        "judged": judged,
        "low": clopper_pearson(false, judged, beta=_BEYOND) if false else 0.0,
        "high": 1 - clopper_pearson(judged - false, judged, beta=_BEYOND) if judged > false else 1,
        "p_value": binomial_tail(false, judged, 1 - group["confidence"]) if judged else 1.0,
        "games": group["count_all"],
        "errors": group["count_all"] - group["bound_count"],
        "error": group["error_max"],
        "seconds": group["seconds_approximate_median"],
    }


def _bounds(ax: "Axes", lines: list[Row]) -> None:
    """Draw mean bounds against the number of examples."""
    lines = [line for line in lines if line["errors"] < line["games"]]
    if not lines:
        return
    for number, name in enumerate(dict.fromkeys(map(method, lines))):
        points = sorted((line["m"], line["bound"]) for line in lines if method(line) == name)
        look = f"C{number}", _MARKS[number % len(_MARKS)]
        ax.plot(*zip(*points, strict=True), color=look[0], marker=look[1], label=name)
    points = sorted({line["m"]: line["oracle"] for line in lines}.items())
    ax.plot(
        *zip(*points, strict=True), ":", color=MUTED, label="best fixed threshold, labels known"
    )
    if lines[0]["truth"] <= 3 * max(line["bound"] for line in lines):
        ax.axhline(lines[0]["truth"], color=INK, linestyle="--")
    ax.set(xscale="log", xlabel="examples m", ylabel="mean bound")
    ax.set_xticks([m for m, _ in points], [f"{m:,}" for m, _ in points])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)


def _false_claims(ax: "Axes", lines: list[Row]) -> None:
    """Draw the share of false claims of each bound, with exact limits."""
    level = 1 - lines[0]["confidence"]
    lines = [line for line in reversed(lines) if line["judged"]]
    for number, line in enumerate(lines):
        colour = ALERT if line["low"] > level else "C0"
        ax.plot((line["low"], line["high"]), (number, number), color=colour)
        ax.plot(line["false_claims"] / line["judged"], number, "o", color=colour)
    ax.set_yticks(range(len(lines)), [f"{method(line)}, m = {line['m']:,}" for line in lines])
    ax.axvline(level, color=INK, linestyle="--")
    ax.set(xlabel="share of false claims", xlim=(-0.01, None))
