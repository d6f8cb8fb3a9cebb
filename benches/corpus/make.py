"""Scores of networks trained here on Fashion-MNIST, for `benchmark.Scores`: no training after this.

PYTHONPATH=benches/papers python benches/corpus/make.py

Fair coins draw the members of 12,000 images (`--seed`). Two networks of different size memorise
them, and a third is stopped early. Columns are minus the loss of each (`score` is the larger
one's), `member`, the label, and features: mean, spread and two principal components.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from pyarrow import parquet

from leakbound import InclusionPlan, __version__
from real_data import fashion_mnist

FOLDER = Path(__file__).parent
EXAMPLES = 12_000
NETWORKS = {"score": (256, 40), "small": (32, 40), "early": (256, 3)}
"""Hidden units, and epochs."""


def losses(
    images: torch.Tensor, labels: torch.Tensor, member: NDArray[np.bool_], seed: int, name: str
) -> NDArray[np.float64]:
    """Train a network on the members and return minus its losses on all examples."""
    units, epochs = NETWORKS[name]
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(images.shape[1], units), torch.nn.ReLU(), torch.nn.Linear(units, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    rows: Any = torch.from_numpy(np.flatnonzero(member))
    for _ in range(epochs):
        for batch in rows[torch.randperm(rows.numel())].split(100):
            optimizer.zero_grad()
            loss: Any = torch.nn.functional.cross_entropy(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(network(images), labels, reduction="none")
    return np.asarray(-loss.double().numpy())


def main() -> None:
    """Train, score and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    train, _ = fashion_mnist()
    flat = train.values[:EXAMPLES].reshape(EXAMPLES, -1).astype(np.float32) / 255
    images = torch.from_numpy(flat)
    labels = torch.from_numpy(train.labels[:EXAMPLES])
    member = InclusionPlan.create(EXAMPLES, seed=seed).member
    columns = {
        name: losses(images, labels=labels, member=member, seed=seed, name=name)
        for name in NETWORKS
    }
    centred = flat - flat.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    features = [flat.mean(axis=1), flat.std(axis=1), *(centred @ axes[:, -2:]).T]
    table = pa.table(
        {name: values.astype(np.float32) for name, values in columns.items()}
        | {"member": member, "label": train.labels[:EXAMPLES].astype(np.int8)}
        | {f"x{i}": values.astype(np.float32) for i, values in enumerate(features)}
    )
    made = {
        "made by": "benches/corpus/make.py",
        "seed": str(seed),
        "version": __version__,
    }
    file = FOLDER / "fashion-mnist.parquet"
    parquet.write_table(table.replace_schema_metadata(made), file, compression="zstd")


if __name__ == "__main__":
    main()
