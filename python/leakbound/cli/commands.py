"""The commands, put together: each in a module that is imported when the command is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "coins": ("audits", "Audit one training run: how much ε do the scores prove?"),
    "split": ("audits", "Audit one training run by its training set and test set."),
    "choices": ("audits", "Audit one training run that saw one of k candidates of each secret."),
    "panoramia": ("audits", "Audit a trained model against generated points: estimate ε."),
    "zero-run": ("zero_run", "Audit a model from given members and non-members."),
    "synthetic": ("synthetic_data", "Audit a generator by the synthetic table that it made."),
    "plan": ("plan", "Plan an audit: what it will prove, or how many canaries it takes."),
    "commit": ("evidence", "Commit to an audit before training: publish a digest of its coins."),
    "challenge": ("evidence", "Audit a trainer who does not trust the auditor."),
    "verify": ("evidence", "Recompute what a bundle claims: its digests, audit and page."),
    "tally": ("shards", "Count shards of scores into one small file, a tally, that coins audits."),
    "demo": ("demo", "Train a real target on the spot, without any download, and audit it."),
    "benchmark": ("benchmark", "Compare bounds on games of known truth; count false claims."),
}
"""For each command its module, and the first line of its help, which is all that a list shows."""


class _Commands(TyperGroup):
    """Commands that are loaded when they are called, and listed as plain text, which is fast."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in COMMANDS:
            group = typer.main.get_group(import_module(f"leakbound.cli.{COMMANDS[name][0]}").app)
            self.commands[name] = group if group.name == name else group.commands[name]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="leakbound",
    cls=_Commands,
    help="Statistically valid lower bounds on the privacy leakage of trained models.",
    epilog=(
        "Start with: leakbound demo digits   Your own scores: leakbound coins scores.csv "
        "--out report"
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Stand-ins: the list of commands and typing errors need their names, not their modules.
for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer passes it so)
    if wanted:
        from leakbound import __version__

        typer.echo(f"leakbound {__version__}")
        raise typer.Exit


@app.callback()
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
