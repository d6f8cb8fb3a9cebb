"""The commands that train something on the spot and audit it."""

from __future__ import annotations

import json as json_text
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakbound.cli import _output
from leakbound.cli._audits import Json  # noqa: TC001 (typer reads the annotation)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leakbound.demos.digits import DigitsReport

DIGITS = (
    "Train a small network on handwritten digits, ever longer, then with DP-SGD; audit each.\n\n"
    "300 digits get a wrong label (canaries), and a fair coin decides for each whether it is in "
    "the training set. The longer the training, the more of them the network memorises, and the "
    "more ε the audits prove. No download; about half a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
_SUMMARY = (
    "A small network trained on {training:,} of scikit-learn's handwritten digits, {included} of "
    "them canaries: digits with a wrong label, {canaries} in all, each in the training set or not "
    "by its own fair coin. The audits see the logit margins of the canaries. Seed {seed}."
)

app = typer.Typer(
    no_args_is_help=True,
    help="Train real targets on the spot, without any download, and audit them.",
)


@app.command("digits", help=DIGITS)
def digits(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for report.html, result.json and scores.")
    ] = Path("leakbound-out/digits"),
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of split, coins, weights, batches and noise.")
    ] = 0,
    json: Json = False,
) -> None:
    """Train the digits targets, audit each, and report."""
    with _output.answering():
        _output.prepare(out)
        with _output.waiting("Loading PyTorch"):
            from leakbound.demos.digits import run
        with _bar() as progress:
            found = run(out, seed=seed, progress=progress)
        with _output.waiting("Drawing the report"):
            _write(found, out)
        if json:
            typer.echo(json_text.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False))
        else:
            _show(found)
        typer.echo(f"Report: {out / 'report.html'}", err=json)


@contextmanager
def _bar() -> Iterator[Callable[[str, float], None] | None]:
    """Lend a progress bar on standard error, where somebody is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _write(found: DigitsReport, out: Path) -> None:
    from leakbound import report
    from leakbound._files import write_text

    text = json_text.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    report.write(
        out / "report.html",
        {row.name: row.result for row in found.rows},
        title="Digits: what overfitting leaks, and what DP-SGD does about it",
        summary=_SUMMARY.format(
            training=found.training_examples,
            included=found.plan.indices.size,
            canaries=len(found.plan),
            seed=found.seed,
        ),
        columns={"Test accuracy": {row.name: f"{row.test_accuracy:.3f}" for row in found.rows}},
    )


def _show(found: DigitsReport) -> None:
    from leakbound._wording import headline_of_many, leaks, number, verdict

    headings = ("Test acc", "AUC", "Guesses", "Correct", "ε̂", "Ceiling")
    table = _output.grid(
        [("Model", False), *((text, True) for text in headings), ("Verdict", False)]
    )
    for row in found.rows:
        result = row.result
        table.add_row(
            row.name,
            f"{row.test_accuracy:.3f}",
            f"{row.auc:.3f}",
            f"{result.guesses:,}",
            f"{result.correct:,}",
            number(result.bound),
            number(result.ceiling),
            verdict(result),
            style="bold" if leaks(result) else None,
        )
    _output.say(table)
    _output.say("")
    _output.say(headline_of_many({row.name: row.result for row in found.rows}), "bold")
    confidence = found.rows[0].result.confidence
    _output.say(
        f"ε̂ is a lower bound on ε, at {100 * confidence:g} % confidence for each model by itself; "
        "the ceiling is what a perfect attack would have proved."
    )
