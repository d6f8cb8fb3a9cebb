"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from leakbound import __version__
from leakbound.cli import _audits, _demo, _plan, _reproduce, _synthetic, _validate, _zero_run

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
app.command("one-run", help=_audits.ONE_RUN)(_audits.one_run)
app.command("panoramia", help=_audits.PANORAMIA)(_audits.panoramia)
app.command("zero-run", help=_zero_run.ZERO_RUN)(_zero_run.zero_run)
app.command("plan", help=_plan.PLAN)(_plan.plan)
app.command("reproduce", help=_reproduce.REPRODUCE)(_reproduce.reproduce)
app.command("validate", help=_validate.VALIDATE)(_validate.validate)
_demo.app.command("census", help=_synthetic.CENSUS)(_synthetic.census)
_demo.app.command("glyphs", help=_synthetic.GLYPHS)(_synthetic.glyphs)
_demo.app.command("text", help=_synthetic.TEXT)(_synthetic.text)
app.add_typer(_demo.app, name="demo")


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
