"""The command that scores records in shards: by a model, or from logs of an API."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
import typer

from leakbound import __version__
from leakbound._base.checks import check_ids
from leakbound._base.console import bar, tell
from leakbound._base.files import (
    RECORD,
    keep_record,
    replacing,
    replacing_folder,
    write_text,
    writing_alone,
)
from leakbound._base.imports import needs
from leakbound._base.messages import Message
from leakbound._base.scores import TOKENS
from leakbound._base.types import Precision, SignalName
from leakbound.attacks.logs import LogSource
from leakbound.attacks.served import Row, ScoredLog
from leakbound.attacks.tokens import LOWEST, TokenSignal
from leakbound.cli.files import Columns, Signs, about, check_names, opened, read, suffix_of
from leakbound.cli.formats import is_text
from leakbound.cli.options import argument, command, option, parse_columns, refuse
from leakbound.cli.shards import KINDS, MADE_OF, ROWS, SHARD_ROWS, files_of, record_digest
from leakbound.errors import FormatError, InputError, InputTypeError

if TYPE_CHECKING:
    from leakbound.torch import Scorer

AnySignal: TypeAlias = Literal[SignalName, TokenSignal]
"""What may be measured: by a model that runs here, or on the log of one behind an API."""

# Options of scoring that logs have, too.
_OPTIONS_OF_LOGS = {"signal", "reference", "keep", "most_rows"}


@dataclass(frozen=True)
class Logs:
    """Whose logs are scored in place of data, and how much of a text."""

    source: Annotated[
        LogSource | None,
        option(
            "",
            "What wrote the logs to score, in place of MODEL and DATA: JSON lines with token "
            "log-probabilities of vLLM (prompt_logprobs), of completions of an OpenAI-compatible "
            "server (echo, logprobs), or samples of lm-evaluation-harness.",
            "--from",
        ),
    ] = None
    k: Annotated[float, option("P", "Per cent of the tokens that --signal min_k averages.")] = (
        LOWEST
    )


def score_logs(
    given: Sequence[Path],
    out: Path,
    *,
    logs: Logs,
    signal: AnySignal | None,
    reference: str | None,
    keep: str,
    most_rows: int | None,
    rows: int,
) -> None:
    """Score logs, and write shards once all of them are read."""
    assert logs.source is not None
    log_signal: Any = signal or "mean"
    if log_signal not in get_args(TokenSignal):
        names = ", ".join(get_args(TokenSignal))
        refuse(
            f"--signal {log_signal} needs the model: of logs there are {names}; --reference with "
            "the logs of the base model gives their difference"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FormatError(f"{out} is not empty: choose an empty or new folder")
    base_logs = []
    if reference:
        base_logs.append(Path(reference))
    with bar("Reading the log of the base model"):
        scored_log = ScoredLog(
            _log_files(given),
            logs.source,
            log_signal,
            k=logs.k,
            reference=_log_files(base_logs),
            keep=parse_columns(keep, "--keep") or None,
            most=most_rows,
        )
    made_of = {
        "version of leakbound": __version__,
        "logs": ",".join(map(str, given)),
        "reference": str(reference),
        **{name: str(value) for name, value in asdict(logs).items()},
        "signal": log_signal,
        SHARD_ROWS: str(rows),
    }
    score_count = shard_count = 0
    with replacing_folder(out) as folder, bar("Scoring"):
        scored_rows = iter(scored_log)
        while rows_of_shard := [*islice(scored_rows, rows)]:
            _write_scored_shard(folder / f"00000-{shard_count:05d}.parquet", rows_of_shard)
            shard_count += 1
            score_count += len(rows_of_shard)
        write_text(folder / RECORD, json.dumps(made_of | {ROWS: str(score_count)}, indent=1) + "\n")
    if scored_log.unscored:
        tell(
            f"note: the first token of {scored_log.unscored:,} of {score_count:,} texts has no "
            "log-probability, as no token comes before it, and was left out"
        )
    if not scored_log.keep:
        tell(
            "note: the logs have no field member; name it with --keep, or audit a shard with "
            "--plan, which joins by id"
        )
    typer.echo(f"{out}: {score_count:,} scores in {shard_count:,} shards")


def _log_files(given: Sequence[Path]) -> list[Path]:
    """Return the logs that arguments name: files, or those of folders and globs."""
    log_files = list[Path]()
    for path in given:
        if path.is_dir():
            logs_in_folder = sorted(one for one in path.rglob("*") if _is_log(one))
            if not logs_in_folder:
                raise FormatError(
                    f"{path} has no .jsonl: with --from all arguments are logs, and there is no "
                    "MODEL"
                )
            log_files += logs_in_folder
            continue
        if not path.exists() and not any(sign in str(path) for sign in "*?["):
            raise FormatError(
                f"{path} does not exist: with --from all arguments are logs, and there is no MODEL"
            )
        log_files += files_of([path])
    for file in log_files:
        if not _is_log(file):
            refuse(
                f"{file} is not a log: with --from all arguments are .jsonl or .jsonl.gz. A table "
                "with one log-probability for each text needs no scoring: leakbound coins "
                f"{file} --score-col COL, or split"
            )
    return log_files


def _is_log(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith((".jsonl", ".jsonl.gz"))


def _write_scored_shard(shard: Path, rows: Sequence[Row]) -> None:
    """Write scores as parquet."""
    with needs("io", "writing scores"):
        import pyarrow as pa
        from pyarrow import parquet

    # Columns of all shards, then what was kept.
    columns: dict[str, object] = {
        "id": pa.array([row.id for row in rows], pa.string()),
        "score": pa.array([row.score for row in rows], pa.float64()),
    }
    if rows[0].n_tokens is not None:
        columns[TOKENS] = [row.n_tokens for row in rows]
    for name in rows[0].kept:
        columns[name] = [row.kept[name] for row in rows]
    parquet.write_table(pa.table(columns), shard)


def check_alone(*groups: object) -> None:
    """Refuse options about running a model or reading tables, which logs do not have."""
    for group in groups:
        default = vars(type(group)())
        for name, value in vars(group).items():
            if name not in _OPTIONS_OF_LOGS and value != default[name]:
                refuse(f"--{name.replace('_', '-')} does not go with --from: leave it out")


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
_ROWS_OF_DATA, _ROWS_OF_LOGS = 1 << 12, 10**6
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
            rows=shard_rows or _ROWS_OF_LOGS,
        )
        return
    if not data:
        refuse("DATA is missing: leakbound score MODEL DATA… --out DIR (logs go with --from)")
    if measuring.signal in get_args(TokenSignal):
        refuse(f"--signal {measuring.signal} is for logs of a served model: add --from")
    # 1. What there is to score, and by what.
    rows = shard_rows or _ROWS_OF_DATA
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
