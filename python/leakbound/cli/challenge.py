"""The commands of a challenge: one lays it out, one judges what came back."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound._base.ending import tell
from leakbound.cli import output
from leakbound.cli.commands import COMMANDS
from leakbound.cli.files import read, whole
from leakbound.cli.layouts import Signs
from leakbound.cli.options import Json, Lenient, argument, command, option
from leakbound.evidence import judge_challenge, new_challenge, opened_challenge
from leakbound.planning import read_protocol

NEW = (
    "Toss a coin for each canary and commit to the coins.\n\n"
    "The folder of [bold]--out[/] gets [bold]for-the-trainer[/], the canaries to train on; "
    "[bold]public[/], the commitment; and [bold]secret[/], all canaries and the coins."
)
JUDGE = (
    "Audit the scores of all canaries as the protocol says.\n\n"
    "The file of scores has the columns [bold]id[/], a canary's place in the file from 0, and "
    "those of the protocol's attacks. Writes DIR/bundle, which anybody can verify.\n\n"
    "[dim]Exit code: 0 claim not refuted or none agreed on, 1 refuted, 2 bad input, 3 out of "
    "reach or in doubt, 70 a crash.[/]"
)

app = typer.Typer(name="challenge", no_args_is_help=True, help=COMMANDS["challenge"][1])


@command(app, "new", NEW)
def new(
    canaries: Annotated[Path, argument("CANARIES", "A .csv, .jsonl, .txt or .npy file.")],
    *,
    out: Annotated[Path, option("DIR", "A new folder for the challenge.")],
    protocol: Annotated[
        Path | None, option("FILE", "What the audit will be, .toml or .json.")
    ] = None,
) -> None:
    """Lay out a challenge."""
    agreed = None if protocol is None else read_protocol(protocol)
    commitment = new_challenge(canaries, out, protocol=agreed)
    typer.echo(f"{commitment.sha256}  {out / 'public' / 'commitment.json'}")
    typer.echo(
        f"Publish it; hand over {out / 'for-the-trainer'}; and only once the model is fixed "
        f"{next((out / 'secret').glob('canaries.*'))}, to be scored."
    )


@command(app, "judge", JUDGE)
def judge(
    folder: Annotated[Path, argument("DIR", "The folder of the challenge.")],
    *,
    scores: Annotated[Path, option("FILE", "Scores of all canaries: .csv, .npz or .parquet.")],
    model: Annotated[
        str | None, option("HEX", "Digest of the model, if published.", "--model-sha256")
    ] = None,
    json: Json = False,
    lenient: Lenient = False,
) -> None:
    """Judge a challenge."""
    names = opened_challenge(folder).agreed.attacks
    table = read(scores, ["id", *names], Signs(), optional=())
    columns = {name: table.numbers(name) for name in names}
    ids = whole(table.words("id"))
    with output.waiting("Auditing"):
        result = judge_challenge(folder, columns, ids=ids, model=model)
    tell(f"Bundle: {folder / 'bundle'}")
    if json:
        typer.echo(result.to_json())
    else:
        output.show(result)
    output.end(result, lenient=lenient)
