"""Rows of a benchmark: kept in a folder, summed up, and drawn."""

import math
import os
import secrets
import statistics
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

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

KEY = ("game", "m", "seed", "claim", "method", "options", "confidence")
"""Columns that tell a row from all others of the same code."""
_NUMBERS = ("bound", "truth", "oracle", "false_claim", "seconds")
_COLUMNS = (*KEY, *_NUMBERS, "error", "version", "commit")
# Types of those that are not text.
_TYPES = {"m": "int64", "seed": "int64", "confidence": "float64", "false_claim": "bool_"}
# Of the curves of a figure.
_MARKS = "osD^vPX*"
# Probability that bad luck makes any bound of a table look false.
_FAMILY_WISE = 1e-3
# Confidence of both limits of a share of false claims together.
_LIMITS = 0.95

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = dict[tuple[object, ...], Row]
Picture: TypeAlias = Literal["bound against m", "false claims"]


@cache
def origin(package: Path = Path(__file__).parents[1]) -> Mapping[str, str]:
    """Return version and commit of the package: the last one that changed its files.

    A digest of these files follows a plus sign where they are not as committed; an installed
    package has nothing but the digest.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words, "--", "."]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:  # no git
            return ""

    total = sha256()
    for file in sorted(package.rglob("*")):
        if file.suffix in {".py", ".so", ".pyd"}:
            total.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    commit = git("log", "-1", "--format=%h", "--abbrev=12").strip()
    if not commit or git("status", "--porcelain"):
        commit += f"+{total.hexdigest()[:12]}"
    return {"version": _core.__version__, "commit": commit}


class Store:
    """A folder of rows: files are added, each whole or not at all; None keeps nothing."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def rows(self) -> Rows:
        """Return the rows of this code that the folder has."""
        if self._folder is None:
            return {}
        self._folder.mkdir(parents=True, exist_ok=True)
        files = sorted(self._folder.glob("*.parquet"))
        rows = (row for file in files for row in read_parquet(file).to_pylist())
        return {
            tuple(row[name] for name in KEY): row for row in rows if origin().items() <= row.items()
        }

    def add(self, rows: Rows) -> None:
        """Keep more rows, in a file of their own."""
        if self._folder is None or not rows:
            return
        with replacing(self._folder / f"{secrets.token_hex(8)}.parquet") as file:
            from pyarrow import parquet

            parquet.write_table(Table.of(rows.values()).to_arrow(), file)


@dataclass(frozen=True)
class Summary:
    """What became of each bound on each claim, in games of each kind and size.

    Parameters
    ----------
    lines : tuple of dict
        Each has game, m, claim, bound and its options; how many games there were, in how many game
        or bound raised an error, which count for nothing else, and what the first of these said;
        the mean bound, the truth, the mean oracle, and the mean's shares of both; the number of
        false claims, Clopper-Pearson limits of their share (low, high), each at 97.5 %, and
        the p-value P(Bin(games, 1 - confidence) ≥ false claims); and the median seconds of a bound.
    """

    lines: tuple[Row, ...]

    @property
    def false(self) -> tuple[Row, ...]:
        """Bounds with more false claims than luck explains, family-wise at 0.001."""
        level = _FAMILY_WISE / len(self.lines)
        return tuple(line for line in self.lines if line["p_value"] < level)

    def __str__(self) -> str:
        return self.to_markdown()

    def cells(self) -> list[list[str]]:
        """Return the headings, and what stands below them for each line."""
        heads = "game|claim|bound|m|mean|of truth|of oracle|false claims|errors|seconds"
        rows = [heads.split("|")]
        for line in self.lines:
            told = "{false_claims} of {judged} ({0:.1f} to {1:.1f} %)".format(
                100 * line["low"], 100 * line["high"], **line
            )
            shares = [line[name] for name in ("mean", "of_truth", "of_oracle")]
            digits = ["-" if math.isnan(one) else f"{one:.3f}" for one in shares]
            first = [line["game"], line["claim"], method(line), f"{line['m']:,}", *digits]
            told = told if line["judged"] else "-"
            rows.append([*first, told, str(line["errors"]), f"{line['seconds']:.2g}"])
        return rows

    def to_markdown(self) -> str:
        """Return the lines as a table, with exact limits of the share of false claims."""
        heads, *rows = ([cell.replace("|", "\\|") for cell in cells] for cells in self.cells())
        for line, cells in zip(self.lines, rows, strict=True):
            cells[7] = f"**{cells[7]}**" if line in self.false else cells[7]
        rule = ["---"] * 3 + ["--:"] * 7
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, rule, *rows))


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a benchmark, as an Arrow table."""

    arrow: Any

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Table":
        """Build the table of rows."""
        with needs("io", "leakbound.benchmark"):
            import pyarrow as pa
        types = dict.fromkeys(_NUMBERS, "float64") | _TYPES
        names = [(name, getattr(pa, types.get(name, "string"))()) for name in _COLUMNS]
        return cls(pa.Table.from_pylist([*rows], schema=pa.schema(names)))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Table":
        """Read all rows of a parquet file, or of a folder of them, whatever code they are of."""
        files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
        return cls.of(row for file in files for row in read_parquet(file).to_pylist())

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`."""
        return self.arrow

    def summary(self) -> Summary:
        """Return a line for each bound on each claim, in games of each kind and size."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.arrow.to_pylist():
            key = tuple(row[name] for name in ("game", "m", "claim", "method", "options"))
            groups.setdefault(key, []).append(row)
        return Summary(tuple(map(_line, groups.values())))

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
        lines = self.summary().lines
        lines = tuple(one for one in lines if one["claim"] == (claim or lines[0]["claim"]))
        games = list(dict.fromkeys(one["game"] for one in lines))
        level = 1 - self.arrow["confidence"][0].as_py()
        with house_style():
            from matplotlib.figure import Figure

            columns = min(3, len(games))
            down = -(-len(games) // columns)
            figure = Figure(figsize=(4.2 * columns, 3.0 * down + 0.6), layout="constrained")
            panels = figure.subplots(down, columns, squeeze=False).flat
            for ax, game in zip(panels, games, strict=False):
                ax.set_title(game)
                chosen = [one for one in lines if one["game"] == game]
                (_bounds if what == "bound against m" else _false_claims)(ax, chosen, level)
            for ax in figure.axes[len(games) :]:
                ax.set_axis_off()
            handles, labels = figure.axes[0].get_legend_handles_labels()
            if labels:
                figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return figure


def method(line: Row) -> str:
    """Return the name of a bound with its options."""
    return f"{line['bound']}({line['options']})" if line["options"] else str(line["bound"])


def _line(rows: list[Row]) -> Row:
    first = rows[0]
    whole = [row for row in rows if not row["error"]]
    wrong = [row["false_claim"] for row in whole if row["false_claim"] is not None]
    false, judged = sum(wrong), len(wrong)
    mean, truth, oracle = (
        float(np.mean([row[name] for row in whole])) if whole else math.nan
        for name in ("bound", "truth", "oracle")
    )
    beta = (1 - _LIMITS) / 2
    told = first["options"]
    return {
        **{name: first[name] for name in ("game", "m", "claim")},
        "bound": first["method"],
        "options": "" if told.startswith("code ") else told,
        "games": len(rows),
        "errors": len(rows) - len(whole),
        "error": next((row["error"] for row in rows if row["error"]), ""),
        "mean": mean,
        "truth": truth,
        "oracle": oracle,
        "of_truth": mean / truth if 0 < truth < math.inf else math.nan,
        "of_oracle": mean / oracle if oracle > 0 else math.nan,
        "false_claims": false,
        "judged": judged,
        "low": clopper_pearson(false, judged, beta=beta) if false else 0.0,
        "high": 1 - clopper_pearson(judged - false, judged, beta=beta) if judged > false else 1.0,
        "p_value": binomial_tail(false, judged, 1 - first["confidence"]) if judged else 1.0,
        "seconds": statistics.median(row["seconds"] for row in rows),
    }


def _bounds(ax: "Axes", lines: list[Row], _level: float) -> None:
    """Draw mean bounds against the number of examples."""
    lines = [one for one in lines if one["errors"] < one["games"]]
    if not lines:
        return
    for number, name in enumerate(dict.fromkeys(map(method, lines))):
        points = sorted((one["m"], one["mean"]) for one in lines if method(one) == name)
        look: dict[str, Any] = {
            "marker": _MARKS[number % len(_MARKS)],
            "color": f"C{number}",
            "label": name,
        }
        ax.plot(*zip(*points, strict=True), **look)
    points = sorted({one["m"]: one["oracle"] for one in lines}.items())
    ax.plot(*zip(*points, strict=True), ":", color=MUTED, label="best fixed cut, labels at hand")
    if lines[0]["truth"] <= 3 * max(one["mean"] for one in lines):
        ax.axhline(lines[0]["truth"], color=INK, linestyle="--")
    ax.set(xscale="log", xlabel="examples m", ylabel="mean bound")
    ax.set_ylim(bottom=0)


def _false_claims(ax: "Axes", lines: list[Row], level: float) -> None:
    """Draw the share of false claims of each bound, with exact limits."""
    lines = [one for one in reversed(lines) if one["judged"]]
    for number, one in enumerate(lines):
        colour = ALERT if one["low"] > level else "C0"
        ax.plot((one["low"], one["high"]), (number, number), color=colour)
        ax.plot(one["false_claims"] / one["judged"], number, "o", color=colour)
    ax.set_yticks(range(len(lines)), [f"{method(one)}, m = {one['m']:,}" for one in lines])
    ax.axvline(level, color=INK, linestyle="--")
    ax.set(xlabel="share of false claims", xlim=(-0.01, None))
