"""Scores behind the tutorials on PANORAMIA and Zero-Run: no training while the pages are built.

PYTHONPATH=benches/papers python benches/corpus/tutorials.py

They are files of `leakbound.datasets`. `adult.parquet`: people of UCI Adult and generated ones; for
each pair a coin decided which of the two is shown (`member`); columns are the scores of the
baseline and of the attack on each target. `sites.parquet`: images of Fashion-MNIST, whose class
decides how likely they were to be members (`log_odds`); columns are minus the loss (`score`),
`member`, the label and eight components.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from leakbound import __version__, datasets
from panoramia_run import audit_people
from shifted import shifted

CLASSES = 10
COMPONENTS = 8


def people() -> dict[str, Any]:
    """Train targets on people, audit them by PANORAMIA, and return the scores of the first seed."""
    audited = audit_people(seeds=1, conditional=False)
    first_game, *_ = audited.found.games()
    columns = {"member": first_game.member, "baseline": first_game.baseline}
    column_of_target = {"MLP, 10 epochs": "10 epochs", "MLP, 100 epochs": "100 epochs"}
    for target, scores in first_game.attacks.items():
        column = column_of_target.get(target, "DP-SGD")
        columns[column] = scores
    return columns


def images() -> dict[str, Any]:
    """Train a network on images of some classes more than of others, and return its scores."""
    game = shifted("images, sites", m=6_000, seed=0)
    one_hot_classes = game.features[:, :CLASSES]
    components = game.features[:, CLASSES : CLASSES + COMPONENTS]
    columns = {
        "score": game.scores,
        "member": game.member,
        "label": one_hot_classes.argmax(axis=1).astype(np.int8),
        "log_odds": game.log_odds,
    }
    for number, component in enumerate(components.T):
        columns[f"x{number}"] = component.astype(np.float32)
    return columns


def main() -> None:
    """Train, score and write."""
    origin = {"made by": "benches/corpus/tutorials.py", "version": __version__}
    tables: dict[datasets.DatasetName, dict[str, Any]] = {"sites": images(), "adult": people()}
    for name, columns in tables.items():
        table = pa.table(columns).replace_schema_metadata(origin)
        parquet.write_table(table, datasets.path(name), compression="zstd")


if __name__ == "__main__":
    main()
