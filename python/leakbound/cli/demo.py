"""The command that trains a small model and audits it."""

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakbound._base.console import bar
from leakbound._base.formatting import number, percent
from leakbound.cli import output
from leakbound.cli.commands import COMMANDS
from leakbound.cli.options import command, option

if TYPE_CHECKING:
    from leakbound.demo.digits import DigitsReport

DIGITS = (
    "Audit a digit classifier at increasing epochs, and with DP-SGD.\n\n"
    "300 digits get a wrong label (canaries), and a fair coin decides whether each is in the "
    "training set. Longer training memorises more canaries, so audits prove a larger ε. No "
    "download; about half a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
TITLE = "Digits: leakage from overfitting, and the effect of DP-SGD"
HEADINGS = (
    "Model",
    "Test acc",
    "Split ε̂",
    "AUC",
    "Guesses",
    "Correct",
    "ε̂",
    "Ceiling",
    "Verdict",
)
NOTE = (
    "ε̂ is a lower bound on ε at 95 % confidence for each model separately. The ceiling is the "
    "bound that a perfect attack would have reached.\n"
    "Split ε̂ is a lower bound on ε for replacing one example, which is at most twice the ε for "
    "adding or removing one. It compares the training set with the test set and needs no canaries."
)

app = typer.Typer(name="demo", no_args_is_help=True, help=COMMANDS["demo"][1])


@app.callback()
def _demos() -> None:
    """Require the name of the demo, although there is only one."""


@command(app, "digits", "leakbound demo digits", DIGITS, "")
def digits(
    *,
    out: Annotated[Path, option("DIR", "Folder for report.html, result.json and scores.")] = Path(
        "leakbound-out/digits"
    ),
    seed: Annotated[int, option("N", "Random seed of everything.", min=0)] = 0,
) -> None:
    """Train the models, audit each, and report."""
    output.prepare(out)
    with bar("Loading libraries"):
        from leakbound.demo.digits import run
    with bar("Training", total=1) as move:
        report = run(
            out, seed=seed, progress=lambda what, share: move(description=what, completed=share)
        )
    table, together = _table(report), _several(report)
    with bar("Drawing the report"):
        _write(report, table, together, out)
    _show(report, table, together)
    typer.echo(f"Report: {out / 'report.html'}")


def _write(runs: "DigitsReport", table: list[tuple[str, ...]], together: str, out: Path) -> None:
    """Write everything as JSON, and the report of the model that leaks most."""
    from leakbound import report
    from leakbound._base.files import write_text
    from leakbound.report.description import Overview

    text = json.dumps(runs.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    lines = [(name, verdict, *numbers) for name, *numbers, verdict in table]
    report.write(
        out / "report.html",
        runs.worst.simultaneous,
        title=TITLE,
        summary=f"A small network trained on {runs.training_examples:,} of scikit-learn's digits, "
        f"{runs.plan.indices.size} of them canaries: digits with a wrong label, {len(runs.plan)} "
        "in all, each in the training set or not by its own fair coin. The audits see the logit "
        f"margins of the canaries. This page is about “{runs.worst.name}”, which leaks most. Seed "
        f"{runs.seed}.",
        about={
            "Model": runs.worst.name,
            "Auditor": "leakbound demo",
            "Date": date.today().isoformat(),
        },
        overview=Overview(f"All {len(runs.rows)} models", lines, f"{together} {NOTE}"),
    )


def _table(runs: "DigitsReport") -> list[tuple[str, ...]]:
    """Return a line for each model, below the headings."""
    lines: list[tuple[str, ...]] = [HEADINGS]
    for row in runs.rows:
        result, said = row.result, row.result.summary()
        shares = (f"{row.test_accuracy:.3f}", number(row.split.bound), f"{row.auc:.3f}")
        counts = (f"{result.guesses:,}", f"{result.correct:,}")
        lines.append(
            (row.name, *shares, *counts, number(said.epsilon), number(said.ceiling), said.verdict)
        )
    return lines


def _several(runs: "DigitsReport") -> str:
    """Return one statement about all models at once."""
    said, models = runs.worst.simultaneous.summary(), f"{len(runs.rows)} models"
    leaking = sum(row.simultaneous.summary().leaks for row in runs.rows)
    if not said.refutes:
        return f"No guarantee was refuted for any of the {models}."
    return (
        f"{leaking} of {models} leak. The worst is “{runs.worst.name}”: its audit rules "
        f"out every {said.terms.guarantee} with ε < {number(said.epsilon)} "
        f"({percent(runs.rows[0].result.confidence)} confidence, simultaneously over the {models})."
    )


def _show(runs: "DigitsReport", table: list[tuple[str, ...]], together: str) -> None:
    headings, *lines = table
    grid = output.grid([(name, name not in {"Model", "Verdict"}) for name in headings])
    for row, line in zip(runs.rows, lines, strict=True):
        grid.add_row(*line, style="bold" if row.result.summary().leaks else None)
    output.say(grid)
    output.say("")
    output.say(together, "bold")
    output.say(NOTE)
