"""The commands of evidence: commitments, challenges, and the verification of bundles."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from leakbound import InclusionPlan
from leakbound._base.console import REFUTED, bar, tell
from leakbound._base.drawn import unit_of
from leakbound._base.types import AnyArray, JsonValue
from leakbound.cli import options, output
from leakbound.cli.commands import COMMANDS
from leakbound.cli.files import Signs, read, whole
from leakbound.cli.options import Delivery, argument, command, flag, option, refuse
from leakbound.evidence import judge_challenge, new_challenge, opened_challenge, verify_bundle
from leakbound.planning import Commitment, read_protocol
from leakbound.planning.inclusion import Plan

app = typer.Typer()

COMMIT = (
    "PROTOCOL is a .toml or .json file with claim, confidence, cuts, sides, attacks, unit and "
    "canaries. Writes two folders: [bold]--out[/] with commitment.json, to be published, and "
    "[bold]--secret[/] with the plan and the opening of the commitment, to be kept secret until "
    "the audit."
)
COMMITTED = """leakbound commit protocol.toml -m 1000 --out public --secret secret
leakbound commit protocol.toml --ids records.csv --groups user
leakbound coins scores.csv --opening secret --bundle bundle"""


@dataclass(frozen=True)
class Tossed:
    """What coins are flipped for: so many canaries, or whatever a table names."""

    examples: Annotated[
        int | None,
        option("M", "Number of canaries: a coin is flipped for each.", "--examples", "-m"),
    ] = None
    ids: Annotated[
        Path | None,
        option("FILE", "Table with a column id, instead of --examples: a coin for each row."),
    ] = None
    groups: Annotated[
        str,
        option(
            "COL", "Column of --ids with groups, such as users: one coin for all rows of a group."
        ),
    ] = ""
    unit: options.Unit = ""
    copies: options.Copies = None

    def plan(self, agreed: Mapping[str, JsonValue], signs: Signs) -> InclusionPlan:
        """Flip the coins, as the protocol has it where the command does not say."""
        coin_names: AnyArray | None = None
        if self.ids is not None:
            coin_names = self._distinct_names(self.ids, signs)
        elif self.groups:
            refuse("--groups names a column of --ids FILE: add that file")
        coin_count = self.examples or 0
        unit = unit_of(None, self.unit or None, grouped=bool(self.groups))
        if coin_names is not None:
            coin_count = coin_names.size
        copies: Any = self.copies
        if copies is None:
            copies = agreed.get("copies", 1)
        return InclusionPlan.create(coin_count, ids=coin_names, copies=copies, unit=unit)

    def _distinct_names(self, file: Path, signs: Signs) -> AnyArray:
        """Return the names of rows, or those of groups, each once."""
        name_column = self.groups or "id"
        names = whole(read(file, [name_column], signs, optional=()).words(name_column))
        _, first_rows, rows_of_each = np.unique(names, return_index=True, return_counts=True)
        if not self.groups and rows_of_each.max() > 1:
            repeated_id = names[first_rows[rows_of_each.argmax()]]
            refuse(
                f"{file}: id {repeated_id!s:.60} occurs {rows_of_each.max():,} times: give each "
                "row its own, or name them as --groups"
            )
        return names[np.sort(first_rows)]


@command(app, "commit", COMMITTED, COMMIT, "")
def commit(
    protocol: Annotated[Path, argument("PROTOCOL", "Rules of the audit: .toml or .json.")],
    *,
    tossed: Tossed,
    plan: Annotated[
        Path | None, option("FILE", "Saved plan, instead of flipping coins now.")
    ] = None,
    signs: Signs,
    out: Annotated[Path, option("DIR", "Folder for commitment.json.")] = Path("public"),
    secret: Annotated[Path, option("DIR", "Folder for plan and opening.")] = Path("secret"),
) -> None:
    """Write a commitment and its opening."""
    agreed = read_protocol(protocol)
    ways_to_draw = [one for one in (plan, tossed.examples, tossed.ids) if one is not None]
    if len(ways_to_draw) != 1:
        refuse("give either --examples M or --ids FILE to flip coins now, or --plan FILE")
    drawn_plan: Plan
    if plan is None:
        drawn_plan = tossed.plan(agreed, signs)
    else:
        for name, stated in (("copies", tossed.copies), ("unit", tossed.unit or None)):
            if stated is not None:
                refuse(f"--plan already has its {name}: leave --{name} out")
        if tossed.groups:
            refuse("--plan already has its ids: leave --groups out")
        drawn_plan = Plan.load(plan)
    for file in (secret / "opening.json", out / "commitment.json", secret / "plan.npz"):
        # The plan may be in its place already.
        if file.exists() and not (plan and plan.resolve() == file.resolve()):
            refuse(f"{file} already exists and would be overwritten: choose another folder")
    opening = drawn_plan.commit(agreed)
    out.mkdir(parents=True, exist_ok=True)
    opening.save(secret)
    opening.commitment.to_json(out / "commitment.json")
    typer.echo(f"{opening.commitment.sha256}  {out / 'commitment.json'}")
    typer.echo(
        f"Publish this digest. Keep {secret} secret until the audit: {secret / 'plan.npz'} "
        "reveals the members."
    )


NEW = (
    "Flip a coin for each canary, and commit to the result. Writes three folders to "
    "[bold]--out[/]: [bold]for-the-trainer[/] with the canaries to train on, [bold]public[/] with "
    "the commitment, and [bold]secret[/] with all canaries and the coins."
)
JUDGE = (
    "Audit the scores of all canaries by the rules of the protocol. The file of scores has a "
    "column [bold]id[/] (the number of the canary in its file, from 0) and one column for each "
    "attack of the protocol. Writes DIR/bundle, which anybody can verify."
)

challenge = typer.Typer(name="challenge", no_args_is_help=True, help=COMMANDS["challenge"][1])
app.add_typer(challenge)


@command(challenge, "new", "leakbound challenge new canaries.csv --out challenge", NEW, "")
def new(
    canaries: Annotated[Path, argument("CANARIES", "Canaries: a .csv, .jsonl, .txt or .npy file.")],
    *,
    out: Annotated[Path, option("DIR", "New folder for the challenge.")],
    protocol: Annotated[Path | None, option("FILE", "Rules of the audit: .toml or .json.")] = None,
) -> None:
    """Create a challenge."""
    agreed = None
    if protocol is not None:
        agreed = read_protocol(protocol)
    commitment = new_challenge(canaries, out, protocol=agreed)
    typer.echo(f"{commitment.sha256}  {out / 'public' / 'commitment.json'}")
    typer.echo(
        f"Publish this digest, and give {out / 'for-the-trainer'} to the trainer. Once the model "
        f"is final, give them {next((out / 'secret').glob('canaries.*'))} to score."
    )


@command(challenge, "judge", "leakbound challenge judge challenge --scores scores.csv", JUDGE)
def judge(
    folder: Annotated[Path, argument("DIR", "Folder of the challenge.")],
    *,
    scores: Annotated[Path, option("FILE", "Scores of all canaries: .csv, .npz or .parquet.")],
    model_sha256: Annotated[
        str | None, option("HEX", "SHA-256 of the model, if published.")
    ] = None,
    delivery: Delivery,
) -> None:
    """Judge a challenge."""
    names = opened_challenge(folder).agreed.attacks
    table = read(scores, ["id", *names], Signs(), optional=())
    columns = {name: table.numbers(name) for name in names}
    ids = whole(table.words("id"))
    with bar("Auditing"):
        result = judge_challenge(folder, columns, ids=ids, model=model_sha256)
    tell(f"Bundle: {folder / 'bundle'}")
    delivery.conclude(result, scores, {})


VERIFY = "Prints each check, then [bold]VALID[/], or [bold]INVALID[/] and the reason."
VERIFIED = (
    "[dim]Exit code: 0 valid, 1 invalid, 2 no bundle or commitment found, or out of time, 70 "
    "internal error.[/]"
)
# Default limit in seconds: the author of a bundle decides how much work it takes.
_DEFAULT_SECONDS = 600.0
_MARKS_OF_CHECKS = {True: "ok", False: "FAILED", None: "-"}


@command(app, "verify", "leakbound verify bundle --commitment commitment.json", VERIFY, VERIFIED)
def verify(
    folder: Annotated[Path, argument("DIR", "Folder of the bundle.")],
    *,
    commitment: Annotated[
        Path | None, option("FILE", "commitment.json that was published before training.")
    ] = None,
    page: Annotated[
        bool,
        flag(
            " /--no-page",
            "Skip report.html, e.g. if another matplotlib version made it; then do not trust it.",
        ),
    ] = True,
    most_seconds: Annotated[
        float,
        option("S", "Time limit in seconds; exit code 2 if exceeded.", min=0.001, max=1e8),
    ] = _DEFAULT_SECONDS,
) -> None:
    """Verify a bundle."""
    published = None
    if commitment is not None:
        published = Commitment.from_json(commitment)
    with bar("Auditing again"), _within_seconds(most_seconds):
        verification = verify_bundle(folder, commitment=published, page=page)
    rows = [
        (_MARKS_OF_CHECKS[check.passed], check.name, check.words) for check in verification.checks
    ]
    output.say(output.grid([("", False)] * 3, rows))
    code = REFUTED
    style = "bold red"
    if verification.valid:
        code = 0
        style = "bold"
    output.say(str(verification), style)
    raise typer.Exit(code)


class _TimeIsUp(BaseException):
    """Not an `Exception`, which verification would report as a fault of the bundle."""


@contextmanager
def _within_seconds(seconds: float) -> Iterator[None]:
    """Stop a block that takes too much time or memory: bad input, without a verdict."""
    before = signal.signal(signal.SIGALRM, _raise_time_is_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except MemoryError:
        refuse("not enough memory for this bundle; no verdict")
    except _TimeIsUp:
        refuse(f"the bundle takes more than {seconds:g} seconds; no verdict: raise --most-seconds")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _raise_time_is_up(*_: object) -> None:
    raise _TimeIsUp
