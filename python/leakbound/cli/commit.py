"""The command that commits to coins and protocol before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakbound import InclusionPlan
from leakbound.cli import output
from leakbound.errors import IncompatibleOptionsError, OptionError
from leakbound.planning import read_protocol

app = typer.Typer()

COMMIT = (
    "Commit to an audit before training: publish a digest of its coins and its protocol.\n\n"
    "PROTOCOL is a .toml or .json file that says claim, confidence, cuts, sides, attacks, unit and "
    "canaries. The folder of [bold]--out[/] gets commitment.json, which is for everybody; that of "
    "[bold]--secret[/] gets the plan and what opens the commitment, which nobody else sees before "
    "the audit.\n\n"
    "[dim]leakbound commit protocol.toml -m 1000 --out public --secret secret[/]\n"
    "[dim]leakbound one-run scores.csv --opening secret --bundle bundle[/]"
)


@app.command("commit", help=COMMIT)
def commit(
    protocol: Annotated[
        Path, typer.Argument(metavar="PROTOCOL", help="What the audit will be: .toml or .json.")
    ],
    *,
    examples: Annotated[
        int | None,
        typer.Option("--examples", "-m", metavar="M", help="Toss so many coins now."),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Coins tossed already: what InclusionPlan.save wrote."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for commitment.json, to be published.")
    ] = Path("public"),
    secret: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for plan.npz and opening.json.")
    ] = Path("secret"),
) -> None:
    """Write a commitment, and what opens it."""
    with output.answering():
        agreed = read_protocol(protocol)
        coins = _coins(plan, examples)
        refuse_to_overwrite(secret / "opening.json", out / "commitment.json")
        if plan is None or plan.resolve() != (secret / "plan.npz").resolve():
            refuse_to_overwrite(secret / "plan.npz")
        opening = coins.commit(agreed)
        out.mkdir(parents=True, exist_ok=True)
        secret.mkdir(parents=True, exist_ok=True, mode=0o700)
        opening.save(secret)
        opening.commitment.to_json(out / "commitment.json")
        typer.echo(f"{opening.commitment.sha256}  {out / 'commitment.json'}")
        typer.echo(
            f"Publish it, and keep {secret} to yourself until the audit: who reads "
            f"{secret / 'plan.npz'} knows the coins."
        )


def _coins(plan: Path | None, examples: int | None) -> InclusionPlan:
    if (plan is None) == (examples is None):
        message = "give --examples M, to toss coins now, or --plan FILE; one of the two"
        raise IncompatibleOptionsError(message)
    if plan is not None:
        return InclusionPlan.load(plan)
    return InclusionPlan.create(examples if examples is not None else 0)


def refuse_to_overwrite(*files: Path) -> None:
    """Raise if a file exists: an earlier commitment that is lost cannot be opened any more."""
    for file in files:
        if file.exists():
            message = f"{file} exists already, and what it opens would be lost: name another folder"
            raise OptionError(message)
