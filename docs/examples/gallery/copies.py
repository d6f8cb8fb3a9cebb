"""
Synthetic table: the scores of records
======================================

The table consists of training records with some noise added. Its training records score higher than
those held out, although none was copied exactly.
"""

import numpy as np
from sklearn.datasets import load_diabetes

import leakbound as lb

records = load_diabetes(as_frame=True, scaled=False).frame
shuffled = records.sample(frac=1, random_state=0)
train, holdout = shuffled.iloc[:221], shuffled.iloc[221:]
noise = np.random.default_rng(0).normal(size=train.shape) * 0.3 * train.std().to_numpy()

result = lb.audit_synthetic(train, holdout, train + noise, seed=0)
print(result.summary().headline)
_ = result.plot("histogram")
