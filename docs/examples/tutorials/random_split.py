"""
A random split that you already have
====================================

The model is already trained. If its training set was a random part of the data, as with
`train_test_split`, you don't need canaries: score the training set and the test set. The bound is
on the ε of *replacing* one example. :doc:`/audits/random-split` is the short version.
"""

# %%
# A model and its split
# ---------------------
# You can use any classifier. This one is trained on 70 % of scikit-learn's digits. A fifth of the
# labels are wrong, and the model memorises them.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

import leakbound as lb

images, labels = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
noisy = rng.random(len(labels)) < 0.2
labels = np.where(noisy, rng.integers(0, 10, len(labels)), labels)

rows = np.arange(len(labels))
train, test = train_test_split(rows, train_size=0.7, random_state=7)
model = ExtraTreesClassifier(200, min_samples_leaf=2, bootstrap=True, random_state=0)
_ = model.fit(images[train], labels[train])

# %%
# Scores of both parts
# --------------------
# The score of an example is the probability that the model gives to its label. A second array says
# whether the example was in the training set.

probability = model.predict_proba(images)[rows, labels]
member = np.isin(rows, train)

# %%
# If you have both parts as separate arrays, ``lb.audit_model(model, train=…, test=…)`` does all of
# this in one call.
#
# The audit
# ---------
# `RandomSplit` pairs members with non-members at random and guesses which of the two was in the
# training set. `Coins` is the wrong design for a split of 70 to 30: a guess of "member" is right
# seven times in ten, without any leak. leakbound refuses it:

try:
    lb.audit(probability, lb.Coins(member))
except lb.LeakboundError as error:
    print(error)

# %%

result = lb.audit(probability, lb.RandomSplit(member), seed=0)
print(result.summary().headline)

# %%
# A guarantee is usually stated for adding or removing one example. It implies a guarantee for
# replacing one example with twice the ε. `check` converts the claim, never the bound.

print("ε = 0.5, adding or removing:", result.check(epsilon=0.5, relation="add_remove"))
print("ε = 0.5, replacing:", result.check(epsilon=0.5, relation="replace"))

# %%
# Examples of the training set have higher scores. The bound comes from the pairs that differ most.

_ = result.plot("histogram")

# %%
# What it assumes
# ---------------
# The split must have been random, and the test set must not have influenced the model: no early
# stopping, and no choice of a checkpoint by its accuracy. Pass `strata=` if the split was
# stratified, and `groups=` if all rows of a user were kept together. A split by date does not
# count. :doc:`/theory/random-splits` has the theorem.

for assumption in result.assumptions:
    print(f"- {assumption.name}: {assumption.status}")

# %%
# On the command line, use a file with the columns ``score`` and ``member``. Write it with
# ``pandas.DataFrame({"score": probability, "member": member}).to_csv("scores.csv", index=False)``:
#
# .. code-block:: console
#
#    $ leakbound split scores.csv --untouched
