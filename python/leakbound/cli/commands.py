"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from leakbound import __version__
from leakbound.cli import (
    audits,
    challenge,
    commit,
    demo,
    plan,
    reproduce,
    synthetic,
    synthetic_data,
    validate,
    verify,
    zero_run,
)

__all__ = ["app"]

app = typer.Typer(
    name="leakbound",
    help="Statistically valid lower bounds on the privacy leakage of trained models.",
    epilog=(
        "[dim]Start with:[/] leakbound demo digits [dim]   Your own scores:[/] "
        "leakbound one-run scores.csv --out report"
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("one-run", help=audits.ONE_RUN)(audits.one_run)
app.command("panoramia", help=audits.PANORAMIA)(audits.panoramia)
app.command("zero-run", help=zero_run.ZERO_RUN)(zero_run.zero_run)
app.command("synthetic", help=synthetic_data.SYNTHETIC)(synthetic_data.synthetic)
app.command("plan", help=plan.PLAN)(plan.plan)
app.command("commit", help=commit.COMMIT)(commit.commit)
app.command("verify", help=verify.VERIFY)(verify.verify)
app.add_typer(challenge.app, name="challenge")
app.command("reproduce", help=reproduce.REPRODUCE)(reproduce.reproduce)
app.command("validate", help=validate.VALIDATE)(validate.validate)
demo.app.command("census", help=synthetic.CENSUS)(synthetic.census)
demo.app.command("glyphs", help=synthetic.GLYPHS)(synthetic.glyphs)
demo.app.command("text", help=synthetic.TEXT)(synthetic.text)
app.add_typer(demo.app, name="demo")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 (typer passes it so)
    if wanted:
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
