"""The command that tests recorded batches."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from leakbound._base.console import INCONCLUSIVE, REFUTED
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
_CODES = {"not refuted": 0, "refuted": REFUTED, "inconclusive": INCONCLUSIVE}


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
    drawn = _read(file, signs)
    with about(file):
        found = audit_batches(
            drawn,
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
    raise typer.Exit(_CODES[found.check()])


def _read(path: Path, signs: Signs) -> list[Any]:
    """Return the batches of a file."""
    if path.suffix == ".json":
        content = parsed(text_of(path))
        if not isinstance(content, list) or not all(isinstance(one, list) for one in content):
            raise FormatError(f"{path} must hold a list of lists of indices")
        return content
    columns = read(path, ["batch", "index"], signs, optional=())
    batch, index = (columns.numbers(name) for name in ("batch", "index"))
    if (batch != np.floor(batch)).any() or (index != np.floor(index)).any():
        raise FormatError(f"{path}: the columns batch and index must hold integers")
    if not 0 <= batch.min() <= batch.max() <= _MOST_EMPTY * len(batch):
        raise FormatError(f"{path}: batches must be numbered 0, 1, … in the order of the steps")
    return [index[batch == number] for number in range(int(batch.max()) + 1)]
