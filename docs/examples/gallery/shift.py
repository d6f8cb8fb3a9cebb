"""
Zero-Run: how members and others overlap
========================================

Members and non-members differ, and scores depend on the difference. An uncorrected audit accuses a
model that leaks nothing. The audit that corrects for propensities does not.
"""

import numpy as np

import leakbound as lb

rng = np.random.default_rng(0)
log_odds = rng.normal(scale=1.5, size=3_000)
member = rng.random(3_000) < 1 / (1 + np.exp(-log_odds))
scores = log_odds + rng.normal(size=3_000)  # of the features alone: nothing leaks

propensity = 1 / (1 + np.exp(-log_odds))
result = lb.audit(scores, lb.ZeroRun(member, propensity), claim=lb.PureDP(), seed=0)
print(result.summary().headline)
_ = result.plot("overlap")
