"""How generators of tables stand on real people: the table of docs/theory/generators.md, printed.

Run it as `python benches/python/table_generators.py`; UCI Adult comes with `make data`. Each
generator faces two networks: one that learnt other people, so that all that is put down to it is
the generator's doing, and one that learnt the members.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

sys.path.append(f"{Path(__file__).parents[1]}/papers")

from leakbound._base.types import FloatArray, IntArray
from leakbound.generators import ChowLiuTree, SequentialCART
from leakbound.panoramia import Helper, Options, run
from leakbound.torch.device import descend, reproducible
from real_data import adult

MEMBERS = 16_000
OTHERS = 12_000
EPOCHS = 20
BATCH_SIZE = 128
PEOPLE = adult()
COLUMN_MEANS = PEOPLE.values.mean(axis=0)
COLUMN_DEVIATIONS = PEOPLE.values.std(axis=0)


def features(rows: FloatArray) -> NDArray[np.float32]:
    """Return numbers standardised, and categories one column each."""
    standardised_rows = (rows - COLUMN_MEANS) / COLUMN_DEVIATIONS
    columns = []
    for number, name in enumerate(PEOPLE.columns):
        if name in PEOPLE.categories:
            one_hot_categories = np.eye(len(PEOPLE.categories[name]))
            codes = rows[:, number].astype(np.int64)
            columns.append(one_hot_categories[codes])
        else:
            columns.append(standardised_rows[:, [number]])
    return np.concatenate(columns, axis=1).astype(np.float32)


def trained(rows: IntArray) -> nn.Module:
    """Return a network that learnt some of the people."""
    torch.manual_seed(0)
    inputs = torch.tensor(features(PEOPLE.values[rows]))
    labels = torch.tensor(PEOPLE.labels[rows])
    _, width = inputs.shape
    network = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        shuffled_rows = torch.randperm(len(inputs))
        for batch in torch.split(shuffled_rows, BATCH_SIZE):
            logits = network(inputs[batch])
            loss = nn.functional.cross_entropy(logits, labels[batch])
            descend(optimizer, loss)
    return network.eval()


def main() -> None:
    """Print c, and what is put down to each network, over three seeds."""
    order = np.random.default_rng(0).permutation(len(PEOPLE.labels))
    ends = [MEMBERS, MEMBERS + OTHERS]
    members, others, held_out = np.split(order, ends)
    helpers = (Helper("generated", epochs=10), Helper("members", epochs=10))
    options = Options(inputs=features, helper=helpers, seeds=(0, 1, 2), saturation=())
    with reproducible():
        networks = {"other people": trained(others), "the members": trained(members)}
        for generator in (SequentialCART, ChowLiuTree):
            report = run(
                networks,
                members=(PEOPLE.values[members], PEOPLE.labels[members]),
                generator=generator(categorical=PEOPLE.categorical),
                nonmembers=(PEOPLE.values[held_out], PEOPLE.labels[held_out]),
                options=options,
            )
            print(f"{generator.__name__}\n{report}")


if __name__ == "__main__":
    main()
