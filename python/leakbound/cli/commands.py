"""The list of commands; the module of each is imported when the command is called."""

from importlib import import_module
from typing import Annotated

import typer

COMMANDS = {
    "coins": ("audits", "Audit a training run in which coin flips chose the members."),
    "split": ("audits", "Audit a model from the scores of its training set and test set."),
    "choices": ("audits", "Audit a model trained on one of k candidates for each secret."),
    "panoramia": ("audits", "Estimate ε by comparing members with generated non-members."),
    "zero-run": ("audits", "Audit a model whose members were not chosen at random."),
    "synthetic": ("synthetic_data", "Audit a generator from the synthetic table it produced."),
    "mechanism": ("mechanism", "Audit a mechanism by running its code, in its own environment."),
    "batches": ("batches", "Test how recorded batches of DP-SGD were drawn."),
    "plan": ("plan", "Plan an audit: what it can prove, or how many canaries it needs."),
    "commit": ("evidence", "Commit to an audit before training by publishing a digest."),
    "challenge": ("evidence", "Audit a trainer who does not trust the auditor."),
    "verify": ("evidence", "Verify a bundle: recompute its digests, audit and report."),
    "score": ("score", "Score a data set with a model, or from a server's logs; can resume."),
    "tally": ("shards", "Count large files of scores into a small tally for coins."),
    "benchmark": ("benchmark", "Compare bounds where the true ε is known, and count false claims."),
}
"""The module of each command, and the first line of its help, which the list shows."""
HELP = ("-h", "--help")
"""Options that print help."""


def program(called: str = "") -> typer.Typer:
    """Return the program, with the command that is called; of the others it has only the names.

    Help of a command is laid out by rich, which the list of commands is printed without.
    """
    app = typer.Typer(
        name="leakbound",
        help="Statistically valid lower bounds on the privacy leakage of trained models.",
        epilog="Try it: leakbound coins scores.csv --out report",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich" if called in COMMANDS else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": [*HELP]},
    )
    app.callback()(_program)
    # Placeholders: the list of commands and messages about misspelt ones need only names.
    for name, (_, line) in COMMANDS.items():
        app.command(name, short_help=line)(lambda: None)
    if called in COMMANDS:
        app.add_typer(import_module(f"leakbound.cli.{COMMANDS[called][0]}").app)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer passes it so)
    if wanted:
        from leakbound import __version__

        typer.echo(f"leakbound {__version__}")
        raise typer.Exit


def _program(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Statistically valid lower bounds on the privacy leakage of trained models."""
