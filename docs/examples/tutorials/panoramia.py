"""
A deployed model and generated non-members
==========================================

The model is trained, its training data are known, and there are no non-members at all. PANORAMIA
generates non-members, and asks two questions. How well can an attack distinguish generated records
from real ones *without* the model? How much better can it do so *with* the model?
"""

# %%
# Stored scores
# -------------
# Three networks predict the income of people in UCI Adult: trained for 10 epochs, for 100 epochs,
# and for 10 epochs with DP-SGD. A generator (a sequence of decision trees) learned from other
# training records. For each of 4,032 pairs a fair coin decided whether the auditor is shown a
# real member or a generated record. `leakbound.panoramia.run` does all of this in two minutes;
# its scores come with leakbound, so that nothing is trained here.

from pyarrow import parquet

import leakbound as lb

table = parquet.read_table(lb.datasets.path("adult"))
print(table.column_names, len(table))

# %%
# - ``member`` is the coin: true if a real member was shown, false if a generated record was.
# - ``baseline`` is the score of a classifier that sees the record, but not the model under audit.
# - the other columns are scores of the same kind of classifier, which also sees what one of the
#   models says about the record.
#
# The audit
# ---------

member, baseline = table["member"].to_numpy(), table["baseline"].to_numpy()
results = {
    name: lb.audit(table[name].to_numpy(), lb.Panoramia(member, baseline=baseline), seed=0)
    for name in ("10 epochs", "100 epochs", "DP-SGD")
}
for name, result in results.items():
    shown = (f"{metric.name} {metric.value}" for metric in result.summary().metrics[:3])
    print(f"{name}: {', '.join(shown)}")

# %%
# How to read it
# --------------
# **c** measures how far the generator is from real data: the baseline proves at least 0.52. **c +
# ε** measures how well the attack does with the model. Both are lower bounds. Their difference ε̃
# is an *estimate* of what the model adds. It is not a lower bound on ε: if the true c is larger
# than the baseline could show, part of ε̃ belongs to the generator.

_ = results["100 epochs"].plot("precision_recall")

# %%
# The attack (upper curve) is right more often than the baseline at the same recall.
#
# A warning from the data
# -----------------------
# The DP-SGD network was trained with ε = 8, and audits with real non-members prove almost nothing
# about it. Its ε̃ above is nearly as large as that of the network trained for 10 epochs. Most of
# this ε̃ comes from the generator, not from the model. Compare models with each other, and never
# quote ε̃ as a bound.
#
# A bound that holds on a condition
# ---------------------------------
# With ``features`` the same scores also give a lower bound on ε by Zero-Run. It holds if the
# log-odds that a record is real are linear in the features and the baseline's score; the audit
# tests this. Here the baseline's score is the only feature. The bound is 0 for the network trained
# with DP-SGD:

for name in results:
    design = lb.Panoramia(member, baseline=baseline, features=baseline[:, None])
    conditional = lb.audit(table[name].to_numpy(), design, seed=0).conditional
    print(f"{name}: {conditional.summary().headline}")

# %%
# :doc:`/audits/panoramia` shows the whole run from a model; :doc:`/theory/panoramia` has the proof
# and the measurements.
