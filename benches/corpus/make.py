"""Scores of networks trained here on Fashion-MNIST, for `benchmark.Scores`: no training after this.

PYTHONPATH=benches/papers python benches/corpus/make.py

Fair coins draw the members of 12,000 images (`--seed`). Two networks of different size memorise
them, and a third is stopped early. Columns are minus the loss of each (`score` is the larger
one's), `member`, the label, and features: mean, spread and two principal components.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import parquet

from leakbound import InclusionPlan, __version__
from leakbound.torch.device import descend
from real_data import fashion_mnist

FOLDER = Path(__file__).parent
EXAMPLES = 12_000


class Network(NamedTuple):
    """The size of a network, and how long it is trained."""

    hidden_units: int
    epochs: int


NETWORKS = {
    "score": Network(hidden_units=256, epochs=40),
    "small": Network(hidden_units=32, epochs=40),
    "early": Network(hidden_units=256, epochs=3),
}


def negative_losses(
    images: torch.Tensor, labels: torch.Tensor, member: NDArray[np.bool_], seed: int, name: str
) -> NDArray[np.float64]:
    """Train a network on the members and return minus its losses on all examples."""
    hidden_units, epochs = NETWORKS[name]
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(images.shape[1], hidden_units),
        torch.nn.ReLU(),
        torch.nn.Linear(hidden_units, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    member_rows: Any = torch.from_numpy(np.flatnonzero(member))
    for _ in range(epochs):
        shuffled_rows = member_rows[torch.randperm(member_rows.numel())]
        for batch in shuffled_rows.split(100):
            logits = network(images[batch])
            loss = torch.nn.functional.cross_entropy(logits, labels[batch])
            descend(optimizer, loss)
    with torch.no_grad():
        logits = network(images)
        losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return np.asarray(-losses.double().numpy())


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    train, _ = fashion_mnist()
    bytes_of_images = train.values[:EXAMPLES].reshape(EXAMPLES, -1)
    pixels = bytes_of_images.astype(np.float32) / 255
    class_labels = train.labels[:EXAMPLES]
    member = InclusionPlan.create(EXAMPLES, seed=seed).member
    columns: dict[str, NDArray[Any]] = {}
    for name in NETWORKS:
        scores = negative_losses(
            images=torch.from_numpy(pixels),
            labels=torch.from_numpy(class_labels),
            member=member,
            seed=seed,
            name=name,
        )
        columns[name] = scores.astype(np.float32)
    columns["member"] = member
    columns["label"] = class_labels.astype(np.int8)
    for number, feature in enumerate(features_of(pixels)):
        columns[f"x{number}"] = feature.astype(np.float32)
    origin = {
        "made by": "benches/corpus/make.py",
        "seed": str(seed),
        "version": __version__,
    }
    table = pa.table(columns).replace_schema_metadata(origin)
    parquet.write_table(table, FOLDER / "fashion-mnist.parquet", compression="zstd")


def features_of(pixels: NDArray[Any]) -> list[NDArray[Any]]:
    """Return mean, spread and two principal components of each image."""
    centred_pixels = pixels - pixels.mean(axis=0)
    _, eigenvectors = np.linalg.eigh(centred_pixels.T @ centred_pixels)
    components = centred_pixels @ eigenvectors[:, -2:]
    return [pixels.mean(axis=1), pixels.std(axis=1), *components.T]


if __name__ == "__main__":
    main()
