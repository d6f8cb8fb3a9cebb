"""The command that trains something on the spot and audits it."""

import json
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
    "Train a small network on handwritten digits, ever longer, then with DP-SGD; audit each.\n\n"
    "300 digits get a wrong label (canaries), and a fair coin decides for each whether it is in "
    "the training set. The longer the training, the more of them the network memorises, and the "
    "more ε the audits prove. No download; about half a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
TITLE = "Digits: what overfitting leaks, and what DP-SGD does about it"
AFTER = (
    "Split ε̂ is a lower bound on the ε of replacing one example, at most twice that of adding or "
    "removing one: the training set against the test set, a random split, no canaries."
)

app = typer.Typer(name="demo", no_args_is_help=True, help=COMMANDS["demo"][1])


@app.callback()
def _demos() -> None:
    """Keep the name of the demo on the command line, although there is only one."""


@command(app, "digits", DIGITS)
def digits(
    *,
    out: Annotated[Path, option("DIR", "Folder for report.html, result.json and scores.")] = Path(
        "leakbound-out/digits"
    ),
    seed: Annotated[int, option("", "Seed of data, coins, weights, batches and noise.", min=0)] = 0,
) -> None:
    """Train the digits targets, audit each, and report."""
    output.prepare(out)
    with bar("Loading libraries"):
        from leakbound.demo.digits import run
    with bar("Training", total=1) as move:
        report = run(
            out, seed=seed, progress=lambda what, share: move(description=what, completed=share)
        )
    with bar("Drawing the report"):
        _write(report, out)
    _show(report)
    output.announce(out, aside=False)


def _write(runs: "DigitsReport", out: Path) -> None:
    from leakbound import report
    from leakbound._base.files import write_text

    text = json.dumps(runs.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    accuracy = {row.name: f"{row.test_accuracy:.3f}" for row in runs.rows}
    split = {row.name: number(row.split.bound) for row in runs.rows}
    report.write(
        out / "report.html",
        {row.name: row.result for row in runs.rows},
        title=TITLE,
        summary=f"A small network trained on {runs.training_examples:,} of scikit-learn's digits, "
        f"{runs.plan.indices.size} of them canaries: digits with a wrong label, {len(runs.plan)} "
        "in all, each in the training set or not by its own fair coin. The audits see the logit "
        "margins of the canaries. A column has what the networks' own test set proves beside: "
        "training and test set are a random split of the digits, audited in pairs. Seed "
        f"{runs.seed}.",
        columns={"Test accuracy": accuracy, "ε of replacing one, from the test set": split},
        simultaneous={row.name: row.simultaneous for row in runs.rows},
    )


def _show(runs: "DigitsReport") -> None:
    from leakbound.report import headline_of_many

    headings = ("Test acc", "Split ε̂", "AUC", "Guesses", "Correct", "ε̂", "Ceiling")
    numbers = [(heading, True) for heading in headings]
    table = output.grid([("Model", False), *numbers, ("Verdict", False)])
    for row in runs.rows:
        result, said = row.result, row.result.summary()
        shares = (f"{row.test_accuracy:.3f}", number(row.split.bound), f"{row.auc:.3f}")
        counts = (f"{result.guesses:,}", f"{result.correct:,}")
        ends = (number(said.epsilon), number(said.ceiling), said.verdict)
        style = "bold" if said.leaks else None
        table.add_row(row.name, *shares, *counts, *ends, style=style)
    output.say(table)
    output.say("")
    simultaneous = {row.name: row.simultaneous.summary() for row in runs.rows}
    output.say(headline_of_many(simultaneous), "bold")
    output.say(
        f"ε̂ is a lower bound on ε, at {percent(runs.rows[0].result.confidence)} confidence for "
        "each model by itself; the ceiling is what a perfect attack would have proved."
    )
    output.say(AFTER)
