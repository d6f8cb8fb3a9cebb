"""Membership attacks on synthetic data: from a synthetic table to a score for each record.

The records of a random split, those that the generator was trained on and others, go in together
and without a label: `Tables` encodes them with the synthetic table, and attacks score them. They
compare with all audited records, each left out of its own reference, or with a third table; never
with the non-members, which would put their labels into the scores.
"""

from leakbound.attacks.synthetic.scores import (
    ATTACKS,
    attribution,
    classifier,
    density_ratio,
    local_likelihood,
    nearest_synthetic,
    neighbourhood,
)
from leakbound.attacks.synthetic.similarity import Similarity, similarity
from leakbound.attacks.synthetic.tables import Tables

__all__ = [
    "ATTACKS",
    "Similarity",
    "Tables",
    "attribution",
    "classifier",
    "density_ratio",
    "local_likelihood",
    "nearest_synthetic",
    "neighbourhood",
    "similarity",
]
