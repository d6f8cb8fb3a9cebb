"""
A deployed model, without any randomisation
===========================================

The model is trained, nobody tossed coins, and the split was not random: some kinds of examples were
much more likely to be trained on than others. Zero-Run takes known members and known non-members,
and corrects for what their *features* alone reveal.
"""

# %%
# Members that differ from non-members
# ------------------------------------
# A network was trained on images of Fashion-MNIST, mostly of classes at one end of the list. You
# can imagine that each class came from a different site, and that some sites delivered more images.
# The scores (minus the loss) of 6,000 images come with leakbound, so that nothing is trained here.

import numpy as np
from pyarrow import parquet

import leakbound as lb

table = parquet.read_table(lb.datasets.path("sites"))
member, label = table["member"].to_numpy(), table["label"].to_numpy()
scores = table["score"].to_numpy()

for kind in (0, 9):
    print(f"class {kind}: {member[label == kind].mean():.0%} of the images were trained on")

# %%
# The features
# ------------
# The features must describe every way in which members and non-members may differ, except
# membership itself. Here they are the class, and eight principal components of the image. One class
# is left out, because its column follows from the other columns. Never use outputs of the audited
# model as features.

classes = np.eye(10)[label][:, 1:]
components = np.stack([table[f"x{i}"].to_numpy() for i in range(8)], axis=1)
features = np.concatenate([classes, components], axis=1)

# %%
# The audit
# ---------
# `ZeroRun` learns from the features how likely each image was to be a member: its *propensity*.
# It keeps every propensity model that the data do not rule out, and reports the smallest bound
# that any of them gives. The bound therefore holds on a condition, which the headline states.

result = lb.audit(scores, lb.ZeroRun(member, features=features), seed=0)
print(result.summary().headline)

# %%
# How much do the groups overlap?
# -------------------------------
# Where only members or only non-members occur, nothing can be learned about the model. Here most
# images could have been either.

_ = result.plot("overlap")

# %%
# A model that leaks nothing
# --------------------------
# These scores depend on the class, and not on the model. An audit that treats the groups as a
# random split would claim leakage; Zero-Run does not.

innocent = 0.5 * label + np.random.default_rng(0).normal(size=len(label))
checked = lb.audit(innocent, lb.ZeroRun(member, features=features), seed=0)
print(f"without a correction: ε = {checked.naive:.2f} would be claimed")
print(checked.summary().headline)

# %%
# What it assumes
# ---------------
# Three tests try to refute the propensity model without looking at any score. If one succeeds, the
# bound is withheld. They cannot detect a missing feature: if members were photographed with another
# camera, and no feature shows this, the audit may claim leakage for a model that leaks nothing.

for assumption in result.assumptions:
    print(f"- {assumption.name}: {assumption.status}")

# %%
# In this example the propensities are known, because the members were drawn with them. With known
# propensities the bound is a little larger:

known = 1 / (1 + np.exp(-table["log_odds"].to_numpy()))
exact = lb.audit(scores, lb.ZeroRun(member, known, features=features), seed=0)
print(result.summary().formula, "with learned propensities")
print(exact.summary().formula, "with known ones")

# %%
# On the command line, use a file with the columns ``score``, ``member`` and the features:
#
# .. code-block:: console
#
#    $ leakbound zero-run scores.csv --features x0,x1,x2 --out audit
#
# :doc:`/audits/zero-run` explains when to use this audit, and :doc:`/theory/zero-run` has the
# proof.
