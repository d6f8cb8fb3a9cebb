"""The commands that train something on the spot and audit it."""

from __future__ import annotations

import json as json_text
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from leakbound.cli import output
from leakbound.cli.audits import Json  # noqa: TC001 (typer reads the annotation)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from leakbound.experiments.demos.digits import DigitsReport, DigitsRow
    from leakbound.experiments.demos.dp_sgd import DPSGDReport, DPSGDRow
    from leakbound.experiments.demos.shifted import ShiftedReport, ShiftedRow
    from leakbound.experiments.demos.synthetic import SyntheticDataReport, SyntheticDataRow
    from leakbound.experiments.demos.text import TextReport, TextRow

    Report: TypeAlias = DigitsReport | ShiftedReport | SyntheticDataReport | TextReport

DIGITS = (
    "Train a small network on handwritten digits, ever longer, then with DP-SGD; audit each.\n\n"
    "300 digits get a wrong label (canaries), and a fair coin decides for each whether it is in "
    "the training set. The longer the training, the more of them the network memorises, and the "
    "more ε the audits prove. No download; about half a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
SHIFTED = (
    "Audit a network without any training of your own, from people unlike each other.\n\n"
    "People of a made-up census whose answers fit together join training more readily. An audit "
    "that takes no account of that finds leakage in a network that never saw them; a Zero-Run "
    "audit does not, and finds that of a network that learnt them by heart. No download; about a "
    "quarter of a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
SYNTHETIC = (
    "Audit generators by the synthetic tables that they make of a census.\n\n"
    "People of a made-up census are split at random; copies with noise, trees with leaves of one "
    "person, a Gaussian copula and noisy marginals with differential privacy learn from one half "
    "and make a table each. The audit sees the tables and the people, and bounds ε for replacing "
    "one person. Beside it, what a similarity metric would have said. No download; about a quarter "
    "of a minute on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[ml,plot]'[/]"
)
DP_SGD = (
    "Train with DP-SGD, once as it should be and once with each of a zoo of faults; audit each.\n\n"
    "Canaries ride in every batch of a small network's training on handwritten digits. The correct "
    "runs prove much of the ε that is accounted for; noise forgotten or wrongly scaled, clipping "
    "of the wrong thing, a wrong sampling rate and batches of fixed size are each refuted. No "
    "download; about two minutes on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)
Seed = Annotated[int, typer.Option(min=0, help="Seed of data, coins, weights, batches and noise.")]


@dataclass(frozen=True)
class _Demo:
    """What is particular to a demo: how to load it, its words, and columns of its table."""

    load: Callable[[], Callable[..., Any]]
    """Imports the demo, torch with it, and returns its `run`."""
    title: str
    summary: Callable[[Any], str]
    columns: tuple[_Column, ...]
    after: str = ""
    """What is said below the table."""


@dataclass(frozen=True)
class _Column:
    """A column: its heading on the terminal, the same in the report, and a row's cell."""

    heading: str
    name: str
    cell: Callable[[Any], str]


def _load_digits() -> Callable[..., DigitsReport]:
    from leakbound.experiments.demos.digits import run

    return run


def _load_text() -> Callable[..., TextReport]:
    from leakbound.experiments.demos.text import run

    return run


def _load_shifted() -> Callable[..., ShiftedReport]:
    from leakbound.experiments.demos.shifted import run

    return run


def _load_synthetic() -> Callable[..., SyntheticDataReport]:
    from leakbound.experiments.demos.synthetic import run

    return run


def _of_synthetic(found: SyntheticDataReport) -> str:
    return (
        f"{found.people:,} people of a made-up census, split at random: each generator learnt from "
        "one half and made as many synthetic people; the audits see the synthetic table and all "
        "people. Bounds are on replacing one person of the training data. "
        f"Seed {found.seed}."
    )


def _of_digits(found: DigitsReport) -> str:
    return (
        f"A small network trained on {found.training_examples:,} of scikit-learn's handwritten "
        f"digits, {found.plan.indices.size} of them canaries: digits with a wrong label, "
        f"{len(found.plan)} in all, each in the training set or not by its own fair coin. The "
        "audits see the logit margins of the canaries. A column has what the networks' own test "
        "set proves beside: training and test set are a random split of the digits, audited in "
        f"pairs. Seed {found.seed}."
    )


def _of_text(found: TextReport) -> str:
    return (
        f"A GPT with {found.parameters:,} parameters trained on bytes of Python's documentation: "
        f"{found.plan.indices.size} of {len(found.plan):,} different chunks of 64 bytes, each in "
        "the training set or not by its own fair coin. The audits see the mean loss of each chunk. "
        f"Seed {found.seed}."
    )


def _of_shifted(found: ShiftedReport) -> str:
    return (
        f"Networks trained on a made-up census: {found.members:,} of {found.people:,} people are "
        "members, and the better somebody's answers fit together, the likelier. Propensities are "
        f"learnt from {found.held_out:,} others. Bounds are for Gaussian DP; their ε is at "
        f"δ = 1e-5. The naive audit takes no account of who joins. Seed {found.seed}."
    )


def _naive(row: ShiftedRow) -> str:
    from leakbound._base.formatting import number

    return number(row.result.naive)


def _copied(row: SyntheticDataRow) -> str:
    from leakbound._base.formatting import percent

    return percent(row.result.similarity.copies_of_members)


def _closer(row: SyntheticDataRow) -> str:
    from leakbound._base.formatting import percent

    return percent(row.result.similarity.closer_to_members)


def _accuracy(row: DigitsRow) -> str:
    return f"{row.test_accuracy:.3f}"


def _split(row: DigitsRow) -> str:
    from leakbound._base.formatting import number

    return number(row.split.bound)


def _unseen_loss(row: TextRow) -> str:
    return f"{row.test_loss:.3f}"


_DIGITS = _Demo(
    load=_load_digits,
    title="Digits: what overfitting leaks, and what DP-SGD does about it",
    summary=_of_digits,
    columns=(
        _Column("Test acc", "Test accuracy", _accuracy),
        _Column("Split ε̂", "ε of replacing one, from the test set", _split),
    ),
    after="Split ε̂ is a lower bound on the ε of replacing one example, at most twice that of "
    "adding or removing one: the training set against the test set, a random split, no canaries.",
)
_TEXT = _Demo(
    load=_load_text,
    title="Text: what a language model leaks, and what DP-SGD does about it",
    summary=_of_text,
    columns=(_Column("Test loss", "Loss of unseen text, nats per byte", _unseen_loss),),
)

_SHIFTED = _Demo(
    load=_load_shifted,
    title="Shifted: an audit without training, of members unlike non-members",
    summary=_of_shifted,
    columns=(_Column("Naive ε̂ (invalid)", "ε of the naive audit (invalid)", _naive),),
)

_SYNTHETIC = _Demo(
    load=_load_synthetic,
    title="Synthetic data: what generators give away of the records they learnt from",
    summary=_of_synthetic,
    columns=(
        _Column("Copies", "Synthetic people equal to a member", _copied),
        _Column("Closer", "Synthetic people closer to a member than to others", _closer),
    ),
    after="ε̂ is a lower bound on the ε of replacing one person. Copies and closer are similarity "
    "metrics: shares of synthetic people that equal a member, and whose nearest person is one "
    "(half of them if nothing is copied).",
)

app = typer.Typer(
    name="demo",
    no_args_is_help=True,
    help="Train real targets on the spot, without any download, and audit them.",
)


def _folder_for(content: str) -> Any:
    """Return the option --out of a demo that leaves some content there."""
    return typer.Option(metavar="DIR", help=f"Folder for {content}.")


@app.command("digits", help=DIGITS)
def digits(
    *,
    out: Annotated[Path, _folder_for("report.html, result.json and scores")] = Path(
        "leakbound-out/digits"
    ),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the digits targets, audit each, and report."""
    _perform(_DIGITS, out, seed=seed, as_json=json)


def one_run_on_text(out: Path, *, seed: int, as_json: bool) -> None:
    """Train the text targets, audit each, and report."""
    _perform(_TEXT, out, seed=seed, as_json=as_json)


@app.command("shifted", help=SHIFTED)
def shifted(
    *,
    out: Annotated[Path, _folder_for("report.html, result.json and scores")] = Path(
        "leakbound-out/shifted"
    ),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the shifted targets, audit each, and report."""
    _perform(_SHIFTED, out, seed=seed, as_json=json)


@app.command("synthetic", help=SYNTHETIC)
def synthetic(
    *,
    out: Annotated[Path, _folder_for("report.html, result.json and tables")] = Path(
        "leakbound-out/synthetic"
    ),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Make synthetic tables, audit each, and report."""
    _perform(_SYNTHETIC, out, seed=seed, as_json=json)


@app.command("dp-sgd", help=DP_SGD)
def dp_sgd(
    *,
    out: Annotated[Path, _folder_for("result.json and a report of each run")] = Path(
        "leakbound-out/dp-sgd"
    ),
    seed: Seed = 0,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this run, such as “no noise”; may be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Train with DP-SGD and each fault, audit each run, and report."""
    with output.answering():
        output.prepare(out)
        with output.waiting("Loading PyTorch"):
            from leakbound.experiments.demos.dp_sgd import run as train_all
        with bar() as progress:
            found = train_all(out, seed=seed, faults=run, progress=progress)
        if json:
            typer.echo(json_text.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False))
        else:
            _show_faults(found)
        output.announce(out, aside=json)


def _show_faults(found: DPSGDReport) -> None:
    headings = ("ε accounted", "Membership ε ≥", "Noise ≤", "Steps ε ≥", "Refuted by")
    table = output.grid([("Run", False), *((text, text != "Refuted by") for text in headings)])
    for row in found.rows:
        table.add_row(*_cells_of_fault(row), style="bold" if row.audit.refuted_by else None)
    output.say(table)
    stated = found.rows[0].audit.steps.noise_multiplier
    output.say("")
    output.say(
        f"ε is at δ = 1e-5, and every run states a noise multiplier of {stated:g}. ε of the steps "
        "holds if the noise is constant and batches are Poisson samples."
    )
    for row in found.rows:
        if row.fault.unseen:
            output.say(f"Not detectable: {row.name}, because {row.fault.unseen}.")


def _cells_of_fault(row: DPSGDRow) -> tuple[str, ...]:
    from leakbound._base.formatting import number, up

    audit = row.audit
    accounted = "" if audit.accounted is None else f"{audit.accounted.epsilon:.2f}"
    return (
        row.name,
        accounted,
        number(audit.proved),
        up(audit.steps.bound),
        number(audit.steps.epsilon(audit.delta)),
        ", ".join(audit.refuted_by) or "not refuted",
    )


def _perform(demo: _Demo, out: Path, *, seed: int, as_json: bool) -> None:
    with output.answering():
        output.prepare(out)
        with output.waiting("Loading libraries"):
            run = demo.load()
        with bar() as progress:
            found = run(out, seed=seed, progress=progress)
        _answer(demo, found, out, as_json=as_json)


def _answer(demo: _Demo, found: Report, out: Path, *, as_json: bool) -> None:
    """Write the files, then print the table or the result."""
    with output.waiting("Drawing the report"):
        _write(demo, found, out)
    if as_json:
        typer.echo(json_text.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False))
    else:
        _show(demo, found)
    output.announce(out, aside=as_json)


@contextmanager
def bar() -> Iterator[Callable[[str, float], None] | None]:
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


def _write(demo: _Demo, found: Report, out: Path) -> None:
    from leakbound import report
    from leakbound._base.files import write_text

    text = json_text.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    report.write(
        out / "report.html",
        {row.name: row.result for row in found.rows},
        title=demo.title,
        summary=demo.summary(found),
        columns={one.name: {row.name: one.cell(row) for row in found.rows} for one in demo.columns},
        simultaneous={row.name: row.simultaneous for row in found.rows},
    )


def _show(demo: _Demo, found: Report) -> None:
    from leakbound._base.formatting import number, percent
    from leakbound.report import headline_of_many, subject_of

    extra = (one.heading for one in demo.columns)
    headings = (*extra, "AUC", "Guesses", "Correct", "ε̂", "Ceiling")
    subject = subject_of(row.result for row in found.rows)
    table = output.grid(
        [(subject.capitalize(), False), *((text, True) for text in headings), ("Verdict", False)]
    )
    for row in found.rows:
        result = row.result
        table.add_row(
            row.name,
            *(one.cell(row) for one in demo.columns),
            f"{row.auc:.3f}",
            f"{result.guesses:,}",
            f"{result.correct:,}",
            number(result.epsilon_bound),
            number(result.epsilon_ceiling),
            result.verdict,
            style="bold" if result.leaks else None,
        )
    output.say(table)
    output.say("")
    output.say(headline_of_many({row.name: row.simultaneous for row in found.rows}), "bold")
    for row in found.rows:
        if row.result.answered:
            output.say(f"{row.name}: {row.result.answered}")
    confidence = found.rows[0].result.confidence
    output.say(
        f"ε̂ is a lower bound on ε, at {percent(confidence)} confidence for each {subject} by "
        "itself; the ceiling is what a perfect attack would have proved."
    )
    if demo.after:
        output.say(demo.after)
