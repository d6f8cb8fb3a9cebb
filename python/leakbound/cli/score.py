"""The command that scores records by a model in shards, and goes on where it was stopped."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import numpy as np
import typer

from leakbound import __version__
from leakbound._base.checks import check_ids
from leakbound._base.console import bar, tell
from leakbound._base.files import RECORD, keep_record, replacing, writing_alone
from leakbound._base.messages import Message
from leakbound._base.types import Precision
from leakbound.attacks.tokens import TokenSignal
from leakbound.cli.files import Columns, Signs, about, check_names, opened, read, suffix_of
from leakbound.cli.formats import is_text
from leakbound.cli.logs import AnySignal, Logs, check_alone, score_logs
from leakbound.cli.options import argument, command, option, parse_columns, refuse
from leakbound.cli.shards import KINDS, MADE_OF, ROWS, SHARD_ROWS, files_of, record_digest
from leakbound.errors import FormatError, InputError, InputTypeError

if TYPE_CHECKING:
    from leakbound.torch import Scorer

app = typer.Typer()

SCORE = (
    "MODEL is a causal language model or a classifier from Hugging Face (a folder, or a name in "
    "the local cache), or the import path of a torch module or of a function that returns one. "
    "DATA has one row per example, with columns [bold]id[/], [bold]text[/] or [bold]features[/], "
    "[bold]label[/] for classifiers, and optionally [bold]member[/]. The output is a folder of "
    "parquet files (shards) with id, score, member and, for texts, n_tokens.\n\nIf a run stops, "
    "run the same command again: finished shards are kept. If a row is refused, fix it first.\n\n"
    "For a language model behind an API, score its logs instead, with --from and without MODEL: "
    "FILE… are JSON lines with the log-probabilities of tokens, one text in each line, with an "
    "[bold]id[/] and optionally [bold]member[/]."
)
EXAMPLE = """leakbound score ./model documents.parquet --out shards
leakbound score --from vllm log.jsonl --reference base.jsonl --out shards
leakbound coins shards"""
_SEAL = b"leakbound.score"
# Rows of a shard: few where a run may stop, all of most logs, so that a plan can be joined.
_OF_DATA, _OF_LOGS = 1 << 12, 10**6
# Seconds between lines about progress where there is no terminal.
_PAUSE = 60.0


@dataclass(frozen=True)
class Roles(Signs):
    """Which columns are used."""

    inputs: Annotated[
        str,
        option(
            "COL,COL",
            "Column of texts, lists of tokens or arrays, or several columns of numbers. Default: "
            "text for models of texts, features for others.",
        ),
    ] = ""
    label: Annotated[str, option("COL", "Column of labels.")] = "label"
    keep: Annotated[
        str, option("COL,COL", "Columns to pass through. Default: member, if there is one.")
    ] = ""


@dataclass(frozen=True)
class Measuring:
    """What is measured, and how: options of `Scorer`."""

    signal: Annotated[
        AnySignal | None,
        option(
            "",
            "Score. Default: cross_entropy for language models, logit_margin for others. Of logs "
            "(--from): mean (the default), sum, min_k or zlib.",
        ),
    ] = None
    reference: Annotated[
        str | None,
        option("MODEL", "Model before training, for loss_drop; with --from, its logs."),
    ] = None
    max_length: Annotated[
        int | None, option("N", "Tokens after which texts are cut. Default: the limit of MODEL.")
    ] = None
    dtype: Annotated[
        Precision | None, option("", "Precision of weights. Default: float32, or a module's own.")
    ] = None
    batch_size: Annotated[int, option("N", "Examples in a batch.")] = 32
    device: Annotated[str, option("NAME", "Where to run. Default: a GPU if there is one.")] = "auto"


@command(app, "score", EXAMPLE, SCORE, "")
def score(
    scored: Annotated[
        str,
        argument("MODEL", "Folder, cached name, or package.module:name; with --from, a log."),
    ],
    data: Annotated[
        list[Path] | None,
        argument(
            "DATA…",
            f"Files ({', '.join(sorted(KINDS))}), folders or globs; with --from, more logs.",
        ),
    ] = None,
    *,
    out: Annotated[Path, option("DIR", "Folder for the shards.")],
    shard_rows: Annotated[
        int | None,
        option("N", "Rows of DATA in a shard. Default: 4096; for logs, a million.", min=1),
    ] = None,
    logs: Logs,
    measuring: Measuring,
    roles: Roles,
) -> None:
    """Score records by a model, or by the logs of one behind an API."""
    if logs.source is not None:
        check_alone(measuring, roles)
        score_logs(
            [Path(scored), *(data or [])],
            out,
            logs=logs,
            signal=measuring.signal,
            reference=measuring.reference,
            keep=roles.keep,
            most_rows=roles.most_rows,
            rows=shard_rows or _OF_LOGS,
        )
        return
    if not data:
        refuse("DATA is missing: leakbound score MODEL DATA… --out DIR (logs go with --from)")
    if measuring.signal in get_args(TokenSignal):
        refuse(f"--signal {measuring.signal} is for logs of a served model: add --from")
    # 1. What there is to score, and by what.
    rows = shard_rows or _OF_DATA
    files = list(files_of(data))
    for path in files:
        if suffix_of(path) not in KINDS:
            refuse(f"{path}: DATA must be one of {', '.join(sorted(KINDS))}, and no pipe")
    with opened(files[0], roles) as (names, _):
        kept = parse_columns(roles.keep, "--keep") or ["member"] * ("member" in names)
    columns: Any = {"inputs": (*parse_columns(roles.inputs, "--inputs"),), "keep": (*kept,)}
    with bar("Loading the model"):
        from leakbound.torch import Scorer

        scorer = Scorer(scored, label=roles.label, **columns, **vars(measuring))
        made_of = {"version of leakbound": __version__, SHARD_ROWS: str(rows)}
        job = _Job(
            scorer=scorer, out=out, rows=rows, signs=roles, made_of=scorer.made_of() | made_of
        )
    with bar("Reading ids"):
        sizes = {path: job.size(path) for path in files}
    job.made_of[ROWS] = ",".join(map(str, sizes.values()))
    # 2. Shards that are not there yet.
    shards = job.begin(sizes)
    try:
        job.run(sizes, shards)
    except KeyboardInterrupt:
        tell(f"leakbound: finished shards are in {out}; run the same command again to go on")
        raise
    typer.echo(f"{out}: {sum(shards.values()):,} scores in {len(shards):,} shards")


@dataclass(frozen=True)
class _Job:
    """Shards of a folder: fixed pieces of the rows of files, each scored in one call."""

    scorer: "Scorer"
    out: Path
    rows: int
    signs: Signs
    made_of: dict[str, str]

    def size(self, path: Path) -> int:
        """Count the rows of a file, and check its columns and that no id is repeated."""
        with opened(path, self.signs) as (names, _):
            check_names(path, names, [*self.scorer.keep, *self.scorer.columns()])
        with about(path):
            ids = read(path, ["id"], self.signs).words("id")
            check_ids(ids, np.zeros(ids.size, dtype=np.bool_))
        return ids.size

    def begin(self, sizes: Mapping[Path, int]) -> dict[Path, int]:
        """Return shards and their rows, once the folder has no files but those of this job."""
        shards = {
            self.out / f"{number:05d}-{part:05d}.parquet": min(self.rows, size - start)
            for number, size in enumerate(sizes.values())
            for part, start in enumerate(range(0, size, self.rows))
        }
        self.out.mkdir(parents=True, exist_ok=True)
        with writing_alone(self, self.out):
            self._check_folder(shards)
        return shards

    def _check_folder(self, shards: Mapping[Path, int]) -> None:
        """Keep a record of the job in its folder, and refuse files of others."""
        files = [file for file in sorted(self.out.iterdir()) if not file.name.startswith(".")]
        if files == [self.out / RECORD]:
            files.pop().unlink()
        keep_record(self.out, content=self.made_of, kept=files)
        for file in files:
            if file not in shards and file.name != RECORD:
                raise FormatError(
                    f"{file} is not a shard of these data: choose an empty or new folder"
                )

    def run(self, sizes: Mapping[Path, int], shards: Mapping[Path, int]) -> None:
        """Score what is not scored yet, and show how far that is."""
        total = sum(rows for shard, rows in shards.items() if not shard.exists())
        pieces = (piece for path in sizes for piece in self._pieces(path))
        start = time.monotonic()
        seconds_of_last_line = 0.0
        scored_count = 0
        with bar("Scoring", total=total) as move:
            for shard, (file, first, records) in zip(shards, pieces, strict=True):
                if not self._score(shard, path=file, first=first, records=records):
                    continue
                scored_count += len(records)
                seconds_spent = time.monotonic() - start
                speed = f"{scored_count / seconds_spent:,.4g} examples/s"
                move(completed=scored_count, description=f"Scoring, {speed}")
                if (
                    seconds_spent > seconds_of_last_line + _PAUSE
                    and scored_count < total
                    and not sys.stderr.isatty()
                ):
                    minutes_left = 1 + int(
                        (total - scored_count) / scored_count * seconds_spent / 60
                    )
                    tell(
                        f"{scored_count:,} of {total:,} examples, {speed}, about "
                        f"{minutes_left:,} min left"
                    )
                    seconds_of_last_line = seconds_spent

    def _pieces(self, path: Path) -> Iterator[tuple[Path, int, Any]]:
        """Yield the records of each shard of a file, and the number of the first."""
        import pyarrow as pa

        columns = self.scorer.columns()
        first_row = 0
        unwritten_rows = list[Any]()
        names = list(dict.fromkeys(["id", *self.scorer.keep, *columns]))

        def rows_of_shard() -> Any:
            batch = {name: unwritten_rows[0][name][: self.rows].combine_chunks() for name in names}
            numbers = Columns(path, batch, self.signs, first_row).numbers
            texts = [name for name in names if columns.get(name) and is_text(batch[name])]
            return pa.table(batch | {name: numbers(name) for name in texts})

        with opened(path, self.signs, self.rows) as (_, load):
            for batch in load(names):
                unwritten_rows = [pa.concat_tables([*unwritten_rows, pa.table(dict(batch))])]
                while len(unwritten_rows[0]) >= self.rows:
                    yield path, first_row, rows_of_shard()
                    unwritten_rows = [unwritten_rows[0][self.rows :]]
                    first_row += self.rows
        if len(unwritten_rows[0]):
            yield path, first_row, rows_of_shard()

    def _score(self, shard: Path, path: Path, first: int, records: Any) -> bool:
        """Score a shard, unless it is there, and return whether it was not."""
        import pyarrow as pa
        from pyarrow import parquet

        shard_digest = sha256(json.dumps(self.made_of, sort_keys=True).encode())
        for batch in records.to_batches():
            shard_digest.update(batch.serialize())
        seal = {_SEAL: shard_digest.hexdigest().encode()}
        if shard.exists():
            with suppress(pa.ArrowException):
                if seal.items() <= (parquet.read_schema(shard).metadata or {}).items():
                    return False
            raise FormatError(
                f"{shard} is damaged, or was scored from other rows than {path} has from row "
                f"{first} on: delete it to score these, or choose another folder"
            )
        try:
            scored_records = self.scorer(records, first=first)
        except (InputError, InputTypeError) as error:
            message = "{path}, shard {shard}: {error}"
            located_error = Message(message, path=path, shard=shard.name, error=error)
            raise type(error)(located_error) from error
        with replacing(shard) as file:
            made_of = {MADE_OF: record_digest(self.made_of).encode()}
            parquet.write_table(scored_records.replace_schema_metadata(seal | made_of), file)
        return True
