"""The command that tests recorded batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from leakbound._base.records import parsed, text_of
from leakbound._base.types import Batches
from leakbound.cli import options, output
from leakbound.cli.files import Signs, about, read
from leakbound.cli.options import argument, command, option
from leakbound.dp_sgd import audit_batches
from leakbound.errors import FormatError

app = typer.Typer()

BATCHES = (
    "FILE has the indices of each step's examples: a .json file with a list of lists, or a table "
    "with the columns [bold]batch[/] (0, 1, …) and [bold]index[/], one row for each example of "
    "each batch. An accountant for Poisson sampling assumes that examples are drawn independently. "
    "The test detects shuffled epochs, a fixed order, weights and repeats; it takes the "
    "sizes of batches as given. Other batches can be declared with [bold]--sampling[/]."
)
CODES = (
    "[dim]Exit code: 0 not refuted, 1 refuted, 2 bad input, 3 inconclusive, 70 internal error.[/]"
)
# Numbers of batches may be this many times those of rows: batches may be empty
_MOST_EMPTY = 100


@command(app, "batches", "leakbound batches batches.json --examples 60000", BATCHES, CODES)
def batches(
    *,
    file: Annotated[Path, argument("FILE", "Indices of the examples of each batch.")],
    examples: Annotated[int, option("N", "Number of examples in the data.", min=1)],
    sampling: Annotated[
        Batches,
        option("", "Declared: Poisson samples, fresh uniform samples of one size, or epochs."),
    ] = "poisson",
    batches_per_epoch: Annotated[
        int | None, option("N", "Batches in an epoch, for --sampling epochs.", min=1)
    ] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = None,
    signs: Signs,
    json: options.Json = False,
) -> None:
    """Test recorded batches in a file."""
    recorded_batches = _read_recorded_batches(file, signs)
    with about(file):
        found = audit_batches(
            recorded_batches,
            examples=examples,
            sampling=sampling,
            batches_per_epoch=batches_per_epoch,
            confidence=confidence,
            seed=seed,
        )
    if json:
        typer.echo(found.to_json())
    else:
        output.say(found.summary())
        tests = ", ".join(f"{name} {p:.3g}" for name, p in found.p_values.items())
        used = found.provenance.seed
        output.say(f"p-values: {tests}")
        if sampling != "epochs":
            output.say(f"seed: {used}; --seed {used} repeats this audit")
    raise typer.Exit(output.CODE_OF_VERDICT[found.check()])


def _read_recorded_batches(path: Path, signs: Signs) -> Sequence[Sequence[int]]:
    """Return the batches of a file."""
    if path.suffix == ".json":
        batches_in_json: Any = parsed(text_of(path))
        is_list = isinstance(batches_in_json, list)
        if not is_list or not all(isinstance(batch, list) for batch in batches_in_json):
            raise FormatError(f"{path} must hold a list of lists of indices")
        return list(batches_in_json)
    columns = read(path, ["batch", "index"], signs, optional=())
    rows = columns.matrix(["batch", "index"])
    if (rows != np.floor(rows)).any():
        raise FormatError(f"{path}: the columns batch and index must hold integers")
    batch_of_row, example_of_row = rows.T
    if not 0 <= batch_of_row.min() <= batch_of_row.max() <= _MOST_EMPTY * len(rows):
        raise FormatError(f"{path}: batches must be numbered 0, 1, … in the order of the steps")
    last_batch = int(batch_of_row.max())
    return [example_of_row[batch_of_row == batch] for batch in range(last_batch + 1)]
