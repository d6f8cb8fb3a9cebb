"""
Choices: canaries that differ in a secret
=========================================

A coin decides whether a canary is trained on. A *choice* decides which of k versions of it is: the
same sentence with another number in it, the same image with another label. The attack names the
version, and is right by chance once in k times, so a right guess says more than one about a coin,
and fewer canaries are needed.
"""

# %%
# One of ten labels for each image
# --------------------------------
# 150 images of scikit-learn's digits are the canaries. Each gets a label that has nothing to do
# with what it shows: one of ten, drawn by `ChoicePlan` before training.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

import leakbound as lb

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
canaries, ordinary = images[order[:150]], order[150:]

plan = lb.planning.ChoicePlan.create(150, k=10, seed=0)
plan

# %%
# Without a seed the draws come from the system's entropy. ``plan.save("plan.npz")`` keeps them for
# the audit, and ``lb.planning.ChoicePlan.load`` reads them again. `included` picks the version of
# each canary that is trained on; of images with ten labels each that is the label.

versions = np.tile(np.arange(10), (150, 1))
secret = plan.included(versions)
secret[:10]

# %%
# Training
# --------
# The canaries go in with everything else.

model = ExtraTreesClassifier(200, min_samples_leaf=2, bootstrap=True, random_state=0)
_ = model.fit(
    np.concatenate([images[ordinary], canaries]), np.concatenate([labels[ordinary], secret])
)

# %%
# Scores of all ten versions
# --------------------------
# A row for each canary and a column for each version, in an order that has nothing to do with the
# draw: the probability that the model gives to each label of the image. A language model would be
# asked for the log-likelihood of the sentence with each number in it.

scores = model.predict_proba(canaries)
scores.shape

# %%
# The audit
# ---------
# The guess about a canary is its version of the largest score, and the guesses with the largest
# margin over the second come first. The bound is on replacing one version by another.

result = lb.audit(scores, lb.Choices(plan))
print(result.summary().headline)
print(f"{result.correct} of {result.guesses} guesses were right; by chance one in ten is")

# %%
# Two versions of each canary would show less, with as many right guesses:

two = lb.audit(np.eye(2)[[0, 1] * 75], lb.Choices([0, 1] * 75, k=2))
print(f"a perfect attack on 150 canaries proves ε ≥ {two.bound:.2f} among two versions,")
print(f"and ε ≥ {result.ceiling:.2f} among ten")

# %%
# A guarantee is usually stated for adding or removing one example, and implies one for replacing a
# version with twice the ε. The claim is converted; the bound never is.

print("ε = 1, adding or removing:", result.check(epsilon=1.0, relation="add_remove"))

# %%
# Other claims need no other scores:

for claim in (lb.ApproxDP(delta=1e-5), lb.GaussianDP()):
    print(lb.audit(scores, lb.Choices(plan), claim=claim, seed=0))

# %%
# **What can go wrong.** Versions that are listed with the true one first are no audit: a model that
# says nothing has ties, and whoever breaks them in favour of the first is always right. Here ties
# are broken at random, and draws that cannot have been uniform are refused:

try:
    lb.audit(scores, lb.Choices(np.zeros(150, dtype=int), k=10))
except lb.LeakboundError as error:
    print(error)

# %%
# The same on the command line, from a file with the columns ``score_0`` to ``score_9`` and
# ``chosen``:
#
# .. code-block:: console
#
#    $ leakbound choices scores.parquet
