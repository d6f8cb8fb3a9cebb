"""
Synthetic data from three files
===============================

A generator was trained on records and produced a synthetic table. How much does the table reveal
about single records? The audit needs the training records, the records held out of the same random
split, and the synthetic table. It does not need the generator.
"""

# %%
# Three files
# -----------
# The records are scikit-learn's diabetes table, split at random into two halves. The generator is
# careless: it publishes its training records with a little noise.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import leakbound as lb

folder = Path(tempfile.mkdtemp())
records = load_diabetes(as_frame=True, scaled=False).frame
rng = np.random.default_rng(0)
shuffled = records.iloc[rng.permutation(len(records))]
members, holdout = shuffled.iloc[:221], shuffled.iloc[221:]

noise = rng.normal(size=members.shape) * (0.3 * members.std().to_numpy())
(members + noise).to_csv(folder / "synthetic.csv", index=False)
members.to_csv(folder / "train.csv", index=False)
holdout.to_csv(folder / "holdout.csv", index=False)

# %%
# The audit
# ---------
# Read the three files:

train, held_out, synthetic = (
    pd.read_csv(folder / name) for name in ("train.csv", "holdout.csv", "synthetic.csv")
)
result = lb.audit_synthetic(train, held_out, synthetic, seed=0)
print(result.summary().headline)
print("by the attack", result.attack)

# %%
# Training records have higher scores than held-out records.

_ = result.plot("histogram")

# %%
# Compare with similarity metrics
# -------------------------------
# No record is copied exactly, and marginals and correlations look fine. In this example, the
# distances to the closest record reveal the problem too. If only a few records are copied, the
# distances do not reveal it: see the measurements in :doc:`/theory/synthetic`.

similarity = result.similarity
print(
    f"exact copies {similarity.copies_of_members:.0%}, correlations {similarity.correlations:.3f}"
)
print(
    f"median distance to the closest record: members {similarity.distance_to_members:.2f}, "
    f"others {similarity.distance_to_nonmembers:.2f}"
)

# %%
# A generator that learns a distribution
# --------------------------------------
# Fit a tree of pairwise dependences to the same records, and audit its table:

from leakbound.generators import ChowLiuTree

sampler = ChowLiuTree().fit(train.to_numpy())
made = pd.DataFrame(sampler.sample(len(train), seed=0).values, columns=train.columns)
better = lb.audit_synthetic(train, held_out, made, seed=0)
print(better.summary().headline)

# %%
# A small bound does not prove privacy: these attacks found little. The ceiling is what a perfect
# attack would have shown.

print(f"bound {better.bound:.2f}, ceiling {better.ceiling:.2f}")

# %%
# On the command line:
#
# .. code-block:: console
#
#    $ leakbound synthetic --members train.csv --nonmembers holdout.csv \
#        --synthetic synthetic.csv --claim eps=1 --out audit
#
# See :doc:`/theory/synthetic` for the assumptions, and for the reference data that an attack may
# use.
