"""Scores of language models behind an API: logs of token log-probabilities, into shards."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import typer

from leakbound import __version__
from leakbound._base.console import bar, tell
from leakbound._base.files import RECORD, replacing_folder, write_text
from leakbound._base.imports import needs
from leakbound._base.scores import TOKENS
from leakbound._base.types import SignalName
from leakbound.attacks.logs import LogSource
from leakbound.attacks.served import Row, ScoredLog
from leakbound.attacks.tokens import LOWEST, TokenSignal
from leakbound.cli.options import option, parse_columns, refuse
from leakbound.cli.shards import ROWS, SHARD_ROWS, files_of
from leakbound.errors import FormatError

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
