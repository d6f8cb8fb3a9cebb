"""
A random split that you already have
====================================

The model is trained, and nobody tossed coins. If the training set was a random part of the data,
as `train_test_split` makes it, that is randomness enough: training set and test set, scored by
the model, are an exact audit. The bound is on the ε of *replacing* one example.
"""

# %%
# A model and its split
# ---------------------
# Any classifier will do; this one is scikit-learn's. It is trained on 70 % of the digits, a fifth
# of which have a wrong label, and it memorises them.

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
# The probability that the model gives to the label of each example, in one array, and beside it
# whether the example was trained on.

probability = model.predict_proba(images)[rows, labels]
member = np.isin(rows, train)

# %%
# Where the parts are arrays of their own, ``X_train`` and ``X_test``, their scores go one after the
# other, with true for the first and false for the second beside them:
#
# .. code-block:: python
#
#    def answers(x, y):  # labels are 0, 1, …: the columns of predict_proba
#        return model.predict_proba(x)[np.arange(len(y)), y]
#
#    probability = np.concatenate([answers(X_train, y_train), answers(X_test, y_test)])
#    member = np.arange(len(probability)) < len(y_train)
#
# The audit
# ---------
# `RandomSplit` pairs members with non-members at random and guesses which of the two was
# trained on. Audited as coins, a split of 70 to 30 would "refute" anything: a guess of "member" is
# right seven times in ten. So it is refused:

try:
    lb.audit(probability, lb.Coins(member))
except lb.LeakboundError as error:
    print(error)

# %%

result = lb.audit(probability, lb.RandomSplit(member), seed=0)
print(result.summary().headline)

# %%
# A guarantee is usually stated for adding or removing one example, and implies one for replacing an
# example with twice the ε. The claim is converted; the bound never is.

print("ε = 0.5, adding or removing:", result.check(epsilon=0.5, relation="add_remove"))
print("ε = 0.5, replacing:", result.check(epsilon=0.5, relation="replace"))

# %%
# What it assumes
# ---------------
# That the split was random, and that the test set chose nothing about the model: no early stopping,
# no choice of a checkpoint by its accuracy. Stratified splits take `strata=`, splits that keep all
# rows of a user together take `groups=`; a split by date does not count.
# :doc:`/theory/random-splits` has the theorem.

for assumption in result.assumptions:
    print(f"- {assumption.name}: {assumption.status}")

# %%
# The same on the command line, from a file with the columns ``score`` and ``member``, as
# ``pandas.DataFrame({"score": probability, "member": member}).to_csv("scores.csv", index=False)``
# writes:
#
# .. code-block:: console
#
#    $ leakbound split scores.csv --untouched
