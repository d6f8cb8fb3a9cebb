"""Games of your own attack, rows of a benchmark, their summary, and their figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

from leakbound._base import shares
from leakbound._base.checks import check_membership, check_scores, instance, integer, real
from leakbound._base.files import parquet_batches, replacing
from leakbound._base.imports import needs
from leakbound._base.messages import Message, Option
from leakbound._base.streams import Purpose
from leakbound.errors import FormatError, OptionError
from leakbound.report.style import ALERT, INK, MUTED, house_style
from leakbound.simulate import Game
from leakbound.simulate.games import tossed
from leakbound.stats import binomial_tail, clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from leakbound._base.types import ArrayInput, BoolArray, FloatArray, PathInput


@dataclass(frozen=True)
class Attack:
    """A game with your own attack, on members drawn by fair coins.

    Parameters
    ----------
    attack : callable
        ``attack(member, seed)`` returns scores, shape (m,). Train on the members, where the bool
        array `member` is True; or ignore it to see the scores of noise.
    truth : float
        The ε that your training keeps, at least 0; 0 if it ignores `member`.
    """

    attack: Callable[[BoolArray, int], ArrayInput]
    truth: float = 0.0

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        rng, member = tossed(Purpose.USER_GAME, m=m, seed=seed)
        attack_seed = int(rng.integers(2**32))
        attack_scores = check_scores(self.attack(member.copy(), attack_seed), name="attack(…)")
        truth = real(self.truth, name="truth", least=0)
        return Game(scores=attack_scores, member=member, truth=truth, parameter="epsilon")


@dataclass(frozen=True)
class Scores:
    """Stored scores of a trained model whose members were drawn by fair coins; unknown truth.

    A game of m examples is a random part of them, chosen by its seed.

    Parameters
    ----------
    source : str or os.PathLike
        A parquet file with a column `member` and columns of scores, higher for likelier members.
    column : str
        The column of scores.
    """

    source: PathInput
    column: str = "score"

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        path = Path(self.source)
        last_written = None
        if path.exists():
            last_written = (path.stat().st_mtime_ns, path.stat().st_size)
        stored_scores, stored_membership = _stored_scores(
            path, column=self.column, _last_written=last_written
        )
        if m > stored_scores.size:
            message = "{path} has only {examples:,} examples: {m} is too large"
            named_values = {"path": path, "examples": stored_scores.size, "m": Option("m", m)}
            raise OptionError(Message(message, **named_values))
        rng = Purpose.CORPUS_ROWS.rng(integer(seed, name="seed", least=0))
        drawn_rows = rng.permutation(stored_scores.size)[:m]
        return Game(
            scores=stored_scores[drawn_rows],
            member=stored_membership[drawn_rows],
            truth=math.nan,
            parameter="epsilon",
        )


@lru_cache(maxsize=8)
def _stored_scores(path: Path, column: str, _last_written: object) -> tuple[FloatArray, BoolArray]:
    """Return scores and membership of a file, which is read again if it was written since."""
    arrow_table = read_parquet(path)
    for column_name in (column, "member"):
        if column_name not in arrow_table.column_names:
            raise FormatError(
                f"{path} has no column {column_name!r}; its columns are "
                f"{', '.join(arrow_table.column_names)}"
            )
    column_scores = check_scores(arrow_table[column].to_numpy(), name=f"{column!r} of {path}")
    return column_scores, check_membership(arrow_table["member"].to_numpy(), column_scores.size)


def read_parquet(path: Path) -> pa.Table:
    """Read a parquet file; an error about a damaged one names it."""
    with needs("io", "leakbound.benchmark"):
        import pyarrow as pa
    try:
        schema, batches = parquet_batches(path)
        return pa.Table.from_batches(batches, schema)
    except FormatError as error:
        raise FormatError(f"{path} cannot be read: {error}") from error
    except (pa.ArrowException, OSError) as error:
        flaw = " ".join(str(error).split())
        raise FormatError(f"{path} is not a complete parquet file: {flaw:.200}") from error


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

    arrow: pa.Table

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, object]]) -> Table:
        """Build the table of rows."""
        with needs("io", "leakbound.benchmark"):
            import pyarrow as pa
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _COLUMN_TYPES.items()])
        return cls(pa.Table.from_pylist([*rows], schema=schema))

    @classmethod
    def read(cls, path: PathInput) -> Table:
        """Read the rows of a parquet file."""
        table = read_parquet(Path(path))
        if not {*KEY} <= {*table.column_names}:
            raise FormatError(
                f"{path} has no rows of a benchmark, whose columns are {', '.join(KEY)}"
            )
        return cls.of(table.to_pylist())

    def to_arrow(self) -> pa.Table:
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


_MARKERS = "osD^vPX*"
# Inches
_PANEL_WIDTH = 4.2
_PANEL_HEIGHT = 3.0
_LEGEND_HEIGHT = 0.6


def draw_bounds(table: Table, claim: str) -> Figure:
    """Draw mean bounds against the number of examples, a panel for each game.

    Parameters
    ----------
    table : Table
        Rows of `run`. Methods that failed in every game of a panel are left out of it.
    claim : str
        The claim to show, as the column ``claim`` has it, for example ``"pure DP"``.

    Returns
    -------
    matplotlib.figure.Figure
        The dashed line is the truth, where it fits into the panel; the dotted line is the best
        fixed threshold with labels known.

    Raises
    ------
    OptionError
        No row is about the claim.
    """
    return _figure_of_panels(table, claim, panel_height=_PANEL_HEIGHT, draw=_draw_bounds_panel)


def draw_false_claims(table: Table, claim: str) -> Figure:
    """Draw the share of false claims of each bound, a panel for each game.

    Parameters
    ----------
    table : Table
        Rows of `run`.
    claim : str
        The claim to show, as the column ``claim`` has it, for example ``"pure DP"``.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are exact confidence limits, red if they exclude the allowed share, which is dashed.

    Raises
    ------
    OptionError
        No row is about the claim.
    """
    most_lines = max(map(len, _lines_by_game(table, claim).values()))
    panel_height = max(_PANEL_HEIGHT, 0.25 * most_lines)
    return _figure_of_panels(table, claim, panel_height, draw=_draw_false_claims_panel)


def _lines_by_game(table: Table, claim: str) -> dict[str, list[Row]]:
    """Return the lines of the summary that are about a claim, by their game."""
    instance(table, "table", Table)
    summary_lines = table.summary().lines
    lines_by_game: dict[str, list[Row]] = {}
    for summary_line in summary_lines:
        if summary_line["claim"] == claim:
            lines_by_game.setdefault(summary_line["game"], []).append(summary_line)
    if not lines_by_game:
        known_claims = sorted({repr(summary_line["claim"]) for summary_line in summary_lines})
        raise OptionError(
            f"claim must be one of those of the table ({', '.join(known_claims) or 'none'}), "
            f"got {claim!r}"
        )
    return lines_by_game


def _figure_of_panels(
    table: Table, claim: str, panel_height: float, draw: Callable[[Axes, list[Row]], None]
) -> Figure:
    """Draw a panel for each game, and below them a legend for all."""
    lines_by_game = _lines_by_game(table, claim)
    panels_in_row = min(3, len(lines_by_game))
    rows_of_panels = -(-len(lines_by_game) // panels_in_row)
    figure_width = _PANEL_WIDTH * panels_in_row
    figure_height = panel_height * rows_of_panels + _LEGEND_HEIGHT
    with house_style():
        from matplotlib import pyplot as plt

        figure, axes_grid = plt.subplots(
            rows_of_panels,
            panels_in_row,
            squeeze=False,
            figsize=(figure_width, figure_height),
            layout="constrained",
        )
        for axes, (game, summary_lines) in zip(axes_grid.flat, lines_by_game.items(), strict=False):
            axes.set_title("\n".join(wrap(game, 34)))
            draw(axes, summary_lines)
        for axes in figure.axes[len(lines_by_game) :]:
            axes.set_axis_off()
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _draw_bounds_panel(axes: Axes, summary_lines: list[Row]) -> None:
    """Draw the mean bound of each method against the number of examples."""
    summary_lines = [
        summary_line
        for summary_line in summary_lines
        if summary_line["errors"] < summary_line["games"]
    ]
    if not summary_lines:
        return
    bounds_by_method: dict[str, list[tuple[int, float]]] = {}
    for summary_line in summary_lines:
        method_bounds = bounds_by_method.setdefault(method(summary_line), [])
        method_bounds.append((summary_line["m"], summary_line["bound"]))
    for method_number, (method_name, bounds_by_size) in enumerate(bounds_by_method.items()):
        example_counts, mean_bounds = zip(*sorted(bounds_by_size), strict=True)
        marker = _MARKERS[method_number % len(_MARKERS)]
        color = f"C{method_number}"
        axes.plot(example_counts, mean_bounds, label=method_name, color=color, marker=marker)
    oracle_by_size = {summary_line["m"]: summary_line["oracle"] for summary_line in summary_lines}
    example_counts, oracle_bounds = zip(*sorted(oracle_by_size.items()), strict=True)
    oracle_label = "best fixed threshold, labels known"
    axes.plot(example_counts, oracle_bounds, ":", color=MUTED, label=oracle_label)
    truth = summary_lines[0]["truth"]
    largest_bound = max(summary_line["bound"] for summary_line in summary_lines)
    if truth <= 3 * largest_bound:
        axes.axhline(truth, color=INK, linestyle="--")
    axes.set(xscale="log", xlabel="examples m", ylabel="mean bound")
    axes.set_xticks(example_counts, [f"{m:,}" for m in example_counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)


def _draw_false_claims_panel(axes: Axes, summary_lines: list[Row]) -> None:
    """Draw the share of false claims of each method, with its confidence limits."""
    allowed_share = 1 - summary_lines[0]["confidence"]
    summary_lines = [
        summary_line for summary_line in reversed(summary_lines) if summary_line["judged"]
    ]
    for line_height, summary_line in enumerate(summary_lines):
        color = "C0"
        if summary_line["low"] > allowed_share:
            color = ALERT
        axes.plot(
            (summary_line["low"], summary_line["high"]), (line_height, line_height), color=color
        )
        axes.plot(
            summary_line["false_claims"] / summary_line["judged"], line_height, "o", color=color
        )
    method_labels = [
        f"{method(summary_line)}, m = {summary_line['m']:,}" for summary_line in summary_lines
    ]
    axes.set_yticks(range(len(summary_lines)), method_labels)
    axes.axvline(allowed_share, color=INK, linestyle="--")
    axes.set(xlabel="share of false claims", xlim=(-0.01, None))
