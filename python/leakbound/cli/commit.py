"""The command that commits to coins and protocol before training."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound import InclusionPlan
from leakbound.cli.options import argument, command, option
from leakbound.errors import IncompatibleOptionsError, OptionError
from leakbound.planning import read_protocol

app = typer.Typer()

COMMIT = (
    "PROTOCOL is a .toml or .json file that says claim, confidence, cuts, sides, attacks, unit and "
    "canaries. The folder of [bold]--out[/] gets commitment.json, which is for everybody; that of "
    "[bold]--secret[/] gets the plan and what opens the commitment, which nobody else sees before "
    "the audit.\n\n"
    "[dim]leakbound commit protocol.toml -m 1000 --out public --secret secret[/]\n"
    "[dim]leakbound coins scores.csv --opening secret --bundle bundle[/]"
)


@command(app, "commit", COMMIT)
def commit(
    protocol: Annotated[Path, argument("PROTOCOL", "What the audit will be: .toml or .json.")],
    *,
    examples: Annotated[int | None, option("M", "Toss so many coins.", "--examples", "-m")] = None,
    plan: Annotated[Path | None, option("FILE", "Coins tossed before: a saved plan.")] = None,
    out: Annotated[Path, option("DIR", "Folder for commitment.json.")] = Path("public"),
    secret: Annotated[Path, option("DIR", "Folder for plan and opening.")] = Path("secret"),
) -> None:
    """Write a commitment, and what opens it."""
    agreed = read_protocol(protocol)
    if (plan is None) == (examples is None):
        message = "give --examples M, to toss coins now, or --plan FILE; one of the two"
        raise IncompatibleOptionsError(message)
    coins = InclusionPlan.load(plan) if plan else InclusionPlan.create(examples or 0)
    kept = plan is not None and plan.resolve() == (secret / "plan.npz").resolve()
    new = [secret / "opening.json", out / "commitment.json", secret / "plan.npz"]
    for file in new[:2] if kept else new:
        if file.exists():
            message = f"{file} exists already, and what it opens would be lost: name another folder"
            raise OptionError(message)
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
