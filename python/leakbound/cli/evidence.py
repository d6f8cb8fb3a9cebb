"""The commands of evidence: commitments, challenges, and the verification of bundles."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from leakbound import InclusionPlan
from leakbound._base.console import REFUTED, bar, tell
from leakbound.cli import output
from leakbound.cli.commands import COMMANDS
from leakbound.cli.files import Signs, read, whole
from leakbound.cli.options import Json, Lenient, argument, command, flag, option, refuse
from leakbound.evidence import judge_challenge, new_challenge, opened_challenge, verify_bundle
from leakbound.planning import Commitment, read_protocol
from leakbound.planning.inclusion import Plan

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
        refuse("give --examples M, to toss coins now, or --plan FILE; one of the two")
    coins: Plan = Plan.load(plan) if plan else InclusionPlan.create(examples or 0)
    for file in (secret / "opening.json", out / "commitment.json", secret / "plan.npz"):
        # The plan may be in its place already.
        if file.exists() and not (plan and plan.resolve() == file.resolve()):
            refuse(f"{file} exists already, and what it opens would be lost: name another folder")
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

challenge = typer.Typer(name="challenge", no_args_is_help=True, help=COMMANDS["challenge"][1])
app.add_typer(challenge)


@command(challenge, "new", NEW)
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


@command(challenge, "judge", JUDGE)
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
    with bar("Auditing"):
        result = judge_challenge(folder, columns, ids=ids, model=model)
    tell(f"Bundle: {folder / 'bundle'}")
    if json:
        typer.echo(result.to_json())
    else:
        output.show(result)
    output.end(result, lenient=lenient)


VERIFY = (
    "Prints each check, then [bold]VALID[/] or [bold]INVALID[/] and why.\n\n"
    "[dim]Exit code: 0 valid, 1 invalid, 2 no bundle there or no commitment, or no time left, 70 a "
    "crash.[/]"
)
# Seconds that a bundle may take, unless told otherwise: whoever wrote it chose the work.
_PATIENCE = 600.0
_MARKS = {True: "ok", False: "FAILED", None: "-"}


@command(app, "verify", VERIFY)
def verify(
    folder: Annotated[Path, argument("DIR", "The bundle.")],
    *,
    commitment: Annotated[
        Path | None, option("FILE", "The commitment.json that was published before training.")
    ] = None,
    page: Annotated[
        bool, flag(" /--no-page", "Leave report.html out, of another matplotlib: do not read it.")
    ] = True,
    most_seconds: Annotated[
        float,
        option("S", "Stop a bundle that takes longer, with exit code 2.", min=0.001, max=1e8),
    ] = _PATIENCE,
) -> None:
    """Verify a bundle."""
    published = None if commitment is None else Commitment.from_json(commitment)
    with bar("Auditing again"), _within(most_seconds):
        verification = verify_bundle(folder, commitment=published, page=page)
    table = output.grid([("", False), ("", False), ("", False)])
    for check in verification.checks:
        table.add_row(_MARKS[check.passed], check.name, check.words)
    output.say(table)
    output.say(str(verification), "bold" if verification.valid else "bold red")
    raise typer.Exit(0 if verification.valid else REFUTED)


class _TimeIsUp(BaseException):
    """No `Exception`, which verifying would take for a fault of the bundle."""


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Stop a block that takes longer, or too much memory: that is bad input, and no verdict."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except MemoryError:
        refuse("there is too little memory for this bundle, and nothing was judged")
    except _TimeIsUp:
        limit = f"the bundle takes more than {seconds:g} seconds, and nothing was judged"
        refuse(f"{limit}: give it more by --most-seconds")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _stop(*_: object) -> None:
    raise _TimeIsUp
